"""Parquet files as tables (the extra `parquet`): columns of numbers with a dtype, and other columns."""

from __future__ import annotations

import contextlib
import json
from typing import TYPE_CHECKING, Any, BinaryIO, cast

import numpy as np

from normcli.dtypes import LARGEST_EXACT
from normcli.errors import DataError, MissingExtraError, NormError
from normcli.tensors.spool import keep_open
from normcli.tensors.tables.arrow import find_missing, find_numbers
from normcli.tensors.tables.column_choice import (
    advise_columns,
    choose_columns,
    join_names,
    list_names,
    name_column,
)
from normcli.tensors.tables.line_records import quote
from normcli.tensors.tables.numerals import name_value
from normcli.tensors.tables.tables import Block, FileTable, NotWholeError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

    from normcli.tensors.tables.numerals import Label
    from normcli.tensors.tables.table_options import TableOptions


MAGIC = b"PAR1"
"""The first bytes of a Parquet file."""

_BUFFER = 1 << 20
"""The bytes of a column that are read at a time; else pyarrow reads the column of a whole row group."""

_ROWS = 1 << 14
"""The number of rows that are read at a time."""

_LISTED = 12
"""The most columns that a message lists."""


DTYPES = ("bool", *(f"{kind}{bits}" for kind in ("int", "uint") for bits in (8, 16, 32, 64)))
DTYPES += ("float16", "float32", "float64")
"""The dtypes of columns that count as numbers."""

PANDAS = b"pandas"
"""The metadata key under which pandas keeps its description of a table."""

_ARROW_NAMES = {"halffloat": "float16", "float": "float32", "double": "float64"}
"""Arrow's name of a type → NumPy's name, where they differ."""


class Batches:
    """The rows of a Parquet file, as `tables.Rows`.

    Parameters
    ----------
    stream : BinaryIO
        A seekable stream, which is read anew for each pass over the rows.
    name : str
        The file's name in messages.

    Raises
    ------
    DataError
        If the file is damaged, or two columns have the same name.
    MissingExtraError
        If pyarrow is missing.
    """

    first = "row 1"

    is_picked = False
    padded: frozenset[int] = frozenset()

    def __init__(self, stream: BinaryIO, name: str) -> None:
        self.name = name
        self._stream = keep_open(stream, self)
        with self._explain():
            self.schema = self._open().schema_arrow
        self._names: tuple[str, ...] = tuple(self.schema.names)
        self.names: tuple[str, ...] | None = self._names
        self.width = len(self._names)
        kinds = [str(kind) for kind in self.schema.types]
        kinds = [_ARROW_NAMES.get(kind, kind) for kind in kinds]
        self._dtypes = [np.dtype(kind) if kind in DTYPES else None for kind in kinds]
        if len(set(self._names)) < self.width:
            equal = sorted({one for one in self._names if self._names.count(one) > 1})
            raise DataError(f"{name} has several columns called {list_names(equal)}")

    def _open(self) -> Any:
        self._stream.seek(0)
        return import_parquet().ParquetFile(self._stream, buffer_size=_BUFFER, pre_buffer=False)

    @contextlib.contextmanager
    def _explain(self) -> Iterator[None]:
        """Turn exceptions of pyarrow in a `with` block into `DataError`; a context manager."""
        try:
            yield
        except (NormError, NotWholeError):
            raise
        except Exception as error:  # a damaged file raises exceptions of many kinds
            reason = [*str(error).strip().splitlines(), type(error).__name__][0]
            raise DataError(f"{self.name} is no readable .parquet file: {reason}") from error

    @property
    def index(self) -> list[str]:
        """The names of the columns that hold the index of a table of pandas; empty if there are none."""
        try:
            listed = json.loads((self.schema.metadata or {}).get(PANDAS, b"{}")).get("index_columns", [])
        except (ValueError, AttributeError, RecursionError):
            return []
        return [name for name in listed if isinstance(name, str) and name in self._names]

    def require_numbers(self, chosen: Sequence[int]) -> None:
        """Raise `DataError` if some of the chosen columns (indices) hold no numbers; the message names them."""
        others = [place for place in chosen if self._dtypes[place] is None]
        if not others:
            return
        kinds = [f"{name_column(self, place)} ({self.schema.field(place).type})" for place in others[:_LISTED]]
        more = f" and {len(others) - _LISTED} more" if len(others) > _LISTED else ""
        remedy = advise_columns(self, [place for place in chosen if place not in others])
        raise DataError(f"{self.name} has columns without numbers: {', '.join(kinds)}{more}; {remedy}")

    def list_dtypes(self, chosen: Sequence[int]) -> Sequence[type[np.generic]]:
        """Return the dtypes to try for the chosen columns together, in order, until one holds all numbers.

        If a column is of floats, there is only one: NumPy's common dtype of all. Otherwise there are the common
        integer dtype, or int64 and uint64 if there is none, and then float64, which has NaN for missing values.
        """
        dtypes = [cast("np.dtype[Any]", self._dtypes[place]) for place in chosen]
        common = np.result_type(*dtypes)
        if any(dtype.kind == "f" for dtype in dtypes):
            return (common.type,)
        whole = (np.int64, np.uint64) if common.kind == "f" else (common.type,)
        return (*whole, np.float64)  # float64 has NaN for missing values

    def read_batches(self, columns: Sequence[str], rows: int = _ROWS) -> Iterator[Any]:
        """Yield the pyarrow record batches of some columns, in their order, of at most `rows` rows."""
        with self._explain():
            for batch in self._open().iter_batches(rows, columns=list(columns)):
                yield batch.select(list(columns))

    def read_blocks(self, chosen: Sequence[int], dtype: type[np.generic]) -> Iterator[Block]:
        """Yield blocks of rows: the numbers of the columns with the indices `chosen`, in a dtype.

        Raises `NotWholeError` if an integer dtype cannot hold one, or a value is missing.
        """
        start = 0
        for batch in self.read_batches([self._names[place] for place in chosen]):
            values = np.empty((batch.num_rows, len(chosen)), dtype)
            rounded = None
            for column, place, array in zip(values.T, chosen, batch.columns, strict=True):
                found = self._fill(column, array, place, start)
                rounded = rounded or found
            yield Block(values, rounded)
            start += batch.num_rows

    def _fill(self, column: NDArray[Any], array: Any, place: int, start: int) -> str | None:
        """Copy numbers into a column; return a text on the first whole number that float64 rounded, or None.

        Parameters
        ----------
        column : ndarray
            The column, which is written to.
        array : pyarrow.Array
            The numbers.
        place : int
            The index of the column in the file.
        start : int
            The number of rows of the file before the array's first one.

        Raises
        ------
        NotWholeError
            If the column is of integers, and a value is missing or out of range.
        """
        numbers = find_numbers(array, cast("np.dtype[Any]", self._dtypes[place]))
        missing = find_missing(array)
        if column.dtype.kind == "f":
            column[:] = numbers
            if missing is not None:
                column[missing] = np.nan
            return self._find_rounded(numbers, missing, place, start)
        if missing is not None:
            raise NotWholeError
        if numbers.size and column.dtype != np.bool_:
            limits = np.iinfo(column.dtype)
            if not limits.min <= int(numbers.min()) <= int(numbers.max()) <= limits.max:
                raise NotWholeError
        column[:] = numbers
        return None

    def _find_rounded(
        self, numbers: NDArray[Any], missing: NDArray[np.bool_] | None, place: int, start: int
    ) -> str | None:
        """Return a text on a column's first whole number that float64 rounds, with its row and column, or None.

        `place` is the column's index in the file, `start` the number of rows before the first one of `numbers`.
        """
        if numbers.dtype.kind not in "iu" or numbers.itemsize < np.dtype(np.float64).itemsize:
            return None
        large = numbers >= LARGEST_EXACT
        if numbers.dtype.kind == "i":
            large |= numbers <= -int(LARGEST_EXACT)
        if missing is not None:
            large &= ~missing
        for row in np.flatnonzero(large).tolist():
            if int(float(numbers[row])) != int(numbers[row]):
                return f"{numbers[row]} in row {start + row + 1}, column {name_column(self, place)},"
        return None

    def read_cells(self, delimiter: str | None) -> Iterator[list[str]]:
        """Yield for each row the texts of its cells, as they are to be written to another file.

        `delimiter` is the delimiter of that file, for which cells are quoted; None stands for JSON.
        """
        for batch in self.read_batches(self._names):
            with self._explain():
                columns = [array.to_pylist() for array in batch.columns]
            for row in zip(*columns, strict=True):
                if delimiter is None:
                    yield [json.dumps(_to_plain(cell), ensure_ascii=False, default=str) for cell in row]
                else:
                    yield [quote(_to_text(cell), delimiter) for cell in row]

    def read_labels(self, places: Sequence[int]) -> Iterator[Label]:
        """Yield a tuple for each row: a text for each of some columns, by which rows are grouped.

        All spellings of a number have one text; a string is its own. null and NaN are None.
        """
        for batch in self.read_batches([self._names[place] for place in places]):
            columns = (array.to_pylist() for array in batch.columns)
            yield from zip(*(map(_name, column) for column in columns), strict=True)


