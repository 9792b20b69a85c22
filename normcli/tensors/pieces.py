"""Long arrays a piece at a time: flat, in C order, and without keeping resident what a memory map has shown."""

from __future__ import annotations

import contextlib
import math
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

PIECE = 1 << 18
"""Values in a piece, unless asked otherwise."""


def iterate_pieces(values: NDArray[Any], size: int = PIECE) -> Iterator[NDArray[Any]]:
    """Yield the values in C order, as one-dimensional pieces of at most `size`.

    Examples
    --------
    >>> import numpy as np
    >>> [piece.tolist() for piece in iterate_pieces(np.arange(6).reshape(3, 2).T, 2)]
    [[0, 2], [4], [1, 3], [5]]
    """
    for block in iterate_blocks(values, size):
        yield block.reshape(-1)


def iterate_blocks(values: NDArray[Any], size: int = PIECE) -> Iterator[NDArray[Any]]:
    """Yield consecutive parts of at most `size` values: whole rows, where a row is no longer than that."""
    if values.size <= size:
        if values.size:
            yield values
            forget(values)
        return
    row = math.prod(values.shape[1:])
    if row > size:
        for part in values:
            yield from iterate_blocks(part, size)
        return
    for start in range(0, len(values), size // row):
        yield values[start : start + size // row]
        forget(values)


def forget(values: NDArray[Any]) -> None:
    """Let the system take back the memory in which a mapped file's values were read; others stay as they are.

    What was written to the map stays in the file. A private map (mode `c`) holds values that are nowhere else,
    and is left alone.
    """
    mapping = getattr(values, "_mmap", None)
    if mapping is not None and getattr(values, "mode", "c") != "c":
        import mmap  # slow to import, and arrays in memory need none

        with contextlib.suppress(AttributeError, OSError, ValueError):  # not every system has madvise
            mapping.madvise(mmap.MADV_DONTNEED)
