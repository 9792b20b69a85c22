"""Where an answer goes: standard output, or a file whose name says the format."""

from __future__ import annotations

import io
import os
import sys
from typing import TYPE_CHECKING, NamedTuple, cast

from normcli.errors import UsageError
from normcli.writers import PICTURES, SUFFIXES, write, write_picture

if TYPE_CHECKING:
    from collections.abc import Collection

    from normcli.documents.document import Document, Drawable, View


class Destination(NamedTuple):
    """A place and a format.

    Parameters
    ----------
    path : str or None
        None is standard output.
    format_name : str
    """

    path: str | None
    format_name: str

    def write(self, document: Document, view: View) -> None:
        """Write a document: to a file whole or not at all, without colours and as wide as it is.

        Raises
        ------
        DataError
            If writing fails.
        """
        if self.path is None:
            write(document, self.format_name, sys.stdout, view)
            return
        from normcli.tensors.whole import open_whole

        with open_whole(self.path) as file:
            if self.format_name in PICTURES:
                write_picture(cast("Drawable", document), self.format_name, file)
                return
            text = io.TextIOWrapper(file, encoding="utf-8", newline="")
            write(document, self.format_name, text, view._replace(width=None, colour=False))
            text.flush()
            text.detach()


def choose_destination(
    output: str | None, format_name: str | None, formats: Collection[str], default: str = "table"
) -> Destination:
    """Return where an answer goes and in which format: a check before any work is done.

    Parameters
    ----------
    output : str or None
        The file, as the caller named it.
    format_name : str or None
        The format that was asked for.
    formats : collection of str
        Those that the answer has.
    default : str
        The format on standard output.

    Raises
    ------
    UsageError
        If the file's name ends in no such format or in another than was asked for, or cannot be written.
    """
    if output is None:
        return Destination(None, format_name or default)
    suffix = os.path.splitext(output)[1].lower()  # noqa: PTH122
    named = SUFFIXES.get(suffix)
    if named not in formats:
        known = ", ".join(suffix for suffix, name in SUFFIXES.items() if name in formats)
        raise UsageError(f"--output {output}: the file's name ends in none of {known}")
    if format_name not in (None, named):
        raise UsageError(f"--format {format_name} and --output {output} are two formats; give one")
    from normcli.tensors.whole import require_writable

    require_writable(output, "--output")
    return Destination(output, cast("str", named))
