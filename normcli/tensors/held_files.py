"""Files and stores that other processes may write to: opening, detecting later changes, locking."""

from __future__ import annotations

import contextlib
import errno
import os
import re
import stat
import threading
from typing import TYPE_CHECKING, BinaryIO, ClassVar

from normcli.errors import DataError
from normcli.tuples import NamedTuple

if TYPE_CHECKING:
    from pathlib import Path
    from typing import NoReturn


BINARY: int = getattr(os, "O_BINARY", 0)
"""The flag of `os.open` without which Windows changes line ends; 0 on other systems."""

REPLACES_MAPPED = os.name != "nt"
"""Whether a file can be renamed while it is mapped into memory."""

_MOVING = threading.Lock()
"""The lock that is held while a descriptor's position, which all threads share, is moved and used."""


def read_at(descriptor: int, buffer: memoryview, place: int) -> int:
    """Read bytes at a file offset into a buffer; return their number, which may be less than fit.

    It is 0 at the end of the file.
    """
    if hasattr(os, "preadv"):
        return os.preadv(descriptor, [buffer], place)
    with _MOVING:
        os.lseek(descriptor, place, os.SEEK_SET)
        found = os.read(descriptor, len(buffer))
    buffer[: len(found)] = found
    return len(found)


def write_at(descriptor: int, buffer: memoryview, place: int) -> int:
    """Write bytes of a buffer at a file offset; return the number written, which may be less than all."""
    if hasattr(os, "pwritev"):
        return os.pwritev(descriptor, [buffer], place)
    with _MOVING:
        os.lseek(descriptor, place, os.SEEK_SET)
        return os.write(descriptor, buffer)


_AT_ONCE = os.O_RDONLY | BINARY | getattr(os, "O_NONBLOCK", 0)
"""The flags of `os.open` with which opening a pipe does not wait for a writer."""

FOLLOW = "--follow-links reads what stores link to"
"""The remedy, for messages, for a store with a part in other files."""


class NoFileError(DataError):
    """The error for a path that is a pipe, a socket or a device, where only a regular file can be read."""


class StoreRules(NamedTuple):
    """The rules for reading Zarr and HDF5 stores.

    Parameters
    ----------
    follows_links : bool
        Whether files outside a store are read if the store links to them; if not, a link raises `DataError`.
    fills_missing : bool
        Whether a large array is read (missing chunks as the fill value) even if hardly any of its chunks exist;
        if not, such an array raises `DataError`.
    """

    follows_links: bool = False
    fills_missing: bool = False


class Stores:
    """The holder of the rules for stores, which are the same in the whole process."""

    rules: ClassVar = StoreRules()


