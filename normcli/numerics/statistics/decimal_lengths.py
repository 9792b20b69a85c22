"""ℓp lengths in decimals, to as many digits as are asked for."""

from __future__ import annotations

import math
from decimal import Decimal
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from normcli.numerics.integers import find_magnitudes
from normcli.numerics.powers import count_digits, raise_decimal, use_digits
from normcli.numerics.rational import NOTHING, sum_exactly

if TYPE_CHECKING:
    from collections.abc import Iterable

    from numpy.typing import NDArray


class DecimalLength:
    """The length of values that are added one by one, in decimals: to as many digits as the context has."""

    def __init__(self, p: float) -> None:
        self._p, self._unit, self._total = p, Fraction(0), Decimal(0)
        self._plain, self._count = NOTHING, 0

    @property
    def is_exact(self) -> bool:
        """Whether the length is rational: a plain sum, or the size of the only value that is not 0."""
        return self._p == 1.0 or self._count <= 1

    def add(self, values: NDArray[Any]) -> None:
        """Add finite values."""
        if self._p == 1.0:
            self._plain += sum_exactly(find_magnitudes(values))
            return
        sizes = [Fraction(size) for size in find_magnitudes(values).tolist() if 0.0 < size < math.inf]
        if not sizes:
            return
        self._count += len(sizes)
        unit = max(sizes) if self._p > 0.0 else min(sizes)
        if not self._unit:
            self._unit = unit
        elif (unit > self._unit) == (self._p > 0.0):
            self._total *= raise_decimal(self._unit / unit, self._p)
            self._unit = unit
        for size in sizes:
            self._total += raise_decimal(size / self._unit, self._p)

    def find(self) -> Fraction:
        """Return the length."""
        if self._p == 1.0:
            return self._plain.sum_values()
        if self.is_exact:
            return self._unit
        return self._unit * Fraction((self._total.ln() / Decimal(self._p)).exp())


def find_to_bits(pieces: Iterable[NDArray[Any]], p: float, bits: int) -> Fraction:
    """Return the length of a group, from its values piece by piece, to so many bits.

    Of more bits another number is returned, unless the length is exact: one value may be so much larger than
    the others that no few digits tell its size from the length.
    """
    with use_digits(count_digits(bits, p)):
        length = DecimalLength(p)
        for values in pieces:
            length.add(values)
        found = length.find()
    return found if length.is_exact else found * (1 + Fraction(1, 2 ** (bits + _MARK)))


_MARK = 8
"""Bits behind those that are asked for, where an inexact length is marked."""
