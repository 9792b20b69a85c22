"""Values of groups in rows, as derivatives are made of them: deviations, dy and what multiplies it."""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np

from normcli.numerics.deciding import PAIR, PRECISIONS
from normcli.numerics.pairs import Pair, map_arrays, pair_multiply, two_diff, two_prod, two_sum
from normcli.tuples import NamedTuple

if TYPE_CHECKING:
    from normcli.dtypes import Floats, Selected
    from normcli.numerics.elements.gate import Gated


class Upstream(NamedTuple):
    """The gate behind a norm, of which dy · act(z) is no double.

    Parameters
    ----------
    low : ndarray
        What the rounded product leaves.
    error : ndarray
        How far off both may be.
    gate : Gated
        z, times dy.
    """

    low: Floats
    error: Floats
    gate: Gated


def multiply_gradient(gate: Gated) -> tuple[Floats, Upstream]:
    """Return the doubles nearest to dy · act(z), and what they leave."""
    value, error = gate.evaluate(PRECISIONS["float64"].bits).bound()
    return value.hi, Upstream(value.lo, error, gate)


class GradientRows(NamedTuple):
    """Values of groups, one row for each.

    Parameters
    ----------
    deviations : Pair of ndarray, shape (rows, n)
        x less the shift of its group, exactly; 0 where a value has no part in normalized ones.
    dy : ndarray
        Likewise.
    gamma : ndarray or None
        What dy is multiplied by where that varies within groups.
    counted : ndarray of bool or None
        Which values the statistics are of; None for all.
    upstream : Upstream or None
        The gate that dy is multiplied by already.
    """

    deviations: Pair
    dy: Floats
    gamma: Floats | None
    counted: Selected | None
    upstream: Upstream | None = None

    @property
    def gradients(self) -> Pair:
        """The derivative of the loss by x̂, but for a gamma that is one for the whole group."""
        dy = self.gated
        if self.gamma is None:
            return dy
        return (
            two_prod(dy.hi, self.gamma) if self.upstream is None else pair_multiply(dy, Pair(self.gamma, 0.0))
        )

    @property
    def gated(self) -> Pair:
        """The derivative of the loss by the norm's result."""
        return Pair(self.dy, np.zeros_like(self.dy) if self.upstream is None else self.upstream.low)

    @property
    def error(self) -> Any:
        """How far off the gradients may be."""
        if self.upstream is None or self.gamma is None:
            return 0.0 if self.upstream is None else self.upstream.error
        return self.upstream.error * np.abs(self.gamma) + PAIR.error * np.abs(self.dy * self.gamma)

    @property
    def factors(self) -> list[Floats]:
        """The factors of products."""
        return [*self.deviations, self.dy, *([] if self.gamma is None else [self.gamma])]

    def map(self, function: Any) -> GradientRows:
        """Return the rows with a function (an index, a reshape) applied to each array."""
        return map_arrays(self, function)

    def leave_gradients_out(self, chosen: Selected) -> GradientRows:
        """Return the rows with a dy of 0 in some of them."""
        dy, upstream = np.where(chosen, 0.0, self.dy), self.upstream
        if upstream is not None:
            low, error, times = (np.where(chosen, 0.0, a) for a in (*upstream[:2], upstream.gate.times))
            upstream = Upstream(low, error, upstream.gate._replace(times=times))
        return self._replace(dy=dy, upstream=upstream)

    def take_exactly(self, bits: int | None = None) -> list[ExactGradient]:
        """Return each value exactly, in C order; gates to so many bits, or as they are in pairs."""
        gamma = np.ones_like(self.dy) if self.gamma is None else self.gamma
        counted = np.ones(self.dy.shape, np.bool_) if self.counted is None else self.counted
        columns = (a.reshape(-1).tolist() for a in (*self.deviations, *self.gated, gamma, counted))
        known: list[tuple[Fraction, Fraction] | None] = [None] * self.dy.size
        if self.upstream is not None and bits is not None:
            known = list(self.upstream.gate.list_exactly(bits))
        found = []
        for factor, (hi, lo, dy, low, by, counts) in zip(known, zip(*columns, strict=True), strict=True):
            g, error = factor or (Fraction(dy) + Fraction(low), Fraction(0))
            gamma_ = Fraction(by)
            found.append(ExactGradient(Fraction(hi) + Fraction(lo), g * gamma_, error * abs(gamma_), counts))
        return found


class ExactGradient(NamedTuple):
    """A value's deviation, the gradient and a bound of its error, and whether the value counts."""

    deviation: Fraction
    gradient: Fraction
    error: Fraction
    counts: bool


def find_deviations(x: Floats, low: Floats | None, shift: Floats | None) -> Pair:
    """Return x + low − shift, exactly; where `low` is given, which is of integers, the shift is one too."""
    rest = np.zeros_like(x) if low is None else low
    if shift is None:
        return Pair(x, rest)
    difference = two_diff(x, shift)
    return two_sum(difference.hi, difference.lo + rest)
