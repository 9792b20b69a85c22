"""The gradient of a loss with respect to a matrix W that is divided by its largest singular value σ.

For a loss whose derivative with respect to y = W/σ is g, and for any multiples u and v of the singular vectors,

    dx = (g − ⟨g, W⟩ · u vᵀ / uᵀWv) / σ,

as ∂σ/∂W = u vᵀ for vectors of length 1, and σ = uᵀWv. Power iterations estimate σ by their own u and v, which
frameworks take for constants: the formula is the same.

All but σ is exact if the matrix has rank 1, if u and v are given, and if the vectors come out exact. Otherwise,
vectors are taken to 160 bits of their lengths and, for values whose rounding these do not decide, to 300 and to
600. A value that 600 bits do not tell from a midpoint or from 0 is taken for it. Singular values that lie
nearer to each other than 2⁻⁶⁴⁰ of themselves may be taken for equal ones, which have no derivative.
"""

from __future__ import annotations

import functools
import math
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np

from normcli.dtypes import is_short_float
from normcli.engine.sn.leading_vectors import find_leading
from normcli.engine.sn.power_iterations import iterate, make_column, multiply_given
from normcli.numerics.deciding import FIRST_BITS
from normcli.numerics.gradients.in_fractions import round_exactly, round_fractions, round_values
from normcli.numerics.rational import MANTISSA, find_exponent, find_root, scale
from normcli.numerics.sums.scaled_integers import ScaledIntegers, take_exactly
from normcli.tuples import NamedTuple

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from normcli.dtypes import Floats, Selected
    from normcli.norms.spec import Iteration
    from normcli.numerics.deciding import Bounded


_BITS, _MOST_BITS = 160, 2 * FIRST_BITS
"""Bits to which vectors are calculated at first, and at most."""

_LOST_BITS, _LOST_OF_FACTOR = 4, 3
"""Bits that errors grow by: those of vectors in u vᵀ / uᵀWv, and those of σ in 1/σ, rounded."""

_MOST_KEPT = 62
"""Bits that an int64 holds of any integer."""

_LEAST_NORMAL = 2.0**-1022


class SigmaGradient(NamedTuple):
    """The numbers that σ and its derivative ∂σ/∂W follow from, for a matrix W with singular vectors u and v.

    Parameters
    ----------
    square : Fraction
        σ².
    column, row : ScaledIntegers
        Multiples of u, shape (rows, 1), and of vᵀ, shape (1, columns).
    product : ScaledIntegers
        uᵀWv of these multiples, an array of one number.
    inside : ndarray of bool, of the matrix's shape
        False where the row's number in u, or the column's in v, is exactly 0.
    is_exact : bool
        True if all of these are exact.
    """

    square: Fraction
    column: ScaledIntegers
    row: ScaledIntegers
    product: ScaledIntegers
    inside: Selected
    is_exact: bool

    @property
    def sigma(self) -> Fraction:
        """σ, to the bits that σ² is known to, or to 300 of an exact one."""
        return find_root(self.square)

    def list_vectors(self, iteration: Iteration | None) -> tuple[list[Fraction], list[Fraction]]:
        """Return u and v as lists of their numbers: of length 1 or, if there are no iterations, as given."""
        u, v = self.column.list_fractions(), self.row.list_fractions()
        if iteration is not None and not iteration.steps:
            return u, v
        lengths = (find_root(each.sum_squares()) for each in (self.column, self.row))
        u, v = ([x / length for x in vector] for vector, length in zip((u, v), lengths, strict=True))
        return u, v

    def find_numerators(
        self, matrix: ScaledIntegers, gradient: ScaledIntegers, bits: int
    ) -> tuple[ScaledIntegers, ScaledIntegers]:
        """Return dx · σ · uᵀWv, and upper bounds of the errors, both in the shape of the matrix.

        Parameters
        ----------
        matrix : ScaledIntegers
            W.
        gradient : ScaledIntegers
            dy.
        bits : int
            The bits to which the vectors of this gradient are known.
        """
        total, inside = gradient.sum_products(matrix), ScaledIntegers(self.inside.astype(object), 0)
        own = self.column.multiply(self.row).multiply(total).multiply(inside)
        numerators, off = gradient.multiply(self.product).subtract(own), Fraction(0)
        if not self.is_exact:
            (size,) = self.product.multiply(total).list_fractions()
            off = scale(abs(size) / self.sigma, _LOST_BITS - bits - numerators.exponent)
        return numerators, ScaledIntegers(inside.values * math.ceil(off), numerators.exponent)


