"""Numbers and the cells beside them, row by row; written as CSV and its relatives."""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING, Any, BinaryIO

import numpy as np

from normcli.tensors.held_files import refuse_changed
from normcli.tensors.pieces import expect, forget
from normcli.tensors.tables.arrow import find_formatter, map_ahead
from normcli.tensors.tables.delimited import quote
from normcli.tensors.tables.numerals import is_missing

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

    from normcli.tensors.tables.tables import FileTable


_NAN_TEXTS = ("nan", '"nan"')
"""NaN as delimited files and JSON have it."""

_VALUES_AT_ONCE = 1 << 15
"""Numbers written at a time: their text is in memory."""

_ROWS_AT_ONCE = 1024
"""Rows written at a time where they are put together from several sources."""


def place_numbers(
    numbers: Iterator[list[str]], table: FileTable, delimiter: str | None, *, keeps_missing: bool
) -> Iterator[list[str]]:
    """Yield the texts of each row's cells: those of a tensor, in their places among what passes through.

    Parameters
    ----------
    numbers : iterator
        The texts of each row's numbers, or where these stand together (`FileTable.span`), and nothing is
        missing, one text of them all.
    table : FileTable
        Where the numbers came from.
    delimiter : str or None
        As of `Rows.read_cells`.
    keeps_missing : bool
        Whether missing values stay as they stood where the number is NaN.

    Raises
    ------
    DataError
        If the table's file has changed since its numbers were read.
    """
    others = table.rows.read_cells(delimiter) if table.has_others or keeps_missing else None
    width, span = table.rows.width, None if keeps_missing else table.span
    becomes_json = delimiter is None and table.delimiter is not None
    for texts in numbers:
        cells = [""] * width if others is None else next(others, None)
        if cells is None:  # fewer rows than were read before
            refuse_changed(table.rows.name)
        if span is not None:
            cells[span] = texts
        else:
            for place, text in zip(table.chosen, texts, strict=True):
                if not (keeps_missing and text in _NAN_TEXTS and is_missing(cells[place])):
                    cells[place] = text
                elif becomes_json:
                    cells[place] = "null"
        yield cells
    if others is not None and table.opened is not None:
        table.opened.require_unchanged()


def write_rows(stream: BinaryIO, rows: Iterator[str], between: str) -> None:
    """Write the texts of rows, and a text between each two of them, many at a time."""
    separator = ""
    while block := list(islice(rows, _ROWS_AT_ONCE)):
        stream.write((separator + between.join(block)).encode())
        separator = between


def holds_nan(values: NDArray[Any]) -> bool:
    """Whether a tensor of two axes holds a NaN."""
    return values.dtype.kind not in "iub" and any(np.isnan(rows).any() for rows in iterate_row_blocks(values))


def iterate_row_blocks(values: NDArray[Any]) -> Iterator[NDArray[Any]]:
    """Yield the rows of a tensor, some at a time."""
    count = max(1, _VALUES_AT_ONCE // max(1, values.shape[1]))
    for start in range(0, len(values), count):
        yield values[start : start + count]
        forget(values)


def write_delimited(
    stream: BinaryIO, values: NDArray[Any], names: Sequence[str] | None, table: FileTable | None, delimiter: str
) -> None:
    """Write a tensor of two axes, with the names of its columns if it has any.

    Parameters
    ----------
    stream : BinaryIO
    values : ndarray
        Shape (rows, columns).
    names : sequence of str or None
        Of the values' columns.
    table : FileTable or None
        Where the values came from: they are written in their places among its other columns, as it is
        delimited itself.
    delimiter : str
        Otherwise.
    """
    decimal = "."
    if table is not None:
        names = table.rows.names
        if table.delimiter is not None and "\t" not in (delimiter, table.delimiter):
            delimiter, decimal = table.delimiter, table.decimal

    if names is not None:
        stream.write(f"{delimiter.join(quote(name, delimiter) for name in names)}\n".encode())
    between = delimiter if decimal != delimiter else f'"{delimiter}"'  # numbers are then in quotes
    blocks = _format_blocks(values, between, decimal)
    keeps_missing = table is not None and holds_nan(values)
    if table is None or (table.is_whole and not keeps_missing and decimal != delimiter):
        stream.writelines(text.encode() for text in blocks)
        return
    lines = (line for text in blocks for line in text.removesuffix("\n").split("\n"))
    if decimal == delimiter:
        numbers: Iterator[list[str]] = ([f'"{cell}"' for cell in line.split(between)] for line in lines)
    elif table.span is not None and not keeps_missing:
        numbers = ([line] for line in lines)
    else:
        numbers = (line.split(delimiter) for line in lines)
    rows = map(delimiter.join, place_numbers(numbers, table, delimiter, keeps_missing=keeps_missing))
    write_rows(stream, rows, "\n")
    stream.write(b"\n")


def _format_blocks(values: NDArray[Any], delimiter: str, decimal: str) -> Iterator[str]:
    """Yield the lines of a tensor of two axes, some at a time."""

    def format_block(rows: NDArray[Any]) -> str:
        return "".join(f"{line}\n" for line in _format_rows(rows, delimiter, decimal))

    format_quickly = find_formatter(values, delimiter, format_block) if decimal == "." else None
    texts: Iterator[tuple[NDArray[Any], str]] = (
        (rows, format_block(rows)) for rows in iterate_row_blocks(values)
    )
    if format_quickly is not None:
        texts = map_ahead(format_quickly, iterate_row_blocks(values))
    advance = expect(values.nbytes)
    for rows, text in texts:
        advance(rows.nbytes)
        yield text


def _format_rows(rows: NDArray[Any], delimiter: str, decimal: str) -> list[str]:
    """Return the numbers of each row, in full precision, with a delimiter between them; booleans as 0 and 1.

    They are formatted all at once, in a list's own text, which is faster than one by one.
    """
    numbers = rows.astype(np.uint8) if rows.dtype == np.bool_ else rows
    text = repr(numbers.tolist())[2:-2].replace(".", decimal)
    return [line.replace(", ", delimiter) for line in text.split("], [")]


def to_cell(value: float | bool) -> str:
    """Return a number as CSV and `--print` have it: in full precision, booleans as 0 and 1."""
    return repr(int(value)) if isinstance(value, bool) else repr(value)
