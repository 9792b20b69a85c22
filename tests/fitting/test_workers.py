"""Tasks in threads: in their order, two at a time, and none goes on once nobody waits for it."""

from __future__ import annotations

import threading

import pytest

from normcli.fitting.workers import run_in_threads


def test_results_come_in_order_and_two_are_at_work():
    both = threading.Barrier(2, timeout=5)

    def work(number):
        both.wait()  # until another is at work
        return number

    assert list(run_in_threads(work, range(6), lambda: None)) == list(range(6))


def test_tasks_end_once_no_more_results_are_wanted():
    stopped, begun, before = threading.Event(), [], threading.active_count()

    def work(number):
        begun.append(number)
        assert number == 0 or stopped.wait(5)

    results = run_in_threads(work, range(9), stopped.set)
    next(results)
    results.close()
    assert begun == [0, 1, 2]
    assert threading.active_count() == before


def test_what_a_task_raises_ends_the_others():
    stopped = threading.Event()

    def work(number):
        if number == 0:
            raise ValueError("broken")
        assert stopped.wait(5)

    with pytest.raises(ValueError, match="broken"):
        list(run_in_threads(work, range(9), stopped.set))
