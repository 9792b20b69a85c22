"""The sums of squares of sliding windows, and their mean squares, rounded once."""

from __future__ import annotations

import functools
import itertools
import math
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np

from normcli.numerics.deciding import PRECISIONS, is_decided
from normcli.numerics.elements.in_pairs import take_exponents
from normcli.numerics.integers import widen_exactly
from normcli.numerics.pairs import Pair, divide_by_count, pair_add, pair_add_any, two_prod, two_square, two_sum
from normcli.numerics.rounding import Scaled, round_scaled
from normcli.numerics.statistics.divisor import choose_scale
from normcli.tuples import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from normcli.dtypes import Floats, Selected
    from normcli.norms.spec import Window

    Places = tuple[NDArray[np.intp], ...]


_LARGEST, _SMALLEST = 2.0**400, 2.0**-400
"""Where a value is not between these, each window is scaled by a power of two, so that no square is lost."""

_SHORT = 64
"""Members of a window that are gone through one by one where it is summed exactly."""

_UNIT = 1074
"""A finite double times 2 to this power is a whole number."""


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
    running : dict
        For one line along the windows' axis, the exact sums of squares up to each place, times 2^(2 · `_UNIT`).
    """

    squares: Pair
    scale: Any
    padded: NDArray[Any]
    length: int
    running: dict[tuple[Any, ...], list[int]]

    @property
    def error(self) -> float:
        """An upper bound of the sums' errors, as a part of them: that of an addition is 2⁻¹⁰⁴."""
        return 2.0**-100 + self.length * 2.0**-103

    def sum_exactly(self, place: tuple[Any, ...]) -> Fraction:
        """Return the sum of squares of one window: quickly, if the one asked for before lies in its line."""
        first, *others = place
        if self.length <= _SHORT:
            members = self.padded[(slice(first, first + self.length), *others)]
            return sum((Fraction(v) ** 2 for v in members.tolist() if v), Fraction(0))
        line = tuple(others)
        if line not in self.running:
            self.running.clear()
            squares = map(_square, self.padded[(slice(None), *others)].tolist())
            self.running[line] = [*itertools.accumulate(squares, initial=0)]
        sums = self.running[line]
        return Fraction(sums[first + self.length] - sums[first], 1 << 2 * _UNIT)


def _square(value: float) -> int:
    """Return the square of a value times 2^(2 · `_UNIT`); 0 of what is not finite, whose windows need none."""
    if not math.isfinite(value):
        return 0
    numerator, denominator = value.as_integer_ratio()
    return (numerator << _UNIT + 1 - denominator.bit_length()) ** 2


def count_in_windows(selected: Selected, window: Window, axis: int) -> Floats:
    """Return how many selected values each window along an axis holds."""
    along = np.moveaxis(selected, axis, 0)
    counts = np.add.accumulate(_pad(along, window), axis=0, dtype=np.float64)
    length = len(counts) - len(along) + 1
    before = np.concatenate([np.zeros_like(counts[:1]), counts])[: len(along)]
    return np.moveaxis(counts[length - 1 :] - before, 0, axis)


def _pad(x: NDArray[Any], window: Window) -> NDArray[Any]:
    """Return values with zeros before and behind the first axis, as far as the windows reach."""
    before, after = min(window.before, len(x)), min(window.after, len(x))
    return np.pad(x, ((before, after), *[(0, 0)] * (x.ndim - 1)))


def sum_squares(x: NDArray[Any], window: Window) -> WindowSums:
    """Return the sum of squares of each window along the first axis, of float64 or of integers of 64 bits."""
    padded = _pad(x, window)
    n, length = len(x), len(padded) - len(x) + 1
    high, low = widen_exactly(padded)
    size = np.abs(high)
    scale: Any = 0
    if ((size == 0.0) | ((size > _SMALLEST) & (size < _LARGEST)) | ~np.isfinite(size)).all():
        return WindowSums(_add_neighbours(_square_pairs(high, low), length), scale, padded, length, {})
    finite = np.where(np.isfinite(size), size, 0.0)
    scale = choose_scale(functools.reduce(np.maximum, (finite[start : start + n] for start in range(length))))
    total = Pair(np.zeros(x.shape), np.zeros(x.shape))
    for start in range(length):
        total = pair_add_any(total, _square_pairs(np.ldexp(high[start : start + n], scale), None))
    return WindowSums(total, scale, padded, length, {})


def _add_neighbours(parts: Pair, length: int) -> Pair:
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
    places = np.nonzero(undecided)
    if sums.length > _SHORT:
        for place in list_lines(undecided):
            result[place] = _divide_one(sums, place, window)
    elif len(places[0]):
        result[places] = _divide_exactly(sums, places, quotient.map(lambda part: part[places]), window)
    return result


def _divide_exactly(sums: WindowSums, places: Places, quotient: Pair, window: Window) -> Floats:
    """Return the mean square of some windows, rounded once: quotients tell between which two doubles it is.

    Squares of short floats make many a mean that lies in the middle of the two, so this is not done one by one.
    """
    first, *others = places
    members = sums.padded[(first[:, None] + np.arange(sums.length), *(index[:, None] for index in others))]
    scale = np.broadcast_to(sums.scale, sums.squares.hi.shape)[places]
    members, rest = widen_exactly(members)
    scaled = np.ldexp(members, scale[:, None])
    size = np.abs(scaled)
    inexact = (rest is not None) | ((members != 0.0) & ~((size > _SMALLEST) & (size < _LARGEST))).any(axis=1)
    hi, lo = quotient
    ulp = np.spacing(np.where(lo < 0.0, np.nextafter(hi, 0.0), hi))
    half = np.copysign(0.5 * ulp, lo)
    parts: list[Floats] = [a for column in scaled.T for a in two_square(column)]
    parts += [-a for a in (*two_prod(hi, float(window.size)), half * window.size)]
    total = [np.zeros_like(hi)] * 3
    for part in parts:
        for number in range(3):
            total[number], part = two_sum(total[number], part)
        inexact |= part != 0.0
    for left in (0, 1, 0, 1):
        total[left], total[left + 1] = two_sum(total[left], total[left + 1])
    beyond = np.sign(total[0]) * np.sign(half)
    odd = np.ldexp(np.frexp(hi)[0], 53) % 2.0 == 1.0
    rounded = np.where((beyond > 0) | ((beyond == 0) & odd), hi + 2.0 * half, hi)
    result: Floats = np.ldexp(rounded, -2 * scale)
    inexact |= result < _SMALLEST**2  # between subnormal doubles it would be rounded twice
    for number in np.flatnonzero(inexact).tolist():
        result[number] = _divide_one(sums, tuple(index[number] for index in places), window)
    return result


def _divide_one(sums: WindowSums, place: tuple[Any, ...], window: Window) -> float:
    """Return the mean square of one window, rounded once."""
    square = sums.sum_exactly(place)
    try:
        return square.numerator / (square.denominator * window.size)
    except OverflowError:
        return math.inf
