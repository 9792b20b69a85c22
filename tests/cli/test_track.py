"""Training on the command line: batches enter a state file, and the run is told."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import numpy as np
import pytest

from normcli import normalize
from normcli.numerics.statistics.solution import Given
from normcli.running.average import MOST_BATCHES, State
from normcli.running.state_file import hold, read_state, replace_state
from tests.conftest import require_refusal


@pytest.fixture
def batches(tmp_path, rng):
    paths = []
    for number in range(4):
        paths.append(tmp_path / f"x{number}.npy")
        np.save(paths[-1], rng.normal(number, 1.0, (5, 3, 2)))
    return paths


def give(paths):
    return [part for path in paths for part in ("-i", path)]


@pytest.mark.slow
def test_several_batches_in_one_call_or_in_many(normcli, batches, tmp_path):
    one, many = tmp_path / "one.npz", tmp_path / "many.npz"
    ran = normcli("bn", "--state", one, *give(batches), "-f", "json")
    assert (ran.code, ran.err) == (0, "")
    for path in batches:
        normcli("bn", "--state", many, "-i", path)
    assert one.read_bytes() == many.read_bytes()
    state = read_state(str(one), "bn")
    assert state.batches == 4 == len(ran.json["steps"])
    mean, var = np.zeros(3), np.ones(3)
    for path, step in zip(batches, ran.json["steps"], strict=True):
        x, after = np.load(path), step["after"]
        mean, var = 0.9 * mean + 0.1 * x.mean((0, 2)), 0.9 * var + 0.1 * x.var((0, 2), ddof=1)
        np.testing.assert_allclose([after["mean"], after["var"]], [mean, var], rtol=1e-12)
        evaluated = normalize(x, "bn", running_mean=after["mean"], running_var=after["var"])
        gap = np.abs(normalize(x, "bn").normalized - evaluated.normalized).max()
        np.testing.assert_allclose(step["gap"], gap, rtol=1e-12)
    np.testing.assert_array_equal(state.statistics.mean, ran.json["running"]["mean"])


@pytest.mark.parametrize("mask", [(), ("--mask", "[[1],[1],[0]]")], ids=["all", "masked"])
def test_an_infinite_gap_is_infinite(mask, normcli):
    running = ("--running-mean", "[0]", "--running-var", "[0]", "--momentum", 0, "--eps", 0)
    (step,) = normcli("bn", "--data", "[[1.0],[2.0],[3.0]]", *running, *mask, "-f", "json").json["steps"]
    assert step["gap"] == "inf"


def test_the_run_is_told_with_its_arithmetic(normcli, tmp_path):
    ran = normcli("bn", "--state", tmp_path / "bn.npz", "--data", "[[1, 5], [3, 9]]", "--momentum", "0.5")
    assert "0.5 · running + 0.5 · batch   (momentum 0.5 of the new)" in ran.out
    assert "running mean of c=0: 0.5 · 0 + 0.5 · 2 = 1" in ran.out
    assert "running var of c=0: 0.5 · 1 + 0.5 · 2 = 1.5" in ran.out
    assert "0 → 1 " in ran.out
    assert "batches  0 → 1" in ran.out


def test_csv_has_a_line_a_batch_and_channel(normcli, batches, tmp_path):
    lines = normcli("bn", "--state", tmp_path / "bn.npz", *give(batches), "-f", "csv").lines
    assert lines[0].startswith(
        "batch,source,channel,batch_mean,batch_var,old_mean,new_mean,old_var,new_var,gap"
    )
    assert len(lines) == 1 + 4 * 3
    assert [line.split(",")[0] for line in lines[1::3]] == ["1", "2", "3", "4"]


def test_without_a_state_file_the_options_are_the_beginning(normcli):
    begun = ("--running-mean", "1,2", "--running-var", "3", "-f", "json")
    answer = normcli("bn", "--data", "[[1, 5], [3, 9]]", *begun).json
    np.testing.assert_allclose(answer["running"]["mean"], [0.9 * 1 + 0.1 * 2, 0.9 * 2 + 0.1 * 7])
    assert (answer["state"], answer["batches"]) == (None, 1)


@pytest.mark.slow
def test_evaluation_reads_what_training_wrote(normcli, batches, tmp_path):
    state = tmp_path / "bn.npz"
    normcli("bn", "--state", state, *give(batches))
    kept = read_state(str(state), "bn").statistics
    answer = normcli("bn", "--eval", "--state", state, "-i", batches[0], "-f", "json").json
    assert answer["stats"]["mean"] == kept.mean.tolist()
    expected = normalize(np.load(batches[0]), "bn", running_mean=kept.mean, running_var=kept.var)
    np.testing.assert_array_equal(answer["normalized"], expected.normalized)
    before = state.read_bytes()
    assert normcli("explain", "bn", "--eval", "--state", state, "-i", batches[0], "--at", "0,0,0").code == 0
    assert state.read_bytes() == before


@pytest.mark.all_quick
@pytest.mark.parametrize(
    ("arguments", "code", "told"),
    [
        (("--momentum", "2"), 2, "momentum 2 is not from 0 to 1"),
        (("--show", "stats"), 2, "--show is of one tensor's answer"),
        (("--print", "mean", "-o", "-"), 2, "-o - puts the tensor on standard output"),
        (("-f", "npy"), 2, "--format npy is of one tensor's answer"),
        (("-f", "html"), 2, "--format html is of one"),
        (("--running-mean", "0"), 2, "give --running-var too"),
        (("--eval", "--momentum", "0.1"), 2, "--momentum is for running statistics in training"),
        (("--lock-timeout", "nan"), 2, "--lock-timeout"),
    ],
)
def test_what_is_refused_and_changes_nothing(arguments, code, told, normcli, batches, here):
    state = here / "bn.npz"
    normcli("bn", "--state", state, "-i", batches[0])
    before = state.read_bytes()
    require_refusal(normcli("bn", "--state", state, "-i", batches[1], *arguments), code, told)
    assert state.read_bytes() == before


def test_a_bad_batch_in_the_middle_changes_nothing(normcli, batches, tmp_path):
    state, bad = tmp_path / "bn.npz", tmp_path / "bad.npy"
    normcli("bn", "--state", state, "-i", batches[0])
    before = state.read_bytes()
    bad.write_bytes(b"nothing")
    require_refusal(normcli("bn", "--state", state, *give([batches[1], bad, batches[2]])), 3, "bad.npy")
    np.save(bad, np.ones((5, 4, 2)))
    require_refusal(normcli("bn", "--state", state, *give([batches[1], bad])), 3, "takes (4,)")
    assert state.read_bytes() == before
    assert "running statistics of bn, not of in" in normcli("in", "--state", state, "-i", batches[1]).err


def test_options_of_training_need_a_place(normcli, batches):
    for line, told in (
        (["bn", "-i", batches[0], "--momentum", "0.1"], "--state FILE.npz keeps them"),
        (["bn", "--eval", *give(batches[:2]), "--running-mean", "0", "--running-var", "1"], "give one --input"),
        (["check", "bn", "-i", batches[0], "--actual", batches[0], "--state", "bn.npz"], "add it"),
    ):
        ran = normcli(*line)
        assert (ran.code, told in ran.err) == (2, True)
    assert normcli("bn", *give(batches[:2]), "-f", "json").json["batches"] == 2


@pytest.mark.parametrize(("value", "name"), [('"nan"', "nan"), ('"inf"', "inf")])
@pytest.mark.parametrize("norm", ["bn", "in"])
def test_what_is_not_finite_never_enters(norm, value, name, normcli, tmp_path):
    state = tmp_path / "s.npz"
    good, bad = tmp_path / "good.json", tmp_path / "bad.json"
    good.write_text("[[[1,2,0],[3,4,1]],[[5,6,2],[7,9,3]]]")
    bad.write_text(f"[[[1,2,0],[3,4,1]],[[5,6,2],[7,9,{value}]]]")
    normcli(norm, "-i", good, "--state", state)
    before = state.read_bytes()
    require_refusal(
        normcli(norm, *give([good, bad]), "--state", state), 3, "bad.json: the batch's mean of c=1 is "
    )
    assert state.read_bytes() == before
    assert normcli(norm, "-i", bad, "--state", state, "--nan", "omit").code == (0 if name == "nan" else 3)


def test_a_full_count_is_refused(normcli, tmp_path):
    path = str(tmp_path / "s.npz")
    with replace_state(path, State("bn", Given(np.zeros(2), np.ones(2)), 1e-5, "inside", MOST_BATCHES)):
        pass
    require_refusal(normcli("bn", "--shape", "4,2", "--state", path), 3, "one more cannot be")
    assert normcli("bn", "--shape", "4,2", "--eval", "--state", path).code == 0


@pytest.mark.slow
@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no full device")
def test_an_answer_that_cannot_be_written_leaves_the_state(tmp_path, run_shell):
    state = tmp_path / "s.npz"
    arguments = ["bn", "--shape", "4,2", "--state", str(state)]
    with Path("/dev/full").open("w") as full:
        ran = run_shell(arguments, stdout=full)
    assert (ran.returncode, b"s.npz is as it was" in ran.stderr) == (3, True)
    assert list(tmp_path.iterdir()) == []
    assert run_shell(arguments, stdout=subprocess.DEVNULL).returncode == 0
    assert read_state(str(state), "bn").batches == 1


@pytest.fixture
def run_shell(served):
    """Run a command line in a process of its own, whose streams are given."""

    def call(arguments, **streams):
        return subprocess.run(
            ["normcli", *arguments], env=served, check=False, stderr=subprocess.PIPE, **streams
        )

    return call


@pytest.mark.slow
def test_a_reader_of_the_tensor_who_stops_early_has_had_it_and_the_other_files(tmp_path, run_shell):
    state, statistics = tmp_path / "s.npz", tmp_path / "m.json"
    reading, writing = os.pipe()
    os.close(reading)
    line = ["bn", "--shape", "4,2", "--state", str(state), "-o", "-", "--stats-output", str(statistics)]
    ran = run_shell(line, stdout=writing)
    os.close(writing)
    assert (ran.returncode, ran.stderr) == (0, b"")
    assert read_state(str(state), "bn").batches == 1
    assert statistics.exists()


@pytest.mark.slow
def test_the_eps_of_training_is_kept_and_used(normcli, tmp_path):
    state = ("--layout", "NC", "--state", tmp_path / "k.npz")
    normcli("bn", "--shape", "4,2", "--like", "keras", *state)
    assert read_state(str(state[-1]), "bn").eps == 1e-3
    evaluated = ("bn", "--shape", "4,2", "--eval", *state, "-f", "json")
    for options, eps in (((), 1e-3), (("--like", "torch"), 1e-5), (("--eps", "0.5"), 0.5)):
        assert normcli(*evaluated, *options).json["eps"] == eps
    assert normcli("bn", "--shape", "4,2", *state, "-f", "json").json["eps"] == 1e-3
    normcli("bn", "--shape", "4,2", *state, "--eps", "0.25", "--eps-mode", "outside")
    answer = normcli(*evaluated).json
    assert (answer["eps"], answer["eps_mode"]) == (0.25, "outside")


def test_a_state_that_another_process_holds_is_said_and_left_in_time(normcli, tmp_path, monkeypatch):
    monkeypatch.setattr("normcli.running.state_file._SILENT", 0.02)
    state = str(tmp_path / "s.npz")
    with hold(state):
        ran = normcli("bn", "--shape", "5,3", "--state", state, "--lock-timeout", "0.1")
    waiting, given_up = ran.err.splitlines()
    assert (ran.code, ran.out) == (3, "")
    assert waiting == f"normcli: bn: waiting for the state {state}, which another process holds"
    assert "still holds it after 0.1 s (--lock-timeout)" in given_up


def test_outputs_are_of_the_batch_as_without_a_state(normcli, batches, tmp_path):
    state, saved, page = tmp_path / "s.npz", tmp_path / "y.npy", tmp_path / "y.html"
    line = ("bn", "-i", batches[0], "--gamma", "2")
    normcli(*line, "-o", tmp_path / "plain.npy", "-q")
    told = normcli(*line, "--state", state, "-o", saved)
    assert (told.code, told.err) == (0, "")
    assert "bn · running statistics" in told.out
    assert saved.read_bytes() == (tmp_path / "plain.npy").read_bytes()
    for asked in (("--print", "mean"), ("-o", "-"), ("-o", "-", "-f", "json")):
        assert normcli(*line, "--state", state, *asked).raw == normcli(*line, *asked).raw
    assert normcli(*line, "--state", state, "-o", page).code == 0
    assert page.read_text().startswith("<!DOCTYPE html>")
    assert read_state(str(state), "bn").batches == 5


def test_a_large_batch_is_written_as_it_is_calculated(normcli, batches, tmp_path, monkeypatch):
    monkeypatch.setattr("normcli.tensors.mapped.SMALLEST_MAPPED", 1)
    state, saved = tmp_path / "s.npz", tmp_path / "y.npy"
    assert normcli("bn", "-i", batches[0], "--state", state, "-o", saved).code == 0
    np.testing.assert_array_equal(np.load(saved), normalize(np.load(batches[0]), "bn").normalized)
    assert normcli("bn", "-i", batches[0], "--state", state, "-o", "-").raw == saved.read_bytes()


def test_several_batches_are_written_to_a_folder(normcli, batches, tmp_path):
    state, folder = tmp_path / "s.npz", f"{tmp_path / 'out'}{os.sep}"
    assert normcli("bn", *give(batches), "--state", state, "-o", folder).code == 0
    for path in batches:
        np.testing.assert_array_equal(np.load(folder + path.name), normalize(np.load(path), "bn").normalized)


@pytest.mark.all_quick
@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("-o", "y.npy"), "4 results need a folder: -o y.npy/"),
        (("-o", "-"), "-o - is for one batch; of 4 the tensors go to a folder: -o DIR/"),
        (("--print", "mean"), "--print is of one batch; give one --input, not 4"),
        (("--stats-output", "s.json"), "--stats-output is of one batch"),
    ],
)
def test_what_several_batches_have_not(arguments, told, normcli, batches, here):
    require_refusal(normcli("bn", *give(batches), "--state", "s.npz", *arguments), 2, told)
    assert len(list(here.iterdir())) == 4


@pytest.mark.parametrize("several", [False, True])
def test_the_state_is_no_place_for_the_batch(several, normcli, batches, tmp_path):
    x, folder = tmp_path / "s.npz", tmp_path / "out"
    np.savez(x, x=np.load(batches[0]))
    folder.mkdir()
    state, out = (folder / "s.npz", f"{folder}{os.sep}") if several else (x, x)
    require_refusal(
        normcli("bn", "-i", x, *(give(batches) if several else ()), "--state", state, "-o", out),
        2,
        "--state and --output are both",
    )


def test_an_output_that_cannot_be_written_leaves_the_state(normcli, batches, tmp_path, monkeypatch):
    state, saved = tmp_path / "s.npz", tmp_path / "y.npy"
    normcli("bn", "-i", batches[0], "--state", state)
    before, replace = state.read_bytes(), Path.replace

    def fail(path, target):
        if target.name == "y.npy":
            raise OSError(28, "No space left on device")
        return replace(path, target)

    monkeypatch.setattr(Path, "replace", fail)
    ran = normcli("bn", "-i", batches[1], "--state", state, "-o", saved)
    assert (ran.code, ran.out, len(ran.err.splitlines())) == (3, "", 1)
    assert state.read_bytes() == before
    assert not saved.exists()


@pytest.mark.parametrize(("norm", "shape"), [("bn", "4,3"), ("in", "4,3,5")])
def test_running_statistics_are_outputs_where_they_are_updated(norm, shape, normcli, here):
    line = (norm, "--shape", shape, "--running-mean", "0", "--running-var", "1")
    ran = normcli(*line, "--stats-output", "s.json", "--print", "running_mean,running_var")
    kept = json.loads(Path("s.json").read_text())
    printed = [[float(cell) for cell in row.split("\t")] for row in ran.lines]
    assert [kept["running_mean"], kept["running_var"]] == np.transpose(printed).tolist()
    normcli(norm, "--shape", shape, "--state", "k.npz")
    state = read_state("k.npz", norm)
    assert state.statistics.mean.tolist() == kept["running_mean"]


def test_without_an_update_there_are_none_to_print(normcli):
    require_refusal(
        normcli("bn", "--shape", "4,3", "--print", "running_mean"), 2, "--print running_mean: bn has mean, var"
    )
