"""The command line as data: arguments, standard input, exit code, standard output."""

from __future__ import annotations

import io
import json
import os
import re
import threading
from pathlib import Path

import numpy as np
import pytest

from normcli import NORMS, normalize
from tests.conftest import require_refusal

X = np.random.default_rng(1).normal(size=(2, 4, 3, 2)).astype("f4")


@pytest.fixture
def x_npy(tmp_path):
    path = tmp_path / "x.npy"
    np.save(path, X)
    return path


@pytest.mark.parametrize("name", [name for norm in NORMS.values() for name in norm.names])
def test_every_name_is_a_command(name, normcli, x_npy):
    groups = ["--groups", 2] if "groups" in name or name.startswith(("gn", "group")) else []
    ran = normcli(name, "-i", x_npy, *groups, "--print", "normalized")
    assert (ran.code, ran.err) == (0, "")
    expected = normalize(X, name, groups=2 if groups else None).normalized
    assert [float(line) for line in ran.lines] == expected.reshape(-1).tolist()


@pytest.mark.parametrize(
    ("line", "lines"),
    [
        ("bn --shape 2,3,4,4 --print mean", ["4.65625", "5.0", "4.78125"]),
        ("bn --shape 2,3,4,4 --print var", ["6.1005859375", "9.5", "9.0458984375"]),
        ("bn --shape (2,3) --print group_count,group_size", ["3\t2"]),
        ("lp --p inf --data [[1,-3]] --print norm", ["3.0"]),
        ("ln --data [[1,3]] --bias 0.5 --eps 0 --print normalized", ["-0.5", "1.5"]),
        ("bn --data [[1,2],[3,4]] --keep N --print mean", ["1.5", "3.5"]),
        ("bn --data [[1,2],[3,4]] --layout cn --print mean", ["1.5", "3.5"]),
        ("generate --shape 2 --dist normal --rng torch --seed 0", ["[1.5409960746765137, -0.293428897857666]"]),
    ],
)
def test_numbers(line, lines, normcli):
    ran = normcli(*line.split())
    assert (ran.code, ran.lines) == (0, lines)


def test_an_archive_on_standard_input(normcli):
    stream = io.BytesIO()
    np.savez(stream, x=np.array([[1.0, 2.0], [3.0, 5.0]]))
    assert normcli("bn", "-i", "-", "--print", "mean", stdin=stream.getvalue()).lines == ["2.0", "3.5"]


@pytest.mark.slow
@pytest.mark.parametrize(("axes", "names"), [("0", ["x", "y"]), ("1", None), ("0,1", None)])
def test_statistics_files_name_the_columns_that_they_are_of(axes, names, normcli, tmp_path):
    (tmp_path / "t.csv").write_text("x,y\n1,2\n3,5\n")
    for path in (tmp_path / "s.npz", tmp_path / "s.json"):
        assert normcli("zscore", "-i", tmp_path / "t.csv", "--axes", axes, "--stats-output", path).code == 0
    written = json.loads((tmp_path / "s.json").read_text())
    with np.load(tmp_path / "s.npz") as saved:
        assert set(saved) == set(written) == {"mean", "var", "std", "rstd", *(["columns"] if names else [])}
        assert (written.get("columns"), list(saved["columns"]) if names else None) == (names, names)
    assert normcli("ln", "-i", f"{tmp_path}/s.json:mean", "--print", "shape").code == 0


def test_a_warning_goes_to_stderr_and_stdout_stays_clean(normcli):
    loud = normcli("bn", "--data", "[[1,5],[2,5]]", "--print", "var")
    assert (loud.code, loud.lines) == (0, ["0.25", "0.0"])
    assert loud.err == "normcli: bn: group c=1 is constant: its variance is 0 and its normalized values 0\n"
    assert normcli("bn", "--data", "[[1,5],[2,5]]", "--print", "var", "--quiet").err == ""


