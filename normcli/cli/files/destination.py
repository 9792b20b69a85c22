"""Where outputs go: a file or folder is asked once, before any work, whether it may be written there."""

from __future__ import annotations

import contextlib
import io
import itertools
import os
import sys
from typing import TYPE_CHECKING, Any, BinaryIO, Protocol, cast

import click

from normcli.cli.parameters.settings import NOTES
from normcli.errors import ExitCode, UsageError
from normcli.language import translate
from normcli.printable import TerminalBytes, agree, make_printable
from normcli.tensors.formats.store_places import find_place
from normcli.tensors.tensor import STANDARD_STREAM, STREAMED
from normcli.tuples import NamedTuple
from normcli.writers import PAINTED, PICTURES, SUFFIXES, has_letters, write, write_picture

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping, Sequence

    import numpy as np
    from numpy.typing import NDArray

    from normcli.cli.parameters.settings import AnswerOptions
    from normcli.documents.document import Document, Drawable, View
    from normcli.tensors.files import FileFormat, Saved
    from normcli.tensors.formats.store_places import Place
    from normcli.tensors.tables.tables import Table
    from normcli.tensors.tensor import Tensor
    from normcli.tensors.written_whole import Draft


class HasFields(Protocol):
    """An answer of which single fields can be printed."""

    def field(self, name: str) -> NDArray[Any]:
        """Return a field, or raise `UsageError` if there is none of that name."""


STORE = "zarr"
"""The format of a store, which is a folder."""

ARCHIVES = (".npz", ".safetensors")
"""The files that hold arrays in binary, each under its name."""

STATISTICS_SUFFIXES = (".json", ".npz")
"""The files that several arrays are saved in, each under its name."""


class WholeFiles(contextlib.ExitStack):
    """Files that take their places one right behind the other, when all are written and the block ends well.

    A process that is killed in between leaves some new and some old, each of them whole.
    """

    def __init__(self) -> None:
        super().__init__()
        self._drafts: list[Draft] = []
        self.push(self._end)

    def open(self, path: str, least: int = 0, *, seeks: bool = False) -> BinaryIO:
        """Return a file as of `open_whole`, which is closed when the block ends."""
        from normcli.tensors.written_whole import open_whole

        return self.enter_context(open_whole(path, least, seeks=seeks, later=self._drafts))

    def _end(self, kind: type[BaseException] | None, *_: object) -> None:
        with contextlib.ExitStack() as at_end:
            for draft in self._drafts:
                at_end.push(draft.at_end)
            for draft in self._drafts if kind is None else ():
                draft.place()


class Destination(NamedTuple):
    """A file that may be written, or standard output.

    Parameters
    ----------
    path : str or None
        None is standard output, of text; `-` is standard output, of a tensor.
    format_name : str
        The format of text, of pictures, and of a tensor; empty for a tensor on standard output in the format
        of the table that it is made of.
    option : str
        The option that named the path.
    overwrite : bool
        Whether a store that is there is replaced.
    """

    path: str | None
    format_name: str = ""
    option: str = "--output"
    overwrite: bool = False

    def write(self, document: Document, view: View) -> None:
        """Write a document; a file is written whole or not at all, without colours and as wide as it needs.

        Raises
        ------
        DataError
            If writing fails.
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

    def name_format(self, table: Table | None) -> str:
        """Return the format that a tensor is written in, which may be columns of a table.

        Raises
        ------
        UsageError
            If its bytes would go to a terminal.
        """
        if self.format_name:
            return self.format_name
        format_name = STREAMED[0] if table is None else table.format_name
        _refuse_bytes(format_name)
        return format_name

    def _find_format(
        self, shape: tuple[int, ...], dtype: np.dtype[Any], table: Table | None = None
    ) -> FileFormat:
        """Return the format of a tensor's file, or raise `UsageError` if such a tensor is not read back."""
        from normcli.tensors.files import FORMATS, require_holdable

        suffix = f".{self.name_format(table)}"
        chosen = f" --format {self.format_name}" if self.path == STANDARD_STREAM else ""
        require_holdable(suffix, f"{self.option} {self.path}{chosen}", shape, dtype)
        return FORMATS[suffix]

    def start_tensor(self, files: WholeFiles, tensor: Tensor, dtype: np.dtype[Any]) -> NDArray[Any] | None:
        """Return the array of an output file, to be filled while the result is calculated, or None.

        None where the input is in memory, on Windows, and for formats in which a value's place depends on those
        before it.

        Parameters
        ----------
        files : WholeFiles
            When it closes without an error the file takes its place, otherwise it vanishes.
        tensor : Tensor
            The input, whose shape is the output's.
        dtype : dtype
            The output's.
        """
        import numpy as np

        from normcli.tensors.positions import REPLACES_MAPPED
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
        """Write a tensor; the file, or the store, takes its place when `files` closes."""
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
        """Return the size of what was written, in bytes; None of a pipe or a device, which keep nothing."""
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

        `columns` are the names of their last axis, if it has some: a member of that name.

        Raises
        ------
        UsageError
            If one would not be read back.
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
    """Yield what there is to know of a file that is written: what it replaces, lacks or would be read as."""
    from normcli.tensors.files import FORMATS
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


