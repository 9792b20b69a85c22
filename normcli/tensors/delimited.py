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
from normcli.tensors.pieces import forget

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from numpy.typing import NDArray

    Column = Callable[[tuple[NDArray[np.intp], ...]], NDArray[Any]]

_ROWS_AT_ONCE = 8192

_MISSING = frozenset(("", "NA", "N/A"))
"""Cells that stand for a value that is not there: NaN."""


def read_delimited(stream: BinaryIO, name: str, delimiter: str) -> tuple[NDArray[Any], tuple[str, ...] | None]:
    """Read a table of numbers, shape (rows, columns), and the names of its columns if it has a header row.

    A first row in which no cell is a number is the header. An empty cell, or `NA`, is NaN.

    Raises
    ------
    DataError
        If the table is empty or ragged, or a cell is not a number; the message says where.
    """
    try:
        text = stream.read().decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise DataError(f"{name} is no text table: byte {error.start} is not UTF-8") from error
    header = _find_header(text, name, delimiter)
    values = _parse_quickly(text, delimiter, 0 if header is None else header[1])
    if values is not None and values.size and (header is None or values.shape[1] == len(header[0])):
        return values, None if header is None else header[0]
    return _parse_slowly(text, name, delimiter, header is not None)


def write_table(stream: TextIO, values: NDArray[Any], columns: Sequence[str] | None, delimiter: str) -> None:
    """Write a tensor of at most two axes as it lies: a line a row, a 1-D tensor one value a line."""
    writer = csv.writer(stream, delimiter=delimiter, lineterminator="\n")
    if columns is not None:
        writer.writerow(columns)
    rows = values.reshape(-1, 1) if values.ndim < 2 else values
    for start in range(0, len(rows), _ROWS_AT_ONCE):
        writer.writerows(map(to_cell, row) for row in rows[start : start + _ROWS_AT_ONCE].tolist())
        forget(rows)


def pick_from(values: NDArray[Any]) -> Column:
    """Return the column that an array's own values make."""

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
    pickers, size = list(columns.values()), math.prod(shape)
    for start in range(0, size, _ROWS_AT_ONCE):
        index = np.unravel_index(np.arange(start, min(size, start + _ROWS_AT_ONCE)), shape) if shape else ()
        cells = [[to_cell(value) for value in pick(index).reshape(-1).tolist()] for pick in pickers]
        for row in zip(*(i.tolist() for i in index), *cells, strict=True):
            yield list(row)


def write_long(
    stream: TextIO,
    axis_names: Sequence[str],
    shape: tuple[int, ...],
    columns: Mapping[str, Column],
    delimiter: str,
) -> None:
    """Write the rows of `iterate_long`."""
    writer = csv.writer(stream, delimiter=delimiter, lineterminator="\n")
    writer.writerows(iterate_long(axis_names, shape, columns))


def to_cell(value: float | bool) -> str:
    """Return a number in full precision, as both CSV and `--print` spell it."""
    return repr(int(value)) if isinstance(value, bool) else repr(value)


def _split(text: str, delimiter: str) -> Iterator[tuple[int, list[str]]]:
    reader = csv.reader(io.StringIO(text), delimiter=delimiter)
    for row in reader:
        if row and any(cell.strip() for cell in row):
            yield reader.line_num, row


def _find_header(text: str, name: str, delimiter: str) -> tuple[tuple[str, ...], int] | None:
    """Return the header's cells and the lines it takes, or None where the first row is numbers."""
    try:
        line, first = next(islice(_split(text, delimiter), 1), (0, None))
    except csv.Error as error:
        raise DataError(f"{name} is no text table: its first row cannot be read") from error
    if first is None:
        raise DataError(f"{name} is empty; rows of numbers are expected")
    numbers = [_to_number(cell) for cell in first]
    words = [cell for cell, number in zip(first, numbers, strict=True) if number is None]
    if not words:
        return None
    if any(number is not None and not math.isnan(number) for number in numbers):
        raise DataError(
            f"{name}, line {line}: {_shorten(words[0])!r} is not a number; a header row has no numbers"
        )
    return tuple(cell.strip() for cell in first), line


def _parse_quickly(text: str, delimiter: str, skiprows: int) -> NDArray[Any] | None:
    """Return the numbers of a flawless table, or None where a cell is empty or anything is wrong."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # of no rows, which the caller sees
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


def _parse_slowly(
    text: str, name: str, delimiter: str, has_header: bool
) -> tuple[NDArray[Any], tuple[str, ...] | None]:
    columns: tuple[str, ...] | None = None
    rows: list[list[float]] = []
    width: int | None = None
    try:
        for line, row in _split(text, delimiter):
            if width is None:
                width = len(row)
            if len(row) != width:
                raise DataError(f"{name} is ragged: line {line} has {len(row)} cells, the first row {width}")
            if has_header and columns is None:
                columns = tuple(cell.strip() for cell in row)
                continue
            rows.append([_require_number(cell, name, line, i + 1) for i, cell in enumerate(row)])
    except csv.Error as error:
        raise DataError(f"{name} is no text table: {len(rows)} rows were read, the next cannot be") from error
    if not rows:
        raise DataError(f"{name} has a header and no rows of numbers")
    return np.array(rows, dtype=np.float64), columns


def _require_number(cell: str, name: str, line: int, column: int) -> float:
    number = _to_number(cell)
    if number is None:
        raise DataError(f"{name}, line {line}, column {column}: {_shorten(cell)!r} is not a number")
    return number


def _shorten(cell: str, most: int = 24) -> str:
    return cell if len(cell) <= most else f"{cell[:most]}…"


def _to_number(cell: str) -> float | None:
    if cell.strip() in _MISSING:
        return math.nan
    if "_" in cell:  # Python reads 1_000 as a number; no table means it so
        return None
    try:
        return float(cell)
    except ValueError:
        return None
