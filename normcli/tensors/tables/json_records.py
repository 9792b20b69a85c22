"""JSON as tables: an array of records (`[{"x": 1, "y": 2}, …]`), and JSON Lines, a record or a list a line."""

from __future__ import annotations

import json
import re
from itertools import chain
from operator import itemgetter
from typing import TYPE_CHECKING, Any, BinaryIO, NoReturn

import numpy as np

from normcli.dtypes import LARGEST_EXACT
from normcli.errors import DataError
from normcli.printable import shorten
from normcli.tensors.formats.json_items import AS_NUMBERS, AS_WRITTEN, Digits, read_array, read_lines
from normcli.tensors.formats.json_lists import TENSOR_KEY, NestedLists, Parsed, describe_number, to_array
from normcli.tensors.spool import keep_open
from normcli.tensors.tables.column_choice import choose_columns, name_all
from normcli.tensors.tables.delimited_writing import holds_nan, iterate_row_blocks, place_numbers, write_rows
from normcli.tensors.tables.line_records import quote
from normcli.tensors.tables.numerals import AS_PYTHON
from normcli.tensors.tables.tables import Block, FileTable
from normcli.tensors.tables.text_columns import CellReader, list_text_dtypes, settle_text

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from numpy.typing import NDArray

    from normcli.tensors.formats.json_items import Decoders
    from normcli.tensors.tables.numerals import Label
    from normcli.tensors.tables.table_options import TableOptions

_NUMBERS = {int, float, bool, type(None)}

_HALF = re.compile("[\ud800-\udfff]")
"""Half of a surrogate pair, which JSON can escape and UTF-8 cannot encode."""


class Records:
    """The rows of a file of JSON objects with equal names, as `tables.TextRows`.

    Parameters
    ----------
    stream : BinaryIO
        A seekable stream, which is read anew for each pass over the rows.
    name : str
        The file's name in messages.
    is_lines : bool
        Whether the file is JSON Lines; otherwise it is one array.

    Raises
    ------
    DataError
        If the file is empty or malformed.
    """

    is_picked = False
    padded: frozenset[int] = frozenset()
    numerals = AS_PYTHON
    delimiter = None

    def __init__(self, stream: BinaryIO, name: str, *, is_lines: bool) -> None:
        self.name = name
        self._stream, self._is_lines = keep_open(stream, self), is_lines
        first = next(chain.from_iterable(self._read_items(AS_NUMBERS)), None)
        if first is None:
            raise DataError(f"{name} is empty; records of numbers are expected")
        self._keys: tuple[str, ...] = tuple(first)
        self.names: tuple[str, ...] | None = self._keys
        self.width = len(self._keys)
        self.first = "record 1"

    list_dtypes = staticmethod(list_text_dtypes)

    settle_text = settle_text

    def read_blocks(self, chosen: Sequence[int], dtype: type[np.generic]) -> Iterator[Block]:
        """Yield blocks of rows: the numbers of the columns with the indices `chosen`, in a dtype.

        Raises
        ------
        TextError
            If the dtype is float64, and a cell is no number.
        NotWholeError
            If the dtype is of integers, and a cell is not one of them.
        DataError
            If a record is malformed, or has other names than the first.
        """
        choose = _get_all_of(chosen)
        for first, rows in self._read_rows(AS_NUMBERS):
            block = _convert_quickly(list(map(choose, rows)), dtype)
            yield block or CellReader(self, chosen, dtype).read(_name_texts(rows, first))

    def read_cells(self, delimiter: str | None) -> Iterator[list[str]]:
        """Yield for each row the texts of its cells, as they are to be written to another file.

        `delimiter` is the delimiter of that file, for which cells are quoted; None stands for JSON.
        """
        for _, rows in self._read_rows(AS_WRITTEN):
            for cells in rows:
                if delimiter is None:
                    yield [_encode(cell) for cell in cells]
                else:
                    yield [quote(self._require_text(_to_text(cell)), delimiter) for cell in cells]

    def read_columns(self, places: Sequence[int]) -> Iterator[list[list[str]]]:
        """Yield blocks of rows: for each, a list of JSON texts per column; `places` are columns' indices."""
        for _, rows in self._read_rows(AS_WRITTEN):
            yield [[_encode(cells[place]) for cells in rows] for place in places]

    def read_labels(self, places: Sequence[int]) -> Iterator[Label]:
        """Yield a tuple for each record: a text for each of some columns, by which rows are grouped.

        All spellings of a number have one text; a string is its own. null and NaN are None.
        """
        choose = _get_all_of(places)
        for _, rows in self._read_rows(AS_WRITTEN):
            yield from (tuple(map(self._name, choose(cells))) for cells in rows)

    def _name(self, cell: Any) -> str | None:
        if cell is None or isinstance(cell, Digits | float):
            return AS_PYTHON.name(str(cell))
        return self._require_text(_to_text(cell))

    def _require_text(self, text: str) -> str:
        """Return a text; raise `DataError` if UTF-8 cannot encode it."""
        if not text.isascii() and _HALF.search(text) is not None:
            raise DataError(f"{self.name} holds half a surrogate pair, which a text file cannot hold")
        return text

    def _read_items(self, decoders: Decoders) -> Iterator[list[Any]]:
        return (read_lines if self._is_lines else read_array)(self._stream, self.name, decoders)

    def _read_rows(self, decoders: Decoders) -> Iterator[tuple[int, list[tuple[Any, ...]]]]:
        """Yield pairs (number of the first record, cells of some records, each in the order of `names`).

        Raises `DataError` if a record has other names than the first.
        """
        get_cells, number = _get_all_of(self._keys), 1
        for items in self._read_items(decoders):
            try:
                rows = list(map(get_cells, items))
                fits = set(map(len, items)) <= {self.width}
            except (KeyError, TypeError):
                fits = False
            if not fits:
                self._refuse(items, number)
            yield number, rows
            number += len(rows)

    def _refuse(self, items: Sequence[Any], number: int) -> NoReturn:
        """Raise `DataError` about the first item that is no object with the names of the first record."""
        names = set(self._keys)
        number, item = next(
            (number, item)
            for number, item in enumerate(items, number)
            if not isinstance(item, dict) or item.keys() != names
        )
        if not isinstance(item, dict):
            raise DataError(f"{self.name}, record {number} is no object, as those before it are")
        missing, more = names - item.keys(), item.keys() - names
        what = f"has no {_join(missing)}" if missing else f"also has {_join(more)}"
        raise DataError(f"{self.name}, record {number} {what}; all records have the names of the first")

    def iterate_texts(self) -> Iterator[tuple[str, list[str]]]:
        """Yield a pair for each record: its position for messages (`record 3`), and its cells' texts."""
        for first, rows in self._read_rows(AS_NUMBERS):
            yield from _name_texts(rows, first)


