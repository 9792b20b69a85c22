"""The sliding window of local response normalization: the one computation that no group can express."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from normcli.numerics.moments import choose_scale
from normcli.numerics.pairs import Pair, pair_add_any, quick_two_sum, two_prod, two_square, two_sum

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from normcli.dtypes import Floats, Selected
    from normcli.norms.plan import Plan, Window


_TOO_LARGE, _TOO_SMALL = 2.0**900, 2.0**-800
"""Larger sums of squares, or smaller ones if k is as small, are calculated again of scaled values."""

_MOST_SHIFT = 10_000
"""More than any exponent of float64, and few enough bits for `ldexp`."""


def normalize_windows(plan: Plan, x: Floats, axes: tuple[int, ...]) -> tuple[Floats, dict[str, Floats]]:
    """Divide each value by (k + α · Σx²/divisor)^exponent; outside the tensor x counts as 0.

    Parameters
    ----------
    plan : Plan
        With a window.
    x : ndarray
        Whole along the window's axis.
    axes : tuple of int
        That axis.

    Returns
    -------
    tuple of (ndarray, dict)
        The result; `ms`, the mean square Σx²/size, and `rstd`, one over the divisor: all of the shape of x.
    """
    assert plan.spec.window is not None  # by the plan: every row that divides by a window has one
    window = plan.spec.window
    values = np.moveaxis(x, axes[0], 0)
    total = _sum_squares(values, window)
    divisor = _raise_to_power(total, window.k, window)
    mean_square, rstd = total.hi / window.size, 1.0 / divisor
    result = values / divisor
    extreme = ~(total.hi < _TOO_LARGE)
    if abs(window.k) < _TOO_SMALL:
        extreme |= total.hi < _TOO_SMALL
    if extreme.any():
        again = _normalize_scaled(values, np.nonzero(extreme), window)
        result[extreme], mean_square[extreme], rstd[extreme] = again
    y, ms, r = (np.moveaxis(array, 0, axes[0]) for array in (result, mean_square, rstd))
    return y, {"ms": ms, "rstd": r}


def count_in_windows(selected: Selected, window: Window, axis: int) -> Floats:
    """Return how many selected values each window along an axis holds."""
    along = np.moveaxis(selected, axis, 0)
    padded = _pad(along, window)
    windows = np.lib.stride_tricks.sliding_window_view(padded, len(padded) - len(along) + 1, axis=0)
    return np.moveaxis(np.add.reduce(windows, axis=-1, dtype=np.float64), 0, axis)


def _sum_squares(x: Floats, window: Window) -> Pair:
    """Return the sum of squares of each window along the first axis, as a pair."""
    squares = _square(_pad(x, window))
    total = Pair(np.zeros_like(x), np.zeros_like(x))
    for start in range(len(squares.hi) - len(x) + 1):
        total = pair_add_any(total, squares.map(lambda a, start=start: a[start : start + len(x)]))
    return total


def _pad(x: NDArray[Any], window: Window) -> NDArray[Any]:
    """Return values with zeros before and behind the first axis, as far as the windows reach."""
    before, after = min(window.before, len(x)), min(window.after, len(x))
    return np.pad(x, ((before, after), *[(0, 0)] * (x.ndim - 1)))


def _square(x: Floats) -> Pair:
    squares = two_square(x)
    return Pair(squares.hi, np.where(np.isfinite(squares.lo), squares.lo, 0.0))


def _raise_to_power(total: Pair, k: Floats | float, window: Window) -> Floats:
    """Return (k + α · total/divisor)^exponent: the base as a pair, so that the power magnifies no rounding."""
    scaled = two_prod(total.hi, window.alpha)
    scaled = quick_two_sum(scaled.hi, scaled.lo + total.lo * window.alpha)
    quotient = scaled.hi / window.divisor
    product = two_prod(quotient, float(window.divisor))
    rest = (((scaled.hi - product.hi) - product.lo) + scaled.lo) / window.divisor
    base = two_sum(k, quotient)
    low = base.lo + rest
    power = base.hi**window.exponent
    correction = power * (window.exponent * (low / base.hi))
    corrected: Floats = np.where(np.isfinite(correction), power + correction, power)
    plain = (k + window.alpha * total.hi / window.divisor) ** window.exponent  # infinities have no known error
    return np.where(np.isfinite(corrected), corrected, plain)


def _normalize_scaled(
    x: Floats, places: tuple[NDArray[np.intp], ...], window: Window
) -> tuple[Floats, Floats, Floats]:
    """Return result, mean square and rstd at some places, whose squares leave float64.

    Values are multiplied by 2ᵏ, one k a window, and the constant of the divisor by its square. The divisor is
    then too large by 2 to the power of 2k · exponent: the fraction of that goes into a factor, the rest into
    the exponent.
    """
    first, *others = places
    padded = _pad(x, window)
    steps = np.arange(len(padded) - len(x) + 1)
    members = padded[(first[:, None] + steps, *(index[:, None] for index in others))]
    k = choose_scale(np.maximum(np.maximum.reduce(np.abs(members), axis=1), np.sqrt(abs(window.k))))
    total = Pair(np.zeros(len(k)), np.zeros(len(k)))
    for column in np.ldexp(members, k[:, None]).T:
        total = pair_add_any(total, _square(column))
    power = _raise_to_power(total, np.ldexp(window.k, 2 * k), window)
    shift = two_prod(-2.0 * k, window.exponent)
    whole = np.rint(shift.hi)
    power *= np.exp2((shift.hi - whole) + shift.lo)
    whole = np.clip(whole, -_MOST_SHIFT, _MOST_SHIFT).astype(np.int64)
    result = np.ldexp(np.ldexp(x[places], k) / power, -whole - k)
    mean_square = np.ldexp(total.hi / window.size, -2 * k)
    return result, mean_square, np.ldexp(1.0 / power, -whole)
