"""Writing of files and folders, whole or not at all."""

from __future__ import annotations

import contextlib
import errno
import functools
import os
import time
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

from normcli.errors import DataError, UsageError
from normcli.tensors.held_files import is_at, name_beside, remove_leftovers, try_lock
from normcli.tensors.mapped import require_room
from normcli.tensors.spool import open_outgoing
from normcli.tuples import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

_OPEN_FILES = "/proc/self/fd"
"""The folder in which Linux lists a process's open files by descriptor, nameless files included."""

_REMOVALS, _BETWEEN = 20, 0.1
"""The number of tries to remove a folder to which others still write, and the seconds between two tries."""

_NEW_FILE = 0o666
"""The permissions of a new file, before the umask."""


_written: list[str] = []
"""The paths of the files that have replaced others, until `take_written` returns them."""


def take_written() -> list[str]:
    """Return the paths of the files that this process has written since the last call."""
    written = [*_written]
    _written.clear()
    return written


def require_writable(path: str, option: str) -> None:
    """Raise `UsageError` or, without permission, `DataError` unless a file can be written at `path`.

    It is a quick check before any work. The message begins with `option`, by which the path was given.
    """
    folder = os.path.dirname(path) or os.curdir  # noqa: PTH120  # pathlib's checks raise where a folder is closed
    if os.path.isdir(path) or path.endswith(os.sep):  # noqa: PTH112
        raise UsageError(f"{option} {path}: this is a folder; give a file's name")
    if os.path.islink(os.path.realpath(path)):  # noqa: PTH114
        raise UsageError(f"{option} {path}: this is a symbolic link that leads back to itself")
    if not os.path.isdir(folder):  # noqa: PTH112
        raise UsageError(f"{option} {path}: there is no folder {folder}; make it first")
    if not os.access(path if os.path.exists(path) else folder, os.W_OK):  # noqa: PTH110
        raise DataError(f"{option} {path}: no permission to write there")


class Draft(NamedTuple):
    """A file that is complete and synced, and still has a temporary name.

    Parameters
    ----------
    place : callable
        Renames the file to its target; raises `DataError` if that fails.
    at_end : contextlib.ExitStack
        Its `close()` closes the file, and removes it unless `place` was called.
    """

    place: Callable[[], None]
    at_end: contextlib.ExitStack


@contextlib.contextmanager
def _explain(path: str) -> Iterator[None]:
    """Turn an `OSError` of writing `path` in a `with` block into `DataError`, except for broken pipes.

    A context manager.
    """
    try:
        yield
    except BrokenPipeError:
        raise
    except OSError as error:
        raise DataError(f"{path} cannot be written: {error.strerror or 'I/O error'}") from error


