"""Exact arithmetic on single groups, for the few whose results nothing else decides: integers and fractions."""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from normcli.dtypes import is_long_integer
from normcli.norms.rules import EpsMode

if TYPE_CHECKING:
    from collections.abc import Iterable
    from fractions import Fraction

    from numpy.typing import NDArray

MANTISSA, _HALF = 53, 26
"""Bits of a double, and of the lower half of its integer."""

_TOGETHER = 256
"""Values whose halves' products are added at once: their sum is below 2⁶²."""

_LEAST = 2.0**-1074

ROOT_BITS = 300
"""Bits of a root. One more tells whether it is exact: so it rounds to fewer bits as the root itself does."""


@dataclass(frozen=True, repr=False)
class ExactSums:
    """The number, the sum and the sum of the squares of some values."""

    count: int
    total: Fraction
    square: Fraction

    def add(self, other: ExactSums) -> ExactSums:
        """Return the sums over the values of `self` and `other` together."""
        return ExactSums(self.count + other.count, self.total + other.total, self.square + other.square)

    def repeat(self, times: int) -> ExactSums:
        """Return the sums of the values if each value counts `times` times."""
        return ExactSums(self.count * times, self.total * times, self.square * times)

    def mean(self) -> Fraction:
        """Return the mean."""
        return self.total / self.count

    def scatter(self) -> Fraction:
        """Return the sum of squared deviations from the mean."""
        return self.square - self.total * self.mean()


def sum_pieces(pieces: Iterable[NDArray[Any]]) -> ExactSums:
    """Return the exact number, sum and sum of squares of finite values that come in several arrays."""
    nothing = make_fraction(0)
    return functools.reduce(ExactSums.add, map(sum_exactly, pieces), ExactSums(0, nothing, nothing))


def sum_exactly(values: NDArray[Any]) -> ExactSums:
    """Return the sum and the sum of squares of finite values of any shape and real dtype, exactly."""
    if is_long_integer(values.dtype):
        whole = values.reshape(-1).tolist()
        squares = sum(value * value for value in whole)
        return ExactSums(len(whole), make_fraction(sum(whole)), make_fraction(squares))
    values = values.astype(np.float64)
    count, values = values.size, values[values != 0.0]
    if not values.size:
        return ExactSums(count, make_fraction(0), make_fraction(0))
    mantissa, exponents = np.frexp(values)
    whole = np.ldexp(mantissa, MANTISSA).astype(np.int64)
    order = np.argsort(exponents, kind="stable")
    whole, exponents = whole[order], exponents[order].astype(np.int64) - MANTISSA
    begins = np.diff(exponents, prepend=exponents[0] - 1) != 0
    begins[::_TOGETHER] = True
    starts = np.flatnonzero(begins)  # np.union1d would import numpy.ma
    high, low = whole >> _HALF, whole & ((1 << _HALF) - 1)
    rows = (high, low, high * high, high * low, low * low)
    sums = (np.add.reduceat(row, starts).tolist() for row in rows)
    base, total, square = int(exponents[0]), 0, 0
    for exponent, a, b, aa, ab, bb in zip(exponents[starts].tolist(), *sums, strict=True):
        shift = exponent - base
        total += ((a << _HALF) + b) << shift
        square += ((aa << 2 * _HALF) + (ab << _HALF + 1) + bb) << 2 * shift
    return ExactSums(count, scale(make_fraction(total), base), scale(make_fraction(square), 2 * base))


def make_fraction(value: float) -> Fraction:
    """Return an integer or a double as a fraction."""
    from fractions import Fraction  # on use: few calculations come to it

    return Fraction(value)


def scale(value: Fraction, exponent: int) -> Fraction:
    """Return value · 2^exponent."""
    power = 1 << abs(exponent)
    return value * power if exponent >= 0 else value / power


def find_exponent(value: Fraction) -> int:
    """Return the e of 2^e ≤ |value| < 2^(e + 1), for a value that is not 0."""
    size = abs(value)
    e = size.numerator.bit_length() - size.denominator.bit_length()
    return e if size >= scale(make_fraction(1), e) else e - 1


def find_root(square: Fraction, bits: int = ROOT_BITS) -> Fraction:
    """Return the root of a fraction, exact if it has at most `bits` bits.

    Otherwise, return a fraction of `bits` + 1 bits that rounds to any fewer bits just as the root does.
    """
    if square == 0:
        return square
    shift = bits - find_exponent(square) // 2
    scaled = scale(square, 2 * shift)
    root = math.isqrt(math.floor(scaled))
    if root * root == scaled:
        return scale(make_fraction(root), -shift)
    return scale(make_fraction(2 * root + 1), -shift - 1)


def add_eps(square: Fraction, eps: float | None, mode: EpsMode | None, bits: int = ROOT_BITS) -> Fraction:
    """Return the divisor of a group: the root of `square`, with eps added or as a floor, as `mode` says.

    `square` is the variance, mean square or squared length; an eps of None counts as 0. Roots that are not
    rational are taken to `bits` bits.
    """
    added = make_fraction(eps or 0.0)
    match mode:
        case EpsMode.INSIDE:
            return find_root(square + added, bits)
        case EpsMode.OUTSIDE:
            return find_root(square, bits) + added
        case EpsMode.SQUARE_FLOOR:
            return max(find_root(square, bits), find_root(added, bits))
        case _:
            return max(find_root(square, bits), added)


def round_once(value: Fraction) -> float:
    """Return the double nearest to a value, ties to even; infinite if it is beyond the range of doubles."""
    return divide_once(value.numerator, value.denominator)


def divide_once(a: int, b: int) -> float:
    """Return the double nearest to a / b, ties to even, for b > 0; infinite beyond their range."""
    try:
        return a / b
    except OverflowError:
        return math.inf if a > 0 else -math.inf


def split(value: Fraction, count: int) -> tuple[float, ...]:
    """Return a value as `count` doubles: each is the double nearest to the value minus the doubles before it.

    Only an exact 0 becomes 0: a number that would be rounded to 0 becomes ±2⁻¹⁰⁷⁴.
    """
    parts: list[float] = []
    for _ in range(count):
        nearest = float(value)
        parts.append(math.copysign(_LEAST, value) if value and not nearest else nearest)
        value -= make_fraction(parts[-1])
    return tuple(parts)
