"""A tensor, or an excerpt of it, as coloured matrices that stand in bands."""

from __future__ import annotations

import itertools
import math
import operator
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from normcli.documents.document import GAP, Blocks, Matrix
from normcli.documents.excerpt import Positions, choose_positions, cut, format_hidden, make_index
from normcli.documents.numbers import format_cells

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from normcli.documents.document import View
    from normcli.engine.inputs import Selection
    from normcli.norms.grid import Grid
    from normcli.norms.plan import Plan

NOBODY = -1
"""Stands instead of a group's number for a cell that belongs to no group."""

Pick = Callable[[tuple["NDArray[np.intp]", ...]], "NDArray[Any]"]
Locate = Callable[[Sequence["NDArray[np.intp]"]], "NDArray[np.intp]"]


def build_blocks(
    title: str, values: NDArray[Any], plan: Plan, view: View, locate: Locate | None = None
) -> Blocks:
    """Return a tensor as the matrices of its last two axes, laid out along the outer ones.

    Parameters
    ----------
    title : str
    values : ndarray
        Of the plan's shape.
    plan : Plan
        Its groups colour the cells.
    view : View
        Bounds the excerpt.
    locate : function of index arrays, optional
        Returns the number of each cell's colour, instead of the plan's groups.
    """
    return build_map(title, values.__getitem__, plan, view, locate)


def build_map(title: str, pick: Pick, plan: Plan, view: View, locate: Locate | None = None) -> Blocks:
    """Return matrices as `build_blocks` does, of values that are computed only where they are shown.

    Parameters
    ----------
    title : str
    pick : callable
        Returns the values at some positions, given an index array for each axis; these broadcast.
    plan : Plan
    view : View
    locate : callable, optional
        As in `build_blocks`.
    """
    positions = choose_positions(plan.grid.shape, full=view.full)
    bands, note = _lay_out(pick, plan, view, positions, plan.grid.shape, locate)
    names = plan.grid.layout.names
    return Blocks(title, _caption(names), bands, note)


def build_slice(name: str, values: NDArray[Any], plan: Plan, view: View) -> Matrix | None:
    """Return the first matrix of `build_blocks` under another name; it is cut to the width even in a full view.

    None where there are no values.
    """
    outer = max(0, values.ndim - 2)
    if not values.size:
        return None
    positions = [
        *(Positions((0,)) for _ in range(outer)),
        *choose_positions(values.shape[outer:], full=view.full),
    ]
    lengths = (*(1,) * outer, *values.shape[outer:])
    bands, _ = _lay_out(values.__getitem__, plan, view._replace(full=False), positions, lengths)
    matrix = next((matrix for band in bands for matrix in band or () if matrix is not None), None)
    return None if matrix is None else matrix._replace(name=name)


def name_slice(plan: Plan) -> str:
    """Return the caption of `build_slice`: its rows and columns, and its place along the outer axes."""
    names = plan.grid.layout.names
    place = " ".join(f"{name}=0" for name in names[:-2])
    return f"{_caption(names[-2:])}{f', at {place}' if place else ''}"


def _lay_out(
    pick: Pick,
    plan: Plan,
    view: View,
    positions: list[Positions],
    lengths: tuple[int, ...],
    locate: Locate | None = None,
) -> tuple[list[list[Matrix | None] | None], str | None]:
    """Return the bands of an excerpt of axes of some lengths, and the note on what it hides."""
    texts = _format_picked(pick, positions, view)
    panels: list[Positions] = []
    if positions and view.full:
        panels = _split_panels(lengths[-1], _count_fitting_columns(view.width, texts))
    while positions and not view.full:
        narrowed = _narrow(positions[-1], lengths[-1], _count_fitting_columns(view.width, texts))
        if narrowed == positions[-1]:
            break
        positions[-1] = narrowed
        texts = _format_picked(pick, positions, view)  # wider, where a large value with few decimals is gone
    size = math.prod(lengths)
    note = format_hidden(size - texts.size, size, "value")
    if not texts.size:
        return [], note
    excerpt = _Excerpt(
        plan.grid.layout.names, positions, texts, _number_groups(plan, positions, locate), panels
    )
    bands = [
        None if outer is None else list(excerpt.build_band(outer, lengths[-3:-2]))
        for outer in _walk(positions[:-3], lengths[:-3])
    ]
    return bands, note


