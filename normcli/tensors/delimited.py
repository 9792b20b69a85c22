"""CSV and its relatives: lines of cells, with a delimiter between them and quotes around what needs them."""

from __future__ import annotations

import io
import json
import math
import re
import warnings
from functools import lru_cache
from itertools import chain, islice
from operator import methodcaller
from typing import TYPE_CHECKING, Any, BinaryIO, NamedTuple

import numpy as np

from normcli.errors import DataError, UsageError
from normcli.printable import shorten
from normcli.tensors.spool import keep_open
from normcli.tensors.tables import (
    LARGEST_EXACT,
    Block,
    CellReader,
    Table,
    choose_columns,
    iterate_rows,
    to_number,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

    from normcli.tensors.tables import TableOptions

DELIMITERS = {"comma": ",", "semicolon": ";", "tab": "\t", "bar": "|"}
"""What may stand between cells, by name; the first that splits all of the first lines alike is taken."""

_GUESSED_FROM = 20
"""How many records are looked at to find the delimiter."""

_TEXT_AT_ONCE = 1 << 20
"""Characters that are read at a time."""

_LONGEST_RECORD = 1 << 20
"""Characters that a record with line ends in quotes may have."""

_NUMBER = re.compile(r"-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][-+]?[0-9]+)?")
"""A number as JSON writes it."""


class _Records(NamedTuple):
    """Consecutive records of a file.

    Parameters
    ----------
    line : int
        That the first begins in.
    texts : list of str
        Without the ends of their lines.
    """

    line: int
    texts: list[str]


class Lines:
    """The rows of a delimited text file; see `tables.Rows`.

    A record is a line, or several where a quoted cell holds line ends. A line with nothing in it is no row,
    unless the table has one column: there it is an empty cell, but at the end of the file.
    """

    def __init__(self, stream: BinaryIO, name: str, options: TableOptions, usual: str) -> None:
        self.name, self.decimal = name, options.decimal
        self._stream = keep_open(stream, self)
        first = list(islice((record for records in self._read() for record in records.texts), _GUESSED_FROM))
        filled = [record for record in first if record.strip()]
        if not filled:
            raise DataError(f"{name} is empty; rows of numbers are expected")
        self.delimiter = options.delimiter or _guess_delimiter(filled, usual, options.decimal)
        cells = self._split_unquoted(filled[0])
        self.width = len(cells)
        has_header = _looks_like_header(cells, options.decimal) if options.header is None else options.header
        self.names = tuple(cell.strip() for cell in cells) if has_header else None
        self._skipped = first.index(filled[0]) + 1 if has_header else 0

    def read_blocks(self, chosen: Sequence[int], dtype: type[np.generic]) -> Iterator[Block]:
        """Yield the numbers of some columns; raise `NotWholeError` where an integer dtype cannot hold one."""
        for records in self._read_data():
            block = self._parse_quickly(records.texts, chosen, dtype)
            yield block or self._parse_slowly(records, chosen, dtype)

    def read_cells(self, delimiter: str | None) -> Iterator[list[str]]:
        """Yield the texts of each row's cells: as they stand in the file, if the delimiter is its own."""
        for records in self._read_data():
            for _, record in self._iterate_rows(records):
                cells = self._split(record)
                if delimiter is None:
                    cells = [_to_json(_unquote(cell)) for cell in cells]
                elif delimiter != self.delimiter:
                    cells = [quote(_unquote(cell), delimiter) for cell in cells]
                yield cells

    def _read(self) -> Iterator[_Records]:
        """Yield the records of the file, some at a time."""
        self._stream.seek(0)
        text = io.TextIOWrapper(self._stream, "utf-8-sig", newline="")
        line = 1
        try:
            while piece := text.read(_TEXT_AT_ONCE):
                piece += text.readline()
                if '"' in piece:
                    records = list(
                        self._join_quoted(chain(io.StringIO(piece, newline=""), text), len(piece), line)
                    )
                else:
                    records = piece.replace("\r\n", "\n").replace("\r", "\n").removesuffix("\n").split("\n")
                yield _Records(line, records)
                line += sum(1 + _count_ends(record) for record in records) if '"' in piece else len(records)
        except UnicodeDecodeError as error:
            raise DataError(f"{self.name} is no text table: behind line {line - 1} it is not UTF-8") from error
        finally:
            text.detach()

    def _join_quoted(self, lines: Iterator[str], least: int, number: int) -> Iterator[str]:
        """Yield records of at least so many characters together; quoted cells may hold line ends."""
        taken, record, opened = 0, "", number
        for line in lines:
            taken += len(line)
            record += line
            complete = record.rstrip("\r\n") if record[-1:] in "\r\n" else record
            if '"' not in record or _is_complete(complete, getattr(self, "delimiter", ",")):
                yield complete
                record, opened = "", number + 1
                if taken >= least:
                    return
            elif len(record) > _LONGEST_RECORD:
                break
            number += 1
        if record:
            raise DataError(f"{self.name} is no text table: a quote opens in line {opened} and never closes")

    def _read_data(self) -> Iterator[_Records]:
        """Yield the records behind the header, without the blank ones at the end."""
        skipped, blank = self._skipped, 0
        for line, texts in self._read():
            if skipped:
                line, texts, skipped = line + skipped, texts[skipped:], max(0, skipped - len(texts))
            if self.width == 1:
                texts, line, blank = [""] * blank + texts, line - blank, 0
                while texts and not texts[-1].strip():
                    texts.pop()
                    blank += 1
            if texts:
                yield _Records(line, texts)

    def _iterate_rows(self, records: _Records) -> Iterator[tuple[int, str]]:
        """Yield the rows among records, each with its line."""
        line = records.line
        for record in records.texts:
            if self.width == 1 or record.strip():
                yield line, record
            line += 1 + _count_ends(record)

    def _parse_quickly(self, texts: list[str], chosen: Sequence[int], dtype: type[np.generic]) -> Block | None:
        """Return the numbers of records, or None where a cell is missing or anything is wrong."""
        has_quotes = any('"' in text for text in texts)
        if has_quotes or set(map(methodcaller("count", self.delimiter), texts)) != {self.width - 1}:
            return None
        if self.decimal != ".":
            texts = [text.replace(".", "_").replace(self.decimal, ".") for text in texts]
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("error")
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
            return None
        is_large = dtype is np.float64 and bool((np.abs(values) >= LARGEST_EXACT).any())
        return None if is_large or len(values) != len(texts) else Block(values)

    def _parse_slowly(self, records: _Records, chosen: Sequence[int], dtype: type[np.generic]) -> Block:
        """Return the numbers of records cell by cell, or say where they are malformed."""
        reader = CellReader(self, chosen, dtype, self.decimal)
        for line, record in self._iterate_rows(records):
            reader.add(self._split_unquoted(record, line), f"line {line}")
        return reader.finish()

    def _split(self, record: str, line: int = 0) -> list[str]:
        """Return the cells of a record as they stand there."""
        cells = record.split(self.delimiter) if '"' not in record else _split_raw(record, self.delimiter)
        width = getattr(self, "width", len(cells))
        if len(cells) != width:
            raise DataError(f"{self.name} is ragged: line {line} has {len(cells)} cells, the first row {width}")
        return cells

    def _split_unquoted(self, record: str, line: int = 0) -> list[str]:
        return [_unquote(cell) for cell in self._split(record, line)]


def read_delimited(stream: BinaryIO, name: str, options: TableOptions, usual: str) -> tuple[Table, str | None]:
    """Return the table that a text file holds, and a note of how its columns were found.

    Parameters
    ----------
    stream : BinaryIO
        Seekable; it is read again whenever rows are asked for.
    name : str
    options : TableOptions
    usual : str
        The delimiter of such files, where several would do.

    Raises
    ------
    DataError
        If the file is empty, or its columns are not those that are wanted.
    UsageError
        If the options name a column that is not there.
    """
    lines = Lines(stream, name, options, usual)
    chosen, note = choose_columns(lines, options)
    return Table(lines, chosen, lines.delimiter, lines.decimal), note


def write_delimited(
    stream: BinaryIO, values: NDArray[Any], names: Sequence[str] | None, table: Table | None, delimiter: str
) -> None:
    """Write a tensor of two axes, with the names of its columns if it has any.

    Parameters
    ----------
    stream : BinaryIO
    values : ndarray
        Shape (rows, columns).
    names : sequence of str or None
        Of the values' columns.
    table : Table or None
        Where the values came from: they are written in their places among its other columns, as it is
        delimited itself.
    delimiter : str
        Otherwise.
    """
    decimal = "."
    if table is not None:
        names = table.rows.names
        if table.delimiter is not None and "\t" not in (delimiter, table.delimiter):
            delimiter, decimal = table.delimiter, table.decimal

    def format_rows(rows: NDArray[Any]) -> list[list[str]]:
        texts = [[to_cell(value) for value in row] for row in rows.tolist()]
        return texts if decimal == "." else [[text.replace(".", decimal) for text in row] for row in texts]

    if names is not None:
        stream.write(f"{delimiter.join(quote(name, delimiter) for name in names)}\n".encode())
    rows = iterate_rows(values, table, format_rows, delimiter)
    while block := list(islice(rows, 1024)):
        stream.write("".join(f"{delimiter.join(cells)}\n" for cells in block).encode())


def to_cell(value: float | bool) -> str:
    """Return a number as CSV and `--print` have it: in full precision, booleans as 0 and 1."""
    return repr(int(value)) if isinstance(value, bool) else repr(value)


def find_delimiter(word: str) -> str:
    """Return the delimiter that an option names: one character, or its name.

    Raises
    ------
    UsageError
        If it is neither.
    """
    if word.lower() in DELIMITERS:
        return DELIMITERS[word.lower()]
    character = "\t" if word == r"\t" else word
    if len(character) != 1 or character in '"\r\n\0' or character.isalnum():
        raise UsageError(
            f"--delimiter {shorten(word)!r} is no delimiter; give {', '.join(DELIMITERS)} or one character"
        )
    return character


def quote(cell: str, delimiter: str) -> str:
    """Return a cell as it is written: in quotes, where it would otherwise be read as another."""
    if any(character in cell for character in (delimiter, '"', "\n", "\r")) or cell != cell.strip():
        return '"' + cell.replace('"', '""') + '"'
    return cell


def _unquote(cell: str) -> str:
    """Return what a cell holds."""
    if not cell.startswith('"'):
        return cell
    inside, _, behind = cell[1:].rpartition('"')
    return inside.replace('""', '"') + behind


def _to_json(text: str) -> str:
    return text if _NUMBER.fullmatch(text) else json.dumps(text, ensure_ascii=False)


@lru_cache
def _match_cell(delimiter: str) -> re.Pattern[str]:
    other = f"[^{re.escape(delimiter)}]*"
    return re.compile(rf'(?:"(?:[^"]|"")*"{other}|(?!"){other})')


def _is_complete(record: str, delimiter: str) -> bool:
    """Whether every quote that opens a cell is closed."""
    place, cell = 0, _match_cell(delimiter)
    while found := cell.match(record, place):
        if found.end() == len(record):
            return True
        place = found.end() + 1
    return False


def _split_raw(record: str, delimiter: str) -> list[str]:
    """Return the cells of a record with quotes, as they stand there."""
    cells, place, cell = [], 0, _match_cell(delimiter)
    while found := cell.match(record, place):
        cells.append(found[0])
        if found.end() == len(record):
            break
        place = found.end() + 1
    return cells


def _count_ends(record: str) -> int:
    """Return how many line ends a record holds."""
    return record.count("\n") + record.count("\r") - record.count("\r\n")


def _guess_delimiter(records: Sequence[str], usual: str, decimal: str) -> str:
    """Return the first delimiter that splits all records alike, into several cells; else the usual one."""
    for delimiter in dict.fromkeys((usual, *DELIMITERS.values())):
        counts = {len(_split_raw(record, delimiter)) for record in records}
        if delimiter != decimal and len(counts) == 1 and counts != {1}:
            return delimiter
    return usual


def _looks_like_header(cells: Sequence[str], decimal: str) -> bool:
    """Whether no cell is a number, and at least one is no missing value either."""
    numbers = [to_number(cell, decimal) for cell in cells]
    return any(number is None for number in numbers) and all(
        number is None or math.isnan(number) for number in numbers
    )
