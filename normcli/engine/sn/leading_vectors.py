"""The singular vectors of the largest singular value, each number known to as many bits as are asked for.

The bases of `largest_eigenvalue` find them. If V has the vectors whose eigenvalues doubles do not tell from the
first, and w is the first eigenvector of VᵀAV, that of A is Vw.
"""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np

from normcli.engine.sn.exact_products import GramOperator, WrittenMatrix, multiply_whole
from normcli.engine.sn.largest_eigenvalue import Basis, Enclosure, read_only_number, subtract_identity
from normcli.numerics.rational import find_exponent, scale
from normcli.numerics.sums.scaled_integers import ScaledIntegers
from normcli.tuples import NamedTuple

if TYPE_CHECKING:
    from typing import Any

    from numpy.typing import NDArray

    from normcli.engine.sn.exact_products import SymmetricOperator

_LEAST_GAP_BITS = 80
"""Eigenvalues that doubles tell apart have a gap of more than 2^−80 of the largest, twice over."""

_GAP_BITS = 160, 480, 1280
"""Others are told apart by a basis so close that gaps of half these bits show; equal eigenvalues never are."""


class Leading(NamedTuple):
    """The largest singular value of a matrix W, with its two singular vectors.

    Parameters
    ----------
    square : Enclosure
        Two numbers between which the square of the singular value lies.
    left, right : ScaledIntegers
        Columns along the two singular vectors. The one with fewer numbers is nearly of length 1; the other is W
        (or Wᵀ) times it.
    """

    square: Enclosure
    left: ScaledIntegers
    right: ScaledIntegers


def find_leading(matrix: NDArray[Any], bits: int) -> Leading | None:
    """Return the largest singular value of a matrix W with its singular vectors.

    None where the largest eigenvalues of WᵀW are equal, or differ by less than 2⁻⁶⁴⁰ of themselves.

    Parameters
    ----------
    matrix : ndarray, shape (rows, columns)
        Finite values of any real dtype, of which one at least is not 0.
    bits : int
        The precision: each number of the vector with fewer numbers is off by at most 2^−bits, the square by
        about 2^(−2 · bits) of itself.
    """
    is_tall = matrix.shape[0] >= matrix.shape[1]
    gram = GramOperator(matrix if is_tall else matrix.T)
    if gram.size == 1:
        square, vector = read_only_number(gram), ScaledIntegers(np.array([[1]], dtype=object), 0)
    else:
        found = _isolate_first(gram, bits)
        if found is None:
            return None
        square, vector, _ = found
    image = gram.map(vector)
    return Leading(square, image, vector) if is_tall else Leading(square, vector, image)


class _First(NamedTuple):
    """The first eigenvector of a matrix A.

    Parameters
    ----------
    square : Enclosure
        Its eigenvalue.
    vector : ScaledIntegers
        One column, nearly of length 1.
    most : Fraction
        An upper bound of xᵀAx for all x of length 1 at a right angle to the vector.
    """

    square: Enclosure
    vector: ScaledIntegers
    most: Fraction


def _isolate_first(operator: SymmetricOperator, bits: int) -> _First | None:
    """Return the first eigenvector of a matrix of several columns, each number to 2^−bits; or None.

    None where the largest eigenvalues are equal, or differ by less than about 2^−640 of the largest.
    """
    basis = Basis(operator)
    if basis.isolates_first():
        found = basis.refine(basis.exponent - 2 * bits - _LEAST_GAP_BITS)
        if found is None:
            return None
        square = found.enclose_one()
        return _require_closeness(_First(square, found.basis, square.low - found.gap), found.rest, bits)
    if basis.count == operator.size:  # V is the identity, and H is A
        rest, centre = subtract_identity(operator.write())
        inner = _isolate_first(WrittenMatrix(rest), bits) if rest.values.any() else None
        return inner and _First(
            Enclosure(*(end + centre for end in inner.square)), inner.vector, inner.most + centre
        )
    for spare in _GAP_BITS:
        found = basis.refine(basis.exponent - 2 * bits - spare)
        if found is None:
            return None
        rest, centre = subtract_identity(found.ritz)
        inner = _isolate_first(WrittenMatrix(rest), bits + 2) if rest.values.any() else None
        if inner is not None:
            vector = multiply_whole(found.basis, inner.vector).move(-2 * bits - spare)
            beside = scale(Fraction(1), find_exponent(found.rest) // 2 + 1) if found.rest else Fraction(0)
            most = centre + inner.most + beside + 4 * found.lost
            if (first := _measure_vector(operator, vector, most, bits)) is not None:
                return first
    return None


def _measure_vector(
    operator: SymmetricOperator, vector: ScaledIntegers, most: Fraction, bits: int
) -> _First | None:
    """Return a vector with its eigenvalue; None if a number of it may be off by more than 2^−bits.

    `most` is an upper bound of all other eigenvalues.
    """
    image = operator.apply(vector)
    length, product, square = (
        a.sum_products(b).list_fractions()[0] for a, b in ((vector, vector), (vector, image), (image, image))
    )
    quotient = product / length
    rest = square / length - quotient * quotient
    if quotient <= most:
        return None
    return _require_closeness(
        _First(Enclosure(quotient, quotient + rest / (quotient - most)), vector, most), rest, bits
    )


def _require_closeness(first: _First, rest: Fraction, bits: int) -> _First | None:
    """Return a vector if each of its numbers is known to 2^−bits by its ‖R‖² (`rest`), else None."""
    gap = first.square.low - first.most
    return first if rest <= gap * gap * scale(Fraction(1), -2 * bits - 2) else None