@pytest.mark.parametrize(
    "data", ["[[1,5],[2,5]]", '[["nan",5],[2,6]]', '[["inf",5],[2,6]]', "[[1,2]]", "[[],[]]"]
)
def test_strict_fails_on_degenerate_groups_alone_and_writes_nothing(data, normcli, tmp_path):
    ran = normcli("bn", "--data", data, "--strict", "-o", tmp_path / "y.npy")
    assert (ran.code, ran.raw, len(ran.err.splitlines())) == (4, b"", 1)
    assert not (tmp_path / "y.npy").exists()
    assert normcli("bn", "--data", "[[1,5],[2,6]]", "--strict").code == 0


@pytest.mark.parametrize("source", ["--data", "-i"])
def test_a_whole_number_that_is_rounded_is_said(source, normcli, tmp_path):
    text, path = "[9007199254740993, 0.5]", tmp_path / "x.json"
    path.write_text(text)
    ran = normcli("ln", source, text if source == "--data" else path, "--print", "mean")
    assert (ran.code, ran.out) == (0, "4503599627370496.0\n")
    assert "9007199254740993 at [0] is rounded to float64: no integer dtype holds all numbers there" in ran.err


def test_x_hat_and_y_are_two_fields(normcli):
    line = ["ln", "--data", "[[1,3]]", "--eps", "0", "--gamma", "2", "--beta", "1"]
    printed = {name: normcli(*line, "--print", name).out for name in ("xhat", "y", "normalized")}
    assert printed == {"xhat": "-1.0\n1.0\n", "y": "-1.0\n3.0\n", "normalized": "-1.0\n3.0\n"}
    told = normcli(*line, "-f", "json").json
    assert (told["x_hat"], told["normalized"]) == ([[-1.0, 1.0]], [[-1.0, 3.0]])
    assert normcli(*line, "-f", "csv").out.splitlines()[0].endswith(",x_hat,normalized")
    table = normcli(*line, "--show", "xhat,normalized").out
    assert "x̂, before gamma and beta  rows n" in table
    assert "y, after gamma and beta  rows n" in table


def test_without_gamma_and_beta_x_hat_is_y(normcli):
    line = ["ln", "--data", "[[1,3]]"]
    assert "x_hat" not in normcli(*line, "-f", "json").json
    assert normcli(*line, "--print", "xhat").out == normcli(*line, "--print", "y").out
    assert "x̂, which is y" in normcli(*line, "--show", "xhat").out
    assert "x̂" not in normcli(*line).out


@pytest.mark.parametrize("printed", [["--print", "mean,var"], ["--print", "mean", "--print", "var"]], ids=len)
def test_several_fields_are_columns(printed, normcli):
    ran = normcli("zscore", "--data", "[[1,2],[3,6]]", *printed)
    assert (ran.code, ran.out) == (0, "2.0\t1.0\n4.0\t4.0\n")


def test_columns_of_different_lengths_are_refused(normcli):
    require_refusal(
        normcli("zscore", "--data", "[[1,2],[3,6]]", "--print", "mean,y"),
        2,
        "--print mean,y: columns of different lengths (mean 2, y 4); print them apart",
    )


def test_help_lists_the_fields_of_the_norm(normcli):
    told = " ".join(normcli("rms", "--help").out.split())
    assert "Fields: ms, rms, rstd, shape, axes, group_count, group_size, count, xhat, y, gamma, beta." in told


def test_of_a_file_one_line_says_what_was_written(normcli, tmp_path):
    ran = normcli("bn", "--shape", "2,3", "-o", tmp_path / "y.npy")
    assert (ran.code, ran.out) == (0, "")
    told = r"normcli: .*y.npy: \(2, 3\) float64, 176 bytes in [0-9.e-]+ s; --show stats,check prints 3 groups\n"
    assert re.fullmatch(told, ran.err)
    assert normcli("bn", "--shape", "2,3", "-o", tmp_path / "y.npy", "-q").err == ""
    assert "rstd" in normcli("bn", "--shape", "2,3", "-o", tmp_path / "y.npy", "--show", "stats").out


