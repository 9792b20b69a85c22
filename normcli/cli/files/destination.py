"""Destinations of documents, tensors and arrays: files, Zarr stores and standard output."""

from __future__ import annotations

import contextlib
import io
import os
import sys
from typing import TYPE_CHECKING, Any, BinaryIO, Protocol, cast

import click

from normcli.errors import ExitCode, UsageError
from normcli.printable import TerminalBytes
from normcli.tensors.tensor import STANDARD_STREAM, STREAMED, find_place
from normcli.tuples import NamedTuple
from normcli.writers import PICTURES, write, write_picture

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    import numpy as np
    from numpy.typing import NDArray

    from normcli.cli.parameters.settings import AnswerOptions
    from normcli.documents.document import Document, Drawable, View
    from normcli.library.judgement import Judgement
    from normcli.tensors.formats.file_formats import FileFormat, Saved
    from normcli.tensors.tables.tables import FileTable
    from normcli.tensors.tensor import Place, Tensor
    from normcli.tensors.written_whole import Draft


class HasFields(Protocol):
    """An answer of which one field, such as `mean`, can be read as an array."""

    def field(self, name: str) -> NDArray[Any]:
        """Return a field, or raise `UsageError` if there is none of that name."""


STORE = "zarr"
"""The format name of a Zarr store, which is a folder."""

ARCHIVES = (".npz", ".safetensors")
"""The suffixes of files that hold several arrays in binary, each under its name."""

STATISTICS_SUFFIXES = (".json", ".npz")
"""The suffixes of files that statistics are saved in, each under its name."""


class WholeFiles(contextlib.ExitStack):
    """A context manager for files that are renamed to their targets when its block ends without an error.

    They are renamed one right after the other; after an error they are removed. A process that is killed
    between two renames leaves some files new and some old, each of them whole.
    """

    def __init__(self) -> None:
        super().__init__()
        self._drafts: list[Draft] = []
        self.push(self._end)

    def open(self, path: str, least: int = 0, *, seeks: bool = False) -> BinaryIO:
        """Return a new file, renamed to `path` when this block ends; `DataError` without `least` bytes free."""
        from normcli.tensors.written_whole import open_whole

        return self.enter_context(open_whole(path, least, seeks=seeks, later=self._drafts))

    def _end(self, kind: type[BaseException] | None, *_: object) -> None:
        with contextlib.ExitStack() as at_end:
            for draft in self._drafts:
                at_end.push(draft.at_end)
            for draft in self._drafts if kind is None else ():
                draft.place()


