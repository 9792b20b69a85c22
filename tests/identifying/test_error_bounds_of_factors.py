"""How far off values are before a factor multiplies them, and between which bounds that leaves the factor."""

from __future__ import annotations

import numpy as np
import pytest

from normcli.identifying.models.error_bounds import (
    Level,
    bound_factors,
    measure_noise,
)
from normcli.identifying.models.standards import standardize
from normcli.norms.divisors import DEVIATION, ROOT_MEAN_SQUARE

EPS = 2.0**-23
ROWS = np.array([[1.0, 3.0], [-6.0, -2.0], [7.0, 7.0]])
"""Deviations of 1, 2 and 0; means of 2, −4 and 7."""


def make(divisor=DEVIATION, roundings=4.0, rows=ROWS):
    standard = standardize(rows, divisor)
    return standard, measure_noise(standard, Level("float32", 1.0, roundings))


WIDE = np.random.default_rng(0).normal(0.7, 2.0, (5, 9))


@pytest.mark.parametrize("factor", [1.0, 0.5, 30.0])
@pytest.mark.parametrize("divisor", [DEVIATION, ROOT_MEAN_SQUARE])
def test_the_bounds_hold_the_factor_and_no_more_than_the_slack(factor, divisor):
    standard, noise = make(divisor, 1.0, WIDE)
    slack = np.full(WIDE.shape, 1e-6)
    off = slack * np.random.default_rng(1).uniform(-0.9, 0.9, WIDE.shape)
    least, largest = bound_factors(standard, factor * standard.values + off, slack, noise)
    assert np.all((least <= factor) & (factor <= largest))
    assert np.all(largest - least < 4e-6 + 4e-6 * factor)


@pytest.mark.parametrize(
    "change",
    [
        pytest.param(lambda t: np.where(t == t.max(), 0.99 * t, t), id="one value"),
        pytest.param(lambda t: -t, id="the sign"),
        pytest.param(lambda t: np.where(t == t.max(), np.nan, t), id="nan"),
        pytest.param(lambda t: np.where(t == t.max(), np.inf, t), id="infinity"),
        pytest.param(lambda t: t + 0.01, id="a shift"),
        pytest.param(lambda t: 0.0 * t - 1.0, id="one number"),
    ],
)
def test_what_no_factor_gives(change):
    standard, noise = make(DEVIATION, 1.0, WIDE)
    assert bound_factors(standard, change(standard.values), np.full(WIDE.shape, 1e-6), noise) is None


def test_of_a_constant_group_the_factor_has_no_end_and_only_noise_is_explained():
    standard, noise = make(DEVIATION, 4.0, np.array([[7.0, 7.0, 7.0], [0.1, 0.2, 0.4]]))
    targets, slack = standard.values.copy(), np.full((2, 3), 1e-7)
    targets[0] = 7.0 * EPS * 300.0
    least, largest = bound_factors(standard, targets, slack, noise)
    assert 0.0 < least[0] < 300.0
    assert largest[0] == np.inf
    targets[0] = 0.2
    assert bound_factors(standard, targets, slack, noise) is None
    targets[0] = [1e-5, -1e-5, 0.0]
    assert bound_factors(standard, targets, slack, noise) is not None
    targets[0] = [0.3, -0.3, 0.0]
    assert bound_factors(standard, targets, slack, noise) is None
