"""A writer for each format of a document, and for each kind of picture.

* `markdown`: Markdown: tables and formulas as GitHub shows them
* `structured`: JSON, JSON Lines, CSV, TSV, and fields of `--print`
* `table`: coloured tables for a terminal, and as HTML for a notebook
"""

from __future__ import annotations

import contextlib
from importlib import import_module
from typing import TYPE_CHECKING, BinaryIO, TextIO

from normcli.language import is_translating, speak_english

if TYPE_CHECKING:
    from collections.abc import Callable

    from normcli.documents.document import Document, Drawable, View

WRITERS = {
    "table": ("normcli.writers.table", "write"),
    "json": ("normcli.writers.structured", "write_json"),
    "jsonl": ("normcli.writers.structured", "write_json_lines"),
    "csv": ("normcli.writers.structured", "write_csv"),
    "tsv": ("normcli.writers.structured", "write_tsv"),
    "markdown": ("normcli.writers.markdown", "write"),
    "html": ("normcli.page", "write"),
}
"""Format → the module and function that write it; imported on use, so that only tables cost rich's import."""

PAGE = "html"

FORMATS = tuple(name for name in WRITERS if name != PAGE)
"""The formats that every document is printed in with `--format`: all but the page."""

PICTURES = {"svg": ("normcli.pictures.svg", "write"), "png": ("normcli.pictures.svg", "write_png")}
"""Format of a picture → the module and function that write it."""

PAINTED = "png"
"""The format of pictures that needs an extra."""

SUFFIXES = {
    ".txt": "table", ".json": "json", ".jsonl": "jsonl", ".csv": "csv", ".tsv": "tsv", ".md": "markdown",
    ".html": "html", ".htm": "html", ".svg": "svg", ".png": "png",
}  # fmt: skip
"""The suffix of a file's name → the format written there."""

PARTS = ("input", "stats", "xhat", "y", "check")
"""The parts that the table of a norm can show; all but `xhat` by default."""

FIELDS = ("shape", "axes", "group_count", "group_size", "count", "xhat", "y", "gamma", "beta")
"""The fields that `--print` takes beside the norm's statistics."""

GRADIENTS = ("dx", "dgamma", "dbeta", "dgate")
"""The fields that `--print` takes of a backward pass."""

GRADIENT_PARTS = ("input", "dy", "dx", "dgate", "parameters")
"""The parts that the table of a backward pass can show."""

SYNONYMS = {"normalized": "y"}
"""Another name of a part or field → its name."""


def write(document: Document, format_name: str, stream: TextIO, view: View) -> None:
    """Write a document to a stream in one of the formats of `WRITERS`.

    `view` says what is shown and how. A format that is none of these raises `KeyError`.
    """
    _find(WRITERS[format_name])(document, stream, view)


def write_picture(drawable: Drawable, format_name: str, stream: BinaryIO) -> None:
    """Write a document's picture in one of the formats of `PICTURES`.

    A PNG is in English if this machine has no font for the chosen language.
    """
    with speak_english() if format_name == PAINTED and not has_letters() else contextlib.nullcontext():
        _find(PICTURES[format_name])(drawable.scene(), stream)


def has_letters() -> bool:
    """Whether a PNG can be in the chosen language: True for English, and if a Chinese font is installed."""
    if not is_translating():
        return True
    from normcli.language.fonts import find_chinese_fonts

    return find_chinese_fonts() is not None


def _find(place: tuple[str, str]) -> Callable[..., None]:
    """Return the function that writes a format, given the names of its module and of the function."""
    module, function = place
    writer: Callable[..., None] = getattr(import_module(module), function)
    return writer
