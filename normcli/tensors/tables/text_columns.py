"""Columns of text as numbers: read cell by cell, in another way, refused with a remedy, or doubted."""

from __future__ import annotations

import re
from functools import lru_cache
from itertools import islice
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np

from normcli.dtypes import LARGEST_EXACT
from normcli.errors import DataError
from normcli.printable import agree, shorten
from normcli.tensors.tables.column_choice import advise_columns, name_column
from normcli.tensors.tables.numerals import MISSING, SEPARATORS, Numerals, list_padded
from normcli.tensors.tables.tables import Block, NotWholeError, TextError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from numpy.typing import NDArray

    from normcli.tensors.tables.tables import Rows, TextRows


SPELLED_MISSING = {
    spelled: "nan"
    for word in (*MISSING, "NaN")
    for spelled in (word, word.lower(), word.upper(), word.capitalize())
}
"""The usual spellings of missing values and of NaN → `nan`."""

_WHOLE = re.compile(r"[-+]?[0-9]+")


def list_text_dtypes(chosen: Sequence[int]) -> Sequence[type[np.generic]]:
    """Return the dtypes to try, in order, for numbers in text: float64, int64, uint64, for any columns."""
    return np.float64, np.int64, np.uint64


class CellReader:
    """A reader of cells one by one: slow, but with exact messages about wrong ones.

    Parameters
    ----------
    rows : TextRows
    chosen : sequence of int
        The indices of the columns to read.
    dtype : type
        The dtype of the numbers: float64, int64 or uint64.
    """

    def __init__(self, rows: TextRows, chosen: Sequence[int], dtype: type[np.generic]) -> None:
        self._rows, self._chosen, self._dtype, self._numerals = rows, chosen, dtype, rows.numerals
        self._values: list[list[float]] = []
        self._rounded: str | None = None

    def read(self, texts: Iterable[tuple[str, Sequence[str]]]) -> Block:
        """Return the chosen cells of rows as a block of numbers.

        Parameters
        ----------
        texts : iterable of (str, sequence of str)
            For each row, its position for messages (`line 3`, `record 3`) and the texts of all its cells.

        Raises
        ------
        TextError
            If a chosen cell is not a number, and the dtype is float64.
        NotWholeError
            If a chosen cell is no whole number that the integer dtype can hold.
        """
        for where, cells in texts:
            if self._dtype is np.float64:
                self._values.append(self._to_numbers(cells, where))
            else:
                self._values.append([self._to_whole(cells[place]) for place in self._chosen])
        return Block(np.array(self._values, self._dtype).reshape(-1, len(self._chosen)), self._rounded)

    def _to_numbers(self, cells: Sequence[str], where: str) -> list[float]:
        """Return the numbers of a row's chosen cells, NaN for a missing one; raise `TextError` for text."""
        numbers = []
        for place in self._chosen:
            number = self._numerals.read(cells[place])
            if number is None:
                raise TextError(place, cells[place], where)
            if (
                self._rounded is None
                and abs(number) >= LARGEST_EXACT
                and self._is_rounded(cells[place], number)
            ):
                self._rounded = f"{cells[place].strip()} in {where}, column {name_column(self._rows, place)},"
            numbers.append(number)
        return numbers

    def _is_rounded(self, cell: str, number: float) -> bool:
        """Whether a cell holds a whole number that differs from `number`, the float64 that is read."""
        text = self._numerals.simplify(cell)
        return _WHOLE.fullmatch(text) is not None and len(text) < 400 and int(text) != number

    def _to_whole(self, cell: str) -> int:
        limits, text = np.iinfo(self._dtype), self._numerals.simplify(cell)  # type: ignore[type-var]
        if _WHOLE.fullmatch(text) is None or not limits.min <= (number := int(text)) <= limits.max:
            raise NotWholeError
        return number


_MOST_ROWS, _ADVISED_ROWS = 1 << 20, 1 << 10
"""The most rows that are searched for text; and the most once a column is known to be no numbers."""

_DOUBTED_ROWS = 1 << 16
"""The number of first rows by which a column is judged to be an identifier."""

_LEAST_DISTINCT, _LEAST_COUNTED = 20, 3
"""The fewest rows in which distinct whole numbers, and numbers that count up by 1, look like identifiers."""

_LONG = re.compile(r"[-+]?[0-9]{4,}\D*")
"""A number of four digits or more without a separator."""

_IDENTIFYING = re.compile(r"(.*[ _-])?(id|ids|no|nr|number|key|code|zip|index|uid|uuid)|.+I[Dd]", re.IGNORECASE)