def leave_with_verdict(*, ok: bool) -> None:
    """Leave with the exit code of a difference unless all is well: the one code of every verdict."""
    if not ok:
        sys.stdout.flush()
        raise click.exceptions.Exit(ExitCode.DIFFERENT)


def collect_fields(answer: HasFields, names: Sequence[str]) -> list[NDArray[Any]]:
    """Return the fields of an answer that `--print` names, as columns.

    Raises
    ------
    UsageError
        If there is no such field, or the fields are of different lengths.
    """
    fields = [answer.field(name) for name in names]
    if len({values.size for values in fields}) > 1:
        sizes = ", ".join(f"{name} {values.size:,}" for name, values in zip(names, fields, strict=True))
        raise UsageError(f"--print {','.join(names)}: columns of different lengths ({sizes}); print them apart")
    return fields


def choose_document_file(answer: AnswerOptions, formats: Collection[str]) -> Destination:
    """Return where a document goes, and in which format.

    Parameters
    ----------
    answer : AnswerOptions
    formats : collection of str
        Those that the document has.

    Raises
    ------
    UsageError
        If the file's name ends in no such format or in another than was asked for, or cannot be written.
    """
    output, format_name = answer.output, answer.format_name
    if output is None:
        return Destination(None, format_name or "table")
    named = SUFFIXES[require_file(output, [suffix for suffix, name in SUFFIXES.items() if name in formats])]
    if format_name not in (None, named):
        raise UsageError(f"--format {format_name} and --output {output} are two formats; give one")
    if named == PAINTED and not has_letters():
        _note_english(output)
    return Destination(output, named)


def _note_english(output: str) -> None:
    """Say, once the picture is drawn, that its words are English: no font here has other letters."""
    context = click.get_current_context(silent=True)
    if context is not None and not context.params.get("quiet"):
        reason = "no Chinese font is known here, so words in the PNG are English; in SVG, Chinese"
        text = make_printable(f"normcli: {output}: {translate(reason)}")
        context.meta.setdefault(NOTES, []).append(lambda: click.echo(text, err=True))


def choose_tensor_file(answer: AnswerOptions, shown: Sequence[str] = ()) -> Destination | None:
    """Return where a tensor goes; None where that is not asked for.

    A file's name says its format. On standard output (`-`) it is --format; by default that of a table that the
    tensor is columns of, otherwise .npy.

    Parameters
    ----------
    answer : AnswerOptions
    shown : sequence of str
        The suffixes of files that show a result instead, for the message.

    Raises
    ------
    UsageError
        If the file's name ends in no format of tensors, or cannot be written; if the format is none of them, or
        its bytes would go to a terminal.
    """
    if answer.output is not None and find_place(answer.output) is not None:
        return _choose_store(answer.output, overwrite=answer.overwrite)
    if answer.overwrite:
        raise UsageError("--overwrite is of stores: a file is replaced in any case")
    if answer.output != STANDARD_STREAM:
        return choose_values_file(answer.output, shown=shown)
    format_name = answer.format_name or ""
    if format_name:
        if format_name not in STREAMED:
            raise UsageError(f"-o - writes the tensor: --format {', '.join(STREAMED)}, not {format_name}")
        _refuse_bytes(format_name)
    return Destination(STANDARD_STREAM, format_name)


