"""Which array of an archive is meant."""

from __future__ import annotations

from typing import TYPE_CHECKING

from normcli.errors import DataError, UsageError

if TYPE_CHECKING:
    from collections.abc import Collection


def choose(names: Collection[str], archive: str, key: str | None) -> str:
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
