"""Sums in fixed point, against rational arithmetic."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from normcli.numerics.sums.fixed_point import Fixed

DOUBLES = st.lists(st.floats(allow_nan=False, allow_infinity=False), min_size=1, max_size=12)


def to_fractions(fixed):
    return fixed.integers().list_fractions()


@pytest.mark.slow
@given(DOUBLES)
@example([1.7976931348623157e308] * 12)
@example([2.0**990, -1.1e304, 1.0, 5e-324])
def test_doubles_of_any_range_add_up_exactly(values):
    fixed = Fixed.zeros(1)
    fixed.add(np.zeros(1, dtype=np.int64), np.array([values]))
    assert to_fractions(fixed) == [sum(map(Fraction, values))]


@pytest.mark.slow
@given(DOUBLES, DOUBLES, DOUBLES)
def test_merging_in_any_order_gives_the_same_digits(a, b, c):
    def make(*lists):
        total = Fixed.zeros(1)
        for values in lists:
            part = Fixed.zeros(1)
            part.add(np.zeros(1, dtype=np.int64), np.array([values]))
            total.merge(part)
        return total.settle()

    first, second = make(a, b, c), make(c, a, b)
    assert first.low == second.low
    np.testing.assert_array_equal(first.digits, second.digits)
    assert to_fractions(first) == [sum(map(Fraction, [*a, *b, *c]))]


def test_more_values_than_are_added_at_once():
    values = np.full((3, 300_001), 0.1)
    fixed = Fixed.zeros(2)
    fixed.add(np.array([0, 1, 0]), values)
    assert to_fractions(fixed) == [2 * 300_001 * Fraction(0.1), 300_001 * Fraction(0.1)]


@pytest.mark.slow
@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_carries_do_not_get_lost_over_many_additions(sign):
    fixed, here = Fixed.zeros(1), np.zeros(1, dtype=np.int64)
    for _ in range(3000):
        fixed.add(here, np.array([[sign * (2.0**53 - 1)]]))
    assert to_fractions(fixed) == [int(sign) * 3000 * (2**53 - 1)]


@pytest.mark.slow
@given(DOUBLES, st.integers(1, 4))
def test_few_doubles_are_within_what_they_say_that_they_leave(values, size):
    fixed = Fixed.zeros(2)
    fixed.add(np.zeros(1, dtype=np.int64), np.array([values]))
    found = fixed.distill(size, range(-640, 641))
    exact, nothing = to_fractions(fixed)
    terms = sum(Fraction(float(term[0])) for term in found.terms)
    assert found.beyond[0] or abs(exact - terms) <= Fraction(float(found.left[0]))
    assert (nothing, *(float(array[1]) for array in (*found.terms, found.left))) == (0,) * (size + 2)


def test_numbers_with_digits_beyond_are_named():
    fixed = Fixed.zeros(3)
    fixed.add(np.arange(3), np.array([[1e200, 1.0], [-3.0, 0.5], [2.0**-300, 0.0]]))
    found = fixed.distill(2, range(-64, 65))
    assert found.beyond.tolist() == [True, False, True]
    assert found.terms[0][1] == -2.5


@pytest.mark.parametrize("number", [2**31 + 5, 2**31, -(2**31), -(2**31) - 5, 2**32 - 1, -(2**32)])
def test_equal_numbers_have_equal_digits_however_they_came_about(number):
    one, other = Fixed(np.array([[number]])), Fixed(np.array([[number % 2**32], [number >> 32]]))
    assert one.settle().digits.tolist() == other.settle().digits.tolist()
    assert to_fractions(one) == to_fractions(other) == [number]


def test_groups_are_taken_and_folded_along_either_axis():
    fixed, numbers = Fixed.zeros(6), np.array([3.0, 2.0**-70, -1.0, 2.0**90, 0.0, 5.0])
    fixed.add(np.arange(6), numbers[:, None])
    fixed.add(np.arange(0), np.empty((0, 4)))
    exact = np.array([Fraction(number) for number in numbers], object)
    assert to_fractions(fixed.take(np.array([5, 1, 1]))) == exact[[5, 1, 1]].tolist()
    for shape, axis in (((2, 3), 0), ((2, 3), 1), ((6,), 0), ((1, 2, 3), 1)):
        expected = np.add.reduce(exact.reshape(shape), axis=axis, keepdims=True)
        assert to_fractions(fixed.fold(shape, axis)) == expected.reshape(-1).tolist()
