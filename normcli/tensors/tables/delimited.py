"""Reading CSV and its relatives: lines of cells with a delimiter between them, and quotes where needed."""

from __future__ import annotations

import csv
import io
import json
import math
import re
import warnings
from itertools import chain, islice
from operator import methodcaller
from typing import TYPE_CHECKING, Any, BinaryIO

import numpy as np

from normcli.dtypes import LARGEST_EXACT
from normcli.errors import DataError, UsageError
from normcli.printable import format_count
from normcli.tensors.spool import keep_open
from normcli.tensors.tables.arrow import find_parser, find_splitter, map_ahead
from normcli.tensors.tables.column_choice import choose_columns
from normcli.tensors.tables.line_records import (
    DELIMITERS,
    LineRecords,
    count_ends,
    is_blank,
    iterate_records,
    quote,
    read_name,
    split_raw,
    unquote,
)
from normcli.tensors.tables.numerals import AS_PYTHON, Numerals, is_number_otherwise, list_padded
from normcli.tensors.tables.tables import Block, FileTable
from normcli.tensors.tables.text_columns import SPELLED_MISSING, CellReader, list_text_dtypes, settle_text

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

    from normcli.tensors.tables.numerals import Label
    from normcli.tensors.tables.table_options import TableOptions

_GUESSED_FROM = 20
"""The number of records from which the delimiter is guessed."""

_NUMBER = re.compile(r"-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][-+]?[0-9]+)?")
"""A number as JSON writes it."""


