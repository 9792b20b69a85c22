"""The sample that fits a store on a cluster says that all bits agree."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tests.conftest import ROOT

pytestmark = [pytest.mark.peers, pytest.mark.slow]


def test_the_sample_on_a_cluster_says_that_all_bits_agree(tmp_path):
    for name in ("zarr", "distributed"):
        pytest.importorskip(name)
    ran = subprocess.run(
        [sys.executable, ROOT / "samples" / "cluster.py"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=True,
    )
    lines = ran.stdout.splitlines()
    assert lines[-4:-2] == [
        "statistics of one machine, of parts and of the cluster: True",
        "elements of one machine and of the cluster: True",
    ]
    assert lines[-2].count(",") >= 1  # several variances
    assert lines[-1].count(",") == 1  # and one, behind the comma of the sentence
