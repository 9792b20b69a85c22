"""The gate that multiplies results: the factor that each value of z gives, with a bound, or exactly."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np

from normcli.numerics.elements.activation import QUICK, Activation, split_doubles
from normcli.numerics.pairs import Pair
from normcli.numerics.rounding import widen
from normcli.tuples import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from normcli.dtypes import Floats, Selected
    from normcli.numerics.elements.activation import Factor

_LEAST, _LOST = 2.0**-900, 2.0**-1070
"""Smaller factors as pairs are off by no more than the second; of unknown ones, the size is below the first."""


class Gated(NamedTuple):
    """A gate that multiplies results behind an activation.

    Parameters
    ----------
    values : ndarray
        It broadcasts against the results.
    activation : Activation
    times : ndarray or None
        What is multiplied with it, of the shape of the values.
    is_slope : bool
        Whether the activation's derivative multiplies, in place of the activation.
    less : ndarray or None
        What is subtracted from the products before they are rounded, finite doubles of the results' shape.
    given_axes : int
        How many of the last axes the gate was given with.
    """

    values: Any
    activation: Activation = Activation.SILU
    times: Any = None
    is_slope: bool = False
    less: Any = None
    given_axes: int = 0

    def map(self, function: Callable[[Any], Any]) -> Gated:
        """Return the gate with a function (an index, a reshape) applied to each array."""
        times, less = (None if a is None else function(a) for a in (self.times, self.less))
        return self._replace(values=function(self.values), times=times, less=less)

    @property
    def columns(self) -> tuple[tuple[Floats, float], tuple[Floats | None, float]]:
        """The numbers that `evaluate_exactly` takes, and what stands for each where there are none."""
        return (widen(self.values), 0.0), (None if self.times is None else widen(self.times), 1.0)

    def activate(self) -> Floats:
        """Return act(z) in doubles."""
        found = self.evaluate(QUICK)
        return np.asarray(np.where(found.special, found.plain, found.factor.pair.hi))

    @np.errstate(all="ignore")
    def evaluate(self, bits: int) -> Evaluated:
        """Return the factor of results of so many bits in pairs."""
        z, act = widen(self.values), self.activation
        finite = np.isfinite(z)
        z = np.where(finite, z, 0.0)
        known = act.find_slope(z, bits) if self.is_slope else act.evaluate(z, bits)
        limits = act.find_limits(widen(self.values), slope=self.is_slope)
        if self.times is None:
            return Evaluated(known, ~finite, limits)
        times = widen(self.times)
        ordinary = np.isfinite(times)
        plain = np.where(finite, known.pair.hi, limits) * times
        product = known.multiply(split_doubles(np.where(ordinary, times, 0.0)))
        return Evaluated(product, ~(finite & ordinary), plain, times)

    def evaluate_exactly(self, z: float, times: float, bits: int) -> tuple[Fraction, Fraction]:
        """Return the factor that one number gives, as an activation does, with `times` of 1 for none.

        One that is not finite counts as 0: what it is a part of is decided elsewhere.
        """
        if not math.isfinite(z):
            plain = float(self.activation.find_limits(np.array(z), slope=self.is_slope)) * times
            return Fraction(plain if math.isfinite(plain) else 0.0), Fraction(0)
        if not math.isfinite(times):
            return Fraction(0), Fraction(0)
        value, error = self.activation.evaluate_exactly(Fraction(z), bits, slope=self.is_slope)
        return value * Fraction(times), error * abs(Fraction(times))

    def list_exactly(self, bits: int) -> Iterator[tuple[Fraction, Fraction]]:
        """Yield the factor of each value, in C order."""
        columns = (np.full(np.shape(self.values), o) if a is None else a for a, o in self.columns)
        for z, times in zip(*(a.reshape(-1).tolist() for a in columns), strict=True):
            yield self.evaluate_exactly(z, times, bits)


class Evaluated(NamedTuple):
    """The factors of a gate.

    Parameters
    ----------
    factor : Factor
    special : ndarray of bool
        Which are not finite.
    plain : ndarray
        What doubles give of these.
    times : ndarray or float
        What all were multiplied with.
    """

    factor: Factor
    special: Selected
    plain: Floats
    times: Any = 1.0

    def bound(self) -> tuple[Pair, Floats]:
        """Return the factors as pairs, and how far off these may be."""
        value, error = self.factor.pair, np.broadcast_to(self.factor.error, self.plain.shape)
        hi = np.where(self.special, self.plain, value.hi)
        lost = np.where((np.abs(hi) < _LEAST) & (self.factor.value.hi != 0.0), _LOST, 0.0)
        error = np.where(np.isfinite(error), np.abs(hi) * error + lost, _LEAST * (1.0 + np.abs(self.times)))
        return Pair(hi, np.where(self.special, 0.0, value.lo)), np.where(self.special, 0.0, error)
