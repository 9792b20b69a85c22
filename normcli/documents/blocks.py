"""A tensor as coloured matrices: the excerpt that fits, cut into bands."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from normcli.documents.document import Blocks, Matrix
from normcli.documents.excerpt import Positions, choose_positions, cut, to_arrays
from normcli.documents.numbers import format_cells

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from normcli.documents.document import View
    from normcli.norms.plan import Plan

GAP = "…"

NOBODY = -1
"""Stands for the number of a group where a cell is of none."""

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
        Says which cells share a group.
    view : View
        Bounds the excerpt.
    locate : function of index arrays, optional
        Returns the number of each cell's colour, instead of the plan's groups.
    """
    return build_map(title, values.__getitem__, plan, view, locate)


def build_map(title: str, pick: Pick, plan: Plan, view: View, locate: Locate | None = None) -> Blocks:
    """Return matrices as `build_blocks` does, of a tensor that is made where it is looked at.

    Parameters
    ----------
    title : str
    pick : callable
        Given an index array for each axis, which broadcast against each other: what the cells there hold.
    plan : Plan
    view : View
    locate : callable, optional
        As in `build_blocks`.
    """
    positions = choose_positions(plan.grid.shape, full=view.full)
    bands, note = _lay_out(pick, plan, view, positions, plan.grid.shape, locate)
    names = [plan.grid.layout.name(axis) for axis in range(len(plan.grid.shape))]
    return Blocks(title, _caption(names), bands, note)


