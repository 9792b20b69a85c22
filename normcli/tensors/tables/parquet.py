"""Parquet files as tables (the extra `parquet`): columns of numbers that have a dtype, among others."""

from __future__ import annotations

import contextlib
import json
import shlex
from typing import TYPE_CHECKING, Any, BinaryIO, cast

import numpy as np

from normcli.dtypes import LARGEST_EXACT
from normcli.errors import DataError, MissingExtraError, NormError
from normcli.tensors.held_files import refuse_changed
from normcli.tensors.pieces import forget
from normcli.tensors.spool import keep_open
from normcli.tensors.tables.arrow import find_missing, find_numbers
from normcli.tensors.tables.cells import SPELLED_MISSING
from normcli.tensors.tables.column_choice import choose_columns, join_names, name_all, name_column
from normcli.tensors.tables.column_names import list_names
from normcli.tensors.tables.delimited import quote
from normcli.tensors.tables.tables import Block, NotWholeError, Table

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from numpy.typing import NDArray

    from normcli.tensors.tables.tables import TableOptions, TextRows

_TYPES = (
    ("int64", "^-?(0|[1-9][0-9]{0,17})$"),
    ("float64", r"^-?(0|[1-9][0-9]{0,14})(\.[0-9]+)?([eE][-+]?[0-9]{1,2})?$"),
    ("bool_", "^([tT]rue|[fF]alse|TRUE|FALSE)$"),
    ("date32", "^[0-9]{4}-[0-9]{2}-[0-9]{2}$"),
)
"""Types of Arrow's, and what the cells of a column of text match that is written as one."""

MAGIC = b"PAR1"
"""The first bytes of a file."""

_BUFFER = 1 << 20
"""Bytes of a column that are read at a time: a column of a row group would be read whole otherwise."""

_ROWS = 1 << 14
"""Rows that are read at a time."""

_LISTED = 12
"""How many columns a message lists."""

_GROUP_BYTES = 1 << 23
"""Bytes of numbers in a row group that is written: all of it is in memory."""

DTYPES = ("bool", *(f"{kind}{bits}" for kind in ("int", "uint") for bits in (8, 16, 32, 64)))
DTYPES += ("float16", "float32", "float64")
"""The dtypes that columns of numbers have."""

_PANDAS = b"pandas"
"""What pandas keeps its own words on a table under."""

_ARROW_NAMES = {"halffloat": "float16", "float": "float32", "double": "float64"}
"""What Arrow calls a type → NumPy's name, where they differ."""


class Batches:
    """The rows of a Parquet file; see `tables.Rows`.

    Parameters
    ----------
    stream : BinaryIO
        Seekable; it is read again whenever rows are asked for.
    name : str
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
        self._dtypes = [_find_dtype(field.type) for field in self.schema]
        if len(set(self._names)) < self.width:
            equal = sorted({one for one in self._names if self._names.count(one) > 1})
            raise DataError(f"{name} has several columns called {list_names(equal)}")

    def _open(self) -> Any:
        self._stream.seek(0)
        return _import().ParquetFile(self._stream, buffer_size=_BUFFER, pre_buffer=False)

    @contextlib.contextmanager
    def _explain(self) -> Iterator[None]:
        """Say of what pyarrow raises which file it is about."""
        try:
            yield
        except (NormError, NotWholeError):
            raise
        except Exception as error:  # of many kinds, where a file is damaged
            reason = [*str(error).strip().splitlines(), type(error).__name__][0]
            raise DataError(f"{self.name} is no readable .parquet file: {reason}") from error

    @property
    def index(self) -> list[str]:
        """The columns in which pandas has kept the index of a table: they name rows."""
        try:
            listed = json.loads((self.schema.metadata or {}).get(_PANDAS, b"{}")).get("index_columns", [])
        except (ValueError, AttributeError, RecursionError):
            return []
        return [name for name in listed if isinstance(name, str) and name in self._names]

    def require_numbers(self, chosen: Sequence[int]) -> None:
        """Raise `DataError` with the names of the chosen columns that hold no numbers."""
        others = [place for place in chosen if self._dtypes[place] is None]
        if not others:
            return
        kinds = [f"{name_column(self, place)} ({self.schema.field(place).type})" for place in others[:_LISTED]]
        more = f" and {len(others) - _LISTED} more" if len(others) > _LISTED else ""
        remedy = "there are no others"
        if len(others) < len(chosen):
            names = join_names([self._names[place] for place in others])
            remedy = f"--exclude {shlex.quote(names)} leaves {'it' if len(others) == 1 else 'them'} out"
        raise DataError(f"{self.name} has columns without numbers: {', '.join(kinds)}{more}; {remedy}")

    def list_dtypes(self, chosen: Sequence[int]) -> Sequence[type[np.generic]]:
        """Return the dtypes that columns are read in: the first that holds all of them is taken."""
        dtypes = [cast("np.dtype[Any]", self._dtypes[place]) for place in chosen]
        common = np.result_type(*dtypes)
        if any(dtype.kind == "f" for dtype in dtypes):
            return (common.type,)
        whole = (np.int64, np.uint64) if common.kind == "f" else (common.type,)
        return (*whole, np.float64)  # which has a NaN for what is missing

    def read_batches(self, columns: Sequence[str], rows: int = _ROWS) -> Iterator[Any]:
        """Yield the record batches of some columns."""
        with self._explain():
            for batch in self._open().iter_batches(rows, columns=list(columns)):
                yield batch.select(list(columns))

    def read_blocks(self, chosen: Sequence[int], dtype: type[np.generic]) -> Iterator[Block]:
        """Yield the numbers of some columns; raise `NotWholeError` where an integer dtype cannot hold one."""
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
        """Copy a column's numbers; return the first that was rounded, and where it stands."""
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
        """Yield the texts of each row's cells for a file with a delimiter, or for JSON if that is None."""
        for batch in self.read_batches(self._names):
            with self._explain():
                columns = [array.to_pylist() for array in batch.columns]
            for row in zip(*columns, strict=True):
                if delimiter is None:
                    yield [json.dumps(_to_plain(cell), ensure_ascii=False, default=str) for cell in row]
                else:
                    yield [quote(_to_text(cell), delimiter) for cell in row]


