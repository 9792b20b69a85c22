"""Arrays that stay in the file they lie in, whether that file has a name or not."""

from __future__ import annotations

import os
import weakref
from typing import TYPE_CHECKING, Any, BinaryIO, Literal

import numpy as np

if TYPE_CHECKING:
    Shape = tuple[int, ...]

SMALLEST_MAPPED = 1 << 26
"""Arrays of so many bytes and more stay where they are: they are worked on in place, tile by tile."""


class Mapped(np.memmap[Any, Any]):
    """A memory map that keeps its file open: one without a name, or whose name is given away, is still found.

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
