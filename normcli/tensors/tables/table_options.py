"""The options for reading tables: which columns, and how their cells are written."""

from __future__ import annotations

from typing import TYPE_CHECKING

from normcli.errors import UsageError
from normcli.tuples import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Sequence


class TableOptions(NamedTuple):
    """The caller's options for reading a table; None leaves an option to be found from the file.

    Parameters
    ----------
    columns, exclude : str or None
        The columns to calculate with, or those to leave out: names and numbers from 0, separated by commas;
        `2-5` is a range of numbers. None for both: all columns.
    delimiter : str or None
        The delimiter between the cells of a line.
    decimal : str
        The decimal point of numbers: `.` or `,`.
    thousands : str or None
        The separator of thousands: `,`, `.`, `'` or `space`.
    header : bool or None
        Whether the first row has the names of the columns.
    wanted : tuple of str or None
        The names of the columns that the tensor must have, in this order; None for any names.
    takes_wanted : bool
        Whether, without `columns` and `exclude`, the wanted columns are chosen and others left out.
    by : str or None
        The names of the columns that rows are grouped by; they are left out unless `columns` names them.
    columns_source : str
        The words of the caller that give `columns`, for messages: `--columns`, or `FILE:COLUMN`.
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
    columns_source: str = "--columns"

    def refuse(self, subject: str, *, but: Sequence[str] = ()) -> None:
        """Raise `UsageError` if an option of tables is set, as the input is no table (or no text).

        Parameters
        ----------
        subject : str
            The name of the input, for the message.
        but : sequence of str
            The names of options that are allowed.
        """
        for name in ("columns", "exclude", "by", *_OF_CELLS):
            if name not in but and getattr(self, name) != getattr(AS_FOUND, name):
                kind = "of CSV and TSV" if name in _OF_CELLS else "of tables"
                raise UsageError(f"--{name} is {kind}; {subject} is none")


_OF_CELLS = ("delimiter", "decimal", "thousands", "header")
"""The names of the options that only tables of text (CSV, TSV) have."""

AS_FOUND = TableOptions()
"""The default options: all columns of a table, everything else found from the file."""
