"""Runs that are killed at any moment, each verb that writes: the old output or the new, and no litter."""

from __future__ import annotations

import os
import random
import shutil
import subprocess
import sys
import time

import numpy as np
import pytest

from tests.test_faults import COMMANDS

pytestmark = pytest.mark.slow

KILLS = 3


@pytest.fixture
def folder(tmp_path, monkeypatch, normcli):
    monkeypatch.chdir(tmp_path)
    np.save("x.npy", np.random.default_rng(1).normal(3, 2, (400, 30)))
    assert normcli("fit", "zscore", "x.npy", "-o", "stats.npz").code == 0
    return tmp_path


def _start(line):
    command = [sys.executable, "-m", "normcli", *line.split()]
    return subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def _time(line):
    """Run a command to its end; return how long it took."""
    start = time.monotonic()
    assert _start(line).wait() == 0
    return time.monotonic() - start


def _kill_one(line, moment):
    process = _start(line)
    time.sleep(moment)
    process.kill()
    process.wait()


@pytest.mark.parametrize(("line", "name"), COMMANDS)
def test_a_killed_run_leaves_the_old_output_or_the_new(line, name, folder):
    target = folder / name
    if "--state" in line:
        _time(line)
        old = target.read_bytes()
    else:
        old = b"old"
        target.write_bytes(old)
    seconds, new, before = _time(line), target.read_bytes(), set(os.listdir(folder))
    assert new != old
    moments = random.Random(line)
    for _ in range(KILLS):
        target.write_bytes(old)
        _kill_one(line, seconds * moments.uniform(0.3, 1.1))
        assert target.read_bytes() in (old, new)
        assert set(os.listdir(folder)) == before


def test_a_killed_golden_leaves_a_whole_folder_or_none(folder):
    line = "golden ln -i x.npy -o g"
    seconds = _time(line)
    names = sorted(os.listdir("g"))
    shutil.rmtree("g")
    moments, before = random.Random(line), set(os.listdir(folder))
    for _ in range(KILLS):
        _kill_one(line, seconds * moments.uniform(0.3, 1.1))
        if os.path.exists("g"):
            assert sorted(os.listdir("g")) == names
            shutil.rmtree("g")
    _time(line)  # removes what those before it left
    assert set(os.listdir(folder)) == {*before, "g"}
