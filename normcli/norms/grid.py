"""The groups of values of a tensor that share a statistic: their numbers, indices and names."""

from __future__ import annotations

import functools
import itertools
import math
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from normcli.errors import DataError
from normcli.norms.layout import Layout
from normcli.norms.rules import GroupOrder
from normcli.printable import make_printable
from normcli.tuples import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from numpy.typing import NDArray

ONLY_GROUP = "all"
"""The name of the one group of a norm that reduces every axis."""


class Split(NamedTuple):
    """An axis that is split into groups: its number, the number of groups, and the order of values in them."""

    axis: int
    groups: int
    order: GroupOrder = GroupOrder.CONTIGUOUS


class Reach(NamedTuple):
    """The extent of a sliding window: the numbers of neighbours before and after a value."""

    before: int
    after: int


@dataclass(frozen=True)
class Grid:
    """The division of a shape's values into groups that share one statistic each.

    Arrays are reshaped to the *view* of the tensor: its own shape, except that a split axis becomes two:
    (groups, values of a group), or (values of a group, groups) if the groups are interleaved.

    Parameters
    ----------
    shape : tuple of int
        The tensor's shape.
    layout : Layout
        The names of the tensor's axes.
    axes : tuple of int
        The reduced axes, the split axis (reduced in part) among them; for a window, the axis it slides along.
    split : Split or None
        The axis that is split into groups, such as the channel axis of `gn`; None without one.
    reach : Reach or None
        The reach of a sliding window: each value has a group of its own, and groups overlap. None without one.
    columns : tuple of str or None
        A name for each index of the last axis, if the tensor is from a table; None without names.
    """

    shape: tuple[int, ...]
    layout: Layout
    axes: tuple[int, ...]
    split: Split | None = None
    reach: Reach | None = None
    columns: tuple[str, ...] | None = field(default=None, compare=False)

    @property
    def groups(self) -> int | None:
        """The number of groups along the split axis; None without one."""
        return None if self.split is None else self.split.groups

    @property
    def group_order(self) -> GroupOrder | None:
        """The order of the split axis's values in groups; None without a split axis."""
        return None if self.split is None else self.split.order

    @functools.cached_property
    def kept(self) -> tuple[int, ...]:
        """The axes of the tensor that are not reduced, and the split axis; for a window, all axes."""
        if self.reach is not None:
            return tuple(range(len(self.shape)))
        split = None if self.split is None else self.split.axis
        return tuple(axis for axis in range(len(self.shape)) if axis not in self.axes or axis == split)

    @functools.cached_property
    def view_shape(self) -> tuple[int, ...]:
        """The shape of the view: the tensor's, except that a split axis is two."""
        return self.split_shape(self.shape)

    @functools.cached_property
    def view_axes(self) -> tuple[int, ...]:
        """The reduced axes of the view."""
        if self.split is None:
            return self.axes
        inner = self.split.axis + (self.split.order is GroupOrder.CONTIGUOUS)
        moved = (inner if axis == self.split.axis else axis + (axis > self.split.axis) for axis in self.axes)
        return tuple(sorted(moved))

    @functools.cached_property
    def kept_view_axes(self) -> tuple[int, ...]:
        """The axes of the view that are kept; for a window, all of them."""
        every = range(len(self.view_shape))
        return tuple(axis for axis in every if self.reach is not None or axis not in self.view_axes)

    @functools.cached_property
    def stats_shape(self) -> tuple[int, ...]:
        """The shape of each statistic: the kept axes only."""
        return tuple(self.view_shape[axis] for axis in self.kept_view_axes)

    @property
    def keepdims_shape(self) -> tuple[int, ...]:
        """The shape of each statistic with 1 for each reduced axis, as `keepdims=True` gives it."""
        lengths = dict(zip(self.kept, self.stats_shape, strict=True))
        return tuple(lengths.get(axis, 1) for axis in range(len(self.shape)))

    @functools.cached_property
    def group_count(self) -> int:
        """The number of groups."""
        return math.prod(self.stats_shape)

    @functools.cached_property
    def group_size(self) -> int:
        """The number of values in a group; for windows, in a window that no edge cuts short."""
        if self.reach is not None:
            return self.reach.before + self.reach.after + 1
        return math.prod(self.view_shape[axis] for axis in self.view_axes)

    @functools.cached_property
    def canonical(self) -> Grid:
        """The grid in canonical form: grids of one shape have equal forms exactly if their groups are equal.

        In this form, a reduced axis of length 1 is kept, a split into one group is a reduced axis, a split into
        single channels is a kept axis, and a window reaches no further than its axis is long.
        """
        write = functools.partial(Grid, self.shape, Layout(len(self.shape), None))
        if self.reach is not None:
            last = max(0, self.shape[self.axes[0]] - 1)
            reach = Reach(min(self.reach.before, last), min(self.reach.after, last))
            return write(self.axes, reach=reach) if any(reach) else write(())
        wide = tuple(axis for axis in self.axes if self.shape[axis] != 1)
        if self.split is None or self.split.groups == 1:
            return write(wide)
        if self.split.groups == self.shape[self.split.axis]:
            return write(tuple(axis for axis in wide if axis != self.split.axis))
        return write(wide, self.split)

    @functools.cached_property
    def kept_names(self) -> tuple[str, ...]:
        """The names of the axes of `stats_shape`, such as `("n", "g")`; `g` is the axis of groups."""
        group = "g" if "G" not in (self.layout.letters or "") else "group"
        split = None if self.split is None else self.split.axis
        return tuple(group if axis == split else self.layout.name(axis) for axis in self.kept)

    def group_index(self, group: int) -> dict[str, int]:
        """Return the indices of a group by axis name, `{"n": 0, "c": 1}`, given its number in C order."""
        return dict(zip(self.kept_names, unravel(group, self.stats_shape), strict=True))

    def group_name(self, group: int) -> str:
        """Return the name of a group in tables and messages: `n=0 c=1`, or `all` if no axis is kept.

        A group of one column ends with the column's name: `c=1 height`.
        """
        named = " ".join(f"{name}={i}" for name, i in self.group_index(group).items()) or ONLY_GROUP
        column = self.find_column(self.group_index(group))
        return f"{named} {make_printable(column)}" if column else named

    @property
    def group_columns(self) -> tuple[str, ...] | None:
        """The column names, one for each index of the last axis of a statistic.

        None if the tensor has no column names, or if the last axis is reduced or any axis is split.
        """
        has_names = self.split is None and len(self.shape) - 1 in self.kept
        return self.columns if has_names else None

    def find_column(self, index: Mapping[str, int]) -> str | None:
        """Return the name of the column of a group, given its `group_index`; None if columns have no names."""
        names = self.group_columns
        return None if names is None else names[index[self.layout.name(len(self.shape) - 1)]]

    def locate_groups(self, indices: Sequence[NDArray[np.intp]]) -> NDArray[np.intp]:
        """Return the number, in C order, of each value's group, in the shape that the indices broadcast to.

        Parameters
        ----------
        indices : sequence of integer arrays
            The positions of the values along each axis of the tensor, one array an axis. The arrays broadcast
            against each other: arrays from `numpy.ix_` select a block.
        """
        return self._number_cells(indices, self.kept_view_axes)

    def locate_within_groups(self, indices: Sequence[NDArray[np.intp]]) -> NDArray[np.intp]:
        """Return the number, in C order, of each value within its group, the inverse of `locate_values`.

        `indices` has an integer array for each axis of the tensor, which broadcast against each other. The grid
        must have no window.
        """
        return self._number_cells(indices, self.view_axes)

    def view_indices(self, indices: Sequence[NDArray[np.intp]]) -> list[NDArray[np.intp]]:
        """Return positions along each axis of the tensor as positions along each axis of the view."""
        positions = list(indices)
        if self.split is not None:
            axis = self.split.axis
            positions[axis : axis + 1] = np.divmod(positions[axis], max(1, self.view_shape[axis + 1]))
        return positions

    def select_group(self, group: int) -> tuple[int | slice, ...]:
        """Return the index into the view that selects one group's values, given the group's number in C order.

        It has an integer for each kept axis of the view and a full slice for each reduced one. For a window, it
        selects the one value whose window it is.
        """
        index = iter(unravel(group, self.stats_shape))
        kept = self.kept_view_axes
        return tuple(next(index) if axis in kept else slice(None) for axis in range(len(self.view_shape)))

    def walk_groups(self) -> Iterator[tuple[dict[str, int], tuple[int | slice, ...]]]:
        """Yield `(group_index, select_group)` of every group, in C order; faster than calls for each group."""
        names, kept = self.kept_names, self.kept_view_axes
        selection: list[int | slice] = [slice(None)] * len(self.view_shape)
        for index in itertools.product(*map(range, self.stats_shape)):
            for axis, place in zip(kept, index, strict=True):
                selection[axis] = place
            yield dict(zip(names, index, strict=True)), tuple(selection)

    def take_group(self, values: NDArray[Any], group: int) -> NDArray[Any]:
        """Return the values of one group, without a copy, with an axis for each reduced axis of the view.

        For a window they are the values of the window, cut at the edges, along one axis.

        Parameters
        ----------
        values : ndarray
            An array of the tensor's shape.
        group : int
            The group's number in C order over the kept axes; for a window, the number of its own value.
        """
        if self.reach is None:
            return values.reshape(self.view_shape)[(*self.select_group(group), ...)]
        place, axis = unravel(group, self.stats_shape), self.axes[0]
        index: list[int | slice] = list(place)
        index[axis] = slice(max(0, place[axis] - self.reach.before), place[axis] + self.reach.after + 1)
        return values[(*index, ...)]

    def locate_values(
        self, groups: NDArray[np.intp] | int, places: NDArray[np.intp]
    ) -> tuple[NDArray[np.intp], ...]:
        """Return the positions in the tensor of some values of groups, as one integer array for each axis.

        Parameters
        ----------
        groups : int or ndarray of int
            The number of each value's group, in C order over the kept axes; it broadcasts to `places`.
        places : ndarray of int
            The number of each value within its group: in the array that `take_group` returns, in C order.
        """
        groups = np.broadcast_to(np.asarray(groups, dtype=np.intp), places.shape)
        kept = iter(np.unravel_index(groups, self.stats_shape) if self.stats_shape else ())
        if self.reach is not None:
            index = list(kept)
            index[self.axes[0]] = np.maximum(0, index[self.axes[0]] - self.reach.before) + places
            return tuple(index)
        lengths = tuple(self.view_shape[axis] for axis in self.view_axes)
        reduced = iter(np.unravel_index(places, lengths) if lengths else ())
        flat = np.zeros(places.shape, dtype=np.intp)
        for axis, length in enumerate(self.view_shape):
            flat = flat * length + next(reduced if axis in self.view_axes else kept)
        return np.unravel_index(flat, self.shape) if self.shape else ()

    def split_shape(self, shape: tuple[int, ...]) -> tuple[int, ...]:
        """Return a shape of the tensor's rank at the view's rank: the split axis becomes two.

        With 6 channels in 2 groups, (4, 6, 5) becomes (4, 2, 3, 5), and (4, 1, 5) becomes (4, 1, 1, 5).
        """
        if self.split is None:
            return shape
        axis, groups, order = self.split
        pair = (1, 1) if shape[axis] == 1 != self.shape[axis] else (groups, shape[axis] // groups)
        return (*shape[:axis], *(pair if order is GroupOrder.CONTIGUOUS else pair[::-1]), *shape[axis + 1 :])

    def merge_shape(self, shape: tuple[int, ...]) -> tuple[int, ...]:
        """Return a shape of the view's rank at the tensor's rank: the two axes of a split are one again."""
        if self.split is None:
            return shape
        axis = self.split.axis
        return (*shape[:axis], shape[axis] * shape[axis + 1], *shape[axis + 2 :])

    def restrict(self, lengths: tuple[int, ...]) -> Grid:
        """Return the grid for a block of the tensor, given the block's length along each axis of the view."""
        return Grid(lengths, Layout(len(lengths), None), self.view_axes, reach=self.reach)

    def fit_mask(self, mask: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """Return a mask at the tensor's rank, with length 1 along the axes that it does not vary along.

        Parameters
        ----------
        mask : ndarray of bool
            A mask whose shape broadcasts to the tensor's.

        Raises
        ------
        DataError
            If the mask's shape does not broadcast to the tensor's.
        """
        try:
            np.broadcast_to(mask, self.shape)
        except ValueError as error:
            led = (*mask.shape, *(1,) * (len(self.shape) - mask.ndim))
            does_fit = all(length in (1, of) for length, of in zip(led, self.shape, strict=False))
            helps = f"; {led} does" if does_fit and mask.ndim < len(self.shape) else ""
            raise DataError(
                f"the mask has the shape {mask.shape}, which does not broadcast to {self.shape}{helps}"
            ) from error
        return mask.reshape((1,) * (len(self.shape) - mask.ndim) + mask.shape)

    @functools.cached_property
    def running(self) -> Grid:
        """The grid of running statistics, with one group for all samples: the batch axis is reduced too."""
        batch = () if self.layout.batch is None else (self.layout.batch,)
        return replace(self, axes=tuple(sorted({*self.axes, *batch})))

    def spread_running(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return a running statistic, one value for each group of `running`, in the shape `stats_shape`."""
        whole = values.reshape(self.running.keepdims_shape)
        return np.broadcast_to(whole, self.keepdims_shape).reshape(self.stats_shape)

    def _number_cells(
        self, indices: Sequence[NDArray[np.intp]], view_axes: tuple[int, ...]
    ) -> NDArray[np.intp]:
        """Return the flat index, in C order over some axes of the view, of values at positions `indices`."""
        positions = self.view_indices(indices)
        numbers: NDArray[np.intp] = np.zeros((), dtype=np.intp)
        for axis in view_axes:
            numbers = numbers * self.view_shape[axis] + positions[axis]
        return np.broadcast_to(numbers, np.broadcast_shapes(*(index.shape for index in indices)))


def unravel(number: int, shape: tuple[int, ...]) -> tuple[int, ...]:
    """Return the index of one element, given its number in C order; faster than `numpy.unravel_index`."""
    index = []
    for length in reversed(shape):
        number, place = divmod(number, length)
        index.append(place)
    return tuple(reversed(index))
