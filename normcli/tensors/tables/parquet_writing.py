"""Writing Parquet files: numbers as columns of their dtype, among the other columns of their table."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any, BinaryIO, cast

import numpy as np

from normcli.tensors.held_files import refuse_changed
from normcli.tensors.pieces import forget
from normcli.tensors.tables.arrow import find_missing
from normcli.tensors.tables.column_choice import name_all
from normcli.tensors.tables.parquet import PANDAS, Batches, import_parquet
from normcli.tensors.tables.text_columns import SPELLED_MISSING

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from numpy.typing import NDArray

    from normcli.tensors.tables.tables import FileTable, TextRows

_TYPES = (
    ("int64", "^-?(0|[1-9][0-9]{0,17})$"),
    ("float64", r"^-?(0|[1-9][0-9]{0,14})(\.[0-9]+)?([eE][-+]?[0-9]{1,2})?$"),
    ("bool_", "^([tT]rue|[fF]alse|TRUE|FALSE)$"),
    ("date32", "^[0-9]{4}-[0-9]{2}-[0-9]{2}$"),
)
"""(Arrow's type, the pattern that all cells of a column of text must match to be written in it), in order."""


_MISSING = f"^({'|'.join(map(re.escape, SPELLED_MISSING))})$"
"""The pattern of cells that stand for a missing value."""

_GROUP_BYTES = 1 << 23
"""The bytes of numbers in a row group that is written, which is in memory as a whole."""


def write_parquet(
    stream: BinaryIO, values: NDArray[Any], names: Sequence[str] | None, table: FileTable | None
) -> None:
    """Write a tensor of two axes as columns of its dtype.

    Parameters
    ----------
    stream : BinaryIO
    values : ndarray
        Shape (rows, columns).
    names : sequence of str or None
        The names of the values' columns; None for numbers from 0.
    table : FileTable or None
        The table that the values came from; its other columns are written too, in the file's order. Columns of
        a Parquet file keep their types; columns of text get the first type that all cells can be read as: whole
        numbers, numbers, booleans, days, or else strings. NaN where a Parquet file had null becomes null again.

    Raises
    ------
    UsageError
        If two columns have the same name.
    DataError
        If the table's file has changed since it was read.
    MissingExtraError
        If pyarrow is missing.
    """
    parquet = import_parquet()
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
    table: FileTable | None, schema: Any, rows: int, count: int
) -> Iterator[tuple[int, Mapping[int, Any]]]:
    """Yield (number of rows, index → column) for blocks of rows of the table that a tensor was made from.

    The columns are pyarrow arrays: all columns of a Parquet file; of a text file, the columns that are not in
    the tensor. The mappings are empty without a table, and for a text file without such columns.

    Parameters
    ----------
    table : FileTable or None
    schema : pyarrow.Schema
        The schema that is written.
    rows : int
        The number of rows of the tensor.
    count : int
        The most rows in a block; for a text file, blocks have the size in which it is read.
    """
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


def _read_text_columns(table: FileTable) -> Iterator[dict[int, Any]]:
    """Yield blocks of rows of a text table: index → column, for the columns that are not in the tensor.

    The columns are pyarrow arrays of strings; the strings of JSON are the JSON texts of its values.
    """
    import pyarrow

    others = [place for place in range(table.rows.width) if place not in table.chosen]
    for columns in cast("TextRows", table.rows).read_columns(others):
        yield {
            place: pyarrow.array(cells) if isinstance(cells, list) else cells
            for place, cells in zip(others, columns, strict=True)
        }


def _find_types(table: FileTable) -> dict[int, Any]:
    """Return index → pyarrow type, the first that fits, for text columns that are not in the tensor.

    Columns that no type fits, or that have no values, are left out: they are strings.
    """
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
    """Whether all strings of a pyarrow array match a pattern and can be cast to a type."""
    import pyarrow
    from pyarrow import compute

    if not compute.all(compute.match_substring_regex(array, pattern), min_count=0).as_py():
        return False
    try:
        array.cast(kind)
    except pyarrow.ArrowInvalid:  # a date that does not exist, as 2023-02-30
        return False
    return True


def _leave_missing_out(array: Any) -> Any:
    """Return an array of strings with null in place of the spellings of missing values."""
    import pyarrow
    from pyarrow import compute

    missing = compute.match_substring_regex(array, _MISSING)
    return compute.if_else(missing, pyarrow.NA, array)  # `pyarrow.scalar` would import pandas


def _write_as(array: Any, kind: Any, *, is_json: bool) -> Any:
    """Return an array of strings (texts of JSON values if `is_json`) as one of the pyarrow type `kind`."""
    import pyarrow

    if not pyarrow.types.is_string(kind):
        return _leave_missing_out(array).cast(kind)
    return pyarrow.array(map(_to_string, array.to_pylist()), kind) if is_json else array


def _make_column(kind: Any, column: NDArray[Any], before: Any) -> Any:
    """Return numbers as a pyarrow array of the type `kind`.

    NaN becomes null where `before`, the column of the same rows in the table that was read, has null; None
    without such a column.
    """
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
    """Return the string for a cell's JSON text: a string's content, None for null, or else the text itself."""
    if cell == "null":
        return None
    return str(json.loads(cell)) if cell.startswith('"') else cell


def _adapt(
    metadata: Mapping[bytes, bytes] | None, changed: Sequence[str], dtype: np.dtype[Any]
) -> dict[bytes, bytes]:
    """Return a file's metadata with pandas' description adapted: the changed columns get the new dtype.

    A description that cannot be adapted is left out.
    """
    adapted = dict(metadata or {})
    try:
        said = json.loads(adapted[PANDAS])
        for column in said["columns"]:
            if column["field_name"] in changed:
                column |= {"pandas_type": dtype.name, "numpy_type": dtype.name, "metadata": None}
        adapted[PANDAS] = json.dumps(said).encode()
    except (KeyError, TypeError, ValueError, RecursionError):  # there is no description, or it has another form
        adapted.pop(PANDAS, None)
    return adapted
