"""Real numbers of which integer arithmetic gives as many bits as are asked for."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

MOST_BITS = 1 << 14
"""Two numbers that agree in so many bits are taken as equal: roots of rationals may be rational, unnoticed."""

_FEWEST_BITS = 192
"""Fewer take as long, and would have to be found again when more are asked for."""


class Bounds(NamedTuple):
    """Two integers between which a number lies: low · 2^exponent ≤ number ≤ high · 2^exponent."""

    low: int
    high: int
    exponent: int

    def trim(self, bits: int) -> Bounds:
        """Return bounds of no more than so many bits, rounded outwards."""
        drop = max(self.low.bit_length(), self.high.bit_length()) - bits
        if drop <= 0:
            return self
        return Bounds(self.low >> drop, -(-self.high >> drop), self.exponent + drop)

    def multiply(self, other: Bounds) -> Bounds:
        """Return bounds of the product."""
        products = [a * b for a in self[:2] for b in other[:2]]
        return Bounds(min(products), max(products), self.exponent + other.exponent)

    def add(self, other: Bounds, bits: int) -> Bounds:
        """Return bounds of the sum; what lies far below the larger term only widens them."""
        upper, lower = (self, other) if self.exponent >= other.exponent else (other, self)
        gap = upper.exponent - lower.exponent
        size = max(abs(lower.low), abs(lower.high)).bit_length()
        if gap > size + bits and (upper.low or upper.high):
            fine = Bounds(upper.low << bits, upper.high << bits, upper.exponent - bits)
            return Bounds(fine.low - 1, fine.high + 1, fine.exponent)
        return Bounds((upper.low << gap) + lower.low, (upper.high << gap) + lower.high, lower.exponent)

    def invert(self, bits: int) -> Bounds:
        """Return bounds of the reciprocal of a number whose sign is known."""
        shift = bits + max(abs(self.low), abs(self.high)).bit_length()
        return Bounds((1 << shift) // self.high, -((-1 << shift) // self.low), -shift - self.exponent)

    def root(self, bits: int) -> Bounds:
        """Return bounds of the square root."""
        shift = max(0, 2 * bits - self.high.bit_length())
        shift += (shift + self.exponent) % 2
        low, high = max(0, self.low) << shift, self.high << shift
        top = math.isqrt(high)
        return Bounds(math.isqrt(low), top + (top * top != high), (self.exponent - shift) // 2)


class Real:
    """A number: a rational, or what a function encloses the more closely the more bits it is told.

    Parameters
    ----------
    make : callable
        Takes a number of bits and returns `Bounds`.
    rational : Fraction or None
        The number itself, where it is known to be rational.
    """

    __slots__ = ("_bits", "_bounds", "_make", "rational")

    def __init__(self, make: Callable[[int], Bounds], rational: Fraction | None = None) -> None:
        self._make, self.rational = make, rational
        self._bits, self._bounds = 0, Bounds(0, 0, 0)

    @classmethod
    def of(cls, value: Real | Fraction | float) -> Real:
        """Return a rational (a float is one) as a real number."""
        if isinstance(value, Real):
            return value
        exact = Fraction(value)
        return cls(lambda bits: _enclose_rational(exact, bits), exact)

    def enclose(self, bits: int) -> Bounds:
        """Return bounds that about so many bits of the number are between."""
        if self._bits < bits:
            self._bits = max(_FEWEST_BITS, bits)
            self._bounds = self._make(self._bits)
        return self._bounds

    def __add__(self, other: Real | Fraction | float) -> Real:
        left, right = self, Real.of(other)
        if left.rational is not None and right.rational is not None:
            return Real.of(left.rational + right.rational)
        return Real(lambda bits: left.enclose(bits).add(right.enclose(bits), bits).trim(bits))

    def __mul__(self, other: Real | Fraction | float) -> Real:
        left, right = self, Real.of(other)
        if left.rational is not None and right.rational is not None:
            return Real.of(left.rational * right.rational)
        if 0 in (left.rational, right.rational):
            return Real.of(0)
        return Real(lambda bits: left.enclose(bits).multiply(right.enclose(bits)).trim(bits))

    __radd__, __rmul__ = __add__, __mul__

    def __neg__(self) -> Real:
        return self * -1

    def __sub__(self, other: Real | Fraction | float) -> Real:
        return self + Real.of(other) * -1

    def __truediv__(self, other: Real | Fraction | float) -> Real:
        return self * Real.of(other).invert()

    def __rtruediv__(self, other: Fraction | float) -> Real:
        return Real.of(other) * self.invert()

    def invert(self) -> Real:
        """Return the reciprocal."""
        if self.rational is not None:
            return Real.of(1 / self.rational)

        def make(bits: int) -> Bounds:
            return tighten(self, bits, lambda b: b.low > 0 or b.high < 0).invert(bits)

        return Real(make)

    def root(self) -> Real:
        """Return the square root."""
        if self.rational is not None:
            up, down = (math.isqrt(part) for part in self.rational.as_integer_ratio())
            if Fraction(up * up, down * down) == self.rational:
                return Real.of(Fraction(up, down))
        return Real(lambda bits: self.enclose(2 * bits).root(bits).trim(bits))

    def power(self, exponent: Fraction | float) -> Real:
        """Return a power of a positive number."""
        p = Fraction(exponent)
        if p < 0:
            return self.power(-p).invert()
        if self.rational is not None and p.denominator == 1 and p <= 64:
            return Real.of(self.rational**p.numerator)
        if p == Fraction(1, 2):
            return self.root()
        return Real(lambda bits: _raise_to_power(self, p, bits))

    @classmethod
    def sum(cls, terms: Sequence[Real]) -> Real:
        """Return the sum of numbers."""

        def make(bits: int) -> Bounds:
            total = Bounds(0, 0, 0)
            for term in terms:
                total = total.add(term.enclose(bits), bits).trim(bits + _FEWEST_BITS)
            return total

        if all(term.rational is not None for term in terms):
            return cls.of(sum(term.rational for term in terms))
        return cls(make)

    def compare(self, other: Fraction | float) -> int:
        """Return −1, 0 or 1: whether the number is less than, equal to or greater than a rational."""
        if self.rational is not None:
            return (self.rational > other) - (self.rational < other)
        bits = 64
        while bits <= MOST_BITS:
            low, high, _ = (self - other).enclose(bits)
            if low > 0 or high < 0:
                return 1 if low > 0 else -1
            bits *= 4
        return 0

    def __float__(self) -> float:
        """Return the nearest double."""
        from tests.reference.rounding import round_once

        return round_once(self, "float64")


def tighten(number: Real, bits: int, suffices: Callable[[Bounds], bool]) -> Bounds:
    """Return bounds of a number that suffice for something, of so many bits at least.

    Raises
    ------
    ArithmeticError
        If there are none.
    """
    while bits <= MOST_BITS:
        bounds = number.enclose(bits)
        if suffices(bounds):
            return bounds
        bits *= 2
    raise ArithmeticError("a number cannot be told from 0, or from the edge of what is asked about it")


def _enclose_rational(value: Fraction, bits: int) -> Bounds:
    up, down = value.as_integer_ratio()
    if down & (down - 1) == 0:
        return Bounds(up, up, 1 - down.bit_length())
    shift = bits + down.bit_length() - up.bit_length()
    low, rest = divmod(up << shift, down) if shift >= 0 else divmod(up, down << -shift)
    return Bounds(low, low + (rest != 0), -shift)


def _raise_to_power(base: Real, p: Fraction, bits: int) -> Bounds:
    """Return bounds of base^p: the product of base^(2^j) for each bit of p, by squaring and square roots.

    Where the bits of p go on for ever, base^p lies between the powers of p cut off and of p with one more.
    """
    start = tighten(base, bits + 2 * _FEWEST_BITS, lambda b: b.low > 0)  # enough as a rule, and found once
    size = abs(start.high.bit_length() + start.exponent) + 1  # |log2(base)| at most
    work = bits + 2 * max(size, p.numerator // p.denominator + 1).bit_length() + 32
    last = max(0, p.denominator.bit_length() - 1)
    exact = p.denominator == 1 << last
    if not exact:
        last = work + size.bit_length()
    whole = (p.numerator << last) // p.denominator
    square = base.enclose(work).trim(work)
    result = Bounds(1, 1, 0)
    for bit in range(max(0, whole.bit_length() - last)):  # base, base², base⁴ and so on
        if whole >> (last + bit) & 1:
            result = result.multiply(square).trim(work)
        square = square.multiply(square).trim(work)
    root = base.enclose(work).trim(work)
    for bit in range(last - 1, -1, -1):  # √base, its root and so on
        root = root.root(work).trim(work)
        if whole >> bit & 1:
            result = result.multiply(root).trim(work)
    if exact:
        return result
    ends = [result, result.multiply(root).trim(work)]
    exponent = min(end.exponent for end in ends)
    return Bounds(
        min(end.low << (end.exponent - exponent) for end in ends),
        max(end.high << (end.exponent - exponent) for end in ends),
        exponent,
    )
