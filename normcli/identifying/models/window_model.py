"""The search for local response normalization: its axis, its window of channels, and its constants."""

from __future__ import annotations

import itertools
import math
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from normcli.engine.run import run
from normcli.identifying.models.divisor_fit import choose_eps
from normcli.identifying.models.line_fit import fit_lines
from normcli.identifying.models.weight import CERTAIN, FittedPlan, measure_bits
from normcli.norms.divisors import WINDOW_POWER
from normcli.norms.grid import Reach
from normcli.norms.plan import make_plan
from normcli.norms.request import Request
from normcli.norms.spec import Window
from normcli.norms.table import NORMS
from normcli.tuples import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from normcli.dtypes import Floats
    from normcli.norms.plan import Plan


WINDOWED = next(norm.name for norm in NORMS.values() if norm.divisor == WINDOW_POWER)
"""The name of the norm with a window of channels, `lrn`."""

LARGEST_SIZE = 11
"""The most channels in a window."""

EXPONENTS = (0.75, 0.5, 1.0, *(n / 20 for n in range(1, 31) if n not in (10, 15, 20)))
CONSTANTS = (1.0, 2.0, 0.0)
"""The exponents and the k that are tried, the likelier ones first; k is also fitted."""

_FEW_VALUES = 256
"""About how many values an exponent is tried on first."""

_SCREENED = 1 << 9
"""About how many values a window's size is tried on before its constants."""

_OWN_ROUNDINGS = 2.0**-48
"""The error of computed bounds of (x / y)^(1/exponent), as a part of them."""

_MARGIN = 4.0
"""The factor on the bounds of values when a found window's result is compared with all of y."""

_LEAST_VALUES = 3
"""The fewest values that can contradict a line: fewer always lie on one."""


_FITTED = 3
"""The count of a window's fitted numbers: a, k and the exponent."""


class Side(NamedTuple):
    """A window along an axis: the numbers of channels before and after each value."""

    axis: int
    before: int
    after: int


