"""Locks on files and folders, which end with the process that holds them, however it ends."""

from __future__ import annotations

import contextlib
import os
import re
from pathlib import Path

_LEFT = re.compile(r"\.normcli-[0-9a-f]{16}\.(part|lock)")
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

    Those that are locked, by a running process, are kept; where there are no locks, all are kept.
    """
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
