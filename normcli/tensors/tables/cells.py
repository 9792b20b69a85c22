"""The texts of a table's cells as numbers: what is missing, what is whole, and what is none."""

from __future__ import annotations

import math
import re
import shlex
from typing import TYPE_CHECKING

import numpy as np

from normcli.dtypes import LARGEST_EXACT
from normcli.errors import DataError
from normcli.printable import shorten
from normcli.tensors.tables.column_choice import join_names, name_column
from normcli.tensors.tables.tables import Block, NotWholeError

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import NoReturn

    from normcli.tensors.tables.tables import Rows


MISSING = ("", "-", "NA", "N/A", "#N/A", "<NA>", "nan", "null", "none")
"""What stands in the cell of a missing value, in upper or lower case: it is read as NaN."""

SPELLED_MISSING = {
    spelled: "nan"
    for word in (*MISSING, "NaN")
    for spelled in (word, word.lower(), word.upper(), word.capitalize())
}
"""How missing values are usually written, and as what Python reads NaN."""

_MISSING = frozenset(word.lower() for word in MISSING)

_WHOLE = re.compile(r"\s*[-+]?[0-9]+\s*")

_COMMA = re.compile(r"[-+]?[0-9]+,[0-9]+")


def list_text_dtypes(chosen: Sequence[int]) -> Sequence[type[np.generic]]:
    """Return the dtypes that numbers in text are read in, whichever columns they are of."""
    return np.float64, np.int64, np.uint64


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
        remedies = [self._advise(set(texts))]
        if self._rows.names is None and where == self._rows.first:
            remedies.insert(0, "--header yes takes the first row for names")
        if self._decimal == "." and any(_COMMA.fullmatch(cells[place].strip()) for place in texts):
            remedies.insert(0, "--decimal , reads decimal commas")
        what = f"{cell!r} is not a number; {', '.join(remedies)}"
        raise DataError(f"{self._rows.name}, {where}, column {columns[0]}: {what}")

    def _advise(self, texts: set[int]) -> str:
        """Return the option, as it has to be given, that leaves columns out beside those that are left out."""
        rows = self._rows
        rest = [place for place in self._chosen if place not in texts]
        if rows.is_picked:
            names = shlex.quote(join_names([name_column(rows, place) for place in rest]))
            return f"--columns {names} takes the others" if rest else "there are no others"
        places = [place for place in range(rows.width) if place not in rest]
        names = shlex.quote(join_names([name_column(rows, place) for place in places]))
        return f"--exclude {names} leaves {'it' if len(places) == 1 else 'them'} out"

    def _to_whole(self, cell: str) -> int:
        limits = np.iinfo(self._dtype)  # type: ignore[type-var]
        if _WHOLE.fullmatch(cell) is None or not limits.min <= (number := int(cell.strip())) <= limits.max:
            raise NotWholeError
        return number


def is_rounded(cell: str, number: float) -> bool:
    """Whether a cell holds a whole number, and another than the float64 that it is read as."""
    return _WHOLE.fullmatch(cell) is not None and len(cell) < 400 and int(cell.strip()) != number


def is_missing(cell: str) -> bool:
    """Whether the text of a cell, which may stand in quotes, is that of a missing value."""
    return cell.strip('"').strip().lower() in _MISSING
