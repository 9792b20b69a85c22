"""A tensor, or an excerpt of it, as coloured matrices that stand in bands."""

from __future__ import annotations

import functools
import itertools
import math
import operator
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from normcli.documents.document import GAP, GUTTER, Blocks, Matrix
from normcli.documents.excerpt import (
    Positions,
    choose_positions,
    cut_beyond,
    format_hidden,
    keep_ends,
    make_index,
)
from normcli.documents.number_format import format_cells
from normcli.printable import make_printable
from normcli.tuples import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from numpy.typing import NDArray

    from normcli.documents.document import View
    from normcli.norms.grid import Grid
    from normcli.results.result import Result

NOBODY = -1
"""The number, in place of a group's, of a cell that belongs to no group."""

Pick = Callable[[tuple["NDArray[np.intp]", ...]], "NDArray[Any]"]
Locate = Callable[[Sequence["NDArray[np.intp]"]], "NDArray[np.intp]"]


def build_blocks(title: str, values: NDArray[Any], result: Result, view: View) -> Blocks:
    """Return a tensor as the matrices of its last two axes, laid out along the outer ones.

    Parameters
    ----------
    title : str
    values : ndarray
        The values, in the result's shape.
    result : Result
        The result whose groups colour the cells.
    view : View
        The view, which decides how much of the tensor is shown.
    """
    return build_map(title, values.__getitem__, result, view)


def build_map(
    title: str, pick: Pick, result: Result, view: View, locate: Locate | None = None, *, blank: bool = False
) -> Blocks:
    """Return a tensor as the matrices of its last two axes; `pick` calculates only the values shown.

    Parameters
    ----------
    title : str
    pick : callable
        Takes an index array for each axis, which broadcast together, and returns the values there.
    result : Result
    view : View
    locate : callable, optional
        Takes such arrays, and returns the number of each cell's group, which colours it; None: `locate_owners`.
    blank : bool
        Whether cells that have a group are left empty, to show colours alone.
    """
    grid = result.plan.grid
    positions = choose_positions(grid.shape, full=view.full)
    locate = locate or functools.partial(locate_owners, result)
    beside = positions[-3] if len(positions) > 2 else Positions((0,))
    (excerpt,) = _cut_excerpts([(pick, locate)], grid, view, positions, beside)
    if blank:
        excerpt = excerpt._replace(texts=np.where(excerpt.owners == NOBODY, excerpt.texts, " "))
    return Blocks(title, caption_matrices(grid.layout.names), excerpt.build_bands(), excerpt.note)


def build_slices(
    title: str, tensors: Mapping[str, tuple[NDArray[Any], Result | None]], grid: Grid, view: View
) -> Blocks:
    """Return the first matrix of each tensor, side by side: index 0 along all axes but the last two.

    Parameters
    ----------
    title : str
    tensors : mapping of str to (ndarray, Result or None)
        The tensors by title of their matrices. The groups of a result colour the cells; with None, they are
        plain.
    grid : Grid
        The shape of all tensors, and the names of its axes.
    view : View
        A view whose `full` is False.
    """
    names, outer = grid.layout.names, max(0, len(grid.shape) - 2)
    place = " ".join(f"{name}=0" for name in names[:outer])
    caption = f"{caption_matrices(names[outer:])}{f', at {place}' if place else ''}"
    if 0 in grid.shape:
        return Blocks(title, caption, [])
    read: list[tuple[Pick, Locate]] = [
        (
            values.__getitem__,
            _locate_nobody if result is None else functools.partial(locate_owners, result),
        )
        for values, result in tensors.values()
    ]
    positions = [Positions((0,))] * outer + choose_positions(grid.shape[outer:], full=False)
    excerpts = _cut_excerpts(read, grid, view, positions, keep_ends(len(tensors), len(tensors), 0))
    band = [excerpt.build_matrix(name, (0,) * outer) for name, excerpt in zip(tensors, excerpts, strict=True)]
    return Blocks(title, caption, [band], excerpts[0].note)


def list_slices(
    title: str, tensors: Mapping[str, tuple[NDArray[Any], Result | None]], grid: Grid, view: View
) -> Iterator[Blocks]:
    """Yield what `build_slices` returns; in a full view, the whole of each tensor that is a result."""
    if not view.full:
        yield build_slices(title, tensors, grid, view)
        return
    for name, (values, result) in tensors.items():
        if result is not None:
            yield build_blocks(f"y of {name}", values, result, view)


