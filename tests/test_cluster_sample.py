"""The samples for clusters: the store on a local cluster, and what SLURM, Kubernetes and dask-jobqueue would run, by hand."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest

from normcli import fit, load
from tests.conftest import ROOT

CLUSTER = ROOT / "samples" / "cluster"
PARTS = 3
"""In place of the 64 parts of the samples."""


@pytest.fixture
def tensor(tmp_path):
    """A tensor of 12 samples in train.npy, and its statistics."""
    x = np.random.default_rng(0).normal(1e5, 1, size=(12, 3, 4, 5)).astype(np.float32)
    np.save(tmp_path / "train.npy", x)
    return fit(x, "bn")


def run_shell(script, folder, environment, *, arguments=()):
    text = script.replace("64", str(PARTS)).replace("train.zarr", "train.npy")
    command = ["bash", "-c", text, "bash", *arguments]
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)


@pytest.mark.slow
def test_the_tasks_of_slurm_and_their_merge_give_the_statistics_of_one_run(tensor, tmp_path, served):
    script = (CLUSTER / "slurm.sh").read_text()
    early = run_shell(script, tmp_path, served, arguments=["train.npy", "stats.npz", "merge"])
    assert (early.returncode, early.stderr) == (1, f"0 of {PARTS} parts are there\n")
    for task in range(1, PARTS + 1):
        environment = served | {"SLURM_ARRAY_TASK_ID": str(task), "SLURM_CPUS_PER_TASK": "1"}
        ran = run_shell(script, tmp_path, environment, arguments=["train.npy", "stats.npz"])
        assert (ran.returncode, ran.stderr) == (0, "")
    merged = run_shell(script, tmp_path, served, arguments=["train.npy", "stats.npz", "merge"])
    assert (merged.returncode, merged.stderr) == (0, "")
    assert load(tmp_path / "stats.npz") == tensor


@pytest.mark.slow
def test_the_jobs_of_kubernetes_give_the_statistics_of_one_run(tensor, tmp_path, served):
    yaml = pytest.importorskip("yaml")
    fitting, merging = yaml.safe_load_all((CLUSTER / "kubernetes.yaml").read_text())
    assert fitting["spec"]["completionMode"] == "Indexed"
    scripts = [job["spec"]["template"]["spec"]["containers"][0]["args"][0] for job in (fitting, merging)]
    for index in range(PARTS):
        ran = run_shell(scripts[0], tmp_path, served | {"JOB_COMPLETION_INDEX": str(index)})
        assert (ran.returncode, ran.stderr) == (0, "")
    assert run_shell(scripts[1], tmp_path, served).returncode == 0
    assert load(tmp_path / "stats.npz") == tensor


@pytest.mark.peers
@pytest.mark.slow
def test_the_sample_on_a_cluster_says_that_all_bits_agree(tmp_path):
    for name in ("zarr", "distributed"):
        pytest.importorskip(name)
    ran = subprocess.run(
        [sys.executable, CLUSTER / "local.py"], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    assert [line.endswith(": True") for line in ran.stdout.splitlines()[-4:-2]] == [True, True]


@pytest.mark.peers
@pytest.mark.slow
def test_workers_of_this_machine_do_what_those_of_dask_jobqueue_would(tmp_path):
    pytest.importorskip("distributed")
    zarr = pytest.importorskip("zarr")
    x = np.random.default_rng(0).normal(size=(8, 3, 4, 5)).astype(np.float32)
    zarr.create_array(tmp_path / "x.zarr", data=x, chunks=(2, 3, 4, 5))
    command = [sys.executable, CLUSTER / "jobqueue.py", "x.zarr", "y.zarr", "--jobs", "1", "--here"]
    subprocess.run(command, cwd=tmp_path, capture_output=True, check=True)
    assert zarr.open(tmp_path / "y.zarr", mode="r")[:].tobytes() == fit(x, "bn").apply(x).tobytes()