def _to_plain(cell: Any) -> Any:
    """Return a cell for JSON: numbers that are not finite as words, bytes as hexadecimal digits."""
    if isinstance(cell, float) and not np.isfinite(cell):
        return str(cell)
    return cell.hex() if isinstance(cell, bytes) else cell


def _name(cell: Any) -> str | None:
    is_number = isinstance(cell, int | float) and not isinstance(cell, bool)
    return name_value(cell) if cell is None or is_number else _to_text(cell)


def _to_text(cell: Any) -> str:
    """Return the text of a cell in a delimited file; a missing value becomes an empty text."""
    plain = _to_plain(cell)
    if isinstance(plain, list | dict | bool):
        return json.dumps(plain, ensure_ascii=False, default=str)
    return "" if plain is None else str(plain)


def import_parquet() -> Any:
    """Return `pyarrow.parquet`, or raise `MissingExtraError` where it is not installed."""
    try:
        from pyarrow import parquet
    except ImportError as error:
        raise MissingExtraError.of("a .parquet file", "parquet") from error
    return parquet


def read_parquet(stream: BinaryIO, name: str, options: TableOptions) -> tuple[FileTable, str | None]:
    """Return the table of a Parquet file, and a note on its columns, or None.

    The index of a table of pandas is not chosen unless the options name its columns.

    Raises
    ------
    DataError
        If the file is damaged, or chosen columns hold no numbers or are not the wanted ones.
    UsageError
        If the options name a column that does not exist, or contradict each other.
    MissingExtraError
        If pyarrow is missing.
    """
    rows = Batches(stream, name)
    if options.columns is None and rows.index:
        left_out = [options.exclude, join_names(rows.index)]
        options = options._replace(exclude=",".join(part for part in left_out if part))
    chosen, note = choose_columns(rows, options)
    rows.require_numbers(chosen)
    return FileTable(rows, chosen), note
