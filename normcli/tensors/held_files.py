"""Files and stores that other processes may write to: opened, held against what they were then, locked."""

from __future__ import annotations

import contextlib
import errno
import os
import re
import stat
import threading
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, ClassVar

from normcli.errors import DataError
from normcli.tuples import NamedTuple

if TYPE_CHECKING:
    from pathlib import Path
    from typing import NoReturn


BINARY: int = getattr(os, "O_BINARY", 0)
"""A flag of `os.open`, without which Windows changes line ends."""

REPLACES_MAPPED = os.name != "nt"
"""Whether a file that is mapped into memory can be renamed, as results that are written where they lie are."""

_MOVING = threading.Lock()
"""Held while a descriptor's own position is moved, which all threads share."""


def read_at(descriptor: int, buffer: memoryview, place: int) -> int:
    """Read bytes from a position on into a buffer; return their number, 0 at the end of the file."""
    if hasattr(os, "preadv"):
        return os.preadv(descriptor, [buffer], place)
    with _MOVING:
        os.lseek(descriptor, place, os.SEEK_SET)
        found = os.read(descriptor, len(buffer))
    buffer[: len(found)] = found
    return len(found)


def write_at(descriptor: int, buffer: memoryview, place: int) -> int:
    """Write bytes of a buffer from a position on; return their number."""
    if hasattr(os, "pwritev"):
        return os.pwritev(descriptor, [buffer], place)
    with _MOVING:
        os.lseek(descriptor, place, os.SEEK_SET)
        return os.write(descriptor, buffer)


_AT_ONCE = os.O_RDONLY | BINARY | getattr(os, "O_NONBLOCK", 0)
"""Opens a pipe without waiting for who writes to it."""

FOLLOW = "--follow-links reads what stores link to"
"""The remedy for a store of which a part lies elsewhere."""


class NoFileError(DataError):
    """The path is a pipe, a socket or a device, and only a regular file can be read."""


class StoreRules(NamedTuple):
    """What is read of stores.

    Parameters
    ----------
    follows_links : bool
        Whether a store may refer to files elsewhere.
    fills_missing : bool
        Whether a large array of which the store holds next to nothing is read, as its fill value.
    """

    follows_links: bool = False
    fills_missing: bool = False


class Stores:
    """The rules of the whole run."""

    rules: ClassVar = StoreRules()


def open_regular(path: str | Path, store: str | None = None) -> BinaryIO:
    """Open a regular file for reading: of what else may wait for ever, or never end, none is opened.

    Parameters
    ----------
    path : str or Path
    store : str or None
        The real path of the folder that the file is a part of: links lead out of it only if links are followed.

    Raises
    ------
    DataError
        If it is a pipe, a socket or a device, or lies elsewhere.
    OSError
        If it cannot be opened, or is a folder.
    """
    if store is not None and not Stores.rules.follows_links:
        real = os.path.realpath(path)
        if os.path.commonpath((real, store)) != store:
            raise DataError(f"{path} is a link to {real}; {FOLLOW}")
    _require_regular(os.stat(path).st_mode, path)  # noqa: PTH116  # some devices act on being opened
    descriptor = os.open(path, _AT_ONCE)
    try:
        _require_regular(os.fstat(descriptor).st_mode, path)
        return os.fdopen(descriptor, "rb")
    except BaseException:
        os.close(descriptor)
        raise


def _require_regular(mode: int, path: str | Path) -> None:
    if stat.S_ISDIR(mode):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
    if not stat.S_ISREG(mode):
        kinds = {stat.S_IFIFO: "a pipe", stat.S_IFSOCK: "a socket"}
        raise NoFileError(f"{path} is {kinds.get(stat.S_IFMT(mode), 'a device')}, where only a file will do")


class Opened(NamedTuple):
    """A file as it was when it was opened.

    Parameters
    ----------
    name : str
        What it is called in messages.
    place : str or int
        Its path, absolute; or the descriptor of a file that was opened by the caller of this process.
    version : tuple of int
        Inode, size, and the times in nanoseconds of the last modification and of the last change, which no
        program can set back: the same on every machine that shares the disk.
    """

    name: str
    place: str | int
    version: tuple[int, int, int, int]

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


