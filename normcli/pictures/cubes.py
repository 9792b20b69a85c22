"""The tensor as blocks of unit cubes, as in figure 2 of Wu & He 2018: channels, samples and positions.

Some positions along an axis may be left out: the block is then broken in two, with dashed lines over the gap.
"""

from __future__ import annotations

import functools
import itertools
import math
from typing import TYPE_CHECKING

import numpy as np

from normcli.documents.excerpt import Positions, keep_ends, narrow
from normcli.documents.scene import Panel, Polygon, Polyline, ShapeGroup, Text, measure_text
from normcli.pictures.legend import name_axis
from normcli.tuples import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Container, Sequence

    from normcli.documents.scene import Point, Shape
    from normcli.norms.plan import Plan
    from normcli.pictures.legend import Describe

    Place = tuple[int, ...]
    """The position of a cell among the shown ones: to the right, into the depth, downwards."""

    Bounds = tuple[tuple[float, float], ...]
    """The begin and end of a box, or of its face, in each of three directions, in cubes."""

UNIT = 26.0
"""The edge of a cube."""

_COS, _SIN = 0.866, 0.5
"""The cosine and sine of 30°, the angle of an isometric view."""

_BREAK = 1.5
"""The width of a gap, in cubes."""

_MOST = (10, 8, 16)
"""The most positions that are drawn to the right, into the depth and downwards."""

_TICK, _LABEL = 9.5, 13.0

_SAMPLES = (0.12, 0.5, 0.88)
"""The positions along a face's edges, from 0 to 1, of the points that are tested for being hidden."""


class Edge(NamedTuple):
    """One of three directions of a drawing (right, depth, down), and the tensor's axes laid along it.

    Parameters
    ----------
    axes : tuple of int
        The axes, in C order; empty if the tensor has too few.
    shape : tuple of int
        The lengths of the axes.
    label : str
    shown : Positions
        The positions that are drawn, counted along all axes together in C order.
    """

    axes: tuple[int, ...]
    shape: tuple[int, ...]
    label: str
    shown: Positions

    @property
    def offsets(self) -> list[float]:
        """The distance from the block's corner to the start of each drawn position, in cubes."""
        return self.shown.spread(1, _BREAK)

    @property
    def extent(self) -> float:
        """The distance from the block's corner to the end of the last position, in cubes."""
        return self.offsets[-1] + 1

    @property
    def runs(self) -> list[range]:
        """The numbers of drawn positions before and after the gap, as two ranges; one without a gap."""
        gap = self.shown.gap
        parts = [range(self.shown.size)] if gap is None else [range(gap), range(gap, self.shown.size)]
        return [part for part in parts if part]

    @property
    def ticks(self) -> list[tuple[float, str]]:
        """Pairs (distance in cubes, label): the index of each position, and at the gap the number left out."""
        ticks = [
            (offset + 0.5, ",".join(map(str, self.unravel(place)))) for place, offset in enumerate(self.offsets)
        ]
        if self.shown.gap is not None:
            hidden = math.prod(self.shape) - self.shown.size
            ticks.append((self.shown.gap + _BREAK / 2, f"… {hidden:,} more"))
        return ticks

    @property
    def ticks_extent(self) -> float:
        """The width of the longest label in `ticks`."""
        return max(measure_text(text, _TICK, mono=True) for _, text in self.ticks)

    def unravel(self, place: int) -> tuple[int, ...]:
        """Return the index along each of this edge's axes of drawn position number `place`."""
        return tuple(int(i) for i in np.unravel_index(self.shown.shown[place], self.shape))


