"""Tasks in processes: in threads, the many short calls of NumPy would wait for Python's lock."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

Outcome = TypeVar("Outcome")

_task: Callable[[int], Any] | None = None
"""The task of a worker: inherited by the fork, so that it need not be picklable."""


def can_fork() -> bool:
    """Whether workers can be started quickly, as copies of this process."""
    return sys.platform == "linux"


def run_in_processes(task: Callable[[int], Outcome], numbers: Sequence[int], workers: int) -> Iterator[Outcome]:
    """Yield the results of a task for some numbers, in their order, from several processes at once.

    Parameters
    ----------
    task : callable
        Takes a number, returns what can be pickled; an exception ends all.
    numbers : sequence of int
    workers : int
        How many processes.
    """
    global _task  # a fork inherits it; a worker is sent numbers alone
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
    """Let an interrupt end a worker at once and silently: its parent reports it."""
    import signal

    signal.signal(signal.SIGINT, signal.SIG_DFL)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)


def _run(number: int) -> Any:
    assert _task is not None
    return _task(number)
