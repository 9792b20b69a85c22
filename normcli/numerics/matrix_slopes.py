"""How a loss changes with a matrix W that is divided by its largest singular value σ, or by an estimate of it.

Of a loss whose derivative by y = W/σ is g, and with the singular vectors u and v of length 1,

    dx = (g − ⟨g, y⟩ · u vᵀ) / σ,

as ∂σ/∂W = u vᵀ. Power iterations have their own u and v, which frameworks take for constants: the formula is
the same. Vectors are taken to 160 bits: what cancels to less than 2⁻¹⁴⁰ of its terms is 0, and what cancels to
less than 2⁻⁸⁰ right to 2⁻¹⁵⁰ of them. Every other result is the exact one, rounded once.
"""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np

from normcli.numerics.exact_slopes import round_fractions
from normcli.numerics.planes import Whole
from normcli.numerics.power import PowerIterations, fix
from normcli.numerics.rational import find_exponent, find_root, scale
from normcli.numerics.singular import SingularValue, choose_enclosure
from normcli.numerics.spectrum import find_leading
from normcli.tuples import NamedTuple

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from normcli.dtypes import Floats
    from normcli.norms.spec import Iteration


_BITS = 160
"""Of vectors and of σ."""


_CANCELLED = 140
"""Bits that cancel, of which nothing is left."""


class _Slope(NamedTuple):
    """σ, and ∂σ/∂W as a column times a row, over a number."""

    sigma: Fraction
    column: Whole
    row: Whole
    over: Fraction


def differentiate_matrix(
    matrix: NDArray[Any], dy: Floats, dtype: np.dtype[Any], iteration: Iteration | None
) -> NDArray[Any] | None:
    """Return dx of a matrix; None where it has no derivative, as two singular values are equally large.

    Parameters
    ----------
    matrix : ndarray, shape (rows, columns)
        Finite, and not all 0.
    dy : ndarray
        Finite, of the same shape.
    dtype : dtype
        Of dx.
    iteration : Iteration or None
    """
    slope = _find_slope(matrix, iteration)
    if slope is None:
        return None
    gradient, values = _lay_exactly(dy), _lay_exactly(matrix)
    product = int((gradient.values * values.values).sum())
    total = scale(Fraction(product), gradient.exponent + values.exponent)
    factor = -total / (slope.sigma * slope.sigma * slope.over)  # of column · row
    exponent = slope.column.exponent + slope.row.exponent
    terms = slope.column.values * slope.row.values
    if factor and terms.any():  # both as integers times one power of two
        top = find_exponent(factor) - _BITS
        own = Whole(terms * round(scale(factor, -top)), exponent + top)
    else:
        own = Whole(terms * 0, 0)
    inverse = 1 / slope.sigma
    unit = find_exponent(inverse) - _BITS
    plain = Whole(gradient.values * round(scale(inverse, -unit)), gradient.exponent + unit)
    lowest = min(own.exponent, plain.exponent)
    sides = (each.move(lowest).values.reshape(-1).tolist() for each in (own, plain))
    exact = [scale(Fraction(_add(a, b)), lowest) for a, b in zip(*sides, strict=True)]
    return round_fractions(exact, dtype).reshape(matrix.shape)


def _add(a: int, b: int) -> int:
    """Return a sum; 0 where only what was cut off is left of it."""
    total = a + b
    return total if abs(total) << _CANCELLED > abs(b) else 0


def _find_slope(matrix: NDArray[Any], iteration: Iteration | None) -> _Slope | None:
    sigma = SingularValue(matrix, choose_enclosure(iteration)).find(_BITS)
    if not sigma:
        return None
    if iteration is not None and not iteration.steps:
        assert iteration.u is not None  # of none
        assert iteration.v is not None
        return _Slope(sigma, fix(iteration.u), fix(iteration.v).T, Fraction(1))
    if iteration is not None:
        found = PowerIterations(iteration).find_directions(matrix, _BITS)
        if found is None:
            return None
        column, row = found.u.whole, found.v.whole
        squares = (scale(Fraction(each.sum_squares()), 2 * each.exponent) for each in (column, row))
        lengths = [find_root(square) for square in squares]
        return _Slope(sigma, column, row.T, lengths[0] * lengths[1])
    pair = find_leading(matrix, _BITS)
    if pair is None:
        return None
    column, row = pair
    unit = row if matrix.shape[0] >= matrix.shape[1] else column  # nearly; the other is σ times as long
    square = scale(Fraction(unit.sum_squares()), 2 * unit.exponent)
    return _Slope(sigma, column, row.T, sigma * square)


def _lay_exactly(values: NDArray[Any]) -> Whole:
    """Return a matrix in fixed point, exactly."""
    exact = [Fraction(value) for value in values.reshape(-1).tolist()]
    exponent = -max(value.denominator.bit_length() for value in exact)
    whole = np.empty(len(exact), dtype=object)
    whole[:] = [int(scale(value, -exponent)) for value in exact]
    return Whole(whole.reshape(values.shape), exponent)
