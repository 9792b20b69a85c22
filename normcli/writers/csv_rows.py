"""CSV: a header and one line a row (for a norm, a value)."""

from __future__ import annotations

import csv
from typing import TYPE_CHECKING, TextIO

if TYPE_CHECKING:
    from normcli.documents.document import Document, View


def write(document: Document, stream: TextIO, view: View) -> None:
    """Write the document's rows."""
    csv.writer(stream, lineterminator="\n").writerows(document.rows())