def differentiate_matrix(
    matrix: NDArray[Any], dy: Floats, dtype: np.dtype[Any], iteration: Iteration | None
) -> NDArray[Any] | None:
    """Return dx of a matrix, each value rounded once; None where it has no derivative.

    It has none if its two largest singular values are equal, or taken for equal, or if an estimate of
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
    known = find_sigma_gradient(matrix, iteration)
    if known is None:
        return None
    exact = take_exactly(matrix), take_exactly(dy)
    numerators, off = known.find_numerators(*exact, _BITS)
    inverse = 1 / (known.product.list_fractions()[0] * known.sigma)
    unit = find_exponent(inverse) - _BITS
    factor = round(scale(inverse, -unit))
    values = numerators.values * factor
    errors = 2 * abs(factor) * off.values - (-np.abs(values) >> _BITS - _LOST_OF_FACTOR)
    low, high = (
        _round_integers(ends.reshape(-1).tolist(), numerators.exponent + unit, dtype)
        for ends in (values - errors, values + errors)
    )
    undecided = np.flatnonzero(low != high)
    if undecided.size:
        evaluate = functools.partial(_evaluate, matrix, exact, iteration)
        high[undecided] = round_exactly(evaluate, undecided, dtype)
    return high.reshape(matrix.shape)


def _evaluate(
    matrix: NDArray[Any],
    exact: tuple[ScaledIntegers, ScaledIntegers],
    iteration: Iteration | None,
    places: list[int],
    bits: int,
) -> list[Bounded]:
    """Return dx at some flat indices in rationals, and a bound of the error of each.

    Parameters
    ----------
    matrix : ndarray, shape (rows, columns)
    exact : tuple of ScaledIntegers
        The matrix and dy.
    iteration : Iteration or None
    places : list of int
        Flat indices into the matrix.
    bits : int
        Bits to which vectors and σ are calculated.
    """
    known = find_sigma_gradient(matrix, iteration, min(bits, _MOST_BITS))
    assert known is not None  # as it was not with fewer bits
    numerators, errors = (
        ScaledIntegers(each.values.reshape(-1)[places], each.exponent)
        for each in known.find_numerators(*exact, min(bits, _MOST_BITS))
    )
    is_exact = known.is_exact or bits >= _MOST_BITS
    if is_exact and not known.is_exact:
        numerators, errors = numerators.move(errors.find_top() + 1), errors.subtract(errors)
    root = find_root(known.square, bits)
    is_exact &= root == find_root(known.square, 2 * bits)
    divisor = known.product.list_fractions()[0] * root
    part = Fraction(0) if is_exact else scale(Fraction(1), _LOST_OF_FACTOR - bits)
    pairs = zip(numerators.list_fractions(), errors.list_fractions(), strict=True)
    return [(one / divisor, (off + abs(one) * part) / divisor) for one, off in pairs]


def _round_integers(values: list[int], exponent: int, dtype: np.dtype[Any]) -> NDArray[Any]:
    """Return integers times 2^exponent in a dtype, rounded once.

    Each is first cut to the bits that an int64 or a double holds; the last bit is set to 1 if anything was cut
    off, so that the rounding to the dtype gives the same (Boldo & Melquiond 2008). Results that are subnormal
    or infinite as doubles are rounded from fractions.
    """
    kept = MANTISSA if is_short_float(dtype) else _MOST_KEPT
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


def find_sigma_gradient(
    matrix: NDArray[Any], iteration: Iteration | None, bits: int = _BITS
) -> SigmaGradient | None:
    """Return the numbers that σ and ∂σ/∂W follow from; None where σ has no derivative.

    It has none if the two largest singular values are equal, or taken for equal, or if an estimate of
    σ is 0.

    Parameters
    ----------
    matrix : ndarray, shape (rows, columns)
        Finite values that are not all 0.
    iteration : Iteration or None
        Power iterations that estimate σ; None for the largest singular value.
    bits : int
        The precision of vectors that are not exact: each of their numbers is off by about 2^−bits of the
        vector's length.

    Raises
    ------
    DataError
        If the iteration has no steps, and σ = uᵀWv of its u and v is negative.
    """
    exact, found = take_exactly(matrix), None
    if iteration is not None:
        found = _iterate(matrix, iteration, bits)
        if found is None or not iteration.steps:
            return found
    if (column := _find_column(exact)) is not None:
        row = ScaledIntegers(exact.values[[np.abs(column.values).argmax()], :], exact.exponent)
        product = column.multiply(row).sum_products(exact)
        return SigmaGradient(exact.sum_squares(), column, row, product, exact.values != 0, is_exact=True)
    return found or _find_largest(matrix, bits)


def _find_column(matrix: ScaledIntegers) -> ScaledIntegers | None:
    """Return the column with the largest number, made positive, of a matrix of rank 1; None for other ranks."""
    values = matrix.values
    row, column = np.unravel_index(int(np.argmax(np.abs(values))), values.shape)
    pivot, one = values[row, column], values[:, [column]]
    is_simple = np.all(values * pivot == one * values[[row], :])
    return ScaledIntegers(one if pivot > 0 else -one, matrix.exponent) if is_simple else None


def _iterate(matrix: NDArray[Any], iteration: Iteration, bits: int) -> SigmaGradient | None:
    """Return the numbers for ∂σ/∂W by power iterations, or by given u and v; None if the estimate of σ is 0."""
    if not iteration.steps:
        assert iteration.u is not None  # as v is not enough
        assert iteration.v is not None
        product = multiply_given(matrix, iteration)
        (sigma,) = product.list_fractions()
        column, row = make_column(iteration.u), make_column(iteration.v).T
        everywhere = np.ones(matrix.shape, np.bool_)
        return SigmaGradient(sigma * sigma, column, row, product, everywhere, is_exact=True) if sigma else None
    vectors = iterate(iteration, matrix, bits)
    if vectors is None:
        return None
    first, last = (each.whole for each in vectors.order(iteration))
    square, product = last.sum_squares() / first.sum_squares(), last.sum_products(last)
    is_exact = not any(each.error for each in vectors)
    some = matrix.astype(np.bool_)
    inside = np.logical_and.outer(some.any(axis=1), some.any(axis=0))
    return SigmaGradient(square, vectors.u.whole, vectors.v.whole.T, product, inside, is_exact)


def _find_largest(matrix: NDArray[Any], bits: int) -> SigmaGradient | None:
    leading = find_leading(matrix, bits)
    if leading is None:
        return None
    image = leading.left if matrix.shape[0] >= matrix.shape[1] else leading.right
    low, high = leading.square
    product, sizes = image.sum_products(image), np.abs(leading.left.values[:, 0])
    rows, columns = _find_joined(matrix.astype(np.bool_), int(sizes.argmax()))
    left, right = (
        vector._replace(values=np.where(some[:, np.newaxis], vector.values, 0))
        for vector, some in ((leading.left, rows), (leading.right, columns))
    )
    inside = np.logical_and.outer(rows, columns)
    return SigmaGradient(low, left, right.T, product, inside, is_exact=low == high)


def _find_joined(some: Selected, row: int) -> tuple[Selected, Selected]:
    """Return masks of the rows, and of the columns, in the same block as a given row.

    A row and a column are in one block if the number where they cross is not 0 (True in `some`), or if a chain
    of such numbers leads from one to the other. The singular vectors of a singular value that is not repeated
    are those of one block, and 0 at all other rows and columns.
    """
    rows, columns = (np.zeros(length, np.bool_) for length in some.shape)
    fresh = np.array([row])
    while fresh.size:
        rows[fresh] = True
        beside = np.flatnonzero(some[fresh].any(axis=0) & ~columns)
        columns[beside] = True
        fresh = np.flatnonzero(some[:, beside].any(axis=1) & ~rows)
    return rows, columns
