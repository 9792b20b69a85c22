"""Outputs that are also read, or that two options name: refused before any work, as a file would be lost."""

from __future__ import annotations

import os
import stat
from typing import TYPE_CHECKING, Any

import click

from normcli.cli.files.destination import ARCHIVES
from normcli.errors import UsageError
from normcli.tensors.tensor import STANDARD_STREAM

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


def require_unread_outputs(values: Mapping[str, Any]) -> None:
    """Raise click's `UsageError` if an output is a file or a named pipe that another option reads.

    A tensor may be replaced by its own result: `--output` may be the input file, or a table that an input is a
    column of. It may not be a named pipe, which would wait for itself, or an archive that is read by a key.
    """
    for output in ("output", "stats_output"):
        option, path = f"--{output.replace('_', '-')}", values.get(output)
        for name, value in values.items():
            if path is None or name in ("output", "stats_output", "state"):
                continue
            replaces = output == "output" and name in ("inputs", "files")
            texts = value if isinstance(value, tuple) else (value,)
            require_unread(option, path, [text for text in texts if isinstance(text, str)], replaces=replaces)


def require_unread(option: str, path: str | None, names: Sequence[str], *, replaces: bool = False) -> None:
    """Raise click's `UsageError` if the file of an output is among the files that are read.

    Parameters
    ----------
    option : str
        The option that names the output, for the message.
    path : str or None
        The output; None, standard output, folders, and files that do not exist yet pass.
    names : sequence of str
        Names of what is read, as `FILE` or `FILE:KEY`; other texts pass.
    replaces : bool
        Whether the result of a tensor may replace its file. An archive (`.npz`, `.safetensors`) whose array is
        named by its key is refused all the same, as its other arrays would be lost.
    """
    kind = None if path is None else _find_kind(path)
    if path is None or kind not in (stat.S_IFREG, stat.S_IFIFO):
        return
    for name in names:
        for file in (name, name.rpartition(":")[0]):
            if _find_kind(file) != kind or not os.path.samefile(file, path):  # noqa: PTH121
                continue
            if kind == stat.S_IFIFO:
                raise click.UsageError(f"{option} {path} is a pipe that is also named to be read; give another")
            if not replaces or (file != name and path.lower().endswith(ARCHIVES)):
                raise click.UsageError(f"{option} {path} would replace a file that is read; name another file")


def _find_kind(path: str) -> int | None:
    """Return the kind of a file, such as `stat.S_IFREG` or `stat.S_IFIFO`; None if there is no such file."""
    try:
        return stat.S_IFMT(os.stat(path).st_mode)  # noqa: PTH116
    except (OSError, ValueError):
        return None


def require_distinct(paths: dict[str, str | None]) -> None:
    """Raise `UsageError` if two options name one file, given option → path; None and `-` are ignored."""
    seen: dict[str, str] = {}
    for option, path in paths.items():
        if path is not None and path != STANDARD_STREAM:
            first = seen.setdefault(os.path.realpath(path), option)
            if first != option:
                raise UsageError(f"{first} and {option} are both {path}; one would overwrite the other")
