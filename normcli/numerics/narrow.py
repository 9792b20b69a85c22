"""Sums of leaves of float32 values, as exact as those of float64 values, in half the time."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from normcli.numerics.leaves import CHUNK, Dots, Leaves, count_values, cut_rows, find_inexact, measure_leaves
from normcli.numerics.pairs import Pair, quick_two_sum, two_sum

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from normcli.dtypes import Selected
    from normcli.numerics.workspace import Workspace


_HIGH = 20
"""Bits that the high parts have: 4096 squares of 40 bits add up under 2⁵³."""

_LARGEST, _BEYOND = np.float32(2.0**100), np.float32(2.0**101)
"""From the first on, the values are measured as float64: float32 has no room to round them as `sigma` does."""

_CANCELS = 2.0**-16
"""As in `measure_leaves`."""

_CHUNK = CHUNK // 2
"""Values that one call works on: as few as will do for `Dots` to release the GIL."""


def measure_narrow_leaves(
    x: NDArray[np.float32],
    work: Workspace,
    *,
    need_sum: bool,
    selected: Selected | None = None,
) -> tuple[Leaves, NDArray[np.float32], NDArray[np.float32]]:
    """Measure leaves of float32 values: sums exactly, sums of squares to about 2⁻⁶⁸; and their extremes.

    Parameters
    ----------
    x : ndarray, shape (leaves, n), n <= 4096
        Of a leaf that holds NaN or infinities, only the extremes are right.
    work : Workspace
    need_sum : bool
        False for norms that do not centre.
    selected : ndarray of bool or None
        Which values count; the others are 0. None if all.

    Notes
    -----
    x = t + r: t is x rounded to a multiple of 2⁻²⁰ of a power of two above the largest, in float32. The sums of
    t and of t² are exact in float64, in any order; those of r · t and r² are 2⁻²⁰ of the whole: plain sums are
    enough. The sum of r is exact unless values differ too much in magnitude (`find_inexact`); such leaves, and
    those whose squares cancel, are measured as float64.
    """
    rows, n = x.shape
    slices = cut_rows(rows, n, _CHUNK)
    ones = np.ones((1, n))
    squares = [Dots(rows, n) for _ in range(3)]
    sums = [Dots(rows, n) for _ in range(2)] if need_sum else []
    low, high, power = (np.empty(rows, np.float32) for _ in range(3))
    inexact = np.zeros(rows, dtype=np.bool_)
    shape = (slices[0].stop, n)
    t_all, r_all = (work.get(name, shape, np.float32) for name in ("t32", "r32"))
    wide_t, wide_r = (work.get(name, shape) for name in ("t64", "r64"))
    for s in slices:
        x_s = x[s]
        t32, r32, t, r = (a[: len(x_s)] for a in (t_all, r_all, wide_t, wide_r))
        np.minimum.reduce(x_s, axis=-1, out=low[s])
        np.maximum.reduce(x_s, axis=-1, out=high[s])
        power[s] = _find_power(low[s], high[s])
        sigma = (np.float32(12.0) * power[s])[:, None]  # an ulp of 8 ... 16 times the power is 2⁻²⁰ of it
        np.add(x_s, sigma, out=t32)
        np.subtract(t32, sigma, out=t32)
        np.subtract(x_s, t32, out=r32)
        np.copyto(t, t32)
        np.copyto(r, r32)
        squares[0].add(s, t, t)
        squares[1].add(s, t, r)
        squares[2].add(s, r, r)
        if need_sum:
            sums[0].add(s, t, ones)
            sums[1].add(s, r, ones)
            bound = np.ldexp(power[s].astype(np.float64), -_HIGH - 1) * n
            inexact[s] = find_inexact(x_s, bound)
    square = two_sum(squares[0].total(), 2.0 * squares[1].total())
    square = quick_two_sum(square.hi, square.lo + squares[2].total())
    count = count_values(x, selected)
    zero = np.zeros(rows)
    total = Pair(zero, zero)
    again = inexact | (power == _BEYOND)
    if need_sum:
        total = two_sum(sums[0].total(), sums[1].total())
        again |= square.hi - total.hi * (total.hi / np.maximum(count, 1.0)) < _CANCELS * square.hi
    result = Leaves(total.hi, total.lo, square.hi, square.lo, zero, np.zeros(rows, np.bool_), count)
    again &= np.isfinite(low) & np.isfinite(high)
    if again.any():
        part = None if selected is None else selected[again]
        result.put(again, measure_leaves(x[again].astype(np.float64), work, need_sum=need_sum, selected=part))
    return result, low, high


def _find_power(low: NDArray[np.float32], high: NDArray[np.float32]) -> NDArray[np.float32]:
    """Return a power of two above each leaf's largest magnitude; `_BEYOND` where there is no room for it."""
    largest = np.maximum(np.abs(low), np.abs(high))
    power: NDArray[np.float32] = np.ldexp(np.float32(1.0), np.frexp(largest)[1])
    return np.where(largest < _LARGEST, power, _BEYOND)
