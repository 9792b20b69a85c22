"""Averages are the nearest doubles to the exact ones."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from normcli.numerics.averages import average, mix, mix_in, multiply_by_ratio
from tests.reference.limits import STATISTIC


def draw(seed, count, exponent=0):
    random = np.random.default_rng(seed)
    return [
        random.standard_normal(200) * 2.0 ** (exponent + random.integers(-30, 30, 200)) for _ in range(count)
    ]


def measure(got, exact):
    """Return the largest error in ulp."""
    return max(
        float(abs(Fraction(a) - b) / Fraction(float(np.spacing(abs(float(b))))))
        for a, b in zip(got.tolist(), exact, strict=True)
    )


def fractions(values):
    return [Fraction(value) for value in values.tolist()]


@pytest.mark.parametrize("exponent", [-1040, -700, 0, 990])
@pytest.mark.parametrize("count", [2, 5])
def test_averages(count, exponent):
    values = draw(1, count, exponent)
    exact = [sum(row) / count for row in zip(*map(fractions, values), strict=True)]
    assert measure(average(values), exact) <= STATISTIC


@pytest.mark.parametrize("exponent", [-1040, -700, 0, 990])
@pytest.mark.parametrize("weight", [0.0, 0.1, 0.99, 1e-9, 1.0])
def test_mixtures(weight, exponent):
    kept, new = draw(2, 2, exponent)
    exact = [
        (1 - Fraction(weight)) * a + Fraction(weight) * b
        for a, b in zip(fractions(kept), fractions(new), strict=True)
    ]
    assert measure(mix(kept, new, weight), exact) <= STATISTIC


def test_mixtures_that_cancel():
    kept = np.random.default_rng(3).standard_normal(200)
    new = -kept * ((1.0 - 0.1) / 0.1)
    exact = [
        (1 - Fraction(0.1)) * a + Fraction(0.1) * b
        for a, b in zip(fractions(kept), fractions(new), strict=True)
    ]
    assert measure(mix(kept, new, 0.1), exact) <= STATISTIC


def test_what_stays_the_same_stays_the_same():
    values = np.random.default_rng(4).standard_normal(200)
    np.testing.assert_array_equal(mix(values, values, 0.1), values)
    np.testing.assert_array_equal(mix_in(values, 6, values), values)


@pytest.mark.parametrize("count", [0, 2, 10**12])
def test_one_more_value(count):
    kept, new = draw(5, 2)
    exact = [(count * a + b) / (count + 1) for a, b in zip(fractions(kept), fractions(new), strict=True)]
    assert measure(mix_in(kept, count, new), exact) <= STATISTIC


def test_ratios_of_counts():
    (values,) = draw(6, 1)
    got = multiply_by_ratio(values, 7.0, np.full(200, 3.0))
    assert measure(got, [value * 7 / 3 for value in fractions(values)]) <= STATISTIC


def test_what_is_not_finite_is_what_doubles_give():
    one = np.array([np.inf, np.nan, np.inf, 1.0])
    other = np.array([1.0, 1.0, -np.inf, -np.inf])
    with np.errstate(all="ignore"):
        for got in (average([one, other]), mix(one, other, 0.5), mix_in(one, 3, other)):
            np.testing.assert_array_equal(got, [np.inf, np.nan, np.nan, -np.inf])
