"""Tiles of arrays in files, read and written by position, so that only the current tiles are in memory.

Of a memory map, all pages that were read would stay in memory, and its peak would grow with the file.
"""

from __future__ import annotations

import contextlib
import math
import os
from typing import TYPE_CHECKING, Any, TypeGuard

import numpy as np

from normcli.engine.tiling.geometry import find_lengths
from normcli.errors import DataError
from normcli.tensors.held_files import BINARY, read_at, write_at
from normcli.tensors.mapped import Mapped
from normcli.tensors.spool import make_scratch

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from numpy.typing import NDArray

    from normcli.engine.tiling.geometry import Geometry, Slices
    from normcli.numerics.workspace import Workspace

    Move = Callable[[int, memoryview, int], int]


def lies_in_file(array: NDArray[Any]) -> TypeGuard[np.memmap[Any, Any]]:
    """Whether an array is a whole memory map in C order, so that an index tells a value's bytes in the file."""
    return (
        isinstance(array, np.memmap)
        and array.flags.c_contiguous
        and _locate(array) is not None
        and getattr(array, "has_positions", True)
        and not isinstance(array.base, np.memmap)
    )


def _locate(array: np.memmap[Any, Any]) -> Any:
    """Return the descriptor or else the name of the file that an array lies in; None if there is neither."""
    return array.descriptor if isinstance(array, Mapped) else array.filename


def _open(array: np.memmap[Any, Any], flags: int) -> int:
    """Return a descriptor of an array's file, for the caller to close."""
    place = _locate(array)
    return os.dup(place) if isinstance(place, int) else os.open(place, flags | BINARY)


class _TileFile:
    """The file behind a memory map, whose tiles are read or written by position."""

    def __init__(self, mapped: np.memmap[Any, Any], geometry: Geometry, flags: int) -> None:
        self.dtype = mapped.dtype
        self._name, self._offset, self._dims = mapped.filename, mapped.offset, geometry.dims
        self._descriptor = _open(mapped, flags)

    def _move(self, move: Move, tile: Slices, buffer: NDArray[Any]) -> None:
        """Read or write a tile, by `read_at` or `write_at` (`move`), in pieces that are contiguous in the file.

        Raises
        ------
        DataError
            If the file is shorter than the tile's end.
        """
        for position, piece in _find_pieces(self._dims, tile, buffer):
            view = piece.reshape(-1).view(np.uint8).data
            offset = self._offset + position * self.dtype.itemsize
            while view:
                count = move(self._descriptor, view, offset)
                if not count:
                    raise DataError(f"{self._name or 'the input'} was cut short while it was read")
                view, offset = view[count:], offset + count

    def close(self) -> None:
        """Close the file."""
        os.close(self._descriptor)


class FileSource(_TileFile):
    """The file behind a memory map, read by position into a buffer that is used again."""

    copies = True

    def __init__(self, mapped: np.memmap[Any, Any], geometry: Geometry) -> None:
        super().__init__(mapped, geometry, os.O_RDONLY)

    def read(self, tile: Slices, order: tuple[int, ...], work: Workspace) -> NDArray[Any]:
        """Return a tile, transposed so that its runs are in `order`; the next tile overwrites it."""
        buffer = work.get("read", find_lengths(tile), self.dtype)
        self._move(read_at, tile, buffer)
        return buffer.transpose(order)

    def make_array(self, shape: tuple[int, ...], dtype: np.dtype[Any]) -> NDArray[Any]:
        """Return an array for results, in a temporary file if it is large."""
        return make_scratch(shape, dtype)

    def forget(self) -> None:
        """Do nothing: tiles are read into a buffer that is used again."""


class FileSink(_TileFile):
    """The file behind a writable memory map, written by position."""

    def __init__(self, mapped: np.memmap[Any, Any], geometry: Geometry) -> None:
        super().__init__(mapped, geometry, os.O_WRONLY)
        self._is_kept = not getattr(mapped, "temporary", False)

    def open(self, tile: Slices, work: Workspace) -> NDArray[Any]:
        """Return the buffer that a tile is to be written to."""
        return work.get("write", find_lengths(tile), self.dtype)

    def put(self, tile: Slices, values: NDArray[Any], work: Workspace) -> None:
        """Write the buffer to the file."""
        self._move(write_at, tile, values)
        if self._is_kept:
            self._send_on(tile, values)

    def _send_on(self, tile: Slices, values: NDArray[Any]) -> None:
        """Let the disk begin to write a tile that is contiguous in the file, so that the final sync is short.

        Linux does so for pages that are declared as not needed soon; clean pages of the range are dropped. A
        tile in several pieces is left alone, as other tiles will be written to its pages.
        """
        position, piece = next(_find_pieces(self._dims, tile, values))
        if piece.size == values.size and hasattr(os, "posix_fadvise"):
            start = self._offset + position * self.dtype.itemsize
            with contextlib.suppress(OSError):  # not every file takes advice
                os.posix_fadvise(self._descriptor, start, values.nbytes, os.POSIX_FADV_DONTNEED)


def _find_pieces(
    dims: tuple[int, ...], tile: Slices, buffer: NDArray[Any]
) -> Iterator[tuple[int, NDArray[Any]]]:
    """Yield (flat index of the first value, part of `buffer`) for each piece of a tile contiguous in the file.

    `dims` is the shape of the array in the file, and `buffer` has the shape of the tile.
    """
    strides = [math.prod(dims[i + 1 :]) for i in range(len(dims))]
    depth = len(dims) - 1
    while depth > 0 and tile[depth].stop - tile[depth].start == dims[depth]:
        depth -= 1
    base = sum(part.start * stride for part, stride in zip(tile, strides, strict=True))
    if not depth:
        yield base, buffer
        return
    for index in np.ndindex(*buffer.shape[:depth]):
        yield base + sum(i * stride for i, stride in zip(index, strides, strict=False)), buffer[index]
