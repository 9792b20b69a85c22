"""Golden folders: what is written verifies, and what is damaged is named."""

from __future__ import annotations

import hashlib
import json
import os

import numpy as np
import pytest

from normcli import NORMS, normalize
from tests.strategies import options_for

SHAPE = (2, 4, 3, 2)


@pytest.fixture
def folder(tmp_path, monkeypatch, normcli):
    monkeypatch.chdir(tmp_path)
    recipe = ["--shape", "3,4", "--dist", "normal", "--dtype", "float32"]
    ran = normcli("golden", "bn", *recipe, "--gamma", "[1,2,3,4]", "-o", "g")
    assert (ran.code, ran.raw, ran.err) == (0, b"", "")
    assert os.listdir(tmp_path) == ["g"]
    return tmp_path / "g"


def rewrite(folder, change):
    manifest = json.loads((folder / "manifest.json").read_text())
    change(manifest)
    (folder / "manifest.json").write_text(json.dumps(manifest))


def test_it_holds_what_another_project_needs(folder):
    x = np.load(folder / "input.npy")
    gamma = np.load(folder / "gamma.npy")
    result = normalize(x, "bn", gamma=gamma)
    assert (x.dtype, gamma.dtype) == (np.dtype("f4"), np.dtype("f4"))
    np.testing.assert_array_equal(np.load(folder / "normalized.npy"), result.normalized)
    for name in ("mean", "var", "std", "rstd"):
        np.testing.assert_array_equal(np.load(folder / f"{name}.npy"), result.statistics[name])
    manifest = json.loads((folder / "manifest.json").read_text())
    assert (manifest["schema"], manifest["norm"], manifest["options"]) == (
        "normcli-golden/1",
        "bn",
        {"dtype": "float32"},
    )
    assert manifest["recipe"]["seed"] == 42
    assert manifest["convention"]["eps"] == 1e-5
    assert list(manifest["files"]) == ["input", "gamma", "normalized", "mean", "var", "std", "rstd"]
    for entry in manifest["files"].values():
        assert entry["sha256"] == hashlib.sha256((folder / entry["file"]).read_bytes()).hexdigest()


