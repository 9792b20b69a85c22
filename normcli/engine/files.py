"""Tiles of arrays that lie in files, read and written by position: only the tiles at hand are in memory.

A memory map would do the same work, but what it has touched stays resident: its peak grows with the file.
"""

from __future__ import annotations

import math
import os
from typing import TYPE_CHECKING, Any

import numpy as np

from normcli.errors import DataError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from normcli.engine.geometry import Geometry, Slices
    from normcli.numerics.workspace import Workspace


def lies_in_file(array: NDArray[Any]) -> bool:
    """Whether an array is a memory map, whole and in C order, so that a file's positions are its own."""
    return (
        isinstance(array, np.memmap)
        and array.flags.c_contiguous
        and array.filename is not None
        and not isinstance(array.base, np.memmap)
    )


class FileSource:
    """The file behind a memory map, read by position into a buffer that is used again."""

    def __init__(self, mapped: np.memmap[Any, Any], geometry: Geometry) -> None:
        self.dtype = mapped.dtype
        self._name, self._offset, self._dims = str(mapped.filename), mapped.offset, geometry.dims
        self._descriptor = os.open(self._name, os.O_RDONLY)

    def read(self, tile: Slices, order: tuple[int, ...], work: Workspace) -> NDArray[Any]:
        """Return a tile with its runs in an order."""
        buffer = work.get("read", tuple(part.stop - part.start for part in tile), self.dtype)
        for position, piece in _find_pieces(self._dims, tile, buffer):
            self._read(piece, self._offset + position * self.dtype.itemsize)
        return buffer.transpose(order)

    def close(self) -> None:
        """Close the file."""
        os.close(self._descriptor)

    def _read(self, piece: NDArray[Any], offset: int) -> None:
        view = piece.reshape(-1).view(np.uint8).data
        while view:
            count = os.preadv(self._descriptor, [view], offset)
            if not count:
                raise DataError(f"{self._name} was cut short while it was read")
            view, offset = view[count:], offset + count


class FileSink:
    """The file behind a writable memory map, written by position."""

    def __init__(self, mapped: np.memmap[Any, Any], geometry: Geometry) -> None:
        self.dtype = mapped.dtype
        self._offset, self._dims = mapped.offset, geometry.dims
        self._descriptor = os.open(str(mapped.filename), os.O_WRONLY)

    def open(self, tile: Slices, work: Workspace) -> NDArray[Any]:
        """Return the buffer that a tile is to be written to."""
        return work.get("write", tuple(part.stop - part.start for part in tile), self.dtype)

    def put(self, tile: Slices, values: NDArray[Any]) -> None:
        """Write the buffer to the file."""
        for position, piece in _find_pieces(self._dims, tile, values):
            view = piece.reshape(-1).view(np.uint8).data
            offset = self._offset + position * self.dtype.itemsize
            while view:
                count = os.pwrite(self._descriptor, view, offset)
                view, offset = view[count:], offset + count

    def close(self) -> None:
        """Close the file."""
        os.close(self._descriptor)


def _find_pieces(
    dims: tuple[int, ...], tile: Slices, buffer: NDArray[Any]
) -> Iterator[tuple[int, NDArray[Any]]]:
    """Yield the parts of a tile's buffer that are contiguous in the file, each with its position in values."""
    strides = [math.prod(dims[i + 1 :]) for i in range(len(dims))]
    depth = len(dims) - 1
    while depth > 0 and tile[depth].stop - tile[depth].start == dims[depth]:
        depth -= 1
    base = sum(part.start * stride for part, stride in zip(tile, strides, strict=True))
    for index in np.ndindex(*buffer.shape[:depth]):
        yield base + sum(i * stride for i, stride in zip(index, strides, strict=False)), buffer[index]
