"""The moments of groups (count, mean, sum of squared deviations), merged from leaves in a fixed order."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from normcli.numerics.leaves import TOO_LARGE, TOO_SMALL, Leaves, sum_plainly
from normcli.numerics.pairs import (
    Pair,
    divide_by_count,
    pair_add,
    pair_multiply,
    pair_negate,
    quick_two_sum,
    sum_pairs,
    two_diff,
    two_prod,
    two_square,
    two_sum,
)

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from normcli.dtypes import Floats, Selected


@dataclass(slots=True)
class Moments:
    """Count, mean and the sum of squared deviations (m2) of groups, the last two as pairs.

    Of norms that do not centre, m2 is the sum of squares.

    `count` is one number where all groups hold as many values, or an array of one for each.
    `scale` is None, or the k of each group whose values were multiplied by 2**k first.
    """

    count: Any
    mean: Pair
    m2: Pair
    scale: NDArray[np.int64] | None = None

    def put(self, chosen: NDArray[np.bool_], other: Moments) -> None:
        """Replace the moments of some groups."""
        for mine, new in zip((*self.mean, *self.m2), (*other.mean, *other.m2), strict=True):
            mine[chosen] = new


def merge_leaves(leaves: Leaves, count: Any, *, centred: bool, short: bool) -> Moments:
    """Merge leaves along the last axis.

    Parameters
    ----------
    leaves : Leaves
        Of shape (groups, leaves).
    count : int or ndarray
        How many values are selected: in every group, or in each.
    centred : bool
        Whether the mean is subtracted before values are squared.
    short : bool
        Whether the leaves are those of `measure_short_leaves`, and 24 bits are enough.
    """
    if short:
        return _merge_short_leaves(leaves, count, centred=centred)
    square = sum_pairs(Pair(leaves.square_hi, leaves.square_lo))
    if not centred:
        zero = np.zeros_like(square.hi)
        return Moments(count, Pair(zero, zero), square)
    total = sum_pairs(Pair(leaves.sum_hi, leaves.sum_lo))
    mean = divide_by_count(total, count)
    product, error = two_prod(total.hi, mean.hi)
    hi, lo = two_sum(square.hi, -product)
    lo = lo + ((square.lo - error) - (total.hi * mean.lo + total.lo * mean.hi))
    m2 = quick_two_sum(hi, lo)
    _replace_shifted(leaves, mean, m2)
    negative = m2.hi < 0.0
    if negative.any():
        m2.hi[negative] = m2.lo[negative] = 0.0
    return Moments(count, mean, m2)


def _merge_short_leaves(leaves: Leaves, count: Any, *, centred: bool) -> Moments:
    """Merge leaves so that 24 bits are right: only the sum, which may cancel, is a pair.

    A leaf whose squares would have lost more than 10 bits of 53 to cancellation has a shift.
    """
    square = sum_plainly(leaves.square_hi)
    zero = np.zeros_like(square)
    if not centred:
        return Moments(count, Pair(zero, zero), Pair(square, zero))
    total = sum_pairs(Pair(leaves.sum_hi, leaves.sum_lo), _add_short)
    if leaves.sum_hi.shape[-1] > 1:
        total = quick_two_sum(*total)
    mean = divide_by_count(total, count)
    m2 = Pair(square - total.hi * mean.hi, np.zeros_like(square))
    _replace_shifted(leaves, mean, m2)
    return Moments(count, mean, Pair(np.maximum(m2.hi, 0.0), zero))


def _add_short(a: Pair, b: Pair) -> Pair:
    """Return a + b, the sum of the second parts rounded: enough for 24 bits."""
    total, error = two_sum(a.hi, b.hi)
    return Pair(total, error + (a.lo + b.lo))


def fold_leaves(leaves: Leaves, *, centred: bool) -> Leaves:
    """Make one record of all leaves along the last axis, to be merged as a leaf of their values would be.

    Parameters
    ----------
    leaves : Leaves
        Of shape (groups, leaves).
    centred : bool
        Whether the leaves have sums.

    Returns
    -------
    Leaves
        Of shape (groups,). Where a leaf has a shift, so has the record; sums of squares without a shift cancel
        no more than those that they are added up from.
    """
    square = sum_pairs(Pair(leaves.square_hi, leaves.square_lo))
    shift = np.zeros_like(square.hi)
    total = sum_pairs(Pair(leaves.sum_hi, leaves.sum_lo)) if centred else Pair(shift, shift)
    count = np.add.reduce(leaves.count, axis=-1)
    chosen = leaves.shift.any(axis=-1)
    if chosen.any():
        mean = divide_by_count(total.map(lambda a: a[chosen]), count[chosen]).hi
        moved = _move_squares(leaves.map(lambda a: a[chosen]), mean)
        shift[chosen], square.hi[chosen], square.lo[chosen] = mean, moved.hi, moved.lo
    extreme = np.asarray(leaves.extreme.any(axis=-1))
    return Leaves(total.hi, total.lo, square.hi, square.lo, shift, extreme, count)


def _replace_shifted(leaves: Leaves, mean: Pair, m2: Pair) -> None:
    """Calculate m2 again, in place, of groups whose leaves have shifts, which may differ."""
    chosen = leaves.shift.any(axis=-1)
    if chosen.any():
        part, rest = leaves.map(lambda a: a[chosen]), mean.lo[chosen]
        count = np.add.reduce(part.count, axis=-1)
        moved = _move_squares(part, mean.hi[chosen])
        m2.hi[chosen], m2.lo[chosen] = pair_add(moved, Pair(-count * rest * rest, 0.0 * rest))


def _move_squares(leaves: Leaves, centre: Floats) -> Pair:
    """Return the sum of (x − centre)² over all leaves along the last axis, whatever their shifts."""
    n = leaves.count
    sums = pair_add(Pair(leaves.sum_hi, leaves.sum_lo), pair_negate(two_prod(n, leaves.shift)))
    step = two_diff(leaves.shift, centre[..., None])
    twice = pair_multiply(step, sums)
    once = pair_multiply(pair_multiply(step, step), Pair(n, np.zeros_like(n)))
    moved = pair_add(pair_add(Pair(leaves.square_hi, leaves.square_lo), Pair(2 * twice.hi, 2 * twice.lo)), once)
    return sum_pairs(moved)


FEW = 16
"""Groups of fewer values than this are laid out as columns, so that every operation runs along the groups."""


def measure_columns(
    x: Floats, *, exact: bool, centred: bool, selected: Selected | None = None
) -> tuple[Moments, NDArray[np.bool_]]:
    """Return the moments of groups that are the columns of x, and which groups may have over- or underflowed.

    Parameters
    ----------
    x : ndarray, shape (values, groups)
    exact : bool
        Full float64 results; otherwise enough for 24 bits.
    centred : bool
        Whether the mean is subtracted before values are squared.
    selected : ndarray of bool or None
        Which values count, of the shape of x; the others have to be 0. None if all count.
    """
    count, groups = x.shape
    n: Any = count if selected is None else np.add.reduce(selected, axis=0, dtype=np.float64)
    zero = np.zeros(groups)
    mean = Pair(zero, zero)
    if centred:
        hi, lo = x[0].copy(), np.zeros(groups)
        for row in x[1:]:
            hi, error = two_sum(hi, row)
            lo += error
        mean = divide_by_count(quick_two_sum(hi, lo), n)
    hi, lo, plain = np.zeros(groups), np.zeros(groups), np.zeros(groups)
    for number, row in enumerate(x):
        if not exact:
            c = (row - mean.hi) - mean.lo if centred else row
            if selected is not None:
                c = np.where(selected[number], c, 0.0)
            hi += c * c
            continue
        c, rest = row, zero
        if centred:
            d, e = two_diff(row, mean.hi)
            c, rest = quick_two_sum(d, e - mean.lo)
        if selected is not None:
            c, rest = (np.where(selected[number], part, 0.0) for part in (c, rest))
        p, e = two_square(c)
        hi, error = two_sum(hi, p)
        lo += error + (e + 2.0 * c * rest)
        plain += row * row
    if not exact:
        return Moments(n, mean, Pair(hi, lo)), np.zeros(groups, np.bool_)
    extreme = ~((plain < TOO_LARGE) & (plain > TOO_SMALL))
    if extreme.any():
        extreme[extreme] = np.any(x[:, extreme], axis=0)
    return Moments(n, mean, quick_two_sum(hi, lo)), extreme


def choose_scale(largest: Floats) -> NDArray[np.int64]:
    """Return the k for which largest * 2**k is about 1; 0 where it is not finite; at most 900."""
    k = -np.frexp(largest)[1].astype(np.int64)
    return np.where(np.isfinite(largest) & (largest > 0.0), np.minimum(k, 900), 0)
