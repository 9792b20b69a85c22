"""Tables of named columns: which columns are numbers to work on, and which pass through as they stand."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol, cast

import numpy as np

from normcli.errors import DataError, UsageError
from normcli.tensors.spool import Collected
from normcli.tuples import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

    from normcli.tensors.held_files import Opened
    from normcli.tensors.tables.numerals import Label, Numerals


class TableOptions(NamedTuple):
    """The caller's options for reading a table; the file itself tells the rest.

    Parameters
    ----------
    columns, exclude : str or None
        The columns that are worked on, or those that are not: names and numbers from 0, with commas between;
        `2-5` is a range of numbers.
    delimiter : str or None
        What stands between the cells of a line.
    decimal : str
        The decimal point of its numbers: `.` or `,`.
    thousands : str or None
        What stands between thousands: `,`, `.`, `'` or `space`; None where the file tells.
    header : bool or None
        Whether the first row is the names of the columns.
    wanted : tuple of str or None
        The names of the columns that the tensor must have, in its order.
    takes_wanted : bool
        Whether these are taken, and others left as they are, where nothing else says which.
    by : str or None
        The names of the columns that rows are grouped by; they are not worked on unless `columns` names them.
    """

    columns: str | None = None
    exclude: str | None = None
    delimiter: str | None = None
    decimal: str = "."
    thousands: str | None = None
    header: bool | None = None
    wanted: tuple[str, ...] | None = None
    takes_wanted: bool = False
    by: str | None = None

    def refuse(self, subject: str, *, but: Sequence[str] = ()) -> None:
        """Raise `UsageError` if options of tables are given for an input that is no table of text cells.

        Parameters
        ----------
        subject : str
            What the options are given for, and is none of their kind.
        but : sequence of str
            The options that are not refused.
        """
        for name in ("columns", "exclude", "by", *_OF_CELLS):
            if name not in but and getattr(self, name) != getattr(AS_FOUND, name):
                kind = "of CSV and TSV" if name in _OF_CELLS else "of tables"
                raise UsageError(f"--{name} is {kind}; {subject} is none")


_OF_CELLS = ("delimiter", "decimal", "thousands", "header")
"""The options of tables of text alone."""

AS_FOUND = TableOptions()
"""All columns of a table, as the file itself tells."""


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


class TextError(Exception):
    """A cell is no number, in the way in which numbers are read so far: its column, itself, and where it is."""

    def __init__(self, place: int, cell: str, where: str) -> None:
        super().__init__(place, cell, where)
        self.place, self.cell, self.where = place, cell, where


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
    is_picked : bool
        Whether the caller named the columns to work on (`--columns`), and not those to leave out.
    padded : frozenset of int
        The columns with numbers that begin with a 0 and another digit, among the first rows.
    """

    name: str
    names: tuple[str, ...] | None
    width: int
    first: str
    is_picked: bool
    padded: frozenset[int]

    def list_dtypes(self, chosen: Sequence[int]) -> Sequence[type[np.generic]]:
        """Return the dtypes that some columns are read in: the first that holds all exactly is taken."""

    def read_blocks(self, chosen: Sequence[int], dtype: type[np.generic]) -> Iterator[Block]:
        """Yield the numbers of some columns; raise `NotWholeError` where an integer dtype cannot hold one."""

    def read_cells(self, delimiter: str | None) -> Iterator[list[str]]:
        """Yield the texts of each row's cells for a file with a delimiter, or for JSON if that is None."""

    def read_labels(self, places: Sequence[int]) -> Iterator[Label]:
        """Yield each row's cells of some columns, as `GroupingColumns.read` does."""


class TextRows(Rows, Protocol):
    """Rows whose cells are texts.

    Attributes
    ----------
    numerals : Numerals
        How their numbers are written.
    delimiter : str or None
        Of the file; None if it is not delimited.
    """

    numerals: Numerals

    @property
    def delimiter(self) -> str | None:
        """The delimiter between the cells of a line."""

    def read_columns(self, places: Sequence[int]) -> Iterator[Sequence[Any]]:
        """Yield the texts of some columns, of some rows at a time: lists, or arrays of pyarrow's.

        Texts of JSON are as they are written there.
        """

    def settle_text(self, chosen: Sequence[int], error: TextError) -> str:
        """Take another way to read the chosen columns, and return a note of it, or raise `DataError`."""

    def iterate_texts(self) -> Iterator[tuple[str, list[str]]]:
        """Yield the texts of each row's cells, and where the row stands, for messages."""


class FileTable(NamedTuple):
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
    format_name : str
        The file's: `csv`.
    """

    rows: Rows
    chosen: tuple[int, ...]
    delimiter: str | None = None
    decimal: str = "."
    opened: Opened | None = None
    format_name: str = "csv"

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
        how = None
        while True:
            try:
                values, note = self._read()
            except TextError as error:
                how = cast("TextRows", self.rows).settle_text(self.chosen, error)
            else:
                return values, "; ".join(filter(None, (how, note))) or None

    def _read(self) -> tuple[NDArray[Any], str | None]:
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