def find_sides(x: Floats, y: Floats, slack: Floats) -> list[Side]:
    """Return the windows along the second or the last axis that may have led to y, as sampled values show.

    For the right window, the divisor x / y grows with the sum of squares over the window: windows for which it
    does, within the bounds of y's errors, are returned. Empty for fewer than two axes, or if x or y is not
    finite.

    Parameters
    ----------
    x, y, slack : ndarray
        Input, output, and the bound on the error of each y, of one shape.
    """
    if x.ndim < 2 or not (np.isfinite(x).all() and np.isfinite(y).all()):
        return []
    found = []
    for axis in sorted({1, x.ndim - 1}):
        length = max(1, x.shape[axis])
        step = max(1, x.size // length * length // _SCREENED)
        some, theirs, allowed = (np.moveaxis(z, axis, 0).reshape(length, -1)[:, ::step] for z in (x, y, slack))
        for before, after in _enumerate_sides(length):
            seen = _look(some, theirs, allowed, _sum_windows(some * some, before, after))
            if seen is not None and seen.is_growing:
                found.append(Side(axis, before, after))
    return found


def find_windows(x: Floats, y: Floats, slack: Floats, sides: Iterable[Side]) -> Iterator[FittedPlan]:
    """Yield each window with fitted constants whose result is y within 4 times the slack.

    The fit is a line: (x / y)^(1/exponent) = k + a · Σx², with a = α / size. Each value bounds a.

    Parameters
    ----------
    x, y, slack : ndarray
        Input, output, and the bound on the error of each y, of one shape.
    sides : iterable of Side
        The windows to try: axis, and numbers of channels before and after.
    """
    for axis, before, after in sides:
        moved = np.moveaxis(x, axis, 0)
        squares = np.moveaxis(_sum_windows(moved * moved, before, after), 0, axis)
        seen = _look(x, y, slack, squares)
        if seen is None or seen.ratio.size < _LEAST_VALUES or not (few := seen.take_few()).is_growing:
            continue
        for exponent in EXPONENTS:
            if not any(True for _ in _fit(few, exponent)):
                continue
            size = before + after + 1
            for k, least, largest, bits in _fit(seen, exponent):
                if bits == 0.0:  # one factor makes all of y
                    continue
                alpha = choose_eps(least * size, largest * size)
                window = Window(before, after, size, alpha, exponent, k, size)
                if bits < CERTAIN:  # as thousands may fit
                    result = x / (k + alpha / size * squares) ** exponent
                else:
                    result = calculate_window(x, axis, window)
                is_near = lies_near(result, y, slack)  # also values that no line was fitted to
                if is_near and not _is_nearly_round(alpha):
                    yield FittedPlan(plan_window(x.shape, axis, window), result, bits)


def _is_nearly_round(alpha: float) -> bool:
    """Whether α is within 1e-5 of a number of two digits, relative to α, but not equal to that number.

    Such an α makes up for the rounding of another constant.
    """
    return 0.0 < abs(float(f"{alpha:.2g}") / alpha - 1.0) < _NEARLY_ROUND


_NEARLY_ROUND = 1e-5


def lies_near(result: Floats, y: Floats, slack: Floats) -> bool:
    """Whether every value of y is within 4 times its slack of a window's result."""
    return bool(np.all(np.abs(y - result) <= _MARGIN * slack))


def _enumerate_sides(length: int) -> Iterator[tuple[int, int]]:
    for size in range(2, min(LARGEST_SIZE, 2 * length - 1) + 1):
        sides = (size - 1) // 2, size // 2
        yield from dict.fromkeys((sides, sides[::-1]))


def _sum_windows(squares: Floats, before: int, after: int) -> Floats:
    """Return sums along the first axis: number i is Σ squares[i − before : i + after + 1].

    The result has the shape of `squares`; windows are cut at the ends of the axis. Each sum is added up by
    itself, since differences of running sums would lose digits.
    """
    length = len(squares)
    sums = np.zeros(squares.shape)
    for offset in range(-min(before, length - 1), min(after, length - 1) + 1):
        to, start = (
            slice(max(0, -offset), length - max(0, offset)),
            slice(max(0, offset), length + min(0, offset)),
        )
        sums[to] += squares[start]
    return sums


def calculate_window(x: Floats, axis: int, window: Window) -> Floats:
    """Return the exact result of local response normalization with a window, rounded to float64."""
    return run(plan_window(x.shape, axis, window), x)[0]


def plan_window(shape: tuple[int, ...], axis: int, window: Window) -> Plan:
    """Return the plan of local response normalization along an axis, of float64, with a window."""
    plan = make_plan(Request(WINDOWED, axes=(axis,), size=window.size), shape, np.dtype(np.float64))
    grid = replace(plan.grid, reach=Reach(window.before, window.after))
    return replace(plan.change_spec(window=window), grid=grid)


class _Seen(NamedTuple):
    """The divisors x / y, for the values where |y| is more than twice the bound of its error.

    Parameters
    ----------
    ratio : ndarray, shape (values,)
        x / y.
    size : ndarray, shape (values,)
        The sum of squares of each value's window.
    margin : ndarray, shape (values,)
        The bound on the relative error of each ratio.
    """

    ratio: Floats
    size: Floats
    margin: Floats

    def take_few(self) -> _Seen:
        """Return the record of at most 256 of the values, evenly spaced."""
        step = -(-self.ratio.size // _FEW_VALUES)
        return _Seen(self.ratio[::step], self.size[::step], self.margin[::step])

    @property
    def is_growing(self) -> bool:
        """Whether the ratio, within its bounds, never falls as the sum of squares grows."""
        order = np.argsort(self.size)
        ratio, margin = self.ratio[order], self.margin[order]
        largest = np.maximum.accumulate(ratio / (1.0 + margin))
        return bool(np.all(largest <= ratio / (1.0 - margin) * (1.0 + _OWN_ROUNDINGS)))


def _look(x: Floats, y: Floats, slack: Floats, squares: Floats) -> _Seen | None:
    """Return the divisors x / y, with the windows' sums of squares; None if y can be no such quotient of x.

    None is returned if signs of x and y differ, or if |y| is above |x| + 2 · slack where x or the sum is 0.
    Values with |y| ≤ 2 · slack are left out.

    Parameters
    ----------
    x, y, slack : ndarray
        Input, output, and the bound on the error of each y, of one shape.
    squares : ndarray
        The sum of squares over the window of each value.
    """
    usable = (np.abs(y) > 2.0 * slack) & (x != 0.0) & (squares > 0.0)
    if np.any(np.abs(y[~usable]) > 2.0 * slack[~usable] + np.abs(x[~usable])):
        return None
    ratio = x[usable] / y[usable]
    return None if np.any(ratio <= 0.0) else _Seen(ratio, squares[usable], slack[usable] / np.abs(y[usable]))


def _fit(seen: _Seen, exponent: float) -> Iterator[tuple[float, float, float, float]]:
    """Yield each k with which (x / y)^(1/exponent) = k + a · Σx² fits for some a > 0, as a tuple.

    The tuple has k, the least and the largest a, and the bits of evidence. k is 1, 2, 0, or the fitted one in 1
    to 3 digits. Σx² is the sum of squares over the window.
    """
    ratio, size, margin = seen
    low, high = ((ratio / (1.0 + sign * margin)) ** (1.0 / exponent) for sign in (1.0, -1.0))
    middle = ratio ** (1.0 / exponent)
    line = fit_lines(size, middle, (), through_zero=False, refinements=0)
    slope, constant = line.scale.item(), line.shift.item()
    if not (math.isfinite(constant) and slope > 0.0):
        return
    rounded = [float(f"{max(0.0, constant):.{digits}g}") for digits in (1, 2, 3)]
    tried, doubt = [*dict.fromkeys(itertools.chain(CONSTANTS, rounded))], _OWN_ROUNDINGS * high
    each = np.array(tried)[:, None]
    lowest, highest = ((low - doubt - each) / size).max(1), ((high + doubt - each) / size).min(1)
    for k, least, largest in zip(tried, lowest.tolist(), highest.tolist(), strict=True):
        if 0.0 < least <= largest and math.isfinite(largest):
            yield k, least, largest, _count_bits(size, np.maximum(high - low, doubt) / largest)


def _count_bits(size: Floats, width: Floats) -> float:
    """Return the bits of evidence in sums of squares, given the uncertainty (`width`) of each.

    Each different sum counts log2(distance from the median / width). Three times the largest of these bits is
    subtracted, for the fitted a, k and exponent.
    """
    _, first = np.unique(size.astype(np.float32), return_index=True)
    bits = measure_bits(np.abs(size - np.median(size)), width)[first]
    return float(bits.sum() - _FITTED * bits.max())
