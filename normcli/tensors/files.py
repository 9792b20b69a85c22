"""From `FILE`, `FILE:KEY` or `-` to a tensor, and back: the one registry of file formats."""

from __future__ import annotations

import io
import os
import re
import stat
import sys
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, NamedTuple

from normcli.dtypes import is_bfloat16
from normcli.errors import DataError, UsageError
from normcli.printable import format_bytes
from normcli.tensors import delimited, nested, npy, npz, safetensors
from normcli.tensors.spool import spool
from normcli.tensors.tensor import STANDARD_STREAM, Tensor

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    import numpy as np
    from numpy.typing import NDArray

    Columns = tuple[str, ...] | None

STANDARD_INPUT_NAME = "standard input"

_SNIFFED_BYTES = 4096


class Saved(NamedTuple):
    """A tensor on its way to a file.

    Parameters
    ----------
    values : ndarray
    key : str
        Its name in an archive.
    columns : tuple of str or None
        The names of the last axis.
    axis_names : sequence of str
        What the axes are called in a long table.
    describe : callable or None
        Returns the columns of the long table that a text file of a tensor of more than two axes becomes;
        the values alone by default.
    """

    values: NDArray[Any]
    key: str
    columns: tuple[str, ...] | None = None
    axis_names: Sequence[str] = ()
    describe: Callable[[], Mapping[str, delimited.Column]] | None = None


class FileFormat(NamedTuple):
    """How one kind of file is read and written.

    Parameters
    ----------
    read, write : callable
    has_keys : bool
        Whether a file holds several arrays by name.
    is_text : bool
        Whether values are written as decimal digits.
    has_bfloat16 : bool
        Whether bfloat16 can be written and read back.
    start : callable or None
        Writes the header of a file, and returns the array behind it, of a shape and dtype, to be filled in any
        order. Large files of such formats are read where they lie. None where values have no fixed places.
    """

    read: Callable[[BinaryIO, str, str | None], tuple[NDArray[Any], Columns]]
    write: Callable[[BinaryIO, Saved], None]
    has_keys: bool = False
    is_text: bool = False
    has_bfloat16: bool = True
    start: Callable[[BinaryIO, tuple[int, ...], np.dtype[Any]], NDArray[Any]] | None = None

    def measure_least(self, values: NDArray[Any]) -> int:
        """Return the least size of an array's file in bytes; a value takes a digit and a separator as text."""
        return 2 * values.size if self.is_text else values.nbytes


def _write_delimited(stream: BinaryIO, saved: Saved, delimiter: str) -> None:
    text = io.TextIOWrapper(stream, encoding="utf-8", newline="", write_through=True)
    if saved.values.ndim <= 2:
        rows = delimited.iterate_table(saved.values, saved.columns)
    else:
        columns = saved.describe() if saved.describe else {saved.key: delimited.pick_from(saved.values)}
        rows = delimited.iterate_long(saved.axis_names, saved.values.shape, columns)
    delimited.write_rows(text, rows, delimiter)
    text.flush()
    text.detach()


def _separate_by(delimiter: str) -> FileFormat:
    """Return the format of tables whose cells a delimiter separates."""
    return FileFormat(
        read=lambda stream, name, key: delimited.read_delimited(stream, name, delimiter),
        write=partial(_write_delimited, delimiter=delimiter),
        is_text=True,
    )


def _write_json(stream: BinaryIO, saved: Saved) -> None:
    stream.writelines(piece.encode() for piece in nested.NestedLists(saved.values).format_json())
    stream.write(b"\n")


FORMATS: Mapping[str, FileFormat] = {
    ".npy": FileFormat(
        read=lambda stream, name, key: (npy.read_npy(stream, name), None),
        write=lambda stream, saved: npy.write_npy(stream, saved.values),
        has_bfloat16=False,
        start=npy.start_npy,
    ),
    ".npz": FileFormat(
        read=lambda stream, name, key: (npz.read_npz(stream, name, key), None),
        write=lambda stream, saved: npz.write_npz(stream, {saved.key: saved.values}),
        has_keys=True,
        has_bfloat16=False,
    ),
    ".json": FileFormat(
        read=lambda stream, name, key: (nested.read_json(stream, name, key), None),
        write=_write_json,
        has_keys=True,
        is_text=True,
    ),
    ".csv": _separate_by(","),
    ".tsv": _separate_by("\t"),
    ".safetensors": FileFormat(
        read=lambda stream, name, key: (safetensors.read_safetensors(stream, name, key), None),
        write=lambda stream, saved: safetensors.write_safetensors(stream, saved.key, saved.values),
        has_keys=True,
        start=partial(safetensors.start_safetensors, key=nested.TENSOR_KEY),
    ),
}
"""Suffix → format. To add a format, add a module that reads and writes it, and an entry here."""

_KEYED = re.compile(rf"(.*?({'|'.join(map(re.escape, FORMATS))})):(.+)", re.IGNORECASE | re.DOTALL)
"""`FILE:KEY`: the file ends at the first known suffix before a colon."""

_DEVICES = Path("/dev")
"""Files of this folder (`/dev/stdin`) have no suffix: their first bytes tell the format."""


