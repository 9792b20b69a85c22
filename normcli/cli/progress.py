"""Progress of the work: a bar on a terminal with bytes, throughput and time left."""

from __future__ import annotations

import contextlib
import os
import sys
import threading
import time
from typing import TYPE_CHECKING, Self, TextIO

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

    from rich.progress import Progress

PATIENCE = 1.0
"""Seconds of work before a bar appears: what is done sooner needs none."""


def show_progress(*, quiet: bool) -> AbstractContextManager[ProgressBar | None]:
    """Return what draws a bar on standard error while it is open, or nothing where nobody would see it."""
    if quiet or not sys.stderr.isatty() or os.environ.get("TERM") == "dumb":
        return contextlib.nullcontext()
    return ProgressBar(sys.stderr)


class ProgressBar:
    """Watches a run, and after a second of it draws a bar that goes when the work is done.

    Parameters
    ----------
    stream : TextIO
        A terminal.
    patience : float
        Seconds before it appears.
    """

    def __init__(self, stream: TextIO, patience: float = PATIENCE) -> None:
        self._stream, self._patience = stream, patience
        self._expected = self._done = 0
        self._started = time.monotonic()
        self._lock = threading.Lock()
        self._bar: Progress | None = None
        self._closed = False

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        with self._lock:
            self._closed = True  # an answer may be calculated on use, later than this
            if self._bar is not None:
                self._bar.stop()

    def expect(self, byte_count: int) -> None:
        """Add bytes to what is to be done. Called once for each pass over a file, from any thread."""
        with self._lock:
            self._expected += byte_count

    def advance(self, byte_count: int) -> None:
        """Add bytes to what is done. Called after each tile, from any thread."""
        with self._lock:
            self._done += byte_count
            if self._closed:
                return
            if self._bar is None:
                if time.monotonic() - self._started < self._patience or self._done >= self._expected:
                    return
                self._bar = _make_bar(self._stream)
                self._bar.add_task("", total=self._expected, completed=self._done)
                self._bar.start()
            self._bar.update(self._bar.task_ids[0], total=self._expected, completed=self._done)


def _make_bar(stream: TextIO) -> Progress:
    from rich.console import Console
    from rich.progress import BarColumn, DownloadColumn, Progress, TimeRemainingColumn, TransferSpeedColumn

    return Progress(
        BarColumn(),
        DownloadColumn(),
        TransferSpeedColumn(),
        TimeRemainingColumn(),
        console=Console(file=stream),
        transient=True,
    )