def locate_owners(result: Result, index: Sequence[NDArray[np.intp]]) -> NDArray[np.intp]:
    """Return the index of the group that each cell belongs to; `NOBODY` for cells without a group.

    Values that do not count have no group, nor have those of a norm with sliding windows, which overlap.

    Parameters
    ----------
    result : Result
    index : sequence of integer arrays
        The cells' positions along each axis; they broadcast.
    """
    if result.plan.groups_overlap:
        return _locate_nobody(index)
    groups = result.plan.grid.locate_groups(index)
    if result.selection is None:
        return groups
    return np.where(result.selection.select(result.input, index), groups, NOBODY)


def _locate_nobody(index: Sequence[NDArray[np.intp]]) -> NDArray[np.intp]:
    return np.full(np.broadcast_shapes(*(places.shape for places in index)), NOBODY)


def _cut_excerpts(
    tensors: Sequence[tuple[Pick, Locate]],
    grid: Grid,
    view: View,
    positions: list[Positions],
    beside: Positions,
) -> list[_Excerpt]:
    """Return an excerpt of each of some tensors, all at the same positions.

    In a view with a width, as many columns are shown as fit; a full view has all columns, in panels that fit.

    Parameters
    ----------
    tensors : sequence of (Pick, Locate)
        For each tensor, a function that returns its values at some positions, and a function that returns the
        group numbers by which these values are coloured.
    grid : Grid
        The shape of all tensors, and the names of its axes.
    view : View
    positions : list of Positions
        The positions to show along each axis. The last item, the columns, is replaced in place by those that
        fit.
    beside : Positions
        The positions of the matrices that are side by side if the width allows it.
    """

    def format_all() -> tuple[list[NDArray[Any]], list[int]]:
        texts = [_format_picked(pick, positions, view) for pick, _ in tensors]
        return texts, [len(cells.flat[0]) if cells.size else 1 for cells in texts]

    (texts, cells), panels = format_all(), [slice(None)]
    if positions and view.width is not None and positions[-1].gap is not None and texts[0].size:
        matrices = beside.open_gap((cells * beside.size)[: beside.size], 0)
        fitting = _widen(view.width, matrices, positions[-1].size + 1)
        if fitting > positions[-1].size + 1:
            positions[-1] = _cut_to(grid.shape[-1], fitting)
            texts, cells = format_all()
    while positions and view.width is not None:
        fitting = _count_fitting_columns(view.width, max(cells))
        if view.full:
            panels = [slice(start, start + fitting) for start in range(0, grid.shape[-1], fitting)]
            break
        narrowed = _narrow(positions[-1], grid.shape[-1], fitting)
        if narrowed == positions[-1]:
            break
        positions[-1] = narrowed
        texts, cells = format_all()  # wider, where a large value with few decimals is gone
    index = make_index(positions)
    return [
        _Excerpt(grid, positions, own, locate(index), panels)
        for own, (_, locate) in zip(texts, tensors, strict=True)
    ]


