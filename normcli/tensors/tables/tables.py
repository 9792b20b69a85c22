"""Tables of columns: some are numbers to calculate with, the others are written again unchanged."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol, cast

import numpy as np

from normcli.errors import DataError
from normcli.tensors.spool import Collected
from normcli.tuples import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

    from normcli.tensors.held_files import Opened
    from normcli.tensors.tables.numerals import Label, Numerals


class Block(NamedTuple):
    """Some rows of a table, as numbers.

    Parameters
    ----------
    values : ndarray
        Shape (rows, chosen columns).
    rounded : str or None
        The first whole number that float64 rounded, with its row and column, as the start of a note; None if it
        rounded none.
    """

    values: NDArray[Any]
    rounded: str | None = None


class NotWholeError(Exception):
    """The error for a cell that is no whole number within the integer dtype that was tried."""


class TextError(Exception):
    """The error for a cell that is no number in the notation in use.

    Parameters
    ----------
    place : int
        The index of the cell's column, from 0.
    cell : str
        The cell's text.
    where : str
        The cell's row, for messages: `line 3`.
    """

    def __init__(self, place: int, cell: str, where: str) -> None:
        super().__init__(place, cell, where)
        self.place, self.cell, self.where = place, cell, where


class Rows(Protocol):
    """The rows of a file, which can be read any number of times; `chosen` and `places` are indices of columns.

    Attributes
    ----------
    name : str
        The file's name, for messages.
    names : tuple of str or None
        The names of all columns; None if they have no names.
    width : int
        The number of columns.
    first : str
        The first row, for messages: `line 1`.
    is_picked : bool
        Whether the columns to calculate with were named, by the caller (`--columns`) or by fitted statistics.
    padded : frozenset of int
        The indices of columns in which one of the first rows has digits with a leading 0, such as 007.
    """

    name: str
    names: tuple[str, ...] | None
    width: int
    first: str
    is_picked: bool
    padded: frozenset[int]

    def list_dtypes(self, chosen: Sequence[int]) -> Sequence[type[np.generic]]:
        """Return the dtypes to try for some columns in turn, until one holds all their numbers exactly."""

    def read_blocks(self, chosen: Sequence[int], dtype: type[np.generic]) -> Iterator[Block]:
        """Yield blocks of rows: the numbers of the columns with the indices `chosen`, in a dtype.

        Raises `TextError` if a cell of text is no number, `NotWholeError` if an integer dtype cannot hold one.
        """

    def read_cells(self, delimiter: str | None) -> Iterator[list[str]]:
        """Yield the texts of each row's cells (all columns), as they are written to a file with that delimiter.

        None stands for JSON: the texts are then JSON values.
        """

    def read_labels(self, places: Sequence[int]) -> Iterator[Label]:
        """Yield each row's cells of some columns, by which rows are grouped; None for a missing cell.

        Cells of delimited text are texts as they stand; those of other files the texts that `name_value` makes.
        """


class TextRows(Rows, Protocol):
    """The rows of a file whose cells are texts: delimited files and JSON records.

    Attributes
    ----------
    numerals : Numerals
        The notation of numbers in cells.
    delimiter : str or None
        The file's delimiter; None for JSON.
    """

    numerals: Numerals

    @property
    def delimiter(self) -> str | None:
        """The delimiter between the cells of a line."""

    def read_columns(self, places: Sequence[int]) -> Iterator[Sequence[Any]]:
        """Yield blocks of rows: for each, a sequence with the texts of each column in `places`.

        A column's texts are a list of str, or a pyarrow array; of a JSON file, the JSON texts of its values.
        `places` are the indices of the columns.
        """

    def settle_text(self, chosen: Sequence[int], error: TextError) -> str:
        """Switch to a notation in which all chosen cells are numbers, and return a note on it.

        `error` is the first cell that is no number so far. `DataError` is raised if no notation will do, or
        several.
        """

    def iterate_texts(self) -> Iterator[tuple[str, list[str]]]:
        """Yield a pair for each row: its position for messages (`line 3`), and the list of its cells' texts."""


class FileTable(NamedTuple):
    """A file that holds a table, and the choice of the columns that make up the tensor.

    Parameters
    ----------
    rows : Rows
    chosen : tuple of int
        The indices of the tensor's columns in the file, in the tensor's order; at least one.
    delimiter : str or None
        The file's delimiter; None if it is not delimited text.
    decimal : str
        The file's decimal point.
    opened : Opened or None
        The state of the file when it was opened, to detect changes; None if no other process can write to it.
    format_name : str
        The name of the file's format, such as `csv`.
    """

    rows: Rows
    chosen: tuple[int, ...]
    delimiter: str | None = None
    decimal: str = "."
    opened: Opened | None = None
    format_name: str = "csv"

    @property
    def columns(self) -> tuple[str, ...] | None:
        """The names of the tensor's columns; None if the file's columns have no names."""
        names = self.rows.names
        return None if names is None else tuple(names[place] for place in self.chosen)

    @property
    def has_others(self) -> bool:
        """Whether the file has columns that are not in the tensor."""
        return len(self.chosen) < self.rows.width

    @property
    def span(self) -> slice | None:
        """The slice of the tensor's columns in the file; None unless adjacent and in the file's order."""
        first, last = self.chosen[0], self.chosen[-1]
        return slice(first, last + 1) if self.chosen == tuple(range(first, last + 1)) else None

    @property
    def is_whole(self) -> bool:
        """Whether the tensor has all columns of the file, in the file's order."""
        return self.span == slice(0, self.rows.width)

    def read(self) -> tuple[NDArray[Any], str | None]:
        """Return the numbers, shape (rows, chosen columns), and a note on how they were read, or None.

        Numbers from text are float64; or int64 or uint64, if all are whole, none is missing, and float64 would
        round some. Typed columns are read in a dtype that holds all of them. If no dtype is exact, numbers are
        rounded to float64, with a note.

        Raises
        ------
        DataError
            If a cell is not a number in any notation, several notations would do, or there are no rows.
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
        """Return the numbers, read in the notation `rows.numerals`, and a note on rounding, or None.

        Raises `TextError` if a cell is no number in this notation, `DataError` if there are no rows.
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
        """Return the numbers of the chosen columns in a dtype, and a text on the first rounded one, or None.

        Raises `TextError` or `NotWholeError`, as `Rows.read_blocks` does.
        """
        collected, rounded = Collected(self.rows.name), None
        with collected:
            for block in self.rows.read_blocks(self.chosen, dtype):
                collected.add(block.values)
                rounded = rounded or block.rounded
            return collected.finish((-1, len(self.chosen)), np.dtype(dtype)), rounded
