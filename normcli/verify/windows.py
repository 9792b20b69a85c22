"""Local response normalization, looked for: along which axis, over how many channels, with which constants."""

from __future__ import annotations

import itertools
import math
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from normcli.engine.run import run
from normcli.norms.divisors import WINDOW_POWER
from normcli.norms.grid import Reach
from normcli.norms.plan import Window, make_plan
from normcli.norms.request import Request
from normcli.norms.table import NORMS
from normcli.verify.evidence import choose_eps

if TYPE_CHECKING:
    from collections.abc import Iterator

    from normcli.dtypes import Floats


WINDOWED = next(norm.name for norm in NORMS.values() if norm.divisor == WINDOW_POWER)
"""The norm with a window."""

LARGEST_SIZE = 11
"""Channels in a window, at most."""

EXPONENTS = (0.75, 0.5, 1.0)
CONSTANTS = (1.0, 2.0, 0.0)
"""The exponents and the k that are tried; k is also fitted."""

_OWN_ROUNDINGS = 2.0**-48
"""What the bounds themselves may be off, as a part of the power."""

_LEAST_VALUES = 3
"""Fewer values have a line through them whatever made them."""


_FITTED = 3
"""Numbers of a window that are fitted: a, k and the exponent."""

_LEAST_WIDTH = 2.0**-1000


class FittedWindow(NamedTuple):
    """A window that gives y within its slack: its axis, its constants, its exact result, the evidence."""

    axis: int
    window: Window
    exact: Floats
    bits: float


def find_windows(x: Floats, y: Floats, slack: Floats) -> Iterator[FittedWindow]:
    """Yield each window that gives y within its slack.

    (x / y)^(1/exponent) is k + a · Σx², with a = α / size: of each value, rounding leaves an interval for a.
    """
    if x.ndim < 2 or not (np.isfinite(x).all() and np.isfinite(y).all()):
        return
    for axis in sorted({1, x.ndim - 1}):
        moved = np.moveaxis(x, axis, 0)
        for before, after in _enumerate_sides(x.shape[axis]):
            squares = np.moveaxis(_sum_windows(moved * moved, before, after), 0, axis)
            for exponent in EXPONENTS:
                for k, least, largest, bits in _fit(x, y, slack, squares, exponent):
                    size = before + after + 1
                    alpha = choose_eps(least * size, largest * size)
                    window = Window(before, after, size, alpha, exponent, k, size)
                    yield FittedWindow(axis, window, _calculate(x, axis, window), bits if size > 1 else 0.0)


def _enumerate_sides(length: int) -> Iterator[tuple[int, int]]:
    for size in range(1, min(LARGEST_SIZE, 2 * length - 1) + 1):
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


def _calculate(x: Floats, axis: int, window: Window) -> Floats:
    """Return the exact result, rounded to float64."""
    plan = make_plan(Request(WINDOWED, axes=(axis,), size=window.size), x.shape, x.dtype)
    grid = replace(plan.grid, reach=Reach(window.before, window.after))
    return run(replace(plan.change_spec(window=window), grid=grid), x)[0]


def _fit(
    x: Floats, y: Floats, slack: Floats, squares: Floats, exponent: float
) -> Iterator[tuple[float, float, float, float]]:
    """Yield the first k that fits, if any, the bounds of a, and the bits of evidence for it."""
    usable = (np.abs(y) > 2.0 * slack) & (x != 0.0) & (squares > 0.0)
    if np.count_nonzero(usable) < _LEAST_VALUES or np.any(
        np.abs(y[~usable]) > 2.0 * slack[~usable] + np.abs(x[~usable])
    ):
        return
    ratio, size, margin = x[usable] / y[usable], squares[usable], slack[usable] / np.abs(y[usable])
    if np.any(ratio <= 0.0):
        return
    low, high = ((ratio / (1.0 + sign * margin)) ** (1.0 / exponent) for sign in (1.0, -1.0))
    middle = ratio ** (1.0 / exponent)
    slope, constant = _fit_line(size, middle)
    if not math.isfinite(constant):
        return
    rounded = [float(f"{constant:.{digits}g}") for digits in (1, 2, 3)]
    for k in dict.fromkeys(itertools.chain(CONSTANTS, rounded)):
        doubt = _OWN_ROUNDINGS * high
        least, largest = float(((low - doubt - k) / size).max()), float(((high + doubt - k) / size).min())
        if 0.0 < least <= largest and math.isfinite(largest) and slope > 0.0:
            seen = np.log2(np.maximum(largest * size / np.maximum(high - low, _LEAST_WIDTH), 1.0))
            yield k, least, largest, float(seen.sum() - _FITTED * seen.max())
            return


def _fit_line(x: Floats, y: Floats) -> tuple[float, float]:
    """Return the slope of the line of least squares through points, and its height at 0."""
    x_mean, y_mean = float(x.mean()), float(y.mean())
    distance = x - x_mean
    square = float(distance @ distance)
    slope = float(distance @ (y - y_mean)) / square if square > 0.0 else 0.0
    return slope, y_mean - slope * x_mean
