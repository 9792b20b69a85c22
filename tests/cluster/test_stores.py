"""Stores on four workers of their own: any chunks, shards and kills, and the bits of one machine."""

from __future__ import annotations

import random
import shutil
import subprocess
import sys
import threading

import numpy as np
import pytest

import normcli as library
from normcli.library.statistics import Statistics
from normcli.norms.request import Request
from tests.cluster.processes import Cluster, read, run
from tests.marks import EVERY_CASE

pytestmark = [pytest.mark.peers, pytest.mark.slow]

WORKERS = 4


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    pytest.importorskip("zarr")
    made = Cluster(tmp_path_factory.mktemp("workers"))
    made.add_workers(WORKERS)
    yield made
    made.close()


def choose_layout(rng, shape):
    """Return chunks of any lengths, and for every other array shards of several."""
    chunks = tuple(int(rng.integers(1, n + 1)) for n in shape)
    shards = tuple(c * int(rng.integers(1, 4)) for c in chunks)
    return {"chunks": chunks, "shards": shards if rng.integers(2) else None}


def test_any_chunks_and_shards_give_the_bits_of_one_machine(cluster, tmp_path, rng):
    import zarr

    from normcli.cluster.blocks import BlockUse
    from normcli.cluster.session import open_session
    from normcli.cluster.stores import fit_store, use_store
    from normcli.fitting.use import Use

    shape = (7, 3, 6, 5)
    x = (rng.normal(3.0, 2.0, shape) * 10.0 ** rng.integers(-6, 6, shape)).astype("float32")
    y, whole = library.normalize(x, "bn").normalized, library.fit(x, "bn")
    with open_session(cluster.address, None) as session:
        for number in range(20 if EVERY_CASE else 5):
            source, target = (str(tmp_path / f"{name}{number}.zarr") for name in "xy")
            zarr.create_array(source, data=x, **choose_layout(rng, shape))
            stats = fit_store(session, Request("bn"), source, "propagate")
            assert Statistics(stats) == whole
            made = zarr.create_array(target, shape=shape, dtype="float32", **choose_layout(rng, shape))
            use_store(session, BlockUse(Use(stats), shape), source, made)
            assert read(target).tobytes() == y.tobytes()


SHAPE, CHUNKS = (1024 if EVERY_CASE else 192, 16, 128, 128), (4, 16, 128, 128)
"""1 GiB of float32 where every case is tried, or 192 MiB; in chunks of 4 MiB."""


@pytest.fixture
def store(tmp_path, monkeypatch):
    """Write values of other sizes in each chunk, a row of which is repeated: they compress well."""
    import zarr

    monkeypatch.chdir(tmp_path)
    draw = np.random.default_rng(0)
    row = draw.standard_normal((1, SHAPE[1], 1, SHAPE[3]), dtype=np.float32)
    array = zarr.create_array("x.zarr", shape=SHAPE, chunks=CHUNKS, dtype="float32")
    for start in range(0, SHAPE[0], CHUNKS[0]):
        array[start : start + CHUNKS[0]] = np.broadcast_to(
            row * np.float32(draw.uniform(0.5, 2.0)) + start, CHUNKS
        )
    yield
    shutil.rmtree(tmp_path)


class Killer:
    """Kills a worker at a random moment of each command, by SIGKILL, and starts another."""

    def __init__(self, cluster):
        self.cluster, self.draw, self.killed = cluster, random.Random(18), 0

    def run(self, *words):
        """Run a command on the cluster, and return its exit code; it says nothing."""
        command = [sys.executable, "-m", "normcli", *words, "--scheduler", self.cluster.address]
        running = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        timer = threading.Timer(self.draw.uniform(0.5, 1.5), self._kill, [running])
        timer.start()
        said = running.communicate(timeout=180)[1]
        timer.cancel()
        timer.join()
        assert said == ""
        return running.returncode

    def _kill(self, running):
        if running.poll() is None:
            victim = self.cluster.workers.pop(self.draw.randrange(WORKERS))
            victim.kill()
            victim.wait()
            self.cluster.add_workers(1)
            self.killed += 1


def holds(path, source, work):
    """Return whether a store holds what becomes of another's chunks on one machine, to the bit."""
    import zarr

    made, given = (zarr.open(name, mode="r") for name in (path, source))
    cuts = (slice(start, start + CHUNKS[0]) for start in range(0, SHAPE[0], CHUNKS[0]))
    return all(np.array_equal(made[cut].view("u4"), work(given[cut]).view("u4")) for cut in cuts)


@pytest.mark.usefixtures("store")
def test_every_verb_on_workers_that_are_killed(cluster):
    killer = Killer(cluster)
    assert run("fit", "bn", "x.zarr", "-o", "one.npz", "-q").returncode == 0
    one = library.load("one.npz")
    assert killer.run("fit", "bn", "x.zarr", "-o", "s.npz", "-q") == 0
    assert library.load("s.npz") == one
    assert killer.run("apply", "s.npz", "x.zarr", "-o", "y.zarr", "-q") == 0
    assert holds("y.zarr", "x.zarr", one.apply)
    assert killer.run("bn", "-i", "x.zarr", "-o", "y.zarr", "--overwrite", "-q") == 0
    assert holds("y.zarr", "x.zarr", one.apply)
    assert killer.run("check", "bn", "-i", "x.zarr", "--actual", "y.zarr", "--max-ulp", "0.51") == 0
    assert killer.run("invert", "s.npz", "y.zarr", "-o", "z.zarr", "-q") == 0
    assert holds("z.zarr", "y.zarr", one.invert)
    assert killer.killed
