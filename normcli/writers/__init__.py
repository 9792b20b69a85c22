"""How answers look: documents made of results, and a writer for each format. To add a format, add a file."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, BinaryIO, TextIO

if TYPE_CHECKING:
    from normcli.documents.document import Document, Drawable, View

WRITERS = {
    "table": "normcli.writers.table",
    "json": "normcli.writers.json_object",
    "jsonl": "normcli.writers.json_lines",
    "csv": "normcli.writers.csv_rows",
    "markdown": "normcli.writers.markdown",
    "html": "normcli.page",
}
"""Format → the module whose `write` renders it; imported on use, so that only tables cost rich's import."""

PAGE = "html"

FORMATS = tuple(name for name in WRITERS if name != PAGE)
"""The formats that every document has; a page is made of results alone."""

PICTURES = {"svg": "normcli.pictures.svg", "png": "normcli.pictures.png"}
"""Format of a picture → the module whose `write` paints it."""

SUFFIXES = {
    ".txt": "table", ".json": "json", ".jsonl": "jsonl", ".csv": "csv", ".md": "markdown",
    ".html": "html", ".htm": "html", ".svg": "svg", ".png": "png",
}  # fmt: skip
"""The end of a file's name → the format of what is written there."""

PAGE_SUFFIXES = tuple(suffix for suffix, name in SUFFIXES.items() if name == PAGE)

PARTS = ("input", "stats", "normalized", "check")
"""What the table of a norm can show."""


def write(document: Document, format_name: str, stream: TextIO, view: View) -> None:
    """Write a document in one of the formats of `WRITERS`."""
    import_module(WRITERS[format_name]).write(document, stream, view)


def paint(drawable: Drawable, format_name: str, stream: BinaryIO) -> None:
    """Write a picture in one of the formats of `PICTURES`."""
    import_module(PICTURES[format_name]).write(drawable.scene(), stream)
