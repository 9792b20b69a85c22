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
from normcli.engine.sn.largest_eigenvalue import Enclosure
from normcli.errors import DataError
from normcli.numerics.rational import scale
from normcli.numerics.sums.scaled_integers import ScaledIntegers, take_exactly
from normcli.tuples import NamedTuple

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from normcli.engine.sn.exact_products import Plane
    from normcli.norms.spec import Iteration


_FEW = 16
"""The most iterations for which a rough bound of errors costs less than a close one."""

_LOST_BITS = 4
"""Bits that the relative errors of two vectors grow by in the quotient of the squares of their lengths."""

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


class Vectors(NamedTuple):
    """The v and the u that iterations end with, as columns that are not divided by their lengths."""

    v: FixedColumn
    u: FixedColumn

    def order(self, iteration: Iteration) -> tuple[FixedColumn, FixedColumn]:
        """Return v and u in the order in which the iterations make them: u last if they start with u."""
        return (self.v, self.u) if iteration.u is not None else (self.u, self.v)


def enclose_estimate(iteration: Iteration, matrix: NDArray[Any], bits: int) -> Enclosure | None:
    """Return two numbers between which the square of the estimate σ = uᵀWv lies; None if it is 0.

    They differ by at most 2^−bits of the square.

    Parameters
    ----------
    iteration : Iteration
    matrix : ndarray, shape (rows, columns)
        Finite values of any real dtype, of which one at least is not 0.
    bits : int

    Raises
    ------
    DataError
        If uᵀWv of a given u and v is negative.
    """
    if not iteration.steps:
        (sigma,) = multiply_given(matrix, iteration).list_fractions()
        return Enclosure(sigma * sigma, sigma * sigma) if sigma else None
    found = iterate(iteration, matrix, bits + _LOST_BITS)
    if found is None:
        return None
    first, last = (column.enclose_square() for column in found.order(iteration))
    return Enclosure(last.low / first.high, last.high / first.low)


def iterate(iteration: Iteration, matrix: NDArray[Any], bits: int) -> Vectors | None:
    """Return the v and the u that the iterations end with, not divided by their lengths.

    Each is off by at most 2^−bits of its largest number. None if the first product (Wᵀu or Wv) is 0. No later
    product can be 0 then: WWᵀu is 0 only where Wᵀu is.
    """
    start = iteration.u or iteration.v
    assert start is not None  # as there are iterations
    count, width = iteration.steps, choose_width(max(matrix.shape))
    planes = cut_values(matrix, width)
    turns = (transpose(planes), planes) if iteration.u is not None else (planes, transpose(planes))
    precision = bits + 32 + count * (1 if count > _FEW else max(matrix.shape).bit_length())
    stretch = _bound_stretch(matrix, closely=count > _FEW)
    while True:
        before = column = FixedColumn(make_column(start), 0)
        for step in range(2 * count):
            before, column = column, _multiply(turns[step % 2], column, stretch, width).cut(precision)
            if not step and not column.whole.values.any():
                return None
        if all(each.error << bits <= each.whole.find_size() for each in (before, column)):
            return Vectors(*((before, column) if iteration.u is not None else (column, before)))
        precision *= 2


def make_column(numbers: tuple[float, ...]) -> ScaledIntegers:
    """Return numbers as a matrix of one column."""
    return take_exactly(np.array(numbers)[:, np.newaxis])


def _bound_stretch(matrix: NDArray[Any], *, closely: bool) -> Fraction:
    """Return an upper bound of the largest singular value of a matrix W.

    It is √Σw², or if `closely`, the smaller bound ‖(WᵀW)⁴‖^⅛, which takes longer.
    """
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
