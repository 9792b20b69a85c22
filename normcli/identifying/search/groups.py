"""The ways of grouping the values of a shape, and the values of chosen groups."""

from __future__ import annotations

import functools
import itertools
import math
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from normcli.norms.grid import Grid, Split
from normcli.norms.layout import Layout
from normcli.norms.rules import GroupOrder
from normcli.tensors.mapped import fetch
from normcli.tensors.pieces import PIECE

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from normcli.dtypes import Floats

MOST_PICKED = 1 << 17
"""The most values of a file that are picked by index; for more, the whole file is read in parts."""

MOST_DIVISORS = 12
"""The most numbers of channel groups tried for an axis: of more divisors, the smallest and the largest."""


def enumerate_grids(shape: tuple[int, ...]) -> Iterator[Grid]:
    """Yield the grid of every set of reduced axes, then every split of an axis into channel groups.

    A split axis comes with several sets of other reduced axes. Grids are in canonical form, and their groups
    have at least two values.
    """
    layout = Layout(len(shape), None)
    wide = [axis for axis, length in enumerate(shape) if length > 1]
    for count in range(1, len(wide) + 1):
        for axes in itertools.combinations(wide, count):
            yield Grid(shape, layout, axes)
    for axis in wide:
        others = [other for other in wide if other != axis]
        sets = {tuple(others), ()}
        sets.update(tuple(other for other in others if other != left) for left in others)
        sets.add(tuple(other for other in others if other > axis))
        largest_first = sorted(sets, key=len, reverse=True)
        for groups, rest, order in itertools.product(_choose_divisors(shape[axis]), largest_first, GroupOrder):
            yield Grid(shape, layout, tuple(sorted((*rest, axis))), Split(axis, groups, order))


def _choose_divisors(length: int) -> list[int]:
    """Return the numbers of equal parts into which a length can be split, without 1.

    At most 12: the smallest six and the largest six.
    """
    small = [n for n in range(2, math.isqrt(length) + 1) if length % n == 0]
    every = sorted({*small, *(length // n for n in small)})
    if len(every) <= MOST_DIVISORS:
        return every
    half = MOST_DIVISORS // 2
    return every[:half] + every[-half:]


@functools.lru_cache(maxsize=64)
def choose_groups(count: int, most: int) -> NDArray[np.intp]:
    """Return the indices of at most `most` of `count` groups, at least one, evenly spread and ascending."""
    chosen = np.unique(np.linspace(0, count - 1, min(max(1, most), count)).astype(np.intp))
    chosen.setflags(write=False)
    return chosen


def take_groups(grid: Grid, values: NDArray[Any], chosen: NDArray[np.intp] | None = None) -> NDArray[Any]:
    """Return the values of some groups, shape (groups, group_size).

    Parameters
    ----------
    grid : Grid
    values : ndarray
        The tensor: of the grid's shape, or with axes of length 1 that broadcast to it.
    chosen : ndarray of int or None
        The indices of the groups, counted in C order over the kept axes, ascending; None for all groups.
    """
    is_mapped, is_whole = isinstance(values, np.memmap), values.shape == grid.shape
    if is_mapped and is_whole and chosen is not None and len(chosen) * grid.group_size <= MOST_PICKED:
        places = np.broadcast_to(np.arange(grid.group_size), (len(chosen), grid.group_size))
        return fetch(values[grid.locate_values(chosen[:, None], places)])
    if not is_mapped or 0 in grid.kept:
        return _gather(grid, values, chosen)
    step = max(1, PIECE // max(1, math.prod(grid.shape[1:])))
    parts = []
    for start in range(0, grid.shape[0], step):  # pages of a map that were read stay resident until forgotten
        block = fetch(values[start : start + step])
        parts.append(_gather(replace(grid, shape=block.shape), block, chosen))
    return np.concatenate(parts, axis=1)


def widen(values: NDArray[Any]) -> Floats:
    """Return values in memory, as float64."""
    with np.errstate(all="ignore"):
        return np.ascontiguousarray(fetch(values), dtype=np.float64)


_SMALL = 64
"""Groups of at most this many values are taken all at once, larger ones one by one."""


def _gather(grid: Grid, values: NDArray[Any], chosen: NDArray[np.intp] | None) -> NDArray[Any]:
    view = values.reshape(grid.split_shape(values.shape))
    if view.shape != grid.view_shape:
        view = np.broadcast_to(fetch(view), grid.view_shape)
    view = view.transpose(_order_axes(grid))
    if chosen is None or len(chosen) == grid.group_count:
        return fetch(view).reshape(grid.group_count, grid.group_size).copy()
    rows = np.empty((len(chosen), grid.group_size), values.dtype)
    places = np.unravel_index(chosen, grid.stats_shape) if grid.stats_shape else ()
    if grid.group_size <= _SMALL and not isinstance(values, np.memmap):
        return np.ascontiguousarray(view[places]).reshape(len(chosen), grid.group_size)
    for row, *place in zip(rows, *places, strict=True):
        row[:] = fetch(view[(*place, ...)]).reshape(-1)
    return rows


def locate_value(grid: Grid, chosen: NDArray[np.intp], row: int, column: int) -> tuple[int, ...]:
    """Return the index in the tensor of the value at a row and column of the chosen groups' rows."""
    return tuple(int(i[0]) for i in grid.locate_values(chosen[[row]], np.array([column])))


def put_back(grid: Grid, rows: NDArray[Any]) -> NDArray[Any]:
    """Return the tensor whose groups, as `take_groups` returns them, are these rows (of all groups)."""
    order = _order_axes(grid)
    view = rows.reshape([grid.view_shape[axis] for axis in order])
    return view.transpose(np.argsort(order)).reshape(grid.shape)


def _order_axes(grid: Grid) -> tuple[int, ...]:
    """Return the axes of the view with the kept ones first."""
    return (*grid.kept_view_axes, *grid.view_axes)
