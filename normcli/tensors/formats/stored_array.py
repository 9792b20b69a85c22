"""An array of a chunked store, whose chunks are read from the store when their values are needed."""

from __future__ import annotations

import itertools
import math
import sys
import threading
from collections import OrderedDict
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from normcli.errors import DataError
from normcli.printable import format_bytes
from normcli.tensors.held_files import Stores
from normcli.tensors.mapped import Mapped, Region, fetch
from normcli.tensors.pieces import cut_boxes, forget
from normcli.tensors.spool import open_temporary
from normcli.tuples import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

    from normcli.tensors.held_files import Opened, StoreVersion


Box = tuple[slice, ...]

_MOST_COUNTED = 10**24
"""The largest size in bytes that a message states: a million exabytes."""

CACHE = 1 << 26
"""The bytes of an array's chunks that are kept in memory for further reads."""


class Stored(NamedTuple):
    """An open array of a Zarr or HDF5 store, with its chunks.

    Parameters
    ----------
    name : str
        The array's name in messages.
    array : zarr.Array, h5py.Dataset or ndarray
        The array, which is read by slices; an ndarray is the content of a file that holds nothing else.
    chunks : tuple of int
        The lengths of a chunk along each axis.
    version : StoreVersion or Opened
        The state of the files when the array was opened, to detect changes.
    dimensions : tuple of str or None
        The names of the axes; None unless every axis has one.
    """

    name: str
    array: Any
    chunks: tuple[int, ...]
    version: Opened | StoreVersion
    dimensions: tuple[str, ...] | None = None

    def read(self, box: Box) -> NDArray[Any]:
        """Return the values of a block of this array, given as a slice for each axis.

        Raises
        ------
        DataError
            If a chunk cannot be read.
        """
        try:
            return np.asarray(fetch(self.array[box]))
        except DataError:
            raise
        except Exception as error:  # whatever a codec or a file system raises
            corner = ", ".join(f"{cut.start or 0}" for cut in self._find_unreadable(box))
            raise DataError(
                f"{self.name}: the chunk at ({corner}) cannot be read: {describe_failure(error)}"
            ) from error

    def _find_unreadable(self, box: Box) -> Box:
        """Return the slices of a block's first chunk that cannot be read; `box` itself if every chunk can."""
        places = [cut.indices(n) for cut, n in zip(box, self.array.shape, strict=True)]
        starts = (range(a - a % c, b, c) for (a, b, _), c in zip(places, self.chunks, strict=True))
        for corner in itertools.product(*starts):
            chunk = tuple(slice(start, start + c) for start, c in zip(corner, self.chunks, strict=True))
            try:
                self.array[chunk]
            except Exception:  # whatever a codec or a file system raises, as in `read`
                return chunk
        return box

    def cut(self, chunks: tuple[int, ...] | None = None) -> Iterator[Box]:
        """Yield the slices of each block of this array, in C order; a block has the lengths `chunks`.

        None stands for the array's own chunks. Blocks at the end of an axis are shorter.
        """
        shape = self.array.shape
        ranges = (range(0, n, max(1, step)) for n, step in zip(shape, chunks or self.chunks, strict=True))
        for starts in itertools.product(*ranges):
            yield tuple(
                slice(start, min(start + max(1, step), n))
                for start, step, n in zip(starts, chunks or self.chunks, shape, strict=True)
            )


