"""Temporary files without a name: where large streams wait. Nothing of them outlives the process."""

from __future__ import annotations

import contextlib
import io
import shutil
import sys
import tempfile
from typing import TYPE_CHECKING, BinaryIO

from normcli.errors import DataError
from normcli.tensors import mapped

if TYPE_CHECKING:
    from collections.abc import Iterator

_PIECE = 1 << 20


def spool(stream: BinaryIO, name: str) -> BinaryIO:
    """Read a stream to its end; what is large goes to a temporary file, in pieces.

    Returns
    -------
    BinaryIO
        At its start: an `io.BytesIO`, or a file in the folder that `TMPDIR` names.

    Raises
    ------
    DataError
        If the temporary folder has no room.
    """
    head = stream.read(mapped.SMALLEST_MAPPED + 1)
    if len(head) <= mapped.SMALLEST_MAPPED:
        return io.BytesIO(head)
    with _explain(name), contextlib.ExitStack() as opened:
        spooled = opened.enter_context(tempfile.TemporaryFile())
        while head:
            spooled.write(head)
            head = stream.read(_PIECE)
        spooled.seek(0)
        opened.pop_all()
    return spooled


@contextlib.contextmanager
def open_outgoing() -> Iterator[BinaryIO]:
    """Open a temporary file whose content goes to standard output when the block ends well.

    Raises
    ------
    DataError
        If the temporary folder has no room.
    """
    with tempfile.TemporaryFile() as spooled:
        with _explain("the output"):
            yield spooled
            spooled.seek(0)
        shutil.copyfileobj(spooled, sys.stdout.buffer, _PIECE)
        sys.stdout.buffer.flush()


@contextlib.contextmanager
def _explain(name: str) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise DataError(
            f"{name} cannot be put aside in {tempfile.gettempdir()}: {error.strerror or 'the system refuses'}; "
            "let TMPDIR name a folder with room for it"
        ) from error
