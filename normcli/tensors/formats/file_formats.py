"""The registry of file formats: how each is recognized, read and written, and the arrays it cannot hold."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

from normcli.dtypes import is_bfloat16
from normcli.errors import DataError, UsageError
from normcli.tensors.formats import json_lists as nested
from normcli.tensors.formats import npy, npz, safetensors
from normcli.tensors.tables import json_records as records
from normcli.tensors.tables import parquet
from normcli.tensors.tables.delimited import read_delimited
from normcli.tensors.tables.delimited_writing import write_delimited
from normcli.tensors.tables.parquet_writing import write_parquet
from normcli.tuples import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    import numpy as np
    from numpy.typing import NDArray

    from normcli.tensors.formats.stored_array import Stored
    from normcli.tensors.tables.table_options import TableOptions
    from normcli.tensors.tables.tables import FileTable
    from normcli.tensors.tensor import Tensor

SNIFFED_BYTES = 4096
"""The number of bytes at the start of a file from which its format is recognized."""


_BYTE_ORDER_MARK = b"\xef\xbb\xbf"


class Saved(NamedTuple):
    """A tensor that is to be written to a file.

    Parameters
    ----------
    values : ndarray
    key : str
        The tensor's name in an archive.
    columns : tuple of str or None
        A name for each index of the last axis; None without names.
    table : FileTable or None
        The table that the tensor was made from, whose other columns are written too; None without one.
    model : Stored or None
        The array of a Zarr or HDF5 store that the tensor was made from; None without one.
    """

    values: NDArray[Any]
    key: str
    columns: tuple[str, ...] | None = None
    table: FileTable | None = None
    model: Stored | None = None

    @classmethod
    def like(cls, tensor: Tensor, values: NDArray[Any]) -> Saved:
        """Return results of a tensor's shape, to be saved with the tensor's columns, table and store."""
        return cls(values, nested.TENSOR_KEY, tensor.columns, tensor.table, tensor.stored)

    @property
    def names(self) -> tuple[str, ...] | None:
        """The names of the columns under which this tensor is written; None if it is written without names.

        They are `columns` for a tensor of two axes. For a table that has other columns and no names, they are
        the indices of the tensor's columns in the table, as texts.
        """
        if self.columns is None and self.table is not None and self.table.has_others:
            return tuple(map(str, self.table.chosen))
        return self.columns if self.values.ndim == 2 else None


class FileFormat(NamedTuple):
    """One file format: the functions that read and write it.

    Parameters
    ----------
    read : callable
        Takes a seekable stream, the file's name, a key or None, and table options; returns the array (or a
        `FileTable`) and a note on how it was read, or None.
    write : callable
        Takes a stream and a `Saved`, and writes it.
    refuses : callable
        Takes a shape and a dtype; returns the reason for which such an array would not be read back as it was,
        or None if it would.
    limits : str
        A description of the arrays that the format holds; empty if it holds all.
    has_keys : bool
        Whether a file holds several arrays by name.
    is_text : bool
        Whether values are written as decimal digits.
    keeps_others : bool
        Whether the file is a table, into which columns that are not in the tensor are written too.
    start : callable or None
        Takes a stream, a shape and a dtype; writes the header, and returns a writable map of the array after
        it, whose values may be filled in any order. None if a value's offset depends on the values
        before it. Large files of formats with this function are memory-mapped to be read.
    """

    read: Callable[[BinaryIO, str, str | None, TableOptions], tuple[NDArray[Any] | FileTable, str | None]]
    write: Callable[[BinaryIO, Saved], None]
    refuses: Callable[[tuple[int, ...], np.dtype[Any]], str | None] = lambda shape, dtype: None
    limits: str = ""
    has_keys: bool = False
    is_text: bool = False
    keeps_others: bool = False
    start: Callable[[BinaryIO, tuple[int, ...], np.dtype[Any]], NDArray[Any]] | None = None

    def measure_least(self, values: NDArray[Any]) -> int:
        """Return the least size of an array's file in bytes: its own size, or as text 2 for each value."""
        return 2 * values.size if self.is_text else values.nbytes


def _refuse_bfloat16(shape: tuple[int, ...], dtype: np.dtype[Any]) -> str | None:
    return f"NumPy's formats have no {dtype}" if is_bfloat16(dtype) else None


