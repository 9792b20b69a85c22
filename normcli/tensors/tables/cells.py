"""The cells of a table as numbers: missing values, whole numbers, and texts that are no numbers."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import numpy as np

from normcli.dtypes import LARGEST_EXACT
from normcli.tensors.tables.column_choice import name_column
from normcli.tensors.tables.numerals import MISSING
from normcli.tensors.tables.tables import Block, NotWholeError, TextError

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from normcli.tensors.tables.tables import TextRows


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
        The places of the columns to read.
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
            For each row, its place for messages (`line 3`, `record 3`) and the texts of all its cells.

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
