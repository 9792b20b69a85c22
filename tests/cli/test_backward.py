"""`normcli backward`: what it prints and writes, and what it refuses."""

from __future__ import annotations

import numpy as np
import pytest
from safetensors.numpy import load_file

from normcli import backward
from tests.conftest import require_refusal

SHAPE = ("--shape", "2,3,4", "--dist", "normal", "--dtype", "float32")


@pytest.fixture
def files(tmp_path, rng):
    """x, dy and gamma in files."""
    arrays = {"x": rng.normal(size=(4, 6, 5)), "dy": rng.normal(size=(4, 6, 5)), "gamma": rng.normal(size=6)}
    for name, array in arrays.items():
        np.save(tmp_path / f"{name}.npy", array.astype(np.float32))
    return {name: tmp_path / f"{name}.npy" for name in arrays}


def test_what_is_saved_and_printed_is_what_python_returns(files, tmp_path, normcli):
    given = ("-i", files["x"], "--dy", files["dy"], "--gamma", files["gamma"])
    x, dy, gamma = (np.load(path) for path in files.values())
    expected = backward(x, dy, "bn", gamma=gamma)
    ran = normcli("backward", "bn", *given, "-o", tmp_path / "dx.npy", "--print", "dgamma,dbeta")
    assert (ran.code, ran.err) == (0, "")
    np.testing.assert_array_equal(np.load(tmp_path / "dx.npy"), expected.dx)
    printed = np.array([line.split("\t") for line in ran.lines], dtype=np.float32).T
    np.testing.assert_array_equal(printed, [expected.dgamma, expected.dbeta])
    found = normcli("backward", "bn", *given, "-f", "json").json
    np.testing.assert_array_equal(np.array(found["dx"], np.float32), expected.dx)
    np.testing.assert_array_equal(np.array(found["dgamma"], np.float32), expected.dgamma)
    assert found["dy"] == {"source": str(files["dy"]), "shape": [4, 6, 5], "dtype": "float32"}


@pytest.mark.parametrize("suffix", ["npz", "safetensors"])
@pytest.mark.parametrize(("norm", "names"), [("bn", ("dx", "dgamma", "dbeta")), ("lp", ("dx",))])
def test_an_archive_holds_every_gradient_under_its_name(norm, names, suffix, files, tmp_path, normcli):
    path = tmp_path / f"gradients.{suffix}"
    given = ("-i", files["x"], "--dy", files["dy"])
    assert normcli("backward", norm, *given, "-o", path).code == 0
    found = dict(np.load(path)) if suffix == "npz" else load_file(path)
    expected = backward(np.load(files["x"]), np.load(files["dy"]), norm)
    assert sorted(found) == sorted(names)
    for name in names:
        np.testing.assert_array_equal(found[name], expected.field(name))


def test_a_drawn_gradient_is_told_and_drawn_again_by_its_recipe(normcli, tmp_path):
    ran = normcli("backward", "ln", *SHAPE)
    assert "dy       normal, seed 43, numpy   (2, 3, 4)   float32" in ran.out
    recipe = ("--shape", "2,3,4", "--dist", "normal", "--rng", "numpy", "--seed", "43", "--dtype", "float32")
    normcli("generate", *recipe, "-o", tmp_path / "dy.npy")
    again = normcli("backward", "ln", *SHAPE, "--dy", tmp_path / "dy.npy", "--print", "dx")
    assert again.lines == normcli("backward", "ln", *SHAPE, "--print", "dx").lines
    other = normcli("backward", "ln", *SHAPE, "--dy-seed", "5", "--print", "dx")
    assert other.lines != again.lines


def test_the_table(normcli):
    ran = normcli(
        *["backward", "ln", "--data", "[[1,2,6]]", "--eps", "0", "--show", "dx,parameters", "--dy-seed", "1"]
    )
    assert (ran.code, ran.err) == (0, "")
    lines = ran.out.splitlines()
    assert lines[0] == "backward ln · layer normalization"
    assert lines[6].startswith("dx  rows n, columns c")
    assert lines[9].split() == ["parameter", "dgamma", "dbeta"]
    assert [line.split()[0] for line in lines[11:14]] == ["c=0", "c=1", "c=2"]
    assert "parameter" not in normcli("backward", "lp", "--data", "1,2,6").out


