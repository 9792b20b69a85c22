"""Temporary files for arrays that are too large for memory; they have no name and end with the process."""

from __future__ import annotations

import contextlib
import io
import math
import os
import weakref
from typing import TYPE_CHECKING, Any, BinaryIO, cast

import numpy as np

from normcli.errors import DataError
from normcli.tensors import mapped
from normcli.tensors.pieces import expect

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from numpy.typing import NDArray

_PIECE = 1 << 20

SMALLEST_SCRATCH = 1 << 23
"""The size in bytes from which on results, and numbers collected from text, go to a temporary file."""


def spool(stream: BinaryIO, name: str, tell_format: Callable[[bytes], str]) -> BinaryIO:
    """Read a stream to its end: into memory, or into a temporary file if it has more than 64 MiB.

    Parameters
    ----------
    stream : BinaryIO
    name : str
        The stream's name in messages.
    tell_format : callable
        Takes the first 64 MiB of a larger stream, and raises `DataError` if their format is unknown.

    Returns
    -------
    BinaryIO
        An `io.BytesIO`, or a file in the folder that `TMPDIR` names; its position is 0.

    Raises
    ------
    DataError
        If the temporary folder has no room, or the format of a larger stream is unknown.
    """
    head = stream.read(mapped.SMALLEST_MAPPED + 1)
    if len(head) <= mapped.SMALLEST_MAPPED:
        return io.BytesIO(head)
    tell_format(head)  # raises before an endless stream such as /dev/zero is stored
    with _explain(name), contextlib.ExitStack() as opened:
        spooled = opened.enter_context(open_temporary())
        while head:
            spooled.write(head)
            head = stream.read(_PIECE)
        spooled.seek(0)
        opened.pop_all()
    return spooled


def store(stream: BinaryIO, region: mapped.Region, name: str) -> mapped.Mapped:
    """Copy the array at a stream's position to a temporary file; return the array as a map of that file.

    Parameters
    ----------
    stream : BinaryIO
    region : Region
        The array's dtype, shape and order; its offset is not used.
    name : str
        The array's name, with which messages begin.

    Raises
    ------
    DataError
        If the stream ends before the array does, or the temporary folder has no room.
    """
    with open_temporary() as stored:
        missing = region.byte_count
        advance = expect(missing)
        with _explain(name):
            mapped.require_room(stored, missing)
        while missing:
            piece = stream.read(min(_PIECE, missing))
            if not piece:
                region.refuse_short(name, region.byte_count - missing)
            with _explain(name):
                stored.write(piece)
            missing -= len(piece)
            advance(len(piece))
        with _explain(name):
            stored.flush()
            array = region._replace(offset=0).map(stored)
    array.temporary = True
    return array


def keep_open(stream: BinaryIO, owner: object) -> BinaryIO:
    """Return a second stream of the same bytes, which stays open until `owner` is garbage-collected.

    The two streams of a file share one position. The copy of an `io.BytesIO` has its own position, 0.
    """
    if isinstance(stream, io.BytesIO):
        return io.BytesIO(stream.getvalue())  # the copy shares the bytes
    kept = os.fdopen(os.dup(stream.fileno()), "rb")
    weakref.finalize(owner, kept.close)
    return kept


@contextlib.contextmanager
def open_outgoing(target: BinaryIO) -> Iterator[BinaryIO]:
    """Open a temporary file, as a context manager; copy it to a stream when the block ends without an error.

    After an error in the block, nothing is written to the stream.

    Parameters
    ----------
    target : BinaryIO
        A stream that cannot seek: standard output, a pipe, a device.

    Raises
    ------
    DataError
        If an `OSError` is raised in the block, as when the temporary folder has no room.
    OSError
        If the target cannot be written to.
    """
    with open_temporary() as spooled:
        with _explain("the output"):
            yield spooled
            spooled.seek(0)
        import shutil

        shutil.copyfileobj(spooled, target, _PIECE)
        target.flush()


def make_scratch(shape: tuple[int, ...], dtype: np.dtype[Any]) -> NDArray[Any]:
    """Return a writable array of zeros: in memory, or in a temporary file if it has 8 MiB or more.

    Raises
    ------
    DataError
        If the temporary folder has no room.
    """
    region = mapped.Region(dtype, shape)
    if region.byte_count < SMALLEST_SCRATCH:
        return np.zeros(shape, dtype)
    with _explain("the result"), open_temporary() as stream:
        scratch = region.reserve(stream)
    scratch.temporary = True
    return scratch


class Collected:
    """A context manager that joins blocks of values: in memory, or in a temporary file beyond 8 MiB.

    In the `with` block, `add` is called for each block of values and `finish` once, at the end. The array that
    `finish` returned can still be read after the `with` block.

    Parameters
    ----------
    name : str
        The name of the file that the values are from, for messages.
    """

    def __init__(self, name: str) -> None:
        import tempfile

        self._name = name
        self._stream = tempfile.SpooledTemporaryFile(SMALLEST_SCRATCH)  # noqa: SIM115  # closed by `__exit__`

    def __enter__(self) -> Collected:
        return self

    def __exit__(self, *_: object) -> None:
        self._stream.close()

    def add(self, block: NDArray[Any]) -> None:
        """Append a block of values.

        Raises
        ------
        DataError
            If the temporary folder has no room.
        """
        with _explain(self._name):
            self._stream.write(np.ascontiguousarray(block).data)

    def finish(self, shape: tuple[int, ...], dtype: np.dtype[Any]) -> NDArray[Any]:
        """Return the values of all blocks, in order, as one array.

        Beyond 8 MiB, the array is a read-only map of the temporary file.

        Parameters
        ----------
        shape : tuple of int
            The array's shape; one length may be -1, which stands for as many as there are.
        dtype : numpy.dtype
            The dtype of the blocks.

        Raises
        ------
        DataError
            If the temporary folder has no room.
        ValueError
            If the shape has another number of values.
        """
        with _explain(self._name):
            self._stream.flush()
        size = self._stream.tell()
        lengths = tuple(size // dtype.itemsize // abs(math.prod(shape)) if n < 0 else n for n in shape)
        if size > SMALLEST_SCRATCH:
            scratch = mapped.Region(dtype, lengths).map(cast("BinaryIO", self._stream))
            scratch.temporary = True
            return scratch
        values = np.empty(lengths, dtype)
        self._stream.seek(0)
        self._stream.readinto(values.data)
        return values


def open_temporary() -> BinaryIO:
    """Open a temporary file without a name."""
    import tempfile  # slow to import, and small tensors need none

    return cast("BinaryIO", tempfile.TemporaryFile())


@contextlib.contextmanager
def _explain(name: str) -> Iterator[None]:
    """Turn an `OSError` of a `with` block into a `DataError` that names `TMPDIR`; a context manager."""
    try:
        yield
    except OSError as error:
        import tempfile

        raise DataError(
            f"{name} cannot be stored in {tempfile.gettempdir()}: {error.strerror or 'I/O error'}; "
            "set TMPDIR to a folder with room for it"
        ) from error
