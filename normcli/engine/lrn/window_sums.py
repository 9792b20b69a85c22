"""The sums of squares of sliding windows, and their mean squares, rounded once."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

import numpy as np

from normcli.numerics.deciding import PRECISIONS, is_decided
from normcli.numerics.integers import widen_exactly
from normcli.numerics.pairs import (
    Pair,
    divide_by_count,
    is_exact_quotient,
    pair_add,
    pair_add_any,
    take_exponents,
    two_prod,
    two_square,
)
from normcli.numerics.rational import divide_once, sum_exactly
from normcli.numerics.rounding import Scaled, round_scaled
from normcli.tuples import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from normcli.dtypes import Floats, Integers, Selected
    from normcli.norms.spec import Window
    from normcli.numerics.rational import ExactSums


_LARGEST, _SMALLEST = 2.0**400, 2.0**-400
"""Where a value is not between these, each window is scaled by a power of two, so that no square is lost."""

_EXACT_RATIO = 2.0**52
"""Squares of 24 bits, of sizes whose squares are less than that apart, add up to pairs without any rounding."""


class WindowSums(NamedTuple):
    """The sum of squares of each window, of values times 2^scale, and the windows' members.

    Parameters
    ----------
    squares : Pair
        The sums, of the shape of the values.
    scale : ndarray of int, or 0
    padded : ndarray
        The values, with zeros before and behind them: the window of value i begins at place i.
    length : int
        Places in a window.
    exact : bool
        Whether the sums are, too.
    """

    squares: Pair
    scale: Any
    padded: NDArray[Any]
    length: int
    exact: bool

    @property
    def error(self) -> float:
        """An upper bound of the sums' errors, as a part of them: that of an addition is 2⁻¹⁰⁴."""
        return 2.0**-100 + self.length * 2.0**-103

    def sum_exactly(self, place: tuple[Any, ...]) -> ExactSums:
        """Return the exact sums of the members of one window."""
        first, *others = place
        return sum_exactly(self.padded[(slice(first, first + self.length), *others)])


def count_in_windows(selected: Selected, window: Window, axis: int) -> Floats:
    """Return how many selected values each window along an axis holds."""
    along = np.moveaxis(selected, axis, 0)
    counts = np.add.accumulate(pad(along, window.before, window.after), axis=0, dtype=np.float64)
    length = len(counts) - len(along) + 1
    before = np.concatenate([np.zeros_like(counts[:1]), counts])[: len(along)]
    return np.moveaxis(counts[length - 1 :] - before, 0, axis)


def pad(x: NDArray[Any], before: int, after: int) -> NDArray[Any]:
    """Return values with zeros before and behind the first axis, at most as many as there are values."""
    n = len(x)
    return np.pad(x, ((min(before, n), min(after, n)), *[(0, 0)] * (x.ndim - 1)))


def sum_squares(x: NDArray[Any], window: Window) -> WindowSums:
    """Return the sum of squares of each window along the first axis, of float64 or of integers of 64 bits."""
    padded = pad(x, window.before, window.after)
    n, length = len(x), len(padded) - len(x) + 1
    high, low = widen_exactly(padded)
    size = np.abs(high)
    scale: Any = 0
    finite = np.where(np.isfinite(size), size, 0.0)
    if ((finite == 0.0) | ((size > _SMALLEST) & (size < _LARGEST))).all():
        least, largest = np.min(size, initial=_LARGEST, where=finite > 0.0), np.max(finite, initial=0.0)
        is_near = bool(length * largest**2 < least**2 * _EXACT_RATIO)
        exact = is_near and low is None and bool((finite == finite.astype(np.float32)).all())
        return WindowSums(add_neighbours(_square_pairs(high, low), length), scale, padded, length, exact)
    scale = _choose_scale(functools.reduce(np.maximum, (finite[start : start + n] for start in range(length))))
    total = Pair(np.zeros(x.shape), np.zeros(x.shape))
    for start in range(length):
        total = pair_add_any(total, _square_pairs(np.ldexp(high[start : start + n], scale), None))
    return WindowSums(total, scale, padded, length, exact=False)


def _choose_scale(largest: Floats) -> Integers:
    """Return the k for which largest * 2**k is about 1; 0 where it is not finite; at most 900."""
    k = -np.frexp(largest)[1].astype(np.int64)
    return np.where(np.isfinite(largest) & (largest > 0.0), np.minimum(k, 900), 0)


def add_neighbours(parts: Pair, length: int) -> Pair:
    """Return the sums of so many neighbours along the first axis, each of sums of 1, 2, 4 and so on of them."""
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


def list_lines(chosen: Selected) -> Iterator[tuple[Any, ...]]:
    """Yield the indices of what is chosen, one line along the first axis behind the other."""
    *others, first = np.nonzero(np.moveaxis(chosen, 0, -1))
    return zip(first.tolist(), *(index.tolist() for index in others), strict=True)


def _square_pairs(high: Floats, low: Floats | None) -> Pair:
    """Return squares of values, and of what doubles leave of integers."""
    squares = two_square(high)
    if low is not None:
        product = two_prod(2.0 * high, low)
        squares = pair_add(squares, Pair(product.hi, product.lo + low * low))
    return Pair(squares.hi, np.where(np.isfinite(squares.lo), squares.lo, 0.0))


def divide_by_size(sums: WindowSums, window: Window) -> Floats:
    """Return the mean square of each window, rounded once."""
    quotient = divide_by_count(sums.squares, window.size)
    finite = np.isfinite(sums.squares.hi)
    total, own = take_exponents(quotient)
    off = np.abs(total.hi) * sums.error
    decided = is_decided(total, own - 2 * sums.scale, off, PRECISIONS["float64"])
    result = np.where(finite, round_scaled(Scaled(quotient, -2 * sums.scale)), sums.squares.hi)
    undecided = finite & ~decided & (total.hi != 0.0)
    if sums.exact and undecided.any():  # squares of short floats make many a mean that lies in the middle
        number, found = (pair.map(lambda a: a[undecided]) for pair in (sums.squares, quotient))
        undecided[undecided] = ~is_exact_quotient(number, found, window.size)
    for place in list_lines(undecided):
        one = sums.sum_exactly(place)
        result[place] = divide_once(one.square, window.size, 2 * one.exponent)
    return result