def open_regular(path: str | Path, store: str | None = None) -> BinaryIO:
    """Open a regular file for reading; never a pipe or a device, which might block or never end.

    Parameters
    ----------
    path : str or Path
    store : str or None
        The real path of a folder in which the file must lie once links are resolved; None for any. It is not
        tested if `Stores.rules.follows_links` is set.

    Raises
    ------
    NoFileError
        If the path is a pipe, a socket or a device.
    DataError
        If the file lies outside the folder `store`.
    OSError
        If the file cannot be opened, or is a folder.
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
    """The state of a file when it was opened.

    Parameters
    ----------
    name : str
        The file's name in messages.
    place : str or int
        The file's absolute path; or its descriptor, if the caller of this process opened the file (`< x.npy`).
    version : tuple of int
        Inode, size, and the times in nanoseconds of the last modification and of the last change (0 for a
        descriptor).
    """

    name: str
    place: str | int
    version: tuple[int, int, int, int]

    @classmethod
    def describe(cls, stream: BinaryIO, name: str, path: Path | None = None) -> Opened:
        """Return the state of an open file; `path` is None if the caller of this process opened the file."""
        number = stream.fileno()
        place = number if path is None else os.path.abspath(path)  # noqa: PTH100  # resolves no links
        return cls(name, place, _find_version(os.fstat(number), place))

    def require_unchanged(self) -> None:
        """Raise `DataError` if the file was written to, replaced or removed since it was opened.

        This is to be called after the last read, as the values read may be from before and after a change.
        """
        try:
            version = _find_version(os.stat(self.place), self.place)  # noqa: PTH116  # a descriptor has no path
        except OSError:
            version = None
        if version != self.version:
            refuse_changed(self.name)


class StoreVersion(NamedTuple):
    """The state of a Zarr array's files when the array was opened.

    Parameters
    ----------
    name : str
        The array's name in messages.
    folder : str or None
        The absolute path of the folder with the array's files; None if changes are not to be detected, as
        for an array at a URL.
    files : bytes or None
        A hash of the paths, inodes, sizes and times of all files in the folder; None without a folder.
    """

    name: str
    folder: str | None
    files: bytes | None

    @classmethod
    def describe(cls, name: str, folder: str | None) -> StoreVersion:
        """Return the present state of an array's files; `folder` is None if changes are not to be detected."""
        if folder is None:
            return cls(name, None, None)
        place = os.path.abspath(folder)  # noqa: PTH100  # resolves no links
        return cls(name, place, _hash_files(place))

    def require_unchanged(self) -> None:
        """Raise `DataError` if files were written to, replaced, removed or added since the array was opened.

        Nothing is raised for an array without a folder. This is to be called after the last read.
        """
        if self.folder is not None and _hash_files(self.folder) != self.files:
            refuse_changed(self.name)


def refuse_changed(name: str) -> NoReturn:
    """Raise `DataError` with the message that a file changed while it was read."""
    raise DataError(f"{name} changed while it was read; run again once nothing writes to it")


def _hash_files(folder: str) -> bytes:
    """Return a hash of the paths and versions (`_find_version`) of all files in a folder and its subfolders."""
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
            with contextlib.suppress(OSError):  # removed meanwhile, or a link to nothing
                known.update(repr((entry.path, *_find_version(entry.stat(), entry.path))).encode())
    return known.digest()


def _find_version(status: os.stat_result, place: str | int) -> tuple[int, int, int, int]:
    # The file of a descriptor may lose its name: that sets the time of change, but not the content.
    changed = status.st_ctime_ns if isinstance(place, str) else 0
    return status.st_ino, status.st_size, status.st_mtime_ns, changed


_LEFT = r"\.normcli-[0-9a-f]{16}\.(part|lock)"
"""The pattern of the names of drafts and locks."""


def name_beside(target: Path, kind: str, identity: bytes) -> Path:
    """Return the path of a draft (kind `part`) or a lock (kind `lock`) beside a target, named by 8 bytes."""
    return target.with_name(f".normcli-{identity.hex()}.{kind}")


def try_lock(descriptor: int) -> bool:
    """Lock an open file or folder until its descriptor is closed; return False if it is locked already.

    Raises
    ------
    OSError
        If the system (Windows) or the file system has no such locks.
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
    """Whether a path still leads to an open file or folder, which may have been replaced, moved or removed."""
    try:
        return os.path.samestat(os.fstat(descriptor), path.lstat())
    except FileNotFoundError:
        return False


def remove_leftovers(folder: Path) -> None:
    """Remove the drafts and locks in a folder that were left by processes that have ended.

    Drafts and locks of running processes are locked, and stay; on systems without locks, all stay.
    """
    from pathlib import Path  # slow to import, and reading files does not need it

    with contextlib.suppress(OSError), os.scandir(folder) as entries:
        for entry in entries:
            is_real = entry.is_file(follow_symlinks=False) or entry.is_dir(follow_symlinks=False)
            if re.fullmatch(_LEFT, entry.name) and is_real:
                with contextlib.suppress(OSError):
                    _remove_dead(Path(entry.path))


def _remove_dead(path: Path) -> None:
    """Remove a draft or a lock, unless a running process has locked it or it has been replaced."""
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