class Chunked(Mapped):
    """An array, in C order, that reads its values from the chunks of a store when they are needed.

    As an array it is a map of an empty temporary file. If a row of chunks (`row_bytes`) has more than 64 MiB,
    the first read copies the whole array to that file.
    """

    stored: Stored
    _kept: OrderedDict[tuple[int, ...], NDArray[Any]]
    _lock: threading.Lock
    _is_filled: bool

    @classmethod
    def make(cls, stored: Stored) -> Chunked:
        """Return an array of a store as a `Chunked`, whose chunks are read later.

        Raises
        ------
        DataError
            If the array is larger than any file or NumPy array can be.
        """
        array = stored.array
        region = Region(array.dtype, tuple(array.shape))
        try:
            with open_temporary() as stream:
                stream.truncate(region.byte_count)  # the file takes no room on the disk before it is filled
                made = cast("Chunked", region.map(stream, "r+", cls))
        except (OSError, OverflowError, ValueError) as error:  # a size beyond what files or arrays can have
            size = format_bytes(min(region.byte_count, _MOST_COUNTED))
            raise DataError(
                f"{stored.name} has the shape {region.shape}, {size}: no file holds so much"
            ) from error
        made.stored, made.temporary, made.has_positions = stored, True, False
        made.opened = stored.version
        made._kept, made._lock, made._is_filled = OrderedDict(), threading.Lock(), False
        return made

    @property
    def row_bytes(self) -> int:
        """The size in bytes of a row of chunks: the chunks that consecutive values in C order may lie in.

        A row is one chunk long along the first axis that is divided into chunks, and covers all later axes.
        """
        shape, chunks = self.stored.array.shape, self.stored.chunks
        first = next((axis for axis, n in enumerate(shape) if chunks[axis] < n), 0)
        lengths = [
            min(c, n) if axis <= first else n for axis, (c, n) in enumerate(zip(chunks, shape, strict=True))
        ]
        return int(math.prod(lengths) * self.itemsize)

    def _read_into(self, missing: memoryview, place: int) -> None:
        """Fill a buffer with the array's bytes from an offset on, in C order.

        They are read from chunks, or from the temporary file to which the chunks were copied.
        """
        if self.row_bytes > CACHE:
            self._fill()
        if self._is_filled:
            super()._read_into(missing, place)
            return
        buffer = np.frombuffer(missing, self.dtype)
        start = place // self.itemsize
        for outside, box in cut_boxes(self.shape, start, start + buffer.size):
            self._copy(box, buffer[outside].reshape([cut.stop - cut.start for cut in box]))

    def _copy(self, box: Box, target: NDArray[Any]) -> None:
        """Copy the values of a block (a slice for each axis) from its chunks into an array of its shape."""
        ranges = [
            range(cut.start // c, -(-cut.stop // c)) for cut, c in zip(box, self.stored.chunks, strict=True)
        ]
        for number in itertools.product(*ranges):
            chunk, inside, outside = self._get_chunk(number), [], []
            for cut, c, at in zip(box, self.stored.chunks, number, strict=True):
                start, stop = max(cut.start, at * c), min(cut.stop, (at + 1) * c)
                inside.append(slice(start - at * c, stop - at * c))
                outside.append(slice(start - cut.start, stop - cut.start))
            target[tuple(outside)] = chunk[tuple(inside)]

    def _get_chunk(self, number: tuple[int, ...]) -> NDArray[Any]:
        """Return a chunk, from the cache or the store; `number` is its index along each axis, in chunks.

        Raises
        ------
        DataError
            If the chunk cannot be read.
        """
        with self._lock:
            if number in self._kept:
                self._kept.move_to_end(number)
                return self._kept[number]
        box = tuple(
            slice(at * c, min((at + 1) * c, n))
            for at, c, n in zip(number, self.stored.chunks, self.shape, strict=True)
        )
        chunk = self.stored.read(box)
        with self._lock:
            self._kept[number] = chunk
            while len(self._kept) > 1 and sum(one.nbytes for one in self._kept.values()) > CACHE:
                self._kept.popitem(last=False)
        return chunk

    def _fill(self) -> None:
        """Copy all chunks to the temporary file, unless that is done."""
        with self._lock:
            if self._is_filled:
                return
            room = self.view(np.ndarray)
            for box in self.stored.cut():
                room[box] = self.stored.read(box)
                forget(self)  # it is in the file
            self._is_filled = True


def describe_failure(error: Exception) -> str:
    """Return the first line of an exception's message, or its type's name if that is empty."""
    return str(error).strip().split("\n")[0] or type(error).__name__


CHUNK = 1 << 22
"""The size in bytes of a chunk that is written, unless the input's chunks are taken over."""

_MOST_MISSING = 1000
"""The most chunks of an array for each chunk that its store holds: more are taken for damaged metadata."""

_MOST_READ, _MOST_FILLED = 10_000, 1 << 26
"""The chunks, and the bytes, of an array that is read however few chunks its store holds: it takes seconds."""


def require_held(source: str, array: Any, chunks: Sequence[int], held: int) -> None:
    """Raise `DataError` if an array is large and its store holds less than a thousandth of its chunks.

    Large arrays have more than 64 MiB or 10,000 chunks. Nothing is raised if `Stores.rules.fills_missing` is
    set.

    Parameters
    ----------
    source : str
        The array's name in the message.
    array : zarr.Array or h5py.Dataset
    chunks : sequence of int
        The lengths of a chunk along each axis.
    held : int
        The number of chunks in the store.
    """
    if Stores.rules.fills_missing:
        return
    count = math.prod(-(-n // max(1, chunk)) for n, chunk in zip(array.shape, chunks, strict=True))
    size = math.prod(array.shape) * array.dtype.itemsize
    if count > _MOST_MISSING * held and (size > _MOST_FILLED or count > _MOST_READ):
        raise DataError(
            f"{source} has the shape {tuple(array.shape)}, but the store holds {held:,} of its {count:,} "
            "chunks: it is damaged, or not filled yet; --fill-missing reads it as its fill value"
        )


def make_stored(
    source: str, array: Any, chunks: Sequence[int], version: Opened | StoreVersion, names: Any
) -> Stored:
    """Return an array with its chunks as a `Stored`.

    Parameters
    ----------
    source : str
        The array's name in messages.
    array : zarr.Array or h5py.Dataset
    chunks : sequence of int
        The lengths of a chunk along each axis.
    version : Opened or StoreVersion
        The state of the files when the array was opened.
    names : object
        The names of the axes; they are dropped unless they are a list or tuple of a text for every axis.

    Raises
    ------
    DataError
        If a chunk has the length 0 along an axis that is not empty, or an axis is too long for Python.
    """
    shape = tuple(array.shape)
    if any(n > sys.maxsize for n in shape):
        raise DataError(f"{source} is damaged: it has the shape {shape}")
    if any(chunk < 1 <= n for chunk, n in zip(chunks, shape, strict=True)):
        raise DataError(f"{source} is damaged: its chunks have the shape {tuple(chunks)}")
    is_named = isinstance(names, list | tuple) and len(names) == len(shape)
    dimensions = tuple(names) if is_named and all(isinstance(name, str) and name for name in names) else None
    return Stored(source, array, tuple(chunks), version, dimensions)


def choose_chunks(shape: tuple[int, ...], dtype: np.dtype[Any]) -> tuple[int, ...]:
    """Return the lengths of chunks of up to 4 MiB that are whole along as many of the last axes as fit.

    Examples
    --------
    >>> choose_chunks((1000, 64, 32, 32), np.dtype("float32"))
    (16, 64, 32, 32)
    """
    room, lengths = CHUNK // dtype.itemsize, []
    for length in reversed(shape):
        lengths.append(max(1, min(length, room)))
        room //= max(1, length)
    return tuple(reversed(lengths))
