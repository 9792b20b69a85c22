"""JSON lines: one object a record (for a norm, a group)."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, TextIO

if TYPE_CHECKING:
    from normcli.render.document import Document, View


def write(document: Document, stream: TextIO, view: View) -> None:
    """Write each record as a line of JSON."""
    for record in document.records():
        stream.write(json.dumps(record, allow_nan=False) + "\n")