class StoreVersion(NamedTuple):
    """A Zarr array as it was when it was opened.

    Parameters
    ----------
    name : str
        What messages call it.
    folder : str or None
        Where the files of its chunks lie, absolute; None of an array elsewhere, of which changes are not seen.
    files : bytes or None
        A hash of what was known of them then.
    """

    name: str
    folder: str | None
    files: bytes | None

    @classmethod
    def describe(cls, name: str, folder: str | None) -> StoreVersion:
        """Return the version of a store: a hash of its folder's files; None for a store without a folder."""
        if folder is None:
            return cls(name, None, None)
        place = os.path.abspath(folder)  # noqa: PTH100  # resolves no links
        return cls(name, place, _hash_files(place))

    def require_unchanged(self) -> None:
        """Raise `DataError` if files were written to, replaced, removed or added since it was opened.

        Called after the last read, as of `Opened`: of chunks written in between, some were read before.
        """
        if self.folder is not None and _hash_files(self.folder) != self.files:
            refuse_changed(self.name)


def refuse_changed(name: str) -> NoReturn:
    """Raise `DataError`: a file is not what it was when it was opened."""
    raise DataError(f"{name} changed while it was read; run again once nothing writes to it")


def _hash_files(folder: str) -> bytes:
    """Return a hash of the names of all files in a folder, and in those in it, and of their `_find_version`."""
    import hashlib  # slow to import, and few tensors lie in stores

    known = hashlib.blake2b(digest_size=16)
    folders = [folder]
    while folders:
        try:
            entries = sorted(os.scandir(folders.pop()), key=lambda entry: entry.name)
        except OSError:  # removed meanwhile
            continue
        for entry in entries:
            if entry.is_dir(follow_symlinks=False):
                folders.append(entry.path)
                continue
            with contextlib.suppress(OSError):  # likewise, or a link to nothing
                known.update(repr((entry.path, *_find_version(entry.stat(), entry.path))).encode())
    return known.digest()


def _find_version(status: os.stat_result, place: str | int) -> tuple[int, int, int, int]:
    # A descriptor's file may lose its name, which is a change of the file and none of what it holds.
    changed = status.st_ctime_ns if isinstance(place, str) else 0
    return status.st_ino, status.st_size, status.st_mtime_ns, changed


_LEFT = re.compile(r"\.normcli-[0-9a-f]{16}\.(part|lock)")
"""The names of drafts and locks in a folder."""


def name_beside(target: Path, kind: str, identity: bytes) -> Path:
    """Return the name beside a target of a draft (`part`) or a lock (`lock`), made of 8 bytes."""
    return target.with_name(f".normcli-{identity.hex()}.{kind}")


def try_lock(descriptor: int) -> bool:
    """Lock an open file or folder until its descriptor is closed; return False if another process holds it.

    Raises
    ------
    OSError
        If the system or the file system has no such locks.
    """
    try:
        import fcntl
    except ImportError as error:  # Windows
        raise OSError("no locks") from error
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def is_at(descriptor: int, path: Path) -> bool:
    """Whether an open file or folder still stands at a path: another may have replaced it, or none be left."""
    try:
        return os.path.samestat(os.fstat(descriptor), path.lstat())
    except FileNotFoundError:
        return False


def remove_leftovers(folder: Path) -> None:
    """Remove the drafts and locks in a folder that processes have left which are no more.

    Whatever a living process has there is locked, and stays; so does everything where there are no locks.
    """
    from pathlib import Path  # slow to import, and of files that are read no more than a path is needed

    with contextlib.suppress(OSError), os.scandir(folder) as entries:
        for entry in entries:
            is_real = entry.is_file(follow_symlinks=False) or entry.is_dir(follow_symlinks=False)
            if _LEFT.fullmatch(entry.name) and is_real:
                with contextlib.suppress(OSError):
                    _remove_dead(Path(entry.path))


def _remove_dead(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        if not try_lock(descriptor) or not is_at(descriptor, path):
            return
        if path.is_dir():
            import shutil  # slow to import, and there is hardly ever anything to remove

            shutil.rmtree(path)
        else:
            path.unlink()
    finally:
        os.close(descriptor)
