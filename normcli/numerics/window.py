"""The sliding window of local response normalization: the one computation that no group can express."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from normcli.numerics.pairs import Pair, pair_add, quick_two_sum, two_prod, two_sum

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from normcli.plan import Plan, Window

    Floats = NDArray[np.float64]


def normalize_window(plan: Plan, values: NDArray[Any], out: NDArray[Any] | None) -> dict[str, Floats]:
    """Divide each value by (k + α · Σx²/size)^exponent; outside the tensor x counts as 0.

    Parameters
    ----------
    plan : Plan
        With a window, along its one axis.
    values : ndarray
    out : ndarray or None
        Where the result goes; None to measure only.

    Returns
    -------
    dict
        `ms`, the mean square Σx²/size, and `rstd`, one over the divisor, of the tensor's shape.
    """
    assert plan.window is not None  # by the plan: every row that divides by a window has one
    window, axis = plan.window, plan.axes[0]
    with np.errstate(all="ignore"):
        x = np.asarray(values, dtype=np.float64)
        total = _sum_squares(np.moveaxis(x, axis, 0), window)
        mean_square = np.moveaxis(total.hi / window.size, 0, axis)
        divisor = _raise_to_power(Pair(*(np.moveaxis(part, 0, axis) for part in total)), window)
        if out is not None:
            np.copyto(out, x / divisor, casting="same_kind")
        return {"ms": np.ascontiguousarray(mean_square), "rstd": 1.0 / divisor}


def _sum_squares(x: Floats, window: Window) -> Pair:
    """Return the sum of squares of each window along the first axis, as a pair."""
    squares = two_prod(x, x)
    squares = Pair(squares.hi, np.where(np.isfinite(squares.lo), squares.lo, 0.0))
    total = Pair(np.zeros_like(x), np.zeros_like(x))
    length = x.shape[0]
    for shift in range(-min(window.before, length), min(window.after, length) + 1):
        here = slice(max(0, -shift), length - max(0, shift))
        there = slice(max(0, -shift) + shift, length - max(0, shift) + shift)
        summed = pair_add(total.map(lambda a, s=here: a[s]), squares.map(lambda a, s=there: a[s]))
        plain = total.hi[here] + squares.hi[there]
        finite = np.isfinite(plain)
        total.hi[here] = np.where(finite, summed.hi, plain)
        total.lo[here] = np.where(finite, summed.lo, 0.0)
    return total


def _raise_to_power(total: Pair, window: Window) -> Floats:
    """Return (k + α · total/size)^exponent: the base as a pair, so that the power magnifies no rounding."""
    scaled = two_prod(total.hi, window.alpha)
    scaled = quick_two_sum(scaled.hi, scaled.lo + total.lo * window.alpha)
    quotient = scaled.hi / window.size
    product = two_prod(quotient, float(window.size))
    rest = (((scaled.hi - product.hi) - product.lo) + scaled.lo) / window.size
    base = two_sum(window.k, quotient)
    low = base.lo + rest
    power = base.hi**window.exponent
    correction = power * (window.exponent * (low / base.hi))
    corrected: Floats = np.where(np.isfinite(correction), power + correction, power)
    plain = (
        window.k + window.alpha * total.hi / window.size
    ) ** window.exponent  # of infinities, no error is known
    return np.where(np.isfinite(corrected), corrected, plain)
