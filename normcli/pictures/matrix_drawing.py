"""The tensor laid flat: matrices within frames for the outer axes, or drawers within drawers.

Matrices: the last two axes are rows and columns; of the other axes, the last one runs to the right, the one
before downwards, and so on. Drawers: all axes but the last run downwards; drawers that would be too high are
set beside each other.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from normcli.documents.excerpt import Positions
from normcli.documents.matrix_blocks import caption_matrices
from normcli.documents.scene import (
    ASCENT,
    Panel,
    Polyline,
    Rectangle,
    ShapeGroup,
    Text,
    flow,
    measure_text,
    stack,
)
from normcli.pictures.legend import name_axis

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy as np
    from numpy.typing import NDArray

    from normcli.documents.scene import Shape
    from normcli.norms.plan import Plan
    from normcli.pictures.legend import Describe

MOST_WIDTH = 1160.0
"""About the largest width of a line of frames that stand side by side."""

MOST_HEIGHT = 520.0
"""The largest height of drawers below each other; higher ones are set beside each other."""

_ROW, _BARE = 22.0, 20.0
"""The height of a row of cells, and the edge of a cell without text."""

_SIZE, _TICK, _LABEL = 11.5, 9.5, 11.5

_PAD, _GAP, _ROW_GAP = 8.0, 10.0, 20.0

_ONE = Positions((0,))
"""The positions of rows or columns for which the tensor has no axis."""

_ADVANCE = 0.6
"""The width of a character in nearly every monospaced font, as a part of the size."""


class MatrixDrawing:
    """The drawing of a tensor as matrices of cells within frames, or as drawers within drawers.

    Parameters
    ----------
    plan : Plan
    shown : sequence of Positions
        The positions that are drawn along each axis.
    texts : ndarray of object or None
        The texts of the cells, each a str; the shape is the number of positions in `shown` along each axis.
        None: the cells are empty.
    describe : callable
        Takes a cell's index in the tensor, and returns the cell's colour and attributes.
    drawers : bool
        Whether drawers are drawn: all axes but the last run downwards, up to a height of `MOST_HEIGHT`.
        Otherwise the last two axes are matrices, and the others alternate between right and down.
    """

    def __init__(
        self,
        plan: Plan,
        shown: Sequence[Positions],
        texts: NDArray[np.object_] | None,
        describe: Describe,
        *,
        drawers: bool,
    ) -> None:
        self._plan, self._shown, self._texts, self._drawers = plan, shown, texts, drawers
        self._describe = describe
        self._names = [name_axis(plan, axis) for axis in range(len(plan.grid.shape))]
        longest = 0 if texts is None else max(map(len, texts.reshape(-1)), default=0)
        self._width = max(_BARE + 4, measure_text("0" * longest, _SIZE, mono=True) + 10) if longest else _BARE
        if shown:  # the positions above the columns need their room too
            self._width = max(self._width, measure_text(str(shown[-1].shown[-1]), _TICK, mono=True) + 4)
        self._reach = longest * _ADVANCE * _SIZE
        self._row = _ROW if longest else _BARE

    def draw(self) -> Panel:
        """Return the drawing of the whole tensor as a panel."""
        return self._nest(())

    @property
    def caption(self) -> str:
        """A caption with the axes and their directions: `rows H, columns W, a matrix for each N C`."""
        if not self._names:
            return "one value"
        if len(self._names) == 1:
            return f"{self._names[0]} to the right"
        if self._drawers:
            drawers = ", in it one for each ".join(self._names[:-1])
            return f"a drawer for each {drawers}; {self._names[-1]} to the right"
        return caption_matrices(self._names)

    def _nest(self, place: tuple[int, ...], *, heads: bool = True) -> Panel:
        """Return the drawing of the cells at one index along the first axes: frames, drawers, or one matrix.

        `place` has the numbers of drawn positions along these axes, `()` for the whole tensor. `heads` says
        whether positions are written above columns.
        """
        axis = len(place)
        left, within = len(self._names) - axis, 1 if self._drawers else 2
        if left <= within:
            return self._draw_matrix(place, heads=heads)
        positions = self._shown[axis]
        parts = []
        deep, tagged = (left - within) % 2, self._drawers and left == 2
        labels = [f"{self._plan.grid.layout.name(axis)}={position}" for position in positions.shown]
        margin = max(measure_text(label, _LABEL, mono=True) for label in labels) + 8
        for i, label in enumerate(labels):
            inner = self._nest((*place, i), heads=not (tagged and i))
            if tagged:
                parts.append(_tag(label, inner, margin))
            else:
                parts.append(_frame(label, inner, "frame" if deep else "frame2"))
        if positions.gap is not None:
            parts.insert(positions.gap, self._draw_gap(axis))
        if self._drawers:
            below = stack(parts, 3 if tagged else _GAP)
            return below if tagged or below.height <= MOST_HEIGHT else flow(parts, _GAP, MOST_WIDTH)
        return flow(parts, _GAP, MOST_WIDTH) if left % 2 else stack(parts, _GAP)

    def _draw_gap(self, axis: int) -> Panel:
        """Return the mark for positions left out along an axis: `… 5 more C …`, above a zigzag line."""
        hidden = self._plan.grid.shape[axis] - self._shown[axis].size
        text = f"… {hidden:,} more {self._plan.grid.layout.name(axis)} …"
        width = measure_text(text, _LABEL) + 4
        line = Polyline(_zigzag(0, 21, width, 21), "gap")
        return Panel(width, 28, (Text(width / 2, 12, text, _LABEL, "muted", "middle"), line))

    def _draw_matrix(self, place: tuple[int, ...], *, heads: bool) -> Panel:
        """Return the matrix of the last two axes, or the row of the last, at one index along the axes before.

        `place` has the numbers of drawn positions along these axes. Positions are written on the left of rows,
        and with `heads` above columns.
        """
        ndim = len(self._names)
        inner = ndim - len(place)
        rows = self._shown[-2] if inner == 2 else _ONE
        columns = self._shown[-1] if ndim else _ONE
        column_gap, row_gap = self._format_gap(columns, -1), self._format_gap(rows, -2)
        left = 6 + max(len(str(i)) for i in rows.shown) * _TICK * 0.61 if inner == 2 else 0.0
        top = 14.0 if ndim and heads else 0.0
        gap_width = measure_text(column_gap, _TICK, mono=True) + 6
        xs, ys = columns.spread(self._width, gap_width), rows.spread(self._row, _ROW_GAP)
        width = left + _reach(columns, xs, self._width, gap_width)
        height = top + _reach(rows, ys, self._row, _ROW_GAP)
        shapes = [
            self._draw_cell((*place, *(i, j)[2 - inner :]), left + x, top + y)
            for i, y in enumerate(ys)
            for j, x in enumerate(xs)
        ]
        if top:
            middles = [left + x + self._width / 2 for x in xs]
            shapes += [_tick(x, 10, str(i)) for i, x in zip(columns.shown, middles, strict=True)]
        if inner == 2:
            ends = [top + y + self._row / 2 + 3.4 for y in ys]
            shapes += [_tick(left - 5, y, str(i), "end") for i, y in zip(rows.shown, ends, strict=True)]
        if columns.gap is not None:
            x = left + columns.gap * self._width + gap_width / 2
            if heads:
                shapes.append(_tick(x, 10, column_gap))
            shapes.append(Polyline(_zigzag(x, top, x, height), "gap"))
        if rows.gap is not None:
            y = top + rows.gap * self._row + _ROW_GAP / 2
            span = columns.gap * self._width if columns.gap else width - left
            text = _tick(left + span / 2, y + _TICK * ASCENT, row_gap)
            half = text.extent / 2 + 4
            shapes.append(text)
            if text.x - half > left + 4:
                shapes.append(Polyline(_zigzag(left, y, text.x - half, y), "gap"))
                shapes.append(Polyline(_zigzag(text.x + half, y, width, y), "gap"))
            spare = max(0.0, text.extent / 2 - text.x, text.x + text.extent / 2 - width)
            width += 2 * spare
            shapes = [ShapeGroup(tuple(shapes), spare, 0)] if spare else shapes
        return Panel(width, height, tuple(shapes))

    def _format_gap(self, positions: Positions, axis: int) -> str:
        return "" if positions.gap is None else f"…{self._plan.grid.shape[axis] - positions.size:,}…"

    def _draw_cell(self, place: tuple[int, ...], x: float, y: float) -> Shape:
        """Return a cell and its text at a point, by the numbers of its drawn positions along each axis."""
        fill, data = self._describe(tuple(p.shown[i] for p, i in zip(self._shown, place, strict=True)))
        children: tuple[Shape, ...] = (Rectangle(x, y, self._width, self._row, fill),)
        if self._texts is not None:
            text = str(self._texts[place]).strip()
            look = fill if isinstance(fill, int) else None
            role = "ink" if look is None else "on"
            right = x + self._width / 2 + self._reach / 2
            baseline = y + self._row / 2 + _SIZE * ASCENT
            children += (Text(right, baseline, text, _SIZE, role, "end", mono=True, look=look),)
        return ShapeGroup(children, role="cell", data=data)


def _reach(positions: Positions, places: list[float], step: float, gap: float) -> float:
    """Return the end of the drawn positions along one axis, a gap at their end included.

    Parameters
    ----------
    positions : Positions
    places : list of float
        The offset of each position.
    step, gap : float
        The length of a position, and of the gap.
    """
    return places[-1] + step + (gap if positions.gap == positions.size else 0)


def _tick(x: float, y: float, text: str, anchor: str = "middle") -> Text:
    """Return a small text beside cells, for a position or the number of those left out."""
    return Text(x, y, text, _TICK, "muted", anchor, mono=True)


def _frame(label: str, inner: Panel, role: str) -> Panel:
    """Return a drawing in a frame with a name."""
    top = 20.0
    text = Text(_PAD, 14.5, label, _LABEL, "ink", mono=True)
    width, height = max(inner.width, text.extent) + 2 * _PAD, inner.height + top + _PAD
    return Panel(width, height, (Rectangle(0, 0, width, height, role, 5), text, inner.at(_PAD, top)))


def _tag(label: str, inner: Panel, left: float) -> Panel:
    """Return a drawing with its name on the left."""
    height = inner.height
    text = Text(0, height - _ROW / 2 + _LABEL * ASCENT, label, _LABEL, "ink", mono=True)
    return Panel(inner.width + left, height, (text, inner.at(left, 0)))


def _zigzag(x0: float, y0: float, x1: float, y1: float) -> tuple[tuple[float, float], ...]:
    """Return the points of a zigzag between two points on a horizontal or vertical line."""
    length = math.hypot(x1 - x0, y1 - y0)
    teeth = max(2, round(length / 5))
    nx, ny = (y1 - y0) / length * 2, (x1 - x0) / length * 2
    points = [(x0, y0)]
    for tooth in range(1, teeth):
        t, s = tooth / teeth, 1 if tooth % 2 else -1
        points.append((x0 + (x1 - x0) * t + nx * s, y0 + (y1 - y0) * t + ny * s))
    return (*points, (x1, y1))
