"""The mean and divisor of each group that y shows, how closely, and how far a variant's are from them."""

from __future__ import annotations

import functools
import itertools
import math
from typing import TYPE_CHECKING

import numpy as np

from normcli.algorithms import summation_orders as sums
from normcli.checking.ulp import measure_unit
from normcli.identifying.faults.variant import Used, Variant
from normcli.identifying.models.divisor_fit import COMMON_EPS

if TYPE_CHECKING:
    from typing import Any

    from normcli.dtypes import Floats
    from normcli.identifying.faults.case import Case

_OF_ONE_ROUNDING = 1.0 / math.sqrt(12.0)
"""The root mean square error of one rounding, in units in the last place."""

_MOST_BITS = 24.0
"""The most bits of evidence of one statistic."""


@np.errstate(all="ignore")
def fit_apart(case: Case) -> Used:
    """Return the least-squares means with the norm's own divisors, and the divisors with its own means."""
    weight, y = case.weigh_standardized()
    moved = case.x - case.mean
    mean = case.mean + case.average(weight * (moved - case.divisor * y))
    return Used(mean, case.average(weight * moved**2) / case.average(weight * moved * y))


@functools.lru_cache(maxsize=8)  # of one case, each variant asks
@np.errstate(all="ignore")
def measure_doubt(case: Case) -> Used:
    """Return the standard errors of the means and divisors recovered from y, divided by the group's divisor.

    y is a line a · x + b in each group, whose a and b give divisor and mean; the errors follow from the
    distances of y from the line. A distance counts as at least one rounding of y, and one rounding of the
    kernel's arithmetic is added. Equal values of x count once, as y rounds them alike.
    """
    used = case.used
    weight, y = case.weigh_standardized()
    moved = (case.x - used.mean) / used.divisor
    centre = case.average(weight * moved) if case.centres else 0.0
    size = case.gamma * case.factor
    rounding = _OF_ONE_ROUNDING * measure_unit(np.nan_to_num(case.y), case.dtype) / size
    least = case.average(np.where(weight > 0.0, weight * np.square(rounding), 0.0))
    free = np.maximum(1.0, _count_distinct(case) - 1.0 - case.centres)
    off = np.sqrt(np.maximum(case.average(weight * np.square(y - moved)), least) / free)
    rounded = _OF_ONE_ROUNDING * case.arithmetic
    of_divisor = np.hypot(off / np.sqrt(case.average(weight * np.square(moved - centre))), rounded)
    size = 1.0 + case.average(np.abs(case.x)) / np.abs(used.divisor)
    return Used(np.sqrt(off**2 + np.square(centre * of_divisor) + np.square(rounded * size)), of_divisor)


def _count_distinct(case: Case) -> Floats:
    """Return the number of different values of x in each group."""
    kept = [axis for axis in range(case.x.ndim) if axis not in case.axes]
    rows = np.sort(case.x.transpose(*kept, *case.axes).reshape(*(case.x.shape[axis] for axis in kept), -1))
    counts = 1.0 + np.count_nonzero(np.diff(rows), -1)
    return np.expand_dims(counts, case.axes)


@np.errstate(all="ignore")
def measure_distance(case: Case, variant: Variant) -> tuple[Floats, ...] | None:
    """Return how far a variant's divisors (and means) are from those recovered from y, in standard errors.

    The tuple has an array of the divisors' distances, and for norms with a mean one of the means'. Each has a
    number for each group that shows a norm: groups of equal values do not. A relative difference of the
    divisors that all groups share does not count up to one unit in the last place, as a kernel's root may have
    it. Where both divisors are infinite, the distance is 0. None for a variant that changes more than
    statistics, or has several for one group.
    """
    if (
        not case.has_moments
        or variant.result is not None
        or variant.gamma is not None
        or variant.beta is not None
    ):
        return None
    divisor, mean = case.find_divisor(variant), case.mean if variant.mean is None else variant.mean
    shape = case.used.divisor.shape
    if any(np.broadcast_shapes(shape, one.shape) != shape for one in (divisor, mean)):
        return None
    is_lost = np.isinf(divisor) & (case.used.divisor == divisor)  # such a group shows no mean
    off = np.where(is_lost, 0.0, case.used.divisor / divisor - 1.0)
    off = off - np.clip(np.median(off), -case.arithmetic, case.arithmetic)
    every = [np.abs(off) / measure_doubt(case).divisor]
    if case.centres:
        every.append(np.abs(case.used.mean - mean) / (np.abs(divisor) * measure_doubt(case).mean))
    counted = case.shows_norm.any(case.axes, keepdims=True)
    return tuple(np.nan_to_num(np.where(is_lost, 0.0, one), nan=np.inf)[counted] for one in every)


