"""Parts of data that several commands fit: merged, they are the bits of one fit."""

from __future__ import annotations

import contextlib
import os
import shutil
from pathlib import Path

import numpy as np
import pytest

import normcli as library
from normcli.cli.run import run
from normcli.errors import DataError
from normcli.fitting.shards import Shards, join_shards


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    save_inputs()
    return tmp_path


def save_inputs():
    x = np.random.default_rng(20240607).normal(size=(11, 3, 4))
    np.save("x.npy", x)
    for number, part in enumerate(np.array_split(x, 5)):
        np.save(f"part{number}.npy", part)


@pytest.mark.slow
@pytest.mark.parametrize("inputs", [["x.npy"], [f"part{n}.npy" for n in range(5)]], ids=["samples", "files"])
def test_shards_are_merged_to_the_bits_of_one_fit(inputs, folder, normcli):
    whole = normcli("fit", "bn", *inputs, "-f", "json", "-q").out
    for number in (1, 2, 3):
        assert normcli("fit", "bn", *inputs, "--shard", f"{number}/3", "-o", f"{number}.npz", "-q").code == 0
    assert normcli("merge", "3.npz", "1.npz", "2.npz", "-f", "json", "-q").out == whole
    assert normcli("merge", "3.npz", "2.npz", "--partial", "-o", "some.npz", "-q").code == 0
    assert normcli("merge", "1.npz", "some.npz", "-f", "json", "-q").out == whole
    assert library.merge(*map(library.load, ("2.npz", "1.npz", "3.npz"))) == library.fit(np.load("x.npy"), "bn")


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    with contextlib.chdir(tmp_path_factory.mktemp("shards")):
        save_inputs()
        for number in (1, 2, 3, 4):
            assert run(["fit", "bn", "x.npy", "--shard", f"{number}/4", "-o", f"{number}.npz", "-q"]) == 0
        assert run(["fit", "bn", "x.npy", "-o", "whole.npz", "-q"]) == 0
        shutil.copy("2.npz", "copy.npz")
        return Path.cwd()


@pytest.fixture
def shards(made, folder):
    for path in made.glob("*.npz"):
        os.link(path, path.name)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        pytest.param(["1.npz", "3.npz"], "shards 2, 4 of 4 are missing; give partial", id="two missing"),
        pytest.param(["4.npz", "whole.npz", "1.npz", "2.npz"], "shard 3 of 4 is missing", id="one missing"),
        pytest.param(["2.npz", "-o", "s.npz"], "shards 1, 3, 4 of 4 are missing", id="one alone is kept"),
        pytest.param(
            ["2.npz", "copy.npz", "--partial"], "2.npz and copy.npz: both hold shard 2 of 4", id="twice"
        ),
    ],
)
def test_an_incomplete_merge_is_refused(words, message, shards, folder, normcli):
    refused = normcli("merge", *words)
    assert (refused.code, refused.out, refused.err.count("\n")) == (3, "", 1)
    assert message in refused.err
    assert not (folder / "s.npz").exists()


def test_shards_of_different_inputs_are_refused(folder, normcli):
    (folder / "other").mkdir()
    shutil.copy("x.npy", "other/x.npy")
    np.save("y.npy", np.zeros((11, 3, 4)))
    for number, source in enumerate(("x.npy", "other/x.npy", "y.npy")):
        made = normcli("fit", "bn", source, "--shard", f"{min(number, 1) + 1}/2", "-o", f"{number}.npz", "-q")
        assert made.code == 0
    assert normcli("merge", "0.npz", "1.npz").code == 0  # the same file, elsewhere
    refused = normcli("merge", "0.npz", "2.npz", "--partial")
    assert (refused.code, refused.out, refused.err.count("\n")) == (3, "", 1)
    assert refused.err.startswith("normcli: 0.npz and 2.npz: they are shards of different inputs")
    with np.load("1.npz") as archive:  # of an earlier version
        np.savez("1.npz", **{name: values for name, values in archive.items() if name != "shard_inputs"})
    assert normcli("merge", "0.npz", "1.npz").code == 0


