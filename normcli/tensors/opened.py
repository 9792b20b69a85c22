"""Files that others may write while they are read: each is held against what it was when it was opened."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, BinaryIO, NamedTuple

from normcli.errors import DataError

if TYPE_CHECKING:
    from pathlib import Path
    from typing import NoReturn


class Opened(NamedTuple):
    """A file as it was when it was opened.

    Parameters
    ----------
    name : str
        What it is called in messages.
    place : str or int
        Its path, absolute; or the descriptor of a file that was opened by the caller of this process.
    version : tuple of int
        Device, inode, size, and time of the last modification in nanoseconds.
    """

    name: str
    place: str | int
    version: tuple[int, int, int, int]

    @classmethod
    def describe(cls, stream: BinaryIO, name: str, path: Path | None = None) -> Opened:
        """Return what an open file is now; without a path it was opened by the caller of this process."""
        number = stream.fileno()
        place = number if path is None else os.path.abspath(path)  # noqa: PTH100  # resolves no links
        return cls(name, place, _find_version(os.fstat(number)))

    def require_unchanged(self) -> None:
        """Raise `DataError` if the file was written to, replaced or removed since it was opened.

        Called after the last read: what was read before may be of two versions.
        """
        try:
            version = _find_version(os.stat(self.place))  # noqa: PTH116  # a descriptor has no path
        except OSError:
            version = None
        if version != self.version:
            refuse_changed(self.name)


def refuse_changed(name: str) -> NoReturn:
    """Raise `DataError`: a file is not what it was when it was opened."""
    raise DataError(f"{name} changed while it was read; run again once nothing writes to it")


def _find_version(status: os.stat_result) -> tuple[int, int, int, int]:
    return status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns
