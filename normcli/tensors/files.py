"""Loading a tensor, given `FILE`, `FILE:KEY` or `-`."""

from __future__ import annotations

import io
import os
import re
import stat
import sys
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, cast

from normcli.errors import DataError, UsageError
from normcli.printable import format_bytes
from normcli.tensors.formats.file_formats import (
    FORMATS,
    SNIFFED_BYTES,
    FileFormat,
    find_format,
    recognize_format,
)
from normcli.tensors.held_files import Opened
from normcli.tensors.mapped import Mapped
from normcli.tensors.spool import spool
from normcli.tensors.tables.column_choice import UNNAMED, find_grouping, list_names
from normcli.tensors.tables.table_options import AS_FOUND
from normcli.tensors.tables.tables import FileTable
from normcli.tensors.tables.text_columns import doubt_identifiers
from normcli.tensors.tensor import STANDARD_STREAM, GroupingColumns, Tensor, find_place

if TYPE_CHECKING:
    from normcli.tensors.tables.table_options import TableOptions
    from normcli.tensors.tables.tables import TextRows

STANDARD_INPUT_NAME = "standard input"


_KEYED = re.compile(rf"(.*?({'|'.join(map(re.escape, FORMATS))})):(.*)", re.IGNORECASE | re.DOTALL)
"""`FILE:KEY`: the file ends at the first known suffix before a colon; an array's key may be empty."""

_DEVICES = Path("/dev")
"""Files of this folder (`/dev/stdin`) have no suffix: their first bytes tell the format."""


def load(specification: str, options: TableOptions = AS_FOUND) -> Tensor:
    """Load a tensor.

    Parameters
    ----------
    specification : str
        `FILE`; `FILE:KEY`, where the key is the name of an array in an archive or store, or names columns of
        a table (`options` must then choose none); or `-` for standard input. The format is recognized by the
        suffix; for standard input and pipes such as `<(command)`, by the first bytes.
    options : TableOptions
        The options for reading a table.

    Raises
    ------
    UsageError
        If the suffix or the key is unknown, or an option does not fit the file.
    DataError
        If the file is missing, unreadable or malformed, or changes meanwhile.
    """
    if specification == STANDARD_STREAM:
        if sys.stdin is None:
            raise DataError(f"{STANDARD_INPUT_NAME} is closed")
        return _load_stream(sys.stdin.buffer, STANDARD_INPUT_NAME, None, options)
    if "\0" in specification:
        raise DataError(f"{specification} is no file's name")
    place = find_place(specification)
    if place is not None:
        from normcli.tensors.formats.stores import load_store  # on use: few tensors lie in one

        options.refuse(specification)
        return _name_columns(load_store(place, specification), options.wanted)
    refuse_two_choices(specification, options)
    path, key = split_key(specification)
    try:
        mode = path.stat().st_mode
        if stat.S_ISDIR(mode):
            raise DataError(f"{path}: this is a folder, not a file")
        if not stat.S_ISREG(mode) or path.parent == _DEVICES:
            with path.open("rb") as stream:
                return _load_stream(stream, str(path), key, options, path)
        file_format = find_format(str(path), "input")
        with path.open("rb") as stream:
            opened = Opened.describe(stream, str(path), path)
            tensor = _load_held(stream, opened, key, options, file_format)
            return tensor._replace(source=specification)
    except FileNotFoundError as error:
        raise DataError(f"{path}: there is no such file") from error
    except OSError as error:
        raise DataError(f"{path} cannot be read: {error.strerror or 'I/O error'}") from error


def split_key(specification: str) -> tuple[Path, str | None]:
    """Split `FILE:KEY` into path and key; the key is None for `FILE`, and for every path that exists.

    Raises
    ------
    UsageError
        If there is a key and files of that suffix hold a single array, and no table.
    """
    if os.path.exists(specification):  # noqa: PTH110  # False, not an error, where the name is too long
        return Path(specification), None
    found = _KEYED.fullmatch(specification)
    if found is None:
        return Path(specification), None
    path, suffix, key = found.groups()
    file_format = FORMATS[suffix.lower()]
    if not (file_format.has_keys or file_format.keeps_others):
        raise UsageError(f"{specification}: a {suffix} file holds one array and has no keys")
    return Path(path), key


def refuse_two_choices(specification: str, options: TableOptions) -> None:
    """Raise `UsageError` if `FILE:COLUMN` names columns of a table, and `columns` or `exclude` is set, too.

    `UsageError` is also raised for an unknown suffix, and for a key where files of that suffix have none.
    """
    for option in ("columns", "exclude"):
        if getattr(options, option) is None or find_place(specification) is not None:
            continue
        path, key = split_key(specification)
        if key is not None and not find_format(str(path), "input").has_keys:
            raise UsageError(f"{specification} names the columns; leave out --{option}")


