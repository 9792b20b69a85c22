"""Runs that are killed at any moment, each verb that writes: the old output or the new, and no litter."""

from __future__ import annotations

import os
import random
import time

import numpy as np
import pytest

from tests import forked
from tests.marks import costly
from tests.test_faults import COMMANDS

pytestmark = pytest.mark.slow

KILLS = 5


@pytest.fixture
def folder(here, normcli):
    np.save("x.npy", np.random.default_rng(1).normal(3, 2, (400, 30)))
    assert normcli("fit", "zscore", "x.npy", "-o", "stats.npz").code == 0
    return here


def _time(line, folder):
    """Run a command to its end; return how long it took."""
    start = time.monotonic()
    assert forked.wait(forked.start(line.split(), folder)) == 0
    return time.monotonic() - start


def _kill_one(line, folder, moment):
    process = forked.start(line.split(), folder)
    time.sleep(moment)
    process.kill()
    return forked.wait(process)


@costly
@pytest.mark.parametrize(("line", "name"), COMMANDS)
def test_a_killed_run_leaves_the_old_output_or_the_new(line, name, folder):
    target = folder / name
    if "--state" in line:
        _time(line, folder)
        old = target.read_bytes()
    else:
        old = b"old"
        target.write_bytes(old)
    seconds, new, before = _time(line, folder), target.read_bytes(), set(os.listdir(folder))
    assert new != old
    moments = random.Random(line)
    for _ in range(KILLS):
        target.write_bytes(old)
        _kill_one(line, folder, seconds * moments.uniform(0, 1.1))
        assert target.read_bytes() in (old, new)
    _time(line, folder)  # removes what those before it left, if they were killed as they put it in place
    assert set(os.listdir(folder)) == before
