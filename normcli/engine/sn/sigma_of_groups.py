"""Groups that are matrices: their largest singular values, and what values are divided by."""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np

from normcli.norms.rules import ZeroRule
from normcli.numerics.deciding import round_real
from normcli.numerics.pairs import Pair, Triple
from normcli.numerics.rational import (
    ROOT_BITS,
    find_exponent,
    find_root,
    round_once,
    scale,
)
from normcli.numerics.statistics.divisor import Solution, replace_zero

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

    from normcli.engine.sn.largest_eigenvalue import Enclosure
    from normcli.norms.plan import Plan
    from normcli.norms.spec import Iteration

    EncloseSquare = Callable[[NDArray[Any], int], Enclosure | None]

_BITS = 110
"""Bits to which a square is known at first: its root is then within `KNOWN` of itself."""


def _enclose_largest(matrix: NDArray[Any], bits: int) -> Enclosure:
    from normcli.engine.sn.largest_eigenvalue import enclose_square  # few norms divide by it

    return enclose_square(matrix, bits)


def choose_enclosure(iteration: Iteration | None) -> EncloseSquare:
    """Return a function that takes a matrix and a number of bits, and encloses σ² to that number of bits.

    σ is the largest singular value, or what power iterations estimate, if there are any.
    """
    if iteration is None:
        return _enclose_largest
    from normcli.engine.sn.power_iterations import enclose_estimate

    return functools.partial(enclose_estimate, iteration)


class SingularValue:
    """The largest singular value of a matrix, or an estimate of it, to any number of bits.

    Parameters
    ----------
    matrix : ndarray, shape (rows, columns)
        Values of any real dtype, which are copied.
    enclose_square : callable
        Takes the matrix and a number of bits; returns two numbers between which the square of the singular
        value lies, no further apart than 2^−bits of it, or None where it is 0.

    Attributes
    ----------
    known : float or None
        The value if it is NaN, infinite or 0 by the matrix alone; None otherwise.
    """

    def __init__(self, matrix: NDArray[Any], enclose_square: EncloseSquare = _enclose_largest) -> None:
        self._matrix = np.array(matrix, order="C")
        self._enclose_square = enclose_square
        self.known = _find_plain(self._matrix)
        self._find = functools.lru_cache(maxsize=4)(self._calculate)

    def find(self, bits: int = 0) -> Fraction:
        """Return the singular value with a relative error of at most 2^−bits; 2^−108 if `bits` is 0.

        Only for values whose `known` is None. A value of at most `bits` bits (55 if `bits` is 0) comes out
        exact, and an estimate of 0 as 0.
        """
        return self._find(2 * bits or _BITS)

    def _calculate(self, bits: int) -> Fraction:
        """Return the value, from its square to `bits` bits; 0 if `enclose_square` returns None."""
        enclosure = self._enclose_square(self._matrix, bits)
        if enclosure is None:
            return Fraction(0)
        low, high = (find_root(end, max(bits // 2, ROOT_BITS)) for end in enclosure)
        unit = find_exponent(high) - bits // 2
        short = scale(Fraction(round(scale(low, -unit))), unit)
        return short if low <= short <= high else (low + high) / 2


def _round(value: SingularValue, found: Fraction) -> float:
    """Return a singular value as the nearest double; more bits are calculated if `found` does not decide it.

    Parameters
    ----------
    value : SingularValue
        One whose `known` is None.
    found : Fraction
        What `value.find()` returned: the value with a relative error of at most 2^−108.
    """
    error = scale(found, 2 - _BITS)
    if round_once(found - error) == round_once(found + error):
        return round_once(found)

    def evaluate(bits: int) -> tuple[Fraction, Fraction]:
        finer = value.find(bits)
        return finer, Fraction(0) if finer == value.find(2 * bits) else scale(finer, 2 - bits)

    return round_real(evaluate)


def _find_plain(matrix: NDArray[Any]) -> float | None:
    """Return the largest singular value if the values alone tell it; None for any other matrix.

    It is NaN if a value is NaN, ∞ if one is infinite, and 0 if all are 0 or there are none.
    """
    sizes = np.abs(matrix.astype(np.float64))
    if np.isnan(sizes).any():
        return math.nan
    largest = float(np.max(sizes, initial=0.0))
    return None if 0.0 < largest < math.inf else largest


def approximate_largest(matrix: NDArray[Any]) -> float:
    """Return the largest singular value, rounded to ten digits, as LAPACKs differ in later ones.

    It is much faster than `SingularValue`, which is exact.
    """
    plain = _find_plain(matrix)
    if plain is not None:
        return plain
    values = matrix.astype(np.float64)
    exponent = math.frexp(float(np.max(np.abs(values))))[1]
    values = np.ldexp(values, -exponent)
    gram = values.T @ values if values.shape[0] >= values.shape[1] else values @ values.T
    return float(f"{math.ldexp(math.sqrt(np.linalg.eigvalsh(gram)[-1]), exponent):.10g}")


@dataclass(slots=True)
class SingularValues:
    """For each of some groups, the number of values that count and the largest singular value."""

    count: Any
    values: Sequence[SingularValue]

    def solve(self, plan: Plan) -> Solution:
        """Return the solution of groups: no mean, σ or its estimate as the divisor, and σ as statistic."""
        row, values = plan.norm.divisor, self.values
        sizes = np.array([1.0 if value.known is None else value.known for value in values])

        def replace(value: SingularValue) -> Fraction | None:
            """Return the divisor for a σ of 0: None for NaN; 0 for an estimate: values over it are infinite."""
            if value.known is None and plan.spec.zero_rule is ZeroRule.NAN:
                return Fraction(0)
            return replace_zero(Fraction(0), plan.spec.zero_rule)

        def ask(group: int, bits: int = 0) -> tuple[Fraction, Fraction | None]:
            value = values[group]
            found = None if value.known is not None else value.find(bits or ROOT_BITS) or None
            return Fraction(0), replace(value) if found is None else found

        mean, divisor = Triple(*np.zeros((3, len(values)))), Pair(sizes.copy(), np.zeros(len(values)))
        solution = Solution(mean, divisor, centred=False, ask=ask)
        for group, value in enumerate(values):
            if value.known is not None and value.known != 0.0:
                continue
            found = None if value.known is not None else value.find() or None
            sizes[group] = 0.0 if found is None else _round(value, found)
            solution.settle(group, Fraction(0), replace(value) if found is None else found)
        assert row.spread is not None
        solution.statistics = {row.spread: sizes}
        return solution