class Cubes:
    """The drawing of one tensor as blocks of cubes; `cells` has the indices of the cells that can be seen.

    Parameters
    ----------
    plan : Plan
    shown : sequence of Positions
        The positions along each axis that may be drawn; of long edges, fewer are.
    beside : sequence of Plan
        The plans of the same tensor in other drawings of the picture, which all leave out the same cells.
    """

    def __init__(self, plan: Plan, shown: Sequence[Positions], beside: Sequence[Plan] = ()) -> None:
        self._plan = plan
        plans = (plan, *beside)
        kept = {axis for each in plans if each.spec.window is None for axis in each.grid.kept}
        self.edges = _fold(plan, shown, kept)
        self._offsets = [edge.offsets for edge in self.edges]
        runs = reversed(self.edges[1].runs), reversed(self.edges[2].runs), self.edges[0].runs
        self._boxes = [(x, y, z) for y, z, x in itertools.product(*runs)]
        self._bounds = list(map(self._bound, self._boxes))
        self._faces = [self._find_faces(box) for box in self._boxes]
        self.cells = [self._index(place) for place in sorted(set().union(*self._faces))]
        """The indices of the cells that can be seen."""

    @property
    def captions(self) -> list[str]:
        """The parts of a caption, each with an axis and its direction: `C = 3 to the right`."""
        ways = ("to the right", "into the depth", "downwards")
        parts = [f"{edge.label} {way}" for edge, way in zip(self.edges, ways, strict=True) if edge.axes]
        return parts or ["one value"]

    def draw(self, describe: Describe) -> Panel:
        """Return the drawing of the blocks with their axes.

        Parameters
        ----------
        describe : callable
            Takes a cell's index, and returns the cell's colour and attributes.
        """
        shapes: list[Shape] = []
        for box, faces in zip(self._boxes, self._faces, strict=True):
            shapes += self._draw_box(box, faces, describe)
        return _enclose([*shapes, *self._draw_gaps(), *self._draw_labels()])

    def _find_faces(self, box: Sequence[range]) -> dict[Place, list[Bounds]]:
        """Return cell → its faces that can be seen: top, front or right side; only cells that have some.

        `box` has the ranges of positions, without a gap, along the three edges.
        """
        faces: dict[Place, list[Bounds]] = {}
        x, y, z = box
        for cell in itertools.product(x, y, z):
            outside = (cell[2] == z[0], cell[1] == y[0], cell[0] == x[-1])
            for face in itertools.compress(_list_faces(self._bound([(i,) for i in cell])), outside):
                points = itertools.product(*({a + (b - a) * part for part in _SAMPLES} for a, b in face))
                if not all(map(self._is_hidden, points)):
                    faces.setdefault(cell, []).append(face)
        return faces

    def _is_hidden(self, point: tuple[float, ...]) -> bool:
        """Whether a block hides a point (x, y, z) from the eye, which looks from the direction (1, −1, −1)."""
        x, y, z = point
        for (x0, x1), (y0, y1), (z0, z1) in self._bounds:
            end = min(x1 - x, y - y0, z - z0)
            if 0 < end >= max(x0 - x, y - y1, z - z1):
                return True
        return False

    def _bound(self, box: Sequence[Sequence[int]]) -> Bounds:
        return tuple(
            (offsets[part[0]], offsets[part[-1]] + 1) for offsets, part in zip(self._offsets, box, strict=True)
        )

    def _draw_box(
        self, box: Sequence[range], faces: dict[Place, list[Bounds]], describe: Describe
    ) -> list[Shape]:
        """Return the shapes of a block of cubes: its cells, shaded sides and edges."""
        shapes: list[Shape] = []
        for cell, found in faces.items():
            colour, data = describe(self._index(cell))
            polygons = tuple(Polygon(_project_face(face), colour) for face in found)
            shapes.append(ShapeGroup(polygons, role="cell", data=data))
        top, front, side = map(_project_face, _list_faces(self._bound(box)))
        shapes += [Polygon(top, "light"), Polygon(side, "shade")]
        shapes += [Polyline((*points, points[0]), "edge") for points in (top, front, side)]
        return shapes

    def _draw_gaps(self) -> list[Shape]:
        """Return dashed lines along the outer edges, where cells are left out."""
        lines: list[Shape] = []
        x, y, z = (edge.extent for edge in self.edges)
        corners = (((0, 0), (0, z), (y, 0)), ((x, 0), (x, z), (0, 0)), ((0, 0), (x, 0), (x, y)))
        for way, edge in enumerate(self.edges):
            if edge.shown.gap is None:
                continue
            gap: float = edge.shown.gap
            for corner in corners[way]:
                before, behind = corner[:way], corner[way:]
                start, end = (_project((*before, at, *behind)) for at in (gap, gap + _BREAK))
                lines.append(Polyline(_zigzag(*start, *end), "gap"))
        return lines

    def _draw_labels(self) -> list[Shape]:
        """Return the labels of axes, and the numbers of positions along them."""
        right, depth, down = self.edges
        shapes: list[Shape] = []

        def place(edge: Edge, at: float) -> Point:
            """Return the point in the picture for a distance along one of the two bottom edges."""
            return _project((at, 0, down.extent) if edge is right else (right.extent, at, down.extent))

        for edge, side, anchor in ((right, -1, "end"), (depth, 1, "start")):
            if not edge.axes:
                continue
            for at, text in edge.ticks:
                x, y = place(edge, at)
                shapes.append(Text(x + side * 5, y + 12, text, _TICK, "muted", anchor, mono=True))
            x, y = place(edge, edge.extent / 2)
            y += 24 + edge.ticks_extent * 0.6
            shapes.append(Text(x + side * 14, y, edge.label, _LABEL, anchor=anchor, bold=True))
        if down.axes:
            places = [(_project((0, 0, at)), text) for at, text in down.ticks]
            shapes += [Text(x - 7, y + 3.4, text, _TICK, "muted", "end", mono=True) for (x, y), text in places]
            reach = down.ticks_extent
            _, bottom = _project((0, 0, down.extent))
            middle = min(bottom / 2, bottom - measure_text(down.label, _LABEL, bold=True) / 2)
            shapes.append(
                Text(-14 - reach, middle, down.label, _LABEL, anchor="middle", bold=True, upward=True)
            )
        return shapes

    def _index(self, place: tuple[int, ...]) -> tuple[int, ...]:
        index = [0] * len(self._plan.grid.shape)
        for edge, i in zip(self.edges, place, strict=True):
            for axis, position in zip(edge.axes, edge.unravel(i), strict=True):
                index[axis] = position
        return tuple(index)


