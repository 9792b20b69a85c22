"""Plots: histograms of input and result, a line for each group; and curves, each with a band around it."""

from __future__ import annotations

import itertools
import math
from typing import TYPE_CHECKING

import numpy as np

from normcli.documents.bins import choose_ticks, collect_pairs, share_no_scale
from normcli.documents.palette import PALETTE
from normcli.documents.plan_header import name_output
from normcli.documents.scene import (
    ASCENT,
    Panel,
    Polygon,
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
from normcli.tuples import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from normcli.documents.bins import BinCounts
    from normcli.documents.scene import Data, Point, Shape
    from normcli.pictures import Options
    from normcli.results.result import Result


MOST_LINES = 8
"""The most groups whose histograms are drawn."""

_DOT = 2.0
"""The length of a dot in a dotted line, and of the gap behind it."""

_NARROWEST, _HEIGHT = 300.0, 64.0

_SIZE, _TICK = 12.0, 10.0

_NOTES = 230.0
"""The width of the notes on the bars, beside the name of their group."""


def draw_histograms(result: Result, entries: dict[int, LegendEntry], options: Options) -> Panel:
    """Return the histograms of input and normalized values, side by side, a row for each group.

    Parameters
    ----------
    result : Result
    entries : dict
        Group → line of the legend, for the groups that are drawn; empty for norms with windows, whose values
        are all in one histogram.
    options : Options
        The number of bins, and whether bars have the heights of logarithms.
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
    """Return one histogram.

    Parameters
    ----------
    counts : BinCounts
    bars : list of float
        The heights of its bars, from 0 to 1 for the highest of all histograms.
    width : float
    entry : LegendEntry
        The name and the colour of the group.
    title : str
        `input` or `normalized`; the group's name stands above the former.
    """
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
    """Yield a histogram's marks: a dotted line at 0, lines at the mean and one deviation around it."""
    for name, place in counts.marks.items():
        x = width * counts.locate(place)
        if name == "0":
            heights = np.arange(_HEIGHT, top, -2 * _DOT).tolist()
            yield from (Polyline(((x, y), (x, y - _DOT)), "gap") for y in heights)
            continue
        upper = top if name == "mean" else (top + _HEIGHT) / 2
        yield ShapeGroup((Polyline(((x, _HEIGHT), (x, upper)), "edge"),), role="mark", data=(("mark", name),))


def _draw_scale(counts: BinCounts, width: float) -> Panel:
    """Return the scale below a histogram, with round numbers."""
    shapes: list[Shape] = []
    for tick in choose_ticks(*counts.ends):
        x = width * counts.locate(tick)
        anchor = "start" if x < _TICK else "end" if x > width - _TICK else "middle"
        shapes.append(Polyline(((x, 0), (x, 4)), "axis"))
        shapes.append(Text(x, 14, f"{tick:.6g}", _TICK, "muted", anchor, mono=True))
    return Panel(width, 18, tuple(shapes))


WIDTH, HEIGHT = 860.0, 400.0
"""The width and the height of the field of the curves."""

_TEXT = 22.0

_LEFT, _BELOW, _GAP = 96.0, 84.0, 16.0
"""The room for numbers on the left of the field, for text below it, and for the gap before curves' names."""

_HALF, _MARK = 2.5, 7.0
"""Half the width of a curve; half the side of the marks on it."""

_INDENT = _GAP + 2 * _MARK + 8.0
"""The distance from the field to the names of the curves, with room for the marks of their colours."""

_MOST_LABELS, _MOST_MARKED = 12, 24
"""About the most labels below the field, and the most places for which values are marked."""


class Curve(NamedTuple):
    """One curve with a band around it.

    Parameters
    ----------
    name : str
    look : int
        The number of the curve's colour.
    places : sequence of tuple of float
        (low end of the band, curve, high end of the band) for each point along the horizontal axis; heights
        that are not finite are not drawn.
    """

    name: str
    look: int
    places: Sequence[tuple[float, float, float]]


def draw_curves(
    curves: Sequence[Curve], labels: Sequence[str], titles: tuple[str, str], marked: int | None = None
) -> Panel:
    """Return the drawing of curves over common points of a horizontal axis; each is named at its end.

    Parameters
    ----------
    curves : sequence of Curve
        One curve or more, each with a height for every label.
    labels : sequence of str
        The names of the points.
    titles : tuple of str
        The title of the horizontal axis, and of the vertical one.
    marked : int or None
        The index of the point before which a vertical line is drawn, as something changes there; None for no
        line.
    """
    heights = np.array([curve.places for curve in curves])
    highest = float(np.max(heights, initial=0.0, where=np.isfinite(heights))) or 1.0

    def place(at: float, height: float) -> Point:
        across = (at + 0.5) / len(labels) * WIDTH
        return _LEFT + across, _TEXT * 2 + HEIGHT * (1.0 - height / highest)

    shapes = [*_draw_frame(labels, highest, titles)]
    if marked is not None:
        x = place(marked - 0.5, 0.0)[0]
        shapes.append(Polyline(((x, _TEXT * 2), (x, _TEXT * 2 + HEIGHT)), "gap"))
    ends = []
    for curve in curves:
        low, middle, high = (
            [place(at, height) for at, height in enumerate(heights) if np.isfinite(height)]
            for heights in zip(*curve.places, strict=True)
        )
        if middle:
            shapes.append(ShapeGroup((*_draw_curve(low, middle, high, curve.look),), role="curve"))
            ends.append((middle[-1][1], curve))
    names = [*_name_curves(ends)]
    longest = max(measure_text(curve.name, _TEXT, bold=True) for curve in curves)
    return Panel(_LEFT + WIDTH + _INDENT + longest, _TEXT * 2 + HEIGHT + _BELOW, (*shapes, *names))


def _draw_frame(labels: Sequence[str], highest: float, titles: tuple[str, str]) -> Iterator[Shape]:
    """Yield the numbers and titles of both axes, and horizontal lines at the numbers of the vertical one."""
    top, bottom = _TEXT * 2, _TEXT * 2 + HEIGHT
    for tick in choose_ticks(0.0, highest):
        y = bottom - HEIGHT * tick / highest
        yield Polyline(((_LEFT, y), (_LEFT + WIDTH, y)), "axis")
        yield Text(_LEFT - _GAP, y + ASCENT * _TEXT, f"{tick:g}", _TEXT, "muted", "end")
    step = -(-len(labels) // _MOST_LABELS)
    for at in range(0, len(labels), step):
        x = _LEFT + (at + 0.5) / len(labels) * WIDTH
        yield Text(x, bottom + 1.4 * _TEXT, labels[at], _TEXT, "muted", "middle")
    below, above = titles
    yield Text(_LEFT + WIDTH / 2, bottom + 3 * _TEXT, below, _TEXT, "ink", "middle")
    yield Text(0, top - 1.1 * _TEXT, above, _TEXT)


def _draw_curve(
    low: Sequence[Point], middle: Sequence[Point], high: Sequence[Point], look: int
) -> Iterator[Shape]:
    """Yield the band and the curve; with up to 24 points, a mark and a vertical line at each, too."""
    if len(middle) > 1:
        yield Polygon((*low, *reversed(high)), look + len(PALETTE))  # the same colour, lighter, and hatched
    for start, stop in itertools.pairwise(middle):
        yield Polygon(_widen(start, stop), look)
    if len(middle) <= _MOST_MARKED:
        for (x, least), (_, y), (_, most) in zip(low, middle, high, strict=True):
            yield Polyline(((x, least), (x, most)), "edge")
            yield Rectangle(x - _MARK, y - _MARK, 2 * _MARK, 2 * _MARK, look, radius=_MARK)


def _widen(start: Point, stop: Point) -> tuple[Point, ...]:
    """Return the corners of the rectangle for a line between two points with the width of a curve."""
    along = np.subtract(stop, start)
    aside = np.array([-along[1], along[0]]) / np.hypot(*along) * _HALF
    corners = (start + aside, stop + aside, stop - aside, start - aside)
    return tuple((float(x), float(y)) for x, y in corners)


def _name_curves(ends: Sequence[tuple[float, Curve]]) -> Iterator[Shape]:
    """Yield the name and the colour of each curve at its end; names are moved up where they would overlap.

    `ends` has the height of each curve's last point, and the curve.
    """
    lowest, left = float("inf"), _LEFT + WIDTH
    for y, curve in sorted(ends, key=lambda end: -end[0]):
        lowest = min(y + ASCENT * _TEXT, lowest - 1.2 * _TEXT)
        yield Rectangle(left + _GAP, lowest - 2 * _MARK, 2 * _MARK, 2 * _MARK, curve.look, radius=_MARK)
        yield Text(left + _INDENT, lowest, curve.name, _TEXT, bold=True)
