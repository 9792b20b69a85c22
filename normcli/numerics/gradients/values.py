"""The gradients of single values, in pairs, each with a bound of its error."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from normcli.dtypes import is_short_float
from normcli.numerics.deciding import GRADIENT_POWER, PAIRS, PRECISIONS
from normcli.numerics.elements.in_pairs import round_to_odd
from normcli.numerics.gradients.coefficients import LARGEST_VALUE, LEAST_VALUE, is_within
from normcli.numerics.gradients.sums import is_equal, is_moderate, needs_decimals, raise_sizes, take_sizes
from normcli.numerics.pairs import Pair, pair_add, pair_divide, pair_multiply, pair_negate, two_sum
from normcli.numerics.rounding import store
from normcli.tuples import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable

    from numpy.typing import NDArray

    from normcli.dtypes import Floats, Selected
    from normcli.numerics.elements.gate import Gated
    from normcli.numerics.gradients.coefficients import Coefficients
    from normcli.numerics.gradients.rows import GradientRows

_LEAST_RESULT, _LARGEST_RESULT = 2.0**-800, 2.0**1000
"""Results that are not between these are calculated exactly."""


class KnownGradients(NamedTuple):
    """Gradients as pairs, with upper bounds of their errors; `unclear` is True where both may be wrong."""

    value: Pair
    error: Floats
    unclear: Selected

    def keep(self, chosen: Selected | None, otherwise: Any = 0.0) -> KnownGradients:
        """Return the gradients with `otherwise`, exactly, where `chosen` is False; for None, all of them."""
        if chosen is None:
            return self
        error = np.where(chosen, self.error, 0.0)
        return KnownGradients(self.value.keep(chosen, otherwise), error, self.unclear & chosen)


def differentiate(rows: GradientRows, known: Coefficients, gamma: Floats | None, p: float) -> KnownGradients:
    """Return dx of the values of groups.

    Parameters
    ----------
    rows : GradientRows
    known : Coefficients
        The coefficients of each row's group, in arrays of shape (rows, 1).
    gamma : ndarray or None
        The gamma of each row, shape (rows, 1); None for 1, and where gamma varies within groups.
    p : float
        The exponent of the divisor's powers.
    """
    w, w_error = _find_weights(rows, known, p)
    g, mean, term = rows.gradients, known.mean, pair_multiply(w, known.steepness)
    lost = (term.hi == 0.0) & (w.hi != 0.0) & (known.steepness.hi != 0.0)
    error = (
        known.mean_error
        + np.abs(known.steepness.hi) * w_error
        + (PAIRS.error + known.further) * np.abs(term.hi)
        + known.steepness_error * np.abs(w.hi)
    )
    if rows.counted is not None:
        mean, term = (pair.map(lambda a: np.where(rows.counted, a, 0.0)) for pair in (mean, term))
        error = np.where(rows.counted, error, 0.0)
    error = error + rows.error
    rest = pair_add(g, pair_negate(mean))
    inner = pair_add(rest, pair_negate(term))
    error = error + np.where(term.hi == 0.0, 0.0, PAIRS.error * np.abs(rest.hi))
    factors, factor, plain = rows.factors, known.inverse, known.inverse.hi
    if gamma is not None:
        factor, plain = pair_multiply(factor, Pair(gamma, np.zeros_like(gamma))), plain * gamma
        factors = [*factors, gamma]
    value = pair_multiply(inner, factor)
    error = error * np.abs(factor.hi) + known.further * np.abs(value.hi)
    unclear = lost | rows.beyond | _find_unclear(factors, inner.hi, value.hi)
    if known.further:
        unclear |= (rows.deviations.hi != 0.0) & ~is_moderate(rows.deviations.hi)
    endless = np.isnan(known.mean.hi)
    return _judge(KnownGradients(value, error, unclear), known, factors, inner.hi * plain, endless)


def multiply_known(found: KnownGradients, gate: Gated) -> KnownGradients:
    """Return gradients times the factors of a gate before the norm; 0 where a factor is exactly 0.

    Where a gradient or a factor is not finite, the product is calculated in doubles.
    """
    factor, off = gate.evaluate(PRECISIONS["float64"].bits).bound()
    finite = np.isfinite(found.value.hi) & np.isfinite(factor.hi)
    nothing = (factor.hi == 0.0) & (off == 0.0) & finite
    value = pair_multiply(found.value, factor).keep(finite, found.value.hi * factor.hi)
    error = found.error * (np.abs(factor.hi) + off) + np.abs(found.value.hi) * off
    value, usual = value.keep(~nothing), finite & ~nothing
    unclear = found.unclear | (_find_unclear((factor.hi,), found.value.hi, value.hi) & finite)
    return KnownGradients(value, np.where(usual, error, 0.0), unclear & ~nothing & np.isfinite(factor.hi))


def find_shares(rows: GradientRows, known: Coefficients) -> KnownGradients:
    """Return dy · x̂ of the values of groups, whose sum is the derivative with respect to gamma."""
    w, w_error = _find_weights(rows, known, 2.0)
    inner = pair_multiply(w, rows.gated)
    value = pair_multiply(inner, known.inverse)
    error = np.abs(rows.dy * known.inverse.hi) * w_error
    if rows.upstream is not None:
        error = error + rows.upstream.error * np.abs(known.inverse.hi) * (np.abs(w.hi) + w_error)
    factors = (*rows.deviations, rows.dy)
    lost = (value.hi == 0.0) & (w.hi != 0.0) & (rows.dy != 0.0)
    found = KnownGradients(value, error, lost | rows.beyond | _find_unclear(factors, inner.hi, value.hi))
    return _judge(found, known, factors, inner.hi * known.inverse.hi)


def _find_weights(rows: GradientRows, known: Coefficients, p: float) -> tuple[Pair, Any]:
    """Return w of each value in dx = (g − A − w · B) / D, and a bound of its error."""
    d = rows.deviations
    if p == 2.0:
        if not known.centre.hi.any():
            return d, known.centre_error
        return pair_add(d, pair_negate(known.centre)), known.centre_error
    sign = np.sign(d.hi)
    if needs_decimals(p):
        powers = pair_divide(raise_sizes(d, p), Pair(np.where(sign == 0.0, 1.0, d.hi), d.lo))
        powers = powers.map(lambda a: np.where(sign == 0.0, 0.0, a))
        return powers, GRADIENT_POWER.error * np.abs(powers.hi)
    if known.peak is not None:
        sign = np.where(is_equal(take_sizes(d), known.peak), sign, 0.0)
    return Pair(sign, np.zeros_like(sign)), 0.0


def _find_unclear(factors: Any, inner: Floats, value: Floats) -> Selected:
    """Return a bool array, True where products of pairs may have left the range of doubles."""
    unclear = ~is_within(inner, _LEAST_RESULT, _LARGEST_RESULT)
    unclear |= ~is_within(value, _LEAST_RESULT, _LARGEST_RESULT)
    for factor in factors:
        unclear |= ~is_within(factor, LEAST_VALUE, LARGEST_VALUE)
    return unclear


def _judge(
    found: KnownGradients,
    known: Coefficients,
    factors: Iterable[Floats],
    plain: Floats,
    endless: Selected | bool = False,
) -> KnownGradients:
    """Return gradients with the special ones replaced by `plain`, those calculated in doubles.

    Special are gradients with a factor that is not finite, with 1/D = 0 or not finite, or in groups that are
    `endless`. `unclear` of the result is True also for groups whose coefficients have to be calculated exactly.

    Parameters
    ----------
    found : KnownGradients
    known : Coefficients
        The coefficients of each row's group, in arrays of shape (rows, 1); D is the divisor.
    factors : iterable of ndarray
        The numbers that the gradients are made of.
    plain : ndarray
        The gradients in doubles.
    endless : ndarray of bool or bool
        True where a group has a dy that is not finite.
    """
    inverse = known.inverse.hi
    special = (~np.isfinite(inverse) | (inverse == 0.0) | np.isnan(known.steepness.hi)) & ~known.extreme
    special = special | endless
    for factor in factors:
        special = special | ~np.isfinite(factor)
    found = found._replace(unclear=found.unclear | known.extreme)
    return found.keep(~special, plain) if special.any() else found


def round_known(found: KnownGradients, dtype: np.dtype[Any]) -> tuple[NDArray[Any], Selected]:
    """Return gradients in a dtype, rounded once, and an array that is True where that is not decided."""
    hi, lo = found.value
    # What a double holds that comes of numbers without errors may lie between two short floats: it is exact.
    error = np.where((found.error == 0.0) & (lo == 0.0), 0.0, found.error + PAIRS.error * np.abs(hi))
    ends = []
    for end in (-error, error):
        pair = two_sum(hi, lo + end)
        rounded = np.empty(hi.shape, dtype)
        store(rounded, round_to_odd(*pair) if is_short_float(dtype) else pair.hi)
        ends.append(rounded)
    low, high = ends
    return low, np.asarray(found.unclear | ((low != high) & ~np.isnan(hi)))