def _find_dtype(kind: Any) -> np.dtype[Any] | None:
    """Return the dtype of a type of Arrow's; None of what holds no numbers."""
    name = _ARROW_NAMES.get(str(kind), str(kind))
    return np.dtype(name) if name in DTYPES else None


def _to_plain(cell: Any) -> Any:
    """Return a cell as JSON has it: what is not finite as a word, bytes in hexadecimal digits."""
    if isinstance(cell, float) and not np.isfinite(cell):
        return str(cell)
    return cell.hex() if isinstance(cell, bytes) else cell


def _to_text(cell: Any) -> str:
    """Return a cell as delimited files have it."""
    if cell is None:
        return ""
    plain = _to_plain(cell)
    if isinstance(plain, str):
        return plain
    return (
        json.dumps(plain, ensure_ascii=False, default=str)
        if isinstance(plain, list | dict | bool)
        else str(plain)
    )


def _import() -> Any:
    try:
        from pyarrow import parquet
    except ImportError as error:
        raise MissingExtraError.of("a .parquet file", "parquet") from error
    return parquet


def read_parquet(stream: BinaryIO, name: str, options: TableOptions) -> tuple[Table, str | None]:
    """Return the table that a Parquet file is, and a note of how its columns were found.

    The index of a table of pandas passes through, as do columns that are not chosen.

    Raises
    ------
    DataError
        If the file is damaged, chosen columns hold no numbers, or are not those that are wanted.
    UsageError
        If the options name a column that is not there.
    MissingExtraError
        If the library is missing.
    """
    rows = Batches(stream, name)
    if options.columns is None and rows.index:
        left_out = [options.exclude, join_names(rows.index)]
        options = options._replace(exclude=",".join(part for part in left_out if part))
    chosen, note = choose_columns(rows, options)
    rows.require_numbers(chosen)
    return Table(rows, chosen), note


