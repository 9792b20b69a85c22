"""The arithmetic of pairs against exact rationals."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from normcli.numerics import pairs
from normcli.numerics.pairs import Pair, is_zero
from tests.numerics.exact_parts import add_up

RNG = np.random.default_rng(5)
A = RNG.normal(size=300) * 10.0 ** RNG.integers(-30, 30, 300)
B = RNG.normal(size=300) * 10.0 ** RNG.integers(-30, 30, 300)
A[:50] = -B[:50] * (1 + RNG.normal(size=50) * 1e-15)  # sums that cancel


@pytest.mark.parametrize(
    ("operation", "truth"),
    [
        pytest.param(pairs.two_sum, lambda a, b: a + b, id="two_sum"),
        pytest.param(pairs.two_diff, lambda a, b: a - b, id="two_diff"),
        pytest.param(pairs.two_prod, lambda a, b: a * b, id="two_prod"),
        pytest.param(lambda a, b: pairs.two_square(a), lambda a, b: a * a, id="two_square"),
    ],
)
def test_error_free(operation, truth):
    result = operation(A, B)
    for i in range(A.size):
        assert add_up(result, i) == truth(Fraction(A[i]), Fraction(B[i]))


PAIRS = Pair(A, A * 2.0**-54 * RNG.uniform(-1, 1, A.size))


@pytest.mark.parametrize("count", [1, 2, 3, 7, 500, 1024, 10**9 + 7])
def test_divide_by_count(count):
    result = pairs.divide_by_count(PAIRS, count)
    for i in range(A.size):
        expected = add_up(PAIRS, i) / count
        assert abs(add_up(result, i) - expected) <= abs(expected) / 2**101


@pytest.mark.parametrize(("turn", "change"), [(1.0, pairs.lower_at), (-1.0, pairs.raise_at)])
def test_places_are_lowered_and_raised_to_the_least_and_largest_pair(turn, change):
    """The second doubles decide where the first are the same; places are named more than once."""
    tiny = 2.0**-60
    target = Pair(turn * np.ones(4), turn * np.array([tiny, tiny, -tiny, 0.0]))
    values = Pair(
        turn * np.array([0.5, 1.0, 1.0, 1.0, 2.0]), turn * np.array([tiny, -tiny, 2 * tiny, 0.0, -tiny])
    )
    change(target, np.array([0, 1, 1, 2, 3]), values)
    assert (turn * target.hi).tolist() == [0.5, 1.0, 1.0, 1.0]
    assert (turn * target.lo).tolist() == [tiny, -tiny, -tiny, 0.0]


def test_what_is_left_of_numbers_that_cancel_is_no_zero():
    terms = [np.array([1.0, 1.0]), np.array([-1.0, -1.0]), np.array([2.0**-200, 0.0])]
    assert is_zero(terms).tolist() == [False, True]
