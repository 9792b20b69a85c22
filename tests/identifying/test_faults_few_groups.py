"""Faults in few groups: numbers that are free in each group, or fitted to some groups, name no cause."""

from __future__ import annotations

import numpy as np
import pytest

from normcli.checking.check import NORMALIZED, check
from normcli.identifying.faults.claim import FAULTS, Claim, rank_claims
from normcli.identifying.words.request_phrasing import diagnose_actual
from tests.conftest import pose
from tests.identifying.faulty import name, plan
from tests.marks import choose_some


def _approximated(groups):
    """Return x of some groups, and y with a root that is off by another 0.1 % in each of them."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(groups, 64))
    off = 1.0 + 1e-3 * rng.uniform(0.5, 1.0, (groups, 1))
    return x, x / np.sqrt((x * x).mean(-1, keepdims=True) + 1e-5) / off


@pytest.mark.parametrize(("groups", "is_named"), [(2, False), (5, False), (12, False)])
def test_errors_that_are_free_in_each_group_show_no_approximate_root(groups, is_named):
    assert ("stats-approximate" in name("rms", *_approximated(groups), eps=1e-5)[0]) == is_named


@pytest.mark.parametrize("seed", [0, 1])
@pytest.mark.parametrize("norm", ["rms", "ln"])
def test_eps_added_twice_in_two_groups_is_named(norm, seed):
    x = ((np.random.default_rng(seed).normal(size=(2, 64)) + 1.0) * 0.01).astype("f4")
    away = x - x.mean(1, keepdims=True) if norm == "ln" else x
    eps = np.float32(1e-5)
    y = away / (np.sqrt((away * away).mean(1, keepdims=True) + eps) + eps)
    assert name(norm, x, y, eps=1e-5)[0] == ["stats-eps-twice"]


def test_an_approximate_root_does_not_win_over_a_row_without_free_numbers():
    row, root = (
        Claim(
            (next(each.fault for each in FAULTS if each.fault.id == name),),
            None,
            (name,),
            misfit,
            bits,
            rank=rank,
            numbers=numbers,
        )
        for name, misfit, bits, rank, numbers in (
            ("stats-eps-twice", 0.4, 18.0, 1.0, 0),
            ("stats-approximate", 0.01, 90.0, 2.0, 6),
        )
    )
    assert rank_claims([row, root])[0] is not root
    assert rank_claims([row, root])[0].fault.id == "stats-eps-twice"


def _divide_by_one():
    rng = np.random.default_rng(0)
    x = (rng.normal(size=(16, 64)) * 0.01 + 10.0) * 10.0 ** rng.integers(-1, 2, (16, 1))
    return x, x / 318.0


def test_one_divisor_of_all_groups_is_no_eps_above_the_variances():
    x, y = _divide_by_one()
    assert name("rms", x, y, eps=1e-5)[0] == ["stats-constant"]


def _diagnose(x, y):
    subject = pose(plan("ln", x), x)
    return diagnose_actual(subject, y, check(subject, {NORMALIZED: y}))


def _divide_squares(count, n=512):
    x = np.random.default_rng(0).normal(5.0, 1.0, (3, n)).astype("f4")
    away = x - x.mean(-1, keepdims=True, dtype="f8")
    return x, (away / np.sqrt((away**2).sum(-1, keepdims=True) / count + 1e-5)).astype("f4")


@pytest.mark.parametrize("count", choose_some([513, 509], 2))
def test_a_factor_near_1_that_a_count_has_is_the_count(count):
    told = _diagnose(*_divide_squares(count))
    assert told.cause == f"ln differs: the sum of the squares is divided by {count}, not 512"


def test_a_gamma_is_none():
    x, y = _divide_squares(512)
    assert _diagnose(x, (1.25 * y).astype("f4")).cause == "ln differs: y has a gamma of 1.25 everywhere"
