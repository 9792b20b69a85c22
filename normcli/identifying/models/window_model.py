"""Local response normalization, looked for: along which axis, over how many channels, with which constants."""

from __future__ import annotations

import itertools
import math
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from normcli.engine.run import run
from normcli.identifying.models.evidence import choose_eps
from normcli.identifying.models.weight import CERTAIN
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


WINDOWED = next(norm.name for norm in NORMS.values() if norm.divisor == WINDOW_POWER)
"""The norm with a window."""

LARGEST_SIZE = 11
"""Channels in a window, at most."""

EXPONENTS = (0.75, 0.5, 1.0, *(n / 20 for n in range(1, 31) if n not in (10, 15, 20)))
CONSTANTS = (1.0, 2.0, 0.0)
"""The exponents and the k that are tried, the likelier ones first; k is also fitted."""

_FEW_VALUES = 256
"""Values that an exponent is tried on first."""

_SCREENED = 1 << 9
"""Values, about, that a window's sides are tried on before."""

_OWN_ROUNDINGS = 2.0**-48
"""The relative error of the bounds themselves, as a part of the power."""

_MARGIN = 4.0
"""The factor on the error of values that are too close to 0 for bounds of their own."""

_LEAST_VALUES = 3
"""The fewest values that refute a line: fewer always lie on one."""


_FITTED = 3
"""Numbers of a window that are fitted: a, k and the exponent."""

_LEAST_WIDTH = 2.0**-1000


class FittedWindow(NamedTuple):
    """A window that gives y within its slack: its axis and constants, its result, the evidence.

    The result is exact where there is evidence enough; else it is off by a few roundings of float64.
    """

    axis: int
    window: Window
    result: Floats
    bits: float


class Side(NamedTuple):
    """A window along an axis: the numbers of channels before and after each value."""

    axis: int
    before: int
    after: int


def find_sides(x: Floats, y: Floats, slack: Floats) -> list[Side]:
    """Return the windows that sampled lines along their axis do not refute for any constants.

    A window refuted with some slack is refuted with every smaller slack too.
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


def find_windows(x: Floats, y: Floats, slack: Floats, sides: Iterable[Side]) -> Iterator[FittedWindow]:
    """Yield each window, among the given sides, that gives y within its slack.

    (x / y)^(1/exponent) is k + a · Σx², with a = α / size. Each value leaves an interval for a.
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
            size, fitting = before + after + 1, []
            for k, least, largest, bits in _fit(seen, exponent):
                alpha = choose_eps(least * size, largest * size)
                window = Window(before, after, size, alpha, exponent, k, size)
                if bits < CERTAIN:  # as thousands may fit
                    result = x / (k + alpha / size * squares) ** exponent
                else:
                    result = calculate_window(x, axis, window)
                if lies_near(result, y, slack):  # also values that no line was fitted to
                    fitting.append(FittedWindow(axis, window, result, bits))
            simplest = min((_count_digits(fitted.window.alpha) for fitted in fitting), default=0)
            for fitted in fitting:  # far from zero k hardly shows
                alpha = fitted.window.alpha
                if _count_digits(alpha) == simplest and not _is_nearly_round(alpha):
                    yield fitted


def _count_digits(number: float) -> int:
    return len(f"{number:.15g}")


def _is_nearly_round(alpha: float) -> bool:
    """Whether a number is nearly one of two digits, and not that: it makes up for what another one rounds."""
    return 0.0 < abs(float(f"{alpha:.2g}") / alpha - 1.0) < _NEARLY_ROUND


_NEARLY_ROUND = 1e-5


def lies_near(result: Floats, y: Floats, slack: Floats) -> bool:
    """Whether the result of a window gives all of y, each value with its slack."""
    return bool(np.all(np.abs(y - result) <= _MARGIN * slack))


def _enumerate_sides(length: int) -> Iterator[tuple[int, int]]:
    for size in range(2, min(LARGEST_SIZE, 2 * length - 1) + 1):
        sides = (size - 1) // 2, size // 2
        yield from dict.fromkeys((sides, sides[::-1]))


