"""The largest singular value of a small matrix: the root of the largest zero of a characteristic polynomial."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import TYPE_CHECKING

from tests.reference.real import Bounds, Real

if TYPE_CHECKING:
    from collections.abc import Sequence


def find_singular_value(rows: Sequence[Sequence[int]]) -> Real:
    """Return the largest singular value of a matrix of integers."""
    if len(rows) > len(rows[0]):
        rows = list(zip(*rows, strict=True))
    gram = [[sum(a * b for a, b in zip(row, other, strict=True)) for other in rows] for row in rows]
    trace = sum(gram[i][i] for i in range(len(gram)))
    if len(gram) == 1 or not trace:
        return Real.of(Fraction(trace)).root()
    polynomial = find_polynomial(gram)
    return Real(lambda bits: _enclose_zero(polynomial, trace, bits)).root()


def find_polynomial(matrix: Sequence[Sequence[int]]) -> list[int]:
    """Return the coefficients of det(λ − matrix), the leading one first (Faddeev & Le Verrier)."""
    size = len(matrix)
    coefficients, power = [1], [[0] * size for _ in range(size)]
    for k in range(1, size + 1):
        for i in range(size):
            power[i][i] += coefficients[-1]
        columns = list(zip(*power, strict=True))
        power = [[sum(a * b for a, b in zip(row, column, strict=True)) for column in columns] for row in matrix]
        coefficients.append(-sum(power[i][i] for i in range(size)) // k)
    return coefficients


def _enclose_zero(polynomial: Sequence[int], above: int, bits: int) -> Bounds:
    """Enclose the largest zero by Newton's steps from above, in multiples of a power of two.

    All n zeros are real: of every x above them, the largest lies between x − n · p/p′ and x − p/p′.
    """
    degree, exponent = len(polynomial) - 1, above.bit_length() - bits - 16
    unit = Fraction(2) ** exponent
    x = math.ceil(above / unit)
    while True:
        value = slope = Fraction(0)
        for coefficient in polynomial:
            slope = slope * x * unit + value
            value = value * x * unit + coefficient
        if not value:
            return Bounds(x, x, exponent)
        step = value / slope / unit
        low = math.floor(x - degree * step)
        following = math.ceil(x - step)
        if following == x or (x - low) << bits < x:
            return Bounds(low, x, exponent)
        x = following
