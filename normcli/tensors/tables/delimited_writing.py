"""Numbers and the cells beside them, row by row; written as CSV and its relatives."""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING, Any, BinaryIO

import numpy as np

from normcli.tensors.held_files import refuse_changed
from normcli.tensors.pieces import expect, forget
from normcli.tensors.tables.arrow import find_formatter, map_ahead
from normcli.tensors.tables.line_records import quote
from normcli.tensors.tables.numerals import is_missing

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

    from normcli.tensors.tables.tables import FileTable


_NAN_TEXTS = ("nan", '"nan"')
"""The texts of NaN in delimited files and in JSON."""

_VALUES_AT_ONCE = 1 << 15
"""The number of values written at a time, whose text is in memory."""

_ROWS_AT_ONCE = 1024
"""The number of rows written at a time where they are assembled from several sources."""


def place_numbers(
    numbers: Iterator[list[str]], table: FileTable, delimiter: str | None, *, keeps_missing: bool
) -> Iterator[list[str]]:
    """Yield the texts of each row's cells: numbers in the tensor's columns, the table's cells in the others.

    Parameters
    ----------
    numbers : iterator
        For each row the list of its numbers' texts; if the tensor's columns are adjacent (`FileTable.span`) and
        `keeps_missing` is False, a list of one text that joins all of them.
    table : FileTable
        The table that the numbers came from.
    delimiter : str or None
        The delimiter of the file that is written; None for JSON.
    keeps_missing : bool
        Whether NaN is replaced by the cell's old text (null in JSON) where that stood for a missing value.

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
    """Write the texts of rows with a separator between them."""
    separator = ""
    while block := list(islice(rows, _ROWS_AT_ONCE)):
        stream.write((separator + between.join(block)).encode())
        separator = between


def holds_nan(values: NDArray[Any]) -> bool:
    """Whether a tensor of two axes holds a NaN."""
    return values.dtype.kind not in "iub" and any(np.isnan(rows).any() for rows in iterate_row_blocks(values))


def iterate_row_blocks(values: NDArray[Any]) -> Iterator[NDArray[Any]]:
    """Yield blocks of consecutive rows of a tensor of two axes."""
    count = max(1, _VALUES_AT_ONCE // max(1, values.shape[1]))
    for start in range(0, len(values), count):
        yield values[start : start + count]
        forget(values)


def write_delimited(
    stream: BinaryIO, values: NDArray[Any], names: Sequence[str] | None, table: FileTable | None, delimiter: str
) -> None:
    """Write a tensor of two axes, with a header if its columns have names.

    Parameters
    ----------
    stream : BinaryIO
    values : ndarray
        Shape (rows, columns).
    names : sequence of str or None
        The names of the values' columns; not used with a table.
    table : FileTable or None
        The table that the values came from: its other columns are written too, in the file's order, and its
        names are the header. Its delimiter and decimal point are used, unless it is no delimited text, or
        either delimiter is a tab.
    delimiter : str
        The delimiter in all other cases.

    Raises
    ------
    DataError
        If the table's file has changed since its numbers were read.
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
    """Yield the text of one block of rows after another, with a line for each row."""

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
    """Return the text of each row: its numbers in full precision, delimiters between; booleans as 0 and 1.

    All rows are formatted at once, as the text of a nested list, which is faster than one by one.
    """
    numbers = rows.astype(np.uint8) if rows.dtype == np.bool_ else rows
    text = repr(numbers.tolist())[2:-2].replace(".", decimal)
    return [line.replace(", ", delimiter) for line in text.split("], [")]


def to_cell(value: float | bool) -> str:
    """Return the text of a number in CSV and for `--print`: in full precision, booleans as 0 and 1."""
    return repr(int(value)) if isinstance(value, bool) else repr(value)
