"""Tasks in processes: in threads, the many short calls of NumPy would wait for Python's lock."""

from __future__ import annotations

import os
import pickle
import sys
from typing import TYPE_CHECKING, Any, TypeVar

from normcli.errors import DataError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

Outcome = TypeVar("Outcome")

_NUMBER = 4
"""Bytes of a number in the file from which all workers read; reads of so few bytes are never divided."""

_LENGTH = 8
"""Bytes of the length that stands before a worker's result."""


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


def _receive(at_work: set[int]) -> Any:
    """Wait for a worker's next message, and return it: (number, result, None) or (number, None, exception).

    `number` is the task's. `at_work` has the file descriptors of the workers' result pipes. The pipe of a
    worker that has ended is removed from it; a message that this worker wrote only in part is dropped.

    Raises
    ------
    DataError
        If all workers have ended, and no message is left.
    """
    import select

    while at_work:
        poll = select.poll()
        for found in at_work:
            poll.register(found, select.POLLIN)
        for found, event in poll.poll():
            length = int.from_bytes(_read(found, _LENGTH) if event & select.POLLIN else b"", "little")
            data = _read(found, length)
            if data and len(data) == length:  # a worker that is killed while it writes leaves a part
                return pickle.loads(data)
            at_work.discard(found)
    raise DataError("a process that reads files was ended from outside; --threads 1 starts none")


def _read(descriptor: int, count: int) -> bytes:
    """Return `count` bytes of a pipe, or fewer if it ends before."""
    data = b""
    while len(data) < count and (part := os.read(descriptor, count - len(data))):
        data += part
    return data


def _start(task: Callable[[int], Any], queue: int) -> tuple[int, int]:
    """Start a worker that takes numbers from the file `queue`; return its result pipe and its process id.

    The pipe is given as a file descriptor for reading. The worker never returns from this function.
    """
    found, to = os.pipe()
    process = os.fork()
    if process:
        os.close(to)
        return found, process
    try:
        _work(task, queue, to)
    finally:
        os._exit(0)  # skip what the copied program would do at its end


def _work(task: Callable[[int], Any], queue: int, to: int) -> None:
    """Run the task for numbers from the file `queue` until it ends; write pickled results to the pipe `to`."""
    import signal

    for ending in (signal.SIGINT, signal.SIGTERM):  # at once and silently: the parent reports it
        if signal.getsignal(ending) is not signal.SIG_IGN:  # background jobs ignore signals: so it stays
            signal.signal(ending, signal.SIG_DFL)
    with os.fdopen(to, "wb") as stream:
        while raw := os.read(queue, _NUMBER):
            number = int.from_bytes(raw, "little")
            found: tuple[int, Any, BaseException | None]
            try:
                found = number, task(number), None
            except BaseException as error:
                found = number, None, error
            data = pickle.dumps(found, pickle.HIGHEST_PROTOCOL)
            stream.write(len(data).to_bytes(_LENGTH, "little") + data)
            stream.flush()


def _end(team: Mapping[int, int]) -> None:
    """End all workers (result pipe → process id), and wait until they are gone."""
    import signal

    for process in team.values():
        os.kill(process, signal.SIGKILL)
    for found, process in team.items():
        os.close(found)
        os.waitpid(process, 0)
