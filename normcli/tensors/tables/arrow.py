"""Large delimited files read and written by pyarrow (the extra `tables`), with the same results."""

from __future__ import annotations

import re
from collections import deque
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from normcli.dtypes import LARGEST_EXACT
from normcli.tensors.tables.text_columns import SPELLED_MISSING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from concurrent.futures import Future

    from numpy.typing import NDArray

    Parser = Callable[[bytes], "NDArray[np.float64] | None"]
    Formatter = Callable[["NDArray[Any]"], str]

    T = TypeVar("T")
    Result = TypeVar("Result")

LEAST_BYTES = 4 << 20
"""The least size of text for which pyarrow is used: its import takes as long as reading some MiB without it."""

LEAST_VALUES = LEAST_BYTES // 16
"""The least number of values for which pyarrow is used to write."""

_DELIMITERS = ",;\t|"

_MOST_COLUMNS = 256
"""The most columns for which pyarrow is used: more mean short blocks, for which its cost a column is high."""

_AT_ONCE = 2
"""The number of threads, each of which works on a block."""

_LEAST_FRACTION, _LEAST_POWER = 1e-4, 1e10
"""From the first up to below the second, pyarrow writes numbers that are not whole as Python does."""


def find_parser(size: int, width: int, chosen: Sequence[int], delimiter: str, decimal: str) -> Parser | None:
    """Return a function that parses lines with pyarrow; None if pyarrow is missing or would not be faster.

    The function takes the bytes of whole records and returns the numbers of the chosen columns as float64,
    shape (rows, columns). It returns None if a cell may be no number, an unusual word for a missing value, or a
    whole number that float64 rounds.

    Parameters
    ----------
    size : int
        The size of the whole text in bytes.
    width : int
        The number of columns of the text.
    chosen : sequence of int
        The indices of the columns to return.
    delimiter, decimal : str
    """
    if size < LEAST_BYTES or not 1 < width <= _MOST_COLUMNS:
        return None
    split = find_splitter(width, chosen, delimiter, "float64", decimal)
    if split is None:
        return None

    def parse(data: bytes) -> NDArray[np.float64] | None:
        table = split(data)
        if table is None:
            return None
        values = np.empty((table.num_rows, len(chosen)))
        for column, numbers in zip(values.T, table.columns, strict=True):
            _copy_column(numbers.chunks, column)
            if np.isnan(column).sum() > numbers.null_count:  # a word that perhaps only pyarrow reads as NaN
                return None
        return None if (np.abs(values) >= LARGEST_EXACT).any() else values

    return parse


def find_splitter(
    width: int, chosen: Sequence[int], delimiter: str, kind: str, decimal: str = "."
) -> Callable[[bytes], Any] | None:
    """Return a function that splits lines into columns with pyarrow; None if pyarrow is missing or cannot.

    The function takes the bytes of whole records and returns a `pyarrow.Table` of the chosen columns. It
    returns None if a record has another number of cells, a cell is not of the type, or quotes in texts are not
    around whole cells. Missing values are null in columns of numbers, and texts in columns of strings.

    Parameters
    ----------
    width : int
        The number of columns of the lines.
    chosen : sequence of int
        The indices of the columns to return.
    delimiter : str
        The delimiter; pyarrow is used for `,`, `;`, `|` and tab.
    kind : str
        The name of pyarrow's type, `float64` or `string`.
    decimal : str
    """
    if delimiter not in _DELIMITERS:
        return None
    try:
        import pyarrow
        from pyarrow import csv
    except ImportError:
        return None
    names = [str(place) for place in range(width)]
    kept = [names[place] for place in chosen]
    pool = pyarrow.system_memory_pool()
    between = rf"\r\n{re.escape(delimiter)}"
    quoted = re.compile(f'"(?<![^{between}]")(?:[^"]++|"")*+"(?![^{between}])'.encode())
    plain = csv.ParseOptions(delimiter=delimiter, quote_char=False, double_quote=False)
    quoting = csv.ParseOptions(delimiter=delimiter, newlines_in_values=True)
    converting = csv.ConvertOptions(
        column_types=dict.fromkeys(kept, getattr(pyarrow, kind)()),
        include_columns=kept,
        null_values=list(SPELLED_MISSING),
        decimal_point=decimal,
        check_utf8=kind == "string",
    )

    def split(data: bytes) -> Any:
        if data.startswith(b"\xef"):  # pyarrow would take it for a byte order mark
            return None
        parsing = quoting if b'"' in data else plain
        if parsing is quoting and kind == "string" and b'"' in quoted.sub(b"", data):
            return None
        reading = csv.ReadOptions(column_names=names, block_size=len(data) + 1, use_threads=False)
        try:
            return csv.read_csv(pyarrow.BufferReader(data), reading, parsing, converting, pool)
        except pyarrow.ArrowInvalid:
            return None

    return split