@contextlib.contextmanager
def open_whole(
    path: str, least: int = 0, *, seeks: bool = False, later: list[Draft] | None = None
) -> Iterator[BinaryIO]:
    """Open, as a context manager, a file that replaces `path` if the block ends without an error.

    After an error the new file is removed, and the file that was at `path` is unchanged.

    The data go to a file without a name, of which nothing is left if the process is killed; on systems without
    such files, to a draft beside the target. It is then synced and renamed, and takes the permissions of the
    file that it replaces. A pipe or a device is written to directly. Drafts that killed processes left in the
    folder are removed.

    Parameters
    ----------
    path : str
    least : int
        The least number of bytes that will be written: `DataError` is raised before the block if there is no
        room.
    seeks : bool
        Whether the block seeks in the file; data for a pipe or a device are then stored in a temporary file
        first.
    later : list or None
        The list to which the finished file is appended as a `Draft`; None to rename it at once.

    Raises
    ------
    DataError
        If the file cannot be opened, written or renamed.
    BrokenPipeError
        If a pipe at `path` is closed by its reader.
    """
    target = Path(os.path.realpath(path))
    with _explain(path):
        if target.is_symlink():  # `realpath` leaves a link that leads back to itself
            raise OSError(errno.ELOOP, os.strerror(errno.ELOOP))
        if target.exists() and not target.is_file():
            with (
                target.open("wb") as device,
                open_outgoing(device) if seeks else contextlib.nullcontext(device) as stream,
            ):
                yield stream
            return
        _clean_once(target.parent)
        with contextlib.ExitStack() as at_end:
            folder = _open_descriptor(target.parent)
            nameless = None
            if folder is not None:
                at_end.callback(os.close, folder)
                nameless = _open_nameless(target.parent)
            draft = name_beside(target, "part", os.urandom(8))
            if nameless is None:
                draft, stream = _open_named(target, at_end)
            else:
                at_end.callback(draft.unlink, missing_ok=True)  # unless it has replaced the target
                stream = at_end.enter_context(nameless)
                _lock_draft(stream.fileno())  # locked before it has a name
            require_room(stream, least)
            yield stream
            stream.flush()
            if target.exists() and hasattr(os, "fchmod"):
                os.fchmod(stream.fileno(), target.stat().st_mode & 0o7777)
            os.fsync(stream.fileno())
            if nameless is not None:
                # With a folder's descriptor, Python links the file itself and not the symbolic link in /proc.
                os.link(f"{_OPEN_FILES}/{stream.fileno()}", draft.name, dst_dir_fd=folder)

            def place() -> None:
                if os.name == "nt":  # Windows renames no open file
                    stream.close()
                try:
                    with _explain(path):
                        draft.replace(target)
                finally:  # Ctrl-C may come right behind it
                    if not os.path.lexists(draft):
                        _written.append(path)
                if folder is not None:
                    with contextlib.suppress(OSError):  # not every file system syncs folders
                        os.fsync(folder)

            if later is None:
                place()
            else:
                later.append(Draft(place, at_end.pop_all()))


@functools.cache
def _clean_once(folder: Path) -> None:
    """Remove the drafts that killed processes left in a folder, once for each folder and process."""
    remove_leftovers(folder)


def _lock_draft(descriptor: int, draft: Path | None = None) -> bool:
    """Lock an open file or folder until it is closed, so that no other process removes it as left over.

    Return False if another process has locked it, or has removed it from the path `draft` (not checked if
    None). Return True where the system has no locks.
    """
    try:
        return try_lock(descriptor) and (draft is None or is_at(descriptor, draft))
    except OSError:  # without locks, no process removes drafts
        return True


def _open_named(target: Path, at_end: contextlib.ExitStack) -> tuple[Path, BinaryIO]:
    """Open a draft beside a target; return its path and stream. `at_end` closes and removes it."""
    while True:
        draft = name_beside(target, "part", os.urandom(8))
        at_end.callback(draft.unlink, missing_ok=True)  # unless it has replaced the target
        stream = at_end.enter_context(draft.open("x+b"))
        if _lock_draft(stream.fileno(), draft):
            return draft, stream


def _make_draft_folder(target: Path, at_end: contextlib.ExitStack) -> Path:
    """Make a draft folder beside a target, locked until `at_end` is closed; return its path."""
    while True:
        draft = name_beside(target, "part", os.urandom(8))
        draft.mkdir()
        descriptor = _open_descriptor(draft)
        if descriptor is None:
            return draft
        at_end.callback(os.close, descriptor)
        if _lock_draft(descriptor, draft):
            return draft


def _open_descriptor(folder: Path) -> int | None:
    try:
        return os.open(folder, os.O_RDONLY)
    except OSError:  # a folder that may be written to, but not read
        return None


def _open_nameless(folder: Path) -> BinaryIO | None:
    """Open a new file without a name in a folder; return None if the system has no such files."""
    flag = getattr(os, "O_TMPFILE", None)
    if flag is None or not os.path.isdir(_OPEN_FILES):  # noqa: PTH112
        return None
    try:
        descriptor = os.open(folder, os.O_RDWR | flag, _NEW_FILE)
    except OSError:  # errors differ by file system; a real fault is raised again by opening a named file
        return None
    return os.fdopen(descriptor, "w+b")


