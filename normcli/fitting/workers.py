"""Tasks in processes of their own: threads would wait for each other's many short calls."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

Outcome = TypeVar("Outcome")

_task: Callable[[int], Any] | None = None
"""In a worker, what it does: inherited, so that it need not be one that can be sent."""


def can_fork() -> bool:
    """Whether workers can be had for little: as copies of this process."""
    return sys.platform == "linux"


def run_in_processes(task: Callable[[int], Outcome], numbers: Sequence[int], workers: int) -> Iterator[Outcome]:
    """Yield what a task makes of numbers, in their order, worked out by several processes at once.

    Parameters
    ----------
    task : callable
        From a number to what can be pickled; an exception ends all.
    numbers : sequence of int
    workers : int
        How many processes.
    """
    global _task  # a fork inherits it; nothing else reaches a worker but numbers
    from concurrent.futures import ProcessPoolExecutor
    from multiprocessing import get_context

    _task = task
    pool = ProcessPoolExecutor(workers, mp_context=get_context("fork"), initializer=_begin)
    try:
        yield from pool.map(_run, numbers)
    finally:
        pool.shutdown(cancel_futures=True)
        _task = None


def _begin() -> None:
    """Let an interrupt end a worker at once, without a word: its parent says what there is to say."""
    import signal

    signal.signal(signal.SIGINT, signal.SIG_DFL)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)


def _run(number: int) -> Any:
    assert _task is not None
    return _task(number)