def test_formats(normcli, files):
    given = ("backward", "ln", "-i", files["x"], "--dy", files["dy"])
    header, *rows = normcli(*given, "-f", "csv").lines
    assert (header.endswith("input,dy,dx"), len(rows)) == (True, 120)
    assert len(normcli(*given, "-f", "jsonl").lines) == 24
    stream = np.array(normcli(*given, "-o", "-", "-f", "json").json, np.float32)
    np.testing.assert_array_equal(stream, backward(*map(np.load, (files["x"], files["dy"])), "ln").dx)


def test_groups_without_a_derivative_are_told(normcli):
    ran = normcli("backward", "ln", "--data", "[[1,1],[1,2]]", "--eps", "0", "--print", "dx")
    assert ran.lines[:2] == ["nan", "nan"]
    assert "dx is NaN for 2 of 4 values" in ran.err
    assert normcli("backward", "ln", "--data", "[[1,1]]", "--strict").code == 4


@pytest.mark.all_quick
@pytest.mark.parametrize(
    ("options", "code", "told"),
    [
        (("--dy", "dy.npy"), 3, "--dy: dy.npy"),
        (("--dy", "{x}", "--dy-seed", "1"), 2, "leave out --dy or --dy-seed"),
        (("-o", "dx.html"), 2, "explain --backward has a page"),
        (("--dy", "{gamma}"), 3, "dy has the shape (6,); it takes that of the input, (4, 6, 5)"),
        (("--dy-seed", "-1"), 2, "seed -1"),
        (("--print", "dx", "-f", "json"), 2, "--print prints bare numbers"),
    ],
)
def test_bad_options_are_one_line(options, code, told, files, normcli):
    require_refusal(
        normcli("backward", "bn", "-i", files["x"], *(str(o).format(**files) for o in options)), code, told
    )


def test_a_gate_that_is_broadcast_has_a_gradient_of_its_shape(normcli, here):
    x, dy = np.random.default_rng(4).normal(size=(2, 3, 2, 5)).astype("f4")
    for name, array in {"x": x, "dy": dy, "z": x[0, 0], "m": x[..., :1] > -1}.items():
        np.save(f"{name}.npy", array)
    asked = ["rms", "-i", "x.npy", "--dy", "dy.npy", "--gate", "z.npy", "--mask", "m.npy", "--fill", "zero"]
    found = backward(x, dy, "rms", gate=x[0, 0], mask=x[..., :1] > -1, fill="zero")
    ran = normcli("backward", *asked, "-fjson")
    assert np.array_equal(np.array(ran.json["dgate"], "f4"), found.dgate)
    assert "l=4" in normcli("backward", *asked, "--show", "dgate").lines[-1]
    csv = [line.split(",") for line in normcli("backward", *asked, "-fcsv").lines]
    assert [float(row[-1]) for row in csv[1:6]] == found.dgate.tolist()
    np.save("bad.npy", found.dgate + np.eye(5)[3])
    ran = normcli("check", *asked, "--backward", "--actual-dgate=bad.npy", "-fjson")
    assert ran.json["gradients"]["dgate"]["worst"]["index"] == {"l": 3}
    assert "at        l=3" in normcli("check", *asked, "--backward", "--actual-dgate=bad.npy").out


def test_a_gate_that_is_not_given_has_no_gradient(normcli, here):
    shown = ("rms", "--shape", "2,3")
    np.save("x.npy", np.ones((2, 3)))
    for line in (
        ("backward", *shown, "--print", "dgate"),
        ("check", *shown, "--backward", "--actual-dgate", "x.npy"),
    ):
        assert "rms has no gate; give --gate" in normcli(*line).err
    ran = normcli("check", *shown, "--backward", "--actual-dx", "x.npy", "--clip", "0,1")
    assert (ran.code, "--clip is of the forward pass" in ran.err) == (2, True)