def _fold(plan: Plan, shown: Sequence[Positions], kept: Container[int]) -> list[Edge]:
    """Return three edges: to the right (the channel axis), into the depth (batch), down (all other axes).

    `shown` has the positions along each axis that may be drawn; `kept` are the axes that are not reduced.
    """
    down = list(range(len(plan.grid.shape)))

    def take(wanted: int | None, otherwise: int) -> list[int]:
        return [down.pop(down.index(wanted) if wanted in down else otherwise)] if down else []

    layout = plan.grid.layout
    folded = take(layout.channel, -1), take(layout.batch, 0), down
    parts = zip(folded, _MOST, strict=True)
    return [_make_edge(plan, tuple(part), shown, kept, most) for part, most in parts]


def _make_edge(
    plan: Plan, axes: tuple[int, ...], shown: Sequence[Positions], kept: Container[int], most: int
) -> Edge:
    """Return an edge of a drawing for some axes, with at most about `most` drawn positions.

    `kept` are the axes that are not reduced. Along these, only positions in `shown` are drawn, as each other
    position would add groups to the legend.
    """
    shape = tuple(plan.grid.shape[axis] for axis in axes)
    names = "×".join(name_axis(plan, axis) for axis in axes)
    sizes = "×".join(f"{length:,}" for length in shape)
    length = math.prod(shape)
    label = f"{names} = {sizes}" + (f" = {length:,}" if len(axes) > 1 else "")
    bound = [shown[axis] if axis in kept else None for axis in axes]
    if len(axes) == 1 and bound[0] is not None:
        return Edge(axes, shape, label, narrow(bound[0], length, most))
    head, tail = _count_from_ends(shape, bound)
    if length > most or head < length:
        head, tail = min(head, most - 4), min(tail, 4)
    return Edge(axes, shape, label, keep_ends(length, head, tail))


def _count_from_ends(shape: tuple[int, ...], bound: Sequence[Positions | None]) -> tuple[int, int]:
    """Return the numbers of positions before the first, and after the last, that is not shown on an edge.

    Positions are those of all axes of the edge, flattened in C order. `bound` has the shown positions along
    each axis; None for all of them. If all positions are shown, both numbers are their number.
    """
    seen = [
        np.isin(np.arange(length), positions.shown) if positions is not None else np.ones(length, dtype=bool)
        for length, positions in zip(shape, bound, strict=True)
    ]
    flat = functools.reduce(np.logical_and.outer, seen, np.ones((), dtype=bool)).reshape(-1)
    if flat.all():
        return flat.size, flat.size
    return int(np.argmin(flat)), int(np.argmin(flat[::-1]))


def _project(corner: tuple[float, ...]) -> Point:
    """Return the point in the picture of a point (x, y, z) in cubes."""
    x, y, z = corner
    return (x + y) * _COS * UNIT, ((x - y) * _SIN + z) * UNIT


def _list_faces(bounds: Bounds) -> list[Bounds]:
    """Return the top, the front and the right side of a box, as bounds with equal ends in one direction."""
    x, y, z = bounds
    return [(x, y, (z[0], z[0])), (x, (y[0], y[0]), z), ((x[1], x[1]), y, z)]


def _project_face(face: Bounds) -> tuple[Point, ...]:
    """Return the four corners of a face in the picture, in order round the face."""
    x, y, z = map(dict.fromkeys, face)
    a, b, d, c = (_project(corner[::-1]) for corner in itertools.product(z, y, x))
    return a, b, c, d


def _zigzag(x0: float, y0: float, x1: float, y1: float) -> tuple[Point, ...]:
    """Return a line from end to end with a zigzag in its middle."""
    length = math.hypot(x1 - x0, y1 - y0)
    nx, ny = -(y1 - y0) / length * 4, (x1 - x0) / length * 4
    steps = ((0, 0), (0.35, 0), (0.42, 1), (0.5, -1), (0.58, 1), (0.65, 0), (1, 0))
    return tuple((x0 + (x1 - x0) * t + nx * s, y0 + (y1 - y0) * t + ny * s) for t, s in steps)


def _enclose(shapes: list[Shape]) -> Panel:
    """Return shapes as a panel, moved so that the upper left corner of their texts and lines is (0, 0)."""
    points: list[Point] = []
    for shape in shapes:
        if isinstance(shape, Text):
            points += _bound_text(shape)
        elif isinstance(shape, Polyline):
            points += shape.points
    xs, ys = zip(*points, strict=True)
    left, top = min(xs), min(ys)
    return Panel(max(xs) - left, max(ys) - top, (ShapeGroup(tuple(shapes), -left, -top),))


def _bound_text(text: Text) -> list[Point]:
    first = {"start": 0.0, "middle": -0.5, "end": -1.0}[text.anchor] * text.extent
    last, ascent, descent = first + text.extent, text.size, 0.3 * text.size
    if text.upward:
        return [(text.x - ascent, text.y - last), (text.x + descent, text.y - first)]
    return [(text.x + first, text.y - ascent), (text.x + last, text.y + descent)]
