"""Exact products of matrices at the speed of BLAS: matrices are cut into planes of few bits.

Sums of products of planes are whole numbers below 2⁵³, which doubles hold, in whichever order they are added:
results do not depend on the library that multiplies (Ozaki, Ogita, Oishi & Rump 2012).
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from normcli.numerics.integers import widen_exactly
from normcli.tuples import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from normcli.dtypes import Floats


class ExactMatrix(NamedTuple):
    """A matrix of numbers in fixed point: Python's integers, times 2^exponent.

    Parameters
    ----------
    values : ndarray of object
    exponent : int
    """

    values: NDArray[Any]
    exponent: int

    @property
    def T(self) -> ExactMatrix:  # noqa: N802 - as NumPy calls it
        """The transpose."""
        return ExactMatrix(self.values.T, self.exponent)

    def move(self, exponent: int) -> ExactMatrix:
        """Return the numbers as multiples of 2^exponent, each rounded to within one of them."""
        shift = exponent - self.exponent
        if shift <= 0:
            return ExactMatrix(self.values << -shift, exponent)
        return ExactMatrix((self.values + (1 << shift - 1)) >> shift, exponent)

    def subtract(self, other: ExactMatrix) -> ExactMatrix:
        """Return the difference, exactly."""
        exponent = min(self.exponent, other.exponent)
        return ExactMatrix(self.move(exponent).values - other.move(exponent).values, exponent)

    def find_top(self) -> int:
        """Return the e of the least 2^e that no number reaches, whatever its sign."""
        return self.exponent + int(np.abs(self.values).max()).bit_length()

    def scale(self, exponent: int) -> Floats:
        """Return the numbers times 2^−exponent as doubles: to 2⁻⁶⁰ of the largest, and rounded."""
        short = self.move(max(self.exponent, self.find_top() - 60))
        return np.ldexp(short.values.astype(np.float64), short.exponent - exponent)

    def find_size(self) -> int:
        """Return the largest of the integers, without its sign."""
        return int(np.abs(self.values).max())

    def sum_squares(self) -> int:
        """Return the sum of the squares of the integers."""
        return sum(value * value for value in self.values.reshape(-1).tolist())


class Plane(NamedTuple):
    """Whole numbers in doubles, times 2^exponent."""

    digits: Floats
    exponent: int


def choose_width(terms: int) -> int:
    """Return how many bits a plane may have whose products are added up, so many at a time."""
    return (53 - max(1, terms).bit_length()) // 2 + 1


def cut_values(values: NDArray[Any], width: int) -> list[Plane]:
    """Return finite values of any real dtype as a sum of planes, exactly."""
    parts = (part for part in widen_exactly(values) if part is not None)
    return [plane for part in parts for plane in _cut_doubles(part, width)]


def _cut_doubles(values: Floats, width: int) -> Iterator[Plane]:
    rest = values.copy()
    while top := float(np.max(np.abs(rest), initial=0.0)):
        exponent = math.frexp(top)[1] - width + 1
        digits = np.rint(np.ldexp(rest, -exponent))
        rest -= np.ldexp(digits, exponent)
        yield Plane(digits, exponent)


def cut_whole(whole: ExactMatrix, width: int) -> list[Plane]:
    """Return numbers in fixed point as a sum of planes, exactly."""
    planes, rest = [], whole.values
    while top := int(np.abs(rest).max(initial=0)).bit_length():
        shift = max(0, top - width + 1)
        digits = (rest + (1 << shift >> 1)) >> shift
        rest = rest - (digits << shift)
        planes.append(Plane(digits.astype(np.float64), whole.exponent + shift))
    return planes


def transpose(planes: list[Plane]) -> list[Plane]:
    """Return the planes of the transpose."""
    return [plane._replace(digits=np.ascontiguousarray(plane.digits.T)) for plane in planes]


def multiply(left: list[Plane], right: list[Plane], shape: tuple[int, int]) -> ExactMatrix:
    """Return a product of matrices exactly, from their planes.

    Parameters
    ----------
    left, right : list of Plane
        Of the width that `choose_width` gives for the length that they have in common, or less.
    shape : tuple of int
        The product's.
    """
    sums: dict[int, NDArray[Any]] = {}
    for a in left:
        for b in right:
            product = (a.digits @ b.digits).astype(np.int64)
            exponent = a.exponent + b.exponent
            sums[exponent] = sums[exponent] + product if exponent in sums else product
    lowest = min(sums, default=0)
    total = np.zeros(shape, dtype=object)
    for exponent, part in sums.items():
        total += part.astype(object) << (exponent - lowest)
    return ExactMatrix(total, lowest)


def multiply_whole(left: ExactMatrix, right: ExactMatrix) -> ExactMatrix:
    """Return a product of matrices exactly."""
    width = choose_width(left.values.shape[1])
    shape = left.values.shape[0], right.values.shape[1]
    return multiply(cut_whole(left, width), cut_whole(right, width), shape)