@pytest.mark.parametrize("mapped", [False, True])
@pytest.mark.parametrize("norm", [*NORMS, "l1"])
def test_every_norm_verifies(norm, mapped, normcli, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    np.save("x.npy", np.random.default_rng(2).normal(size=SHAPE).astype("f4"))
    if mapped:
        monkeypatch.setattr("normcli.tensors.mapped.SMALLEST_MAPPED", 1)
    options = ["--groups", 2] if norm in NORMS and options_for(norm, SHAPE) else []
    options += ["--p", "inf"] if norm == "lp" else []
    assert normcli("golden", norm, "-i", "x.npy", *options, "-o", "g").code == 0
    ran = normcli("check", "g", "-f", "json")
    assert (ran.code, ran.err, ran.json["ok"]) == (0, "", True)
    assert set(ran.json["statistics"]) == set(NORMS.get(norm, NORMS["lp"]).statistics)


@pytest.mark.parametrize("like", ["llama", "t5", "mlx", "onnx"])
def test_values_that_are_rounded_before_gamma_verify(like, normcli, tmp_path):
    recipe = ["--shape", "4,128", "--dist", "normal", "--dtype", "float16", "--affine-seed", "1"]
    folder = tmp_path / "g"
    assert normcli("golden", "rms", "--like", like, *recipe, "-o", folder).code == 0
    assert normcli("check", folder).code == 0


def test_verifying_has_help(folder, normcli):
    ran = normcli("check", folder, "--help")
    assert ran.code == 0
    assert f"  normcli check {folder}" in ran.out


def test_a_recorded_convention_that_gives_another_result_is_exit_code_1(folder, normcli):
    rewrite(folder, lambda manifest: manifest["options"].update(eps=1e-3))
    ran = normcli("check", folder)
    assert (ran.code, ran.err) == (1, "")
    assert "✗ normalized: 12 of 12 values differ" in ran.out


def damage(name):
    def change(folder):
        data = bytearray((folder / name).read_bytes())
        data[-1] ^= 1
        (folder / name).write_bytes(data)

    return change


@pytest.mark.parametrize(
    ("change", "message"),
    [
        pytest.param(damage("mean.npy"), "mean.npy: not what was written (sha256)", id="damaged"),
        pytest.param(lambda f: [os.remove(f / n) for n in ("gamma.npy", "var.npy")], "gamma.npy, var.npy: missing", id="missing"),
        pytest.param(lambda f: os.remove(f / "manifest.json"), "manifest.json: there is no such file", id="no manifest"),
        pytest.param(lambda f: (f / "manifest.json").write_text("{"), "manifest.json is not valid JSON", id="no JSON"),
        pytest.param(lambda f: (f / "manifest.json").write_text("[1]"), "is not the manifest of golden files", id="another"),
        pytest.param(lambda f: rewrite(f, lambda m: m.update(files={})), "names no files", id="no files"),
        pytest.param(lambda f: rewrite(f, lambda m: m.update(norm="xn")), "there is no norm 'xn'", id="no norm"),
        pytest.param(lambda f: rewrite(f, lambda m: m["options"].update(eps="a")), 'no option eps = "a"', id="eps"),
        pytest.param(lambda f: rewrite(f, lambda m: m["options"].update(foo=1)), "no option foo = 1", id="option"),
        pytest.param(lambda f: rewrite(f, lambda m: m["options"].update(eps=-1)), "eps -1.0 is not a finite", id="negative"),
        pytest.param(lambda f: rewrite(f, lambda m: m["files"].update({"../x": {}})), "'../x' is the name of no", id="path"),
        pytest.param(lambda f: rewrite(f, lambda m: m["files"]["mean"].update(shape=[2])), "says float64 of [2]", id="shape"),
    ],
)  # fmt: skip
def test_what_is_damaged_is_named(change, message, folder, normcli):
    change(folder)
    ran = normcli("check", folder)
    assert (ran.code, ran.raw) == (3, b"")
    assert len(ran.err.splitlines()) == 1
    assert message in ran.err


@pytest.mark.parametrize(
    ("line", "code", "message"),
    [
        pytest.param("golden bn --shape 2,3", 2, "golden needs a folder: -o DIR", id="no folder"),
        pytest.param("golden bn --shape 2,3 -o g", 2, "this folder is not empty", id="not empty"),
        pytest.param("golden bn --shape 2,3 -o no/where", 2, "there is no folder", id="no parent"),
        pytest.param("golden bn --shape 2,3 -o g/mean.npy", 2, "this is no folder", id="a file"),
        pytest.param("golden bn --shape 2,3 --dtype bfloat16 -o h", 2, "has no bfloat16", id="bfloat16"),
        pytest.param("golden bn --data [[1,1]] --strict -o h", 4, "holds a single value", id="strict"),
        pytest.param("check nothing", 2, "there is no norm or folder 'nothing'", id="no folder to check"),
    ],
)
def test_bad_input_leaves_nothing(line, code, message, folder, normcli):
    ran = normcli(*line.split())
    assert (ran.code, ran.raw) == (code, b"")
    assert message in ran.err
    assert os.listdir() == ["g"]


def test_an_empty_folder_is_taken_even_the_current_one(normcli, tmp_path, monkeypatch):
    (tmp_path / "e").mkdir()
    monkeypatch.chdir(tmp_path / "e")
    assert normcli("golden", "ln", "--shape", "2,3", "-o", ".").code == 0
    assert normcli("check", ".").code == 0
    assert os.listdir(tmp_path) == ["e"]


def test_a_disk_that_fails_leaves_nothing(normcli, tmp_path, monkeypatch):
    def fail(*arguments):
        raise OSError(28, "No space left on device")

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("normcli.verify.golden.write_npy", fail)
    ran = normcli("golden", "ln", "--shape", "2,3", "-o", "g")
    assert (ran.code, ran.raw) == (3, b"")
    assert "g cannot be written: No space left on device" in ran.err
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize(
    "line",
    [
        pytest.param("gn --groups 2 --group-order interleaved --shape 2,4,3", id="interleaved groups"),
        pytest.param("rms --like torch --dtype float32 --shape 2,4,3", id="the eps of the machine"),
    ],
)
def test_what_was_written_is_right(line, normcli, tmp_path):
    assert normcli("golden", *line.split(), "-o", tmp_path / "g", "-q").code == 0
    ran = normcli("check", tmp_path / "g")
    assert (ran.code, ran.err) == (0, "")


def test_running_statistics_and_a_selection_are_kept_and_checked(tmp_path, normcli):
    running = ["--eval", "--running-mean", "[1,2,3]", "--running-var", "4"]
    counting = ["--mask", "[[[1,1,1,0]]]", "--nan", "omit", "--fill", "zero"]
    folder = tmp_path / "g"
    ran = normcli("golden", "bn", "--shape", "2,3,4", "--dtype", "float32", *running, *counting, "-o", folder)
    assert (ran.code, ran.err) == (0, "")
    expected = (np.load(folder / "input.npy") - np.array([[[1], [2], [3]]])) / np.sqrt(4 + 1e-5)
    expected[..., 3] = 0
    np.testing.assert_allclose(np.load(folder / "normalized.npy"), expected, rtol=1e-6)
    assert json.loads((folder / "manifest.json").read_text())["selection"] == {"nan": "omit", "fill": "zero"}
    checked = normcli("check", folder, "-f", "json")
    assert (checked.code, checked.err) == (0, "")
    mask = np.load(folder / "mask.npy")
    np.save(folder / "mask.npy", ~mask)
    assert normcli("check", folder).code == 3