class Lines:
    """The rows of a delimited text file, as `tables.TextRows`.

    A record is a line, or several lines if a quoted cell contains line ends. Blank lines are skipped, unless
    the table has one column: there a blank line is an empty cell, except at the end of the file. If `options`
    has no delimiter, it is guessed, and `usual` is tried first.

    Raises
    ------
    DataError
        If the file is empty or no text table.
    UsageError
        If decimal point and separator of thousands are the same.
    """

    is_picked = False

    def __init__(self, stream: BinaryIO, name: str, options: TableOptions, usual: str) -> None:
        if options.thousands == options.decimal:
            same, other = options.decimal, {".": ",", ",": "."}[options.decimal]
            raise UsageError(
                f"--thousands {same} is the decimal point as well; give --decimal {other} beside it"
            )
        self.name, self.numerals = name, Numerals(options.decimal, options.thousands)
        self._stream = keep_open(stream, self)
        self.delimiter = options.delimiter or self._guess_delimiter(usual)
        first = self._read_first()
        filled = [record for record in first if not is_blank(record, self.delimiter)]
        if not filled:
            raise DataError(f"{name} is empty; rows of numbers are expected")
        cells = self._split_unquoted(filled[0])
        self.width = len(cells)
        self.first = f"line {first.index(filled[0]) + 1}"
        has_header = _looks_like_header(cells, self.numerals) if options.header is None else options.header
        self.names = tuple(map(read_name, self._split(filled[0]))) if has_header else None
        self.is_doubtful = options.header is None and not has_header and _holds_text(cells, self.numerals)
        self._skipped = first.index(filled[0]) + 1 if has_header else 0
        rows = (map(unquote, split_raw(record, self.delimiter)) for record in filled[has_header:])
        self.padded = frozenset(place for cells in rows for place in list_padded(cells))

    list_dtypes = staticmethod(list_text_dtypes)

    settle_text = settle_text

    def read_blocks(self, chosen: Sequence[int], dtype: type[np.generic]) -> Iterator[Block]:
        """Yield blocks of rows: the numbers of the columns with the indices `chosen`, in a dtype.

        `DataError` is raised for a row with too many or too few cells, `TextError` for a cell that is no number
        if the dtype is float64, `NotWholeError` for a cell that an integer dtype cannot hold.
        """
        for records, values in self._convert(chosen, dtype):
            if values is not None:
                yield Block(values)
            else:
                block = self._parse_quickly(records, chosen, dtype)
                yield block or CellReader(self, chosen, dtype).read(self._split_rows(records))

    def _convert(
        self, chosen: Sequence[int], dtype: type[np.generic]
    ) -> Iterator[tuple[LineRecords, NDArray[Any] | None]]:
        """Yield pairs (records, their numbers), None for the numbers where pyarrow is not used or fails."""
        parse = None
        if dtype is np.float64:
            size = self._stream.seek(0, io.SEEK_END)
            parse = find_parser(size, self.width, chosen, self.delimiter, self.numerals.decimal)
        if parse is None:
            return ((records, None) for records in self._read_data())
        return map_ahead(lambda records: parse(records.data) if records.data else None, self._read_data())

    def read_cells(self, delimiter: str | None) -> Iterator[list[str]]:
        """Yield the texts of each row's cells, as a file with this delimiter has them; None stands for JSON.

        Cells are quoted anew for another delimiter than this file's own, and not changed for its own.
        """
        for records in self._read_data():
            rows: Iterator[list[str]] = map(methodcaller("split", self.delimiter), records.texts)
            if not self._is_plain(records):
                rows = (self._split(record) for _, record in self._iterate_rows(records))
            if delimiter is None:
                rows = ([_to_json(unquote(cell)) for cell in cells] for cells in rows)
            elif delimiter != self.delimiter:
                rows = ([quote(unquote(cell), delimiter) for cell in cells] for cells in rows)
            yield from rows

    def _is_plain(self, records: LineRecords) -> bool:
        """Whether all records have as many cells as the table has columns, and no quotes."""
        if records.has_quotes:
            return False
        return set(map(methodcaller("count", self.delimiter), records.texts)) == {self.width - 1}

    def _guess_delimiter(self, usual: str) -> str:
        """Return the first delimiter that splits the first records into equally many cells, at least two.

        `usual` is tried first, and returned if none does. The decimal point is never the delimiter.
        """
        for delimiter in dict.fromkeys((usual, *DELIMITERS.values())):
            self.delimiter = delimiter
            filled = [record for record in self._read_first() if not is_blank(record, delimiter)]
            counts = {len(split_raw(record, delimiter)) for record in filled}
            if delimiter != self.numerals.decimal and len(counts) == 1 and counts != {1}:
                return delimiter
        return usual

    def _read_first(self) -> list[str]:
        """Return the texts of the first records."""
        return list(islice((record for records in self._iterate() for record in records.texts), _GUESSED_FROM))

    def _iterate(self) -> Iterator[LineRecords]:
        return iterate_records(self._stream, self.name, self.delimiter)

    def _read_data(self) -> Iterator[LineRecords]:
        """Yield the records after the header; in a table of one column, without blank ones at the end."""
        skipped, blank = self._skipped, 0
        for records in self._iterate():
            if skipped:
                count = len(records.texts)
                records, skipped = records.skip(skipped), max(0, skipped - count)
            if self.width == 1:
                texts, line = [""] * blank + records.texts, records.line - blank
                blank = 0
                while texts and not texts[-1].strip():
                    texts.pop()
                    blank += 1
                records = LineRecords(line, None, texts)
            if records.data or records.texts:
                yield records

    def _iterate_rows(self, records: LineRecords) -> Iterator[tuple[int, str]]:
        """Yield (number of its first line, text) of each record except blank ones, which are no rows."""
        line = records.line
        for record in records.texts:
            if self.width == 1 or not is_blank(record, self.delimiter):
                yield line, record
            line += 1 + (count_ends(record) if '"' in record else 0)

    def _parse_quickly(
        self, records: LineRecords, chosen: Sequence[int], dtype: type[np.generic]
    ) -> Block | None:
        """Return the chosen columns of records as a block of numbers, the fast way.

        None means that some cell may have to be read by `CellReader`: text, an odd spelling, or a large number.
        """
        if not self._is_plain(records):
            rows = self._split_quoted(records) if dtype is np.float64 else None
            return None if rows is None else self._parse_columns(list(zip(*rows, strict=True)), chosen)
        texts = records.texts
        decimal = self.numerals.decimal
        if decimal != ".":
            texts = [text.replace(".", "_").replace(decimal, ".") for text in texts]
        try:
            with warnings.catch_warnings(action="error"):
                values = np.loadtxt(
                    texts,
                    dtype,
                    delimiter=self.delimiter,
                    usecols=chosen,
                    ndmin=2,
                    comments=None,
                    encoding=None,
                )
        except (ValueError, Warning):
            if dtype is not np.float64:
                return None
            return self._parse_columns(self._split_plain(texts), chosen)
        return None if len(values) != len(texts) else self._make_block(values)

    def _split_plain(self, texts: Sequence[str]) -> list[list[str]]:
        """Return the columns of records without quotes."""
        cells = self.delimiter.join(texts).split(self.delimiter)
        return [cells[place :: self.width] for place in range(self.width)]

    def _parse_columns(self, columns: Sequence[Sequence[str]], chosen: Sequence[int]) -> Block | None:
        """Return the chosen columns as numbers, NaN for missing values; None if a cell may be no number."""
        columns = [[SPELLED_MISSING.get(cell, cell) for cell in columns[place]] for place in chosen]
        text = "".join(chain.from_iterable(columns))
        if "_" in text or not text.isascii():  # Python would read 1_000 as a number
            return None
        try:
            return self._make_block(np.array([list(map(float, column)) for column in columns]).T)
        except ValueError:
            return None

    def _split_quoted(self, records: LineRecords) -> list[list[str]] | None:
        """Return the cells of each row, quotes removed, by Python's `csv`; None if that may be wrong.

        It may be if a quote stands inside a cell, the decimal point is a comma, or a row has another width.
        """
        texts = [text for text in records.texts if self.width == 1 or not is_blank(text, self.delimiter)]
        beside = rf'[^\n"{re.escape(self.delimiter)}]'
        if self.numerals.decimal != "." or re.search(f'"(?={beside})(?<={beside}")', "\n".join(texts)):
            return None
        try:
            rows = list(csv.reader(texts, delimiter=self.delimiter))
        except csv.Error:  # raised for a cell that is too long for `csv`
            return None
        return rows if set(map(len, rows)) == {self.width} else None

    def _make_block(self, values: NDArray[Any]) -> Block | None:
        """Return numbers as a block; None if float64 may have rounded one."""
        is_large = values.dtype == np.float64 and bool((np.abs(values) >= LARGEST_EXACT).any())
        return None if is_large else Block(values)

    def read_columns(self, places: Sequence[int]) -> Iterator[Sequence[Any]]:
        """Yield blocks of rows: for each, a sequence with the texts of each column in `places`, quotes removed.

        A column's texts are a list of str, or a pyarrow array. `places` are the indices of the columns.
        """
        split = find_splitter(self.width, places, self.delimiter, "string") if self.width > 1 else None
        for records in self._read_data():
            if split is not None and records.data and (table := split(records.data)) is not None:
                yield [column.combine_chunks() for column in table.columns]
                continue
            if self._is_plain(records):
                columns = self._split_plain(records.texts)
            else:
                rows = self._split_quoted(records) or [cells for _, cells in self._split_rows(records)]
                columns = list(map(list, zip(*rows, strict=True))) or [[]] * self.width
            yield [columns[place] for place in places]

    def read_labels(self, places: Sequence[int]) -> Iterator[Label]:
        """Yield each row's cells of some columns as texts, an empty cell as None."""
        for columns in self.read_columns(places):
            lists = (column if isinstance(column, list) else column.to_pylist() for column in columns)
            yield from zip(*([cell or None for cell in cells] for cells in lists), strict=True)

    def iterate_texts(self) -> Iterator[tuple[str, list[str]]]:
        """Yield a pair for each row: `line 3` or the like, and its cells' texts without quotes."""
        return chain.from_iterable(map(self._split_rows, self._read_data()))

    def _split_rows(self, records: LineRecords) -> Iterator[tuple[str, list[str]]]:
        for line, record in self._iterate_rows(records):
            yield f"line {line}", self._split_unquoted(record, line)

    def _split(self, record: str, line: int = 0) -> list[str]:
        """Return the cells of a record with their quotes; raise `DataError` if they are too many or too few."""
        cells = record.split(self.delimiter) if '"' not in record else split_raw(record, self.delimiter)
        width = getattr(self, "width", len(cells))
        if len(cells) != width:
            count = format_count(len(cells), "cell")
            raise DataError(f"{self.name} is ragged: line {line} has {count}, the first row {width}")
        return cells

    def _split_unquoted(self, record: str, line: int = 0) -> list[str]:
        return [unquote(cell) for cell in self._split(record, line)]


