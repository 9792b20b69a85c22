"""Python's integers times a power of two, against fractions."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from normcli.numerics.sums.scaled_integers import take_exactly


@pytest.mark.parametrize(
    "values",
    [
        pytest.param(np.array([[0.75, -5.0, 5e-324], [0.0, 1.7e308, 3.0]]), id="doubles"),
        pytest.param(np.array([2**63 - 1, -(2**63), 0]), id="long integers"),
        pytest.param(np.zeros((0, 2)), id="nothing"),
        pytest.param(np.array([0.1, -2.0], "f2"), id="float16"),
    ],
)
def test_numbers_of_any_dtype_are_taken_exactly(values):
    found = take_exactly(values)
    assert found.values.shape == values.shape
    assert found.list_fractions() == [Fraction(value) for value in values.reshape(-1).tolist()]


def test_products_and_differences_are_exact():
    a, b = np.array([[0.1, -3.0], [2.0**-60, 7.0]]), np.array([[1e-5], [2.0**70]])
    one, other = take_exactly(a), take_exactly(b)
    fractions = [Fraction(value) for value in a.ravel().tolist()]
    by = [Fraction(value) for value in np.broadcast_to(b, a.shape).ravel().tolist()]
    assert one.multiply(other).list_fractions() == [x * y for x, y in zip(fractions, by, strict=True)]
    assert one.subtract(other).list_fractions() == [x - y for x, y in zip(fractions, by, strict=True)]
    assert one.sum_products(one.T).list_fractions() == [
        sum(x * y for x, y in zip(fractions, [Fraction(v) for v in a.T.ravel().tolist()], strict=True))
    ]
    assert one.sum_squares() == sum(x * x for x in fractions)


@pytest.mark.parametrize(("values", "length"), [([[0, 0]], 0), ([[3, 4]], 6), ([[1, 1]], 2)])
def test_lengths_are_rounded_up(values, length):
    assert take_exactly(np.array(values, float)).move(0).bound_length() == length