def load(specification: str) -> Tensor:
    """Load a tensor.

    Parameters
    ----------
    specification : str
        `FILE`, `FILE:KEY` for an array of an archive, or `-` for standard input, whose first bytes tell its
        format (as do those of a pipe such as `<(command)`).

    Raises
    ------
    UsageError
        If the suffix is unknown, or the key is.
    DataError
        If the file is missing, unreadable or malformed.
    """
    if specification == STANDARD_STREAM:
        if sys.stdin is None:
            raise DataError(f"{STANDARD_INPUT_NAME} is closed")
        return _load_stream(sys.stdin.buffer, STANDARD_INPUT_NAME, None)
    path, key = _split_key(specification)
    try:
        mode = path.stat().st_mode
        if stat.S_ISDIR(mode):
            raise DataError(f"{path}: this is a folder, not a file")
        if not stat.S_ISREG(mode) or path.parent == _DEVICES:
            with path.open("rb") as stream:
                return _load_stream(stream, str(path), key)
        file_format = find_format(str(path), "input")
        with path.open("rb") as stream:
            return _load_whole(stream, str(path), key, file_format)._replace(source=specification)
    except FileNotFoundError as error:
        raise DataError(f"{path}: there is no such file") from error
    except ValueError as error:  # a name with a null byte
        raise DataError(f"{path!s} is no file's name") from error
    except OSError as error:
        raise DataError(f"{path} cannot be read: {error.strerror or 'I/O error'}") from error


def find_outgoing(path: str, option: str, dtype: np.dtype[Any]) -> FileFormat:
    """Return the format that a tensor is written in: `.npy` to standard output, else that of the path's suffix.

    Raises
    ------
    UsageError
        If the suffix is not known, or its format has no such dtype.
    """
    file_format = FORMATS[".npy"] if path == STANDARD_STREAM else find_format(path, option)
    if is_bfloat16(dtype) and not file_format.has_bfloat16:
        others = ", ".join(suffix for suffix, other in FORMATS.items() if other.has_bfloat16)
        raise UsageError(
            f"{option} {path}: NumPy's formats have no {dtype}; {others} do, or choose another dtype"
        )
    return file_format


def find_format(path: str, option: str) -> FileFormat:
    """Return the format of a path's suffix, or raise `UsageError` if it is not known."""
    suffix = Path(path).suffix.lower()
    if suffix not in FORMATS:
        what = f"the suffix {suffix}" if suffix else "no suffix"
        raise UsageError(f"{option} {path} has {what}; {', '.join(FORMATS)} are known")
    return FORMATS[suffix]


def _split_key(specification: str) -> tuple[Path, str | None]:
    if os.path.exists(specification):  # noqa: PTH110  # False, not an error, where the name is too long
        return Path(specification), None
    found = _KEYED.fullmatch(specification)
    if found is None:
        return Path(specification), None
    path, suffix, key = found.groups()
    if not FORMATS[suffix.lower()].has_keys:
        raise UsageError(f"{specification}: a {suffix} file holds one array and has no keys")
    return Path(path), key


def _load_stream(stream: BinaryIO, name: str, key: str | None) -> Tensor:
    """Load a tensor from a stream, which is stored first unless it is a file (`< x.npy`) at its start."""
    if _is_file_at_start(stream):
        return _load_whole(stream, name, key)
    with spool(stream, name) as whole:
        tensor = _load_whole(whole, name, key)
        if isinstance(whole, io.BytesIO):
            return tensor
        size = format_bytes(os.fstat(whole.fileno()).st_size)
        return tensor._replace(note=f"{size} spooled to a temporary file")


def _is_file_at_start(stream: BinaryIO) -> bool:
    try:
        return stat.S_ISREG(os.fstat(stream.fileno()).st_mode) and stream.tell() == 0
    except OSError:  # no file at all, as where Python itself feeds the command
        return False


def _load_whole(stream: BinaryIO, name: str, key: str | None, file_format: FileFormat | None = None) -> Tensor:
    """Load a tensor from a stream that can be read again: where it lies, or into memory.

    Without a format the first bytes tell it.
    """
    head = stream.read(_SNIFFED_BYTES)
    if not head:
        raise DataError(f"{name} is empty")
    file_format = file_format or FORMATS[_sniff(head, name)]
    stream.seek(0)
    values, columns = file_format.read(stream, name, key)
    return Tensor(values, name, columns)


def _sniff(head: bytes, name: str) -> str:
    """Return the suffix of the format that a file with these first bytes is of."""
    if head.startswith(npy.MAGIC):
        return ".npy"
    if head.startswith(npz.MAGICS):
        return ".npz"
    if safetensors.starts_like_safetensors(head):
        return ".safetensors"
    text = head.removeprefix(b"\xef\xbb\xbf").lstrip()
    if text[:1] in (b"[", b"{"):
        return ".json"
    if b"\x00" in head:
        raise DataError(f"{name} is none of {', '.join(FORMATS)}, by its first bytes")
    return ".tsv" if b"\t" in text.split(b"\n", 1)[0] else ".csv"
