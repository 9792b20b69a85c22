"""The gate that multiplies results: act(z) of each number z, in pairs with a bound, or in rationals."""

from __future__ import annotations

import functools
import math
from fractions import Fraction
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from normcli.numerics.deciding import U
from normcli.numerics.elements.activation import QUICK, Activation, split_doubles
from normcli.numerics.elements.activation_in_doubles import estimate
from normcli.numerics.pairs import Pair
from normcli.numerics.rounding import widen
from normcli.tuples import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from normcli.dtypes import Floats, Selected
    from normcli.numerics.elements.activation import Factor

_LEAST, _LOST = 2.0**-900, 2.0**-1070
"""A factor below the first is off by the second at most, as a pair; one without a bound is below the first."""


class Gated(NamedTuple):
    """A gate z: results are multiplied by act(z), with an activation function act.

    Parameters
    ----------
    values : ndarray
        The gate z, which broadcasts against the results.
    activation : Activation
    times : ndarray or None
        A second factor of the results, of the shape of `values`; None for 1.
    is_slope : bool
        Whether results are multiplied by the derivative act′(z) in place of act(z).
    less : ndarray or None
        Finite doubles, of the results' shape, that are subtracted from the products before they are rounded;
        None for 0.
    given_axes : int
        The number of axes that the gate was given with: the last ones of `values`.
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
        """The gate z and `times` (or None) as float64, each with the number to use for None: 0 and 1."""
        return (widen(self.values), 0.0), (None if self.times is None else widen(self.times), 1.0)

    @np.errstate(all="ignore")
    def estimate(self) -> tuple[Floats, Floats]:
        """Return act(z), or act′(z) if `is_slope`, times `times`, in doubles, and upper bounds of the errors.

        The bounds are 0 where z or `times` is not finite.
        """
        given, times = widen(self.values), None if self.times is None else widen(self.times)
        finite = np.isfinite(given)
        value, error = estimate(self.activation, np.where(finite, given, 0.0), slope=self.is_slope)
        if not finite.all():
            value = np.where(finite, value, self.activation.find_limits(given, slope=self.is_slope))
            error = np.where(finite, error, 0.0)
        if times is None:
            return value, error
        product, usual = value * times, finite & np.isfinite(times)
        small = (np.abs(product) < _LEAST) & (value != 0.0) & (times != 0.0)
        error = error * np.abs(times) + U * np.abs(product) + np.where(small, _LOST, 0.0)
        # As in pairs, no zero is negative that a finite gate makes.
        return np.where(usual, product + 0.0, product), np.where(usual, error, 0.0)

    def activate(self) -> Floats:
        """Return the gate's factors in doubles, read-only: act(z), or act′(z) of a slope, times `times`."""
        given = (None if one is None else np.asarray(widen(one)) for one in (self.values, self.times))
        packed = (None if one is None else (one.shape, one.tobytes()) for one in given)
        return _activate(self.activation, self.is_slope, *packed)

    @np.errstate(all="ignore")
    def evaluate(self, bits: int) -> Evaluated:
        """Return act(z), or act′(z) if `is_slope`, times `times`, in pairs.

        `bits` is the precision of the results that these factors multiply.
        """
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
        """Return act(z) · times, or act′(z) · times if `is_slope`, to `bits` bits, and a bound of its error.

        A factor that is infinite or NaN is returned as 0: results with it are decided in doubles.
        """
        if not math.isfinite(z):
            plain = float(self.activation.find_limits(np.array(z), slope=self.is_slope)) * times
            return Fraction(plain if math.isfinite(plain) else 0.0), Fraction(0)
        if not math.isfinite(times):
            return Fraction(0), Fraction(0)
        value, error = self.activation.evaluate_exactly(Fraction(z), bits, slope=self.is_slope)
        return value * Fraction(times), error * abs(Fraction(times))

    def list_exactly(self, bits: int) -> Iterator[tuple[Fraction, Fraction]]:
        """Yield the factor of each value, in C order, to `bits` bits, and a bound of its error."""
        columns = (np.full(np.shape(self.values), o) if a is None else a for a, o in self.columns)
        for z, times in zip(*(a.reshape(-1).tolist() for a in columns), strict=True):
            yield self.evaluate_exactly(z, times, bits)


_Packed: TypeAlias = "tuple[tuple[int, ...], bytes]"
"""An array of float64: its shape, and the bytes of its values."""


@functools.lru_cache(maxsize=32)  # the search for faults asks for those of one gate again and again
def _activate(act: Activation, is_slope: bool, z: _Packed, times: _Packed | None) -> Floats:
    """Return a gate's factors in doubles; `times` is None for 1."""
    given = (None if one is None else np.frombuffer(one[1]).reshape(one[0]) for one in (z, times))
    values, factor = given
    found = Gated(values, act, factor, is_slope).evaluate(QUICK)
    factors = np.asarray(np.where(found.special, found.plain, found.factor.pair.hi))
    factors.flags.writeable = False
    return factors


class Evaluated(NamedTuple):
    """The factors by which a gate multiplies results, in pairs with bounds.

    Parameters
    ----------
    factor : Factor
        act(z) or act′(z), times the gate's `times`; not valid where `special` is True.
    special : ndarray of bool
        True where z or `times` is not finite: `plain` is the factor there.
    plain : ndarray
        The factors in doubles.
    times : ndarray or float
        The gate's `times`, which `factor` and `plain` include.
    """

    factor: Factor
    special: Selected
    plain: Floats
    times: Any = 1.0

    def bound(self) -> tuple[Pair, Floats]:
        """Return the factors as pairs, and upper bounds of their errors."""
        value, error = self.factor.pair, np.broadcast_to(self.factor.error, self.plain.shape)
        hi = np.where(self.special, self.plain, value.hi)
        lost = np.where((np.abs(hi) < _LEAST) & (self.factor.value.hi != 0.0), _LOST, 0.0)
        error = np.where(np.isfinite(error), np.abs(hi) * error + lost, _LEAST * (1.0 + np.abs(self.times)))
        return Pair(hi, np.where(self.special, 0.0, value.lo)), np.where(self.special, 0.0, error)
