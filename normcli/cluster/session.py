"""A cluster of dask: connected to or started, given tasks, watched, and left with nothing running."""

from __future__ import annotations

import contextlib
import errno
import logging
import os
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import dask

from normcli.cluster import require_dask
from normcli.errors import DataError, NormError

with require_dask():
    from distributed import Client, LocalCluster

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from dask.delayed import Delayed

CONNECT = 20.0
"""Seconds to wait for a scheduler."""

PATIENCE = 30.0
"""Seconds to wait for a worker, where there is none."""

SETTLE = 30.0
"""Seconds to wait for cancelled tasks to end."""

_POLL, _ASK = 0.05, 1.0
"""Seconds between two looks at the tasks, and between two questions to the scheduler."""

_LIGHT = {
    "distributed.worker.profile.enabled": False,
    "distributed.admin.system-monitor.interval": "5s",
}
"""Dask's settings for workers started here: without them, each samples its stack a hundred times a second."""

_OF_FILES = (errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EACCES)
"""Numbers of errors by which a file cannot be written; they are raised as they are, not as the cluster's."""

_STDERR = 2

RETRIES = 3
"""The number of times that a task is tried again after the loss of its worker."""


class Session:
    """A connection to a dask scheduler, on which tasks are run; `open_session` makes one.

    Parameters
    ----------
    client : distributed.Client
    address : str
        The scheduler's address in messages.
    cluster : distributed.LocalCluster or None
        The workers that were started here; None for a scheduler elsewhere.
    """

    def __init__(self, client: Any, address: str, cluster: Any = None) -> None:
        self._client, self._address, self._cluster = client, address, cluster

    def run(self, tasks: Sequence[Delayed], advance: Callable[[int], None] = lambda count: None) -> list[Any]:
        """Run tasks; return their results in the order of the tasks.

        After an error of any kind but `NormError`, the other tasks are cancelled; this waits for them to end.

        Parameters
        ----------
        tasks : sequence of Delayed
        advance : callable
            Called with the number of tasks that were done since the last call.

        Raises
        ------
        NormError
            If a task raises one.
        DataError
            If the scheduler or all workers are gone, or a task takes its workers down.
        OSError
            If a task cannot write a file.
        """
        futures = self._client.compute(list(tasks), retries=RETRIES)
        try:
            self._watch(futures, advance)
            gathered: list[Any] = self._client.gather(futures)
        except NormError:
            raise
        except BaseException as error:
            with contextlib.suppress(Exception):
                self._client.cancel(futures, force=True)
                self._settle({future.key for future in futures})
            if isinstance(error, Exception) and getattr(error, "errno", None) not in _OF_FILES:
                raise DataError(f"the cluster at {self._address} failed: {_describe(error)}") from error
            raise
        return gathered

    def _settle(self, keys: set[Any]) -> None:
        """Wait, at most 30 seconds, until no worker runs a dask task with one of these keys and might write.

        Workers that were started here are stopped instead, and the session with them: their threads may write
        on after a task ends.
        """
        if self._cluster is not None:
            self._client.close()
            self._cluster.close()
            return
        until = time.monotonic() + SETTLE
        while time.monotonic() < until and any(self._client.run(_is_running, keys).values()):
            time.sleep(_POLL)

    def _watch(self, futures: list[Any], advance: Callable[[int], None]) -> None:
        """Wait until all tasks are done or one failed; `advance` is called with the number of tasks newly done.

        Raises
        ------
        DataError
            If the scheduler ends, or there are no workers for 30 seconds.
        """
        alone_since: float | None = None
        done, asked = 0, time.monotonic()
        while True:
            finished = sum(future.status in ("finished", "error", "cancelled", "lost") for future in futures)
            advance(finished - done)
            done = finished
            if done == len(futures) or any(future.status == "error" for future in futures):
                return
            time.sleep(_POLL)
            if self._client.status != "running":
                raise DataError(f"the scheduler at {self._address} is gone")
            if time.monotonic() - asked < _ASK:
                continue
            asked = time.monotonic()
            alone_since = None if self._client.nthreads() else alone_since or asked
            if alone_since is not None and asked - alone_since > PATIENCE:
                raise DataError(f"the scheduler at {self._address} has no workers")


def _is_running(keys: set[Any], dask_worker: Any) -> bool:
    """Whether a worker runs a task with one of these keys, or has one waiting; dask passes `dask_worker`."""
    tasks = dask_worker.state.tasks.values()
    return any(task.key in keys and task.state not in ("memory", "error", "released") for task in tasks)


@contextlib.contextmanager
def _silence() -> Iterator[None]:
    """Return a context manager that discards standard error, also of processes started in its block.

    Standard error is restored at the end, also after an error.
    """
    sys.stderr.flush()
    kept = os.dup(_STDERR)
    try:
        with Path(os.devnull).open("wb") as nowhere:
            os.dup2(nowhere.fileno(), _STDERR)
        yield
    finally:
        os.dup2(kept, _STDERR)
        os.close(kept)


def _describe(error: Exception) -> str:
    return f"{type(error).__name__}: {[*str(error).strip().splitlines(), 'no reason given'][0]}"


def _start_workers(count: int | None) -> Any:
    """Start worker processes on this machine, as many as dask chooses if `count` is None; return the cluster.

    Raises
    ------
    DataError
        If they cannot be started.
    """
    try:
        with _silence(), dask.config.set(_LIGHT):  # workers write to stderr when they are stopped
            return LocalCluster(
                n_workers=count,
                threads_per_worker=1,
                processes=True,
                dashboard_address="127.0.0.1:0",
                silence_logs=logging.CRITICAL,
            )
    except (RuntimeError, OSError, TimeoutError) as error:
        raise DataError(f"workers cannot be started: {_describe(error)}") from error


@contextlib.contextmanager
def open_session(scheduler: str | None, workers: int | None) -> Iterator[Session]:
    """Return a context manager of a `Session`, with a scheduler or with workers started on this machine.

    At the end of the block, also after an error, the connection is closed and those workers are stopped.
    Logging of dask is silenced for the whole process.

    Parameters
    ----------
    scheduler : str or None
        The scheduler's address; None: workers are started.
    workers : int or None
        The number of workers to start; None: dask chooses.

    Raises
    ------
    DataError
        If no scheduler answers at the address, or workers cannot be started.
    """
    for name in list(logging.root.manager.loggerDict):  # some loggers of dask have levels of their own
        if name.partition(".")[0] in ("distributed", "tornado", "asyncio"):
            logging.getLogger(name).setLevel(logging.CRITICAL)  # normcli's own message is enough
    cluster: Any = None
    with contextlib.ExitStack() as at_end:
        if scheduler is None:
            cluster = _start_workers(workers)
            address: Any = at_end.enter_context(cluster)
            name = "this machine"
        else:
            address = name = scheduler
        try:
            client = at_end.enter_context(Client(address, timeout=CONNECT, set_as_default=False))
        except (OSError, ValueError, TimeoutError) as error:
            raise DataError(f"no scheduler answers at {name}: {_describe(error)}") from error
        yield Session(client, name, cluster)