def _copy_column(chunks: Sequence[Any], column: NDArray[np.float64]) -> None:
    """Copy the numbers of pyarrow's arrays (`chunks`) into a column, one after the other, missing ones as NaN.

    They are read from the arrays' buffers, as pyarrow's own conversion to NumPy imports pandas if it can.
    """
    start = 0
    for chunk in chunks:
        part = column[start : start + len(chunk)]
        part[:] = find_numbers(chunk, column.dtype)
        missing = find_missing(chunk)
        if missing is not None:
            part[missing] = np.nan
        start += len(chunk)


def find_numbers(array: Any, dtype: np.dtype[Any]) -> NDArray[Any]:
    """Return the numbers of a pyarrow array; missing ones have arbitrary values. Only bool is copied."""
    numbers, end = array.buffers()[1], array.offset + len(array)
    if dtype == np.bool_:
        return _find_bits(numbers, array).astype(np.bool_)
    found: NDArray[Any] = np.frombuffer(numbers or b"", dtype, end if len(array) else 0)[array.offset :]
    return found


def find_missing(array: Any) -> NDArray[np.bool_] | None:
    """Return a mask of the values of a pyarrow array that are missing; None if none is."""
    if not array.null_count:
        return None
    bits = array.buffers()[0]
    missing: NDArray[np.bool_] = _find_bits(bits, array) == 0
    return missing


def _find_bits(bits: Any, array: Any) -> NDArray[np.uint8]:
    """Return the bits of a pyarrow array's buffer, such as its mask of valid values: 0 or 1 for each value."""
    end = array.offset + len(array)
    return np.unpackbits(np.frombuffer(bits or b"", np.uint8), count=end, bitorder="little")[array.offset :]


def find_formatter(values: NDArray[Any], delimiter: str, format_rows: Formatter) -> Formatter | None:
    """Return a function that formats rows with pyarrow; None if pyarrow is missing or would not be faster.

    The function takes rows and returns the text that `format_rows` would return, which it calls for rows that
    pyarrow would write in another way.

    Parameters
    ----------
    values : ndarray
        All values that are to be written, shape (rows, columns).
    delimiter : str
    format_rows : callable
        Takes rows and returns their text, slowly.
    """
    if values.size < LEAST_VALUES or values.dtype.kind != "f" or values.shape[1] > _MOST_COLUMNS:
        return None
    if delimiter not in _DELIMITERS:
        return None
    try:
        import pyarrow
        from pyarrow import csv
    except ImportError:
        return None
    names = [str(place) for place in range(values.shape[1])]

    def format_quickly(rows: NDArray[Any]) -> str:
        with np.errstate(invalid="ignore"):  # NumPy's warning about a signalling NaN
            numbers = rows.astype(np.float64)
            sizes = np.abs(numbers)
            others = (sizes < _LEAST_FRACTION) | (sizes >= _LEAST_POWER) | (sizes == np.rint(sizes))
        places = np.flatnonzero(others.any(axis=1))
        if 8 * len(places) > len(rows):
            return format_rows(rows)
        columns = [pyarrow.py_buffer(column) for column in np.ascontiguousarray(numbers.T)]
        arrays = [
            pyarrow.Array.from_buffers(pyarrow.float64(), len(rows), [None, column]) for column in columns
        ]
        batch = pyarrow.RecordBatch.from_arrays(arrays, names)
        stream = pyarrow.BufferOutputStream()
        writing = csv.WriteOptions(
            include_header=False, batch_size=len(rows), delimiter=delimiter, quoting_style="none"
        )
        csv.write_csv(batch, stream, writing)
        lines = stream.getvalue().to_pybytes().decode().split("\n")
        for place in places.tolist():
            lines[place] = format_rows(rows[place : place + 1]).removesuffix("\n")
        return "\n".join(lines)

    return format_quickly


def map_ahead(function: Callable[[T], Result], items: Iterable[T]) -> Iterator[tuple[T, Result]]:
    """Yield (item, function(item)) in the order of the items; two threads call the function ahead.

    An exception of the function is raised when its item is due.
    """
    from concurrent.futures import ThreadPoolExecutor  # slow to import, and small files need none

    with ThreadPoolExecutor(_AT_ONCE) as pool:
        pending: deque[tuple[T, Future[Result]]] = deque()
        for item in items:
            pending.append((item, pool.submit(function, item)))
            if len(pending) > _AT_ONCE:
                first, future = pending.popleft()
                yield first, future.result()
        for first, future in pending:
            yield first, future.result()
    import pyarrow

    pyarrow.system_memory_pool().release_unused()  # memory of ended threads, which nothing else releases
