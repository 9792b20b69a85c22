"""Samples of tensors: evenly spread indices, whole groups as rows, and blocks in which some axes are whole."""

from __future__ import annotations

import functools
import math
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from normcli.tensors.mapped import fetch
from normcli.tensors.pieces import PIECE

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from numpy.typing import NDArray

    from normcli.dtypes import Floats
    from normcli.norms.grid import Grid


MOST_SAMPLED = 1 << 17
"""The most values, about, of a sample; of a file, the most values that are picked by index."""


@functools.lru_cache(maxsize=64)
def spread_indices(count: int, most: int) -> NDArray[np.intp]:
    """Return `most` of the indices below `count`, evenly spread and ascending; of fewer indices, all.

    At least one index is returned. The array is read-only.
    """
    chosen = np.unique(np.linspace(0, count - 1, min(max(1, most), count)).astype(np.intp))
    chosen.setflags(write=False)
    return chosen


def widen(values: NDArray[Any]) -> Floats:
    """Return values as float64 in memory: read from a mapped file, and contiguous."""
    with np.errstate(all="ignore"):
        return np.ascontiguousarray(fetch(values), dtype=np.float64)


# -- blocks: some indices of each axis


def choose_lengths(lengths: Sequence[int], most: int, axes: Iterable[int], least: int) -> tuple[int, ...]:
    """Return how many indices to take of each axis, so that there are about `most` values in all.

    Only `axes` are cut, the longest first, to no fewer than `least` indices each: there may be more values.

    Examples
    --------
    >>> choose_lengths((100, 3, 50), 600, (0, 2), 2), choose_lengths((100, 3, 50), 6, (0,), 4)
    ((4, 3, 50), (4, 3, 50))
    """
    chosen = list(lengths)
    for axis in sorted(axes, key=lambda axis: -lengths[axis]):
        each = math.prod(chosen) // max(1, chosen[axis])
        chosen[axis] = min(chosen[axis], max(least, most // max(1, each)))
    return tuple(chosen)


_LEAST_LENGTH = 4
"""The fewest indices of other axes, before those that should stay whole are cut."""


def choose_block(shape: tuple[int, ...], most: int, whole: tuple[int, ...]) -> tuple[int, ...]:
    """Return the lengths of a block of at most `most` values, in which the axes `whole` are cut last."""
    others = [axis for axis in range(len(shape)) if axis not in whole]
    return choose_lengths(choose_lengths(shape, most, others, _LEAST_LENGTH), most, range(len(shape)), 1)


def take_block(values: NDArray[Any], lengths: tuple[int, ...]) -> Floats:
    """Return a block of `lengths[axis]` indices of each axis, evenly spread; a run of the last in its middle.

    It is of float64. A large tensor is read at one index of the first axis at a time.
    """
    if len(lengths) > 1 and values.size > MOST_SAMPLED:
        return np.stack(
            [take_block(values[place], lengths[1:]) for place in spread_indices(len(values), lengths[0])]
        )
    values = fetch(values)
    for axis, length in enumerate(lengths[:-1]):
        values = np.take(values, spread_indices(values.shape[axis], length), axis)
    first = (values.shape[-1] - lengths[-1]) // 2
    return widen(values[..., first : first + lengths[-1]])


_RANKED = 1 << 11
"""About how many values slices with steps select."""

LEAST_PLACES = 8
"""The fewest indices that such a slice keeps of a longer axis."""


def thin_axes(shape: Sequence[int], first: Sequence[int] = ()) -> tuple[slice, ...]:
    """Return a slice with a step for each axis, which together select about 2,048 evenly spaced values.

    At least 8 indices of each axis (all of a shorter one) are selected, so that there may be more values. The
    axes in `first` are thinned out before all others.
    """
    few = choose_lengths(shape, _RANKED, first, LEAST_PLACES)
    few = choose_lengths(few, _RANKED, range(len(shape)), LEAST_PLACES)
    return tuple(slice(None, None, max(1, length // max(1, n))) for length, n in zip(shape, few, strict=True))


# -- whole groups, as rows


def choose_groups(grid: Grid, most: int) -> NDArray[np.intp]:
    """Return the indices of evenly spread groups, which have about `most` values in all; at least one group."""
    return spread_indices(grid.group_count, most // grid.group_size)


def take_groups(grid: Grid, values: NDArray[Any], chosen: NDArray[np.intp] | None = None) -> NDArray[Any]:
    """Return the values of some groups as rows, shape (groups, group_size), a copy in memory.

    Parameters
    ----------
    grid : Grid
    values : ndarray
        The tensor: of the grid's shape, or with axes of length 1 that broadcast to it.
    chosen : ndarray of int or None
        The indices of the groups, counted in C order over the kept axes, ascending; None for all groups.
    """
    is_mapped, is_whole = isinstance(values, np.memmap), values.shape == grid.shape
    if is_mapped and is_whole and chosen is not None and len(chosen) * grid.group_size <= MOST_SAMPLED:
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


_SMALL = 64
"""Groups of at most this many values are taken all at once, larger ones one by one."""


def _gather(grid: Grid, values: NDArray[Any], chosen: NDArray[np.intp] | None) -> NDArray[Any]:
    """Return the values of the groups `chosen` (None for all) as rows, shape (groups, group_size).

    If the tensor is mapped from a file, only the chosen groups are read.
    """
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
    """Return the index in the tensor of the value at a row and column of `take_groups(grid, …, chosen)`."""
    return tuple(int(i[0]) for i in grid.locate_values(chosen[[row]], np.array([column])))


def put_back(grid: Grid, rows: NDArray[Any]) -> NDArray[Any]:
    """Return the tensor whose groups are these rows: the inverse of `take_groups` for all groups."""
    order = _order_axes(grid)
    view = rows.reshape([grid.view_shape[axis] for axis in order])
    return view.transpose(np.argsort(order)).reshape(grid.shape)


def cut_finite(
    x: NDArray[Any], y: NDArray[Any]
) -> Iterator[tuple[NDArray[Any], NDArray[Any], tuple[int, ...]]]:
    """Yield x and y with the finite slices of x along an axis, for each that has half of them; and the axis.

    If x is finite, only x and y are yielded, and no axis.
    """
    finite = np.isfinite(x)
    if finite.all():
        yield x, y, ()
        return
    for axis in range(x.ndim):
        kept = finite.all(tuple(other for other in range(x.ndim) if other != axis))
        if 2 * np.count_nonzero(kept) >= len(kept):
            yield x.compress(kept, axis), y.compress(kept, axis), (axis,)


def _order_axes(grid: Grid) -> tuple[int, ...]:
    """Return the axes of the view, the kept ones before the reduced."""
    return (*grid.kept_view_axes, *grid.view_axes)