class Destination(NamedTuple):
    """A file, a Zarr store or standard output, to which a result is written.

    Parameters
    ----------
    path : str or None
        None for a document on standard output; `-` for a tensor on standard output.
    format_name : str
        The format of a document, a picture or a tensor; "" for a tensor on standard output without `--format`
        (see `name_format`).
    option : str
        The option that named the path.
    overwrite : bool
        Whether an existing store is replaced.
    """

    path: str | None
    format_name: str = ""
    option: str = "--output"
    overwrite: bool = False

    def write(self, document: Document, view: View) -> None:
        """Write a document. A file is written whole or not at all, without colours and without a width limit.

        Raises
        ------
        DataError
            If a file cannot be written.
        """
        if self.path is None and (self.format_name == "table" or not sys.stdout.isatty()):
            write(document, self.format_name, sys.stdout, view)
            return
        if self.path is None:
            lines = io.TextIOWrapper(_escape_for_terminal(), encoding="utf-8", newline="", write_through=True)
            write(document, self.format_name, lines, view)
            return
        from normcli.tensors.written_whole import open_whole

        with open_whole(self.path) as file:
            if self.format_name in PICTURES:
                write_picture(cast("Drawable", document), self.format_name, file)
                return
            text = io.TextIOWrapper(file, encoding="utf-8", newline="")
            write(document, self.format_name, text, view._replace(width=None, colour=False))
            text.flush()
            text.detach()

    def name_format(self, table: FileTable | None) -> str:
        """Return the format of a tensor: `format_name`, or if it is "", the format of `table`, or `npy`.

        Raises
        ------
        UsageError
            If `format_name` is "", the format is binary and standard output is a terminal.
        """
        if self.format_name:
            return self.format_name
        format_name = STREAMED[0] if table is None else table.format_name
        refuse_bytes(format_name)
        return format_name

    def _find_format(
        self, shape: tuple[int, ...], dtype: np.dtype[Any], table: FileTable | None = None
    ) -> FileFormat:
        """Return the format of a tensor's file.

        Raises
        ------
        UsageError
            If a tensor of this shape and dtype could not be read back from the format.
        """
        from normcli.tensors.formats.file_formats import FORMATS, require_holdable

        suffix = f".{self.name_format(table)}"
        chosen = f" --format {self.format_name}" if self.path == STANDARD_STREAM else ""
        require_holdable(suffix, f"{self.option} {self.path}{chosen}", shape, dtype)
        return FORMATS[suffix]

    def start_tensor(self, files: WholeFiles, tensor: Tensor, dtype: np.dtype[Any]) -> NDArray[Any] | None:
        """Create the output file, and return its memory-mapped array for a calculation to fill, or None.

        None is returned for an input that is not memory-mapped, on Windows, for stores, and for formats in
        which a value's offset depends on the values before it; `write_tensor` then has to write the tensor. On
        standard output, the values appear when `files` closes.

        Parameters
        ----------
        files : WholeFiles
            The files of the caller's `with` block, to which the output file is added.
        tensor : Tensor
            The input, which has the output's shape.
        dtype : dtype
            The dtype of the output.

        Raises
        ------
        UsageError
            If the tensor could not be read back from the format; or binary data would go to a terminal.
        """
        import numpy as np

        from normcli.tensors.held_files import REPLACES_MAPPED
        from normcli.tensors.spool import open_outgoing

        if self.format_name == STORE:
            from normcli.tensors.formats.stores import require_storable

            require_storable(dtype)
            return None
        values = tensor.values
        start = self._find_format(values.shape, dtype, tensor.table).start
        if start is None or not isinstance(values, np.memmap) or not REPLACES_MAPPED:
            return None
        path = str(self.path)
        if path == STANDARD_STREAM:
            stream = files.enter_context(open_outgoing(sys.stdout.buffer))
        else:
            stream = files.open(path, seeks=True)
        return start(stream, values.shape, dtype)

    def write_tensor(self, files: WholeFiles, saved: Saved) -> None:
        """Write a tensor; the file or store is placed at its path when `files` closes without an error.

        Raises
        ------
        UsageError
            If the tensor could not be read back from the format, or the format is binary and standard output,
            to which it would go, is a terminal.
        """
        from normcli.tensors.written_whole import open_folder

        if self.format_name == STORE:
            from normcli.tensors.formats.stores import write_store

            place = cast("Place", find_place(str(self.path)))
            folder = files.enter_context(open_folder(place.path, replaces=self.overwrite))
            write_store(folder, place.key, saved.values, saved.model)
            return
        file_format = self._find_format(saved.values.shape, saved.values.dtype, saved.table)
        if self.path == STANDARD_STREAM:
            shown = sys.stdout.isatty()
            file_format.write(_escape_for_terminal() if shown else sys.stdout.buffer, saved)
            sys.stdout.flush()
            return
        least = file_format.measure_least(saved.values)
        file_format.write(files.open(str(self.path), least), saved)

    def measure(self) -> int | None:
        """Return the size of the written file or store in bytes; None if there is no such regular file."""
        from pathlib import Path  # slow to import, and answers on a terminal need none

        path = Path(str(self.path))
        if self.format_name != STORE:
            return path.stat().st_size if path.is_file() else None
        place = cast("Place", find_place(str(self.path)))
        return sum(file.stat().st_size for file in Path(place.path).rglob("*") if file.is_file())

    def write_arrays(
        self,
        files: WholeFiles,
        arrays: Mapping[str, NDArray[Any]],
        columns: tuple[str, ...] | None = None,
    ) -> None:
        """Write arrays under their names, as nested lists in `.json`, as arrays in `.npz` or `.safetensors`.

        Parameters
        ----------
        files : WholeFiles
        arrays : mapping of str to ndarray
        columns : tuple of str or None
            A name for each index of the arrays' last axis: the member `columns` of `.json` and `.npz`.

        Raises
        ------
        UsageError
            If an array could not be read back from the format.
        """
        import numpy as np

        from normcli.tensors.formats.json_lists import NestedLists
        from normcli.tensors.formats.npz import write_npz
        from normcli.writers.structured import format_json

        if self.format_name != "json":
            for array in arrays.values():
                self._find_format(array.shape, array.dtype)
        stream = files.open(str(self.path))
        if self.format_name == "npz":
            named = {} if columns is None else {"columns": np.array(columns, dtype=np.str_)}
            write_npz(stream, named | dict(arrays))
            return
        if self.format_name == "safetensors":
            from normcli.tensors.formats.safetensors import write_named

            write_named(stream, arrays)
            return
        members: dict[str, Any] = {} if columns is None else {"columns": columns}
        members |= {name: NestedLists(array) for name, array in arrays.items()}
        stream.writelines(piece.encode() for piece in format_json(members))
        stream.write(b"\n")