@pytest.mark.parametrize(("norm", "drawn"), [("ln", {"gamma", "beta"}), ("rms", {"gamma"}), ("wn", {"gamma"})])
def test_a_seed_draws_beta_where_something_is_subtracted(norm, drawn, normcli):
    told = normcli(norm, "--shape", "2,3", "--affine-seed", "1", "-f", "json").json
    assert {name for name in ("gamma", "beta") if told[name] is not None} == drawn


def test_the_tensor_and_the_statistics_are_both_on_the_disk_before_either_takes_its_place(
    normcli, here, monkeypatch
):
    done, replace = [], Path.replace
    monkeypatch.setattr(os, "fsync", lambda _: done.append("fsync"))
    monkeypatch.setattr(Path, "replace", lambda *paths: done.append("replace") or replace(*paths))
    assert normcli("ln", "--shape", "2,3", "-o", "y.npy", "--stats-output", "s.npz").code == 0
    assert done[:3] == ["fsync", "fsync", "replace"]
    assert done.count("replace") == 2


def test_a_failure_to_place_one_of_two_files_leaves_no_litter(normcli, here, monkeypatch):
    Path("y.npy").write_text("old")
    Path("s.npz").write_text("old")

    def fail(*arguments):
        raise OSError(5, "Input/output error")

    monkeypatch.setattr(Path, "replace", fail)
    ran = normcli("ln", "--shape", "2,3", "-o", "y.npy", "--stats-output", "s.npz")
    assert (ran.code, ran.out, ran.err) == (3, "", "normcli: y.npy cannot be written: Input/output error\n")
    assert sorted(os.listdir()) == ["s.npz", "y.npy"]
    assert Path("y.npy").read_text() == Path("s.npz").read_text() == "old"


@pytest.mark.slow
def test_a_result_that_takes_the_place_of_its_input_is_said(normcli, here):
    np.save("x.npy", np.arange(6.0).reshape(2, 3))
    told = "normcli: x.npy: the result has taken the place of the input\n"
    assert normcli("ln", "x.npy", "-o", "y.npy").err.count("the place") == 0
    assert normcli("ln", "y.npy", "-o", "x.npy").err.count("the place") == 0
    assert normcli("fit", "zscore", "x.npy", "-o", "s.npz").code == 0
    assert normcli("ln", "x.npy", "-o", "../" + here.name + "/x.npy").err.startswith(told)
    assert normcli("apply", "s.npz", "x.np?", "-o", "./").err == told


def test_of_a_pipe_no_size_is_said(normcli, tmp_path):
    os.mkfifo(tmp_path / "y.npy")
    reader = threading.Thread(target=(tmp_path / "y.npy").read_bytes)
    reader.start()
    ran = normcli("ln", "--shape", "2,3", "-o", tmp_path / "y.npy")
    reader.join()
    assert re.fullmatch(r"normcli: .*y.npy: \(2, 3\) float64 in [0-9.e-]+ s; --show .*\n", ran.err)


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("bn",), "eps keeps var below 1"),
        (("bn", "--eps", "0"), "var ≈ 1 (1)"),
        (("rms",), "eps keeps ms below 1"),
        (("bn", "--eps", "1"), "rather than 1, as the statistics and eps predict"),
    ],
)
def test_a_variance_below_1_is_explained(arguments, told, normcli):
    assert normcli(*arguments, "--shape", "2,3,4,4", "--show", "check").out.rstrip().endswith(told)


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ("ln --shape 2,3,2 --gamma [[[1,2]],[[3,4]]]", "(2, 1, 2)   along n l   1, 2, 3, 4"),
        ("gn --groups 2 --shape 2,4,3 --gamma [1,2]", "(2,)   along c, in groups   1, 2"),
        (
            "ws --shape 2,2 --gamma [1,2]",
            "(2,)   along n, as ws has it; --feature-axes lays it along others   1, 2",
        ),
        ("ln --shape 2,3 --gamma [1,2,3]", "(3,)   1, 2, 3"),
    ],
)
def test_the_header_says_along_which_axes_gamma_lies(line, told, normcli):
    assert f"gamma    {told}" in normcli(*line.split()).out.replace("gamma     ", "gamma    ")