class _CellsSeen:
    """The findings on one column, from the cells that were added: in which notations they are numbers.

    Attributes
    ----------
    ways : set of Numerals
        The notations in which all cells are numbers.
    grouped : set of Numerals
        The notations whose separator of thousands occurs in some cell.
    proved : set of Numerals
        The notations of which some cell proves that the separator is no decimal point: 1,234,567 or 1,234.5.
    first : (str, str) or None
        The first cell that is no number in the notation in use, and its row (`line 3`); None without one.
    is_long : bool
        Whether some number of four or more digits has no separator.
    is_padded : bool
        Whether some cell is digits with a leading 0, such as 007.
    numbers : list of float
        The numbers of the first rows, in the notation in use.
    """

    def __init__(self, ways: Iterable[Numerals]) -> None:
        self.ways = set(ways)
        self.grouped: set[Numerals] = set()
        self.proved: set[Numerals] = set()
        self.first: tuple[str, str] | None = None
        self.is_long = self.is_padded = False
        self.numbers: list[float] = []

    def add(self, cell: str, where: str, ways: tuple[Numerals, ...]) -> None:
        """Add a cell of the row `where` (`line 3`); the first of the notations `ways` is in use."""
        readable, grouped, proved = _find_ways(cell, ways)
        self.ways &= readable
        self.grouped |= grouped
        self.proved |= proved
        self.is_long |= _LONG.fullmatch(cell) is not None
        self.is_padded |= bool(list_padded([cell]))
        number = ways[0].read(cell)
        if number is None:
            self.first = self.first or (cell, where)
        elif len(self.numbers) < _DOUBTED_ROWS:
            self.numbers.append(number)


@lru_cache(1 << 16)
def _find_ways(cell: str, ways: tuple[Numerals, ...]) -> tuple[frozenset[Numerals], ...]:
    """Return the notations in which a cell is a number, has separators of thousands, and proves them.

    These are three sets. A separator is proved if it cannot be a decimal point, as in 1,234,567 or 1,234.5.
    """
    grouped = [way for way in ways if way.is_grouped(cell.strip())]
    proved = [way for way in grouped if way.is_grouped(cell.strip(), 2) or way.decimal in cell]
    return frozenset(way for way in ways if way.read(cell) is not None), frozenset(grouped), frozenset(proved)


def _list_ways(rows: TextRows) -> tuple[Numerals, ...]:
    """Return the notations to try for the numbers of a table; the first is `rows.numerals`, in use so far.

    The others add a separator of thousands, or have a decimal comma in place of a decimal point. There are no
    others for JSON, or if the first has a separator.
    """
    own = rows.numerals
    if rows.delimiter is None or own.thousands is not None:
        return (own,)
    found = [own, *(own._replace(thousands=separator) for separator in SEPARATORS if separator != own.decimal)]
    if own.decimal == ".":
        found += [Numerals(",", separator) for separator in (None, *SEPARATORS) if separator != ","]
    return tuple(found)


def settle_text(rows: TextRows, chosen: Sequence[int], error: TextError) -> str:
    """Switch a table to a notation in which all chosen cells are numbers, and return a note on it.

    The new notation differs by a separator of thousands, with which every number must agree. If that is a
    comma, as in 1,234, the table must prove that it is no decimal comma: by another number such as 1,234,567,
    or because commas delimit the cells.

    Parameters
    ----------
    rows : TextRows
        The table; its `numerals` is set in place.
    chosen : sequence of int
        The indices of the columns to read.
    error : TextError
        The cell that is no number in the notation in use.

    Raises
    ------
    DataError
        If no notation is certain; the message has the options that would make all cells numbers, if any do.
    """
    ways = _list_ways(rows)
    columns = {place: _CellsSeen(ways) for place in chosen}
    columns[error.place].add(error.cell, error.where, ways)  # its row may come after the last one looked at
    for number, (where, cells) in enumerate(islice(rows.iterate_texts(), _MOST_ROWS), 1):
        for place, column in columns.items():
            column.add(cells[place], where, ways)
        if number >= _ADVISED_ROWS and not all(column.ways for column in columns.values()):
            break
    numbers = {place: column for place, column in columns.items() if column.ways}
    used = {way for column in numbers.values() for way in column.grouped}
    ways = tuple(way for way in ways if way.thousands is None or way in used or way == rows.numerals)
    shared = [way for way in ways if all(way in column.ways for column in numbers.values())]
    if not shared:
        numbers = {place: column for place, column in columns.items() if column.first is None}
        shared = [ways[0]]
    guessed = [way for way in shared if way != ways[0] and _is_sure(way, rows, numbers)]
    if len(numbers) < len(columns):
        _refuse(rows, columns, numbers, [] if guessed or ways[0] in shared else shared)
    if not guessed:
        _refuse(rows, columns, numbers, shared)
    rows.numerals = guessed[0]
    cell = next(column.first[0] for column in columns.values() if column.first is not None)
    others = [way for way in shared if way.decimal != rows.numerals.decimal]
    also = (f"; with {way.describe()} it is {way.read(cell)}" for way in others)
    return (
        f"{cell.strip()} is read as {rows.numerals.simplify(cell)}: every number agrees with "
        f"{rows.numerals.describe()}{''.join(also)}"
    )


