"""Exact numbers of any size: Python's integers in an array, all of them times one power of two."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from normcli.dtypes import is_long_integer
from normcli.numerics.pairs import Pair
from normcli.numerics.rational import MANTISSA, make_fraction, scale
from normcli.tuples import NamedTuple

if TYPE_CHECKING:
    from fractions import Fraction

    from numpy.typing import NDArray

    from normcli.dtypes import Floats, Integers, Selected

_MOST_EXPONENT = 1024
"""The largest exponent of a double."""

_QUOTIENT_BITS, _MOST_BITS, _FURTHEST = 160, 900, 700
"""Bits of quotients behind the point; the most bits of an integer that becomes a pair; the largest exponent."""


class RoundedNumbers(NamedTuple):
    """Exact numbers rounded to pairs of doubles.

    `inexact` is True where the pair is not exactly the number, and `lost` where it is 0 because the number is
    out of range.
    """

    value: Pair
    inexact: Selected
    lost: Selected


class ScaledIntegers(NamedTuple):
    """Numbers integer · 2^exponent.

    Parameters
    ----------
    values : ndarray of object
        Python's integers, in an array of any shape.
    exponent : int
        It may be negative.
    """

    values: NDArray[Any]
    exponent: int

    @property
    def T(self) -> ScaledIntegers:  # noqa: N802 - as NumPy calls it
        """The transpose."""
        return ScaledIntegers(self.values.T, self.exponent)

    def move(self, exponent: int) -> ScaledIntegers:
        """Return the numbers as multiples of 2^exponent, each rounded to the nearest, ties up."""
        shift = exponent - self.exponent
        if shift <= 0:
            return ScaledIntegers(self.values << -shift if shift else self.values, exponent)
        return ScaledIntegers((self.values + (1 << shift - 1)) >> shift, exponent)

    def subtract(self, other: ScaledIntegers) -> ScaledIntegers:
        """Return the difference, exactly."""
        exponent = min(self.exponent, other.exponent)
        return ScaledIntegers(self.move(exponent).values - other.move(exponent).values, exponent)

    def multiply(self, other: ScaledIntegers) -> ScaledIntegers:
        """Return the product, element by element, exactly."""
        return ScaledIntegers(self.values * other.values, self.exponent + other.exponent)

    def sum_products(self, other: ScaledIntegers) -> ScaledIntegers:
        """Return the sum of the products of the elements, exactly, as an array of one number."""
        product = self.multiply(other)
        return ScaledIntegers(np.array([product.values.sum()], object), product.exponent)

    def sum_squares(self) -> Fraction:
        """Return the sum of the squares of the numbers, exactly."""
        return self.sum_products(self).list_fractions()[0]

    def bound_length(self) -> Fraction:
        """Return an upper bound of the root of the sum of squares: at most 2^exponent above it, 0 for zeros."""
        square = sum(value * value for value in self.values.reshape(-1).tolist())
        return scale(make_fraction(math.isqrt(square) + 1 if square else 0), self.exponent)

    def list_fractions(self) -> list[Fraction]:
        """Return the numbers in C order as fractions."""
        return [scale(make_fraction(value), self.exponent) for value in self.values.reshape(-1).tolist()]

    def find_size(self) -> int:
        """Return the largest magnitude of the integers; 0 if there are none."""
        return int(np.abs(self.values).max(initial=0))

    def find_top(self) -> int:
        """Return the least e for which all magnitudes are below 2^e; of zeros, the exponent."""
        return self.exponent + self.find_size().bit_length()

    def scale(self, exponent: int) -> Floats:
        """Return the numbers times 2^−exponent as doubles, to 60 bits of the largest and then rounded."""
        short = self.move(max(self.exponent, self.find_top() - 60))
        return np.ldexp(short.values.astype(np.float64), short.exponent - exponent)

    def round(self) -> RoundedNumbers:
        """Return these numbers, along one axis, as pairs of doubles.

        A number above 2⁷⁰⁰ or below 2⁻⁷⁰⁰ becomes 0, and is marked in `lost`.
        """
        exponents = np.array([number.bit_length() for number in self.values.tolist()]) + self.exponent
        lost = (np.abs(exponents) > _FURTHEST) & self.values.astype(np.bool_)
        shift = np.maximum(exponents - self.exponent - _MOST_BITS, 0) * ~lost
        kept = np.where(lost, 0, self.values) >> shift.astype(object)
        hi = kept.astype(np.float64)
        rest = kept - np.array([int(value) for value in hi.tolist()], object)
        lo = rest.astype(np.float64)
        inexact = lost | (shift > 0) | (rest != lo.astype(object)).astype(np.bool_)
        return RoundedNumbers(
            Pair(*(np.ldexp(part, self.exponent + shift) for part in (hi, lo))), inexact, lost
        )

    def divide(self, counts: Integers) -> RoundedNumbers:
        """Return the quotients of these numbers, along one axis, and counts, as pairs; 0 where a count is 0.

        A quotient above 2⁷⁰⁰ or below 2⁻⁷⁰⁰ becomes 0, and is marked in `lost`. `inexact` is True where the
        pair is not exactly the quotient.
        """
        divisors = np.maximum(counts, 1).astype(object)
        scaled = self.values << _QUOTIENT_BITS
        found = ScaledIntegers(scaled // divisors, self.exponent - _QUOTIENT_BITS).round()
        return found._replace(inexact=found.inexact | (scaled % divisors).astype(np.bool_))


def take_exactly(values: NDArray[Any]) -> ScaledIntegers:
    """Return finite numbers of any real dtype as integers of a common exponent, in an array of their shape."""
    if is_long_integer(values.dtype):
        return ScaledIntegers(values.astype(object), 0)
    mantissas, exponents = np.frexp(values.astype(np.float64))
    whole = np.ldexp(mantissas, MANTISSA).astype(np.int64)
    lowest = int(np.min(exponents, where=whole != 0, initial=_MOST_EXPONENT))
    shifts = np.where(whole != 0, exponents - lowest, 0)
    return ScaledIntegers(whole.astype(object) << shifts.astype(object), lowest - MANTISSA)
