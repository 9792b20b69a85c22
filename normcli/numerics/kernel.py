"""The kernel: a block of values in, statistics and normalized values out, for every row of the table.

It reads the plan's record (what to centre by, what to divide by) and knows no norm by name. Only what is
another computation altogether, such as the sliding window, has a function of its own behind that record.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from normcli.moments import gather_moments
from normcli.norms import Centre, Divisor, EpsMode

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from numpy.typing import NDArray

    from normcli.plan import Plan

    FloatArray = NDArray[np.float64]


class Measured(NamedTuple):
    """What the groups of a block are measured to be.

    Parameters
    ----------
    statistics : mapping of str to ndarray of float64
        By the names of the norm's row, each with 1 for each reduced axis.
    centred : ndarray of float64
        The block less its centre, if the norm has one.
    divisor : ndarray of float64
        What the centred block is divided by; it broadcasts against the block.
    """

    statistics: Mapping[str, FloatArray]
    centred: FloatArray
    divisor: FloatArray


def normalize_block(
    plan: Plan, block: FloatArray, gamma: FloatArray | None, beta: FloatArray | None
) -> tuple[FloatArray, Mapping[str, FloatArray]]:
    """Normalize a block that holds whole groups.

    Parameters
    ----------
    plan : Plan
    block : ndarray of float64
        In the plan's view.
    gamma, beta : ndarray of float64 or None
        Of a shape that broadcasts against the view.

    Returns
    -------
    tuple of (ndarray, mapping)
        gamma · (centred / divisor) + beta, and the statistics with 1 for each reduced axis.

    Notes
    -----
    Where the divisor is 0 (a constant group without eps) the quotient is 0, its limit for eps → 0.
    """
    with np.errstate(all="ignore"):
        measured = measure_block(plan, block)
        result = measured.centred / measured.divisor
        zero = measured.divisor == 0.0
        if zero.any():
            result = np.where(zero & (measured.centred == 0.0), 0.0, result)
        if gamma is not None:
            result *= gamma
        if beta is not None:
            result += beta
    return result, measured.statistics


def measure_block(plan: Plan, block: FloatArray) -> Measured:
    """Measure the groups of a block that holds whole groups, without normalizing it.

    Parameters
    ----------
    plan : Plan
    block : ndarray of float64
        In the plan's view.
    """
    return _MEASURES[plan.norm.divisor](plan, block)


def _measure_deviation(plan: Plan, block: FloatArray) -> Measured:
    moments, centred = gather_moments(block, plan.view_axes)
    variance = moments.variance(plan.ddof)
    deviation = np.sqrt(variance)
    divisor = _add_eps(plan, variance, deviation)
    statistics = {"mean": moments.mean, "var": variance, "std": deviation, "rstd": 1.0 / divisor}
    return Measured(statistics, centred if plan.norm.centre is Centre.MEAN else block, divisor)


def _measure_root_mean_square(plan: Plan, block: FloatArray) -> Measured:
    mean_square = np.add.reduce(block * block, axis=plan.view_axes, keepdims=True) / plan.group_size
    root = np.sqrt(mean_square)
    divisor = _add_eps(plan, mean_square, root)
    return Measured({"ms": mean_square, "rms": root, "rstd": 1.0 / divisor}, block, divisor)


def _add_eps(plan: Plan, square: FloatArray, root: FloatArray) -> FloatArray:
    eps = plan.eps or 0.0
    divisor = np.sqrt(square + eps) if plan.eps_mode is EpsMode.INSIDE else root + eps
    return np.where(divisor == 0.0, 1.0, divisor) if plan.norm.constant_divides_by_one else divisor


def _measure_length(plan: Plan, block: FloatArray) -> Measured:
    assert plan.p is not None  # by the plan: every row that divides by a length has an exponent
    length = _lp_length(block, plan.view_axes, plan.p)
    divisor = length if plan.eps is None else np.maximum(length, plan.eps)
    return Measured({"norm": length}, block, divisor)


def _lp_length(block: FloatArray, axes: tuple[int, ...], p: float) -> FloatArray:
    """(Σ|x|^p)^(1/p); for p = 0 the number of values that are not 0, for p = ∞ the largest |x|."""
    size = np.abs(block)
    if p == 0:
        counted = np.where(np.isnan(size), np.nan, size != 0.0)
        return np.asarray(np.add.reduce(counted, axis=axes, keepdims=True))
    if math.isinf(p):
        return np.asarray(np.maximum.reduce(size, axis=axes, keepdims=True, initial=0.0))
    if p == 1:
        return np.asarray(np.add.reduce(size, axis=axes, keepdims=True))
    if p == 2:
        return np.sqrt(np.add.reduce(size * size, axis=axes, keepdims=True))
    return np.asarray(np.add.reduce(size**p, axis=axes, keepdims=True) ** (1.0 / p))


def _measure_window(plan: Plan, block: FloatArray) -> Measured:
    """Sum the squares of a sliding window along the one axis, cut off at the edges (where x counts as 0)."""
    assert plan.window is not None  # by the plan: every row that divides by a window has one
    window, axis = plan.window, plan.view_axes[0]
    square = np.moveaxis(block * block, axis, 0)
    sums = np.zeros_like(square)
    length = square.shape[0]
    for shift in range(-min(window.before, length), min(window.after, length) + 1):
        stop = length - max(0, shift)
        start = max(0, -shift)
        sums[start:stop] += square[start + shift : stop + shift]
    mean_square = np.moveaxis(sums, 0, axis) / window.size
    divisor = (window.k + window.alpha * mean_square) ** window.exponent
    return Measured({"ms": mean_square, "rstd": 1.0 / divisor}, block, divisor)


_MEASURES: Mapping[Divisor, Callable[[Plan, FloatArray], Measured]] = {
    Divisor.DEVIATION: _measure_deviation,
    Divisor.ROOT_MEAN_SQUARE: _measure_root_mean_square,
    Divisor.LP_NORM: _measure_length,
    Divisor.WINDOW_POWER: _measure_window,
}
