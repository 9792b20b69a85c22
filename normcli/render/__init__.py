"""How answers look: documents made of results, and a writer for each format. To add a format, add a file."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, TextIO

if TYPE_CHECKING:
    from normcli.render.document import Document, View

WRITERS = {
    "table": "normcli.render.table",
    "json": "normcli.render.json_object",
    "jsonl": "normcli.render.json_lines",
    "csv": "normcli.render.csv_rows",
    "markdown": "normcli.render.markdown",
}
"""Format → the module whose `write` renders it; imported on use, so that only tables cost rich's import."""


PARTS = ("input", "stats", "normalized", "check")
"""What the table of a norm can show."""


def write(document: Document, format_name: str, stream: TextIO, view: View) -> None:
    """Write a document in one of the formats of `WRITERS`."""
    import_module(WRITERS[format_name]).write(document, stream, view)
