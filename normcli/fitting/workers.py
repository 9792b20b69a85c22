"""Tasks in processes: in threads, the many short calls of NumPy would wait for Python's lock."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, Any, TypeVar

from normcli.errors import DataError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from multiprocessing.connection import Connection

Outcome = TypeVar("Outcome")

_NUMBER = 4
"""Bytes of a number in the file from which all workers read; reads of so few bytes are never divided."""


def can_fork() -> bool:
    """Whether workers can be started quickly, as copies of this process."""
    return sys.platform == "linux"


def run_in_processes(task: Callable[[int], Outcome], numbers: Sequence[int], workers: int) -> Iterator[Outcome]:
    """Yield the result of a task for each number, in order, calculated by several processes at once.

    If the caller closes the iterator, or an exception leaves it, all processes are killed.

    Parameters
    ----------
    task : callable
        Takes a number, and returns an object that can be pickled. Its exceptions are raised here.
    numbers : sequence of int
        Numbers from 0 to 2³² − 1.
    workers : int
        The number of processes.

    Raises
    ------
    DataError
        If all processes were ended from outside before the results were complete.
    """
    queue = os.memfd_create("numbers")  # all workers share its position, so that each number is read once
    os.write(queue, b"".join(number.to_bytes(_NUMBER, "little") for number in numbers))
    os.lseek(queue, 0, os.SEEK_SET)
    team = dict(_start(task, queue) for _ in range(workers))
    at_work, done = set(team), dict[int, Outcome]()
    try:
        for number in numbers:
            while number not in done:
                found, outcome, error = _receive(at_work)
                if error is not None:
                    raise error
                done[found] = outcome
            yield done.pop(number)
    finally:
        os.close(queue)
        _end(team)


def _receive(at_work: set[Connection]) -> Any:
    """Wait for a worker's next message, and return it: (number, result, None) or (number, None, exception).

    `number` is the task's. `at_work` has the result pipes of the workers. The pipe of a worker that has ended
    is removed from it; a message that this worker wrote only in part is dropped.

    Raises
    ------
    DataError
        If all workers have ended, and no message is left.
    """
    from multiprocessing.connection import wait

    while at_work:
        ready: Any = wait([*at_work])
        for found in ready:
            try:
                return found.recv()
            except (EOFError, OSError):  # a worker that is killed while it writes leaves a part
                at_work.discard(found)
    raise DataError("a process that reads files was ended from outside; --threads 1 starts none")


def _start(task: Callable[[int], Any], queue: int) -> tuple[Connection, int]:
    """Start a worker that takes numbers from the file `queue`; return its result pipe and its process id.

    The worker never returns from this function.
    """
    from multiprocessing.connection import Pipe

    found, to = Pipe(duplex=False)
    process = os.fork()
    if process:
        to.close()
        return found, process
    try:
        _work(task, queue, to)
    finally:
        os._exit(0)  # skip what the copied program would do at its end


def _work(task: Callable[[int], Any], queue: int, to: Connection) -> None:
    """Run the task for numbers from the file `queue` until it ends; send results through the pipe `to`."""
    import signal

    for ending in (signal.SIGINT, signal.SIGTERM):  # at once and silently: the parent reports it
        if signal.getsignal(ending) is not signal.SIG_IGN:  # background jobs ignore signals: so it stays
            signal.signal(ending, signal.SIG_DFL)
    while raw := os.read(queue, _NUMBER):
        number = int.from_bytes(raw, "little")
        found: tuple[int, Any, BaseException | None]
        try:
            found = number, task(number), None
        except BaseException as error:
            found = number, None, error
        to.send(found)


def _end(team: Mapping[Connection, int]) -> None:
    """End all workers (result pipe → process id), and wait until they are gone."""
    import signal

    for process in team.values():
        os.kill(process, signal.SIGKILL)
    for found, process in team.items():
        found.close()
        os.waitpid(process, 0)