def _sum_windows(squares: Floats, before: int, after: int) -> Floats:
    """Return the sums of windows along the first axis, each added by itself: differences would cancel."""
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
    """Return the exact result, rounded to float64."""
    plan = make_plan(Request(WINDOWED, axes=(axis,), size=window.size), x.shape, x.dtype)
    grid = replace(plan.grid, reach=Reach(window.before, window.after))
    return run(replace(plan.change_spec(window=window), grid=grid), x)[0]


class _Seen(NamedTuple):
    """The divisors of values, as x / y shows them.

    Parameters
    ----------
    ratio : ndarray, shape (values,)
        x / y.
    size : ndarray, shape (values,)
        The sum of the squares of each window.
    margin : ndarray, shape (values,)
        The relative error of each ratio.
    """

    ratio: Floats
    size: Floats
    margin: Floats

    def take_few(self) -> _Seen:
        """Return some of the values."""
        step = -(-self.ratio.size // _FEW_VALUES)
        return _Seen(self.ratio[::step], self.size[::step], self.margin[::step])

    @property
    def is_growing(self) -> bool:
        """Whether the ratio may grow with the sum of squares, which it does with every exponent."""
        order = np.argsort(self.size)
        ratio, margin = self.ratio[order], self.margin[order]
        largest = np.maximum.accumulate(ratio / (1.0 + margin))
        return bool(np.all(largest <= ratio / (1.0 - margin) * (1.0 + _OWN_ROUNDINGS)))


def _look(x: Floats, y: Floats, slack: Floats, squares: Floats) -> _Seen | None:
    """Return what values show with such sums of squares; None if they refute every exponent."""
    usable = (np.abs(y) > 2.0 * slack) & (x != 0.0) & (squares > 0.0)
    if np.any(np.abs(y[~usable]) > 2.0 * slack[~usable] + np.abs(x[~usable])):
        return None
    ratio = x[usable] / y[usable]
    return None if np.any(ratio <= 0.0) else _Seen(ratio, squares[usable], slack[usable] / np.abs(y[usable]))


def _fit(seen: _Seen, exponent: float) -> Iterator[tuple[float, float, float, float]]:
    """Yield each k that fits, the bounds of a, and the bits of evidence for it."""
    ratio, size, margin = seen
    low, high = ((ratio / (1.0 + sign * margin)) ** (1.0 / exponent) for sign in (1.0, -1.0))
    middle = ratio ** (1.0 / exponent)
    slope, constant = _fit_line(size, middle)
    if not math.isfinite(constant):
        return
    rounded = [float(f"{max(0.0, constant):.{digits}g}") for digits in (1, 2, 3)]
    for k in dict.fromkeys(itertools.chain(CONSTANTS, rounded)):
        doubt = _OWN_ROUNDINGS * high
        least, largest = float(((low - doubt - k) / size).max()), float(((high + doubt - k) / size).min())
        if 0.0 < least <= largest and math.isfinite(largest) and slope > 0.0:
            yield k, least, largest, _count_bits(size, np.maximum(high - low, _LEAST_WIDTH) / largest)


def _count_bits(size: Floats, width: Floats) -> float:
    """Return how many bits of the sums that differ are seen: one that all values share shows nothing."""
    _, first = np.unique(size.astype(np.float32), return_index=True)
    bits = np.log2(np.maximum(np.abs(size - np.median(size)) / width, 1.0))[first]
    return float(bits.sum() - _FITTED * bits.max())


def _fit_line(x: Floats, y: Floats) -> tuple[float, float]:
    """Return the slope of the line of least squares through points, and its height at 0."""
    x_mean, y_mean = float(x.mean()), float(y.mean())
    distance = x - x_mean
    square = float(distance @ distance)
    slope = float(distance @ (y - y_mean)) / square if square > 0.0 else 0.0
    return slope, y_mean - slope * x_mean
