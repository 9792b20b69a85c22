"""Bounds of mean and variance: no algorithm goes beyond its own, and they are near what happens."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from normcli.algorithms.moment_bounds import BOUNDS, DtypePrecision, GroupFacts
from normcli.algorithms.table import ALGORITHMS
from normcli.dtypes import OUTPUT_DTYPES, find_type
from tests.marks import costly

SIZES = (1, 2, 3, 9, 33, 129, 300)
VALUES = {
    "usual": lambda z: z + 2.0,
    "far": lambda z: z + 60.0,
    "small": lambda z: z * 2.0**-7,
    "one far out": lambda z: z + 50.0 * (np.arange(z.shape[1]) == 1),
}


def measure(rows, ddof):
    """The exact mean and variance of rows, as fractions."""
    for row in rows.astype(np.float64).tolist():
        values = [Fraction(value) for value in row]
        mean = sum(values) / len(values)
        yield mean, sum((value - mean) ** 2 for value in values) / (len(values) - ddof)


def test_every_algorithm_has_a_bound():
    assert BOUNDS.keys() == ALGORITHMS.keys()


@pytest.mark.slow
@costly
@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32"])
@pytest.mark.parametrize("name", ALGORITHMS)
def test_no_algorithm_goes_beyond_its_bounds(name, dtype):
    algorithm, row, p = ALGORITHMS[name], BOUNDS[name], DtypePrecision.of(dtype)
    bounded = 0
    for kind, size in ((kind, size) for kind in VALUES for size in SIZES):
        ddof = int(size % 2 and size > 1)
        draw = np.random.default_rng(size).normal(size=(4, size))
        rows = VALUES[kind](draw).astype(find_type(dtype))
        exact = list(measure(rows, ddof))
        mean, variance = (np.array([float(pair[i]) for pair in exact]) for i in (0, 1))
        with np.errstate(all="ignore"):
            drift = row.bound(GroupFacts.of(rows.astype(np.float64), mean, variance, ddof), p, row.order(size))
            found = algorithm.measure(rows, algorithm.add, ddof)
        for group, (true_mean, true_variance) in enumerate(exact):
            for value, true, most in (
                (found.mean[group], true_mean, drift.mean[group]),
                (found.square[group], true_variance, drift.square[group]),
            ):
                if np.isfinite(most):
                    assert abs(Fraction(float(value)) - true) <= Fraction(float(most)), (kind, size)
                    bounded += 1
    assert bounded > 60


@pytest.mark.parametrize("dtype", OUTPUT_DTYPES)
def test_the_numbers_of_a_dtype(dtype):
    p, one = DtypePrecision.of(dtype), np.ones((), find_type(dtype))
    assert one + one.dtype.type(p.unit * 2.0) > one
    assert one + one.dtype.type(p.unit * 0.9) == one
    sizes = np.array([1.0, 1.5, 1.999, 2.0])
    np.testing.assert_array_equal(p.halve_place(sizes), p.unit * np.array([1.0, 1.0, 1.0, 2.0]))
    with np.errstate(over="ignore"):
        assert np.isinf(p.limit(np.array([p.largest]), np.zeros(1)))
    assert np.isinf(p.gamma(1.0 / p.unit))
