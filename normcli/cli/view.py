"""The reader at the other end of stdout: a terminal of some width, or a pipe."""

from __future__ import annotations

import os
import shutil
import sys

from normcli.documents.document import View


def make_view(
    colour: str, digits: int | None = None, *, full: bool = False, show: frozenset[str] | None = None
) -> View:
    """Return the view for this stdout.

    Parameters
    ----------
    colour : {"auto", "always", "never"}
        `auto` colours a terminal, unless NO_COLOR is set or TERM is dumb.
    digits, full, show
        As in `View`.
    """
    terminal = sys.stdout.isatty()
    plain = bool(os.environ.get("NO_COLOR")) or os.environ.get("TERM") == "dumb"
    return View(
        show=show,
        digits=digits,
        full=full,
        width=shutil.get_terminal_size().columns if terminal else None,
        colour=colour == "always" or (colour == "auto" and terminal and not plain),
    )
