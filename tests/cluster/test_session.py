"""Clusters of real processes, started by their command lines: the bits of one machine, and faults in one line."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

import normcli as library
from tests.cluster.processes import Cluster, find_port, read, run

pytestmark = [pytest.mark.peers, pytest.mark.slow]

SHAPE, CHUNKS = (24, 8, 40, 30), (5, 3, 17, 30)


@pytest.fixture
def cluster(tmp_path):
    made = Cluster(tmp_path)
    yield made
    made.close()


@pytest.fixture
def x(tmp_path, rng, monkeypatch):
    zarr = pytest.importorskip("zarr")
    monkeypatch.chdir(tmp_path)
    x = (rng.normal(3.0, 2.0, SHAPE) * 10.0 ** rng.integers(-5, 5, SHAPE)).astype("float32")
    zarr.create_array("x.zarr", data=x, chunks=CHUNKS)
    return x


def test_every_verb_gives_the_bits_of_one_machine(cluster, normcli, x):
    cluster.add_workers(4)
    at = ("--scheduler", cluster.address)
    assert run("fit", "bn", "x.zarr", "-o", "s.npz", "-q", *at).stderr == ""
    stats = library.load("s.npz")
    assert stats == library.fit(x, "bn")
    for line, output, expected in (
        ("apply s.npz x.zarr", "y.zarr", stats.apply(x)),
        ("invert s.npz y.zarr", "z.zarr", stats.invert(stats.apply(x))),
        ("bn -i x.zarr", "n.zarr", library.normalize(x, "bn").normalized),
        ("ln --axes CHW -i x.zarr", "l.zarr", library.normalize(x, "ln", axes="CHW").normalized),
    ):
        assert normcli(*line.split(), "-o", output, *at).code == 0
        assert read(output).tobytes() == expected.tobytes()
    agrees = normcli("check", "bn", "-i", "x.zarr", "--actual", "n.zarr", "--max-ulp", "0.51", *at)
    assert (agrees.code, agrees.err) == (0, "")
    differs = normcli("check", "bn", "-i", "x.zarr", "--actual", "x.zarr", "-f", "json", *at)
    assert (differs.code, differs.err) == (1, "")
    assert "not looked for on a cluster" in differs.json["sentence"]


def test_a_worker_whose_clock_is_a_day_slow_changes_no_bit(cluster, x, tmp_path):
    (tmp_path / "slow").mkdir()
    slowly = "import time\nnow = time.time\ntime.time = lambda: now() - 86400\n"
    (tmp_path / "slow" / "sitecustomize.py").write_text(slowly)
    cluster.add_workers(1, env={**os.environ, "PYTHONPATH": str(tmp_path / "slow")})
    cluster.add_workers(1)
    made = run("bn", "-i", "x.zarr", "-o", "y.zarr", "--scheduler", cluster.address)
    assert (made.returncode, made.stdout) == (0, "")
    assert read("y.zarr").tobytes() == library.normalize(x, "bn").normalized.tobytes()


@pytest.mark.parametrize(
    ("stopped", "victim"), [("scheduler", "scheduler"), ("workers", "workers"), ("workers", "scheduler")]
)
def test_a_cluster_that_is_gone_is_one_line_and_no_output(stopped, victim, cluster, x):
    cluster.add_workers(1)
    code = (
        "import normcli.cluster.session as session, sys; session.PATIENCE = 3.0\n"
        "from normcli.__main__ import main; sys.argv[0] = 'normcli'; main()"
    )
    command = [sys.executable, "-c", code, "bn", "-i", "x.zarr", "-o", "y.zarr", "--scheduler", cluster.address]
    processes = {"scheduler": [cluster.scheduler], "workers": cluster.workers}
    for process in processes[stopped]:
        os.kill(process.pid, signal.SIGSTOP)  # whatever is asked of it, it has not done when it is killed
    running = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    time.sleep(4.0)
    for process in processes[victim]:
        process.kill()
    out, said = running.communicate(timeout=60)
    assert (running.returncode, out, len(said.splitlines())) == (3, "", 1)
    assert cluster.address in said
    assert not os.path.exists("y.zarr")


def test_a_worker_that_is_killed_in_its_work_changes_no_bit(cluster, x):
    cluster.add_workers(3)
    at = ("--scheduler", cluster.address)
    assert run("fit", "bn", "x.zarr", "-o", "s.npz", "-q", *at).returncode == 0  # all workers are there
    for worker in cluster.workers:
        os.kill(worker.pid, signal.SIGSTOP)  # none has done what it is asked for
    command = [sys.executable, "-m", "normcli", "apply", "s.npz", "x.zarr", "-o", "y.zarr", "-q", *at]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT) as running:
        time.sleep(4.0)
        assert running.poll() is None
        cluster.workers[0].kill()
        for worker in cluster.workers[1:]:
            os.kill(worker.pid, signal.SIGCONT)
        assert (running.communicate(timeout=120)[0], running.returncode) == (b"", 0)
    assert read("y.zarr").tobytes() == library.fit(x, "bn").apply(x).tobytes()


def test_no_scheduler_is_one_line(x):
    made = run("fit", "bn", "x.zarr", "--scheduler", f"tcp://127.0.0.1:{find_port()}", timeout=60)
    assert (made.returncode, made.stdout, len(made.stderr.splitlines())) == (3, "", 1)
    assert "no scheduler answers at tcp://127.0.0.1" in made.stderr


def test_a_damaged_chunk_is_named(cluster, x):
    cluster.add_workers(1)
    Path("x.zarr/c/1/0/0/0").write_bytes(b"damaged")
    made = run("fit", "bn", "x.zarr", "--scheduler", cluster.address)
    assert (made.returncode, made.stdout, len(made.stderr.splitlines())) == (3, "", 1)
    assert "x.zarr: the chunk at (5, 0, 0, 0)" in made.stderr


def test_a_store_that_others_replaced_is_opened_anew(cluster, x):
    import zarr

    cluster.add_workers(1)
    for values, chunks in ((x, CHUNKS), (x[:9, ::-1], (4, 2, 40, 7)), (np.ones_like(x), CHUNKS)):
        zarr.create_array("x.zarr", data=values, chunks=chunks, overwrite=True)
        made = run("bn", "-i", "x.zarr", "-o", "y.zarr", "--overwrite", "--scheduler", cluster.address)
        assert (made.returncode, made.stderr) == (0, "")
        assert read("y.zarr").tobytes() == library.normalize(values, "bn").normalized.tobytes()


def test_an_interrupt_leaves_nothing_running(x):
    command = [sys.executable, "-m", "normcli", "bn", "-i", "x.zarr", "-o", "y.zarr", "--workers", "2"]
    running = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
    )
    time.sleep(4.0)
    os.killpg(running.pid, signal.SIGINT)
    out, said = running.communicate(timeout=60)
    assert out == ""
    assert running.returncode in (130, 0)
    assert len(said.splitlines()) <= 1
    deadline = time.monotonic() + 20.0
    with pytest.raises(ProcessLookupError):
        while time.monotonic() < deadline:
            os.killpg(running.pid, 0)
            time.sleep(0.2)
    whole = library.normalize(x, "bn").normalized.tobytes()
    assert not os.path.exists("y.zarr") or read("y.zarr").tobytes() == whole  # it was in its place by then


def test_workers_of_this_machine(x):
    made = run("fit", "bn", "x.zarr", "--workers", "2", "--print", "mean")
    assert made.stderr == ""
    assert np.array(made.stdout.split(), float).tobytes() == library.fit(x, "bn").mean.tobytes()


def test_workers_that_end_as_they_start(monkeypatch):
    session = pytest.importorskip("normcli.cluster.session")

    def end(**_):
        raise RuntimeError("Nanny failed to start.")

    monkeypatch.setattr(session, "LocalCluster", end)
    with pytest.raises(library.NormError, match="cannot be started: RuntimeError: Nanny failed to start"):
        session.open_session(None, 2).__enter__()


@pytest.mark.parametrize(
    ("words", "message"),
    [
        pytest.param(("fit", "robust", "x.zarr", "--workers", "1"), "quantiles", id="quantiles"),
        pytest.param(("bn", "-i", "x.zarr", "--workers", "1"), "write stores and files", id="no output"),
        pytest.param(("bn", "-i", "x.zarr", "-o", "y.zarr", "--workers", "1", "--print", "mean"), "--print is of one machine", id="print"),
        pytest.param(("fit", "bn", "x.zarr", "--workers", "1", "--scheduler", "tcp://h:1"), "give one of them", id="both"),
    ],
)  # fmt: skip
def test_what_a_cluster_does_not_do(words, message, x):
    made = run(*words)
    assert (made.returncode, made.stdout) == (2, "")
    assert message in made.stderr
    assert not os.path.exists("y.zarr")


def test_workers_find_files_by_the_callers_names(cluster, x, tmp_path):
    np.save("a.npy", x)
    np.save("b.npy", x[:5])
    (tmp_path / "elsewhere").mkdir()
    with contextlib.chdir("elsewhere"):
        cluster.add_workers(1)
    made = run("fit", "bn", "a.npy", "b.npy", "x.zarr", "-o", "s.npz", "--scheduler", cluster.address)
    assert (made.stderr, made.returncode) == ("", 0)
    assert library.load("s.npz") == library.fit(np.concatenate([x, x[:5], x]), "bn")
    made = run("fit", "bn", "-", "--scheduler", cluster.address)
    assert (made.returncode, made.stderr.count("standard input is of one machine")) == (2, 1)
