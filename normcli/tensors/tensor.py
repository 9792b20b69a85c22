"""A tensor with its source, and how one is asked for by name: `-`, or the key of an archive."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from normcli.errors import DataError, UsageError

if TYPE_CHECKING:
    from collections.abc import Collection

    from numpy.typing import NDArray

    from normcli.tensors.tables import Table

STANDARD_STREAM = "-"
"""What stands for standard input and output where a file is named."""


STREAMED = ("npy", "csv", "tsv", "json", "jsonl")
"""The formats of a tensor on standard output; the first is the usual one."""


class Tensor(NamedTuple):
    """Values, and what to call them.

    Parameters
    ----------
    values : ndarray
        Of an integer, boolean or float dtype.
    source : str
        Where they came from, as a person would say it: `x.npy`, `standard input`, `randint [0, 10), ...`.
    columns : tuple of str or None
        The names of the last axis, where the source had some (the header row of a CSV file).
    note : str or None
        What was done to get them that a person should know of.
    table : Table or None
        The table that they are columns of: a result is written among its other columns.
    """

    values: NDArray[Any]
    source: str
    columns: tuple[str, ...] | None = None
    note: str | None = None
    table: Table | None = None


def choose_key(names: Collection[str], archive: str, key: str | None) -> str:
    """Return the name of the array that is meant: `key`, or the only one.

    Raises
    ------
    UsageError
        If there are several arrays and no key, or none of that name.
    DataError
        If there are none.
    """
    if not names:
        raise DataError(f"{archive} holds no arrays")
    if key is None:
        if len(names) > 1:
            raise UsageError(f"{archive} holds {len(names)} arrays; say which: {_suggest(archive, names)}")
        return next(iter(names))
    if key not in names:
        raise UsageError(f"{archive} holds no array {key!r}; it has {_suggest(archive, names)}")
    return key


def _suggest(archive: str, names: Collection[str], most: int = 8) -> str:
    shown = ", ".join(f"{archive}:{name}" for name in list(names)[:most])
    return shown + (", …" if len(names) > most else "")
