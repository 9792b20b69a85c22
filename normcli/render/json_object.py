"""Strict JSON: one object, complete."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, TextIO

if TYPE_CHECKING:
    from normcli.render.document import Document, View


def write(document: Document, stream: TextIO, view: View) -> None:
    """Write the document's data as one line of JSON."""
    stream.write(json.dumps(document.data(), allow_nan=False) + "\n")
