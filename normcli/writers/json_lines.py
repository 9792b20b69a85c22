"""JSON lines: one object a record (for a norm, a group)."""

from __future__ import annotations

from typing import TYPE_CHECKING, TextIO

from normcli.writers.json_object import spell

if TYPE_CHECKING:
    from normcli.documents.document import Document, View


def write(document: Document, stream: TextIO, view: View) -> None:
    """Write each record as a line of JSON."""
    for record in document.records():
        stream.writelines(spell(record))
        stream.write("\n")
