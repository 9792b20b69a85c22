"""Operations on open files that differ on Windows: reading and writing by position, replacing files."""

from __future__ import annotations

import os
import threading

BINARY: int = getattr(os, "O_BINARY", 0)
"""A flag of `os.open`, without which Windows changes line ends."""

REPLACES_MAPPED = os.name != "nt"
"""Whether a file that is mapped into memory can be renamed, as results that are written where they lie are."""

_MOVING = threading.Lock()
"""Held while a descriptor's own position is moved, which all threads share."""


def read_at(descriptor: int, buffer: memoryview, place: int) -> int:
    """Read bytes from a position on into a buffer; return their number, 0 at the end of the file."""
    if hasattr(os, "preadv"):
        return os.preadv(descriptor, [buffer], place)
    with _MOVING:
        os.lseek(descriptor, place, os.SEEK_SET)
        found = os.read(descriptor, len(buffer))
    buffer[: len(found)] = found
    return len(found)


def write_at(descriptor: int, buffer: memoryview, place: int) -> int:
    """Write bytes of a buffer from a position on; return their number."""
    if hasattr(os, "pwritev"):
        return os.pwritev(descriptor, [buffer], place)
    with _MOVING:
        os.lseek(descriptor, place, os.SEEK_SET)
        return os.write(descriptor, buffer)