def _escape_for_terminal() -> BinaryIO:
    return cast("BinaryIO", TerminalBytes(sys.stdout))


def describe_written(destination: Destination, tensor: Tensor) -> Iterator[str]:
    """Yield notes on a written file: it replaced the input, lacks columns, or its header looks like data."""
    from normcli.tensors.formats.file_formats import FORMATS
    from normcli.tensors.held_files import Opened
    from normcli.tensors.tables.column_choice import name_column
    from normcli.tensors.tables.delimited import reads_as_header

    opened = tensor.opened
    if isinstance(opened, Opened) and opened.place == os.path.abspath(str(destination.path)):  # noqa: PTH100
        yield "the result has taken the place of the input"
    table = tensor.table
    names = tensor.columns if table is None else table.rows.names
    format_name = destination.name_format(table)
    if format_name in ("csv", "tsv") and names is not None and not reads_as_header(names):
        yield "the names of its columns look like data: --header yes reads what is written"
    if table is None or not table.has_others or FORMATS[f".{format_name}"].keeps_others:
        return
    others = (name_column(table.rows, place) for place in range(table.rows.width) if place not in table.chosen)
    yield f"{format_name} holds numbers alone, without the columns {', '.join(others)}"


def print_document(document: Document, answer: AnswerOptions) -> None:
    """Write a document to standard output."""
    Destination(None, answer.format_name or "table").write(document, answer.view())


def print_verdict(told: Judgement[Any], answer: AnswerOptions) -> None:
    """Print a judgement; if its `ok` is False, raise click's `Exit` with `ExitCode.DIFFERENT`."""
    print_document(told.document, answer)
    leave_with_verdict(ok=told.ok)


def leave_with_verdict(*, ok: bool) -> None:
    """Unless `ok` is True, raise click's `Exit` with `ExitCode.DIFFERENT`, the code of every bad verdict."""
    if not ok:
        sys.stdout.flush()
        raise click.exceptions.Exit(ExitCode.DIFFERENT)


def collect_fields(answer: HasFields, names: Sequence[str]) -> list[NDArray[Any]]:
    """Return the fields of an answer that `--print` names, in that order; an empty list if it names none.

    Raises
    ------
    UsageError
        If there is no such field, or the fields have different numbers of values.
    """
    fields = [answer.field(name) for name in names]
    if len({values.size for values in fields}) > 1:
        sizes = ", ".join(f"{name} {values.size:,}" for name, values in zip(names, fields, strict=True))
        raise UsageError(f"--print {','.join(names)}: columns of different lengths ({sizes}); print them apart")
    return fields


def refuse_bytes(format_name: str) -> None:
    """Raise `UsageError` if a format is binary and standard output is a terminal."""
    from normcli.tensors.formats.file_formats import FORMATS

    if not FORMATS[f".{format_name}"].is_text and sys.stdout.isatty():
        texts = ", ".join(name for name in STREAMED if FORMATS[f".{name}"].is_text)
        raise UsageError(f"-o - would write {format_name}, which no terminal shows; --format {texts} are text")
