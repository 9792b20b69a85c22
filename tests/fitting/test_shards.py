"""Parts of data that several commands fit: merged, they are the bits of one fit."""

from __future__ import annotations

import numpy as np
import pytest


@pytest.fixture
def folder(tmp_path, rng, monkeypatch):
    monkeypatch.chdir(tmp_path)
    x = rng.normal(size=(11, 3, 4))
    np.save("x.npy", x)
    for number, part in enumerate(np.array_split(x, 5)):
        np.save(f"part{number}.npy", part)
    return tmp_path


@pytest.mark.parametrize("inputs", [["x.npy"], [f"part{n}.npy" for n in range(5)]], ids=["samples", "files"])
def test_shards_are_merged_to_the_bits_of_one_fit(inputs, folder, normcli):
    whole = normcli("fit", "bn", *inputs, "-f", "json", "-q").out
    for number in (1, 2, 3):
        assert normcli("fit", "bn", *inputs, "--shard", f"{number}/3", "-o", f"{number}.npz", "-q").code == 0
    assert normcli("merge", "3.npz", "1.npz", "2.npz", "-f", "json", "-q").out == whole


@pytest.mark.parametrize(
    ("words", "message"),
    [
        pytest.param(["x.npy", "--shard", "1/12"], "x.npy has 11 samples", id="too few samples"),
        pytest.param(
            ["part0.npy", "part1.npy", "--shard", "1/3"], "there are 2 tensors to share out", id="files"
        ),
        pytest.param(["x.npy", "--shard", "0/3"], "is no part of several", id="from 1"),
        pytest.param(["x.npy", "--shard", "4/3"], "is no part of several", id="too high"),
        pytest.param(["x.npy", "--shard", "half"], "is no part of several", id="a word"),
    ],
)
def test_parts_that_there_are_not(words, message, folder, normcli):
    refused = normcli("fit", "bn", *words)
    assert refused.code in (2, 3)
    assert message in refused.err


def test_quantiles_have_no_parts(folder, normcli):
    refused = normcli("fit", "robust", "x.npy", "--shard", "1/2")
    assert refused.code == 2
    assert "quantiles, which follow from no parts" in refused.err


def test_a_cluster_fits_all_of_it(folder, normcli):
    refused = normcli("fit", "bn", "x.npy", "--shard", "1/2", "--workers", "1")
    assert (refused.code, refused.out) == (2, "")
    assert "--shard is for those who have no cluster" in refused.err


def test_a_part_of_a_file_is_called_one_and_arrays_of_an_archive_are_counted(folder, normcli):
    assert "part of a file   4 samples" in normcli("fit", "bn", "x.npy", "--shard", "3/3").out
    x = np.load("x.npy")
    np.savez("both.npz", a=x[:5], b=x[5:])
    assert "1 file   6 samples" in normcli("fit", "bn", "both.npz", "--shard", "2/2").out
