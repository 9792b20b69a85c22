"""Power iterations: the estimate of a largest singular value that frameworks divide by, exactly.

From u, an iteration is v = Wᵀu / ‖Wᵀu‖, then u = Wv / ‖Wv‖ (Miyato et al. 2018, algorithm 1). What is divided
by a length keeps its direction: of z₀ = u, z₁ = Wᵀz₀, z₂ = Wz₁ and so on, N of them leave v along z₂ₙ₋₁ and u
along z₂ₙ, and σ = uᵀWv = ‖z₂ₙ‖ / ‖z₂ₙ₋₁‖, whose square is rational.

Each z is calculated in fixed point, and what is cut off its end is kept account of: an error is at most ‖W‖
times as large after a step. Where what comes of it is not as close as is asked for, numbers are twice as long.
They are exact at last, as a product has no more bits than its factors together.

The frameworks divide by max(‖z‖, eps), or √(‖z‖² + eps), with an eps of 1e-12 or 1e-7. That is left out here:
it shows where ‖Wᵀu‖, or its square, is not far above that.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np

from normcli.engine.sn.exact_products import (
    choose_width,
    cut_values,
    cut_whole,
    multiply,
    transpose,
)
from normcli.engine.sn.spectrum import Enclosure
from normcli.errors import DataError
from normcli.numerics.rational import scale
from normcli.numerics.sums.scaled_integers import ScaledIntegers, take_exactly
from normcli.tuples import NamedTuple

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from normcli.dtypes import Floats
    from normcli.engine.sn.exact_products import Plane
    from normcli.norms.spec import Iteration


_FEW = 16
"""The most iterations for which a rough bound of errors costs less than a close one."""

_UNIT_BITS = 80
"""Bits to which vectors are known that are shown in doubles."""

_MARGIN = 2.0**-12
"""The part by which bounds in doubles are enlarged: ample for matrices of 2¹⁶ rows and columns."""


class FixedColumn(NamedTuple):
    """A vector in fixed point, and how far off it is at most.

    Parameters
    ----------
    whole : ScaledIntegers
        The vector, as a matrix of one column.
    error : int
        An upper bound of the length of the vector's error, in units of 2^exponent; 0 where it is exact.
    """

    whole: ScaledIntegers
    error: int

    def cut(self, bits: int) -> FixedColumn:
        """Return the vector, rounded to `bits` bits of its largest number; unchanged if it has no more bits."""
        exponent = self.whole.find_top() - bits
        shift = exponent - self.whole.exponent
        if shift <= 0:
            return self
        cut = math.isqrt(len(self.whole.values)) // 2 + 1  # half a unit each
        return FixedColumn(self.whole.move(exponent), (self.error >> shift) + 1 + cut)

    def enclose_square(self) -> Enclosure:
        """Return a lower and an upper bound of the square of the vector's length."""
        square, error = self.whole.sum_squares(), scale(Fraction(self.error), self.whole.exponent)
        off = 2 * error * self.whole.bound_length()
        return Enclosure(max(Fraction(0), square - off), square + off + error * error)

    def make_unit(self) -> Floats:
        """Return the vector divided by its length, in doubles, of one axis."""
        values = self.whole.scale(self.whole.find_top())[:, 0]
        unit: Floats = values / np.linalg.norm(values)
        return unit


class Vectors(NamedTuple):
    """The v and the u that iterations end with, as columns that are not divided by their lengths."""

    v: FixedColumn
    u: FixedColumn


