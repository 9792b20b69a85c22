"""The names of columns: matched, and listed in messages."""

from __future__ import annotations

from typing import TYPE_CHECKING

from normcli.errors import DataError
from normcli.printable import shorten

if TYPE_CHECKING:
    from collections.abc import Sequence

_LISTED = 12
"""The most column names that a message lists."""


def match_names(names: Sequence[str], wanted: Sequence[str], source: str) -> list[int]:
    """Return the position of each wanted column name among the names of a source.

    Raises
    ------
    DataError
        If a wanted name is missing, there are other names, or two names are equal; never if the names are the
        wanted ones in the same order.
    """
    if tuple(names) == tuple(wanted):
        return list(range(len(names)))
    problems = [
        f"{what} {list_names(found)}"
        for what, found in (
            ("there is no", [name for name in wanted if name not in names]),
            ("there is also", [name for name in names if name not in wanted]),
            ("there are two of", sorted({name for name in names if list(names).count(name) > 1})),
        )
        if found
    ]
    if problems:
        raise DataError(f"{source} has other columns than {list_names(wanted)}: {'; '.join(problems)}")
    return [list(names).index(name) for name in wanted]


def list_names(names: Sequence[str]) -> str:
    """Return names for a message: the first 12, and the number of further ones."""
    more = f" and {len(names) - _LISTED} more" if len(names) > _LISTED else ""
    return ", ".join(map(shorten, names[:_LISTED])) + more