def write_parquet(
    stream: BinaryIO, values: NDArray[Any], names: Sequence[str] | None, table: Table | None
) -> None:
    """Write a tensor of two axes as columns of its dtype.

    Parameters
    ----------
    stream : BinaryIO
    values : ndarray
        Shape (rows, columns).
    names : sequence of str or None
        Of the values' columns: numbers from 0 where there are none.
    table : Table or None
        Where the values came from: they are written in their places among its other columns, which keep their
        types; where they came from text, that which all cells have: whole numbers, numbers, booleans, days, or
        else strings. What a Parquet file had no value for stays so.

    Raises
    ------
    UsageError
        If two columns have one name.
    MissingExtraError
        If the library is missing.
    """
    parquet = _import()
    import pyarrow

    names = name_all(names or [str(place) for place in range(values.shape[1])], table, ".parquet")
    chosen = tuple(range(len(names))) if table is None else table.chosen
    fields, metadata = [pyarrow.field(name, pyarrow.string()) for name in names], None
    if table is not None and isinstance(table.rows, Batches):
        fields = list(table.rows.schema)
        metadata = _adapt(table.rows.schema.metadata, [names[place] for place in chosen], values.dtype)
    elif table is not None and table.has_others:
        for place, found in _find_types(table).items():
            fields[place] = pyarrow.field(names[place], found)
    kind = pyarrow.from_numpy_dtype(values.dtype)
    for place in chosen:
        fields[place] = pyarrow.field(names[place], kind)
    schema = pyarrow.schema(fields, metadata)
    repeated = [field.name for field in fields if pyarrow.types.is_string(field.type)]
    count = max(1, _GROUP_BYTES // (8 * len(names)))
    start, waiting = 0, []
    with parquet.ParquetWriter(stream, schema, use_dictionary=repeated) as writer:
        for length, others in _read_others(table, schema, len(values), count):
            block = values[start : start + length]
            if len(block) != length:
                refuse_changed(table.rows.name if table is not None else "the input")
            columns = dict(others)
            for place, column in zip(chosen, np.ascontiguousarray(block.T), strict=True):
                columns[place] = _make_column(kind, column, others.get(place))
            ordered = [columns[place] for place in range(len(names))]
            waiting.append(pyarrow.RecordBatch.from_arrays(ordered, schema=schema))
            start += length
            if sum(map(len, waiting)) >= count or start == len(values):
                writer.write_table(pyarrow.Table.from_batches(waiting), row_group_size=start)
                waiting = []
            forget(values)
    if start != len(values):
        refuse_changed(table.rows.name if table is not None else "the input")
    if table is not None and table.opened is not None:
        table.opened.require_unchanged()


def _read_others(
    table: Table | None, schema: Any, rows: int, count: int
) -> Iterator[tuple[int, Mapping[int, Any]]]:
    """Yield the length of some rows, and columns of the table that a tensor was made from, by their places."""
    if table is not None and isinstance(table.rows, Batches):
        for batch in table.rows.read_batches(table.rows.schema.names, count):
            yield batch.num_rows, dict(enumerate(batch.columns))
    elif table is not None and table.has_others:
        for columns in _read_text_columns(table):
            arrays = {
                place: _write_as(array, schema.field(place).type, is_json=table.delimiter is None)
                for place, array in columns.items()
            }
            yield len(next(iter(arrays.values()))), arrays
    else:
        for start in range(0, rows, count):
            yield min(count, rows - start), {}


def _read_text_columns(table: Table) -> Iterator[dict[int, Any]]:
    """Yield columns of a table of text that are not of the tensor, as strings; of JSON as they stand there."""
    import pyarrow

    others = [place for place in range(table.rows.width) if place not in table.chosen]
    for columns in cast("TextRows", table.rows).read_columns(others):
        yield {place: pyarrow.array(cells) for place, cells in zip(others, columns, strict=True)}


def _find_types(table: Table) -> dict[int, Any]:
    """Return the type of each column of a table of text that is not of the tensor: the first that fits all."""
    import pyarrow

    named = [(getattr(pyarrow, name)(), pattern) for name, pattern in _TYPES]
    fitting: dict[int, list[tuple[Any, str]]] = {}
    filled = set()
    for columns in _read_text_columns(table):
        for place, array in columns.items():
            known = _leave_missing_out(array).drop_null()
            fitting[place] = [one for one in fitting.get(place, named) if _fits(known, *one)]
            if len(known):
                filled.add(place)
    return {place: kinds[0][0] for place, kinds in fitting.items() if kinds and place in filled}


def _fits(array: Any, kind: Any, pattern: str) -> bool:
    """Whether all strings match a pattern, and are then of a type."""
    import pyarrow
    from pyarrow import compute

    if not compute.all(compute.match_substring_regex(array, pattern), min_count=0).as_py():
        return False
    try:
        array.cast(kind)
    except pyarrow.ArrowInvalid:  # a day that no month has
        return False
    return True


def _leave_missing_out(array: Any) -> Any:
    """Return strings, without those that stand for missing values."""
    import pyarrow
    from pyarrow import compute

    missing = compute.is_in(array, pyarrow.array(SPELLED_MISSING))
    return compute.if_else(missing, pyarrow.scalar(None, pyarrow.string()), array)


def _write_as(array: Any, kind: Any, *, is_json: bool) -> Any:
    """Return strings, which may be those of JSON's values, as the type that `_find_types` found for them."""
    import pyarrow

    if not pyarrow.types.is_string(kind):
        return _leave_missing_out(array).cast(kind)
    return pyarrow.array(map(_to_string, array.to_pylist()), kind) if is_json else array


def _make_column(kind: Any, column: NDArray[Any], before: Any) -> Any:
    """Return numbers as a column of Arrow's, without the NaN of what was missing `before`."""
    import pyarrow

    if column.dtype == np.bool_:
        return pyarrow.Array.from_buffers(
            kind, len(column), [None, pyarrow.py_buffer(np.packbits(column, bitorder="little"))]
        )
    there = None
    missing = None if before is None else find_missing(before)
    if missing is not None and column.dtype.kind == "f" and len(missing) == len(column):
        there = pyarrow.py_buffer(np.packbits(~(missing & np.isnan(column)), bitorder="little"))
    return pyarrow.Array.from_buffers(kind, len(column), [there, pyarrow.py_buffer(column)])


def _to_string(cell: str) -> str | None:
    """Return the string that a cell of JSON is written as."""
    if cell == "null":
        return None
    return str(json.loads(cell)) if cell.startswith('"') else cell


def _adapt(
    metadata: Mapping[bytes, bytes] | None, changed: Sequence[str], dtype: np.dtype[Any]
) -> dict[bytes, bytes]:
    """Return what a file says of itself, where what pandas says of its columns follows their new dtype."""
    adapted = dict(metadata or {})
    try:
        said = json.loads(adapted[_PANDAS])
        for column in said["columns"]:
            if column["field_name"] in changed:
                column |= {"pandas_type": dtype.name, "numpy_type": dtype.name, "metadata": None}
        adapted[_PANDAS] = json.dumps(said).encode()
    except (KeyError, TypeError, ValueError, RecursionError):  # there is none, or of another kind
        adapted.pop(_PANDAS, None)
    return adapted
