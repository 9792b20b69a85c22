"""Sources and sinks of tiles: arrays in memory, of any strides, as the runs of a geometry."""

from __future__ import annotations

import contextlib
import functools
import itertools
import math
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from normcli.engine.tiling.files import FileSink, FileSource, lies_in_file
from normcli.engine.tiling.geometry import find_lengths
from normcli.numerics.elements.compiled_kernel import RowParameter
from normcli.tensors.mapped import Mapped, fetch, require_unchanged
from normcli.tensors.pieces import cut_boxes, forget
from normcli.tensors.spool import make_scratch

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from normcli.dtypes import Floats
    from normcli.engine.tiling.geometry import Geometry, Slices
    from normcli.norms.plan import Plan
    from normcli.numerics.workspace import Workspace

    Ends = tuple[tuple[int, int], ...]


_SMALL = 1 << 16
"""The most values of a tensor whose places of gamma and beta are cached."""


class Source(Protocol):
    """The protocol of sources, which a tensor's tiles are read from.

    `copies` is True if `read` returns a buffer, False if it returns a view of the source's own memory. `dtype`
    is the tensor's.
    """

    dtype: np.dtype[Any]
    copies: bool

    def read(self, tile: Slices, order: tuple[int, ...], work: Workspace) -> NDArray[Any]:
        """Return a tile, transposed so that its runs are in `order`; it may share memory with the source."""

    def make_array(self, shape: tuple[int, ...], dtype: np.dtype[Any]) -> NDArray[Any]:
        """Return an array for results, in a temporary file if the tensor lies in a file."""

    def forget(self) -> None:
        """Release what was read so far; called after each tile."""


class Sink(Protocol):
    """The protocol of sinks, which results are written to tile by tile; `dtype` is the dtype of the results."""

    dtype: np.dtype[Any]

    def open(self, tile: Slices, work: Workspace) -> NDArray[Any]:
        """Return the array that a tile is to be written to, before `put` is called with it."""

    def put(self, tile: Slices, values: NDArray[Any], work: Workspace) -> None:
        """Write a tile, from the array that `open` returned; that array may be used again afterwards."""


