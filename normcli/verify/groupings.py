"""Every way in which the values of a shape may share statistics: axes reduced whole, and channels in groups."""

from __future__ import annotations

import itertools
import math
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from normcli.tensors.pieces import PIECE, forget

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

MOST_DIVISORS = 12
"""Numbers of channel groups that are tried for an axis: of more divisors, the smallest and the largest."""


class Grouping(NamedTuple):
    """Which values share statistics.

    Parameters
    ----------
    shape : tuple of int
    axes : tuple of int
        The axes reduced, whole or (the split one) in part; axes of one value count as kept.
    split : int or None
        The axis whose values stand in groups.
    groups : int or None
        How many.
    interleaved : bool
        Whether value i of the split axis is of group i mod groups, rather than of group i // (length / groups).
    """

    shape: tuple[int, ...]
    axes: tuple[int, ...]
    split: int | None = None
    groups: int | None = None
    interleaved: bool = False

    @property
    def view_shape(self) -> tuple[int, ...]:
        """The shape with the split axis as two."""
        if self.split is None or self.groups is None:
            return self.shape
        length = self.shape[self.split] // self.groups
        pair = (length, self.groups) if self.interleaved else (self.groups, length)
        return (*self.shape[: self.split], *pair, *self.shape[self.split + 1 :])

    @property
    def view_axes(self) -> tuple[int, ...]:
        """The axes of the view that are reduced."""
        if self.split is None:
            return self.axes
        inner = self.split if self.interleaved else self.split + 1
        return tuple(sorted(inner if axis == self.split else axis + (axis > self.split) for axis in self.axes))

    @property
    def kept_shape(self) -> tuple[int, ...]:
        """The lengths of the view's other axes."""
        return tuple(n for axis, n in enumerate(self.view_shape) if axis not in self.view_axes)

    @property
    def group_size(self) -> int:
        """Values that share statistics."""
        return math.prod(self.view_shape[axis] for axis in self.view_axes)

    @property
    def group_count(self) -> int:
        """How many statistics there are."""
        return math.prod(self.kept_shape)

    def take(self, values: NDArray[Any], chosen: NDArray[np.intp] | None = None) -> NDArray[Any]:
        """Return the values of some groups (all by default), of shape (groups, group_size).

        Parameters
        ----------
        values : ndarray
            Of the shape, or with lengths of 1 where it is to be repeated.
        chosen : ndarray of int or None
            The groups' numbers, in C order over the kept axes.
        """
        if not isinstance(values, np.memmap) or 0 not in self.axes or self.split == 0:
            return self._gather(values, chosen)
        step = max(1, PIECE // max(1, math.prod(self.shape[1:])))
        parts = []
        for start in range(0, self.shape[0], step):  # what a map has shown stays resident until it is forgotten
            block = values[start : start + step]
            parts.append(self._replace(shape=block.shape)._gather(block, chosen))
        return np.concatenate(parts, axis=1)

    def _gather(self, values: NDArray[Any], chosen: NDArray[np.intp] | None) -> NDArray[Any]:
        kept = [axis for axis in range(len(self.view_shape)) if axis not in self.view_axes]
        view = np.broadcast_to(values.reshape(self._shape_view(values.shape)), self.view_shape)
        view = view.transpose([*kept, *self.view_axes])
        if chosen is None:
            return view.reshape(self.group_count, self.group_size).copy()
        places = np.unravel_index(chosen, self.kept_shape) if kept else ()
        rows = np.empty((len(chosen), self.group_size), values.dtype)
        for row, place in zip(rows, zip(*places, strict=True) if kept else [()], strict=True):
            row[:] = view[place].reshape(-1)
            forget(values)
        return rows

    def put_back(self, rows: NDArray[Any]) -> NDArray[Any]:
        """Return the tensor of which `take` would give these rows of all groups."""
        kept = [axis for axis in range(len(self.view_shape)) if axis not in self.view_axes]
        order = [*kept, *self.view_axes]
        view = rows.reshape([self.view_shape[axis] for axis in order])
        return view.transpose(np.argsort(order)).reshape(self.shape)

    def locate_first(self, marks: NDArray[np.bool_], chosen: NDArray[np.intp] | None) -> tuple[int, ...]:
        """Return the index in the tensor of the first marked value of the rows of `take`; of none, the last."""
        rows, columns = np.nonzero(marks)
        groups = rows if chosen is None else chosen[rows]
        kept = [axis for axis in range(len(self.view_shape)) if axis not in self.view_axes]
        index: list[NDArray[np.intp]] = [np.zeros_like(rows)] * len(self.view_shape)
        for axes, numbers in ((kept, groups), (self.view_axes, columns)):
            lengths = tuple(self.view_shape[axis] for axis in axes)
            for axis, places in zip(axes, np.unravel_index(numbers, lengths) if lengths else (), strict=True):
                index[axis] = places
        flat = np.ravel_multi_index(tuple(index), self.view_shape)
        return tuple(int(i) for i in np.unravel_index(flat.min(initial=math.prod(self.shape) - 1), self.shape))

    @property
    def order(self) -> str:
        """How channels are dealt out to groups."""
        return "interleaved" if self.interleaved else "contiguous"

    def _shape_view(self, shape: tuple[int, ...]) -> tuple[int, ...]:
        if self.split is None or shape[self.split] > 1:
            return self.view_shape if shape == self.shape else self._replace(shape=shape).view_shape
        return (*shape[: self.split], 1, *shape[self.split :])


def enumerate_groupings(shape: tuple[int, ...]) -> Iterator[Grouping]:
    """Yield every set of axes, and every split of an axis with sets of axes that channel groups come with.

    Groups of one value are left out: of them nothing can be told.
    """
    wide = [axis for axis, length in enumerate(shape) if length > 1]
    for count in range(1, len(wide) + 1):
        for axes in itertools.combinations(wide, count):
            yield Grouping(shape, axes)
    for split in wide:
        others = [axis for axis in wide if axis != split]
        sets = {tuple(others), ()}
        sets.update(tuple(axis for axis in others if axis != left) for left in others)
        sets.add(tuple(axis for axis in others if axis > split))
        for groups in _choose_divisors(shape[split]):
            for rest in sorted(sets, key=len, reverse=True):
                axes = tuple(sorted((*rest, split)))
                for interleaved in (False, True):
                    yield Grouping(shape, axes, split, groups, interleaved)


def _choose_divisors(length: int) -> list[int]:
    """Return the numbers of groups of at least two values, but for one group."""
    small = [n for n in range(2, math.isqrt(length) + 1) if length % n == 0]
    every = sorted({*small, *(length // n for n in small)})
    if len(every) <= MOST_DIVISORS:
        return every
    half = MOST_DIVISORS // 2
    return every[:half] + every[-half:]
