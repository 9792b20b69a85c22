"""Arrays in files: reading them, mapping them into memory, and reserving room for new ones."""

from __future__ import annotations

import errno
import io
import itertools
import math
import os
import weakref
from typing import TYPE_CHECKING, Any, BinaryIO, Literal

import numpy as np

from normcli.dtypes import require_real
from normcli.errors import DataError
from normcli.printable import format_bytes
from normcli.tensors.held_files import read_at
from normcli.tuples import NamedTuple

if TYPE_CHECKING:
    from typing import NoReturn

    from numpy.typing import NDArray

    from normcli.tensors.held_files import Opened, StoreVersion

SMALLEST_MAPPED = 1 << 26
"""The size in bytes from which on arrays are mapped, not read into memory, and worked on tile by tile."""

_PIECE = 1 << 20
"""The number of bytes that are read at a time."""

_NEAR = 1 << 13
"""The longest gap in bytes that is read and dropped, as this is faster than a separate read behind it."""

_CANNOT_RESERVE = (errno.EOPNOTSUPP, errno.EINVAL, errno.ENOSYS)
_HAS_NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


class Mapped(np.memmap[Any, Any]):
    """A memory map that keeps its file open, so that the file can be read even if renamed, replaced or removed.

    Attributes
    ----------
    descriptor : int or None
        The descriptor of the open file; None for views and copies.
    whole : Mapped or None
        The map that this is a view of; None for that map itself, and for copies.
    temporary : bool
        Whether the file is a temporary one, removed when the process ends.
    opened : Opened, StoreVersion or None
        The state of the file or store when opened, to detect changes; None for copies, and for files that no
        other process can write to.
    has_positions : bool
        Whether the values lie in the file; False if they are read from the chunks of a store (`Chunked`).
    """

    descriptor: int | None = None
    whole: Mapped | None = None
    opened: Opened | StoreVersion | None = None
    temporary: bool = False
    has_positions: bool = True

    def __array_finalize__(self, source: Any) -> None:
        """Set `opened` and `whole` of a view."""
        super().__array_finalize__(source)
        if self._mmap is not None and isinstance(source, Mapped):  # type: ignore[attr-defined]  # of views alone
            self.opened = source.opened
            self.whole = source if source.whole is None else source.whole

    @property
    def lies_in_file(self) -> bool:
        """Whether this is a memory map or a view of one; False for arrays that are calculated from it."""
        return self.descriptor is not None or self.whole is not None

    def __getitem__(self, index: Any) -> Any:
        """Return a view; if integers or integer arrays index all axes, a copy that is read from the file."""
        picks = index if isinstance(index, tuple) else (index,)
        if len(picks) != self.ndim or not self.lies_in_file or not all(map(_is_index, picks)):
            return super().__getitem__(index)
        given = [np.asarray(i).astype(np.intp) for i in picks]
        places = [np.where(i < 0, i + n, i) for i, n in zip(given, self.shape, strict=True)]
        if any(((i < 0) | (i >= n)).any() for i, n in zip(places, self.shape, strict=True)):
            return super().__getitem__(index)  # NumPy's own error says what is out of range
        offsets = sum((i * stride for i, stride in zip(places, self.strides, strict=True)), np.intp(0))
        return self._pick(np.asarray(offsets, np.intp))[()]

    def _pick(self, offsets: NDArray[np.intp]) -> NDArray[Any]:
        """Return the values at byte offsets from this array's first value, in the shape of `offsets`.

        Values close to each other are read at once.
        """
        whole, start = self._locate()
        wanted, inverse = np.unique(offsets, return_inverse=True)
        picked = np.empty(wanted.shape, self.dtype)
        data, length = picked.view(np.uint8).reshape(-1, self.itemsize), self.itemsize
        alone, places = data.reshape(-1).data, (wanted + start).tolist()
        ends = np.flatnonzero(np.diff(wanted // _NEAR, append=-1)) + 1
        for first, behind in itertools.pairwise((0, *ends.tolist())):
            if behind == first + 1:
                whole._read_into(alone[first * length : behind * length], places[first])
                continue
            near = wanted[first:behind] - wanted[first]
            piece = np.empty(int(near[-1]) + length, np.uint8)
            whole._read_into(piece.data, places[first])
            data[first:behind] = piece[np.add.outer(near, np.arange(length))]
        return picked[inverse.reshape(offsets.shape)]

    def _locate(self) -> tuple[Mapped, int]:
        """Return the map that this is a view of (or itself), and the file offset of the view's first value."""
        whole = self if self.whole is None else self.whole
        start, whole_start = (array.__array_interface__["data"][0] for array in (self, whole))
        return whole, whole.offset + start - whole_start

    def read(self) -> NDArray[Any]:
        """Return the values of a map, or of a view of one, as an array in memory, read by position.

        Axes of stride 0, as from `numpy.broadcast_to`, stay broadcast (and read-only).

        Raises
        ------
        DataError
            If the file has become too short.
        """
        repeated = [n > 1 and not stride for n, stride in zip(self.shape, self.strides, strict=True)]
        if any(repeated):  # an axis that `numpy.broadcast_to` made
            once = self[(*(slice(0, 1) if again else slice(None) for again in repeated), ...)]
            return np.broadcast_to(fetch(once), self.shape)
        order = sorted(range(self.ndim), key=lambda axis: -self.strides[axis])  # in the file's order of axes
        source = self.transpose(order)
        copy = np.empty(source.shape, source.dtype)
        if not copy.size:
            return copy.transpose(np.argsort(order))
        whole, start = source._locate()
        depth, length = source.ndim, source.itemsize
        while depth and source.strides[depth - 1] == length:
            depth -= 1
            length *= source.shape[depth]
        count, stride = 1, length  # runs that are read together, with the bytes between them
        if depth and 0 < source.strides[depth - 1] - length <= _NEAR:
            depth -= 1
            count, stride = source.shape[depth], source.strides[depth]
        places = np.array([start])
        for n, step in zip(source.shape[:depth], source.strides[:depth], strict=True):
            places = np.add.outer(places, np.arange(n) * step).reshape(-1)
        data = copy.reshape(-1).view(np.uint8).reshape(len(places), count, length)
        for place, runs in zip(places.tolist(), data, strict=True):
            whole._read_runs(runs, stride, place)
        return copy.transpose(np.argsort(order))

    def _read_runs(self, runs: NDArray[np.uint8], stride: int, place: int) -> None:
        """Fill `runs`, shape (runs, bytes), from the file: run i with the bytes from `place + i * stride`."""
        count, length = runs.shape
        if count == 1:
            self._read_into(runs[0].data, place)
            return
        at_once = min(count, max(1, _PIECE // stride))
        buffer = np.empty((at_once - 1) * stride + length, np.uint8)
        for first in range(0, count, at_once):
            some = runs[first : first + at_once]
            piece = buffer[: (len(some) - 1) * stride + length]
            self._read_into(piece.data, place + first * stride)
            some[...] = np.ndarray(some.shape, np.uint8, piece.data, strides=(stride, 1))

    def _read_into(self, missing: memoryview, place: int) -> None:
        """Fill a buffer with the bytes from a file offset on; raise `DataError` if the file has too few."""
        assert self.descriptor is not None
        while missing:
            count = read_at(self.descriptor, missing, place)
            if not count:
                raise DataError(f"{self.filename or 'the input'} was cut short while it was read")
            missing, place = missing[count:], place + count


def fetch(values: NDArray[Any]) -> NDArray[Any]:
    """Return an array in memory: itself, or if it lies in a file its values, read by position.

    Through the map, reading a file that has become shorter would kill the process.

    Raises
    ------
    DataError
        If the file has become too short.
    """
    return values.read() if isinstance(values, Mapped) and values.lies_in_file else values


def _is_index(part: Any) -> bool:
    """Whether the index along one axis is an integer or an array of integers."""
    if isinstance(part, np.ndarray):
        return part.dtype.kind in "iu"
    return isinstance(part, int | np.integer) and not isinstance(part, bool)


class Region(NamedTuple):
    """The position of an array in a file, with its dtype and shape.

    Parameters
    ----------
    dtype : numpy.dtype
    shape : tuple of int
    offset : int
        The offset of the first value, in bytes.
    order : {"C", "F"}
        The order of the values in the file.
    """

    dtype: np.dtype[Any]
    shape: tuple[int, ...]
    offset: int = 0
    order: Literal["C", "F"] = "C"

    @property
    def byte_count(self) -> int:
        """The size of the values, in bytes."""
        return math.prod(self.shape) * self.dtype.itemsize

    @property
    def is_large(self) -> bool:
        """Whether the array is large enough to be mapped and not read into memory."""
        return self.byte_count >= SMALLEST_MAPPED

    def load(self, stream: BinaryIO, name: str) -> NDArray[Any]:
        """Return the array: read into memory, or as a read-only memory map if it is large and lies in a file.

        Raises
        ------
        DataError
            If the file is cut short, the array does not fit into memory, or NumPy has no arrays of its shape;
            the message begins with `name`.
        """
        available = stream.seek(0, io.SEEK_END) - self.offset
        if available < self.byte_count:
            self.refuse_short(name, available)
        if self.is_large and not isinstance(stream, io.BytesIO):
            try:
                return self.map(stream)
            except ValueError as error:  # the file became shorter since its size was taken
                raise DataError(f"{name} was cut short while it was read") from error
        stream.seek(self.offset)
        return self.read(stream, name)

    def read(self, stream: BinaryIO, name: str) -> NDArray[Any]:
        """Return the array that begins at a stream's position, read into memory; `offset` is not used.

        Raises
        ------
        DataError
            If the stream ends before the array does, the array does not fit into memory, or NumPy has no arrays
            of its shape; the message begins with `name`.
        """
        try:
            values = np.empty(math.prod(self.shape), self.dtype)
        except (MemoryError, ValueError) as error:  # NumPy raises `ValueError` for a size it cannot count
            raise DataError(f"{name} of {self.byte_count} bytes does not fit into memory") from error
        missing = values.view(np.uint8).data
        while missing:
            count = stream.readinto(missing[:_PIECE])  # type: ignore[attr-defined]  # every binary stream has it
            if not count:
                self.refuse_short(name, self.byte_count - len(missing))
            missing = missing[count:]
        try:
            return values.reshape(self.shape, order=self.order)
        except ValueError as error:  # (2**62, 0, 16): no values, and yet beyond what NumPy can index
            raise DataError(f"{name} has the shape {self.shape}, which NumPy cannot hold") from error

    def require_exact(self, name: str, available: int) -> None:
        """Raise `DataError` unless the array has exactly `available` bytes; also if its dtype is object."""
        if self.dtype.kind == "O":
            require_real(self.dtype, name)
        if available < self.byte_count:
            self.refuse_short(name, available)
        if available > self.byte_count:
            raise DataError(
                f"{name} is damaged: its header says {self.shape} {self.dtype}, {self.byte_count} bytes; "
                f"{available} are there"
            )

    def refuse_short(self, name: str, available: int) -> NoReturn:
        """Raise `DataError` with the message that fewer bytes are available than the values need."""
        raise DataError(
            f"{name} is cut short: its header says {self.shape} {self.dtype}, "
            f"{self.byte_count} bytes; {available} are there"
        )

    def map(self, stream: BinaryIO, mode: Literal["r", "r+"] = "r", kind: type[Mapped] | None = None) -> Mapped:
        """Return the array as a memory map, which stays readable when the stream is closed.

        Mode `r+` is writable, and changes the file. The map's class is `kind`, or `Mapped` if None. A file that
        is too short raises `ValueError`.
        """
        mapped = (kind or Mapped)(stream, self.dtype, mode, self.offset, self.shape, self.order)
        mapped.descriptor = os.dup(stream.fileno())
        weakref.finalize(mapped, os.close, mapped.descriptor)
        return mapped

    def reserve(self, stream: BinaryIO) -> Mapped:
        """Return the array as a writable memory map, after reserving room for it on the disk.

        Raises
        ------
        OSError
            If there is no room; the message says how much is needed and how much is free.
        """
        stream.flush()
        size = self.offset + self.byte_count
        require_room(stream, size)
        try:
            os.posix_fallocate(stream.fileno(), 0, size)
        except (AttributeError, OSError) as error:  # not every system has it, nor every disk
            number = getattr(error, "errno", None)
            if number in _HAS_NO_ROOM:
                _refuse(number, size, _measure_free(stream))
            if number is not None and number not in _CANNOT_RESERVE:
                raise
            os.truncate(stream.fileno(), size)
        return self.map(stream, "r+")


def require_unchanged(*arrays: NDArray[Any] | None) -> None:
    """Raise `DataError` if one of the arrays lies in a file that has changed since it was opened.

    This is to be called after the last read, and before results are shown. None is ignored.
    """
    for array in arrays:
        if isinstance(array, Mapped) and array.opened is not None:
            array.opened.require_unchanged()


def require_room(stream: BinaryIO, size: int) -> None:
    """Raise `OSError` if the disk of an open file has fewer than `size` free bytes; not if that is unknown."""
    free = _measure_free(stream)
    if free is not None and free < size:
        _refuse(errno.ENOSPC, size, free)


def _measure_free(stream: BinaryIO) -> int | None:
    """Return the free bytes on an open file's disk that this process may use; None if that is not known."""
    if not hasattr(os, "fstatvfs"):  # Windows
        return None
    disk = os.fstatvfs(stream.fileno())
    blocks = disk.f_bavail if os.geteuid() else disk.f_bfree
    return blocks * disk.f_frsize if disk.f_blocks else None


def _refuse(number: int, size: int, free: int | None) -> NoReturn:
    there = "" if free is None else f", {format_bytes(free)} are free"
    raise OSError(number, f"{os.strerror(number)} ({format_bytes(size)} are needed{there})")