class _Excerpt(NamedTuple):
    """The values that are shown of a tensor, as text.

    Parameters
    ----------
    names : tuple of str
        Of all axes.
    positions : list of Positions
        Along each axis.
    texts : ndarray of str
        Of the shape that the positions span.
    owners : ndarray of int
        The number of each value's colour, or `NOBODY`; of the same shape.
    panels : list of Positions
        Of the last axis, where its columns are set in several matrices; else empty.
    """

    names: tuple[str, ...]
    positions: list[Positions]
    texts: NDArray[Any]
    owners: NDArray[np.intp]
    panels: list[Positions]

    def build_band(self, outer: tuple[int, ...], length: tuple[int, ...]) -> Iterator[Matrix | None]:
        """Yield the matrices that stand side by side: those along the last of the outer axes."""
        for inner in _walk(self.positions[-3:-2], length):
            if inner is None:
                yield None
                continue
            place = (*outer, *inner)
            named = zip(self.names, self.positions, place, strict=False)
            name = " ".join(f"{axis}={shown.shown[i]}" for axis, shown, i in named)
            if not self.panels:
                yield self._build_matrix(name, place, self.positions[-1] if self.positions else Positions((0,)))
            for panel in self.panels:
                label = f"{self.names[-1]}={panel.shown[0]}…{panel.shown[-1]}"
                yield self._build_matrix(f"{name} {label}".strip(), place, panel)

    def _build_matrix(self, name: str, place: tuple[int, ...], columns: Positions) -> Matrix:
        ndim = len(self.positions)
        rows = self.positions[-2] if ndim > 1 else Positions((0,))
        part = list(columns.shown) if self.panels else slice(None)
        texts = np.atleast_2d(self.texts[place])[:, part].tolist()
        owners = np.atleast_2d(self.owners[place])[:, part].tolist()
        groups = [[None if owner == NOBODY else owner for owner in row] for row in owners]

        def open_gaps(cells: list[list[Any]], mark: str | None) -> list[list[Any]]:
            opened = [_open_gap(row, columns.gap, mark) for row in cells]
            return _open_gap(opened, rows.gap, [mark] * len(opened[0]))

        row_labels = [f"{self.names[-2]}={i}" for i in rows.shown] if ndim > 1 else [""]
        column_labels = [f"{self.names[-1]}={i}" for i in columns.shown] if ndim else ["value"]
        return Matrix(
            name,
            open_gaps(texts, GAP),
            open_gaps(groups, None),
            _open_gap(row_labels, rows.gap, GAP),
            _open_gap(column_labels, columns.gap, GAP),
        )


def _format_picked(pick: Pick, positions: list[Positions], view: View) -> NDArray[Any]:
    """Return the values at some positions as texts of one width."""
    picked = np.asarray(pick(make_index(positions)))
    return np.array(format_cells(picked, view.digits), dtype=object).reshape(picked.shape)


def _caption(names: Sequence[str]) -> str:
    if len(names) < 2:
        return f"along {names[0]}" if names else ""
    caption = f"rows {names[-2]}, columns {names[-1]}"
    return caption if len(names) == 2 else f"{caption}, a matrix for each {' '.join(names[:-2])}"


def _count_fitting_columns(width: int | None, texts: NDArray[Any]) -> int | None:
    """Return how many columns of cells like these, all of one width, fit; at least three."""
    cell_width = len(texts.flat[0]) if texts.size else 1
    return None if width is None else max(3, (width - 2) // (cell_width + 1))


def _split_panels(length: int, fitting: int | None) -> list[Positions]:
    if fitting is None or length <= fitting:
        return []
    return [Positions(tuple(range(i, min(length, i + fitting)))) for i in range(0, length, fitting)]


def _narrow(columns: Positions, length: int, fitting: int | None) -> Positions:
    """Leave out columns in the middle until the rest, and the mark of the gap, fit."""
    if fitting is None or columns.size + (columns.gap is not None) <= fitting:
        return columns
    room = fitting - 1
    return cut(length, room - room // 2, room // 2)


def locate_selected(
    grid: Grid, selection: Selection, values: NDArray[Any], index: Sequence[NDArray[np.intp]]
) -> NDArray[np.intp]:
    """Return the numbers of the groups that cells belong to; `NOBODY` for those that do not count.

    Parameters
    ----------
    grid : Grid
        Without windows.
    selection : Selection
        Which values count.
    values : ndarray
        The tensor.
    index : sequence of integer arrays
        The cells' positions along each axis; they broadcast.
    """
    return np.where(selection.select(values, index), grid.locate_groups(index), NOBODY)


def _number_groups(plan: Plan, positions: list[Positions], locate: Locate | None) -> NDArray[np.intp]:
    if plan.spec.window is not None and locate is None:
        return np.full([p.size for p in positions], NOBODY)
    return (locate or plan.grid.locate_groups)(make_index(positions))


def _walk(positions: Sequence[Positions], lengths: Sequence[int]) -> Iterator[tuple[int, ...] | None]:
    """Yield the places of an excerpt's outer axes in C order, with None once wherever any are left out.

    Parameters
    ----------
    positions : sequence of Positions
    lengths : sequence of int
        The whole axes' lengths.
    """
    following, strides = 0, [math.prod(lengths[axis + 1 :]) for axis in range(len(lengths))]
    for places in itertools.product(*(range(p.size) for p in positions)):
        index = (p.shown[place] for p, place in zip(positions, places, strict=True))
        number = sum(map(operator.mul, index, strides))
        if number != following:
            yield None
        following = number + 1
        yield places
    if following != math.prod(lengths):
        yield None


def _open_gap(items: list[Any], gap: int | None, mark: Any) -> list[Any]:
    return items if gap is None else [*items[:gap], mark, *items[gap:]]
