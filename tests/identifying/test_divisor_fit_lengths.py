"""Lengths of any p and with an eps of any place are found."""

from __future__ import annotations

import numpy as np
import pytest

from normcli.identifying.identify import identify
from normcli.identifying.models.divisor_fit import solve_p
from normcli.identifying.question import Question
from normcli.identifying.words.phrasing import diagnose

X = np.random.default_rng(0).normal(0.7, 2.0, (12, 7)).astype("f4")


def measure(p):
    return np.sum(np.abs(X) ** np.float32(p), axis=1, keepdims=True) ** np.float32(1 / p)


def ask(y, norm="lp"):
    return identify(Question(X, y), norm)


@pytest.mark.parametrize("p", [3.0, 1.5, 0.5, 2.75])
def test_any_p_is_solved_for(p):
    match = ask(X / measure(p)).matches[0]
    assert (match.p, match.axes, match.is_certain) == (p, (1,), True)


@pytest.mark.parametrize("p", [1.0, 2.0])
def test_an_eps_may_be_added_to_the_length(p):
    found = ask(X / (measure(p) + np.float32(1e-2)))
    match = found.matches[0]
    assert (match.p, match.eps, match.eps_mode) == (p, 1e-2, "outside")
    assert f"p {p:g}, eps 0.01 added to the length" in diagnose(found).sentence


def test_a_length_of_one_group_has_some_p_whatever_it_was_divided_by():
    assert solve_p(X[:1], np.array([4.9]), np.array([5.0])) is None


@pytest.mark.parametrize("p", [0.0626, 0.3, 63.9])
def test_p_is_solved_for_where_it_shows(p):
    rows = np.array([[1.0, 0.99, 0.98], [2.0, 1.99, 1.97], [0.0, 0.0, 0.0]])
    with np.errstate(all="ignore"):
        lengths = (rows**p).sum(axis=1) ** (1.0 / p)
        found = solve_p(rows, lengths * (1.0 - 1e-12), lengths * (1.0 + 1e-12))
    assert found == pytest.approx(p)


def test_two_groups_that_say_something_have_one_p():
    rows = np.array([[1.0, 2.0, np.nan], [-3.0, 1.0, 0.0], [1.0, 1.0, 1.0]])
    low, high = (np.array([3.0, 4.0, bound]) ** 1.0 for bound in (0.0, np.inf))
    assert solve_p(rows, low * (1.0 - 1e-9), high * (1.0 + 1e-9)) == 1.0
    assert solve_p(rows[1:], low[1:] * (1.0 - 1e-9), high[1:] * (1.0 + 1e-9)) is None
    assert solve_p(rows[:2], np.array([3.0, 3.5]), np.array([3.0, 3.5])) is None


@pytest.mark.slow
def test_weights_may_have_their_outputs_along_any_axis():
    w = np.random.default_rng(1).normal(size=(4, 6, 3, 3)).astype("f4")
    g = np.random.default_rng(2).normal(size=(1, 6, 1, 1)).astype("f4")
    y = w * (g / np.sqrt((w * w).sum((0, 2, 3), keepdims=True)))
    match = identify(Question(w, y, g)).matches[0]
    assert (match.norm, match.axes, match.affine) == ("wn", (0, 2, 3), "gamma")
