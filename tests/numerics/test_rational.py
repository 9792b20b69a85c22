"""Exact sums and roots of single groups, against fractions."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from normcli.numerics.rational import (
    ExactSums,
    find_exponent,
    find_root,
    round_once,
    split,
    sum_exactly,
    sum_pieces,
)
from tests.test_exactness import make


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["normal", "mixed", "mean 1e15", "scale 1e-300", "scale 1e300", "integers"])
def test_sums_of_any_values_are_exact(kind):
    x = make(kind, 1, 700)[0]
    x[3], x[4] = 0.0, 5e-324
    exact = [Fraction(float(value)) for value in x]
    for sums in (sum_exactly(x), sum_pieces([x[:11], x[:0], x[11:]])):
        assert sums.count == 700
        assert sums.mean() * 700 == sum(exact)
        assert sums.square == sum(value * value for value in exact)
        assert sums.scatter() == sum(value * value for value in exact) - sum(exact) ** 2 / 700


def test_a_root_is_exact_or_says_on_which_side_it_lies():
    assert find_root(Fraction(9, 4)) == Fraction(3, 2)
    root = find_root(Fraction(2))
    assert 0 < abs(root * root - 2) < Fraction(1, 2**280)
    assert find_root(Fraction(1, 2**2148)) == Fraction(1, 2**1074)


def test_each_double_of_a_third_is_the_nearest_to_what_the_others_leave():
    third = Fraction(1, 3)
    parts = split(third, 3)
    assert parts[0] == 1 / 3
    assert abs(third - sum(map(Fraction, parts))) <= Fraction(1, 2**160)
    assert split(Fraction(5), 3) == (5.0, 0.0, 0.0)


def test_exponents_and_ends_of_the_range():
    assert [find_exponent(Fraction(value)) for value in (1, 0.75, -8, 5e-324)] == [0, -1, 3, -1074]
    assert round_once(Fraction(10) ** 400) == np.inf
    assert round_once(-(Fraction(10) ** 400)) == -np.inf


def test_sums_of_values_that_count_several_times_and_of_none():
    values = np.array([3.0, -0.5, 0.0])
    assert sum_exactly(values).repeat(4).scatter() == sum_exactly(np.tile(values, 4)).scatter()
    assert sum_exactly(values).repeat(4).mean() == Fraction(5, 6)
    assert sum_exactly(values).repeat(4).count == 12
    assert sum_exactly(np.zeros((2, 3))) == ExactSums(6, Fraction(0), Fraction(0))
    assert sum_exactly(np.array([], np.int64)) == sum_pieces([])
