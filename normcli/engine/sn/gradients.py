"""The gradient of a loss with respect to a matrix W that is divided by its largest singular value σ.

For a loss whose derivative with respect to y = W/σ is g, and with the singular vectors u and v of length 1,

    dx = (g − ⟨g, y⟩ · u vᵀ) / σ,

as ∂σ/∂W = u vᵀ. Power iterations estimate σ by their own u and v, which frameworks take for constants: the
formula is the same. For a matrix of rank 1, u vᵀ = W/σ, and every result is the exact one, rounded once. For
others, vectors are taken to 160 bits of their lengths: results are right to some 2⁻¹⁵⁰ of the largest of σ · dx
and dy, and are the exact ones, rounded once, if they are no smaller than 2⁻⁸⁰ of it. A sum that is smaller than
2⁻¹⁴⁰ of its terms is taken as 0.
"""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np

from normcli.dtypes import is_short_float
from normcli.engine.sn.exact_products import ExactMatrix, fix
from normcli.engine.sn.power_iterations import PowerIterations
from normcli.engine.sn.singular_values import SingularValue, choose_enclosure
from normcli.engine.sn.spectrum import find_leading
from normcli.numerics.gradients.in_fractions import round_fractions, round_values
from normcli.numerics.rational import find_exponent, find_root, scale
from normcli.numerics.rounding import widen_exactly
from normcli.tuples import NamedTuple

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from normcli.dtypes import Floats
    from normcli.norms.spec import Iteration


_BITS = 160
"""Bits to which vectors and σ are calculated."""


CANCELLED = 140
"""A sum counts as 0 if it is smaller than its terms by this number of bits."""


_MANTISSA = 53
"""Bits of a double."""

_MOST_KEPT = 62
"""Bits that an int64 holds of any integer."""

_LEAST_NORMAL = 2.0**-1022


class SigmaGradient(NamedTuple):
    """σ, and ∂σ/∂W = u vᵀ.

    Parameters
    ----------
    sigma : Fraction
    column, row : ExactMatrix
        Multiples of u, shape (rows, 1), and of vᵀ, shape (1, columns).
    lengths : tuple of Fraction
        The two numbers that column and row are divided by to be u and vᵀ.
    """

    sigma: Fraction
    column: ExactMatrix
    row: ExactMatrix
    lengths: tuple[Fraction, Fraction]

    def list_vectors(self) -> tuple[list[Fraction], list[Fraction]]:
        """Return u and v, of length 1, as lists of their numbers."""
        vectors = zip((self.column, self.row), self.lengths, strict=True)
        u, v = (
            [scale(value / length, each.exponent) for value in each.values.reshape(-1).tolist()]
            for each, length in vectors
        )
        return u, v


def differentiate_matrix(
    matrix: NDArray[Any], dy: Floats, dtype: np.dtype[Any], iteration: Iteration | None
) -> NDArray[Any] | None:
    """Return dx of a matrix; None where it has no derivative.

    It has none if its two largest singular values are equal, or nearer than doubles tell, or if an estimate of
    σ is 0.

    Parameters
    ----------
    matrix : ndarray, shape (rows, columns)
        Finite values that are not all 0.
    dy : ndarray, shape (rows, columns)
        Finite values.
    dtype : dtype
        The dtype of dx.
    iteration : Iteration or None
        Power iterations that estimate σ; None for the largest singular value.

    Raises
    ------
    DataError
        If the iteration has no steps, and σ = uᵀWv of its u and v is negative.
    """
    gradient, values = _lay_exactly(dy), _lay_exactly(matrix)
    is_simple = (iteration is None or iteration.steps > 0) and _is_of_rank_1(values)
    if is_simple and iteration is None:
        return _differentiate_simple(values, gradient, dtype)
    by_sigma = find_sigma_gradient(matrix, iteration)
    if by_sigma is None:
        return None
    if is_simple:
        return _differentiate_simple(values, gradient, dtype)
    product = int((gradient.values * values.values).sum())
    total = scale(Fraction(product), gradient.exponent + values.exponent)
    factor = -total / (
        by_sigma.sigma * by_sigma.sigma * by_sigma.lengths[0] * by_sigma.lengths[1]
    )  # of column · row
    exponent = by_sigma.column.exponent + by_sigma.row.exponent
    terms = by_sigma.column.values * by_sigma.row.values
    if factor and terms.any():  # both as integers times one power of two
        top = find_exponent(factor) - _BITS
        own = ExactMatrix(terms * round(scale(factor, -top)), exponent + top)
    else:
        own = ExactMatrix(terms * 0, 0)
    inverse = 1 / by_sigma.sigma
    unit = find_exponent(inverse) - _BITS
    plain = ExactMatrix(gradient.values * round(scale(inverse, -unit)), gradient.exponent + unit)
    lowest = min(own.exponent, plain.exponent)
    sides = (each.move(lowest).values.reshape(-1).tolist() for each in (own, plain))
    exact = [_add(a, b) for a, b in zip(*sides, strict=True)]
    return _round_integers(exact, lowest, dtype).reshape(matrix.shape)


