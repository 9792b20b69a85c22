"""Where tiles come from and go to: arrays in memory, of any strides, as the runs of a geometry."""

from __future__ import annotations

import contextlib
import itertools
import math
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from normcli.engine.files import FileSink, FileSource, lies_in_file
from normcli.engine.geometry import find_lengths
from normcli.tensors.pieces import forget
from normcli.tensors.spool import make_scratch

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from normcli.engine.geometry import Geometry, Slices
    from normcli.norms.plan import Plan
    from normcli.numerics.workspace import Workspace


class Source(Protocol):
    """What tiles are read from."""

    dtype: np.dtype[Any]

    def read(self, tile: Slices, order: tuple[int, ...], work: Workspace) -> NDArray[Any]:
        """Return a tile with its runs in an order; what is returned may be the source itself."""
        ...

    def make_array(self, shape: tuple[int, ...], dtype: np.dtype[Any]) -> NDArray[Any]:
        """Return an array for results, in a temporary file if the tensor lies in a file."""
        ...

    def forget(self) -> None:
        """Release what was read so far; called after each tile."""
        ...

    def close(self) -> None:
        """Finish; called once, after the last tile."""
        ...


class Sink(Protocol):
    """What tiles are written to."""

    dtype: np.dtype[Any]

    def open(self, tile: Slices, work: Workspace) -> NDArray[Any]:
        """Return the place that a tile is to be written to."""
        ...

    def put(self, tile: Slices, values: NDArray[Any], work: Workspace) -> None:
        """Take the values of a tile, from the place that `open` returned; that may be used again afterwards."""
        ...

    def close(self) -> None:
        """Finish; called once, after the last tile."""
        ...


class Spread:
    """Values that broadcast against the view (gamma, beta, a mask), cut to one tile at a time.

    Parameters
    ----------
    values : ndarray
        Of the view's rank.
    view_shape : tuple of int
    geometry : Geometry
    """

    def __init__(self, values: NDArray[Any], view_shape: tuple[int, ...], geometry: Geometry) -> None:
        self._values = values.reshape([math.prod(values.shape[a] for a in run) for run in geometry.members])
        self._index: list[NDArray[np.intp] | None] = []
        for run, length in zip(geometry.members, geometry.dims, strict=True):
            mine = math.prod(values.shape[a] for a in run)
            if mine in (1, length):
                self._index.append(None)
                continue
            number = np.arange(mine).reshape([values.shape[a] for a in run])
            self._index.append(np.broadcast_to(number, [view_shape[a] for a in run]).reshape(-1))

    def cut(self, tile: Slices, order: tuple[int, ...]) -> NDArray[Any]:
        """Return the values for a tile, with its runs in an order, to be broadcast against it."""
        result = self._values
        for run, part in enumerate(tile):
            index = self._index[run]
            if index is not None:
                result = result.take(index[part], axis=run)
            elif result.shape[run] > 1:
                result = result[tuple(part if i == run else slice(None) for i in range(result.ndim))]
        return result.transpose(order)


class ArraySource:
    """An array in memory (or mapped), of any strides, as the runs of a geometry."""

    def __init__(self, values: NDArray[Any], view_shape: tuple[int, ...], geometry: Geometry) -> None:
        self.dtype = values.dtype
        self._view = values.reshape(view_shape)
        self._geometry = geometry
        runs = self._view
        with contextlib.suppress(AttributeError, ValueError):
            runs = self._view.view()
            runs.shape = geometry.dims  # without a copy, or not at all
        self._runs = runs if runs.shape == geometry.dims else None

    def make_array(self, shape: tuple[int, ...], dtype: np.dtype[Any]) -> NDArray[Any]:
        """Return an array for results, in a temporary file if the tensor lies in a file."""
        return make_scratch(shape, dtype) if isinstance(self._view, np.memmap) else np.empty(shape, dtype)

    def forget(self) -> None:
        """Give back the memory of a mapped file's tiles."""
        forget(self._view)

    def close(self) -> None:
        """Do nothing: there is nothing to close."""

    def read(self, tile: Slices, order: tuple[int, ...], work: Workspace) -> NDArray[Any]:
        """Return a tile with its runs in an order; what is returned may be the source itself."""
        if self._runs is not None:
            return self._runs[tile].transpose(order)
        return _gather(self._view, self._geometry, tile, work, self.dtype).transpose(order)


