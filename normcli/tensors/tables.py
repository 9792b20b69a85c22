"""Tables of named columns: which columns are numbers to work on, and which pass through as they stand."""

from __future__ import annotations

import math
import re
import shlex
from collections import Counter
from itertools import islice
from typing import TYPE_CHECKING, Any, BinaryIO, NamedTuple, Protocol

import numpy as np

from normcli.dtypes import LARGEST_EXACT
from normcli.errors import DataError, UsageError
from normcli.printable import format_count, shorten
from normcli.tensors.columns import list_names, match_names
from normcli.tensors.opened import refuse_changed
from normcli.tensors.pieces import forget
from normcli.tensors.spool import Collected

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from typing import NoReturn

    from numpy.typing import NDArray

    from normcli.tensors.opened import Opened

MISSING = ("", "-", "NA", "N/A", "#N/A", "<NA>", "nan", "null", "none")
"""What stands in the cell of a missing value, in upper or lower case: it is read as NaN."""

_NAN_TEXTS = ("nan", '"nan"')
"""NaN as delimited files and JSON have it."""

SPELLED_MISSING = {
    spelled: "nan"
    for word in (*MISSING, "NaN")
    for spelled in (word, word.lower(), word.upper(), word.capitalize())
}
"""How missing values are usually written, and as what Python reads NaN."""

_MISSING = frozenset(word.lower() for word in MISSING)

_VALUES_AT_ONCE = 1 << 15
"""How many numbers are written at a time: their text is in memory."""

_ROWS_AT_ONCE = 1024
"""How many rows are written at a time, where they are put together from several sources."""

_WHOLE = re.compile(r"\s*[-+]?[0-9]+\s*")

_NAMED = re.compile(r"""\s*(?:("(?:[^"]|"")*")|([^,"][^,]*))\s*(?:,|$)""")
"""A name in a list of names: in quotes where it holds a comma."""

_LIST_OF_NAMES = re.compile(rf"(?:{_NAMED.pattern})+")

_COMMA = re.compile(r"[-+]?[0-9]+,[0-9]+")

_PLACES = re.compile(r"([0-9]+)(?:-([0-9]+))?")
"""A column by its number, or a range of them."""


class TableOptions(NamedTuple):
    """What the caller says of a table; the file itself tells the rest.

    Parameters
    ----------
    columns, exclude : str or None
        The columns that are worked on, or those that are not: names and numbers from 0, with commas between;
        `2-5` is a range of numbers.
    delimiter : str or None
        What stands between the cells of a line.
    decimal : str
        The decimal point of its numbers: `.` or `,`.
    header : bool or None
        Whether the first row is the names of the columns.
    wanted : tuple of str or None
        The names of the columns that the tensor must have, in its order.
    """

    columns: str | None = None
    exclude: str | None = None
    delimiter: str | None = None
    decimal: str = "."
    header: bool | None = None
    wanted: tuple[str, ...] | None = None

    def refuse(self, subject: str, *, but: Sequence[str] = ()) -> None:
        """Raise `UsageError` if anything but some options is given, of what is no table or none of cells.

        Parameters
        ----------
        subject : str
            What the options are given for, and is none of their kind.
        but : sequence of str
            The options that are not refused.
        """
        for name in ("columns", "exclude", "delimiter", "decimal", "header"):
            if name not in but and getattr(self, name) != getattr(AS_FOUND, name):
                kind = "of CSV and TSV" if name in ("delimiter", "decimal", "header") else "of tables"
                raise UsageError(f"--{name} is {kind}; {subject} is none")


AS_FOUND = TableOptions()
"""All columns of a table, as the file itself tells."""


UNNAMED = "its columns have no names: they are taken to be {}"
"""What there is to know of a table or an array without names, where names are wanted."""


class Block(NamedTuple):
    """Some rows of a table, as numbers.

    Parameters
    ----------
    values : ndarray
        Shape (rows, chosen columns).
    rounded : str or None
        The first whole number that a float64 cannot hold, and where it stands.
    """

    values: NDArray[Any]
    rounded: str | None = None


class NotWholeError(Exception):
    """A cell is no whole number of the dtype that is asked for."""


def list_text_dtypes(chosen: Sequence[int]) -> Sequence[type[np.generic]]:
    """Return the dtypes that numbers in text are read in, whichever columns they are of."""
    return np.float64, np.int64, np.uint64