def read_delimited(
    stream: BinaryIO, name: str, options: TableOptions, usual: str
) -> tuple[FileTable, str | None]:
    """Return the table of a text file, and a note on doubts about its column names, or None.

    Parameters
    ----------
    stream : BinaryIO
        A seekable stream, which is read anew for each pass over the rows.
    name : str
    options : TableOptions
    usual : str
        The delimiter that is tried first, such as `,` for `.csv`.

    Raises
    ------
    DataError
        If the file is empty or no text table, or its columns are not the wanted ones.
    UsageError
        If the options name a column that does not exist, or contradict each other.
    """
    lines = Lines(stream, name, options, usual)
    chosen, note = choose_columns(lines, options)
    if lines.is_doubtful:
        doubt = "its first row has text and numbers, and is taken for data: --header yes takes it for names"
        note = doubt if note is None else f"{doubt}; {note}"
    return FileTable(lines, chosen, lines.delimiter, lines.numerals.decimal), note


def _to_json(text: str) -> str:
    return text if _NUMBER.fullmatch(text) else json.dumps(text, ensure_ascii=False)


def reads_as_header(names: Sequence[str]) -> bool:
    """Whether names, written as the first row of a file, would be recognized as its header."""
    return _looks_like_header(names, AS_PYTHON)


def _holds_text(cells: Sequence[str], numerals: Numerals) -> bool:
    return any(numerals.read(cell) is None and not is_number_otherwise(cell) for cell in cells)


def _looks_like_header(cells: Sequence[str], numerals: Numerals) -> bool:
    """Whether no cell is a number, and at least one is not a missing value."""
    if any(map(is_number_otherwise, cells)):
        return False
    numbers = [numerals.read(cell) for cell in cells]
    return any(number is None for number in numbers) and all(
        number is None or math.isnan(number) for number in numbers
    )