def _load_stream(
    stream: BinaryIO, name: str, key: str | None, options: TableOptions, path: Path | None = None
) -> Tensor:
    """Load a tensor from a stream: directly if it is a regular file at position 0 (`< x.npy`).

    Any other stream is first read to its end, into memory or a temporary file (`spool`).

    Parameters
    ----------
    stream : BinaryIO
    name : str
        The stream's name in messages.
    key : str or None
        The name of an array, or of columns, in the file.
    options : TableOptions
    path : Path or None
        The path by which this process opened the stream; None if its caller opened it.

    Raises
    ------
    UsageError
        If the key or an option does not fit the file.
    DataError
        If the data are malformed, or too large for the temporary folder.
    """
    if _is_file_at_start(stream):
        return _load_held(stream, Opened.describe(stream, name, path), key, options)
    with spool(stream, name, lambda head: recognize_format(head[:SNIFFED_BYTES], name)) as whole:
        tensor = _load_whole(whole, name, key, options)
        if isinstance(whole, io.BytesIO):
            return tensor
        size = format_bytes(os.fstat(whole.fileno()).st_size)
        notes = [f"{size} spooled to a temporary file", tensor.note]
        return tensor._replace(note="; ".join(note for note in notes if note))


def _load_held(
    stream: BinaryIO,
    opened: Opened,
    key: str | None,
    options: TableOptions,
    file_format: FileFormat | None = None,
) -> Tensor:
    """Load a tensor from an open file, and check that no other process changed the file meanwhile.

    Parameters
    ----------
    stream : BinaryIO
    opened : Opened
        The file's name, and its state when it was opened.
    key : str or None
        The name of an array, or of columns, in the file.
    options : TableOptions
    file_format : FileFormat or None
        The file's format; None to recognize it by the first bytes.

    Raises
    ------
    UsageError
        If the key or an option does not fit the file.
    DataError
        If the file is malformed, or has changed since it was opened.
    """
    try:
        tensor = _load_whole(stream, opened.name, key, options, file_format)
    except DataError:
        opened.require_unchanged()
        raise
    return _hold_to(tensor, opened)


def _hold_to(tensor: Tensor, opened: Opened) -> Tensor:
    """Return a tensor that was read from a file, with the file's state when it was opened, for later checks.

    The state also becomes that of the tensor's table, and of its memory map, in place.

    Raises
    ------
    DataError
        If the file has changed since it was opened.
    """
    opened.require_unchanged()
    if isinstance(tensor.values, Mapped) and not tensor.values.temporary:
        tensor.values.opened = opened
    table = None if tensor.table is None else tensor.table._replace(opened=opened)
    return tensor._replace(table=table, opened=opened)


def _is_file_at_start(stream: BinaryIO) -> bool:
    try:
        return stat.S_ISREG(os.fstat(stream.fileno()).st_mode) and stream.tell() == 0
    except OSError:  # no file at all, as where Python itself feeds the command
        return False


def _load_whole(
    stream: BinaryIO, name: str, key: str | None, options: TableOptions, file_format: FileFormat | None = None
) -> Tensor:
    """Load a tensor from a seekable stream at position 0: as a memory map if it is large, else into memory.

    Parameters
    ----------
    stream : BinaryIO
    name : str
        The stream's name in messages.
    key : str or None
        The name of an array, or of columns, in the file.
    options : TableOptions
    file_format : FileFormat or None
        The file's format; None to recognize it by the first bytes.

    Raises
    ------
    UsageError
        If the key or an option does not fit the file.
    DataError
        If the stream is empty or malformed.
    """
    head = stream.read(SNIFFED_BYTES)
    if not head:
        raise DataError(f"{name} is empty")
    file_format = file_format or FORMATS[recognize_format(head, name)]
    stream.seek(0)
    if key is not None and not file_format.has_keys:
        key, options = None, options._replace(columns=key, columns_source=f"{name}:{key}")
    found, how = file_format.read(stream, name, key, options)
    if not isinstance(found, FileTable):
        options.refuse(name)
        return _name_columns(Tensor(found, name, note=how, has_no_dtype=file_format.is_text), options.wanted)
    if found.delimiter is None:
        options.refuse(name, but=("columns", "exclude", "by"))
    values, note = found.read()
    doubt = None
    if options.columns is None and options.wanted is None:
        doubt = doubt_identifiers(found.rows, found.chosen, values)
    notes = "; ".join(text for text in (how, note, doubt) if text)
    columns = found.columns or options.wanted
    suffix = next(suffix for suffix, one in FORMATS.items() if one is file_format)
    found = found._replace(format_name="tsv" if found.delimiter == "\t" else suffix.removeprefix("."))
    by = None
    if options.by is not None:
        places = find_grouping(found.rows, options.by)
        names = tuple(found.rows.names[place] if found.rows.names else str(place) for place in places)
        numerals = None if found.delimiter is None else cast("TextRows", found.rows).numerals
        by = GroupingColumns(names, partial(found.rows.read_labels, places), numerals)
    return Tensor(values, name, columns, notes or None, found, has_no_dtype=True, by=by)


def _name_columns(tensor: Tensor, wanted: tuple[str, ...] | None) -> Tensor:
    """Return a tensor with the wanted column names, and with a note that says so.

    It is returned unchanged if `wanted` is None, or the length of its last axis is not the number of names.
    """
    if wanted is None or tensor.values.shape[-1:] != (len(wanted),):
        return tensor
    notes = (tensor.note, UNNAMED.format(list_names(wanted)))
    return tensor._replace(columns=wanted, note="; ".join(note for note in notes if note))