class Rows(Protocol):
    """The rows of a file, as often as they are asked for.

    Attributes
    ----------
    name : str
        Of the file, for messages.
    names : tuple of str or None
        Of all its columns.
    width : int
        How many columns there are.
    first : str
        Where the first row stands, for messages: `line 1`.
    """

    name: str
    names: tuple[str, ...] | None
    width: int
    first: str

    def list_dtypes(self, chosen: Sequence[int]) -> Sequence[type[np.generic]]:
        """Return the dtypes that some columns are read in: the first that holds all exactly is taken."""

    def read_blocks(self, chosen: Sequence[int], dtype: type[np.generic]) -> Iterator[Block]:
        """Yield the numbers of some columns; raise `NotWholeError` where an integer dtype cannot hold one."""

    def read_cells(self, delimiter: str | None) -> Iterator[list[str]]:
        """Yield the texts of each row's cells for a file with a delimiter, or for JSON if that is None."""


class Table(NamedTuple):
    """A file of rows, and the columns of it that are the tensor.

    Parameters
    ----------
    rows : Rows
    chosen : tuple of int
        The places of the tensor's columns in the file, in the tensor's order.
    delimiter, decimal : str or None
        Of the file; None if it is not delimited.
    opened : Opened or None
        What the file was when it was opened, where other processes may write to it.
    """

    rows: Rows
    chosen: tuple[int, ...]
    delimiter: str | None = None
    decimal: str = "."
    opened: Opened | None = None

    @property
    def columns(self) -> tuple[str, ...] | None:
        """The names of the tensor's columns."""
        names = self.rows.names
        return None if names is None else tuple(names[place] for place in self.chosen)

    @property
    def has_others(self) -> bool:
        """Whether the file has columns that are not of the tensor."""
        return len(self.chosen) < self.rows.width

    @property
    def span(self) -> slice | None:
        """The places of the tensor's columns, if they stand together and in the file's order."""
        first, last = self.chosen[0], self.chosen[-1]
        return slice(first, last + 1) if self.chosen == tuple(range(first, last + 1)) else None

    @property
    def is_whole(self) -> bool:
        """Whether the tensor's columns are all of the file's, in its order."""
        return self.span == slice(0, self.rows.width)

    def read(self) -> tuple[NDArray[Any], str | None]:
        """Return the numbers, shape (rows, chosen columns), and what there is to know of how they were read.

        Of text they are float64; where that cannot hold all whole numbers, and there are no others, int64 or
        uint64. Of typed columns they are of the dtype that holds all of them.

        Raises
        ------
        DataError
            If a cell is not a number, or there are no rows.
        """
        inexact: tuple[NDArray[Any], str] | None = None
        for dtype in self.rows.list_dtypes(self.chosen):
            try:
                values, rounded = self._collect(dtype)
            except NotWholeError:
                continue
            if not values.size:
                raise DataError(f"{self.rows.name} has names of columns and no rows of numbers")
            if rounded is None:
                return values, None
            inexact = values, rounded
        assert inexact is not None  # float64 holds all numbers, some of them rounded
        values, rounded = inexact
        return values, (
            f"{rounded} is rounded to float64: numbers beyond 2^53 are read exactly where all --columns hold "
            "whole numbers, none missing, of which int64 or uint64 holds all"
        )

    def _collect(self, dtype: type[np.generic]) -> tuple[NDArray[Any], str | None]:
        collected, rounded = Collected(self.rows.name), None
        with collected:
            for block in self.rows.read_blocks(self.chosen, dtype):
                collected.add(block.values)
                rounded = rounded or block.rounded
            return collected.finish((-1, len(self.chosen)), np.dtype(dtype)), rounded


def choose_columns(rows: Rows, options: TableOptions) -> tuple[tuple[int, ...], str | None]:
    """Return the places of the columns that are the tensor, and a note where they have no names to go by.

    Raises
    ------
    UsageError
        If a column that is named is not there, or none is left.
    DataError
        If the columns are not those that are wanted.
    """
    for name in rows.names or ():
        if "\0" in name or (not name.isprintable() and name.encode(errors="replace").decode() != name):
            raise DataError(f"{rows.name}: the name {shorten(name)!r} has characters that no file can keep")
    if options.columns is not None and options.exclude is not None:
        raise UsageError("--columns and --exclude each say which columns are worked on; give one of them")
    chosen = tuple(range(rows.width))
    if options.columns is not None:
        chosen = _find_places(rows, options.columns, "--columns")
    elif options.exclude is not None:
        left_out = _find_places(rows, options.exclude, "--exclude")
        chosen = tuple(place for place in chosen if place not in left_out)
    if not chosen:
        raise UsageError(f"{rows.name}: no column is left to work on")
    if options.wanted is None:
        return chosen, None
    return match_columns(rows, chosen, options.wanted)


