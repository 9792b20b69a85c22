"""The destination that `--output` names; before any work, it is checked that it can be written."""

from __future__ import annotations

import itertools
import os
from typing import TYPE_CHECKING, cast

from normcli.cli.files.destination import STORE, Destination, refuse_bytes
from normcli.errors import DataError, UsageError
from normcli.printable import agree
from normcli.tensors.tensor import STANDARD_STREAM, STREAMED, find_place
from normcli.writers import PAINTED, SUFFIXES, has_letters

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from normcli.cli.parameters.settings import AnswerOptions, Settings
    from normcli.tensors.tensor import Place


def choose_document_file(settings: Settings, formats: Collection[str]) -> Destination:
    """Return the destination of a document, with its format; without `--output`, standard output.

    Parameters
    ----------
    settings : Settings
    formats : collection of str
        The formats that the document can be written in.

    Raises
    ------
    UsageError
        If the file's suffix is of none of these formats, or of another than `--format`, or the file cannot be
        written.
    """
    output, format_name = settings.answer.output, settings.answer.format_name
    if output is None:
        return Destination(None, format_name or "table")
    named = SUFFIXES[require_file(output, [suffix for suffix, name in SUFFIXES.items() if name in formats])]
    if format_name not in (None, named):
        raise UsageError(f"--format {format_name} and --output {output} are two formats; give one")
    if named == PAINTED and not has_letters():
        reason = "no Chinese font is known here, so words in the PNG are English; in SVG, Chinese"
        settings.run.note(output, reason)
    return Destination(output, named)


def choose_tensor_file(answer: AnswerOptions, shown: Sequence[str] = ()) -> Destination | None:
    """Return the destination of a tensor; None without `--output`.

    The suffix of a file is its format. On standard output (`-`) the format is `--format`. Without `--format`
    the destination's format is "", which stands for the format of the input table, or `.npy` without a table
    (see `Destination.name_format`).

    Parameters
    ----------
    answer : AnswerOptions
    shown : sequence of str
        The suffixes of files that show a result, such as `.svg`, which the error message lists too.

    Raises
    ------
    UsageError
        If the suffix or `--format` is of no format of tensors; if the file or store cannot be written; if
        binary data would go to a terminal.
    MissingExtraError
        If the output is a Zarr store that exists, and the library for it is missing.
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
        refuse_bytes(format_name)
    return Destination(STANDARD_STREAM, format_name)


def _choose_store(output: str, *, overwrite: bool) -> Destination:
    """Return the destination of a Zarr store.

    Raises
    ------
    UsageError
        If it is a URL or an HDF5 file, holds other arrays, exists without `--overwrite`, or cannot be written.
    MissingExtraError
        If the store exists, and the library for it is missing.
    """
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
    """Return the destination of a file for a tensor or for arrays by name; None if `output` is None.

    Parameters
    ----------
    output : str or None
        The file, as the caller named it.
    option : str
        The option that named the file, for messages.
    suffixes : sequence of str
        The suffixes that are allowed; by default those of all formats of tensors.
    shown : sequence of str
        Further suffixes that the error message lists: those of pages and pictures.

    Raises
    ------
    UsageError
        If the file's suffix is not allowed, or the file cannot be written.
    """
    if output is None:
        return None
    from normcli.tensors.formats.file_formats import FORMATS

    suffix = require_file(output, suffixes or tuple(FORMATS), option, shown)
    return Destination(output, suffix.removeprefix("."), option)


def choose_files_for(names: Sequence[str], answer: AnswerOptions) -> list[Destination]:
    """Return the destinations of the results of several input files, in the order of the inputs.

    If `--output` is a folder or ends with `/`, they are files in it, named after the inputs, and the folder is
    made; otherwise a single result goes to `--output` itself.

    Raises
    ------
    UsageError
        If several results would go to one file, or there is no folder for a file or for the folder.
    DataError
        If a file or the folder may not be written.
    """
    from pathlib import Path

    output = str(answer.output)
    paths = [output]
    if find_place(output) is None and (output.endswith(os.sep) or os.path.isdir(output)):  # noqa: PTH112
        paths = [str(Path(output, _name_result(name))) for name in names]
        for path, next_path in itertools.pairwise(sorted(paths)):
            if path == next_path:
                raise UsageError(f"two of the files would both be written to {path}")
        if not os.path.isdir(output):  # noqa: PTH112
            from normcli.tensors.written_whole import require_new_folder

            require_new_folder(output, "--output")
        try:
            Path(output).mkdir(exist_ok=True)
        except OSError as error:
            raise DataError(f"--output {output}: the folder cannot be made: {error.strerror}") from error
    elif len(names) > 1:
        folder = "FOLDER" if output == STANDARD_STREAM else output
        raise UsageError(f"--output {output}: {len(names)} results need a folder: -o {folder}{os.sep}")
    return [cast("Destination", choose_tensor_file(answer._replace(output=path))) for path in paths]


def require_file(
    path: str, suffixes: Sequence[str], option: str = "--output", shown: Sequence[str] = ()
) -> str:
    """Check that a file can be written, and return its suffix in lower case.

    Parameters
    ----------
    path : str
    suffixes : sequence of str
        The suffixes that are allowed.
    option : str
        The option that named the file, for messages.
    shown : sequence of str
        Further suffixes that the message lists as known.

    Raises
    ------
    UsageError
        If there is no folder for the file, or its suffix is not in `suffixes`.
    DataError
        If there is no permission to write the file.
    """
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
    """Return the name of the result of an input: `x.npy` for `in/x.npy`, `x-KEY.npy` for `in/x.npz:KEY`."""
    from pathlib import Path

    if os.path.exists(name) or ":" not in os.path.basename(name):  # noqa: PTH110, PTH119
        return Path(name).name
    path, key = name.rsplit(":", 1)
    return f"{Path(path).stem}-{key}.npy"