def read_records(
    stream: BinaryIO, name: str, options: TableOptions, *, is_lines: bool
) -> tuple[FileTable, str | None]:
    """Return the table of JSON records, and a note on its columns, or None.

    Parameters
    ----------
    stream : BinaryIO
        A seekable stream, which is read anew for each pass over the rows.
    name : str
    options : TableOptions
    is_lines : bool
        Whether the file is JSON Lines; otherwise it is one array.

    Raises
    ------
    DataError
        If the file is empty or malformed, or its columns are not the wanted ones.
    UsageError
        If the options name a column that does not exist, or contradict each other.
    """
    records = Records(stream, name, is_lines=is_lines)
    chosen, note = choose_columns(records, options)
    return FileTable(records, chosen), note


def read_lists(stream: BinaryIO, name: str) -> Parsed:
    """Return the tensor of JSON Lines, in which each line is an item along the first axis: a number or list.

    Raises
    ------
    DataError
        If a line is no JSON, or the items do not form a rectangular array of numbers.
    """
    return to_array(list(chain.from_iterable(read_lines(stream, name, AS_NUMBERS))), name)


def write_records(
    stream: BinaryIO, values: NDArray[Any], names: Sequence[str], table: FileTable | None, *, is_lines: bool
) -> None:
    """Write a tensor of two axes as JSON records, one on each line.

    Parameters
    ----------
    stream : BinaryIO
    values : ndarray
        Shape (rows, columns).
    names : sequence of str
        The names of the values' columns.
    table : FileTable or None
        The table that the values came from; its other columns are written too, in the file's order.
    is_lines : bool
        Whether the file is JSON Lines; otherwise the records are in one array.

    Raises
    ------
    UsageError
        If two columns have the same name.
    DataError
        If the table's file has changed since its numbers were read.
    """
    names = name_all(names, table, "JSON records")
    keys = [json.dumps(name, ensure_ascii=False) for name in names]
    rows: Iterator[list[str]] = chain.from_iterable(map(_format_rows, iterate_row_blocks(values)))
    keeps_missing = table is not None and holds_nan(values)
    if table is not None and (keeps_missing or not table.is_whole):
        rows = place_numbers(rows, table, None, keeps_missing=keeps_missing)
    before, between, after = ("", "\n", "\n") if is_lines else ("[\n", ",\n", "\n]\n")
    stream.write(before.encode())
    texts = ("{" + ", ".join(map(": ".join, zip(keys, cells, strict=True))) + "}" for cells in rows)
    write_rows(stream, texts, between)
    stream.write(after.encode())