def _refuse_lost_lengths(shape: tuple[int, ...], dtype: np.dtype[Any]) -> str | None:
    return f"empty lists do not say what lengths {shape} has behind its 0" if 0 in shape[:-1] else None


def _refuse_lines(shape: tuple[int, ...], dtype: np.dtype[Any]) -> str | None:
    if not shape or not shape[0]:
        return f"lines hold the items of a first axis, and a tensor of the shape {shape} has none"
    return _refuse_lost_lengths(shape, dtype)


def _refuse_all_but_tables(shape: tuple[int, ...], dtype: np.dtype[Any]) -> str | None:
    if len(shape) == 2 and 0 not in shape:
        return None
    return f"it holds rows of columns, and this tensor has the shape {shape}; -f csv prints the answer's table"


def _refuse_all_but_columns(shape: tuple[int, ...], dtype: np.dtype[Any]) -> str | None:
    problem = _refuse_all_but_tables(shape, dtype)
    return problem or (None if dtype.name in parquet.DTYPES else f"Parquet files have no {dtype}")


def _make_delimited(delimiter: str) -> FileFormat:
    """Return the file format of text tables whose usual delimiter, also when written, is `delimiter`."""
    return FileFormat(
        read=lambda stream, name, key, options: read_delimited(stream, name, options, delimiter),
        write=lambda stream, saved: write_delimited(stream, saved.values, saved.names, saved.table, delimiter),
        refuses=_refuse_all_but_tables,
        limits="tensors of two axes, none of them empty",
        is_text=True,
        keeps_others=True,
    )


def _read_json(
    stream: BinaryIO, name: str, key: str | None, options: TableOptions
) -> tuple[NDArray[Any] | FileTable, str | None]:
    """Return a table if JSON is a list of objects, else its array (named `key`); and a note, or None."""
    if key is None and records.starts_like_records(stream.read(SNIFFED_BYTES)):
        return records.read_records(stream, name, options, is_lines=False)
    stream.seek(0)
    return nested.read_json(stream, name, key)


def _read_json_lines(
    stream: BinaryIO, name: str, key: str | None, options: TableOptions
) -> tuple[NDArray[Any] | FileTable, str | None]:
    if stream.read(SNIFFED_BYTES).removeprefix(_BYTE_ORDER_MARK).lstrip()[:1] == b"{":
        return records.read_records(stream, name, options, is_lines=True)
    return records.read_lists(stream, name)


def _write_json(stream: BinaryIO, saved: Saved, *, is_lines: bool) -> None:
    if saved.names is not None:
        records.write_records(stream, saved.values, saved.names, saved.table, is_lines=is_lines)
    else:
        records.write_lists(stream, saved.values if is_lines else [saved.values])


FORMATS: Mapping[str, FileFormat] = {
    ".npy": FileFormat(
        read=lambda stream, name, key, options: (npy.read_npy(stream, name), None),
        write=lambda stream, saved: npy.write_npy(stream, saved.values),
        refuses=_refuse_bfloat16,
        limits="no bfloat16",
        start=npy.start_npy,
    ),
    ".npz": FileFormat(
        read=lambda stream, name, key, options: (npz.read_npz(stream, name, key), None),
        write=lambda stream, saved: npz.write_npz(stream, {saved.key: saved.values}),
        refuses=_refuse_bfloat16,
        limits="no bfloat16",
        has_keys=True,
    ),
    ".json": FileFormat(
        _read_json,
        partial(_write_json, is_lines=False),
        _refuse_lost_lengths,
        "no empty axis but the last",
        has_keys=True,
        is_text=True,
        keeps_others=True,
    ),
    ".jsonl": FileFormat(
        _read_json_lines,
        partial(_write_json, is_lines=True),
        _refuse_lines,
        "an item of the first axis a line",
        is_text=True,
        keeps_others=True,
    ),
    ".csv": _make_delimited(","),
    ".tsv": _make_delimited("\t"),
    ".safetensors": FileFormat(
        read=lambda stream, name, key, options: (safetensors.read_safetensors(stream, name, key), None),
        write=lambda stream, saved: safetensors.write_named(stream, {saved.key: saved.values}, None),
        has_keys=True,
        start=partial(safetensors.start_safetensors, key=nested.TENSOR_KEY),
    ),
    ".parquet": FileFormat(
        read=lambda stream, name, key, options: parquet.read_parquet(stream, name, options),
        write=lambda stream, saved: write_parquet(stream, saved.values, saved.names, saved.table),
        refuses=_refuse_all_but_columns,
        limits="columns, of which none is empty, and no bfloat16",
        keeps_others=True,
    ),
}
"""Suffix → format. To add a format, add a module that reads and writes it, and an entry here."""