def _gather(view: NDArray[Any], geometry: Geometry, tile: Slices, work: Workspace, dtype: Any) -> NDArray[Any]:
    """Copy a tile out of a view whose strides do not collapse: box by box of the view's own axes."""
    result = work.get("gathered", find_lengths(tile), dtype)
    boxes = [
        _boxes([view.shape[a] for a in run], part.start, part.stop)
        for run, part in zip(geometry.members, tile, strict=True)
    ]
    for combination in itertools.product(*boxes):
        index: list[Any] = [0] * view.ndim
        target = []
        for run, (offset, box, size) in zip(geometry.members, combination, strict=True):
            for axis, part in zip(run, box, strict=True):
                index[axis] = part
            target.append(slice(offset, offset + size))
        piece = view[tuple(i if isinstance(i, slice) else slice(0, 1) for i in index)]
        np.copyto(result[tuple(target)].reshape(piece.shape), piece)
    return result


def _boxes(shape: list[int], start: int, stop: int) -> list[tuple[int, tuple[slice, ...], int]]:
    """Cut a range of flat numbers of a shape into boxes: (offset in the range, slices, size)."""
    if not shape:
        return [(0, (), 1)]
    if len(shape) == 1:
        return [(0, (slice(start, stop),), stop - start)]
    inner = math.prod(shape[1:])
    result: list[tuple[int, tuple[slice, ...], int]] = []
    at = start
    while at < stop:
        row, column = divmod(at, inner)
        if column == 0 and stop - at >= inner:
            rows = (stop - at) // inner
            box = (slice(row, row + rows), *(slice(0, n) for n in shape[1:]))
            result.append((at - start, box, rows * inner))
            at += rows * inner
        else:
            end = min(stop - row * inner, inner)
            for offset, box, size in _boxes(shape[1:], column, end):
                result.append((at - start + offset, (slice(row, row + 1), *box), size))
            at = row * inner + end
    return result


class ArraySink:
    """A C-contiguous array in memory."""

    def __init__(self, values: NDArray[Any], geometry: Geometry) -> None:
        self.dtype = values.dtype
        self._runs = values.reshape(geometry.dims)

    def open(self, tile: Slices, work: Workspace) -> NDArray[Any]:
        """Return the place that a tile is to be written to."""
        return self._runs[tile]

    def put(self, tile: Slices, values: NDArray[Any], work: Workspace) -> None:
        """Do nothing: the place was in the array itself."""

    def close(self) -> None:
        """Do nothing: there is nothing to close."""


def open_source(values: NDArray[Any], plan: Plan, geometry: Geometry) -> Source:
    """Return the source of a tensor of the plan's shape: by position if it lies in a file."""
    if values.dtype.kind == "f" and values.dtype.itemsize > 8:
        with np.errstate(all="ignore"):
            values = values.astype(np.float64)
    if isinstance(values, np.memmap) and lies_in_file(values):
        return FileSource(values, geometry)
    return ArraySource(values, plan.grid.view_shape, geometry)


def open_parameter(
    plan: Plan, geometry: Geometry, values: NDArray[Any] | None, offset: int = 0
) -> Spread | None:
    """Return gamma or beta, of `ParameterShapes.shape`, plus an offset, ready to be cut to tiles."""
    if values is None:
        return None
    values = np.asarray(values, dtype=np.float64)
    if offset:  # otherwise a zero keeps its sign
        values = values + offset
    return Spread(values.reshape(plan.parameters.view_shape), plan.grid.view_shape, geometry)


def open_sink(out: NDArray[Any], geometry: Geometry) -> Sink:
    """Return the sink that writes to an array: by position if it lies in a file."""
    if isinstance(out, np.memmap) and lies_in_file(out):
        return FileSink(out, geometry)
    return ArraySink(out, geometry)
