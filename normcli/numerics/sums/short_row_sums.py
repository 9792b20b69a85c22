"""Sums of leaves that are rows of float16 or float32: their squares are doubles, most of whose sums are two."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from normcli.numerics.pairs import distill, quick_two_sum
from normcli.numerics.sums.leaf_records import Leaves, count_values
from normcli.numerics.sums.row_sums import CHUNK, MAX_LEAF, ONES, Dots, cut_rows, measure_leaves

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from normcli.dtypes import Floats, Selected
    from normcli.numerics.workspace import Workspace

_MAGNITUDE = np.uint32(0x7FFF_FFFF)
"""The bits of a float32 but for its sign."""


def measure_short_leaves(
    raw: NDArray[Any],
    work: Workspace,
    selected: Selected | None = None,
    *,
    need_sum: bool,
) -> Leaves:
    """Measure leaves of float16 or float32 values (24 bits or fewer), shape (leaves, n).

    The sum of a leaf is exact in float64, in any order, and the sum of its squares (exact themselves) in two
    parts, unless its values differ too much in magnitude. `find_inexact` finds such leaves, which take one part
    more. Those of which even that is not enough are measured as `measure_leaves` does.
    """
    rows, n = raw.shape
    slices = cut_rows(rows, n, CHUNK // 2)
    x_all, p_all, high_all = (work.get(name, (slices[0].stop, n)) for name in ("x", "squares", "high"))
    about, total, high, low = (Dots(rows, n) for _ in range(4))
    ones, bounds = ONES[:, :n], np.empty(rows)
    for s in slices:
        x, p, t = (a[: s.stop - s.start] for a in (x_all, p_all, high_all))
        np.copyto(x, raw[s])
        about.add(s, x, x)
        if need_sum:
            total.add(s, x, ones)
        np.multiply(x, x, out=p)
        bounds[s] = cut_squares(p, t, about.total(s))
        high.add(s, t, ones)
        low.add(s, p, ones)
    zero = np.zeros(rows)
    sums = total.total() if need_sum else zero
    square, rest = quick_two_sum(high.total(), low.total())
    count = count_values(raw, selected)
    leaves = Leaves(sums, zero, zero, square, rest, zero, zero, zero, zero, np.zeros(rows, np.bool_), count)
    again = ~np.isfinite(square)
    if raw.dtype != np.float16:  # float16 has 40 bits in all: sums of 4096 are exact
        inexact = find_inexact(raw, np.sqrt(n * bounds)) & ~again
        if inexact.any():
            leaves = leaves.map(np.copy)
            again[inexact] = _add_parts(raw[inexact], leaves, inexact, need_sum=need_sum)
    if again.any():
        part = None if selected is None else selected[again]
        leaves = leaves.map(np.copy)
        wide = raw[again].astype(np.float64)
        leaves.put(again, measure_leaves(wide, work, part, need_sum=need_sum))
    return leaves


def cut_squares(p: Floats, t: Floats, sums: Floats) -> float:
    """Cut squares into their first bits, in t, and the others, in place; return the bound that tells where.

    One for all of them, twice the largest of their sums: what broadcasts along rows takes longer.
    """
    bound = float(np.ldexp(1.0, np.frexp(np.max(sums, where=np.isfinite(sums), initial=0.0))[1] + 1))
    np.add(p, 1.5 * bound, out=t)
    np.subtract(t, 1.5 * bound, out=t)
    np.subtract(p, t, out=p)
    return bound


def _add_parts(raw: NDArray[np.float32], leaves: Leaves, place: Selected, *, need_sum: bool) -> Selected:
    """Put leaves in their place that have one part more; return which of them are inexact even so."""
    x = raw.astype(np.float64)
    bound = np.ldexp(1.0, np.frexp(leaves.square_0[place])[1] + 1)
    parts = _sum_parts(x * x, bound, 3)
    for mine, part in zip((leaves.square_0, leaves.square_1, leaves.square_2), parts, strict=True):
        mine[place] = part
    if need_sum:
        parts = _sum_parts(x, np.ldexp(1.0, (np.frexp(x.shape[1] * bound)[1] + 1) >> 1), 2)
        for mine, part in zip((leaves.sum_0, leaves.sum_1), parts, strict=True):
            mine[place] = part
    return find_inexact(raw, np.sqrt(bound) * 2.0**-15)


def _sum_parts(values: Floats, bound: Floats, count: int) -> tuple[Floats, ...]:
    """Return the sum of rows as so many doubles, given a bound of twice each value and of the partial sums.

    What a part leaves of a value is 2⁻⁵³ of the bound at most, and all of a row that is left 2⁻⁴¹.
    """
    ones, sums = ONES[0, : values.shape[1]], []
    for part in range(count - 1):
        sigma = 1.5 * bound[:, None] * 2.0 ** (-41 * part)
        cut = (values + sigma) - sigma
        values = values - cut
        sums.append(np.vecdot(cut, ones))
    return distill([*sums, np.vecdot(values, ones)], count).terms


def find_inexact(raw: NDArray[np.float32], bound: Floats) -> Selected:
    """Return which rows may have an inexact sum in float64, given a bound of their partial sums.

    Every value is a multiple of the ulp of the smallest |x| that is not 0, which is more than |x| · 2⁻²⁴. So is
    every sum of them, which is exact up to 2⁵³ of it. One bit less is used, as the bound itself is rounded.
    """
    inexact = np.asarray(~(_least_of_rows(raw) * 2.0**28 >= bound))
    if inexact.any():
        inexact[inexact] = find_small(raw[inexact], bound[inexact], -1)
    return inexact


def find_small(raw: NDArray[np.float32], bound: Any, axis: int) -> Selected:
    """As `find_inexact`, along either axis."""
    size = np.abs(raw).view(np.uint32)
    size -= np.uint32(1)  # 0, which is a multiple of every ulp, wraps round to the largest
    least = np.minimum.reduce(size, axis=axis) + np.uint32(1)
    return np.asarray((least > 0) & ~(least.view(np.float32) * 2.0**28 >= bound))


def _least_of_rows(raw: NDArray[np.float32]) -> Floats:
    """Return a lower bound of each row's smallest |x|: the smallest of as many rows as make up 4096 values.

    The bits of positive floats are ordered as the floats are; those of negative ones lie above them if read as
    unsigned, and below, from the least |x| on, if read as signed.
    """
    rows, n = raw.shape
    together = MAX_LEAF // n
    if together < 2 or rows % together:
        together = 1
    bits = raw.view(np.uint32).reshape(rows // together, -1)
    positive = np.minimum.reduce(bits, axis=-1)
    negative = np.minimum.reduce(bits.view(np.int32), axis=-1).view(np.uint32) & _MAGNITUDE
    least: Floats = np.minimum(positive, negative).view(np.float32).astype(np.float64)
    return least if together == 1 else least.repeat(together)
