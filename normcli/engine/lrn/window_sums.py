"""Sums of squares, and counts of selected values, in the sliding windows along an axis."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from normcli.numerics.pairs import Pair, pair_add_any, two_square
from normcli.numerics.rational import sum_exactly
from normcli.numerics.rounding import widen_exactly
from normcli.tuples import NamedTuple

if TYPE_CHECKING:
    from fractions import Fraction

    from numpy.typing import NDArray

    from normcli.dtypes import Floats, Selected
    from normcli.norms.spec import Window

    Place = tuple[Any, ...]


LEAST, LARGEST = 2.0**-200, 2.0**200
"""Windows are calculated exactly if a value, k or α is neither 0 nor of a size between these two."""

_EXACT_RATIO = 2.0**52
"""Squares of float32 add up to pairs without rounding if length · largest is less than this times the least."""


class WindowSums(NamedTuple):
    """The sum of squares of each window along the first axis, and the values in the windows.

    Parameters
    ----------
    squares : Pair
        The sums, of the shape of the values; infinite or NaN where a value is.
    known : ndarray of bool
        True where the relative error of a sum is at most `self.error`.
    exact : bool
        True if all known sums are exact.
    padded : ndarray
        The values with zeros at both ends, so that the window of value i is padded[i : i + length].
    length : int
        The number of values in a window.
    """

    squares: Pair
    known: Selected
    exact: bool
    padded: NDArray[Any]
    length: int

    @property
    def error(self) -> float:
        """An upper bound of the relative errors of the sums, of which an addition has 2⁻¹⁰⁴."""
        return 2.0**-100 + self.length * 2.0**-103

    def sum_exactly(self, place: Place) -> Fraction:
        """Return the exact sum of squares of one value's window; `place` is its index, a tuple."""
        first, *others = place
        return sum_exactly(self.padded[(slice(first, first + self.length), *others)]).square


def count_in_windows(selected: Selected, window: Window, axis: int) -> Floats:
    """Return the number of selected values in each window along an axis."""
    padded = pad(np.moveaxis(selected, axis, 0), window.before, window.after)
    return np.moveaxis(_count_along(padded, len(padded) - selected.shape[axis] + 1), 0, axis)


def _count_along(padded: Selected, length: int) -> Floats:
    """Return the number of True values among each `length` neighbours along the first axis."""
    counts = np.add.accumulate(padded, axis=0, dtype=np.float64)
    before = np.concatenate([np.zeros_like(counts[:1]), counts[:-length]])
    return np.asarray(counts[length - 1 :] - before)


def pad(x: NDArray[Any], before: int, after: int) -> NDArray[Any]:
    """Return values with zeros before and behind them along the first axis.

    There are `before` and `after` of them, but no more than the axis is long.
    """
    n = len(x)
    return np.pad(x, ((min(before, n), min(after, n)), *[(0, 0)] * (x.ndim - 1)))


def sum_squares(x: NDArray[Any], window: Window) -> WindowSums:
    """Return the sum of squares of each window along the first axis; x is of float64 or integers."""
    padded = pad(x, window.before, window.after)
    length = len(padded) - len(x) + 1
    high, low = widen_exactly(padded)
    sizes, finite = np.abs(high), np.isfinite(high)
    lost = finite & (sizes != 0.0) & ~((sizes > LEAST) & (sizes < LARGEST))
    if low is not None:
        lost |= low != 0.0
    kept = finite & ~lost
    squares = two_square(np.where(lost, 0.0, high))
    total = add_neighbours(Pair(squares.hi, np.where(kept, squares.lo, 0.0)), length)
    sizes = sizes[kept & (sizes != 0.0)]
    is_near = bool(
        length * np.max(sizes, initial=0.0) ** 2 < np.min(sizes, initial=LARGEST) ** 2 * _EXACT_RATIO
    )
    exact = is_near and bool((sizes == sizes.astype(np.float32)).all())
    return WindowSums(total, _count_along(lost, length) == 0.0, exact, padded, length)


def add_neighbours(parts: Pair, length: int) -> Pair:
    """Return sums along the first axis: number i is Σ parts[i : i + length]; sums of 1, 2, 4 … are reused."""
    n = len(parts.hi) - length + 1
    total, start, width = parts.map(lambda part: np.zeros_like(part[:n])), 0, 1
    while True:
        if length & width:
            total = pair_add_any(total, Pair(parts.hi[start : start + n], parts.lo[start : start + n]))
            start += width
        if 2 * width > length:
            return total
        firsts, seconds = Pair(parts.hi[:-width], parts.lo[:-width]), Pair(parts.hi[width:], parts.lo[width:])
        parts, width = pair_add_any(firsts, seconds), 2 * width
