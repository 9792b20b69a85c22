"""Faults in few groups: numbers that are free in each group, or fitted to some groups, name no cause."""

from __future__ import annotations

import numpy as np
import pytest

import normcli
from normcli.identifying.faults.claim import FAULTS, Claim, rank_claims
from tests.identifying.faulty import name
from tests.marks import choose_some


@pytest.mark.parametrize("groups", [2, 5, 12])
def test_errors_that_are_free_in_each_group_show_no_approximate_root(groups):
    """Each root is off by another 0.1 %."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(groups, 64))
    y = x / np.sqrt((x * x).mean(-1, keepdims=True) + 1e-5) / (1.0 + 1e-3 * rng.uniform(0.5, 1.0, (groups, 1)))
    assert "stats-approximate" not in name("rms", x, y, eps=1e-5)[0]


@pytest.mark.parametrize("seed", [0, 1])
@pytest.mark.parametrize("norm", ["rms", "ln"])
def test_eps_added_twice_in_two_groups_is_named(norm, seed):
    x = ((np.random.default_rng(seed).normal(size=(2, 64)) + 1.0) * 0.01).astype("f4")
    away = x - x.mean(1, keepdims=True) if norm == "ln" else x
    eps = np.float32(1e-5)
    y = away / (np.sqrt((away * away).mean(1, keepdims=True) + eps) + eps)
    assert name(norm, x, y, eps=1e-5)[0] == ["stats-eps-twice"]


def test_an_approximate_root_does_not_win_over_a_row_without_free_numbers():
    faults = {each.fault.id: (each.fault,) for each in FAULTS}
    row = Claim(faults["stats-eps-twice"], None, ("twice",), 0.4, 18.0, rank=1.0)
    root = Claim(faults["stats-approximate"], None, ("root",), 0.01, 90.0, rank=2.0, numbers=6)
    assert rank_claims([row, root])[0].causes == ("twice",)


def test_one_divisor_of_all_groups_is_no_eps_above_the_variances():
    rng = np.random.default_rng(0)
    x = (rng.normal(size=(16, 64)) * 0.01 + 10.0) * 10.0 ** rng.integers(-1, 2, (16, 1))
    assert name("rms", x, x / 318.0, eps=1e-5)[0] == ["stats-constant"]


def _divide_squares(count, n=512):
    x = np.random.default_rng(0).normal(5.0, 1.0, (3, n)).astype("f4")
    away = x - x.mean(-1, keepdims=True, dtype="f8")
    return x, (away / np.sqrt((away**2).sum(-1, keepdims=True) / count + 1e-5)).astype("f4")


@pytest.mark.parametrize("count", choose_some([513, 509], 2))
def test_a_factor_near_1_that_a_count_has_is_the_count(count):
    x, y = _divide_squares(count)
    assert (
        normcli.check(y, x, "ln").diagnosis.cause
        == f"ln differs: the sum of the squares is divided by {count}, not 512"
    )


def test_a_gamma_is_none():
    x, y = _divide_squares(512)
    told = normcli.check((1.25 * y).astype("f4"), x, "ln").diagnosis
    assert told.cause == "ln differs: y has a gamma of 1.25 everywhere"
