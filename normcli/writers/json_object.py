"""Strict JSON: one object, complete."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TextIO

if TYPE_CHECKING:
    from collections.abc import Iterator

    from normcli.documents.document import Document, View


def write(document: Document, stream: TextIO, view: View) -> None:
    """Write the document's data as one line of JSON."""
    stream.writelines(spell(document.data()))
    stream.write("\n")


def spell(value: Any) -> Iterator[str]:
    """Yield the JSON text of a value, in pieces where something in it is `Spelled`."""
    if not _holds_spelled(value):
        yield json.dumps(value, allow_nan=False)
    elif isinstance(value, Mapping):
        yield "{"
        for number, (key, member) in enumerate(value.items()):
            yield f"{', ' if number else ''}{json.dumps(key)}: "
            yield from spell(member)
        yield "}"
    elif isinstance(value, list | tuple) and not hasattr(value, "spell"):
        yield "["
        for number, member in enumerate(value):
            yield ", " if number else ""
            yield from spell(member)
        yield "]"
    else:
        yield from value.spell()


def _holds_spelled(value: Any) -> bool:
    if hasattr(value, "spell"):
        return True
    if isinstance(value, Mapping):
        return any(map(_holds_spelled, value.values()))
    return isinstance(value, list | tuple) and any(
        isinstance(member, Mapping) and _holds_spelled(member) for member in value
    )