def match_columns(
    rows: Rows, chosen: tuple[int, ...], wanted: tuple[str, ...]
) -> tuple[tuple[int, ...], str | None]:
    """Return the chosen columns in the order in which their names are wanted."""
    if rows.names is None:
        listed = list_names(wanted)
        if len(chosen) != len(wanted):
            raise DataError(
                f"{rows.name} has {format_count(len(chosen), 'column')} without names; wanted are {listed}"
            )
        return chosen, UNNAMED.format(listed)
    try:
        places = match_names([rows.names[place] for place in chosen], wanted, rows.name)
    except DataError as error:
        if not set(wanted) <= set(rows.names):
            raise
        remedy = f"--columns {shlex.quote(join_names(wanted))} takes those alone"
        raise DataError(f"{error}; {remedy}") from error
    return tuple(chosen[place] for place in places), None


def _find_places(rows: Rows, text: str, option: str) -> tuple[int, ...]:
    """Return the places of the columns that an option names, each once, in its order."""
    found: dict[int, None] = {}
    if text.strip() and _LIST_OF_NAMES.fullmatch(text) is None:
        raise UsageError(
            f"{option} {shorten(text)!r} is no list of names; quotes go around a name with a comma"
        )
    for quoted, plain in _NAMED.findall(text):
        part = quoted[1:-1].replace('""', '"') if quoted else plain
        named = [place for place, name in enumerate(rows.names or ()) if name == part.strip()]
        numbered = _PLACES.fullmatch(part.strip())
        if named:
            found.update(dict.fromkeys(named))
            continue
        if numbered is None:
            known = ", ".join(map(shorten, rows.names[:12])) if rows.names else f"0 to {rows.width - 1}"
            raise UsageError(f"{option}: {rows.name} has no column {shorten(part)!r}; it has {known}")
        first, last = int(numbered[1]), int(numbered[2] or numbered[1])
        if not first <= last < rows.width:
            raise UsageError(f"{option} {part}: {rows.name} has the columns 0 to {rows.width - 1}")
        found.update(dict.fromkeys(range(first, last + 1)))
    if not found:
        raise UsageError(f"{option} names no column")
    return tuple(found)


def name_column(rows: Rows, place: int) -> str:
    """Return what a column is called in messages and options: its name, or its number from 0."""
    return str(place) if rows.names is None else shorten(rows.names[place])


def join_names(columns: Sequence[str]) -> str:
    """Return names as --columns and --exclude take them: in quotes where they hold a comma."""
    return ",".join(f'"{name}"' if "," in name else name for name in columns)


def name_all(names: Sequence[str], table: Table | None, kind: str) -> Sequence[str]:
    """Return the names of all columns of a file in which each has a name of its own.

    Parameters
    ----------
    names : sequence of str
        Of a tensor's columns.
    table : Table or None
        Among whose other columns they are written.
    kind : str
        What the file is, for the message.

    Raises
    ------
    UsageError
        If two are equal.
    """
    if table is not None:
        chosen = dict(zip(table.chosen, names, strict=True))
        names = table.rows.names or [chosen.get(place, str(place)) for place in range(table.rows.width)]
    equal = [name for name, count in Counter(names).items() if count > 1]
    if equal:
        raise UsageError(f"{kind} cannot hold two columns called {shorten(equal[0])!r}; .csv and .tsv can")
    return names


def to_number(cell: str, decimal: str = ".") -> float | None:
    """Return the number that a cell holds, NaN for a missing one, or None if it holds neither."""
    text = cell.strip()
    if text.lower() in _MISSING:
        return math.nan
    if decimal != ".":
        text = text.replace(".", "_").replace(decimal, ".")
    if "_" in text or not text.isascii():  # Python would read 1_000 as a number
        return None
    try:
        return float(text)
    except ValueError:
        return None


