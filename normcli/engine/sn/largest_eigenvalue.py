"""The largest singular value of a matrix, enclosed to any number of bits.

It starts with LAPACK's eigenvectors of A = WᵀW, in doubles. They are refined in fixed point, and what A makes
of them is calculated exactly. For a basis V of some of them, with H = VᵀAV and R = AV − VH, the largest
eigenvalue of A lies between that of H, θ, and θ + ‖R‖² / (θ − c), where xᵀAx is at most c for all x of length 1
at a right angle to V (Temple 1928, Kato 1949; here by Schur's complement). Each step takes some 40 bits off R.

Where the largest eigenvalues lie too near each other to be told apart in doubles, V has all of them. H is then
close to a multiple of the identity: what it leaves of that is enclosed in the same way, in a unit of its own.
Equal ones leave nothing, or less than is asked for.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np

from normcli.engine.sn.exact_products import (
    UNIT,
    GramOperator,
    SymmetricOperator,
    WrittenMatrix,
    multiply_whole,
)
from normcli.numerics.rational import find_exponent, scale
from normcli.numerics.sums.scaled_integers import ScaledIntegers, take_exactly
from normcli.tuples import NamedTuple

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from normcli.dtypes import Floats

_SLACK = 1.0 + 2.0**-20
"""The factor by which bounds are enlarged that are calculated in doubles."""

_LEAST_GAP = 2.0**-16
"""Eigenvalues nearer to each other than this part of the largest may be equal, as far as doubles show."""


_MOST_STEPS = 120
"""Steps of refinement, of which few are ever taken."""


class Enclosure(NamedTuple):
    """A lower and an upper bound of a number."""

    low: Fraction
    high: Fraction


def enclose_square(matrix: NDArray[Any], bits: int) -> Enclosure:
    """Enclose the square of the largest singular value of a matrix.

    Parameters
    ----------
    matrix : ndarray, shape (rows, columns)
        Finite values of any real dtype, of which one at least is not 0.
    bits : int
        The enclosure is narrower than 2^−bits of the value.

    Notes
    -----
    No result depends on LAPACK or BLAS but for where in the enclosure the value lies.
    """
    gram = GramOperator(matrix if matrix.shape[0] >= matrix.shape[1] else matrix.T)
    largest = Fraction(float(np.max(np.abs(matrix.astype(np.float64))))) / 2  # σ is no less than any value
    return _enclose(gram, find_exponent(largest * largest) - bits)


def _enclose(operator: SymmetricOperator, tolerance: int) -> Enclosure:
    """Enclose the largest eigenvalue to within 2^tolerance."""
    if operator.size == 1:
        return read_only_number(operator)
    basis = Basis(operator)
    if basis.count == 1 and (found := basis.refine(tolerance)) is not None:
        return found.enclose_one()
    found = None if basis.count == operator.size else basis.refine(tolerance)
    ritz, widened = (operator.write(), Fraction(0)) if found is None else (found.ritz, found.widen())
    inner = _enclose_near_identity(ritz, tolerance - 1)
    lost = Fraction(0) if found is None else found.lost
    return Enclosure(inner.low - lost, inner.high + lost + widened)


def read_only_number(operator: SymmetricOperator) -> Enclosure:
    """Return the eigenvalue of a matrix of one row and one column."""
    (value,) = operator.write().list_fractions()
    return Enclosure(value, value)


def _enclose_near_identity(matrix: ScaledIntegers, tolerance: int) -> Enclosure:
    """Enclose the largest eigenvalue of a matrix near c · identity to within 2^tolerance.

    It is c plus the largest eigenvalue of the difference, which is calculated.
    """
    size = len(matrix.values)
    rest, centre = subtract_identity(matrix)
    exponent = tolerance - 3 - size.bit_length()
    off = Fraction(0)
    if rest.exponent < exponent:  # shorter numbers, which are off by a unit each at most
        rest, off = rest.move(exponent), scale(Fraction(size), exponent)
    width = rest.bound_length()
    if width <= scale(Fraction(1), tolerance - 1):
        return Enclosure(centre - width - off, centre + width + off)
    inner = _enclose(WrittenMatrix(rest), tolerance - 1)
    return Enclosure(centre + inner.low - off, centre + inner.high + off)


def subtract_identity(matrix: ScaledIntegers) -> tuple[ScaledIntegers, Fraction]:
    """Return a matrix minus c · identity, and c, which is about the mean of its diagonal."""
    size = len(matrix.values)
    middle = sum(np.diagonal(matrix.values).tolist()) // size
    rest = ScaledIntegers(matrix.values - middle * np.eye(size, dtype=object), matrix.exponent)
    return rest, scale(Fraction(middle), matrix.exponent)


class _Refined(NamedTuple):
    """A basis V of eigenvectors whose enclosure of the largest eigenvalue of A is narrow enough.

    θ is the largest eigenvalue of H = VᵀAV, R is AV − VH, and xᵀAx ≤ c for x of length 1 at a right angle to V.

    Parameters
    ----------
    basis, gram, ritz : ScaledIntegers
        V, VᵀV and VᵀAV.
    rest : Fraction
        An upper bound of ‖R‖².
    gap : Fraction
        A lower bound of θ − c.
    lost : Fraction
        The largest distance of the largest eigenvalue of `ritz` from that of A on the span of V, which is not
        quite orthonormal.
    """

    basis: ScaledIntegers
    gram: ScaledIntegers
    ritz: ScaledIntegers
    rest: Fraction
    gap: Fraction
    lost: Fraction

    def widen(self) -> Fraction:
        """Return by how much the largest eigenvalue of A may be larger than that of VᵀAV."""
        return self.rest / self.gap

    def enclose_one(self) -> Enclosure:
        """Return the enclosure by a single vector, whose quotient is exact."""
        quotient = _divide_first(self.ritz, self.gram)
        return Enclosure(quotient, quotient + self.widen())


def _divide_first(ritz: ScaledIntegers, gram: ScaledIntegers) -> Fraction:
    """Return Rayleigh's quotient of the first vector."""
    first, length = (each.list_fractions()[0] for each in (ritz, gram))
    return first / length