class _Places:
    """The flat indices of values (gamma, beta or a mask) that a tile's positions have, along some of its runs.

    A run is a stretch of neighbouring axes of the view, taken as one axis. The values broadcast against the
    view; `shape` is their shape, of the view's rank.
    """

    def __init__(self, shape: tuple[int, ...], view_shape: tuple[int, ...], geometry: Geometry) -> None:
        self.runs = geometry.runs
        self.lengths = tuple(math.prod(shape[a] for a in run) for run in geometry.members)
        self.index: list[NDArray[np.intp] | None] = []
        for run, length, mine in zip(geometry.members, geometry.dims, self.lengths, strict=True):
            if mine in (1, length):
                self.index.append(None)
                continue
            number = np.arange(mine).reshape([shape[a] for a in run])
            self.index.append(np.broadcast_to(number, [view_shape[a] for a in run]).reshape(-1))

    def number(self, runs: tuple[int, ...], tile: Slices | dict[int, slice]) -> NDArray[np.int64]:
        """Return the flat index of each position of a tile along some runs, in C order; others count as 0."""
        places = np.zeros(1, np.int64)
        for run in runs:
            part, index = tile[run], self.index[run]
            if self.lengths[run] == 1:
                places = places.repeat(part.stop - part.start)
                continue
            along = np.arange(part.start, part.stop) if index is None else index[part]
            places = np.add.outer(places, along * math.prod(self.lengths[run + 1 :])).reshape(-1)
        return places

    @functools.lru_cache(maxsize=8)  # noqa: B019  # of the latest runs: mostly the same in all of their tiles
    def find_span(self, along: tuple[int, ...], ends: Ends) -> tuple[int, int] | None:
        """Return (first, span) if the flat index of position i is `first + i // span`; None if it is not.

        Positions are counted in C order along the runs `along`; `ends` has the start and stop of each of these
        runs.
        """
        parts = dict(zip(along, (slice(*pair) for pair in ends), strict=True))
        places = self.number(along, parts)
        first, count = int(places[0]), len(places)
        span, rest = divmod(count, int(places[-1]) - first + 1)
        return None if rest or (places - first != np.arange(count) // max(span, 1)).any() else (first, span)

    def find_rows(
        self, along: tuple[int, ...], ends: Ends
    ) -> tuple[NDArray[np.int64], int, NDArray[np.int64] | None]:
        """Return `starts` and `span` of a tile's `RowParameter`, and the flat indices of its values.

        The indices are None if the parameter's own values serve, without a copy. A row lies along the runs
        `along`; there is a row for each position along the other runs. `ends` has the start and stop of each
        run.
        """
        tile = tuple(slice(*pair) for pair in ends)
        starts = self.number(tuple([run for run in self.runs if run not in along]), tile)
        found = self.find_span(along, tuple([ends[run] for run in along]))
        if found is not None:
            first, span = found
            return starts + first, span, None
        each = np.add.outer(starts, self.number(along, tile))
        return np.arange(len(starts)) * each.shape[1], 1, each.reshape(-1)


_place_again = functools.lru_cache(maxsize=16)(_Places)
_find_rows_again = functools.lru_cache(maxsize=16)(_Places.find_rows)
"""Cached forms for small tensors, where finding places takes longer than the arithmetic."""


class Spread:
    """Values that broadcast against the view (gamma, beta, a mask), cut to one tile at a time.

    Parameters
    ----------
    values : ndarray
        Values of the view's rank.
    view_shape : tuple of int
    geometry : Geometry
    """

    def __init__(self, values: NDArray[Any], view_shape: tuple[int, ...], geometry: Geometry) -> None:
        small = math.prod(view_shape) <= _SMALL
        self._places = (_place_again if small else _Places)(values.shape, view_shape, geometry)
        self._find_rows = _find_rows_again if small else _Places.find_rows
        self._values = values.reshape(self._places.lengths)
        self._flat: NDArray[Any] | None = None

    def cut(self, tile: Slices, order: tuple[int, ...]) -> NDArray[Any]:
        """Return the values that broadcast against a tile, transposed so that its runs are in `order`."""
        result = self._values
        for run, part in enumerate(tile):
            index = self._places.index[run]
            if index is not None:
                result = fetch(result).take(index[part], axis=run)
            elif result.shape[run] > 1:
                result = result[tuple(part if i == run else slice(None) for i in range(result.ndim))]
        return fetch(result).transpose(order)

    @property
    def lies_in_file(self) -> bool:
        """Whether the values are read from a file, part by part."""
        return isinstance(self._values, Mapped) and self._values.lies_in_file

    def lay_rows(self, ends: Ends, along: tuple[int, ...]) -> RowParameter:
        """Return these values as a `RowParameter` for a tile, whose start and stop on each run are `ends`.

        A row lies along the runs `along`; there is one for each position along the others.
        """
        starts, span, index = self._find_rows(self._places, along, ends)
        if self._flat is None:  # of several threads, each may find the same
            # The compiled kernel takes neither a byte order that is named nor what is not aligned.
            self._flat = fetch(self._values).astype(np.float64).reshape(-1)
        return RowParameter(self._flat if index is None else self._flat[index], starts, span)


class ArraySource:
    """The source of an array's tiles, in memory or mapped, of any strides; long doubles become float64."""

    copies = False

    def __init__(self, values: NDArray[Any], view_shape: tuple[int, ...], geometry: Geometry) -> None:
        self.dtype = np.dtype(np.float64) if _is_long(values.dtype) else values.dtype
        self._view = values.reshape(view_shape)
        self._geometry = geometry
        self._runs = _collapse(self._view, geometry)

    def make_array(self, shape: tuple[int, ...], dtype: np.dtype[Any]) -> NDArray[Any]:
        """Return an array for results, in a temporary file if the tensor lies in a file."""
        return make_scratch(shape, dtype) if isinstance(self._view, np.memmap) else np.empty(shape, dtype)

    def forget(self) -> None:
        """Give back the memory of a mapped file's tiles."""
        forget(self._view)

    def read(self, tile: Slices, order: tuple[int, ...], work: Workspace) -> NDArray[Any]:
        """Return a tile, transposed so that its runs are in `order`; it may share memory with the source."""
        if self._runs is not None:
            return _shorten_floats(fetch(self._runs[tile])).transpose(order)
        return self._gather(tile, work).transpose(order)

    def _gather(self, tile: Slices, work: Workspace) -> NDArray[Any]:
        """Copy a tile of a view in which a run's axes cannot be joined: block by block of the view's axes."""
        view, geometry = self._view, self._geometry
        result = work.get("gathered", find_lengths(tile), self.dtype)
        boxes = [
            cut_boxes([view.shape[a] for a in run], part.start, part.stop)
            for run, part in zip(geometry.members, tile, strict=True)
        ]
        for combination in itertools.product(*boxes):
            index = [slice(0, 1)] * view.ndim
            for run, (_, box) in zip(geometry.members, combination, strict=True):
                for axis, part in zip(run, box, strict=True):
                    index[axis] = part
            piece = _shorten_floats(fetch(view[tuple(index)]))
            np.copyto(result[tuple(target for target, _ in combination)].reshape(piece.shape), piece)
        return result


def _collapse(view: NDArray[Any], geometry: Geometry) -> NDArray[Any] | None:
    """Return a view with one axis for each run; None if the axes of a run cannot be joined without a copy.

    NumPy's own `reshape` would make that copy.
    """
    if view.flags.c_contiguous:
        return view.reshape(geometry.dims)
    for run in geometry.members:
        axes = [axis for axis in run if view.shape[axis] != 1]
        for outer, inner in itertools.pairwise(axes):
            if view.strides[outer] != view.strides[inner] * view.shape[inner]:
                return None
    return view.reshape(geometry.dims)


class CopyingSource(ArraySource):
    """An array in memory of which a copy is made while it is read.

    Parameters
    ----------
    values : ndarray
    copy : ndarray
        C-contiguous, of the shape and dtype of `values`.
    view_shape : tuple of int
    geometry : Geometry
    """

    def __init__(
        self, values: NDArray[Any], copy: NDArray[Any], view_shape: tuple[int, ...], geometry: Geometry
    ) -> None:
        super().__init__(values, view_shape, geometry)
        self._copy = copy.reshape(geometry.dims)

    def read(self, tile: Slices, order: tuple[int, ...], work: Workspace) -> NDArray[Any]:
        """Write a tile to the copy, and return it, transposed so that its runs are in `order`."""
        raw = super().read(tile, order, work)
        np.copyto(self._copy[tile].transpose(order), raw)
        return raw


class ArraySink:
    """The sink that writes tiles to a C-contiguous array in memory."""

    def __init__(self, values: NDArray[Any], geometry: Geometry) -> None:
        self.dtype = values.dtype
        self._runs = values.reshape(geometry.dims)

    def open(self, tile: Slices, work: Workspace) -> NDArray[Any]:
        """Return the part of the array that a tile is to be written to."""
        return self._runs[tile]

    def put(self, tile: Slices, values: NDArray[Any], work: Workspace) -> None:
        """Do nothing: the values were written to the array itself."""


def _is_long(dtype: np.dtype[Any]) -> bool:
    """Whether a dtype is of floats longer than float64."""
    return dtype.kind == "f" and dtype.itemsize > np.dtype(np.float64).itemsize


def _shorten_floats(values: NDArray[Any]) -> NDArray[Any]:
    """Return floats longer than float64 as float64, and all other values as they are."""
    if not _is_long(values.dtype):
        return values
    with np.errstate(all="ignore"):
        return values.astype(np.float64)


def open_source(
    values: NDArray[Any], plan: Plan, geometry: Geometry
) -> contextlib.AbstractContextManager[Source]:
    """Open the source of a tensor of the plan's shape, as a context manager; a file is read by position.

    Raises
    ------
    DataError
        When the block ends, if the file has changed since it was opened: some tiles may be of another version.
    """
    if isinstance(values, np.memmap):
        return _open_map(values, plan, geometry)
    return contextlib.nullcontext(ArraySource(values, plan.grid.view_shape, geometry))


@contextlib.contextmanager
def _open_map(values: np.memmap[Any, Any], plan: Plan, geometry: Geometry) -> Iterator[Source]:
    if _is_long(values.dtype) or not lies_in_file(values):
        yield ArraySource(values, plan.grid.view_shape, geometry)
    else:
        with contextlib.closing(FileSource(values, geometry)) as source:
            yield source
    require_unchanged(values)


def open_parameter(
    plan: Plan, geometry: Geometry, values: NDArray[Any] | None, offset: int = 0
) -> Spread | None:
    """Return gamma or beta, plus an offset, as a `Spread` to cut to tiles; None if it is not given."""
    if values is None:
        return None
    values = widen_parameter(values, offset)
    return Spread(values.reshape(plan.parameters.view_shape), plan.grid.view_shape, geometry)


def widen_parameter(values: NDArray[Any], offset: int) -> Floats:
    """Return gamma or beta, plus an offset, as float64."""
    values = np.asarray(values)
    if values.dtype != np.float64:
        with np.errstate(invalid="ignore"):  # a signalling NaN is one like any other
            values = values.astype(np.float64)
    return values + offset if offset else values  # otherwise a zero keeps its sign


def open_full(plan: Plan, geometry: Geometry, values: NDArray[Any]) -> Spread:
    """Return values of the tensor's rank, which broadcast against it, as a `Spread` to cut to tiles."""
    grid = plan.grid
    return Spread(values.reshape(grid.split_shape(values.shape)), grid.view_shape, geometry)


def open_sink(out: NDArray[Any], geometry: Geometry) -> contextlib.AbstractContextManager[Sink]:
    """Open the sink that writes to an array, as a context manager; a file is written by position."""
    if lies_in_file(out):
        return contextlib.closing(FileSink(out, geometry))
    return contextlib.nullcontext(ArraySink(out, geometry))
