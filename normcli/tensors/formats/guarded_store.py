"""Zarr's store of a folder that reads regular files only, and links out of it only if the rules allow it."""

from __future__ import annotations

import asyncio
import contextlib
import os
from typing import TYPE_CHECKING, Any

from zarr.core.buffer import default_buffer_prototype
from zarr.storage import LocalStore

from normcli.tensors.held_files import open_regular

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

_NO_VALUE = (FileNotFoundError, IsADirectoryError, NotADirectoryError)


class GuardedStore(LocalStore):  # type: ignore[misc]  # zarr is there only where it is installed
    """A Zarr store in a folder, whose files are opened by `open_regular`.

    Reading a pipe or a device raises `NoFileError`. Reading through a link out of the folder raises
    `DataError`, unless `Stores.rules.follows_links` is set.
    """

    async def get(self, key: str, prototype: Any = None, byte_range: Any = None) -> Any:
        """Return the bytes of a file, or those in a range of zarr's; None if there is no such file."""
        return await asyncio.to_thread(self.get_sync, key, prototype=prototype, byte_range=byte_range)

    def get_sync(self, key: str, *, prototype: Any = None, byte_range: Any = None) -> Any:
        """Return the bytes of the file `key` in the store's folder; None if there is no such file.

        With `byte_range`, a range object of zarr's, only the bytes in that range are returned.
        """
        make = (prototype or default_buffer_prototype()).buffer.from_bytes
        root = os.path.realpath(self.root)
        with contextlib.suppress(*_NO_VALUE), open_regular(self.root / key, root) as stream:
            start, end = _find_ends(byte_range, os.fstat(stream.fileno()).st_size)
            stream.seek(start)
            return make(stream.read(max(0, end - start)))
        return None

    async def get_partial_values(self, prototype: Any, key_ranges: Any) -> list[Any]:
        """Return a list with the bytes of each (file, range) pair, or None for a file that is missing."""
        return [await self.get(key, prototype, part) for key, part in key_ranges]

    async def list_dir(self, prefix: str) -> AsyncIterator[str]:
        """Yield the names in a folder, without links to folders, which may form cycles."""
        async for name in super().list_dir(prefix):
            path = self.root / prefix / name
            if not (path.is_symlink() and path.is_dir()):
                yield name


def _find_ends(part: Any, size: int) -> tuple[int, int]:
    """Return the offsets (start, end) of zarr's byte range in a file of `size` bytes; None is all of it."""
    if hasattr(part, "suffix"):
        return max(0, size - part.suffix), size
    if hasattr(part, "offset"):
        return part.offset, size
    return (0, size) if part is None else (part.start, min(part.end, size))
