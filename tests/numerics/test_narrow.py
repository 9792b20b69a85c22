"""Leaves of float32 values, against rational arithmetic."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from normcli.numerics.narrow import measure_narrow_leaves
from normcli.numerics.workspace import Workspace


def spread(rng, n):
    return rng.standard_normal(n) * 10.0 ** rng.uniform(-30, 10, n)


CASES = [
    pytest.param(lambda rng, n: rng.standard_normal(n), id="normal"),
    pytest.param(lambda rng, n: rng.standard_normal(n) + 100, id="offset"),
    pytest.param(lambda rng, n: rng.standard_normal(n) * 1e-3 + 1e4, id="squares that cancel"),
    pytest.param(spread, id="magnitudes far apart"),
    pytest.param(lambda rng, n: np.maximum(rng.standard_normal(n), 0), id="many zeros"),
    pytest.param(lambda rng, n: np.full(n, 0.1), id="constant"),
    pytest.param(lambda rng, n: rng.standard_normal(n) * 1e36, id="near overflow"),
    pytest.param(lambda rng, n: rng.standard_normal(n) * 1e-41, id="subnormal"),
    pytest.param(lambda rng, n: np.zeros(n), id="zeros"),
]


@pytest.mark.parametrize("n", [1, 5, 700, 4096])
@pytest.mark.parametrize("make", CASES)
def test_sums_and_squares(make, n, rng):
    x = np.stack([make(rng, n) for _ in range(3)]).astype(np.float32)
    leaves, low, high = measure_narrow_leaves(x, Workspace(), need_sum=True)
    np.testing.assert_array_equal(low, x.min(axis=1))
    np.testing.assert_array_equal(high, x.max(axis=1))
    for row in range(3):
        values = [Fraction(v) for v in x[row].tolist()]
        total = Fraction(leaves.sum_hi[row]) + Fraction(leaves.sum_lo[row])
        assert abs(total - sum(values)) <= sum(map(abs, values)) * Fraction(2) ** -100
        centre = Fraction(leaves.shift[row])
        square = Fraction(leaves.square_hi[row]) + Fraction(leaves.square_lo[row])
        exact = sum((v - centre) ** 2 for v in values)
        assert abs(square - exact) <= exact * Fraction(2) ** -66


def test_what_is_not_finite_shows_in_the_extremes(rng):
    x = rng.standard_normal((4, 64)).astype(np.float32)
    x[1, 7], x[2, 8], x[3, 9] = np.nan, np.inf, -np.inf
    with np.errstate(all="ignore"):
        _, low, high = measure_narrow_leaves(x, Workspace(), need_sum=True)
    assert (np.isfinite(low) & np.isfinite(high)).tolist() == [True, False, False, False]