def test_what_holds_some_shards_says_so(shards, folder, normcli):
    assert normcli("merge", "1.npz", "3.npz", "--partial", "-o", "s.npz", "-q").code == 0
    assert "shards 1, 3 of 4" in normcli("merge", "s.npz").out
    with pytest.raises(DataError, match="shards 2, 4 of 4 are missing"):
        library.merge(library.load("1.npz"), library.load("3.npz"))
    assert library.merge(library.load("1.npz"), library.load("3.npz"), partial=True) == library.load("s.npz")


@pytest.mark.parametrize("verb", ["apply", "invert"])
def test_what_holds_some_shards_is_used_only_if_asked(verb, shards, folder, normcli):
    assert normcli("merge", "1.npz", "3.npz", "--partial", "-o", "s.npz", "-q").code == 0
    line = (verb, "s.npz", "x.npy", "-o", "y.npy", "--quiet")
    refused = normcli(*line)
    assert (refused.code, refused.out) == (3, "")
    told = "normcli: s.npz: shards 2, 4 of 4 are missing; give partial (--partial) to use those there are\n"
    assert (refused.err, Path("y.npy").exists()) == (told, False)
    assert (normcli(*line, "--partial").code, Path("y.npy").exists()) == (0, True)
    held = library.load("s.npz")
    with pytest.raises(DataError, match="shards 2, 4 of 4 are missing"):
        getattr(held, verb)(np.load("x.npy"))
    np.testing.assert_array_equal(getattr(held, verb)(np.load("x.npy"), partial=True), np.load("y.npy"))


@pytest.mark.parametrize(
    ("members", "message"),
    [
        pytest.param([1, 1], "is 1, and the next is not larger", id="twice"),
        pytest.param([5], "is 5, not from 1 to 4", id="beyond"),
        pytest.param(np.array([], int), "names none of 4", id="none"),
    ],
)
def test_damaged_shards_are_refused(members, message, shards):
    with np.load("1.npz") as archive:
        np.savez("damaged.npz", **{**archive, "shards": np.array(members)})
    with pytest.raises(DataError, match=f" shards {message}$"):
        library.load("damaged.npz")


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        pytest.param("bn x.npy --shard 1/12", 3, "x.npy has 11 samples", id="too few samples"),
        pytest.param("bn part0.npy part1.npy --shard 1/3", 2, "there are 2 tensors to share out", id="files"),
        pytest.param("bn x.npy --shard 0/3", 2, "is no part of several", id="from 1"),
        pytest.param("bn x.npy --shard 4/3", 2, "is no part of several", id="too high"),
        pytest.param("bn x.npy --shard half", 2, "is no part of several", id="a word"),
        pytest.param("robust x.npy --shard 1/2", 2, "quantiles, which follow from no parts", id="quantiles"),
        pytest.param("bn x.npy --shard 1/2 --workers 1", 2, "--shard is for those who have no", id="a cluster"),
    ],
)
def test_parts_that_there_are_not(words, code, message, folder, normcli):
    refused = normcli("fit", *words.split())
    assert (refused.code, refused.out) == (code, "")
    assert message in refused.err


def test_a_part_of_a_file_is_called_one_and_arrays_of_an_archive_are_counted(folder, normcli):
    assert "part of a file   4 samples" in normcli("fit", "bn", "x.npy", "--shard", "3/3").out
    x = np.load("x.npy")
    np.savez("both.npz", a=x[:5], b=x[5:])
    assert "1 file   6 samples" in normcli("fit", "bn", "both.npz", "--shard", "2/2").out


HALVES = Shards(2, (1,), "a"), Shards(2, (2,), "a")


@pytest.mark.parametrize(
    ("mine", "theirs", "together"),
    [
        pytest.param(None, HALVES[0], HALVES[0], id="the first of other data"),
        pytest.param(HALVES[0], None, HALVES[0], id="the second of other data"),
        pytest.param(None, None, None, id="neither in parts"),
        pytest.param(*HALVES[::-1], Shards(2, (1, 2), "a"), id="two halves"),
        pytest.param(HALVES[0], Shards(2, (2,), ""), Shards(2, (1, 2), "a"), id="of inputs that one tells"),
        pytest.param(Shards(2, (1,), ""), HALVES[1], Shards(2, (1, 2), "a"), id="that the other tells"),
        pytest.param(Shards(2, (1, 2), "a"), Shards(3, (1, 2, 3), "b"), None, id="two whole fits"),
    ],
)
def test_which_parts_are_held_together(mine, theirs, together):
    assert join_shards(mine, theirs) == together
