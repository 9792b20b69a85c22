"""Long arrays piece by piece, the memory of mapped ones released after each; and reports of progress."""

from __future__ import annotations

import contextlib
import math
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from normcli.errors import DataError
from normcli.tensors.mapped import fetch

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from numpy.typing import NDArray


PIECE = 1 << 18
"""The default number of values in a piece."""


def iterate_pieces(values: NDArray[Any], size: int = PIECE) -> Iterator[NDArray[Any]]:
    """Yield the values in C order, as one-dimensional pieces of at most `size`.

    Examples
    --------
    >>> [piece.tolist() for piece in iterate_pieces(np.arange(6).reshape(3, 2).T, 2)]
    [[0, 2], [4], [1, 3], [5]]
    """
    for block in iterate_blocks(values, size):
        yield block.reshape(-1)


def find_places(test: Callable[..., NDArray[np.bool_]], *arrays: NDArray[Any]) -> Iterator[NDArray[np.intp]]:
    """Yield the flat indices (C order) of the values that pass a test, as one array for each piece.

    Parameters
    ----------
    test : callable
        Takes a piece of each array (one axis, at most 2¹⁸ values) and returns a mask.
    *arrays : ndarray
        Arrays of one shape.

    Examples
    --------
    >>> [places.tolist() for places in find_places(np.isnan, np.array([[np.nan, 1.0], [2.0, np.nan]]))]
    [[0, 3]]
    """
    start = 0
    for pieces in zip(*map(iterate_pieces, arrays), strict=True):
        yield np.flatnonzero(test(*pieces)) + start
        start += pieces[0].size


def iterate_blocks(values: NDArray[Any], size: int = PIECE) -> Iterator[NDArray[Any]]:
    """Yield consecutive blocks of an array, read into memory, of at most `size` values; none of an empty array.

    A block is several whole rows along the first axis. If a single row has more than `size` values, each row is
    cut into blocks in the same way, along its own first axis, and the blocks have fewer axes.

    Raises
    ------
    DataError
        If the array lies in a file that has become too short.
    """
    for index in _cut(values.shape, size):
        yield fetch(values[(*index, ...)])
        forget(values)


def _cut(shape: tuple[int, ...], size: int) -> Iterator[tuple[int | slice, ...]]:
    """Yield indices that cut an array into consecutive blocks of at most `size` values, in C order.

    An index covers leading axes only: `()` is the whole array, `(2, slice(0, 5))` the first five of row 2.
    Nothing is yielded for an array without values.
    """
    count, row = math.prod(shape), math.prod(shape[1:])
    if count <= size:
        if count:
            yield ()
    elif row > size:
        for place in range(shape[0]):
            yield from ((place, *index) for index in _cut(shape[1:], size))
    else:
        for start in range(0, shape[0], size // row):
            yield (slice(start, start + size // row),)


def cut_boxes(shape: Sequence[int], start: int, stop: int) -> Iterator[tuple[slice, tuple[slice, ...]]]:
    """Cut the values with flat indices `start` to `stop − 1` (C order) into rectangular blocks of an array.

    Yield a pair for each block: the slice of its values among these (0 is the value at `start`), and the tuple
    of its slices along each axis of the array. For an array without axes it is `(slice(0, 1), ())`.

    Examples
    --------
    >>> for among, index in cut_boxes((2, 3), 1, 6):
    ...     print(among, index)
    slice(0, 2, None) (slice(0, 1, None), slice(1, 3, None))
    slice(2, 5, None) (slice(1, 2, None), slice(0, 3, None))
    """
    if not shape:
        yield slice(0, 1), ()
        return
    inner = [math.prod(shape[axis + 1 :]) for axis in range(len(shape))]
    at = start
    while at < stop:
        index = [at // size % length for size, length in zip(inner, shape, strict=True)]
        # The outermost axis of which whole rows follow.
        axis = next(axis for axis, size in enumerate(inner) if at % size == 0 and stop - at >= size)
        rows = min((stop - at) // inner[axis], shape[axis] - index[axis])
        end = at + rows * inner[axis]
        outside = (slice(i, i + 1) for i in index[:axis])
        inside = (slice(0, length) for length in shape[axis + 1 :])
        yield slice(at - start, end - start), (*outside, slice(index[axis], index[axis] + rows), *inside)
        at = end


def forget(values: NDArray[Any]) -> None:
    """Release the memory into which a memory map has read its file; do nothing for other arrays.

    Values written to the map stay in the file. A private map (mode `c`) is not touched, as the values written
    to it are in memory only.
    """
    mapping = getattr(values, "_mmap", None)
    if mapping is not None and getattr(values, "mode", "c") != "c":
        import mmap  # slow to import, and arrays in memory need none

        with contextlib.suppress(AttributeError, OSError, ValueError):  # not every system has madvise
            mapping.madvise(mmap.MADV_DONTNEED)


def decode(data: bytes, name: str, kind: str) -> str:
    """Return the text of UTF-8 bytes without a byte order mark; raise `DataError` if they are not UTF-8.

    `name` is the file and `kind` its format, for the message.
    """
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise DataError(f"{name} is no {kind}: byte {error.start} is not UTF-8 text") from error


_LEAST = 1 << 26
"""The size of work, in bytes, below which no progress is reported."""


class Watch:
    """The holder of the run's progress observer (`normcli.engine.walk.Observer`), None in most runs."""

    observer: ClassVar[Any] = None


def expect(byte_count: int) -> Callable[[int], None]:
    """Announce work on a number of bytes to the observer of progress; return a function that reports progress.

    The function takes the number of bytes that were done since its last call. Without an observer, or below
    64 MiB, nothing is announced, and the function does nothing.
    """
    observer = Watch.observer
    if observer is None or byte_count < _LEAST:
        return lambda count: None
    observer.expect(byte_count)
    advance: Callable[[int], None] = observer.advance
    return advance
