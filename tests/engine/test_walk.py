"""Walks that share workspaces."""

from __future__ import annotations

import threading

import pytest

from normcli.engine.walk import StoppedError, Workspaces


def test_no_more_tiles_at_a_time_than_workspaces():
    shared, inside, most = Workspaces(2), [], []

    def work():
        for _ in range(20):
            with shared.lend() as own:
                assert own not in inside
                inside.append(own)
                most.append(len(inside))
                inside.remove(own)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(most) == 80
    assert max(most) <= 2


def test_stopped_workspaces_are_lent_no_more():
    shared = Workspaces(1)
    with shared.lend():
        shared.stop()
    with pytest.raises(StoppedError), shared.lend():
        pass


def test_a_workspace_comes_back_after_a_failure():
    shared = Workspaces(1)
    with pytest.raises(ValueError, match="broken"), shared.lend() as first:
        raise ValueError("broken")
    with shared.lend() as again:
        assert again is first
