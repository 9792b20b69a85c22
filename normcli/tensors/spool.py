"""Temporary files for what is too large for memory. They have no name, and vanish with the process."""

from __future__ import annotations

import contextlib
import io
import sys
from typing import TYPE_CHECKING, Any, BinaryIO, cast

import numpy as np

from normcli.errors import DataError
from normcli.tensors import mapped

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

_PIECE = 1 << 20

SMALLEST_SCRATCH = 1 << 23
"""From so many bytes on, results go to a temporary file if the input lies in a file."""


def spool(stream: BinaryIO, name: str) -> BinaryIO:
    """Read a stream to its end, into memory or, if it is large, into a temporary file.

    Returns
    -------
    BinaryIO
        Positioned at its start: an `io.BytesIO`, or a file in the folder that `TMPDIR` names.

    Raises
    ------
    DataError
        If the temporary folder has no room.
    """
    head = stream.read(mapped.SMALLEST_MAPPED + 1)
    if len(head) <= mapped.SMALLEST_MAPPED:
        return io.BytesIO(head)
    with _explain(name), contextlib.ExitStack() as opened:
        spooled = opened.enter_context(_open_temporary())
        while head:
            spooled.write(head)
            head = stream.read(_PIECE)
        spooled.seek(0)
        opened.pop_all()
    return spooled


@contextlib.contextmanager
def open_outgoing() -> Iterator[BinaryIO]:
    """Open a temporary file that is copied to standard output when the block ends without an error.

    Raises
    ------
    DataError
        If the temporary folder has no room.
    """
    with _open_temporary() as spooled:
        with _explain("the output"):
            yield spooled
            spooled.seek(0)
        import shutil

        shutil.copyfileobj(spooled, sys.stdout.buffer, _PIECE)
        sys.stdout.buffer.flush()


def make_scratch(shape: tuple[int, ...], dtype: np.dtype[Any]) -> NDArray[Any]:
    """Return an array of zeros, which lies in a temporary file if it is large.

    Raises
    ------
    DataError
        If the temporary folder has no room.
    """
    region = mapped.Region(dtype, shape)
    if region.byte_count < SMALLEST_SCRATCH:
        return np.zeros(shape, dtype)
    with _explain("the result"), _open_temporary() as stream:
        scratch = region.reserve(stream)
    scratch.temporary = True
    return scratch


def _open_temporary() -> BinaryIO:
    import tempfile  # slow to import, and small tensors need none

    return cast("BinaryIO", tempfile.TemporaryFile())


@contextlib.contextmanager
def _explain(name: str) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        import tempfile

        raise DataError(
            f"{name} cannot be stored in {tempfile.gettempdir()}: {error.strerror or 'I/O error'}; "
            "set TMPDIR to a folder with room for it"
        ) from error
