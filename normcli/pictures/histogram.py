"""Histograms of the input and of the normalized values, a line for each group, with the same bins for all."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from normcli.documents.scene import Panel, Polyline, Rectangle, ShapeGroup, Text, flow, measure, stack
from normcli.numerics.rounding import widen
from normcli.pictures.legend import LegendEntry
from normcli.teach.part import normalize_group

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from normcli.documents.scene import Data, Shape
    from normcli.results.result import Result

MOST_LINES = 8
"""So many groups have their histograms drawn."""

_FEWEST_BINS, _MOST_BINS = 5, 24

_NARROWEST, _HEIGHT = 300.0, 64.0

_SIZE, _TICK = 12.0, 10.0

_NOTES = 230.0
"""The width of the notes on the bars, beside the name of their group."""


class Counts(NamedTuple):
    """A histogram.

    Parameters
    ----------
    counts : ndarray of int
    edges : ndarray of float64
        One more than counts; the last bin holds its upper edge too.
    others : int
        How many values are not finite, and in no bin.
    """

    counts: NDArray[np.intp]
    edges: NDArray[np.float64]
    others: int


def choose_bins(values: Sequence[NDArray[Any]]) -> NDArray[np.float64]:
    """Return the edges of bins that hold all finite values: about the square root of a group's size of them."""
    finite = [part[np.isfinite(part)] for part in values]
    low = min((float(part.min()) for part in finite if part.size), default=0.0)
    high = max((float(part.max()) for part in finite if part.size), default=1.0)
    largest = max(part.size for part in finite)
    count = min(_MOST_BINS, max(_FEWEST_BINS, math.ceil(math.sqrt(largest)) + 1))
    if not low < high:
        room = abs(low) / 2 or 0.5
        low, high = low - room, high + room
    steps = np.arange(count + 1) / count
    return low * (1 - steps) + high * steps  # a difference could overflow


def count_values(values: NDArray[Any], edges: NDArray[np.float64]) -> Counts:
    """Count how many values lie in each bin.

    Examples
    --------
    >>> count_values(np.array([0.0, 0.4, 1.0, np.nan]), np.array([0.0, 0.5, 1.0]))
    Counts(counts=array([2, 1]), edges=array([0. , 0.5, 1. ]), others=1)
    """
    finite = values[np.isfinite(values)].astype(np.float64)
    places = np.clip(np.searchsorted(edges, finite, side="right") - 1, 0, len(edges) - 2)
    return Counts(np.bincount(places, minlength=len(edges) - 1), edges, values.size - finite.size)


def draw_histograms(result: Result, entries: dict[int, LegendEntry]) -> Panel:
    """Return a line for each group: the histograms of its input and of its normalized values.

    Parameters
    ----------
    result : Result
    entries : dict
        The groups and their looks; empty where a window slides, and all values are in one histogram.
    """
    grid = result.plan.grid
    view = result.input.reshape(grid.view_shape)
    pairs = [
        (np.asarray(view[grid.select_group(group)]).reshape(-1), normalize_group(result, group))
        for group in entries
    ] or [(result.input.reshape(-1), result.normalized.reshape(-1))]
    lines = list(entries.values()) or [LegendEntry("neutral", "all values (each has a window of its own)")]
    width = max(_NARROWEST, *(measure(entry.name, _SIZE) + _NOTES for entry in lines))
    columns = []
    for title, sides in zip(("input", "normalized"), zip(*pairs, strict=True), strict=True):
        values = list(map(widen, sides))
        edges = choose_bins(values)
        counted = [count_values(part, edges) for part in values]
        tallest = max(int(counts.counts.max()) for counts in counted)
        parts = [
            _draw_one(counts, tallest, width, entry, title)
            for counts, entry in zip(counted, lines, strict=True)
        ]
        head = Panel(width, 20, (Text(0, 14, title, _SIZE, bold=True),))
        columns.append(stack([head, *parts, _draw_scale(edges, width)], 8))
    return flow(columns, 48, math.inf)


def _draw_one(counts: Counts, tallest: int, width: float, entry: LegendEntry, title: str) -> Panel:
    top, bins = 18.0, len(counts.counts)
    step = width / bins
    shapes: list[Shape] = []
    if title == "input":
        shapes.append(Text(0, 12, entry.name, _SIZE))
    peak = int(counts.counts.max())
    notes = f"highest bar {peak:,}" + (f", not finite {counts.others:,}" if counts.others else "")
    shapes.append(Text(width, 12, notes, _TICK, "muted", "end"))
    for i, count in enumerate(counts.counts.tolist()):
        height = (_HEIGHT - top) * count / tallest if tallest else 0.0
        low, high = float(counts.edges[i]), float(counts.edges[i + 1])
        attributes: Data = (("count", str(count)), ("low", repr(low)), ("high", repr(high)))
        bar = Rectangle(i * step + 0.5, _HEIGHT - height, step - 1, height, entry.fill)
        shapes.append(ShapeGroup((bar,), role="cell", data=attributes))
    shapes.append(Polyline(((0, _HEIGHT), (width, _HEIGHT)), "axis"))
    data = (("plot", title), *entry.data)
    return Panel(width, _HEIGHT, (ShapeGroup(tuple(shapes), role="histogram", data=data),))


def _draw_scale(edges: NDArray[np.float64], width: float) -> Panel:
    """Return the ends and the middle of the bins as numbers."""
    low, high = float(edges[0]), float(edges[-1])
    numbers = ((0, low, "start"), (width / 2, low / 2 + high / 2, "middle"), (width, high, "end"))
    texts = (Text(x, 9, f"{number:.4g}", _TICK, "muted", anchor, mono=True) for x, number, anchor in numbers)
    return Panel(width, 14, tuple(texts))