class _Excerpt(NamedTuple):
    """The values of a tensor that are shown, as text.

    Parameters
    ----------
    grid : Grid
    positions : list of Positions
        The shown positions along each axis.
    texts : ndarray of str
        The values as text, in the shape that the positions span.
    owners : ndarray of int
        The number of each value's group, which colours it, or `NOBODY`, in the shape of `texts`.
    panels : list of slice
        Slices of the columns, each of which is shown in matrices of its own.
    """

    grid: Grid
    positions: list[Positions]
    texts: NDArray[Any]
    owners: NDArray[np.intp]
    panels: list[slice]

    @property
    def note(self) -> str | None:
        """The note on how many values are hidden; None if none are."""
        size = math.prod(self.grid.shape)
        return format_hidden(size - self.texts.size, size, "value")

    def build_bands(self) -> list[list[Matrix | None] | None]:
        """Return the excerpt's matrices in bands, one for each index along all axes but the last three.

        None in the list stands for bands left out.
        """
        if not self.texts.size:
            return []
        return [
            None if outer is None else list(self._build_band(outer))
            for outer in _walk(self.positions[:-3], self.grid.shape[:-3])
        ]

    def _build_band(self, outer: tuple[int, ...]) -> Iterator[Matrix | None]:
        """Yield a band's matrices: one per range of columns, at each index along the third axis from the end.

        `outer` is the band's index along the axes before the last three. None stands for matrices left out.
        """
        names = self.grid.layout.names
        for inner in _walk(self.positions[-3:-2], self.grid.shape[-3:-2]):
            if inner is None:
                yield None
                continue
            place = (*outer, *inner)
            named = zip(names, self.positions, place, strict=False)
            name = " ".join(f"{axis}={shown.shown[i]}" for axis, shown, i in named)
            for panel in self.panels:
                label = ""
                if len(self.panels) > 1:
                    columns = self.positions[-1].shown[panel]
                    label = f"{names[-1]}={columns[0]}…{columns[-1]}"
                yield self.build_matrix(f"{name} {label}".strip(), place, panel)

    def build_matrix(self, name: str, place: tuple[int, ...], panel: slice = slice(None)) -> Matrix:
        """Return a matrix of the excerpt: the columns `panel` at the index `place` along the outer axes."""
        names, groups = self.grid.layout.names, self.owners.astype(object)
        groups[self.owners == NOBODY] = None
        rows, columns = ([Positions((0,))] * 2 + self.positions)[-2:]

        row_labels = [f"{names[-2]}={i}" if len(names) > 1 else "" for i in rows.shown]
        column_labels = [self._name_column(i) if names else "value" for i in columns.shown[panel]]
        labels = rows.open_gap(row_labels, GAP), columns.open_gap(column_labels, GAP)

        def open_gaps(cells: NDArray[Any], mark: Any) -> list[list[Any]]:
            opened = [columns.open_gap(row, mark) for row in np.atleast_2d(cells[place])[:, panel].tolist()]
            return rows.open_gap(opened, [mark] * len(labels[1]))

        return Matrix(name, open_gaps(self.texts, GAP), open_gaps(groups, None), *labels)

    def _name_column(self, place: int) -> str:
        columns = self.grid.columns
        return f"{self.grid.layout.names[-1]}={place}" if columns is None else make_printable(columns[place])


def _format_picked(pick: Pick, positions: list[Positions], view: View) -> NDArray[Any]:
    """Return the values at some positions as texts of one width."""
    picked = np.asarray(pick(make_index(positions)))
    return np.array(format_cells(picked, view.digits), dtype=object).reshape(picked.shape)


def caption_matrices(names: Sequence[str]) -> str:
    """Return the axes of matrices in words: `rows h, columns w, a matrix for each n c`."""
    if len(names) < 2:
        return f"along {names[0]}" if names else ""
    caption = f"rows {names[-2]}, columns {names[-1]}"
    return caption if len(names) == 2 else f"{caption}, a matrix for each {' '.join(names[:-2])}"


def _count_fitting_columns(width: int, cell: int) -> int:
    """Return the number of columns, of cells `cell` characters wide, that fit into `width`; at least three."""
    return max(3, (width - 2) // (cell + 1))


def _widen(width: int, matrices: Sequence[int], least: int) -> int:
    """Return the largest number of columns with which matrices fill no more lines than with `least`.

    `matrices` has the width of a cell of each matrix side by side; 0 for the mark of a gap.
    """
    lines = _count_lines(width, matrices, least)
    most = _count_fitting_columns(width, max(matrices))
    return next((n for n in range(most, least, -1) if _count_lines(width, matrices, n) == lines), least)


def _count_lines(width: int, matrices: Sequence[int], columns: int) -> int:
    """Return the number of lines that matrices fill, side by side within `width`, with `columns` columns each.

    One of the columns is the mark of a gap. `matrices` has the width of a cell for each matrix; 0 for a gap.
    """
    lines, used = 1, 0
    for cell in matrices:
        extent = (columns - 1) * (cell + 1) + len(GAP) + 2 if cell else len(GAP)
        if used and used + extent > width:
            lines, used = lines + 1, 0
        used += extent + len(GUTTER)
    return lines


def _narrow(columns: Positions, length: int, fitting: int) -> Positions:
    """Return at most `fitting` columns, the mark of a gap included, by leaving out more in the middle."""
    return columns if columns.size + (columns.gap is not None) <= fitting else _cut_to(length, fitting)


def _cut_to(length: int, fitting: int) -> Positions:
    """Return both ends of an axis, which fit with the mark of the gap; all of a short one."""
    return cut_beyond(fitting, length, fitting // 2, (fitting - 1) // 2)


def _walk(positions: Sequence[Positions], lengths: Sequence[int]) -> Iterator[tuple[int, ...] | None]:
    """Yield the index of each shown matrix along the outer axes, in C order; None where some are left out.

    Parameters
    ----------
    positions : sequence of Positions
        The shown positions along each outer axis. A yielded index is in terms of these: 0 is the first shown.
    lengths : sequence of int
        The lengths of these axes in the tensor.
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
