"""Averages are the nearest doubles to the exact ones."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from normcli.numerics.sums.fixed_point import add_to, average, divide_total, mix, multiply_by_count
from tests.reference.rounding import round_once


def draw(seed, count, exponent=0):
    random = np.random.default_rng(seed)
    return [
        random.standard_normal(200) * 2.0 ** (exponent + random.integers(-30, 30, 200)) for _ in range(count)
    ]


def check(got, exact):
    """Hold that results are the exact ones, rounded once."""
    assert got.tolist() == [round_once(value, "float64") for value in exact]


def fractions(values):
    return [Fraction(value) for value in values.tolist()]


@pytest.mark.parametrize("exponent", [-1040, -700, 0, 990])
@pytest.mark.parametrize("count", [2, 5])
def test_averages(count, exponent):
    values = draw(1, count, exponent)
    exact = [sum(row) / count for row in zip(*map(fractions, values), strict=True)]
    check(average(values), exact)


def check_mixture(kept, new, weight):
    share = Fraction(weight)
    check(
        mix(kept, new, weight),
        [(1 - share) * a + share * b for a, b in zip(*map(fractions, (kept, new)), strict=True)],
    )


@pytest.mark.parametrize("exponent", [-1040, -700, 0, 990])
@pytest.mark.parametrize("weight", [0.0, 0.1, 0.99, 1e-9, 1.0])
def test_mixtures(weight, exponent):
    check_mixture(*draw(2, 2, exponent), weight)


def test_mixtures_that_cancel():
    kept = np.random.default_rng(3).standard_normal(200)
    check_mixture(kept, -kept * ((1.0 - 0.1) / 0.1), 0.1)


def test_what_stays_the_same_stays_the_same():
    values = np.random.default_rng(4).standard_normal(200)
    np.testing.assert_array_equal(mix(values, values, 0.1), values)
    total = multiply_by_count(values, 6)
    add_to(total, values)
    np.testing.assert_array_equal(divide_total(total, 7), values)


@pytest.mark.parametrize("count", [0, 2, 10**12, 2**63 - 2])
def test_one_more_value(count):
    kept, new = draw(5, 2)
    exact = [(count * a + b) / (count + 1) for a, b in zip(fractions(kept), fractions(new), strict=True)]
    total = multiply_by_count(kept, count)
    add_to(total, new)
    check(divide_total(total, count + 1), exact)


@pytest.mark.parametrize("weight", [0.5, 0.75, 0.1, 1.0 - 2.0**-53, 2.0**-60, 1e-300])
def test_mixtures_are_rounded_once_where_ties_are_near(weight):
    """Of neighbours, every other mixture with a half lies in the middle between two doubles."""
    random = np.random.default_rng(7)
    kept = np.ldexp(random.integers(2**52, 2**53, 200).astype(np.float64), random.integers(-1120, 900, 200))
    new = np.nextafter(kept, random.choice([0.0, np.inf], 200)) * random.choice([1.0, 0.5, 2.0**-55, -1.0], 200)
    check_mixture(kept, new, weight)
    assert mix(kept[0], new[0], weight) == mix(kept, new, weight)[0]  # arrays without axes


def test_what_is_not_finite_is_what_doubles_give():
    one = np.array([np.inf, np.nan, np.inf, 1.0])
    other = np.array([1.0, 1.0, -np.inf, -np.inf])
    with np.errstate(all="ignore"):
        for got in (average([one, other]), mix(one, other, 0.5)):
            np.testing.assert_array_equal(got, [np.inf, np.nan, np.nan, -np.inf])
