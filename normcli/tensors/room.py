"""Room on disks: whether there is enough, and how much of it is said."""

from __future__ import annotations

import errno
import os
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from typing import BinaryIO, NoReturn

_CANNOT_RESERVE = (errno.EOPNOTSUPP, errno.EINVAL, errno.ENOSYS)
_HAS_NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)

_UNITS = ("bytes", "kB", "MB", "GB", "TB", "PB", "EB")


def describe_bytes(count: int) -> str:
    """Return a size as people say it, in powers of a thousand.

    Examples
    --------
    >>> describe_bytes(512), describe_bytes(1_073_741_952), describe_bytes(999_950)
    ('512 bytes', '1.07 GB', '1 MB')
    """
    value, unit = float(count), 0
    while value >= 999.5 and unit < len(_UNITS) - 1:
        value, unit = value / 1000.0, unit + 1
    return f"{value:.3g} {_UNITS[unit]}"


def require_room(stream: BinaryIO, size: int) -> None:
    """Raise `OSError` unless the disk of an open file has room for so many bytes more."""
    free = _measure_free(stream)
    if free is not None and free < size:
        _refuse(errno.ENOSPC, size, free)


def reserve(stream: BinaryIO, size: int) -> None:
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
    there = "" if free is None else f", {describe_bytes(free)} are free"
    raise OSError(number, f"{os.strerror(number)} ({describe_bytes(size)} are needed{there})")
