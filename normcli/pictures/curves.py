"""Curves with a band around each, over places that are evenly spaced: large enough for a slide."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING

import numpy as np

from normcli.documents.bins import choose_ticks
from normcli.documents.palette import PALETTE
from normcli.documents.scene import ASCENT, Panel, Polygon, Polyline, Rectangle, ShapeGroup, Text, measure_text
from normcli.tuples import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from normcli.documents.scene import Point, Shape

WIDTH, HEIGHT = 860.0, 400.0
"""Of the field of the curves."""

_SIZE = 22.0

_LEFT, _BELOW, _GAP = 96.0, 84.0, 16.0
"""Room for the numbers beside the field, for those below it, and between it and the names of the curves."""

_HALF, _MARK = 2.5, 7.0
"""Half the width of a curve; half the side of the marks on it."""

_INDENT = _GAP + 2 * _MARK + 8.0
"""From the field to the names, behind their colours."""

_MOST_LABELS, _MOST_MARKED = 12, 24
"""Numbers below the field, and places whose values are marked."""


class Curve(NamedTuple):
    """One curve.

    Parameters
    ----------
    name : str
    look : int
        The number of its colour.
    places : sequence of tuple of float
        At each place the low end of the band, the curve, and the high end of the band.
    """

    name: str
    look: int
    places: Sequence[tuple[float, float, float]]


def draw_curves(
    curves: Sequence[Curve], labels: Sequence[str], titles: tuple[str, str], marked: int | None = None
) -> Panel:
    """Return curves over the same places, each named at its end.

    Parameters
    ----------
    curves : sequence of Curve
    labels : sequence of str
        What each place is called.
    titles : tuple of str
        What is told below the field, and above its numbers.
    marked : int or None
        A place at which a line stands: something changes there.
    """
    heights = np.array([curve.places for curve in curves])
    highest = float(np.max(heights, initial=0.0, where=np.isfinite(heights))) or 1.0

    def place(at: float, height: float) -> Point:
        across = (at + 0.5) / len(labels) * WIDTH
        return _LEFT + across, _SIZE * 2 + HEIGHT * (1.0 - height / highest)

    shapes = [*_draw_frame(labels, highest, titles)]
    if marked is not None:
        x = place(marked - 0.5, 0.0)[0]
        shapes.append(Polyline(((x, _SIZE * 2), (x, _SIZE * 2 + HEIGHT)), "gap"))
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
    longest = max(measure_text(curve.name, _SIZE, bold=True) for curve in curves)
    return Panel(_LEFT + WIDTH + _INDENT + longest, _SIZE * 2 + HEIGHT + _BELOW, (*shapes, *names))


def _draw_frame(labels: Sequence[str], highest: float, titles: tuple[str, str]) -> Iterator[Shape]:
    """Yield the numbers and titles of both axes, and lines across the field."""
    top, bottom = _SIZE * 2, _SIZE * 2 + HEIGHT
    for tick in choose_ticks(0.0, highest):
        y = bottom - HEIGHT * tick / highest
        yield Polyline(((_LEFT, y), (_LEFT + WIDTH, y)), "axis")
        yield Text(_LEFT - _GAP, y + ASCENT * _SIZE, f"{tick:g}", _SIZE, "muted", "end")
    step = -(-len(labels) // _MOST_LABELS)
    for at in range(0, len(labels), step):
        x = _LEFT + (at + 0.5) / len(labels) * WIDTH
        yield Text(x, bottom + 1.4 * _SIZE, labels[at], _SIZE, "muted", "middle")
    below, above = titles
    yield Text(_LEFT + WIDTH / 2, bottom + 3 * _SIZE, below, _SIZE, "ink", "middle")
    yield Text(0, top - 1.1 * _SIZE, above, _SIZE)


def _draw_curve(
    low: Sequence[Point], middle: Sequence[Point], high: Sequence[Point], look: int
) -> Iterator[Shape]:
    """Yield the band, the curve, and a mark at each place of a few."""
    if len(middle) > 1:
        yield Polygon((*low, *reversed(high)), look + len(PALETTE))  # the same colour, lighter, and hatched
    for start, stop in itertools.pairwise(middle):
        yield Polygon(_widen(start, stop), look)
    if len(middle) <= _MOST_MARKED:
        for (x, least), (_, y), (_, most) in zip(low, middle, high, strict=True):
            yield Polyline(((x, least), (x, most)), "edge")
            yield Rectangle(x - _MARK, y - _MARK, 2 * _MARK, 2 * _MARK, look, radius=_MARK)


def _widen(start: Point, stop: Point) -> tuple[Point, ...]:
    """Return the corners of a line with a width."""
    along = np.subtract(stop, start)
    aside = np.array([-along[1], along[0]]) / np.hypot(*along) * _HALF
    corners = (start + aside, stop + aside, stop - aside, start - aside)
    return tuple((float(x), float(y)) for x, y in corners)


def _name_curves(ends: Sequence[tuple[float, Curve]]) -> Iterator[Shape]:
    """Yield the name and the colour of each curve beside its end, none on another."""
    lowest, left = float("inf"), _LEFT + WIDTH
    for y, curve in sorted(ends, key=lambda end: -end[0]):
        lowest = min(y + ASCENT * _SIZE, lowest - 1.2 * _SIZE)
        yield Rectangle(left + _GAP, lowest - 2 * _MARK, 2 * _MARK, 2 * _MARK, curve.look, radius=_MARK)
        yield Text(left + _INDENT, lowest, curve.name, _SIZE, bold=True)
