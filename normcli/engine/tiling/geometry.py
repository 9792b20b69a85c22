"""A view as the engine walks it: alternating runs of kept and reduced axes, cut into tiles."""

from __future__ import annotations

import functools
import itertools
import math
import threading
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from normcli.numerics.sums.leaf_records import join

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from numpy.typing import NDArray

    from normcli.norms.plan import Plan
    from normcli.numerics.sums.leaf_records import LeafRecords

    Fold = Callable[[Any], Any]

SHORTEST_PART = 64
"""The least values in a part of a group: the record of a shorter part would have more numbers than values."""

MOST_RECORDS = 16
"""The number of records of a group that are folded into one as soon as the group has them."""


Slices = tuple[slice, ...]
"""The place of a tile: one slice for each run, or for some of them."""


def find_lengths(slices: Slices) -> tuple[int, ...]:
    """Return the length of each slice, stop − start."""
    return tuple(part.stop - part.start for part in slices)


@dataclass(frozen=True, eq=False, repr=False)  # `of` returns the same one again
class Geometry:
    """A view collapsed into alternating runs of kept and reduced axes.

    A run is a stretch of neighbouring axes, taken as one axis. Groups lie along reduced axes; there is one for
    each position along the kept ones.

    Parameters
    ----------
    dims : tuple of int
        The length of each run.
    reduced : tuple of bool
        Whether each run is of reduced axes.
    members : tuple of tuple of int
        The axes of the view that each run is made of.
    """

    dims: tuple[int, ...]
    reduced: tuple[bool, ...]
    members: tuple[tuple[int, ...], ...]

    @classmethod
    @functools.lru_cache(maxsize=16)  # for small tensors this would take a good part of the time
    def of(cls, view_shape: tuple[int, ...], view_axes: tuple[int, ...]) -> Geometry:
        """Return the geometry of a view: neighbouring axes that are all kept, or all reduced, become one run.

        Axes of length 1 are dropped. There is at least one kept and one reduced run, if need be of length 1.
        """
        longer = [axis for axis, length in enumerate(view_shape) if length != 1]
        runs = [(kind, tuple(axes)) for kind, axes in itertools.groupby(longer, view_axes.__contains__)]
        if not any(kind for kind, _ in runs):
            runs.append((True, ()))
        if all(kind for kind, _ in runs):
            runs.insert(0, (False, ()))
        reduced, members = zip(*runs, strict=True)
        dims = tuple(math.prod(view_shape[axis] for axis in axes) for axes in members)
        return cls(dims, reduced, members)

    @functools.cached_property
    def runs(self) -> tuple[int, ...]:
        """The numbers of all runs, in their order in the view."""
        return tuple(range(len(self.dims)))

    @functools.cached_property
    def everything(self) -> Slices:
        """The tile that holds all values."""
        return tuple(slice(0, length) for length in self.dims)

    @functools.cached_property
    def kept_runs(self) -> tuple[int, ...]:
        """The numbers of the runs of kept axes: there is one group for each position along them."""
        return tuple(i for i, kind in enumerate(self.reduced) if not kind)

    @functools.cached_property
    def reduced_runs(self) -> tuple[int, ...]:
        """The numbers of the runs of reduced axes, which each group extends over."""
        return tuple(i for i, kind in enumerate(self.reduced) if kind)

    @functools.cached_property
    def kept_first(self) -> tuple[int, ...]:
        """The order of runs in which groups are rows: the kept ones, then the reduced ones."""
        return self.kept_runs + self.reduced_runs

    @functools.cached_property
    def kept_shape(self) -> tuple[int, ...]:
        """The lengths of the kept runs."""
        return tuple(self.dims[i] for i in self.kept_runs)

    @functools.cached_property
    def count(self) -> int:
        """Values in a group."""
        return math.prod(self.dims[i] for i in self.reduced_runs)

    def tiles(self, whole: bool, block: int, within: Slices | None = None) -> Iterator[Slices]:
        """Yield the tiles that cover the view, or a part of it: for each, a slice along every run.

        A tile grows from the innermost (last) run outwards, so that it is as contiguous as it can be.

        Parameters
        ----------
        whole : bool
            True if tiles hold whole groups, however large; if False, a group may be cut into parts.
        block : int
            The most values in a tile, about.
        within : slices or None
            The part of the view, which holds whole groups; None for all of it.
        """
        within = self.everything if within is None else within
        dims = find_lengths(within)
        if 0 < math.prod(dims) <= block:
            yield within
            return
        step = [1] * len(dims)
        inner = 1
        for run in reversed(self.reduced_runs):
            step[run] = dims[run] if whole else min(dims[run], -(-SHORTEST_PART // inner))
            inner *= step[run]
        for run in reversed(range(len(dims))):
            room = max(1, block // math.prod(step))
            step[run] = min(dims[run], step[run] * room)
            if step[run] < dims[run]:
                break
        ranges = [range(part.start, part.stop, size) for part, size in zip(within, step, strict=True)]
        for starts in itertools.product(*ranges):
            yield tuple(
                slice(start, min(start + size, part.stop))
                for start, size, part in zip(starts, step, within, strict=True)
            )

    def cut_groups(self, tile: Slices) -> Slices:
        """Return a tile's slices along the kept runs, where its groups lie among all."""
        return tuple(tile[run] for run in self.kept_runs)

    def number_groups(self, tile: Slices) -> NDArray[np.int64]:
        """Return the numbers of a tile's groups, in C order over the kept runs."""
        index = np.ix_(*(np.arange(part.start, part.stop) for part in self.cut_groups(tile)))
        return np.asarray(np.ravel_multi_index(index, self.kept_shape)).reshape(-1)

    def spread_groups(self, values: NDArray[Any], tile: Slices) -> NDArray[Any]:
        """Return the part of `values`, one for each group of the view, that broadcasts against a tile."""
        lengths = [1 if kind else n for n, kind in zip(self.dims, self.reduced, strict=True)]
        index = tuple(part if n > 1 else slice(None) for part, n in zip(tile, lengths, strict=True))
        return values.reshape(lengths)[index]


def find_geometry(plan: Plan) -> Geometry:
    """Return the geometry of a plan's view."""
    return Geometry.of(plan.grid.view_shape, plan.grid.view_axes)


class Totals:
    """Records of groups, collected from tiles in any order, from any thread.

    Parameters
    ----------
    geometry : Geometry
    fold : callable
        Takes records of shape (groups, records), and returns one for each group.
    kind : type
        The class of the records.
    """

    def __init__(self, geometry: Geometry, fold: Fold, kind: type[LeafRecords]) -> None:
        self._geometry, self._fold, self._kind = geometry, fold, kind
        self._parts: dict[tuple[tuple[int, int], ...], list[LeafRecords]] = {}
        self._lock = threading.Lock()

    def put(self, tile: Slices, found: LeafRecords) -> None:
        """Add a tile's records, one for each of its groups, of shape (groups, 1)."""
        key = tuple((part.start, part.stop) for part in self._geometry.cut_groups(tile))
        with self._lock:
            parts = self._parts.setdefault(key, [])
            parts.append(found)
            if len(parts) == MOST_RECORDS:  # however large the file is, so few are kept
                parts[:] = [self._fold(join(parts)).reshape(found.count.shape)]

    @property
    def records(self) -> LeafRecords:
        """The records of all groups, of shape kept_shape; complete once every tile was put."""
        records = self._kind.empty(self._geometry.kept_shape)
        for key, parts in self._parts.items():
            kept = tuple(slice(*ends) for ends in key)
            records.put(kept, self._fold(join(parts)).reshape(find_lengths(kept)))
        return records
