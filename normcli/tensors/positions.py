"""Operations on open files that differ on Windows: reading and writing by position, replacing files."""

from __future__ import annotations

import os
import threading

BINARY: int = getattr(os, "O_BINARY", 0)
"""The flag of `os.open` without which Windows changes line ends; 0 on other systems."""

REPLACES_MAPPED = os.name != "nt"
"""Whether a file can be renamed while it is mapped into memory."""

_MOVING = threading.Lock()
"""The lock that is held while a descriptor's position, which all threads share, is moved and used."""


def read_at(descriptor: int, buffer: memoryview, place: int) -> int:
    """Read bytes at a file offset into a buffer; return their number, 0 at the end of the file."""
    if hasattr(os, "preadv"):
        return os.preadv(descriptor, [buffer], place)
    with _MOVING:
        os.lseek(descriptor, place, os.SEEK_SET)
        found = os.read(descriptor, len(buffer))
    buffer[: len(found)] = found
    return len(found)


def write_at(descriptor: int, buffer: memoryview, place: int) -> int:
    """Write bytes of a buffer at a file offset; return the number written, which may be less than all."""
    if hasattr(os, "pwritev"):
        return os.pwritev(descriptor, [buffer], place)
    with _MOVING:
        os.lseek(descriptor, place, os.SEEK_SET)
        return os.write(descriptor, buffer)
