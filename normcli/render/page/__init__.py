"""A page: results of one tensor, to be moved over, flipped between and recalculated."""

from __future__ import annotations

from typing import TYPE_CHECKING, TextIO

if TYPE_CHECKING:
    from normcli.render.document import Document, View


def write(document: Document, stream: TextIO, view: View) -> None:
    """Write the page of a `Paged` document."""
    raise NotImplementedError