def build_slice(name: str, values: NDArray[Any], plan: Plan, view: View) -> Matrix | None:
    """Return the first of the matrices of `build_blocks`, cut to what fits in any view, with another name.

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
    """Return where the matrix of `build_slice` lies, and what runs along it."""
    names = [plan.grid.layout.name(axis) for axis in range(len(plan.grid.shape))]
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
    """Return the bands of an excerpt, and what it leaves out of axes of some lengths."""
    taken = np.asarray(pick(np.ix_(*to_arrays(positions))))
    texts = format_cells(taken, view.digits)
    panels: list[Positions] = []
    if positions and view.full:
        panels = _split_panels(lengths[-1], _count_fitting_columns(view.width, texts))
    while positions and not view.full:
        narrowed = _narrow(positions[-1], lengths[-1], _count_fitting_columns(view.width, texts))
        if narrowed == positions[-1]:
            break
        positions[-1] = narrowed
        taken = np.asarray(pick(np.ix_(*to_arrays(positions))))
        texts = format_cells(taken, view.digits)  # wider, where a large value with few decimals is gone
    groups = _number_groups(plan, positions, locate)
    grid = np.array(texts, dtype=object).reshape(taken.shape)
    names = [plan.grid.layout.name(axis) for axis in range(len(lengths))]
    shown, size = math.prod(p.size for p in positions), math.prod(lengths)
    note = None if shown == size else f"{shown:,} of {size:,} values shown; --full shows all"
    bands = [
        None if outer is None else list(_build_band(outer, positions, lengths, panels, names, grid, groups))
        for outer in _walk(positions[:-3], lengths[:-3])
    ]
    return bands if taken.size else [], note


def _caption(names: Sequence[str]) -> str:
    if len(names) < 2:
        return f"along {names[0]}" if names else ""
    caption = f"rows {names[-2]}, columns {names[-1]}"
    return caption if len(names) == 2 else f"{caption}, a matrix for each {' '.join(names[:-2])}"


def _count_fitting_columns(width: int | None, texts: Sequence[str]) -> int | None:
    """Return how many columns of cells like these, all of one width, fit; at least three."""
    cell_width = len(texts[0]) if texts else 1
    return None if width is None else max(3, (width - 2) // (cell_width + 1))


def _split_panels(length: int, fitting: int | None) -> list[Positions]:
    step = length if fitting is None else fitting
    if length <= step:
        return []
    return [Positions(tuple(range(i, min(length, i + step)))) for i in range(0, length, step)]


def _narrow(columns: Positions, length: int, fitting: int | None) -> Positions:
    """Leave out columns in the middle until the rest, and the mark of the gap, fit."""
    if fitting is None or columns.size + (columns.gap is not None) <= fitting:
        return columns
    room = fitting - 1
    return cut(length, room - room // 2, room // 2)


def _number_groups(plan: Plan, positions: list[Positions], locate: Locate | None) -> NDArray[np.intp] | None:
    if plan.spec.window is not None and locate is None:
        return None
    if not positions:
        return np.zeros((), dtype=np.intp)
    return (locate or plan.grid.locate_groups)(np.ix_(*to_arrays(positions)))


def _walk(positions: Sequence[Positions], lengths: Sequence[int]) -> Iterator[tuple[int, ...] | None]:
    """Yield the places of an excerpt's outer axes in C order, with None once wherever any are left out.

    Parameters
    ----------
    positions : sequence of Positions
    lengths : sequence of int
        The whole axes' lengths.
    """
    following = 0
    for places in itertools.product(*(range(p.size) for p in positions)):
        number = 0
        for p, place, length in zip(positions, places, lengths, strict=True):
            number = number * length + p.shown[place]
        if number != following:
            yield None
        following = number + 1
        yield places
    if following != math.prod(lengths):
        yield None


def _build_band(
    outer: tuple[int, ...],
    positions: Sequence[Positions],
    shape: tuple[int, ...],
    panels: Sequence[Positions],
    names: Sequence[str],
    grid: NDArray[Any],
    groups: NDArray[np.intp] | None,
) -> Iterator[Matrix | None]:
    """Yield the matrices that stand side by side: those along the last of the outer axes."""
    for inner in _walk(positions[-3:-2], shape[-3:-2]):
        if inner is None:
            yield None
            continue
        place = (*outer, *inner)
        numbers = [p.shown[i] for p, i in zip(positions, place, strict=False)]
        name = " ".join(f"{n}={i}" for n, i in zip(names, numbers, strict=False))
        cells = np.atleast_2d(grid[place])
        owners = None if groups is None else np.atleast_2d(groups[place])
        rows = positions[-2] if len(positions) > 1 else Positions((0,))
        row_names = [f"{names[-2]}={i}" for i in rows.shown] if len(positions) > 1 else [""]
        columns = positions[-1] if positions else Positions((0,))
        labels = [f"{names[-1]}={i}" for i in columns.shown] if positions else ["value"]
        if not panels:
            yield _build_matrix(name, cells, owners, rows, columns, row_names, labels)
        for panel in panels:
            taken = list(panel.shown)
            label = f"{names[-1]}={taken[0]}…{taken[-1]}"
            yield _build_matrix(
                f"{name} {label}".strip(),
                cells[:, taken],
                None if owners is None else owners[:, taken],
                rows,
                panel,
                row_names,
                [labels[i] for i in taken],
            )


def _build_matrix(
    name: str,
    cells: NDArray[Any],
    owners: NDArray[np.intp] | None,
    rows: Positions,
    columns: Positions,
    row_names: Sequence[str],
    labels: Sequence[str],
) -> Matrix:
    texts = [_open_gap(list(row), columns.gap, GAP) for row in cells]
    marks: list[list[int | None]] = [
        _open_gap([_own(owners, i, j) for j in range(cells.shape[1])], columns.gap, None)
        for i in range(cells.shape[0])
    ]
    width = len(texts[0]) if texts else 0
    return Matrix(
        name,
        _open_gap(texts, rows.gap, [GAP] * width),
        _open_gap(marks, rows.gap, [None] * width),
        _open_gap(list(row_names), rows.gap, GAP),
        _open_gap(list(labels), columns.gap, GAP),
    )


def _own(owners: NDArray[np.intp] | None, i: int, j: int) -> int | None:
    return None if owners is None or owners[i, j] == NOBODY else int(owners[i, j])


def _open_gap(items: list[Any], gap: int | None, mark: Any) -> list[Any]:
    return items if gap is None else [*items[:gap], mark, *items[gap:]]
