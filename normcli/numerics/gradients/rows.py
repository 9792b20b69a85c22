"""Values of groups in rows, as gradients are made of them: deviations, dy and its factors."""

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
    """The gate behind a norm, with the rounding errors of the product dy · act(z).

    Parameters
    ----------
    low : ndarray
        The second double of each product: the product is the rounded one + low.
    error : ndarray
        An upper bound of the error of this sum.
    beyond : ndarray of bool
        True where the product of finite factors is beyond the range of doubles. There, dy is 0 in the rows, and
        the product has to be calculated from `gate`.
    gate : Gated
        The gate z, with dy as its `times`.
    """

    low: Floats
    error: Floats
    beyond: Selected
    gate: Gated


def multiply_gradient(gate: Gated) -> tuple[Floats, Upstream]:
    """Return dy · act(z), or dy · act′(z) if the gate `is_slope`, rounded to doubles, with its rounding errors.

    dy is the gate's `times`. The second result, an `Upstream`, has the errors; `GradientRows` take both.
    """
    known = gate.evaluate(PRECISIONS["float64"].bits)
    value, error = known.bound()
    beyond = np.isinf(value.hi) & ~known.special
    hi, low, error = (np.where(beyond, 0.0, a) for a in (*value, error))
    return hi, Upstream(low, error, beyond, gate)


class GradientRows(NamedTuple):
    """Values of groups, one row for each.

    Parameters
    ----------
    deviations : Pair of ndarray, shape (rows, n)
        x minus the shift of its group, exactly; 0 where a value is not normalized.
    dy : ndarray, shape (rows, n)
        The derivative with respect to the norm's result; 0 where a value is not normalized.
    gamma : ndarray or None
        The gamma of each value if it varies within groups; else None.
    counted : ndarray of bool or None
        True where a value counts; None for all.
    upstream : Upstream or None
        The gate that dy is multiplied by already; None for no gate.
    """

    deviations: Pair
    dy: Floats
    gamma: Floats | None
    counted: Selected | None
    upstream: Upstream | None = None

    @property
    def gradients(self) -> Pair:
        """The derivative of the loss with respect to x̂; a gamma that a whole group shares is left out."""
        dy = self.gated
        if self.gamma is None:
            return dy
        return (
            two_prod(dy.hi, self.gamma) if self.upstream is None else pair_multiply(dy, Pair(self.gamma, 0.0))
        )

    @property
    def gated(self) -> Pair:
        """The derivative of the loss with respect to the norm's result: dy, times the gate behind it if any."""
        return Pair(self.dy, np.zeros_like(self.dy) if self.upstream is None else self.upstream.low)

    @property
    def error(self) -> Any:
        """An upper bound of the errors of `gradients`."""
        if self.upstream is None or self.gamma is None:
            return 0.0 if self.upstream is None else self.upstream.error
        return self.upstream.error * np.abs(self.gamma) + PAIR.error * np.abs(self.dy * self.gamma)

    @property
    def beyond(self) -> Any:
        """True where dy times a gate is beyond the range of doubles; `dy` is then 0, and not that product."""
        return False if self.upstream is None else self.upstream.beyond

    @property
    def factors(self) -> list[Floats]:
        """The arrays whose products gradients are made of: two of the deviations, dy, and gamma if any."""
        return [*self.deviations, self.dy, *([] if self.gamma is None else [self.gamma])]

    def map(self, function: Any) -> GradientRows:
        """Return the rows with a function (an index, a reshape) applied to each array."""
        return map_arrays(self, function)

    def take(self, row: int, columns: Any = slice(None)) -> GradientRows:
        """Return some values of one row, along one axis; all of them by default."""
        return self.map(lambda a: np.broadcast_to(a, self.dy.shape)[row, columns])

    def leave_gradients_out(self, chosen: Selected) -> GradientRows:
        """Return the rows with a dy of 0 where `chosen`, which broadcasts against them, is True."""
        dy, upstream = np.where(chosen, 0.0, self.dy), self.upstream
        if upstream is not None:
            low, error, times = (np.where(chosen, 0.0, a) for a in (*upstream[:2], upstream.gate.times))
            upstream = Upstream(low, error, upstream.beyond & ~chosen, upstream.gate._replace(times=times))
        return self._replace(dy=dy, upstream=upstream)

    def take_exactly(self, bits: int | None = None) -> list[ExactGradient]:
        """Return each value of these rows as fractions (deviation, gradient g, error of g), in C order.

        Where a gate multiplies dy, the product is calculated to `bits` bits; if `bits` is None, the rounded
        product of `gated` is taken for exact.
        """
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
    """A value's deviation, its gradient g and a bound of the gradient's error, and whether the value counts."""

    deviation: Fraction
    gradient: Fraction
    error: Fraction
    counts: bool


def find_deviations(x: Floats, low: Floats | None, shift: Floats | None) -> Pair:
    """Return x + low − shift, exactly, as pairs; `low` or `shift` is None for 0.

    If `low` is given (x are integers of more than 53 bits), the shift has to be a whole number.
    """
    rest = np.zeros_like(x) if low is None else low
    if shift is None:
        return Pair(x, rest)
    difference = two_diff(x, shift)
    return two_sum(difference.hi, difference.lo + rest)
