"""Arrays that lie in files: mapped where they are, or made where the disk has room for them."""

from __future__ import annotations

import errno
import math
import os
import weakref
from typing import TYPE_CHECKING, Any, BinaryIO, Literal

import numpy as np

from normcli.printable import format_bytes

if TYPE_CHECKING:
    from typing import NoReturn

    Shape = tuple[int, ...]

SMALLEST_MAPPED = 1 << 26
"""Arrays of so many bytes and more are not read into memory, but worked on where they lie, tile by tile."""

_CANNOT_RESERVE = (errno.EOPNOTSUPP, errno.EINVAL, errno.ENOSYS)
_HAS_NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


class Mapped(np.memmap[Any, Any]):
    """A memory map that keeps its file open, so that it is found without a name, or after another has taken it.

    Attributes
    ----------
    descriptor : int or None
        Of the open file, from which whole arrays can be read by position. None of views and copies.
    temporary : bool
        Whether the file ends with the process, so that it need never reach the disk.
    """

    descriptor: int | None = None
    temporary: bool = False


def map_array(
    stream: BinaryIO,
    dtype: np.dtype[Any],
    mode: Literal["r", "r+"],
    offset: int,
    shape: Shape,
    order: Literal["C", "F"] = "C",
) -> Mapped:
    """Return the array that lies at an offset of an open file; the stream may be closed while it is used."""
    mapped = Mapped(stream, dtype, mode, offset, shape, order)
    mapped.descriptor = os.dup(stream.fileno())
    weakref.finalize(mapped, os.close, mapped.descriptor)
    return mapped


def make_mapped(stream: BinaryIO, dtype: np.dtype[Any], offset: int, shape: Shape) -> Mapped:
    """Return a writable array at an offset of an open file, which the disk has room for.

    Raises
    ------
    OSError
        If it has not.
    """
    stream.flush()
    _reserve(stream, offset + math.prod(shape) * dtype.itemsize)
    return map_array(stream, dtype, "r+", offset, shape)


def require_room(stream: BinaryIO, size: int) -> None:
    """Raise `OSError` unless the disk of an open file has room for so many bytes more."""
    free = _measure_free(stream)
    if free is not None and free < size:
        _refuse(errno.ENOSPC, size, free)


def _reserve(stream: BinaryIO, size: int) -> None:
    """Make an open file so many bytes long, all of which the disk has room for.

    Raises
    ------
    OSError
        If it has not; the message says how much is needed and how much is free.
    """
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


def _measure_free(stream: BinaryIO) -> int | None:
    """Return the bytes that this process may still write to a file's disk, or None where that is not said."""
    disk = os.fstatvfs(stream.fileno())
    blocks = disk.f_bavail if os.geteuid() else disk.f_bfree
    return blocks * disk.f_frsize if disk.f_blocks else None


def _refuse(number: int, size: int, free: int | None) -> NoReturn:
    there = "" if free is None else f", {format_bytes(free)} are free"
    raise OSError(number, f"{os.strerror(number)} ({format_bytes(size)} are needed{there})")