def _is_of_rank_1(matrix: ExactMatrix) -> bool:
    """Whether a matrix that is not all 0 is a column times a row."""
    values = matrix.values
    if min(values.shape) == 1:
        return True
    row, column = np.unravel_index(int(np.argmax(np.abs(values))), values.shape)
    return bool(np.all(values * values[row, column] == values[:, [column]] * values[[row], :]))


def _differentiate_simple(matrix: ExactMatrix, gradient: ExactMatrix, dtype: np.dtype[Any]) -> NDArray[Any]:
    """Return (dy − ⟨dy, W⟩ W / ‖W‖²) / ‖W‖, dx of a matrix of rank 1: the numerator times ‖W‖² is exact."""
    square, product = matrix.sum_squares(), int((gradient.values * matrix.values).sum())
    top = gradient.values * square - matrix.values * product
    root = find_root(Fraction(square))  # of the integers: their power of two is taken last
    inverse = 1 / (square * root)
    unit = find_exponent(inverse) - _BITS
    exact = (top * round(scale(inverse, -unit))).reshape(-1).tolist()
    exponent = gradient.exponent - matrix.exponent + unit
    return _round_integers(exact, exponent, dtype).reshape(matrix.values.shape)


def _add(a: int, b: int) -> int:
    """Return a + b; 0 if that is no larger than 2^−`CANCELLED` of b, where nothing but rounding is left."""
    total = a + b
    return total if abs(total) << CANCELLED > abs(b) else 0


def _round_integers(values: list[int], exponent: int, dtype: np.dtype[Any]) -> NDArray[Any]:
    """Return integers times 2^exponent in a dtype, rounded once.

    Each is cut to bits that an int64 or a double holds, the last of which is 1 if anything was cut off: that
    leaves every later rounding what it was (Boldo & Melquiond 2008). Results that are subnormal or infinite as
    doubles are rounded from fractions.
    """
    kept = _MANTISSA if is_short_float(dtype) else _MOST_KEPT
    cuts = [max(0, value.bit_length() - kept) for value in values]
    short = [
        value if not cut else value >> cut | (value & (1 << cut) - 1 != 0)
        for value, cut in zip(values, cuts, strict=True)
    ]
    with np.errstate(over="ignore", under="ignore"):
        rounded = np.ldexp(np.array(short, np.int64).astype(np.float64), np.array(cuts) + exponent)
    result = round_values(rounded, dtype)
    sizes = np.abs(rounded)
    beyond = np.flatnonzero((np.array(short) != 0) & ~((sizes >= _LEAST_NORMAL) & (sizes < np.inf)))
    result[beyond] = round_fractions([scale(Fraction(values[place]), exponent) for place in beyond], dtype)
    return result


def find_sigma_gradient(matrix: NDArray[Any], iteration: Iteration | None) -> SigmaGradient | None:
    """Return σ and ∂σ/∂W of a matrix that is finite and not all 0; None where σ has no derivative.

    It has none if the two largest singular values are equal, or nearer than doubles tell, or if an estimate of
    σ is 0.

    Parameters
    ----------
    matrix : ndarray, shape (rows, columns)
    iteration : Iteration or None
        Power iterations that estimate σ; None for the largest singular value.

    Raises
    ------
    DataError
        If the iteration has no steps, and σ = uᵀWv of its u and v is negative.
    """
    if iteration is None:
        return _find_largest(matrix)
    sigma = SingularValue(matrix, choose_enclosure(iteration)).find(_BITS)
    if not sigma:
        return None
    if not iteration.steps:
        assert iteration.u is not None  # of none
        assert iteration.v is not None
        return SigmaGradient(sigma, fix(iteration.u), fix(iteration.v).T, (Fraction(1), Fraction(1)))
    found = PowerIterations(iteration).find_directions(matrix, _BITS)
    assert found is not None  # as σ is not 0
    column, row = found.u.whole, found.v.whole
    return SigmaGradient(sigma, column, row.T, (_find_length(column), _find_length(row)))


def _find_largest(matrix: NDArray[Any]) -> SigmaGradient | None:
    leading = find_leading(matrix, _BITS)
    if leading is None:
        return None
    square, column, row = leading
    sigma = SingularValue(matrix, lambda _matrix, _bits: square).find(_BITS)
    if matrix.shape[0] >= matrix.shape[1]:  # the row's length is nearly 1, and the column's σ times that
        length = _find_length(row)
        return SigmaGradient(sigma, column, row.T, (sigma * length, length))
    length = _find_length(column)
    return SigmaGradient(sigma, column, row.T, (length, sigma * length))


def _find_length(vector: ExactMatrix) -> Fraction:
    return find_root(scale(Fraction(vector.sum_squares()), 2 * vector.exponent))


def _lay_exactly(values: NDArray[Any]) -> ExactMatrix:
    """Return a matrix in fixed point, exactly."""
    first, *others = (fix(part) for part in widen_exactly(values) if part is not None)
    for other in others:
        first = first.subtract(ExactMatrix(-other.values, other.exponent))
    return first