class PowerIterations:
    """Some power iterations, for any matrix whose shape fits the vector they start with.

    Parameters
    ----------
    iteration : Iteration
    """

    def __init__(self, iteration: Iteration) -> None:
        self._iteration = iteration

    def enclose_square(self, matrix: NDArray[Any], bits: int) -> Enclosure | None:
        """Enclose the square of uᵀWv, to a relative width of 2^−bits; return None where it is 0.

        Parameters
        ----------
        matrix : ndarray, shape (rows, columns)
            Finite values of any real dtype, of which one at least is not 0.
        bits : int

        Raises
        ------
        DataError
            If uᵀWv of a given u and v is negative.
        """
        if not self._iteration.steps:
            (sigma,) = multiply_given(matrix, self._iteration).list_fractions()
            return Enclosure(sigma * sigma, sigma * sigma) if sigma else None
        count = self._iteration.steps
        precision = bits + 32 + count * (1 if count > _FEW else max(matrix.shape).bit_length())
        stretch = _bound_stretch(matrix, closely=count > _FEW)
        while True:
            found = self.find_vectors(matrix, precision, stretch)
            if found is None:
                return None
            first, last = (column.enclose_square() for column in self.order(found))
            if first.low:
                enclosure = Enclosure(last.low / first.high, last.high / first.low)
                if enclosure.high - enclosure.low <= scale(enclosure.low, -bits):
                    return enclosure
            precision *= 2

    def find_vectors(self, matrix: NDArray[Any], precision: int, stretch: Fraction) -> Vectors | None:
        """Return the v and the u that the iterations end with, not divided by their lengths.

        None if the first product is 0, as the start is at a right angle to all of W. No later product is: WWᵀu
        is 0 only where Wᵀu is.

        Parameters
        ----------
        matrix : ndarray, shape (rows, columns)
        precision : int
            The bits that the largest number of each product is cut to.
        stretch : Fraction
            An upper bound of the largest singular value.
        """
        start = self._iteration.u or self._iteration.v
        assert start is not None  # as there are iterations
        width = choose_width(max(matrix.shape))
        planes = cut_values(matrix, width)
        turns = (transpose(planes), planes) if self._iteration.u is not None else (planes, transpose(planes))
        column = FixedColumn(make_column(start), 0)
        before = column
        for step in range(2 * self._iteration.steps):
            before, column = column, _multiply(turns[step % 2], column, stretch, width).cut(precision)
            if not step and not column.whole.values.any():
                return None
        return Vectors(*((before, column) if self._iteration.u is not None else (column, before)))

    def find_units(self, matrix: NDArray[Any]) -> tuple[Floats, Floats] | None:
        """Return v and u, divided by their lengths, as doubles; None if the matrix or first product is 0."""
        if not matrix.astype(np.bool_).any():
            return None
        found = self.find_directions(matrix, _UNIT_BITS)
        return None if found is None else (found.v.make_unit(), found.u.make_unit())

    def find_directions(self, matrix: NDArray[Any], bits: int) -> Vectors | None:
        """Return the v and the u that the iterations end with, not divided by their lengths.

        Each is off by at most 2^−bits of its largest number. None if the first product (Wᵀu or Wv) is 0.
        """
        precision = bits + 32 + self._iteration.steps * max(matrix.shape).bit_length()
        stretch = _bound_stretch(matrix, closely=False)
        while (found := self.find_vectors(matrix, precision, stretch)) is not None:
            if all(column.error << bits <= column.whole.find_size() for column in found):
                break
            precision *= 2
        return found

    def order(self, found: Vectors) -> tuple[FixedColumn, FixedColumn]:
        """Return v and u in the order in which the iterations make them: u last if they start with u."""
        return (found.v, found.u) if self._iteration.u is not None else (found.u, found.v)


def make_column(numbers: tuple[float, ...]) -> ScaledIntegers:
    """Return numbers as a matrix of one column."""
    return take_exactly(np.array(numbers)[:, np.newaxis])


def _bound_stretch(matrix: NDArray[Any], *, closely: bool) -> Fraction:
    """Return an upper bound of the largest singular value: √Σw², or if `closely`, ‖(WᵀW)⁴‖^⅛, which is less."""
    values = matrix.astype(np.float64)
    exponent = math.frexp(float(np.max(np.abs(values))))[1]
    values = np.ldexp(values, -exponent)
    length = float(np.linalg.norm(values))
    if closely:
        values /= length
        square = values.T @ values if values.shape[0] >= values.shape[1] else values @ values.T
        fourth = square @ square
        length *= min(1.0, float(np.linalg.norm(fourth @ fourth)) ** 0.125)
    return scale(Fraction(math.ceil(length * (1.0 + _MARGIN) * 2**30)), exponent - 30)


def _multiply(planes: list[Plane], column: FixedColumn, stretch: Fraction, width: int) -> FixedColumn:
    """Return the product of a matrix and a column, with a bound of its error.

    Parameters
    ----------
    planes : list of Plane
        The planes of the matrix, at least one.
    column : FixedColumn
    stretch : Fraction
        An upper bound of the matrix's largest singular value, by which an error may grow.
    width : int
        The most bits of a plane of the column.
    """
    shape = len(planes[0].digits), 1
    product = multiply(planes, cut_whole(column.whole, width), shape)
    error = math.ceil(scale(stretch * column.error, column.whole.exponent - product.exponent))
    return FixedColumn(product, error)


def multiply_given(matrix: NDArray[Any], iteration: Iteration) -> ScaledIntegers:
    """Return uᵀWv of the given u and v, exactly, as an array of one number.

    Raises
    ------
    DataError
        If it is negative.
    """
    assert iteration.u is not None  # as there are no iterations
    assert iteration.v is not None
    outer = make_column(iteration.u).multiply(make_column(iteration.v).T)
    product = outer.sum_products(take_exactly(matrix))
    (sigma,) = product.list_fractions()
    if sigma < 0:
        raise DataError(
            f"uᵀXv is {float(sigma):.6g}, and estimates no singular value, which is not negative: u and v "
            "are of another matrix"
        )
    return product
