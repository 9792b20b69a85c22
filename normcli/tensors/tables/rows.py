"""Rows of text to be written to a file: numbers in their places among a table's other cells."""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING, Any, BinaryIO

import numpy as np

from normcli.tensors.held_files import refuse_changed
from normcli.tensors.pieces import forget
from normcli.tensors.tables.numerals import is_missing

if TYPE_CHECKING:
    from collections.abc import Iterator

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
        `keeps_missing` is False, a list of one text for all of them.
    table : FileTable
        The table that the numbers came from.
    delimiter : str or None
        The delimiter of the file that is written; None for JSON.
    keeps_missing : bool
        Whether a cell that stood for a missing value keeps its text (null in JSON) where the number is NaN.

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
