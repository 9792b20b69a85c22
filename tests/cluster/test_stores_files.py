"""Files on workers, each in a task of its own: what one machine says, to the bit."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path

import numpy as np
import pytest

from tests.cluster.processes import Cluster, read

pytestmark = [pytest.mark.peers, pytest.mark.slow]

BEYOND = 2**53 + 1
"""The first whole number that no float64 holds."""


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    made = Cluster(tmp_path_factory.mktemp("workers"))
    made.add_workers(2)
    yield made
    made.close()


@pytest.fixture
def both(cluster, normcli, tmp_path, monkeypatch):
    """Run a command on one machine and on the cluster, and return both outcomes and what they wrote."""
    monkeypatch.chdir(tmp_path)

    def run_both(*words, output=None):
        found = []
        for name, at in (("one", ()), ("many", ("--scheduler", cluster.address))):
            target = [] if output is None else ["-o", f"{name}-{output}"]
            found.append(normcli(*words, *target, *at))
        one, many = found
        assert (many.code, many.out) == (one.code, one.out)
        return one, many

    return run_both


def agree(suffix):
    """Whether all files of one machine are those of the cluster."""
    ours, theirs = (f"{name}-{suffix}" for name in ("one", "many"))
    if not os.path.isdir(ours):
        return Path(ours).read_bytes() == Path(theirs).read_bytes()
    names = os.listdir(ours)
    assert names
    return sorted(names) == sorted(os.listdir(theirs)) and all(agree(f"{suffix}/{name}") for name in names)


def test_lists_of_files_in_every_verb(both, normcli, cluster, rng):
    at_cluster = ("--scheduler", cluster.address)
    for number in range(3):
        np.save(f"x{number}.npy", rng.normal(3.0, 2.0, (4 + number, 3, 5)).astype("float32"))
    names = [f"x{number}.npy" for number in range(3)]
    assert both("fit", "bn", *names, "-q", output="s.npz")[0].code == 0
    assert agree("s.npz")
    assert both("apply", "one-s.npz", *names, output="y/")[0].code == 0
    assert agree("y")
    ys = [f"one-y/{name}" for name in names]
    assert both("invert", "one-s.npz", *ys, output="z/")[0].code == 0
    assert agree("z")
    assert both("bn", "-i", "x0.npy", output="n.npy")[0].code == 0
    assert agree("n.npy")
    checked = ("check", "bn", "-i", "x0.npy", "--max-ulp", "0.51", "--actual")
    assert both(*checked, "one-n.npy")[0].code == 0
    one, many = (normcli(*checked, "x0.npy", "-f", "json", *at) for at in ((), at_cluster))
    assert (one.code, many.code) == (1, 1)
    verdicts = [json.loads(said.out) for said in (one, many)]
    assert "not looked for on a cluster" in verdicts[1].pop("sentence")
    assert verdicts[0].pop("sentence")
    assert all(verdict.pop("diagnosis") for verdict in verdicts)
    assert verdicts[0] == verdicts[1]


INTEGERS = f"p,q\n{BEYOND},3\n{BEYOND + 2},-4\n"
"""A table of whole numbers that float64 does not hold; they are of no dtype, and join one of floats."""

FLOATS = "q,p\n0.5,3\n1.25,4\n"


@pytest.mark.parametrize("order", [("i.csv", "f.csv", "i.csv"), ("f.csv", "i.csv")], ids=["first", "later"])
def test_integers_beyond_doubles_beside_floats(order, both, tmp_path):
    (tmp_path / "i.csv").write_text(INTEGERS)
    (tmp_path / "f.csv").write_text(FLOATS)
    (tmp_path / "bad.csv").write_text("p,q\n1,2,3\n")
    one, many = both("fit", "zscore", *order, "bad.csv", "--skip-bad", output="s.npz")
    assert agree("s.npz")
    assert one.code == 3
    assert one.err.replace("bad.csv", f"{tmp_path}/bad.csv") == many.err
    assert both("apply", "one-s.npz", "i.csv", "f.csv", output="y/")[0].code == 0
    assert agree("y")


def test_stores_of_integers_beyond_doubles(both, rng):
    zarr = pytest.importorskip("zarr")
    x = rng.integers(BEYOND, 2**62, (9, 4, 3))
    zarr.create_array("x.zarr", data=x, chunks=(2, 3, 3))
    zarr.create_array("u.zarr", data=x.astype("uint64") + np.uint64(2**63), chunks=(2, 3, 3))
    zarr.create_array("f.zarr", data=x / 2.0**55, chunks=(2, 3, 3))
    for stats, name in ("xx", "uu", "fx", "xf"):
        assert both("fit", "bn", f"{stats}.zarr", "-q", output=f"{stats}.npz")[0].code == 0
        assert agree(f"{stats}.npz")
        assert both("apply", f"one-{stats}.npz", f"{name}.zarr", "-q", output="y.zarr")[0].code == 0
        assert read("one-y.zarr").tobytes() == read("many-y.zarr").tobytes()
        for side in ("one", "many"):
            shutil.rmtree(f"{side}-y.zarr")
