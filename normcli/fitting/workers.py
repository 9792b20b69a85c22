"""Tasks in threads; or in processes, where the many short calls of NumPy would wait for Python's lock."""

from __future__ import annotations

import itertools
import sys
import threading
from collections import deque
from typing import TYPE_CHECKING, Any, Generic, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

Outcome = TypeVar("Outcome")

_AT_ONCE = 2
"""Tasks in threads at a time: while one begins or ends, the tiles of the other keep all processors busy."""

_task: Callable[[int], Any] | None = None
"""The task of a worker: inherited by the fork, so that it need not be picklable."""


class _Running(threading.Thread, Generic[Outcome]):
    """A task in a thread."""

    def __init__(self, task: Callable[[int], Outcome], number: int) -> None:
        super().__init__()
        self._work: Callable[[], Outcome] = lambda: task(number)

    def run(self) -> None:
        try:
            self._outcome, self._error = self._work(), None
        except BaseException as error:
            self._error = error

    def wait(self) -> Outcome:
        """Return what the task returns, or raise what it raises."""
        self.join()
        if self._error is not None:
            raise self._error
        return self._outcome


def run_in_threads(
    task: Callable[[int], Outcome], numbers: Sequence[int], stop: Callable[[], None]
) -> Iterator[Outcome]:
    """Yield the results of a task for some numbers, in their order, of which the next two are always at work.

    Parameters
    ----------
    task : callable
        Takes a number; an exception ends all.
    numbers : sequence of int
    stop : callable
        Called if no more results are wanted; tasks then end early.
    """
    running: deque[_Running[Outcome]] = deque()
    waiting = iter(numbers)

    def start(count: int) -> None:
        for number in itertools.islice(waiting, count):
            running.append(_Running(task, number))
            running[-1].start()

    try:
        start(_AT_ONCE)
        while running:
            outcome = running[0].wait()
            running.popleft()
            start(1)
            yield outcome
    finally:
        stop()
        for thread in running:
            thread.join()


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
