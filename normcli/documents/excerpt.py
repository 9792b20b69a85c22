"""The values of a tensor that are shown: of a large one both ends of every long axis, or all, a line each."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from normcli.errors import UsageError
from normcli.printable import format_count
from normcli.tensors.pieces import forget
from normcli.tuples import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from numpy.typing import NDArray

    from normcli.documents.document import Table, TableRow, View
    from normcli.norms.plan import Plan

    Column = Callable[[tuple[NDArray[np.intp], ...]], NDArray[Any]]


Item = TypeVar("Item")

MOST_VALUES = 1000
"""The most values of a tensor that is shown whole (NumPy's print threshold)."""

MOST_LINES = 48
"""The most lines of a tensor that is shown whole, so that what stands below it stays on the screen."""

MOST_MATRICES = 8
"""The most matrices that are shown of a large tensor: a screen or two."""

EDGE = 3
"""The positions shown at each end of a long axis (NumPy's edge items)."""

MOST_GROUPS = 24
GROUP_HEAD, GROUP_TAIL = 12, 4

MOST_CELLS = 400
"""The most values of a tensor that a picture shows whole, unless an axis is long."""

MOST_COLOURS = 32
"""The most groups that are easy to tell apart: eight colours, plain and hatched in three ways."""

MOST_AXES = 8
"""The most axes of a tensor that is drawn."""

_LADDER = (20, 12, 8, 6, 4, 3, 2, 1)
"""The numbers of positions to which an axis is cut, in this order, until the picture is small enough."""

_REDUCED = 1.5
"""A reduced axis is cut before a kept one, which shows groups, up to this many times its length."""


class Positions(NamedTuple):
    """The positions along one axis that are shown.

    Parameters
    ----------
    shown : tuple of int
        The shown positions, ascending.
    gap : int or None
        The number of shown positions before the part that is left out; None if nothing is left out.
    """

    shown: tuple[int, ...]
    gap: int | None = None

    @property
    def size(self) -> int:
        """The number of positions."""
        return len(self.shown)

    def open_gap(self, items: Sequence[Item], mark: Item) -> list[Item]:
        """Return `items`, one for each position, with `mark` inserted where positions are left out."""
        return list(items) if self.gap is None else [*items[: self.gap], mark, *items[self.gap :]]

    def spread(self, step: float, gap: float) -> list[float]:
        """Return the offset of each position: `step` apart, with `gap` more where positions are left out."""
        return [i * step + (gap if self.gap is not None and i >= self.gap else 0) for i in range(self.size)]


def keep_ends(length: int, head: int, tail: int) -> Positions:
    """Return the first `head` and the last `tail` positions of an axis, or all of a short one."""
    if length <= head + tail:
        return Positions(tuple(range(length)))
    return Positions((*range(head), *range(length - tail, length)), head)


def choose_positions(shape: tuple[int, ...], *, full: bool) -> list[Positions]:
    """Return the positions along each axis that a table of values shows: all, or both ends of long axes.

    Parameters
    ----------
    shape : tuple of int
    full : bool
        Whether all positions are shown in any case.
    """
    if 0 in shape:
        return [keep_ends(length, EDGE, EDGE) for length in shape]
    lines = math.prod((*shape[:-3], *shape[-2:-1]))
    if full or (math.prod(shape) <= MOST_VALUES and lines <= MOST_LINES):
        return [keep_ends(length, length, 0) for length in shape]
    inner = [_cut_ends(length, EDGE) for length in shape[-2:]]
    for edge in range(EDGE, 0, -1):
        outer = [_cut_ends(length, edge) for length in shape[:-2]]
        if _count(outer) <= MOST_MATRICES:
            break
    for axis, length in enumerate(shape[:-2]):
        if _count(outer) > MOST_MATRICES:  # many axes: of the outermost, the first position stands for all
            outer[axis] = keep_ends(length, 1, 0)
    return outer + inner


def _cut_ends(length: int, edge: int) -> Positions:
    """Return `edge` positions at each end of an axis; all if no more than one would be left out."""
    return cut_beyond(2 * edge + 1, length, edge, edge)


def _count(positions: list[Positions]) -> int:
    return math.prod(p.size for p in positions)


def cut_beyond(most: int, length: int, head: int, tail: int, *, full: bool = False) -> Positions:
    """Return all positions if `full` or if they are at most `most`; else the first `head` and last `tail`."""
    return keep_ends(length, length, 0) if full or length <= most else keep_ends(length, head, tail)


def format_hidden(hidden: int, count: int, noun: str, plural: str | None = None) -> str | None:
    """Return the note on how many items an excerpt hides; None if it hides none.

    Examples
    --------
    >>> format_hidden(12, 20, "group")
    '12 of 20 groups hidden; --full shows all'
    """
    return f"{hidden:,} of {format_count(count, noun, plural)} hidden; --full shows all" if hidden else None


def build_excerpt(
    table: Table, make_row: Callable[[int], TableRow], count: int, noun: str, view: View
) -> Table:
    """Return a table with the rows that a view shows, and a note on how many it hides.

    All rows are shown if they are at most 24 or the view is full; otherwise the first 12, None, and the last 4.

    Parameters
    ----------
    table : Table
        The table without rows.
    make_row : callable
        Takes a row's number, from 0, and returns the row.
    count : int
        The number of all rows.
    noun : str
        The noun for a row, such as `group`.
    view : View
    """
    chosen = cut_beyond(MOST_GROUPS, count, GROUP_HEAD, GROUP_TAIL, full=view.full)
    rows = chosen.open_gap(list(map(make_row, chosen.shown)), None)
    return table._replace(rows=rows, note=format_hidden(count - chosen.size, count, noun))


def make_index(positions: Sequence[Positions]) -> tuple[NDArray[np.intp], ...]:
    """Return the positions along all axes as index arrays, one per axis: `tensor[index]` is the excerpt."""
    return np.ix_(*(p.shown for p in positions))


def choose_drawn(*plans: Plan) -> list[Positions]:
    """Return the positions to draw along each axis of a tensor, few enough for the groups of every plan.

    The longest axis is cut first, until at most 400 values and 32 groups of each plan are left. A reduced axis
    counts as 1.5 times as long; while there are too many groups, only axes that are not reduced are cut.

    Raises
    ------
    UsageError
        If the tensor has more than eight axes.
    """
    shape = plans[0].grid.shape
    if len(shape) > MOST_AXES:
        raise UsageError(
            f"a picture holds at most {MOST_AXES} axes; the tensor has {len(shape)}: draw a slice of it, or "
            "join axes that are kept or reduced together"
        )
    if 0 in shape:
        return [keep_ends(length, 1, 0) for length in shape]
    shown = [_cut_to(length, _LADDER[0]) for length in shape]
    while True:
        crowded = [plan for plan in plans if _count_groups(plan, shown) > MOST_COLOURS]
        if not crowded and math.prod(p.size for p in shown) <= MOST_CELLS:
            return shown
        kept = (crowded or plans)[0].grid.kept
        axes = [axis for axis in range(len(shape)) if shown[axis].size > 1 and (axis in kept or not crowded)]
        weights = {axis: shown[axis].size * (1 if axis in kept else _REDUCED) for axis in axes}
        longest = max(axes, key=weights.__getitem__)
        shown[longest] = _cut_to(shape[longest], next(s for s in _LADDER if s < shown[longest].size))


def _cut_to(length: int, most: int) -> Positions:
    """Return at most `most` positions of an axis: two thirds from its start, one third from its end."""
    tail = most // 3 if most > 2 else most // 2
    return keep_ends(length, most - tail, tail)


def _count_groups(plan: Plan, shown: list[Positions]) -> int:
    """Return the number of groups that the shown cells belong to; 1 for a norm with sliding windows."""
    return 1 if plan.groups_overlap else np.unique(plan.grid.locate_groups(make_index(shown))).size


def narrow(positions: Positions, length: int, most: int) -> Positions:
    """Return at most `most` positions of an axis of `length`: the given ones, or fewer from both ends."""
    if positions.size <= most:
        return positions
    head = positions.size if positions.gap is None else positions.gap
    tail = min(positions.size - head, most // 3) if positions.gap is not None else most // 3
    return keep_ends(length, min(head, most - tail), tail)


_LINES_AT_ONCE = 8192

_BYTES = 8
"""The bytes that a line counts for in the progress of the work."""


def pick_from(values: NDArray[Any]) -> Column:
    """Return a function that takes an index array for each axis, and returns the values there, flat."""

    def pick(index: tuple[NDArray[np.intp], ...]) -> NDArray[Any]:
        picked: NDArray[Any] = np.asarray(values[index]).reshape(-1)
        forget(values)
        return picked

    return pick


def locate_last(axis_names: Sequence[str], shape: tuple[int, ...], place: int) -> dict[str, int]:
    """Return the index of a value in an array that has only the last axes of a tensor, by axis name.

    `place` is the flat index of the value in the array, `shape` the array's shape.

    Examples
    --------
    >>> locate_last(["n", "c", "h"], (2, 3), 4)
    {'c': 1, 'h': 1}
    """
    names = axis_names[len(axis_names) - len(shape) :]
    return dict(zip(names, map(int, np.unravel_index(np.asarray(place), shape or (1,))), strict=False))


def iterate_long(
    axis_names: Sequence[str], shape: tuple[int, ...], columns: Mapping[str, Column]
) -> Iterator[list[Any]]:
    """Yield the rows of a CSV table of a tensor: the names, then for each value its index and its cells.

    Parameters
    ----------
    axis_names : sequence of str
        One for each axis of the shape.
    shape : tuple of int
    columns : mapping of str to callable
        The columns by name. Each takes an index array for each axis, and returns its values there.
    """
    from normcli.tensors.pieces import expect
    from normcli.tensors.tables.delimited_writing import to_cell  # of CSV alone

    yield [*axis_names, *columns]
    size = math.prod(shape)
    advance = expect(size * _BYTES)
    for start in range(0, size, _LINES_AT_ONCE):
        index = np.unravel_index(np.arange(start, min(size, start + _LINES_AT_ONCE)), shape) if shape else ()
        picked = (pick(index).reshape(-1).tolist() for pick in columns.values())
        cells = [(cell if isinstance(cell, str) else to_cell(cell) for cell in some) for some in picked]
        yield from map(list, zip(*(i.tolist() for i in index), *cells, strict=True))
        advance(min(_LINES_AT_ONCE, size - start) * _BYTES)