_FROM_TORCH = (
    "import torch; from safetensors.torch import save_file; x = torch.load('{path}', map_location='cpu')"
)


_FROM_NUMPY = (
    "import pathlib, pickle; from safetensors.numpy import save_file; "
    "x = pickle.loads(pathlib.Path('{path}').read_bytes())"
)


_PICKLES = {
    **dict.fromkeys((".pt", ".pth", ".ckpt"), _FROM_TORCH),
    **dict.fromkeys((".pkl", ".pickle"), _FROM_NUMPY),
}
"""The suffix of a pickle → the Python code that loads such a file."""


_PACKED = {".gz": "gzip -dc", ".bz2": "bzip2 -dc", ".xz": "xz -dc", ".zst": "zstd -dc"}
"""The suffix of a packed file → the program that writes what is in it to standard output."""


def require_holdable(suffix: str, where: str, shape: tuple[int, ...], dtype: np.dtype[Any]) -> None:
    """Raise `UsageError` if a file of a format cannot hold an array of a shape and dtype.

    Parameters
    ----------
    suffix : str
        The suffix of the format.
    where : str
        The option that names the file, and the file's name, for the message.
    shape, dtype
        The array's shape and dtype.
    """
    problem = FORMATS[suffix].refuses(shape, dtype)
    if problem is not None:
        others = ", ".join(other for other, form in FORMATS.items() if form.refuses(shape, dtype) is None)
        raise UsageError(f"{where}: {problem}; {others} hold it")


def find_format(path: str, option: str) -> FileFormat:
    """Return the format that a path's suffix stands for.

    Raises
    ------
    UsageError
        If the suffix is that of a pickle or of a packed file, or unknown; the message begins with `option` and
        the path.
    """
    suffix = Path(path).suffix.lower()
    if suffix in _PICKLES:
        load = f"{_PICKLES[suffix].format(path=path)}; x = x if isinstance(x, dict) else {{'x': x}}"
        save = f"save_file(x, '{Path(path).with_suffix('.safetensors')}')"
        function = "torch.load" if _PICKLES[suffix] is _FROM_TORCH else "pickle.loads"
        part = f"where the tensors are a part of it, choose that: x = {function}(…)['state_dict']"
        raise UsageError(
            f"{option} {path} is a pickle, which may run anything when it is read; if you trust it: "
            f'python -c "{load}; {save}"; {part}'
        )
    if suffix not in FORMATS:
        if suffix in _PACKED:
            import shlex  # on use: a small calculation imports this file

            unpack = f"{_PACKED[suffix]} {shlex.quote(path)}"
            raise UsageError(f"{option} {path} is packed; normcli reads it unpacked: {unpack} | normcli … -")
        what = f"the suffix {suffix}" if suffix else "no suffix"
        raise UsageError(f"{option} {path} has {what}; {', '.join(FORMATS)} are known")
    return FORMATS[suffix]


def recognize_format(head: bytes, name: str) -> str:
    """Return the suffix of the format, such as `.npy`, that a file's first bytes look like.

    Bytes of no other format are text: `.json` or `.jsonl` if a bracket or brace comes first, `.tsv` with a tab
    in the first line, else `.csv`, even if there are none.

    Parameters
    ----------
    head : bytes
    name : str
        The file's name in messages; its suffix is not looked at.

    Raises
    ------
    DataError
        If there is a NUL byte, and the bytes begin like no known format.
    """
    if head.startswith(npy.MAGIC):
        return ".npy"
    if head.startswith(npz.MAGICS):
        return ".npz"
    if safetensors.starts_like_safetensors(head):
        return ".safetensors"
    if head.startswith(parquet.MAGIC):
        return ".parquet"
    text = head.removeprefix(_BYTE_ORDER_MARK).lstrip()
    if text[:1] in (b"[", b"{"):
        return ".jsonl" if records.starts_like_lines(text) else ".json"
    if b"\x00" in head:
        raise DataError(f"{name} is none of {', '.join(FORMATS)}, by its first bytes")
    return ".tsv" if b"\t" in text.split(b"\n", 1)[0] else ".csv"
