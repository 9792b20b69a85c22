"""Whether somebody sees how far the work is: on a terminal, unless quiet is asked for."""

from __future__ import annotations

import contextlib
import os
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

    from normcli.render.progress import ProgressBar


def show_progress(*, quiet: bool) -> AbstractContextManager[ProgressBar | None]:
    """Return what draws a bar on standard error while it is open, or nothing where nobody would see it."""
    if quiet or not sys.stderr.isatty() or os.environ.get("TERM") == "dumb":
        return contextlib.nullcontext()
    from normcli.render.progress import ProgressBar

    return ProgressBar(sys.stderr)
