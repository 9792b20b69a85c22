"""Files and stores that others may write meanwhile: each is held against what it was when it was opened."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, BinaryIO

from normcli.errors import DataError
from normcli.tuples import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable
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
        Device, inode, size, and the times in nanoseconds of the last modification and of the last change, which
        no program can set back.
    """

    name: str
    place: str | int
    version: tuple[int, int, int, int, int]

    @classmethod
    def describe(cls, stream: BinaryIO, name: str, path: Path | None = None) -> Opened:
        """Return what an open file is now; without a path it was opened by the caller of this process."""
        number = stream.fileno()
        place = number if path is None else os.path.abspath(path)  # noqa: PTH100  # resolves no links
        return cls(name, place, _find_version(os.fstat(number), place))

    def require_unchanged(self) -> None:
        """Raise `DataError` if the file was written to, replaced or removed since it was opened.

        Called after the last read: what was read before may be of two versions.
        """
        try:
            version = _find_version(os.stat(self.place), self.place)  # noqa: PTH116  # a descriptor has no path
        except OSError:
            version = None
        if version != self.version:
            refuse_changed(self.name)


@dataclass(frozen=True)
class StoreVersion:
    """What there was of a store when it was opened.

    Parameters
    ----------
    name : str
        What messages call it.
    counted : object
        What `count` returned then: how many chunks there are, or when the file was last changed.
    count : callable
    """

    name: str
    counted: Any
    count: Callable[[], Any] = field(compare=False)

    def require_unchanged(self) -> None:
        """Raise `DataError` if chunks were removed or added: a missing one reads as the fill value."""
        if self.count() != self.counted:
            refuse_changed(self.name)


def refuse_changed(name: str) -> NoReturn:
    """Raise `DataError`: a file is not what it was when it was opened."""
    raise DataError(f"{name} changed while it was read; run again once nothing writes to it")


def _find_version(status: os.stat_result, place: str | int) -> tuple[int, int, int, int, int]:
    # A descriptor's file may lose its name, which is a change of the file and none of what it holds.
    changed = status.st_ctime_ns if isinstance(place, str) else 0
    return status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns, changed