class Basis:
    """A basis of the leading eigenvectors of a symmetric matrix A, in doubles at first.

    Parameters
    ----------
    operator : SymmetricOperator
        The matrix A.
    """

    def __init__(self, operator: SymmetricOperator) -> None:
        self._operator = operator
        values, self.exponent, error = operator.approximate()
        found, vectors = np.linalg.eigh(values)
        self._values, self._vectors = found[::-1], np.ascontiguousarray(vectors[:, ::-1])
        self._largest = float(np.max(np.abs(found)))
        self._error = error + self._measure_residual(values)
        self._skew = self._measure_skew()
        self.count = self._count_cluster()

    def _measure_residual(self, values: Floats) -> float:
        """Return a bound on the distance of the decomposition from the matrix that was decomposed."""
        size, vectors = len(values), self._vectors
        rounding = 2 * (size + 4) * UNIT * self._largest * float(np.sum(vectors * vectors))
        return float(np.linalg.norm(values - (vectors * self._values) @ vectors.T)) * _SLACK + rounding

    def _measure_skew(self) -> float:
        """Return a bound on the distance of the vectors from orthonormal ones."""
        size, vectors = len(self._vectors), self._vectors
        rounding = 2 * (size + 4) * UNIT * float(np.sum(vectors * vectors))
        return float(np.linalg.norm(vectors.T @ vectors - np.eye(size))) * _SLACK + rounding

    def _count_cluster(self) -> int:
        """Return how many of the largest eigenvalues may be equal, as far as doubles tell; at most all."""
        values = self._values
        least = max((values[0] - values[-1]) / (2 * len(values)), _LEAST_GAP * self._largest)
        least = max(least, 16.0 * (self._error + self._skew * self._largest))
        gaps = np.flatnonzero(values[:-1] - values[1:] >= least)
        return int(gaps[0]) + 1 if gaps.size else len(values)

    def isolates_first(self) -> bool:
        """Keep the first eigenvector alone, if doubles show no other as large; return whether they do."""
        least = max(_LEAST_GAP * self._largest, 64.0 * (self._error + self._skew * self._largest))
        if self._values[0] - self._values[1] >= least:
            self.count = 1
        return self.count == 1

    def refine(self, tolerance: int) -> _Refined | None:
        """Return the basis with as many bits as enclose the largest eigenvalue to within 2^tolerance.

        None if too few steps remain, or the eigenvalues outside the basis may be as large.
        """
        tolerance -= self.exponent
        gap = float(self._values[self.count - 1] - self._values[self.count])
        size = len(self._vectors).bit_length() + math.frexp(self._largest)[1]
        precision = size + 8 + (-tolerance - math.frexp(gap)[1]) // 2
        if self.count > 1:  # the span's own eigenvalues have to be found in it
            precision = max(precision, 2 * size + 8 - tolerance)
        precision = max(precision, 60)
        first = self._vectors[:, : self.count]
        basis = take_exactly(first).move(-precision)
        for _ in range(_MOST_STEPS):
            basis, gram, skew = _orthonormalize(basis)
            image = self._operator.apply(basis)
            ritz = multiply_whole(basis.T, image)
            shorter = ritz.move(self.exponent - precision)
            residual = image.subtract(multiply_whole(basis, shorter))
            moved = float(np.linalg.norm(basis.scale(0) - first)) * _SLACK + 2 * UNIT * self.count
            known = _Refined(basis, gram, ritz, *self._bound(residual, ritz, gram, skew, moved))
            if known.gap <= 0:
                return None
            if known.widen() <= scale(Fraction(1), tolerance + self.exponent - 1):
                return known
            basis = self._correct(basis, residual)
        return None

    def _bound(
        self, residual: ScaledIntegers, ritz: ScaledIntegers, gram: ScaledIntegers, skew: Fraction, moved: float
    ) -> tuple[Fraction, Fraction, Fraction]:
        """Return bounds of ‖R‖², of θ − c, and of what is lost as the basis V is not quite orthonormal.

        R is AV − VH with H = VᵀAV, θ the first eigenvalue of H, and c an upper bound of the others of A.

        Parameters
        ----------
        residual, ritz, gram : ScaledIntegers
            R, VᵀAV and VᵀV.
        skew : Fraction
            An upper bound of ‖VᵀV − 1‖.
        moved : float
            An upper bound of the distance of V from LAPACK's eigenvectors.
        """
        beside = self._error + self._largest * 2 * (moved * moved + self._skew)
        most = (float(self._values[self.count]) + beside) + abs(beside) * 2.0**-20
        gap = _divide_first(ritz, gram) - scale(Fraction(most), self.exponent)
        rest = residual.sum_squares() / (1 - skew)
        size = ritz.bound_length()
        return rest, gap, size * skew / (1 - skew)

    def _correct(self, basis: ScaledIntegers, residual: ScaledIntegers) -> ScaledIntegers:
        """Return the basis V minus its parts along the eigenvectors outside of it: one step of refinement.

        The parts are estimated in doubles: the residual's part along an eigenvector, divided by the difference
        of the two eigenvalues.

        Parameters
        ----------
        basis : ScaledIntegers
            V, the first `count` eigenvectors.
        residual : ScaledIntegers
            R = AV − VH, for the matrix A and H = VᵀAV.
        """
        top = residual.find_top()
        others = self._vectors[:, self.count :]
        apart = self._values[: self.count] - self._values[self.count :, None]
        parts = (others.T @ residual.scale(top)) / apart
        change = take_exactly(others @ parts).move(basis.exponent - top + self.exponent)
        return ScaledIntegers(basis.values + change.values, basis.exponent)


def _orthonormalize(basis: ScaledIntegers) -> tuple[ScaledIntegers, ScaledIntegers, Fraction]:
    """Return a basis of the same span whose vectors are orthonormal to its last bits, VᵀV, and ‖VᵀV − 1‖."""
    one = ScaledIntegers(np.eye(basis.values.shape[1], dtype=object), 0)
    last: Fraction | None = None
    while True:
        gram = multiply_whole(basis.T, basis)
        left = gram.subtract(one)
        skew = left.bound_length()
        if skew == 0 or (last is not None and 4 * skew > last):  # no nearer than by rounding
            return basis, gram, skew
        half = ScaledIntegers(left.values, left.exponent - 1).move(basis.exponent)
        change = multiply_whole(basis, half).move(basis.exponent)
        basis, last = ScaledIntegers(basis.values - change.values, basis.exponent), skew
