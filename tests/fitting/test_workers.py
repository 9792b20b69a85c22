"""Tasks in processes: in their order, several at a time, and none goes on once nobody waits for it."""

from __future__ import annotations

import os
import pickle
import signal
import time
from multiprocessing.connection import Pipe

import pytest

from normcli.errors import DataError
from normcli.fitting.workers import _receive, can_fork, run_in_processes

pytestmark = pytest.mark.skipif(not can_fork(), reason="this system has no cheap processes")


@pytest.fixture(autouse=True)
def none_is_left(monkeypatch):
    """Require that no process is left behind, and no pipe; a server of other tests may be there."""
    before, started, fork = len(os.listdir("/proc/self/fd")), [], os.fork

    def record():
        started.append(fork())
        return started[-1]

    monkeypatch.setattr(os, "fork", record)
    yield
    for process in started:
        with pytest.raises(ChildProcessError):
            os.waitpid(process, os.WNOHANG)
    assert len(os.listdir("/proc/self/fd")) == before


@pytest.mark.slow
def test_results_come_in_order_from_as_many_processes():
    def work(number):
        time.sleep(0.05 + 0.01 * (number % 3 == 0))  # long enough for every process to begin
        return number, os.getpid()

    results = list(run_in_processes(work, range(20), 3))
    assert [number for number, _ in results] == list(range(20))
    assert len({process for _, process in results}) == 3


@pytest.mark.slow
def test_results_that_no_pipe_holds():
    sizes = [1 << 20, 0, 3, 1 << 20]
    assert [len(data) for data in run_in_processes(lambda n: b"x" * sizes[n], range(4), 2)] == sizes


@pytest.mark.slow
def test_tasks_end_once_no_more_results_are_wanted():
    results = run_in_processes(lambda number: number and time.sleep(60), range(9), 2)
    next(results)
    started = time.monotonic()
    results.close()
    assert time.monotonic() - started < 5


def test_what_a_task_raises_ends_the_others():
    def work(number):
        if number == 0:
            raise ValueError("broken")
        time.sleep(60)

    with pytest.raises(ValueError, match="broken"):
        list(run_in_processes(work, range(9), 2))


@pytest.mark.parametrize("workers", [1, 2])
def test_a_process_that_is_killed_is_told(workers):
    def work(number):
        if number == 2:
            os.kill(os.getpid(), signal.SIGKILL)

    with pytest.raises(DataError, match="was ended from outside"):
        list(run_in_processes(work, range(6), workers))


@pytest.mark.parametrize("written", [3, 4, 50])
def test_a_process_that_is_killed_while_it_writes_is_told(written):
    message = pickle.dumps((0, "x" * 100, None))
    found, to = Pipe(duplex=False)
    os.write(to.fileno(), (len(message).to_bytes(4, "big") + message)[:written])
    to.close()
    with pytest.raises(DataError, match="was ended from outside"):
        _receive({found})
    found.close()


@pytest.mark.slow
@pytest.mark.usefixtures("interruptible")
def test_an_interrupt_ends_a_worker_silently(capfd):
    with pytest.raises(DataError, match="was ended from outside"):
        list(run_in_processes(lambda number: os.kill(os.getpid(), signal.SIGINT), range(2), 2))
    assert capfd.readouterr() == ("", "")


@pytest.mark.slow
@pytest.mark.usefixtures("interruptible")
def test_an_interrupt_that_is_ignored_ends_no_worker():
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    found = run_in_processes(lambda number: os.kill(os.getpid(), signal.SIGINT), range(2), 2)
    assert list(found) == [None, None]
