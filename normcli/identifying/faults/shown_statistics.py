"""The divisors that y shows: how closely, and whether E[x²] − E[x]² has their errors."""

from __future__ import annotations

import functools
import itertools
import math
from typing import TYPE_CHECKING

import numpy as np

from normcli.algorithms import summation_orders as sums
from normcli.checking.half_precision import HALVES
from normcli.checking.ulp import measure_unit
from normcli.dtypes import find_type, get_eps
from normcli.identifying.faults.variant import Used, weigh_standardized
from normcli.identifying.models.divisor_fit import COMMON_EPS
from normcli.numerics.rounding import round_to_short

if TYPE_CHECKING:
    from typing import Any

    from normcli.dtypes import Floats
    from normcli.identifying.faults.case import Case

_OF_ONE_ROUNDING = 1.0 / math.sqrt(12.0)
"""The root mean square error of one rounding, in units in the last place."""

MOST_BITS = 24.0
"""The most bits of evidence of one value or statistic."""


@functools.lru_cache(maxsize=8)  # of one case, each variant asks
@np.errstate(all="ignore")
def measure_doubt(case: Case) -> Used:
    """Return the standard errors of the means and divisors recovered from y, divided by the group's divisor.

    y is a line a · x + b in each group, whose a and b give divisor and mean; the errors follow from the
    distances of y from the line. A distance counts as at least one rounding of y, and one rounding of the
    kernel's arithmetic is added. Equal values of x count once, as y rounds them alike.
    """
    used = case.used
    weight, y = weigh_standardized(case)
    moved = (case.x - used.mean) / used.divisor
    centre = case.average_judged(weight * moved) if case.centres else 0.0
    size = case.gamma * case.factor
    rounding = _OF_ONE_ROUNDING * measure_unit(np.nan_to_num(case.y), case.dtype) / size
    least = case.average_judged(np.where(weight > 0.0, weight * np.square(rounding), 0.0))
    free = np.maximum(1.0, _count_distinct(case) - 1.0 - case.centres)
    off = np.sqrt(np.maximum(case.average_judged(weight * np.square(y - moved)), least) / free)
    rounded = _OF_ONE_ROUNDING * case.arithmetic
    of_divisor = np.hypot(off / np.sqrt(case.average_judged(weight * np.square(moved - centre))), rounded)
    size = 1.0 + case.average(np.abs(case.x)) / np.abs(used.divisor)
    return Used(np.sqrt(off**2 + np.square(centre * of_divisor) + np.square(rounded * size)), of_divisor)


def _count_distinct(case: Case) -> Floats:
    """Return the number of different values of x in each group.

    Without mean and gamma, values that differ by a sign or a power of two count once: so do their roundings.
    """
    rows = case.lay_rows(case.x)
    if not case.centres and case.gamma.size == 1:
        rows = np.frexp(np.abs(rows))[0]
    rows = np.sort(rows.reshape(*rows.shape[: rows.ndim - len(case.axes)], -1))
    counts = 1.0 + np.count_nonzero(np.diff(rows) > 0.0, -1)  # NaN is last
    return np.expand_dims(counts, case.axes)


_STEPS = 8.0


def count_roundings(count: int) -> float:
    """Return the bound on the relative error of a mean of `count` numbers of one sign, in machine epsilons."""
    return _STEPS + math.sqrt(count)


_SHARED = 8.0
"""The largest |median| of divisors' relative errors that scatter, as a multiple of their standard deviation."""

_FEWEST_SHARED = 4
"""The fewest groups that show whether the errors of their divisors scatter."""


def is_shared(factors: Floats) -> bool:
    """Return True if divisors are off by one factor in all groups; False for fewer than 4 groups.

    `factors` has used divisor / right divisor of each group. Errors of sums would scatter over the groups.
    """
    off = factors - 1.0
    return bool(off.size >= _FEWEST_SHARED and not abs(np.median(off)) <= _SHARED * np.std(off))