def require_new_folder(path: str, option: str, *, replaces: bool = False) -> None:
    """Raise `UsageError` or, without permission, `DataError` unless a folder can be written at `path`.

    It is a quick check before any work. The path must be free or an empty folder; with `replaces`, it may be
    any folder. The message begins with `option`, by which the path was given.
    """
    target = Path(path)
    parent = Path(os.path.realpath(path)).parent
    if os.path.lexists(target) and not target.is_dir():  # `path` may end with a slash
        raise UsageError(f"{option} {path}: this is no folder")
    if target.is_dir() and any(target.iterdir()) and not replaces:
        raise UsageError(f"{option} {path}: this folder is not empty; give a new one, or remove it first")
    if not parent.is_dir():
        raise UsageError(f"{option} {path}: there is no folder {parent}; make it first")
    if not os.access(parent, os.W_OK):
        raise DataError(f"{option} {path}: no permission to write there")


@contextlib.contextmanager
def open_folder(path: str, *, replaces: bool = False) -> Iterator[Path]:
    """Make, as a context manager, a folder that is moved to `path` if the block ends without an error.

    The block gets the path of the new folder. After an error this folder is removed, and `path` is unchanged.
    If the process is killed, the folder is left under a draft's name; the next process that writes beside it
    removes it.

    Parameters
    ----------
    path : str
        The target: a free path, or an empty folder.
    replaces : bool
        Whether the target may be a folder that is not empty; it is removed once the new one has its name.

    Raises
    ------
    DataError
        If writing fails, or another process has written to the target meanwhile.
    """
    target = Path(os.path.realpath(path))
    with _explain(path):
        _clean_once(target.parent)
        with contextlib.ExitStack() as at_end:
            draft = _make_draft_folder(target, at_end)
            try:
                yield draft
                if replaces and target.is_dir() and any(target.iterdir()):
                    _exchange(draft, target)
                else:
                    _fill_place(draft, target)
            except FileExistsError as error:
                _remove(draft)
                raise DataError(
                    f"{path} cannot be written: another process has written it meanwhile"
                ) from error
            except BaseException:
                _remove(draft)
                raise


def _remove(draft: Path) -> None:
    """Remove a folder, with several tries, as threads and processes that end may still write to it."""
    import shutil  # slow to import, and only a failure needs it

    for _ in range(_REMOVALS):
        shutil.rmtree(draft, ignore_errors=True)
        if not draft.exists():
            return
        time.sleep(_BETWEEN)


def _fill_place(draft: Path, target: Path) -> None:
    """Move a draft folder to a target: a free path, or an empty folder, into which its files are moved.

    Raises
    ------
    FileExistsError
        If the target is a folder that is not empty.
    """
    try:
        if not target.is_dir():
            draft.replace(target)
            return
        is_taken = any(target.iterdir())
    except OSError as error:
        is_taken = error.errno in (errno.ENOTEMPTY, errno.EEXIST)
        if not is_taken:
            raise
    if is_taken:
        raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST))
    for file in draft.iterdir():  # the empty folder is kept: it may be the current one of a process
        file.replace(target / file.name)
    draft.rmdir()


def _exchange(draft: Path, target: Path) -> None:
    """Put the folder `draft` in the place of `target`, and remove the latter.

    This is atomic on Linux; elsewhere it takes two renames, between which there is no folder at `target`.
    """
    import shutil

    if not _swap(draft, target):
        old = target.with_name(f"{target.name}.old")  # it stays if this process is killed before the end
        target.replace(old)
        draft.replace(target)
        draft = old
    shutil.rmtree(draft)


def _swap(first: Path, other: Path) -> bool:
    """Exchange the names of two folders atomically; return False if the system cannot."""
    import ctypes

    try:
        rename = ctypes.CDLL(None, use_errno=True).renameat2
    except (AttributeError, OSError, TypeError):  # the system is not Linux
        return False
    here, exchange = -100, 2  # AT_FDCWD, RENAME_EXCHANGE of linux/fs.h
    return not rename(here, os.fsencode(first), here, os.fsencode(other), exchange)
