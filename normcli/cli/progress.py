"""Progress of long work: a bar with bytes, throughput and time left; one line where there is no terminal."""

from __future__ import annotations

import os
import sys
import threading
import time
from typing import TYPE_CHECKING, Self, TextIO

if TYPE_CHECKING:
    from collections.abc import Callable

    from rich.progress import Progress

PATIENCE = 1.0
"""Seconds of work before the progress bar appears."""

LONG_PATIENCE = 10.0
"""Seconds of work before a run without a terminal writes how long it will take."""

SHORTEST = 1.0
"""The shortest remaining time, in seconds, that a run without a terminal reports."""


def watch_progress(say: Callable[[str], None], *, shows_bytes: bool = True) -> Watcher:
    """Return a context manager that shows a run's progress: a bar on a terminal, otherwise one line.

    Parameters
    ----------
    say : callable
        Writes a message; used if standard error is no terminal.
    shows_bytes : bool
        Whether the bar shows bytes and their throughput, and not the percentage.
    """
    if sys.stderr.isatty() and os.environ.get("TERM") != "dumb":
        return ProgressBar(sys.stderr, shows_bytes=shows_bytes)
    return Forecast(say)


class Watcher:
    """A context manager that counts bytes to process and bytes processed; subclasses show them.

    Nothing is shown after the `with` block.

    Parameters
    ----------
    patience : float
        The seconds of work before anything is shown.
    """

    def __init__(self, patience: float) -> None:
        self._patience = patience
        self._expected = self._done = 0
        self._started = time.monotonic()
        self._lock = threading.Lock()
        self._closed = False

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        with self._lock:
            self._closed = True  # an answer may be calculated on use, later than this
            self._close()

    def expect(self, byte_count: int) -> None:
        """Add to the bytes that are to be processed; called before each pass over a file, from any thread."""
        with self._lock:
            self._expected += byte_count

    def advance(self, byte_count: int) -> None:
        """Add to the bytes that are processed; called after each tile, from any thread."""
        with self._lock:
            self._done += byte_count
            seconds = time.monotonic() - self._started
            if not self._closed and seconds >= self._patience:
                self._show(seconds)

    def _show(self, seconds: float) -> None:
        """Show the share of the run that is done, given the seconds since its start."""
        raise NotImplementedError

    def _close(self) -> None:
        """Take away what is shown."""


class Forecast(Watcher):
    """A `Watcher` that writes one line, once: how much is done, and how long the run will still take.

    Nothing is written before `patience` seconds, or if less than a second is left.
    """

    def __init__(self, say: Callable[[str], None], patience: float = LONG_PATIENCE) -> None:
        super().__init__(patience)
        self._say = say

    def _show(self, seconds: float) -> None:
        left = seconds * (self._expected / self._done - 1.0)
        if left >= SHORTEST:
            self._say(f"{self._done / self._expected:.0%} done after {seconds:.0f} s, about {left:.0f} s to go")
            self._closed = True


class ProgressBar(Watcher):
    """A `Watcher` that draws a progress bar on a terminal, and removes it when the `with` block ends."""

    def __init__(self, stream: TextIO, patience: float = PATIENCE, *, shows_bytes: bool = True) -> None:
        super().__init__(patience)
        self._stream, self._shows_bytes = stream, shows_bytes
        self._bar: Progress | None = None

    def _show(self, seconds: float) -> None:
        """Show the bar, or update it; nothing is shown if all work that was announced is done."""
        if self._bar is None:
            if self._done >= self._expected:
                return
            self._bar = _make_bar(self._stream, shows_bytes=self._shows_bytes)
            self._bar.add_task("", total=self._expected, completed=self._done)
            self._bar.start()
        self._bar.update(self._bar.task_ids[0], total=self._expected, completed=self._done)

    def _close(self) -> None:
        if self._bar is not None:
            self._bar.stop()


def _make_bar(stream: TextIO, *, shows_bytes: bool) -> Progress:
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        DownloadColumn,
        Progress,
        TaskProgressColumn,
        TimeRemainingColumn,
        TransferSpeedColumn,
    )

    done = (DownloadColumn(), TransferSpeedColumn()) if shows_bytes else (TaskProgressColumn(),)
    return Progress(
        BarColumn(),
        *done,
        TimeRemainingColumn(),
        console=Console(file=stream),
        transient=True,
    )