def write_lists(stream: BinaryIO, items: Iterable[NDArray[Any]]) -> None:
    """Write tensors, or the items along a tensor's first axis, as nested lists, one on each line."""
    for item in items:
        stream.writelines(piece.encode() for piece in NestedLists(item).format_json())
        stream.write(b"\n")


def starts_like_records(head: bytes) -> bool:
    """Whether a JSON text begins like an array of objects: `[{`."""
    text = head.removeprefix(b"\xef\xbb\xbf").lstrip()
    return text[:1] == b"[" and text[1:].lstrip()[:1] == b"{"


def starts_like_lines(text: bytes) -> bool:
    """Whether a text begins like JSON Lines and not like one JSON value.

    Its first line must be complete JSON. If more text follows, that must begin with the same character; if none
    does, the line must be an object without the member `normalized`.
    """
    first, _, behind = text.partition(b"\n")
    try:
        value = json.loads(first)
    except (ValueError, RecursionError):
        return False
    if behind.lstrip():
        return behind.lstrip()[:1] == first[:1]
    return isinstance(value, dict) and TENSOR_KEY not in value


def _encode(value: Any) -> str:
    """Return a parsed value as the text of strict JSON, its numbers with the digits of the input."""
    if isinstance(value, Digits):
        return value
    if isinstance(value, list):
        return f"[{', '.join(map(_encode, value))}]"
    if isinstance(value, dict):
        return "{" + ", ".join(f"{_encode(name)}: {_encode(member)}" for name, member in value.items()) + "}"
    if isinstance(value, float):
        return json.dumps(describe_number(value))
    escapes = isinstance(value, str) and not value.isascii() and _HALF.search(value) is not None
    return json.dumps(value, ensure_ascii=escapes)


def _get_all_of(keys: Sequence[Any]) -> Callable[[Any], tuple[Any, ...]]:
    """Return a function that takes an object and returns the tuple of `object[key]` for all keys."""
    if len(keys) > 1:
        return itemgetter(*keys)
    return lambda found: tuple(found[key] for key in keys)


def _convert_quickly(rows: Sequence[tuple[Any, ...]], dtype: type[np.generic]) -> Block | None:
    """Return rows as a float64 block; None for another dtype, other cells than numbers, or a number ≥ 2⁵³."""
    if dtype is not np.float64 or not set(map(type, chain.from_iterable(rows))) <= _NUMBERS:
        return None
    try:
        values = np.array(rows, dtype)
    except OverflowError:
        return None
    return None if (np.abs(values) >= LARGEST_EXACT).any() else Block(values)


def _name_texts(rows: Sequence[tuple[Any, ...]], first: int) -> Iterator[tuple[str, list[str]]]:
    for number, row in enumerate(rows, first):
        yield f"record {number}", [_to_text(int(cell) if isinstance(cell, bool) else cell) for cell in row]


def _to_text(cell: Any) -> str:
    """Return a value as the text of a cell in a delimited file; null becomes an empty text."""
    if cell is None:
        return ""
    return cell if isinstance(cell, str) else json.dumps(cell) if isinstance(cell, float) else _encode(cell)


def _format_rows(rows: NDArray[Any]) -> list[list[str]]:
    """Return the JSON texts of each row's numbers."""
    if rows.dtype.kind in "iuf" and np.isfinite(rows).all():  # `repr` of a list writes them as JSON does
        return [line.split(", ") for line in repr(rows.tolist())[2:-2].split("], [")]
    return [
        [json.dumps(value if isinstance(value, int) else describe_number(value)) for value in row]
        for row in rows.tolist()
    ]


def _join(names: set[str]) -> str:
    return ", ".join(shorten(repr(name)) for name in sorted(names))
