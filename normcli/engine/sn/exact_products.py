"""Exact products of matrices at the speed of BLAS, and WᵀW: matrices are cut into planes of few bits.

Sums of products of planes are whole numbers below 2⁵³, which doubles hold, in whichever order they are added:
results do not depend on the library that multiplies (Ozaki, Ogita, Oishi & Rump 2012).
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from normcli.numerics.rounding import widen_exactly
from normcli.numerics.sums.scaled_integers import ScaledIntegers
from normcli.tuples import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from normcli.dtypes import Floats


class Plane(NamedTuple):
    """A matrix of whole numbers in doubles, times 2^exponent."""

    digits: Floats
    exponent: int


def choose_width(terms: int) -> int:
    """Return the most bits of a plane for which doubles hold any sum of `terms` products of two digits."""
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


def cut_whole(whole: ScaledIntegers, width: int) -> list[Plane]:
    """Return a matrix of exact numbers as a sum of planes: matrices of whole numbers of at most `width` bits.

    Each plane is multiplied by a power of two of its own; the sum is exact.
    """
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


def multiply(left: list[Plane], right: list[Plane], shape: tuple[int, int]) -> ScaledIntegers:
    """Return a product of matrices exactly, from their planes (matrices of few bits that add up to each).

    Parameters
    ----------
    left, right : list of Plane
        Planes of no more bits than `choose_width` returns for the columns of `left`, which are the rows of
        `right`.
    shape : tuple of int
        The shape of the product.
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
    return ScaledIntegers(total, lowest)


def multiply_whole(left: ScaledIntegers, right: ScaledIntegers) -> ScaledIntegers:
    """Return a product of matrices exactly.

    Matrices are cut into planes of few bits, whose products BLAS calculates; few and long numbers are
    multiplied as Python's integers.
    """
    width = choose_width(left.values.shape[1])
    shape = left.values.shape[0], right.values.shape[1]
    planes = [each.find_size().bit_length() // width + 1 for each in (left, right)]
    if left.values.size * shape[1] <= _MOST_PRODUCTS * math.prod(planes):
        return ScaledIntegers(left.values @ right.values, left.exponent + right.exponent)
    return multiply(cut_whole(left, width), cut_whole(right, width), shape)


_MOST_PRODUCTS = 32
"""Products of Python's integers that take the time of one product of planes, at least."""

UNIT = 2.0**-53
"""The largest error of one rounding of doubles, as a part of the result."""


class Approximation(NamedTuple):
    """A symmetric matrix in doubles, values · 2^exponent; `error` bounds the norm of the error of `values`."""

    values: Floats
    exponent: int
    error: float


class SymmetricOperator(Protocol):
    """The protocol of exact symmetric matrices: products with columns, an approximation, and the numbers."""

    size: int

    def apply(self, vectors: ScaledIntegers) -> ScaledIntegers:
        """Return the product of the matrix and some columns."""

    def approximate(self) -> Approximation:
        """Return the matrix in doubles."""

    def write(self) -> ScaledIntegers:
        """Return the matrix, written out."""


class GramOperator:
    """WᵀW of a matrix W with at least as many rows as columns."""

    def __init__(self, matrix: NDArray[Any]) -> None:
        self.size = matrix.shape[1]
        self._matrix, self._width = matrix, choose_width(max(matrix.shape))
        self._planes = cut_values(matrix, self._width)
        self._transposed = transpose(self._planes)

    def map(self, vectors: ScaledIntegers) -> ScaledIntegers:
        """Return the product of W and some columns, exactly."""
        shape = len(self._matrix), vectors.values.shape[1]
        return multiply(self._planes, cut_whole(vectors, self._width), shape)

    def apply(self, vectors: ScaledIntegers) -> ScaledIntegers:
        """Return the product of WᵀW and some columns, exactly."""
        images = cut_whole(self.map(vectors), self._width)
        return multiply(self._transposed, images, (self.size, vectors.values.shape[1]))

    def approximate(self) -> Approximation:
        """Return the matrix in doubles, with a bound of its error."""
        values = self._matrix.astype(np.float64)
        exponent = math.frexp(float(np.max(np.abs(values))))[1]
        values = np.ldexp(values, -exponent)
        error = 2 * (len(values) + 4) * UNIT * float(np.sum(values * values)) + UNIT
        return Approximation(values.T @ values, 2 * exponent, error)

    def write(self) -> ScaledIntegers:
        """Return the matrix, written out."""
        return multiply(self._transposed, self._planes, (self.size, self.size))


class WrittenMatrix:
    """A symmetric matrix that is given by its numbers."""

    def __init__(self, whole: ScaledIntegers) -> None:
        self.size, self._whole = len(whole.values), whole
        self._width = choose_width(self.size)
        self._planes = cut_whole(whole, self._width)

    def apply(self, vectors: ScaledIntegers) -> ScaledIntegers:
        """Return the product of the matrix and some columns, exactly."""
        shape = vectors.values.shape[0], vectors.values.shape[1]
        return multiply(self._planes, cut_whole(vectors, self._width), shape)

    def approximate(self) -> Approximation:
        """Return the matrix in doubles."""
        exponent = self._whole.find_top()
        return Approximation(self._whole.scale(exponent), exponent, 2 * self.size * UNIT)

    def write(self) -> ScaledIntegers:
        """Return the matrix, written out."""
        return self._whole