def _refuse_bytes(format_name: str) -> None:
    """Raise `UsageError` if a format that is no text would be written to a terminal."""
    from normcli.tensors.files import FORMATS

    if not FORMATS[f".{format_name}"].is_text and sys.stdout.isatty():
        texts = ", ".join(name for name in STREAMED if FORMATS[f".{name}"].is_text)
        raise UsageError(f"-o - would write {format_name}, which no terminal shows; --format {texts} are text")


def _choose_store(output: str, *, overwrite: bool) -> Destination:
    """Return the store that a tensor goes to, or raise `UsageError` if it cannot be written."""
    from normcli.tensors.written_whole import require_new_folder

    place = cast("Place", find_place(output))
    if not place.is_zarr or place.is_remote:
        kind = "a URL" if place.is_zarr else "HDF5"
        raise UsageError(f"--output {output}: {kind} is read, and not written; a .zarr folder is")
    if os.path.isdir(place.path) and os.listdir(place.path):  # noqa: PTH112, PTH208
        from normcli.tensors.formats.stores import list_others

        others = list_others(place)
        if others:
            raise UsageError(
                f"--output {output}: {', '.join(others)} of this store would be lost: name a new store"
            )
        if not overwrite:
            raise UsageError(f"--output {output}: there is a store already; --overwrite replaces it")
    require_new_folder(place.path, "--output", replaces=overwrite)
    return Destination(output, STORE, overwrite=overwrite)


def choose_values_file(
    output: str | None, option: str = "--output", suffixes: Sequence[str] = (), shown: Sequence[str] = ()
) -> Destination | None:
    """Return the file where a tensor, or arrays by name, are saved; None where that is not asked for.

    Parameters
    ----------
    output : str or None
        The file, as the caller named it.
    option : str
    suffixes : sequence of str
        The formats that will do; by default every one of tensors.
    shown : sequence of str
        Others that the option takes elsewhere, for the message.

    Raises
    ------
    UsageError
        If the file's name ends in none of them, or cannot be written.
    """
    if output is None:
        return None
    from normcli.tensors.files import FORMATS

    suffix = require_file(output, suffixes or tuple(FORMATS), option, shown)
    return Destination(output, suffix.removeprefix("."), option)


def choose_files_for(names: Sequence[str], answer: AnswerOptions) -> list[Destination]:
    """Return where the result of each of several files goes: in a folder, which is made, or in one file.

    Raises
    ------
    UsageError
        If several results would go to one file, or one cannot be written.
    """
    from pathlib import Path

    output = str(answer.output)
    paths = [output]
    if find_place(output) is None and (output.endswith(os.sep) or os.path.isdir(output)):  # noqa: PTH112
        paths = [str(Path(output, _name_result(name))) for name in names]
        for path, next_path in itertools.pairwise(sorted(paths)):
            if path == next_path:
                raise UsageError(f"two of the files would both be written to {path}")
        try:
            Path(output).mkdir(exist_ok=True)
        except OSError as error:
            raise UsageError(f"--output {output}: the folder cannot be made: {error.strerror}") from error
    elif len(names) > 1:
        folder = "FOLDER" if output == STANDARD_STREAM else output
        raise UsageError(f"--output {output}: {len(names)} results need a folder: -o {folder}{os.sep}")
    return [cast("Destination", choose_tensor_file(answer._replace(output=path))) for path in paths]


def require_file(
    path: str, suffixes: Sequence[str], option: str = "--output", shown: Sequence[str] = ()
) -> str:
    """Return the suffix of a file that may be written, or raise `UsageError`, naming the shown too."""
    from normcli.tensors.written_whole import require_writable

    require_writable(path, option)
    suffix = os.path.splitext(path)[1].lower()  # noqa: PTH122  # pathlib is slow to import
    if suffix not in suffixes:
        what = f"the suffix {suffix}" if suffix else "no suffix"
        listed = (*suffixes, *shown)
        known = f"{', '.join(listed)} {agree(len(listed), 'is', 'are')} known"
        raise UsageError(f"{option} {path} has {what}; {known}")
    return suffix


def _name_result(name: str) -> str:
    """Return the name of what is made of a file: its own, with the key before the suffix if there is one."""
    from pathlib import Path

    if os.path.exists(name) or ":" not in os.path.basename(name):  # noqa: PTH110, PTH119
        return Path(name).name
    path, key = name.rsplit(":", 1)
    return f"{Path(path).stem}-{key}.npy"