def lies_near(case: Case, variant: Variant, most: float) -> bool:
    """Return True if a variant's statistics are within `most` standard errors of those recovered from y.

    The root mean square over groups counts. False where `measure_distance` returns None, as for another gamma.
    """
    off = measure_distance(case, variant)
    return off is not None and all(not one.size or np.mean(np.square(one)) <= most**2 for one in off)


def weigh_statistics(case: Case, variant: Variant) -> float | None:
    """Return the evidence, in bits, that the statistics recovered from y are a variant's and not the norm's.

    It is summed over all groups, so that errors below one rounding show in many groups together. None where
    `measure_distance` returns None, as for another gamma.
    """
    far, near = measure_distance(case, Variant()), measure_distance(case, variant)
    if far is None or near is None:
        return None
    return sum(len(there) * _compare(here, there) for here, there in zip(far, near, strict=True))


def _compare(far: Floats, near: Floats) -> float:
    """Return log2(√(1 + mean(far²)) / √(1 + mean(near²))), at most 24, for distances in standard errors.

    0 without distances, and if `near` has an infinite one; 24 if only `far` has.
    """
    if not far.size:
        return 0.0
    sizes = [math.sqrt(1.0 + float(np.mean(np.square(one)))) for one in (far, near)]
    if not all(map(math.isfinite, sizes)):
        return 0.0 if not math.isfinite(sizes[1]) else _MOST_BITS
    return min(math.log2(sizes[0] / sizes[1]), _MOST_BITS)


_ADDED = (sums.add_in_turn, sums.add_pairwise, sums.add_by_halves, sums.add_in_vectors)
"""The orders of addition in which E[x²] − E[x]² is calculated, to compare it with a kernel's variances."""

_OF_A_GROUP = 1.0
"""Bits of evidence that each group costs, in which two errors may be near each other by chance."""


@np.errstate(all="ignore")
def weigh_one_pass(
    rows: Floats, divisors: Floats, right: Floats, dtype: np.dtype[Any], unbiasing: float, *, outside: bool
) -> float:
    """Return the evidence, in bits, that variances have the errors of E[x²] − E[x]² in a known order of sums.

    Errors of the same size alone are none: those of any wrong divisor may be as large. A group counts how much
    nearer the variance is to the one calculated in a dtype than to the right one, at most 24 bits. Of the usual
    eps, the one with most evidence counts.

    Parameters
    ----------
    rows : ndarray, shape (groups, values)
        The values of x.
    divisors, right : ndarray, shape (groups,)
        The divisors recovered from y, and the right variances.
    dtype : numpy.dtype
        The dtype of the sums.
    unbiasing : float
        The factor n / (n − ddof).
    outside : bool
        Whether eps is added outside the root.
    """
    rows = rows.astype(dtype)
    count, found = dtype.type(rows.shape[1]), []
    every = [(divisors - eps) ** 2 if outside else divisors**2 - eps for eps in COMMON_EPS]
    for add in _ADDED:
        mean, square = add(rows) / count, add(rows * rows) / count
        wide = square.astype(np.float64) - np.square(mean.astype(np.float64))
        for variance, shown in itertools.product((square - mean * mean, wide.astype(dtype)), every):
            left = np.abs(shown - np.maximum(variance, 0.0) * unbiasing)
            nearer = np.nan_to_num(np.log2(np.abs(shown - right) / left))
            found.append(float((np.clip(nearer, -_MOST_BITS, _MOST_BITS) - _OF_A_GROUP).sum()))
    return max(found) - math.log2(len(found))
