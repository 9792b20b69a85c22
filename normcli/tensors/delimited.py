"""CSV and TSV: a table of numbers, or for tensors of more than two axes one line a value."""

from __future__ import annotations

import csv
import io
import math
import warnings
from itertools import islice
from typing import TYPE_CHECKING, Any, BinaryIO, TextIO

import numpy as np

from normcli.errors import DataError
from normcli.printable import shorten
from normcli.tensors.pieces import decode, forget

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from numpy.typing import NDArray

    Column = Callable[[tuple[NDArray[np.intp], ...]], NDArray[Any]]

_ROWS_AT_ONCE = 8192

_MISSING = frozenset(("", "NA", "N/A"))
"""Cells of missing values, which are read as NaN."""


def read_delimited(stream: BinaryIO, name: str, delimiter: str) -> tuple[NDArray[Any], tuple[str, ...] | None]:
    """Read a table of numbers, shape (rows, columns), and the names of its columns if it has a header row.

    A first row in which no cell is a number is the header. An empty cell, or `NA`, is NaN.

    Raises
    ------
    DataError
        If the table is empty or ragged, or a cell is not a number; the message says where.
    """
    text = decode(stream.read(), name, "text table")
    columns, header_lines = _find_header(text, name, delimiter)
    values = _parse_quickly(text, delimiter, header_lines)
    if values is None or not values.size or (columns is not None and values.shape[1] != len(columns)):
        values = _parse_slowly(text, name, delimiter, columns)
    return values, columns


def write_rows(stream: TextIO, rows: Iterable[Iterable[Any]], delimiter: str) -> None:
    """Write rows of cells, a line each."""
    csv.writer(stream, delimiter=delimiter, lineterminator="\n").writerows(rows)


def iterate_table(values: NDArray[Any], columns: Sequence[str] | None) -> Iterator[Iterable[str]]:
    """Yield the names of the columns, if there are any, and the rows of a tensor of at most two axes.

    A tensor of fewer axes has one value a row.
    """
    if columns is not None:
        yield columns
    rows = values.reshape(-1, 1) if values.ndim < 2 else values
    for start in range(0, len(rows), _ROWS_AT_ONCE):
        yield from (map(to_cell, row) for row in rows[start : start + _ROWS_AT_ONCE].tolist())
        forget(rows)


def pick_from(values: NDArray[Any]) -> Column:
    """Return a column of an array's values."""

    def pick(index: tuple[NDArray[np.intp], ...]) -> NDArray[Any]:
        picked: NDArray[Any] = np.asarray(values[index]).reshape(-1)
        forget(values)
        return picked

    return pick


def iterate_long(
    axis_names: Sequence[str], shape: tuple[int, ...], columns: Mapping[str, Column]
) -> Iterator[list[Any]]:
    """Yield a header, then one row a value: its index along each axis, then each column's value there.

    Parameters
    ----------
    axis_names : sequence of str
        One for each axis of the shape.
    shape : tuple of int
    columns : mapping of str to callable
        Each returns the values at some indices, given as one array an axis.
    """
    yield [*axis_names, *columns]
    size = math.prod(shape)
    for start in range(0, size, _ROWS_AT_ONCE):
        index = np.unravel_index(np.arange(start, min(size, start + _ROWS_AT_ONCE)), shape) if shape else ()
        cells = [map(to_cell, pick(index).reshape(-1).tolist()) for pick in columns.values()]
        yield from map(list, zip(*(i.tolist() for i in index), *cells, strict=True))


def to_cell(value: float | bool) -> str:
    """Return a number as CSV and `--print` have it: in full precision, booleans as 0 and 1."""
    return repr(int(value)) if isinstance(value, bool) else repr(value)


def _split(text: str, delimiter: str) -> Iterator[tuple[int, list[str]]]:
    """Yield the rows that are not blank, each with the number of its last line."""
    reader = csv.reader(io.StringIO(text), delimiter=delimiter)
    for row in reader:
        if row and any(cell.strip() for cell in row):
            yield reader.line_num, row


def _find_header(text: str, name: str, delimiter: str) -> tuple[tuple[str, ...] | None, int]:
    """Return the header's cells and the lines it takes: None and 0 where the first row is numbers."""
    try:
        line, first = next(_split(text, delimiter), (0, []))
    except csv.Error as error:
        raise DataError(f"{name} is no text table: its first row cannot be read") from error
    if not first:
        raise DataError(f"{name} is empty; rows of numbers are expected")
    numbers = [_to_number(cell) for cell in first]
    words = [cell for cell, number in zip(first, numbers, strict=True) if number is None]
    if not words:
        return None, 0
    if any(number is not None and not math.isnan(number) for number in numbers):
        raise DataError(
            f"{name}, line {line}: {shorten(words[0])!r} is not a number; a header row has no numbers"
        )
    return tuple(cell.strip() for cell in first), line


def _parse_quickly(text: str, delimiter: str, skiprows: int) -> NDArray[Any] | None:
    """Return the numbers of a table, or None where a cell is empty or anything is wrong."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # "no data": the caller looks at the size
            return np.loadtxt(
                io.StringIO(text),
                delimiter=delimiter,
                skiprows=skiprows,
                ndmin=2,
                comments=None,
                quotechar='"',
            )
    except ValueError:
        return None


def _parse_slowly(text: str, name: str, delimiter: str, columns: tuple[str, ...] | None) -> NDArray[Any]:
    """Return the numbers of a table with empty cells, or say where it is malformed."""
    rows: list[list[float]] = []
    width = len(columns or ())
    try:
        for line, row in islice(_split(text, delimiter), 0 if columns is None else 1, None):
            width = width or len(row)
            if len(row) != width:
                raise DataError(f"{name} is ragged: line {line} has {len(row)} cells, the first row {width}")
            rows.append([_require_number(cell, name, line, i + 1) for i, cell in enumerate(row)])
    except csv.Error as error:
        raise DataError(f"{name} is no text table: {len(rows)} rows were read, the next cannot be") from error
    if not rows:
        raise DataError(f"{name} has a header and no rows of numbers")
    return np.array(rows, dtype=np.float64)


def _require_number(cell: str, name: str, line: int, column: int) -> float:
    number = _to_number(cell)
    if number is None:
        raise DataError(f"{name}, line {line}, column {column}: {shorten(cell)!r} is not a number")
    return number


def _to_number(cell: str) -> float | None:
    if cell.strip() in _MISSING:
        return math.nan
    if "_" in cell:  # Python would read 1_000 as a number
        return None
    try:
        return float(cell)
    except ValueError:
        return None
