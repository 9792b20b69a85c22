"""Output that is written whole or not at all."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

from normcli.errors import DataError, UsageError

if TYPE_CHECKING:
    from collections.abc import Iterator


def require_writable(path: str, option: str) -> None:
    """Raise `UsageError` unless a file could be made at `path`: cheap, and before any work is done."""
    folder = os.path.dirname(path) or os.curdir  # noqa: PTH120  # pathlib's checks raise where a folder is closed
    if os.path.isdir(path) or path.endswith(os.sep):  # noqa: PTH112
        raise UsageError(f"{option} {path}: this is a folder; give a file's name")
    if not os.path.isdir(folder):  # noqa: PTH112
        raise UsageError(f"{option} {path}: there is no folder {folder}")
    if not os.access(path if os.path.exists(path) else folder, os.W_OK):  # noqa: PTH110
        raise UsageError(f"{option} {path}: no permission to write there")


@contextlib.contextmanager
def open_whole(path: str) -> Iterator[BinaryIO]:
    """Open a file that takes the place of `path` when the block ends well, and leaves no trace otherwise.

    The data go to a temporary file beside the target, which is synced and renamed. A target that is no
    regular file (a pipe, a device) is written to directly.

    Raises
    ------
    DataError
        If writing fails; what stood at `path` before still does.
    """
    target = Path(os.path.realpath(path))
    try:
        if target.exists() and not target.is_file():
            with target.open("wb") as device:
                yield device
            return
        temporary, stream = _open_beside(target)
        try:
            with stream:
                yield stream
                stream.flush()
                os.fsync(stream.fileno())
            if target.exists():
                temporary.chmod(target.stat().st_mode & 0o7777)
            temporary.replace(target)
        except BaseException:
            temporary.unlink(missing_ok=True)
            raise
    except OSError as error:
        if isinstance(error, BrokenPipeError):
            raise
        raise DataError(f"{path} cannot be written: {error.strerror or 'the system refuses'}") from error


def _open_beside(target: Path) -> tuple[Path, BinaryIO]:
    """Create a new file in the target's folder, with the permissions that a new file gets there."""
    attempt = 0
    while True:
        temporary = target.with_name(f".normcli-{os.getpid()}-{attempt}.part")
        try:
            return temporary, temporary.open("x+b")
        except FileExistsError:
            attempt += 1