class CellReader:
    """From the texts of cells to numbers, one by one: what is slow, and exact about what is wrong.

    Parameters
    ----------
    rows : Rows
    chosen : sequence of int
    dtype : type
    decimal : str
    """

    def __init__(self, rows: Rows, chosen: Sequence[int], dtype: type[np.generic], decimal: str = ".") -> None:
        self._rows, self._chosen, self._dtype, self._decimal = rows, chosen, dtype, decimal
        self._values: list[list[float]] = []
        self._rounded: str | None = None

    def add(self, cells: Sequence[str], where: str) -> None:
        """Read a row, which stands in a line or a record that is named for messages.

        Raises
        ------
        DataError
            If a chosen cell is not a number.
        NotWholeError
            If it is no whole number that the dtype can hold.
        """
        if self._dtype is np.float64:
            self._values.append(self._to_numbers(cells, where))
        else:
            self._values.append([self._to_whole(cells[place]) for place in self._chosen])

    def finish(self) -> Block:
        """Return the rows as a block."""
        return Block(np.array(self._values, self._dtype).reshape(-1, len(self._chosen)), self._rounded)

    def _to_numbers(self, cells: Sequence[str], where: str) -> list[float]:
        found = [to_number(cells[place], self._decimal) for place in self._chosen]
        numbers = [number for number in found if number is not None]
        if len(numbers) < len(found):
            texts = [place for place, number in zip(self._chosen, found, strict=True) if number is None]
            self._refuse(texts, cells, where)
        for place, number in zip(self._chosen, numbers, strict=True):
            if self._rounded is None and abs(number) >= LARGEST_EXACT and is_rounded(cells[place], number):
                self._rounded = f"{cells[place].strip()} in {where}, column {name_column(self._rows, place)},"
        return numbers

    def _refuse(self, texts: Sequence[int], cells: Sequence[str], where: str) -> NoReturn:
        """Raise an error with the first cell that is no number, and the option that leaves all such out."""
        columns = [name_column(self._rows, place) for place in texts]
        cell = shorten(cells[texts[0]])
        them = "it" if len(texts) == 1 else "them"
        remedies = [f"--exclude {shlex.quote(join_names(columns))} leaves {them} out"]
        if len(self._chosen) < self._rows.width:  # some are left out already, by the same option or the other
            remedies = [f"choose without {', '.join(columns)}"]
        if self._rows.names is None and where == self._rows.first:
            remedies.insert(0, "--header yes takes the first row for names")
        if self._decimal == "." and any(_COMMA.fullmatch(cells[place].strip()) for place in texts):
            remedies.insert(0, "--decimal , reads decimal commas")
        what = f"{cell!r} is not a number; {', '.join(remedies)}"
        raise DataError(f"{self._rows.name}, {where}, column {columns[0]}: {what}")

    def _to_whole(self, cell: str) -> int:
        limits = np.iinfo(self._dtype)  # type: ignore[type-var]
        if _WHOLE.fullmatch(cell) is None or not limits.min <= (number := int(cell.strip())) <= limits.max:
            raise NotWholeError
        return number


def is_rounded(cell: str, number: float) -> bool:
    """Whether a cell holds a whole number, and another than the float64 that it is read as."""
    return _WHOLE.fullmatch(cell) is not None and len(cell) < 400 and int(cell.strip()) != number


def holds_nan(values: NDArray[Any]) -> bool:
    """Whether a tensor of two axes holds a NaN."""
    return values.dtype.kind not in "iub" and any(np.isnan(rows).any() for rows in iterate_row_blocks(values))


def place_numbers(
    numbers: Iterator[list[str]], table: Table, delimiter: str | None, *, keeps_missing: bool
) -> Iterator[list[str]]:
    """Yield the texts of each row's cells: those of a tensor, in their places among what passes through.

    Parameters
    ----------
    numbers : iterator
        The texts of each row's numbers, or where these stand together (`Table.span`), and nothing is missing,
        one text of them all.
    table : Table
        Where the numbers came from.
    delimiter : str or None
        As of `Rows.read_cells`.
    keeps_missing : bool
        Whether missing values stay as they stood where the number is NaN.

    Raises
    ------
    DataError
        If the table's file has changed since its numbers were read.
    """
    others = table.rows.read_cells(delimiter) if table.has_others or keeps_missing else None
    width, span = table.rows.width, None if keeps_missing else table.span
    becomes_json = delimiter is None and table.delimiter is not None
    for texts in numbers:
        cells = [""] * width if others is None else next(others, None)
        if cells is None:  # fewer rows than were read before
            refuse_changed(table.rows.name)
        if span is not None:
            cells[span] = texts
        else:
            for place, text in zip(table.chosen, texts, strict=True):
                if not (keeps_missing and text in _NAN_TEXTS and _is_missing(cells[place])):
                    cells[place] = text
                elif becomes_json:
                    cells[place] = "null"
        yield cells
    if others is not None and table.opened is not None:
        table.opened.require_unchanged()


def write_rows(stream: BinaryIO, rows: Iterator[str], between: str) -> None:
    """Write the texts of rows, and a text between each two of them, many at a time."""
    separator = ""
    while block := list(islice(rows, _ROWS_AT_ONCE)):
        stream.write((separator + between.join(block)).encode())
        separator = between


def _is_missing(cell: str) -> bool:
    """Whether the text of a cell, which may stand in quotes, is that of a missing value."""
    return cell.strip('"').strip().lower() in _MISSING


def iterate_row_blocks(values: NDArray[Any]) -> Iterator[NDArray[Any]]:
    """Yield the rows of a tensor, some at a time."""
    count = max(1, _VALUES_AT_ONCE // max(1, values.shape[1]))
    for start in range(0, len(values), count):
        yield values[start : start + count]
        forget(values)
