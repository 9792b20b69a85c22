"""Rows of text on their way into a file: numbers in their places among what passes through."""

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
