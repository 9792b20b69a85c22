"""Symmetric matrices as what they make of vectors, exactly, and as doubles: WᵀW, and others."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from normcli.engine.sn.exact_products import (
    ExactMatrix,
    choose_width,
    cut_values,
    cut_whole,
    multiply,
    transpose,
)
from normcli.tuples import NamedTuple

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from normcli.dtypes import Floats


UNIT = 2.0**-53
"""The largest error of one rounding of doubles, as a part of the result."""


class Approximation(NamedTuple):
    """A symmetric matrix in doubles, times 2^exponent, and how far off it is at most, without that power."""

    values: Floats
    exponent: int
    error: float


class SymmetricOperator(Protocol):
    """A symmetric matrix, exactly."""

    size: int

    def apply(self, vectors: ExactMatrix) -> ExactMatrix:
        """Return its product with some columns."""

    def approximate(self) -> Approximation:
        """Return it in doubles."""

    def write(self) -> ExactMatrix:
        """Return all of it."""


class GramOperator:
    """WᵀW, of a matrix W that has as many rows as columns, or more."""

    def __init__(self, matrix: NDArray[Any]) -> None:
        self.size = matrix.shape[1]
        self._matrix, self._width = matrix, choose_width(max(matrix.shape))
        self._planes = cut_values(matrix, self._width)
        self._transposed = transpose(self._planes)

    def apply(self, vectors: ExactMatrix) -> ExactMatrix:
        """Return its product with some columns, exactly."""
        columns = vectors.values.shape[1]
        images = multiply(self._planes, cut_whole(vectors, self._width), (len(self._matrix), columns))
        return multiply(self._transposed, cut_whole(images, self._width), (self.size, columns))

    def approximate(self) -> Approximation:
        """Return it in doubles."""
        values = self._matrix.astype(np.float64)
        exponent = math.frexp(float(np.max(np.abs(values))))[1]
        values = np.ldexp(values, -exponent)
        error = 2 * (len(values) + 4) * UNIT * float(np.sum(values * values)) + UNIT
        return Approximation(values.T @ values, 2 * exponent, error)

    def write(self) -> ExactMatrix:
        """Return all of its numbers."""
        return multiply(self._transposed, self._planes, (self.size, self.size))


class WrittenMatrix:
    """A symmetric matrix all of whose numbers are there."""

    def __init__(self, whole: ExactMatrix) -> None:
        self.size, self._whole = len(whole.values), whole
        self._width = choose_width(self.size)
        self._planes = cut_whole(whole, self._width)

    def apply(self, vectors: ExactMatrix) -> ExactMatrix:
        """Return its product with some columns, exactly."""
        shape = vectors.values.shape[0], vectors.values.shape[1]
        return multiply(self._planes, cut_whole(vectors, self._width), shape)

    def approximate(self) -> Approximation:
        """Return it in doubles."""
        exponent = self._whole.find_top()
        return Approximation(self._whole.scale(exponent), exponent, 2 * self.size * UNIT)

    def write(self) -> ExactMatrix:
        """Return all of its numbers."""
        return self._whole
