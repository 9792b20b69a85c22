"""Histograms of the input and of the normalized values, a line for each group, with the same bins for all."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from normcli.documents.bins import choose_ticks, collect_pairs, share_no_scale
from normcli.documents.plan_header import name_output
from normcli.documents.scene import (
    Panel,
    Polyline,
    Rectangle,
    ShapeGroup,
    Text,
    draw_lines,
    flow,
    measure_text,
    stack,
)
from normcli.pictures.legend import LegendEntry

if TYPE_CHECKING:
    from collections.abc import Iterator

    from normcli.documents.bins import BinCounts
    from normcli.documents.scene import Data, Shape
    from normcli.pictures import Options
    from normcli.results.result import Result

MOST_LINES = 8
"""The most groups whose histograms are drawn."""

_DOT = 2.0
"""The length of a dot of a line, and of the gap behind it."""

_NARROWEST, _HEIGHT = 300.0, 64.0

_SIZE, _TICK = 12.0, 10.0

_NOTES = 230.0
"""The width of the notes on the bars, beside the name of their group."""


def draw_histograms(result: Result, entries: dict[int, LegendEntry], options: Options) -> Panel:
    """Return a line for each group: the histograms of its input and of its normalized values.

    Parameters
    ----------
    result : Result
    entries : dict
        The groups and their looks; empty where a window slides, and all values are in one histogram.
    options : Options
        How many bins, and whether counts or their logarithms are drawn.
    """
    pairs = collect_pairs(result, list(entries), options.bins)
    lines = list(entries.values()) or [LegendEntry("neutral", "all values (each has a window of its own)")]
    width = max(_NARROWEST, *(measure_text(entry.name, _SIZE) + _NOTES for entry in lines))
    tallest = max(max(counts.measure_bars(log=options.log)) for pair in pairs for counts in pair)
    captions = {"input": "input", "normalized": name_output(result.inputs.parameters)}
    apart = share_no_scale(pairs)
    columns = []
    for (title, caption), counted in zip(captions.items(), zip(*pairs, strict=True), strict=True):
        parts = [Panel(width, 20, (Text(0, 14, caption, _SIZE, bold=True),))]
        for number, (counts, entry) in enumerate(zip(counted, lines, strict=True), 1):
            bars = counts.measure_bars(log=options.log)
            parts.append(_draw_one(counts, [bar / (tallest or 1) for bar in bars], width, entry, title))
            if apart or number == len(lines):
                parts.append(_draw_scale(counts, width))
        columns.append(stack(parts, 8))
    key = ["Tall line: mean. Half as tall: one standard deviation to each side. Dotted: 0."]
    key += ["Bars are as high as the logarithms of 1 + their counts."] if options.log else []
    return stack([flow(columns, 48, math.inf), draw_lines(key, _TICK, "muted")], 10)


def _draw_one(counts: BinCounts, bars: list[float], width: float, entry: LegendEntry, title: str) -> Panel:
    """Return a histogram; `bars` are the heights of its bars, as parts of the highest of all."""
    top, bins = 18.0, len(counts.counts)
    step = width / bins
    shapes: list[Shape] = []
    if title == "input":
        shapes.append(Text(0, 12, entry.name, _SIZE))
    peak = int(counts.counts.max())
    notes = f"highest bar {peak:,}" + (f", not finite {counts.others:,}" if counts.others else "")
    shapes.append(Text(width, 12, notes, _TICK, "muted", "end"))
    for i, count in enumerate(counts.counts.tolist()):
        height = (_HEIGHT - top) * bars[i]
        low, high = float(counts.edges[i]), float(counts.edges[i + 1])
        attributes: Data = (("count", str(count)), ("low", repr(low)), ("high", repr(high)))
        bar = Rectangle(i * step + 0.5, _HEIGHT - height, step - 1, height, entry.fill)
        shapes.append(ShapeGroup((bar,), role="cell", data=attributes))
    shapes.append(Polyline(((0, _HEIGHT), (width, _HEIGHT)), "axis"))
    shapes += _draw_marks(counts, width, top)
    data = (("plot", title), *entry.data)
    return Panel(width, _HEIGHT, (ShapeGroup(tuple(shapes), role="histogram", data=data),))


def _draw_marks(counts: BinCounts, width: float, top: float) -> Iterator[Shape]:
    """Yield a line for zero, the mean and a deviation to each side of it."""
    for name, place in counts.marks.items():
        x = width * counts.locate(place)
        if name == "0":
            heights = np.arange(_HEIGHT, top, -2 * _DOT).tolist()
            yield from (Polyline(((x, y), (x, y - _DOT)), "gap") for y in heights)
            continue
        upper = top if name == "mean" else (top + _HEIGHT) / 2
        yield ShapeGroup((Polyline(((x, _HEIGHT), (x, upper)), "edge"),), role="mark", data=(("mark", name),))


def _draw_scale(counts: BinCounts, width: float) -> Panel:
    """Return round numbers below the bins."""
    shapes: list[Shape] = []
    for tick in choose_ticks(*counts.ends):
        x = width * counts.locate(tick)
        anchor = "start" if x < _TICK else "end" if x > width - _TICK else "middle"
        shapes.append(Polyline(((x, 0), (x, 4)), "axis"))
        shapes.append(Text(x, 14, f"{tick:.6g}", _TICK, "muted", anchor, mono=True))
    return Panel(width, 18, tuple(shapes))
