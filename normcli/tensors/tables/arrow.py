"""Large delimited files by pyarrow (the extra `tables`): the same results as without it, faster."""

from __future__ import annotations

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
"""The least bytes of text that pyarrow reads: importing it takes as long as reading some MiB without it."""

LEAST_VALUES = LEAST_BYTES // 16
"""The fewest numbers that pyarrow writes."""

_DELIMITERS = ",;\t|"

_MOST_COLUMNS = 256
"""With more, a block has so few rows that pyarrow's work for each column takes longer than the parsing."""

_AT_ONCE = 2
"""Blocks that are worked on at a time, each in a thread."""

_LEAST_FRACTION, _LEAST_POWER = 1e-4, 1e10
"""Between these, pyarrow writes fractions as Python does; others, and whole numbers, in another way."""


def find_parser(size: int, width: int, chosen: Sequence[int], delimiter: str, decimal: str) -> Parser | None:
    """Return a function that parses lines with pyarrow, or None where that is missing or gains nothing.

    It takes lines without quotes and returns the numbers of the chosen columns, shape (rows, columns); or None
    where a cell may be no number, missing in unusual words, or a whole number that float64 may have rounded.

    Parameters
    ----------
    size : int
        Of the whole text in bytes.
    width : int
        How many columns it has.
    chosen : sequence of int
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
            if np.isnan(column).sum() > numbers.null_count:  # of words that only pyarrow may know
                return None
        return None if (np.abs(values) >= LARGEST_EXACT).any() else values

    return parse


def find_splitter(
    width: int, chosen: Sequence[int], delimiter: str, kind: str, decimal: str = "."
) -> Callable[[bytes], Any] | None:
    """Return a function that gives columns of lines as a table of pyarrow's; None where pyarrow is missing.

    It takes lines without quotes, and returns None where one has another number of cells, or a cell is of
    another type. Only numbers may be missing.

    Parameters
    ----------
    width : int
        How many columns the lines have.
    chosen : sequence of int
    delimiter : str
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
    parsing = csv.ParseOptions(delimiter=delimiter, quote_char=False, double_quote=False)
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
        reading = csv.ReadOptions(column_names=names, block_size=len(data) + 1, use_threads=False)
        try:
            return csv.read_csv(pyarrow.BufferReader(data), reading, parsing, converting, pool)
        except pyarrow.ArrowInvalid:
            return None

    return split


def _copy_column(chunks: Sequence[Any], column: NDArray[np.float64]) -> None:
    """Copy the numbers of pyarrow's arrays; missing values become NaN.

    From their buffers: pyarrow's own way to NumPy imports pandas where that is installed.
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
    """Return the numbers of an array of pyarrow's, where they lie; anything where one is missing."""
    numbers, end = array.buffers()[1], array.offset + len(array)
    if dtype == np.bool_:
        return _find_bits(numbers, array).astype(np.bool_)
    found: NDArray[Any] = np.frombuffer(numbers or b"", dtype, end if len(array) else 0)[array.offset :]
    return found


def find_missing(array: Any) -> NDArray[np.bool_] | None:
    """Return which values of an array of pyarrow's are missing; None where none is."""
    if not array.null_count:
        return None
    bits = array.buffers()[0]
    missing: NDArray[np.bool_] = _find_bits(bits, array) == 0
    return missing


def _find_bits(bits: Any, array: Any) -> NDArray[np.uint8]:
    """Return the bits that an array of pyarrow's has of each value."""
    end = array.offset + len(array)
    return np.unpackbits(np.frombuffer(bits or b"", np.uint8), count=end, bitorder="little")[array.offset :]


def find_formatter(values: NDArray[Any], delimiter: str, format_rows: Formatter) -> Formatter | None:
    """Return a function that formats rows with pyarrow, or None where that is missing or gains nothing.

    Parameters
    ----------
    values : ndarray
        All that is to be written.
    delimiter : str
    format_rows : callable
        Formats those rows that pyarrow would write in another way; what is returned gives the same text.
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
        with np.errstate(invalid="ignore"):  # of signaling NaN
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
    """Yield each item with what a parser or formatter makes of it; threads go on with those behind it."""
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

    pyarrow.system_memory_pool().release_unused()  # of all threads, whose memory nothing else asks for
