"""The arithmetic of pairs against exact rationals."""

from __future__ import annotations

from fractions import Fraction

import mpmath
import numpy as np
import pytest

from normcli.numerics import pairs
from normcli.numerics.pairs import Pair, is_zero

RNG = np.random.default_rng(5)
A = RNG.normal(size=300) * 10.0 ** RNG.integers(-30, 30, 300)
B = RNG.normal(size=300) * 10.0 ** RNG.integers(-30, 30, 300)
A[:50] = -B[:50] * (1 + RNG.normal(size=50) * 1e-15)  # sums that cancel


def exact(pair: Pair, i: int) -> Fraction:
    return Fraction(float(pair.hi[i])) + Fraction(float(pair.lo[i]))


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
        assert exact(result, i) == truth(Fraction(A[i]), Fraction(B[i]))


def make_pairs():
    return Pair(A, A * 2.0**-54 * RNG.uniform(-1, 1, A.size)), Pair(
        B, B * 2.0**-54 * RNG.uniform(-1, 1, B.size)
    )


@pytest.mark.parametrize(
    ("operation", "truth", "bits"),
    [
        pytest.param(pairs.pair_add, lambda a, b: a + b, 103, id="add"),
        pytest.param(pairs.pair_multiply, lambda a, b: a * b, 101, id="multiply"),
        pytest.param(pairs.pair_divide, lambda a, b: a / b, 100, id="divide"),
    ],
)
def test_pairs(operation, truth, bits):
    a, b = make_pairs()
    result = operation(a, b)
    for i in range(A.size):
        expected = truth(exact(a, i), exact(b, i))
        assert abs(exact(result, i) - expected) <= abs(expected) / 2**bits


def test_root():
    a = pairs.pair_multiply(*[make_pairs()[0]] * 2)
    root = pairs.pair_root(a)
    with mpmath.workdps(60):
        for i in range(A.size):
            truth = mpmath.sqrt(mpmath.mpf(float(a.hi[i])) + mpmath.mpf(float(a.lo[i])))
            got = mpmath.mpf(float(root.hi[i])) + mpmath.mpf(float(root.lo[i]))
            assert abs(got - truth) <= truth * mpmath.mpf(2) ** -100


def test_the_root_of_zero_is_zero():
    zero = np.zeros(1)
    assert pairs.pair_root(Pair(zero, zero)) == (0.0, 0.0)


@pytest.mark.parametrize("count", [1, 2, 3, 7, 500, 1024, 10**9 + 7])
def test_divide_by_count(count):
    a, _ = make_pairs()
    result = pairs.divide_by_count(a, count)
    for i in range(A.size):
        expected = exact(a, i) / count
        assert abs(exact(result, i) - expected) <= abs(expected) / 2**101


@pytest.mark.parametrize("n", [1, 2, 3, 7, 8, 255, 300])
def test_sum_pairs(n):
    a, _ = make_pairs()
    part = Pair(a.hi[:n].reshape(1, n), a.lo[:n].reshape(1, n))
    total = pairs.sum_pairs(part)
    expected = sum(exact(a, i) for i in range(n))
    largest = sum(abs(exact(a, i)) for i in range(n))
    assert abs(exact(total, 0) - expected) <= largest / 2**98


def test_places_are_lowered_and_raised_to_the_least_and_largest_pair():
    for change, sign in ((pairs.lower_at, 1.0), (pairs.raise_at, -1.0)):
        tiny = 2.0**-60
        target = Pair(*(sign * np.array(part) for part in ([1.0, 1.0, 1.0], [tiny, tiny, -tiny])))
        values = Pair(sign * np.array([0.5, 1.0, 1.0, 1.0]), np.zeros(4))
        change(target, np.array([0, 1, 1, 2]), values)
        assert (sign * target.hi).tolist() == [0.5, 1.0, 1.0]
        assert (sign * target.lo).tolist() == [0.0, 0.0, -tiny]
        values = Pair(sign * np.ones(2), sign * np.array([-tiny, 2 * tiny]))
        change(target, np.array([1, 1]), values)
        assert (sign * target.lo).tolist() == [0.0, -tiny, -tiny]


@pytest.mark.parametrize("low", [0.0, 2.0**-60])
def test_the_least_and_the_largest_at_places_named_more_than_once(low):
    """The second doubles decide where the first are the same."""
    for turn, change in ((1.0, pairs.lower_at), (-1.0, pairs.raise_at)):
        target = Pair(turn * np.array([1.0, 1.0, 1.0]), np.zeros(3))
        values = Pair(turn * np.array([1.0, 0.5, 0.5, 2.0]), turn * np.array([-low, low, -low, -low]))
        change(target, np.array([0, 1, 1, 2]), values)
        assert (turn * target.hi).tolist() == [1.0, 0.5, 1.0]
        assert (turn * target.lo).tolist() == [-low, -low, 0.0]


def test_what_is_left_of_numbers_that_cancel_is_no_zero():
    terms = [np.array([1.0, 1.0]), np.array([-1.0, -1.0]), np.array([2.0**-200, 0.0])]
    assert is_zero(terms).tolist() == [False, True]
