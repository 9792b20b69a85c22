"""Notations of numbers in a table's cells: decimal points, separators of thousands, missing values."""

from __future__ import annotations

import math
import re
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from normcli.tuples import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable

    Label = tuple[str | None, ...]
    """The name of a group of rows: its value in each column that groups them, None for a missing one."""

MISSING = ("", "-", "NA", "N/A", "#N/A", "<NA>", "nan", "null", "none")
"""The cell texts, in upper or lower case, that are read as NaN."""

_MISSING = frozenset(word.lower() for word in MISSING)

_LONGEST_NAME, _LARGEST_NAMED = 400, 1e22
"""The most digits of a whole number whose name has them all; and the largest number written `1.0` named `1`."""

_PADDED = re.compile("0[0-9]+")

_NUMBER = re.compile(
    r"[-+]?(?:(?:0|[1-9][0-9]*)(?:[eE][-+][0-9]+)?|(?:0|[1-9][0-9]*)?\.[0-9]*(?:[eE][-+]?[0-9]+)?)|nan|NaN"
)
"""A number as programs write it; 007 is taken for a code, and 12e4, without point or sign, for a hash."""

SEPARATORS = {",": ",", ".": "[.]", "'": "['\u2019]", "space": "[ \u00a0\u2009\u202f]"}
"""The value of --thousands → a pattern of the characters that separate thousands."""


class Numerals(NamedTuple):
    """The notation of numbers in a table's cells.

    Parameters
    ----------
    decimal : str
        The decimal point: `.` or `,`.
    thousands : str or None
        The separator of thousands, a key of `SEPARATORS`; None without one.
    """

    decimal: str = "."
    thousands: str | None = None

    def simplify(self, cell: str) -> str:
        """Return the text of a number in Python's notation; a text that is no number may be changed, too."""
        text = cell.strip()
        if self.is_grouped(text):
            text = re.sub(SEPARATORS[str(self.thousands)], "", text)
        if self.decimal != ".":
            text = text.replace(".", "_").replace(self.decimal, ".")
        return text

    def read(self, cell: str) -> float | None:
        """Return the number that a cell holds, NaN for a missing one, or None if it holds neither."""
        text = cell.strip()
        if text.lower() in _MISSING:
            return math.nan
        text = self.simplify(text)
        if "_" in text or not text.isascii():  # Python would read 1_000 as a number
            return None
        try:
            return float(text)
        except ValueError:
            return None

    def name_cell(self, cell: str | None) -> str | None:
        """Return the name of the group that a cell puts its row into: equal for all spellings of a number.

        Text is returned unchanged. So are 007, and 12e4 without point or sign, which count as codes, not as
        numbers. None (a missing cell) stays None, and NaN becomes None.
        """
        if cell is None or not _NUMBER.fullmatch(self.simplify(cell)) or self.read(cell) is None:
            return cell
        return self.name(cell)

    def name(self, cell: str) -> str | None:
        """Return a text that is equal for all spellings of a number: `1` for 1.0, `0` for -0.0.

        Return None for NaN, for missing values and for texts that are no numbers.
        """
        text = self.simplify(cell)
        number = self.read(cell)
        if number is None or math.isnan(number):
            return None
        if len(text) <= _LONGEST_NAME and text.lstrip("+-").isdigit():
            return str(int(text))
        return str(int(number)) if number.is_integer() and abs(number) <= _LARGEST_NAMED else repr(number)

    def is_grouped(self, text: str, least: int = 1) -> bool:
        """Whether a text is a number with separators of thousands, at least `least` of them."""
        found = None if self.thousands is None else _match_grouped(self.decimal, self.thousands).fullmatch(text)
        return found is not None and len(re.findall(SEPARATORS[str(self.thousands)], found[1])) >= least

    def describe(self) -> str:
        """Return the options of the command line for this notation: `--decimal , --thousands .`."""
        options = ["--decimal ,"] if self.decimal == "," else []
        separator = '"\'"' if self.thousands == "'" else self.thousands
        return " ".join([*options, *([f"--thousands {separator}"] if separator else [])])


@lru_cache
def _match_grouped(decimal: str, thousands: str) -> re.Pattern[str]:
    """Return a pattern of a number with separators of thousands; its first group is the whole part."""
    separator = SEPARATORS[thousands]
    return re.compile(rf"([-+]?[1-9][0-9]{{0,2}}(?:{separator}[0-9]{{3}})+)(?:[{decimal}][0-9]*)?")


AS_PYTHON = Numerals()
"""The notation of Python: a decimal point, and no separator of thousands."""


def name_value(value: Any) -> str | None:
    """Return a text that is equal for equal values of any type; None for a missing value (NaN, NaT, None).

    All spellings of a number have one text: `1` for 1.0, `0` for -0.0. A string is returned unchanged.
    """
    text = str(value)
    if isinstance(value, str):
        return text
    if text == "NaT":
        return None
    return text if AS_PYTHON.read(text) is None else AS_PYTHON.name(text)


def is_missing(cell: str) -> bool:
    """Whether the text of a cell, possibly in quotes, stands for a missing value."""
    return cell.strip('"').strip().lower() in _MISSING


def is_number_otherwise(cell: str) -> bool:
    """Whether a cell is a number with separators of thousands, in any notation."""
    text = cell.strip()
    ways = (
        Numerals(decimal, separator) for decimal in ".," for separator in SEPARATORS if separator != decimal
    )
    return any(way.is_grouped(text) for way in ways)


def list_padded(cells: Iterable[str]) -> list[int]:
    """Return the indices of a row's cells that are digits with a leading 0, such as the code 007."""
    return [place for place, cell in enumerate(cells) if _PADDED.fullmatch(cell.strip())]
