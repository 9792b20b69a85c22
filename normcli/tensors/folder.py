"""Folders that are written whole or not at all."""

from __future__ import annotations

import contextlib
import os
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

from normcli.errors import DataError, UsageError

if TYPE_CHECKING:
    from collections.abc import Iterator


def require_new_folder(path: str, option: str) -> None:
    """Raise `UsageError` unless a folder could be made at `path`, or an empty one stands there already."""
    target = Path(path)
    parent = Path(os.path.realpath(path)).parent
    if os.path.lexists(path) and not target.is_dir():
        raise UsageError(f"{option} {path}: this is no folder")
    if target.is_dir() and any(target.iterdir()):
        raise UsageError(f"{option} {path}: this folder is not empty; give a new one, or remove it first")
    if not parent.is_dir():
        raise UsageError(f"{option} {path}: there is no folder {parent}")
    if not os.access(parent, os.W_OK):
        raise UsageError(f"{option} {path}: no permission to write there")


@contextlib.contextmanager
def open_folder(path: str) -> Iterator[Path]:
    """Make a folder that takes its place at `path` when the block ends well, and vanishes otherwise.

    Parameters
    ----------
    path : str
        Where nothing or an empty folder stands.

    Raises
    ------
    DataError
        If writing fails.
    """
    target = Path(os.path.realpath(path))
    draft = target.with_name(f".normcli-{os.urandom(8).hex()}.part")
    try:
        draft.mkdir()
        try:
            yield draft
            _take_place(draft, target)
        except BaseException:
            shutil.rmtree(draft, ignore_errors=True)
            raise
    except OSError as error:
        raise DataError(f"{path} cannot be written: {error.strerror or 'the system refuses'}") from error


def _take_place(draft: Path, target: Path) -> None:
    if not target.is_dir():
        draft.replace(target)
        return
    for file in draft.iterdir():  # an empty folder may be somebody's current one: it stays itself
        file.replace(target / file.name)
    draft.rmdir()
