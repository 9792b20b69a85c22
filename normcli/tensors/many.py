"""Many tensors by name: files, globs, folders, lists of paths, archives of several arrays."""

from __future__ import annotations

import contextlib
import glob
import os
import sys
import zipfile
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from normcli.errors import DataError, NormError, UsageError
from normcli.tensors.files import load, refuse_two_choices, split_key
from normcli.tensors.formats.file_formats import FORMATS
from normcli.tensors.formats.npz import find_arrays, read_npz
from normcli.tensors.formats.safetensors import list_names, read_safetensors
from normcli.tensors.held_files import open_regular
from normcli.tensors.tables.table_options import AS_FOUND
from normcli.tensors.tensor import STANDARD_STREAM, find_place
from normcli.tuples import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from numpy.typing import NDArray

    from normcli.tensors.tables.table_options import TableOptions
    from normcli.tensors.tensor import Tensor


class Named(NamedTuple):
    """A tensor that is still to be loaded.

    Parameters
    ----------
    name : str
        The path, or `FILE:KEY` for one of several arrays of an archive.
    load : callable
        Takes a tuple of the column names that the tensor must have, in this order, or None for any names;
        returns the tensor. It raises `DataError` and `UsageError` as `files.load` does.
    """

    name: str
    load: Callable[[tuple[str, ...] | None], Tensor]


def expand(arguments: Sequence[str]) -> list[str]:
    """Return the names of the files that arguments stand for, in the order of the arguments.

    A folder stands for the files in it that have known suffixes, a glob pattern for the files and stores that
    fit it, both sorted by name. Any other argument is returned as it is, whether such a file exists or not.

    Raises
    ------
    DataError
        If a folder holds no such file, or no file fits a pattern.
    """
    found: list[str] = []
    for argument in arguments:
        if find_place(argument) is not None and not glob.has_magic(argument):
            found.append(argument)
        elif os.path.isdir(argument):  # noqa: PTH112
            inside = sorted(
                str(path)
                for path in Path(argument).iterdir()
                if path.suffix.lower() in FORMATS and path.is_file()
            )
            if not inside:
                raise DataError(f"{argument}: the folder holds no {', '.join(FORMATS)} file")
            found += inside
        elif not os.path.exists(argument) and glob.has_magic(argument):  # noqa: PTH110
            fitting = sorted(
                path
                for path in glob.glob(argument, recursive=True)  # noqa: PTH207
                if os.path.isfile(path) or find_place(path) is not None  # noqa: PTH113
            )
            if not fitting:
                raise DataError(f"{argument}: no file fits the pattern")
            found += fitting
        else:
            found.append(argument)
    return found


def read_list(path: str) -> list[str]:
    """Return the paths that a file or standard input (`-`) lists: one a line, or with NUL bytes between.

    Raises
    ------
    DataError
        If the list cannot be read, or is empty.
    """
    try:
        data = sys.stdin.buffer.read() if path == STANDARD_STREAM else Path(path).read_bytes()
    except OSError as error:
        raise DataError(f"{path} cannot be read: {error.strerror or 'I/O error'}") from error
    parts = data.split(b"\0") if b"\0" in data else data.splitlines()
    names = [os.fsdecode(part) for part in parts if part.strip()]
    if not names:
        raise DataError(f"{'standard input' if path == STANDARD_STREAM else path} lists no files")
    return names


def name_tensors(paths: Sequence[str], options: TableOptions = AS_FOUND) -> Iterator[Named]:
    """Yield a `Named` for each tensor: one for each array of an `.npz` file, one for any other path.

    No path but that of an `.npz` file is opened before its tensor is loaded.

    Raises
    ------
    UsageError
        If a path is `FILE:COLUMN` and the options choose columns, too; or its suffix is unknown then.
    """
    for path in paths:
        refuse_two_choices(path, options)
        is_archive = path.lower().endswith(".npz") and os.path.isfile(path)  # noqa: PTH113
        keys = list_keys(path) if is_archive else []
        names = [f"{path}:{key}" for key in keys] if len(keys) > 1 else [path]
        yield from (Named(name, partial(_load, name, options)) for name in names)


def list_keys(path: str) -> list[str]:
    """Return the names of the arrays of an `.npz` or `.safetensors` file; `[]` for a damaged or other file."""
    try:
        with Path(path).open("rb") as stream:
            if path.lower().endswith(".safetensors"):
                return list_names(stream)
            with zipfile.ZipFile(stream) as archive:
                return list(find_arrays(archive))
    except Exception:  # whatever a damaged archive raises; loading it says what is wrong
        return []


def load_all(path: str) -> dict[str, NDArray[Any]]:
    """Return name → array for all arrays of an `.npz` or `.safetensors` file, whatever their dtypes.

    Raises
    ------
    UsageError
        If the file is of another format.
    DataError
        If the file, or one of its arrays, cannot be read.
    """
    keys = list_keys(path)
    if not keys:
        load(path)  # raises an error that says what is wrong
        raise UsageError(f"{path} holds no arrays by name; .npz and .safetensors do")
    return {key: _load_member(path, key) for key in keys}


def _load_member(path: str, key: str) -> NDArray[Any]:
    """Return one array of an archive by its key, of whatever dtype; raise `DataError` if it is damaged."""
    try:
        return load(f"{path}:{key}").values
    except DataError:  # a damaged file, for which it is raised again below, or a dtype that norms do not take
        read = read_safetensors if path.lower().endswith(".safetensors") else read_npz
        with open_regular(path) as stream:
            return read(stream, path, key, takes_any=True)


def describe_source(name: str) -> str:
    """Return a text that identifies a tensor: the file's name without folders, the key, and a size.

    The size is the file's, in bytes, or the shape of a Zarr array; `None` if there is no such file. An example
    is `x.npz:a 1234`; without a key, `x.npy:None 1234`.
    """
    place = find_place(name)
    path, key = split_key(name) if place is None else (Path(place.path), place.key)
    size: object = None
    with contextlib.suppress(OSError, NormError):
        if place is not None and place.is_zarr:
            from normcli.tensors.formats.stores import open_store  # on use: few tensors lie in one

            size = open_store(place, name).array.shape
        else:
            size = path.stat().st_size
    return f"{path.name}:{key} {size}"


def _load(name: str, options: TableOptions, wanted: tuple[str, ...] | None) -> Tensor:
    return load(name, options._replace(wanted=wanted))
