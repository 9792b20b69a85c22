"""Decide or ask: a decided value is rounded to one float wherever within its error the exact value lies."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest

from normcli.numerics.deciding import MOST_BITS, PRECISIONS, is_decided, round_real, round_to
from normcli.numerics.pairs import Pair, quick_two_sum
from normcli.numerics.rational import find_root, scale

_ERROR = 2.0**-70
_COUNT = 1000


def _draw(bits: int) -> tuple[Pair, np.ndarray]:
    """Return pairs, half of them near the middle between two floats of so many bits, and exponents."""
    rng = np.random.default_rng(bits)
    hi = rng.uniform(0.5, 1.0, _COUNT) * rng.choice([-1.0, 1.0], _COUNT)
    if bits < 52:
        hi = np.where(rng.random(_COUNT) < 0.5, (np.floor(np.ldexp(hi, bits)) + 0.5) * 2.0**-bits, hi)
    lo = hi * 2.0**-54 * rng.uniform(-1.0, 1.0, _COUNT) * rng.choice([1.0, 2.0**-20], _COUNT)
    return quick_two_sum(hi, lo), rng.choice([-1074, -1030, -1022, -140, -126, -20, -14, 0, 5], _COUNT)


@pytest.mark.slow
@pytest.mark.parametrize("name", PRECISIONS)
def test_both_ends_of_a_decided_value_are_rounded_to_one_float(name: str) -> None:
    precision = PRECISIONS[name]
    value, exponents = _draw(precision.bits)
    decided = is_decided(value, exponents, _ERROR, precision)
    assert 0.5 < decided.mean() < 1.0
    for i in np.flatnonzero(decided).tolist():
        exact = Fraction(float(value.hi[i])) + Fraction(float(value.lo[i]))
        ends = {
            round_to(scale(exact + sign * Fraction(_ERROR), int(exponents[i])), precision) for sign in (-1, 1)
        }
        assert len(ends) == 1


@pytest.mark.parametrize("name", PRECISIONS)
def test_what_may_lie_on_both_sides_of_the_middle_is_not_decided(name: str) -> None:
    bits = PRECISIONS[name].bits
    middle = quick_two_sum(np.array([0.5]), np.array([2.0 ** -(bits + 1)]))
    for off in (-1, 0, 1):
        value = quick_two_sum(middle.hi, middle.lo + off * 2.0**-75)
        assert not is_decided(value, np.zeros(1, int), 2.0**-74, PRECISIONS[name]).any()
    assert is_decided(middle, np.zeros(1, int), 0.0, PRECISIONS[name]).all()  # it is known to be a tie
    below = quick_two_sum(np.array([0.5]), np.array([-(2.0**-55)]))  # where floats are twice as dense
    assert is_decided(below, np.zeros(1, int), 2.0**-74, PRECISIONS["float64"]).tolist() == [False]


@pytest.mark.parametrize("name", ["float16", "float32"])
def test_fractions_are_rounded_as_numpy_rounds_doubles(name: str) -> None:
    rng = np.random.default_rng(3)
    values = rng.standard_normal(500) * 2.0 ** rng.integers(-160, 130, 500)
    with np.errstate(over="ignore", under="ignore"):
        expected = values.astype(name).astype(np.float64)
    assert [round_to(Fraction(value), PRECISIONS[name]) for value in values.tolist()] == expected.tolist()


def test_a_value_close_to_a_tie_is_asked_for_more_bits() -> None:
    tie = 1 + Fraction(1, 2**53)
    asked = []

    def evaluate(bits: int) -> tuple[Fraction, Fraction]:
        asked.append(bits)
        return find_root(tie * tie + Fraction(1, 2**1000), bits), Fraction(1, 2 ** (bits - 2))

    assert round_real(evaluate) == 1 + 2.0**-52
    assert asked == [300, 600, 1200]
    asked.clear()
    assert round_real(lambda bits: (asked.append(bits), (tie, Fraction(1, 2**bits)))[1]) == 1.0  # to even
    assert asked[-1] == MOST_BITS


@pytest.mark.parametrize("name", ["float16", "bfloat16", "float32", "float64"])
def test_what_no_double_holds_is_infinite_or_0_with_its_sign(name):
    for sign in (1, -1):
        assert round_to(sign * Fraction(2) ** 2000, PRECISIONS[name]) == sign * math.inf
        assert math.copysign(1.0, round_to(sign * Fraction(1, 2**2000), PRECISIONS[name])) == sign


def test_0_that_is_known_to_within_an_error_has_no_sign():
    found = round_real(lambda bits: (Fraction(0), Fraction(1, 2 ** (4 * bits))))
    assert math.copysign(1.0, found) == 1.0