def _is_sure(way: Numerals, rows: TextRows, columns: Mapping[int, _CellsSeen]) -> bool:
    """Whether the notation `way`, with separators of thousands, may be assumed without an option.

    The decimal point must be the one in use. In a column with the separator, no long number may be without it.
    A comma must be proved to be no decimal point.
    """
    if way.decimal != rows.numerals.decimal or any(c.is_long and way in c.grouped for c in columns.values()):
        return False
    is_proved = any(way in column.proved for column in columns.values())
    return is_proved or way.thousands != "," or rows.delimiter == ","


def _refuse(
    rows: TextRows,
    columns: Mapping[int, _CellsSeen],
    numbers: Mapping[int, _CellsSeen],
    ways: Sequence[Numerals],
) -> NoReturn:
    """Raise `DataError` with the first cell that is no number, and options that would remedy it.

    `columns` are all chosen columns by index, `numbers` those that are numbers in one of the notations `ways`.
    """
    texts = {place: column for place, column in columns.items() if place not in numbers}
    place = next(place for place, column in (texts or columns).items() if column.first is not None)
    cell, where = columns[place].first or ("", "")
    of_commas = "decimal commas" if not texts else "the others"
    such = "such numbers" if not texts else "the others"
    remedies = [f"{way.describe()} reads {of_commas if way == Numerals(',') else such}" for way in ways]
    if texts:
        remedies.insert(0, _advise(rows, columns, texts))
        if rows.names is None and where == rows.first:
            remedies.insert(0, "--header yes takes the first row for names")
    what = f"{shorten(cell)!r} is not a number; {', '.join(remedies)}"
    raise DataError(f"{rows.name}, {where}, column {name_column(rows, place)}: {what}")


def _advise(rows: TextRows, columns: Mapping[int, _CellsSeen], texts: Mapping[int, _CellsSeen]) -> str:
    """Return advice for a message: the option that leaves out columns of text and likely identifiers.

    `columns` are all chosen columns by index, `texts` those that are text.
    """
    rest = [place for place in columns if place not in texts]
    if rows.is_picked:
        return advise_columns(rows, rest)
    padded = {place for place in rest if columns[place].is_padded}
    doubted = _find_identifiers(rows, {place: np.array(columns[place].numbers) for place in rest}, padded)
    doubted = doubted if len(doubted) < len(rest) else []
    advice = advise_columns(rows, [place for place in rest if place not in doubted])
    return f"{advice} ({_tell_identifiers(rows, doubted)})" if doubted else advice


def _tell_identifiers(rows: Rows, places: Sequence[int]) -> str:
    names = ", ".join(name_column(rows, place) for place in places)
    return f"{names} {agree(len(places), 'looks like an identifier', 'look like identifiers')}"


def doubt_identifiers(rows: Rows, chosen: Sequence[int], values: NDArray[Any]) -> str | None:
    """Return a note that some chosen columns look like identifiers; None if none or all of them do.

    Parameters
    ----------
    rows : Rows
    chosen : sequence of int
        The indices of the tensor's columns in the file.
    values : ndarray
        The tensor, shape (rows, chosen columns).
    """
    columns = dict(zip(chosen, values[:_DOUBTED_ROWS].T, strict=True))
    found = _find_identifiers(rows, columns, rows.padded)
    if not found or len(found) == len(chosen):
        return None
    advice = advise_columns(rows, [place for place in chosen if place not in found])
    return f"{_tell_identifiers(rows, found)}: a mean of them says nothing; {advice}"


def _find_identifiers(rows: Rows, columns: Mapping[int, NDArray[Any]], padded: Iterable[int]) -> list[int]:
    """Return the indices of columns that look like identifiers; none in a table without names.

    Such a column is one of `padded` (indices), or `_is_numbering` is True for it: whole, different values.
    """
    names = rows.names
    return [
        place
        for place, values in columns.items()
        if names is not None and (place in padded or _is_numbering(names[place], values))
    ]


def _is_numbering(name: str, values: NDArray[Any]) -> bool:
    """Whether values are whole and all different, and are 20 or more, count up by 1, or are called `id`."""
    if len(values) < _LEAST_COUNTED or values.dtype.kind not in "iuf":
        return False
    for part in (values[:64], values):  # most columns show in their first rows that they are none
        if not np.isfinite(part).all() or (part != np.rint(part)).any() or len(np.unique(part)) < len(part):
            return False
    counts_on = bool((values[1:] == values[:-1] + 1).all())
    return counts_on or len(values) >= _LEAST_DISTINCT or _IDENTIFYING.fullmatch(name) is not None