_TOLD = 16.0
"""Machine epsilons of half precision are at least this many times an error that shows numbers of it."""


def shows_cancelling(used: Floats, right: Floats, skew: Floats, count: int, unit: float) -> bool:
    """Return True if divisors have the errors of E[x²] − E[x]² as the variance, and of no other arithmetic.

    Errors of this formula grow with the square of |mean| / deviation; those of two passes, and of Welford's
    updates, grow at most in proportion to it. Groups without divisor do not count. False if the divisors are
    numbers of half precision, or the roots of such.

    Parameters
    ----------
    used, right : ndarray, shape (groups,)
        The divisors recovered from y, and the right ones.
    skew : ndarray, shape (groups,)
        |mean| / deviation of each group.
    count : int
        The number of values in a group.
    unit : float
        The machine epsilon of the kernel's arithmetic.
    """
    known = np.isfinite(used / right)
    used, right, skew = used[known], right[known], skew[known]
    off, roundings = np.abs(used / right - 1.0), unit * count_roundings(count)
    other = roundings + 2.0 * unit * skew
    if used.size < _FEWEST_SHARED or is_shared(used / right) or not np.any(off > other):
        return False
    told = [name for name in HALVES if np.all(_TOLD * other <= get_eps(np.dtype(find_type(name))))]
    numbers = itertools.product(told, (used, 1.0 / used, used**2))
    is_rounded = any(np.all(np.abs(round_to_short(z, name) - z) <= 2.0 * other * z) for name, z in numbers)
    return bool(np.all(off <= roundings * (1.0 + skew**2) / 2.0)) and not is_rounded


_ADDED = (sums.add_in_turn, sums.add_pairwise, sums.add_by_halves, sums.add_in_vectors)
"""The orders of addition in which E[x²] − E[x]² is calculated, to compare it with a kernel's variances."""

_OF_A_GROUP = 1.0
"""Bits of evidence that each group costs, in which two errors may be near each other by chance."""


@np.errstate(all="ignore")
def weigh_one_pass(
    rows: Floats, counts: Floats, divisors: Floats, right: Floats, dtype: np.dtype[Any], unbiasing: Floats,
    *, outside: bool,
) -> float:  # fmt: skip
    """Return the evidence, in bits, that variances have the errors of E[x²] − E[x]² in a known order of sums.

    Errors of the same size alone are none: those of any wrong divisor may be as large. A group counts how much
    nearer the variance is to the one calculated in a dtype than to the right one, at most 24 bits. Of the usual
    eps, the one with most evidence counts.

    Parameters
    ----------
    rows : ndarray, shape (groups, values)
        The values of x.
    counts : ndarray, shape (groups,) or (1,)
        The number of values in each group that count; the others are 0.
    divisors, right : ndarray, shape (groups,)
        The divisors recovered from y, and the right variances.
    dtype : numpy.dtype
        The dtype of the sums.
    unbiasing : ndarray, shape (groups,) or (1,)
        The factor n / (n − ddof).
    outside : bool
        Whether eps is added outside the root.
    """
    rows = rows.astype(dtype)
    count, found = counts.astype(dtype), []
    every = [(divisors - eps) ** 2 if outside else divisors**2 - eps for eps in COMMON_EPS]
    for add in _ADDED:
        mean, square = add(rows) / count, add(rows * rows) / count
        wide = square.astype(np.float64) - np.square(mean.astype(np.float64))
        for variance, shown in itertools.product((square - mean * mean, wide.astype(dtype)), every):
            left = np.abs(shown - np.maximum(variance, 0.0) * unbiasing)
            nearer = np.nan_to_num(np.log2(np.abs(shown - right) / left))
            found.append(float((np.clip(nearer, -MOST_BITS, MOST_BITS) - _OF_A_GROUP).sum()))
    return max(found) - math.log2(len(found))
