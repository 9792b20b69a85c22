"""The least and the largest value of groups, and the scaling by them: nothing is added up, so all is exact."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from normcli.numerics.divisor import Solution, choose_scale_where, replace_zeros, unscale
from normcli.numerics.leaves import Leaves
from normcli.numerics.moments import Moments
from normcli.numerics.pairs import Pair, two_diff

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from normcli.norms.plan import Plan

    Floats = NDArray[np.float64]
    Marks = NDArray[np.bool_]

TOO_LARGE, TOO_SMALL = 2.0**1022, 2.0**-900
"""Differences of values above may overflow, and quotients of values below are no longer exact in pairs."""


def measure_extremes(x: NDArray[Any], counting: Marks | None = None) -> Leaves:
    """Return the least value of each leaf as `sum_hi`, and the largest as `square_hi`.

    Parameters
    ----------
    x : ndarray, shape (leaves, n)
    counting : ndarray of bool or None
        Which values count, of the shape of x. Of a leaf without any the least is ∞, the largest −∞.
    """
    least, largest = (
        reduce(x if counting is None else np.where(counting, x, x.dtype.type(nothing)), axis=-1)
        for reduce, nothing in ((np.minimum.reduce, np.inf), (np.maximum.reduce, -np.inf))
    )
    result = Leaves.empty(x.shape[:-1])
    result.sum_hi[...], result.square_hi[...] = least, largest
    result.sum_hi += 0.0  # which of 0 and −0 is the least depends on the order
    result.square_hi += 0.0
    result.count[...] = x.shape[-1] if counting is None else np.add.reduce(counting, axis=-1)
    return result


def fold_extremes(leaves: Leaves) -> Leaves:
    """Make one record of all leaves along the last axis."""
    result = Leaves.empty(leaves.extreme.shape[:-1])
    result.sum_hi[...] = np.minimum.reduce(leaves.sum_hi, axis=-1)
    result.square_hi[...] = np.maximum.reduce(leaves.square_hi, axis=-1)
    result.count[...] = np.add.reduce(leaves.count, axis=-1)
    return result


def merge_extremes(leaves: Leaves, count: Any) -> Moments:
    """Merge the leaves of groups: `mean` holds the least value, `m2` the largest; NaN where none counts.

    Parameters
    ----------
    leaves : Leaves
        Of shape (groups, leaves).
    count : int or ndarray
        Of the values that count: in any group, or in each.
    """
    folded = fold_extremes(leaves)
    return hold_extremes(count, folded.sum_hi, folded.square_hi)


def hold_extremes(count: Any, least: Floats, largest: Floats) -> Moments:
    """Return the extremes of groups as `solve` takes them; NaN where none counts."""
    zero = np.zeros_like(least)
    nothing = np.equal(count, 0)
    low, high = (np.where(nothing, np.nan, values) for values in (least, largest))
    return Moments(count, Pair(low, zero), Pair(high, zero))


def solve_range(plan: Plan, moments: Moments) -> Solution:
    """Turn extremes into the centre, which is the least value, and the divisor, which is the range."""
    least, largest = moments.mean.hi, moments.m2.hi
    k = choose_scale_where(np.maximum(np.abs(least), np.abs(largest)), TOO_SMALL, TOO_LARGE)
    low, high = (values if k is None else np.ldexp(values, k) for values in (least, largest))
    difference = two_diff(high, low)
    spread = Pair(difference.hi, np.where(np.isfinite(difference.lo), difference.lo, 0.0))
    statistics = {"min": least, "max": largest, "range": unscale(spread.hi, k)}
    divisor = replace_zeros(spread, plan.spec.zero_rule, k)
    return Solution(Pair(low, np.zeros_like(low)), divisor, k, centred=True, statistics=statistics)
