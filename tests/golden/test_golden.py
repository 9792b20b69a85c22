"""Golden folders: what is written verifies, and what is damaged is named."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import shutil
from pathlib import Path

import numpy as np
import pytest

from normcli import NORMS, backward, normalize
from normcli.cli.run import run
from tests.conftest import require_refusal
from tests.marks import costly
from tests.strategies import options_for

SHAPE = (2, 4, 3, 2)


RECIPE = ["--shape", "3,4", "--dist", "normal", "--dtype", "float32", "--gamma", "[1,2,3,4]"]


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    with contextlib.chdir(tmp_path_factory.mktemp("golden")):
        assert run(["golden", "bn", *RECIPE, "-o", "g"]) == 0
        return Path("g").absolute()


@pytest.fixture
def folder(made, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return shutil.copytree(made, tmp_path / "g")


def rewrite(folder, change, *, is_hashed=True):
    """Change a manifest, and make its hash anew."""
    manifest = json.loads((folder / "manifest.json").read_text())
    change(manifest)
    if is_hashed:
        manifest["sha256"] = hash_members(manifest)
    (folder / "manifest.json").write_text(json.dumps(manifest))


def change_file(folder, name, change):
    """Change a file of a folder, and make the hashes anew."""
    path = folder / f"{name}.npy"
    np.save(path, change(np.load(path)))
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    rewrite(folder, lambda manifest: manifest["files"][name].update(sha256=digest))


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
        "normcli-golden/2",
        "bn",
        {"dtype": "float32"},
    )
    assert manifest["recipe"]["seed"] == 42
    assert manifest["convention"]["eps"] == 1e-5
    assert list(manifest["files"]) == ["input", "gamma", "normalized", "mean", "var", "std", "rstd"]
    for entry in manifest["files"].values():
        assert entry["sha256"] == hashlib.sha256((folder / entry["file"]).read_bytes()).hexdigest()
    assert manifest["sha256"] == hash_members(manifest)


@pytest.mark.parametrize("mapped", [False, True])
@pytest.mark.parametrize("norm", [*NORMS, "l1"])
def test_every_norm_verifies_with_its_backward_pass(norm, mapped, normcli, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    row, rng = NORMS.get(norm, NORMS["lp"]), np.random.default_rng(2)
    for name in ("x", "dy"):
        np.save(f"{name}.npy", rng.normal(size=SHAPE).astype("f4"))
    if mapped:
        monkeypatch.setattr("normcli.tensors.mapped.SMALLEST_MAPPED", 1)
    options = ["--groups", 2] if norm in NORMS and options_for(norm, SHAPE) else []
    options += ["--p", "inf"] if norm == "lp" else ["--dy", "dy.npy", "--backward"] * bool(row.gradient_names)
    assert normcli("golden", norm, "-i", "x.npy", *options, "-o", "g").code == 0
    ran = normcli("check", "g", "-f", "json")
    assert (ran.code, ran.err, ran.json["ok"]) == (0, "", True)
    assert set(ran.json["statistics"]) == set(row.statistics)
    assert "--backward" not in options or tuple(ran.json["gradients"]) == row.gradient_names


def test_verifying_has_help(folder, normcli):
    ran = normcli("check", folder, "--help")
    assert ran.code == 0
    assert f"  normcli check {folder}" in ran.out


def hash_members(manifest):
    members = {name: value for name, value in manifest.items() if name != "sha256"}
    text = json.dumps(members, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()


def test_options_that_give_another_result_are_exit_code_1(folder, normcli):
    def change(manifest):
        manifest["options"].update(eps=1e-3)
        manifest["convention"].update(eps=1e-3)

    rewrite(folder, change, is_hashed=False)
    ran = normcli("check", folder)
    assert ran.code == 1
    assert "manifest.json is not what was written (sha256)" in ran.err
    assert "✗ normalized: 12 of 12 values differ" in ran.out


@pytest.mark.parametrize(("ulp", "code"), [(1, 0), (2, 1)])
def test_float64_may_be_one_ulp_off(ulp, code, normcli, tmp_path):
    np.save(tmp_path / "x.npy", np.arange(6.0).reshape(2, 3))
    folder = tmp_path / "g"
    assert normcli("golden", "ln", "-i", tmp_path / "x.npy", "-o", folder).code == 0
    change_file(folder, "normalized", lambda y: y + ulp * np.spacing(y) * [[0, 0, 0], [0, 0, 1]])
    assert normcli("check", folder, "-q").code == code


@pytest.mark.parametrize("quiet", [(), ("-q",)])
def test_a_manifest_of_the_version_without_a_hash_is_refused_with_what_writes_a_new_one(quiet, folder, normcli):
    rewrite(folder, lambda m: (m.pop("sha256"), m.update(schema="normcli-golden/1")), is_hashed=False)
    ran = normcli("check", folder, *quiet)
    require_refusal(ran, 3, "manifest.json is of normcli-golden/1, which has no hash")
    assert f"normcli golden bn -i {folder / 'input.npy'} -o DIR" in ran.err


def test_the_formula_of_another_version_may_be_in_other_words(folder, normcli):
    rewrite(folder, lambda m: (m.update(normcli="0.0.9"), m["convention"].update(formula="y")))
    assert normcli("check", folder).code == 0


LIES = [
    (lambda m: m["options"].update(eps=1e-3), "convention.eps is 1e-05, and should be 0.001"),
    (lambda m: m["convention"].update(axes=[1]), "convention.axes is [1], and should be [0]"),
    (lambda m: m["convention"].update(formula="x"), 'convention.formula is "x"'),
    (lambda m: m["options"].update(ddof=None), "options.ddof is null, and should not be there"),
    (lambda m: m.update(selection={"nan": "propagate"}), "and should be null"),
    (lambda m: m.update(author="me"), '"author" is no member of a manifest'),
    (lambda m: m.update(source="mine"), 'source is "mine"; the recipe is \'normal, seed 42'),
    (lambda m: m.update(normcli=1), "normcli is 1, and no text"),
    (lambda m: m["recipe"].update(seed=43), "source is "),
    (lambda m: (m["recipe"].update(seed=43), m.update(source="normal, seed 43, numpy-legacy")), "the recipe does not give input.npy"),
    (lambda m: m["recipe"].update(shape=[4, 3]), "recipe.shape is [4, 3]; that of input.npy is [3, 4]"),
    (lambda m: m["recipe"].update(seed="a"), 'recipe is none that can be followed: "a" is no integer'),
    (lambda m: m["recipe"].pop("shape"), "recipe has no shape"),
    (lambda m: m.update(recipe=[1]), "recipe is [1], and no object"),
    (lambda m: m["files"]["mean"].update(file="../x"), 'files.mean.file is "../x", and should be "mean.npy"'),
    (lambda m: m["files"]["mean"].update(more=1), "files.mean.more is 1, and should not be there"),
    (lambda m: m["files"].pop("var"), "files does not list var"),
    (lambda m: m["files"]["mean"].pop("shape"), "files.mean.shape is missing"),
    (lambda m: m.pop("recipe"), "recipe is missing"),
    (lambda m: m["files"].update(running_mean={}), "files does not list running_var"),
    (lambda m: m["files"].update(dy={}), "files does not list dx"),
    (lambda m: m["files"].update(mean=1), "files.mean is no object"),
    (lambda m: m.update(files=[]), "names no files"),
    (lambda m: m.update(norm="xn"), "there is no norm 'xn'"),
    (lambda m: m["options"].update(eps="a"), 'no option eps = "a"'),
    (lambda m: m["options"].update(foo=1), "no option foo = 1"),
    (lambda m: m["options"].update(eps=-1), "eps -1.0 is not a finite"),
    (lambda m: m.update(schema="x"), "is not the manifest of golden files (normcli-golden/2)"),
    (lambda m: m.update(norm=3), "manifest.json names no norm, or no options"),
    (lambda m: m.update(options=[]), "manifest.json names no norm, or no options"),
    (lambda m: m.update(selection=3), "does not fit its files: its selection is no object of nan and fill"),
    (lambda m: m["recipe"].update(low="a"), "low is no number"),
    (lambda m: m["recipe"].update(dist="x"), 'dist "x" is none of randint'),
    (lambda m: m["recipe"].update(rng="x"), 'rng "x" is none of numpy'),
    (lambda m: m["recipe"].update(shape=3), "shape is no list"),
    (lambda m: m["recipe"].pop("skip"), "its members are not shape, dist"),
    (lambda m: m["files"].update({"../x": {}}), "'../x' is the name of no"),
    (lambda m: m["files"]["mean"].update(shape=[2]), "files.mean.shape is [2], and should be [4]"),
]  # fmt: skip


@pytest.mark.all_quick
@pytest.mark.parametrize(("change", "message"), [pytest.param(*lie, id=lie[1]) for lie in LIES])
def test_a_lie_is_named_even_with_its_hash_made_anew(change, message, folder, normcli):
    rewrite(folder, change)
    require_refusal(normcli("check", folder), 3, message)


@pytest.mark.parametrize(
    ("skip", "message"),
    [
        (10**12, "recipe.skip is 1000000000000, in a manifest that may have been changed: it is not followed"),
        (10**6 + 1, "recipe.skip is 1000001, in a manifest"),
        (10**6, "the recipe does not give input.npy"),
    ],
)
def test_a_recipe_that_would_take_hours_is_not_followed_where_the_manifest_was_changed(
    skip, message, folder, normcli
):
    def change(manifest):
        manifest["recipe"].update(skip=skip)
        manifest["source"] += f", {skip} skipped"

    rewrite(folder, change, is_hashed=False)
    require_refusal(normcli("check", folder), 3, message)


def test_a_recipe_of_the_parameters_alone_is_held_against_them(normcli, tmp_path):
    folder, x = tmp_path / "g", tmp_path / "x.json"
    x.write_text("[[1, 2, 3], [4, 5, 7]]")
    assert normcli("golden", "ln", "-i", x, "--affine-seed", "3", "-o", folder).code == 0
    assert normcli("check", folder).code == 0
    rewrite(folder, lambda m: m["recipe"].update(affine_seed=4))
    assert "recipe.affine_seed does not give gamma.npy" in normcli("check", folder).err


def write(text):
    return lambda folder: (folder / "manifest.json").write_text(text)


def replace_eps(number):
    def change(folder):
        path = folder / "manifest.json"
        path.write_text(path.read_text().replace("1e-05", number, 1))

    return change


def unhash(change):
    return lambda folder: rewrite(folder, change, is_hashed=False)


def link(folder):
    (folder / "manifest.json").unlink()
    (folder / "manifest.json").symlink_to("/dev/zero")


def damage(folder):
    data = bytearray((folder / "mean.npy").read_bytes())
    data[-1] ^= 1
    (folder / "mean.npy").write_bytes(data)


CHANGED = "manifest.json is not what was written (sha256)"


@pytest.mark.all_quick
@pytest.mark.parametrize(
    ("change", "message"),
    [
        pytest.param(damage, "mean.npy: not what was written (sha256)", id="damaged"),
        pytest.param(lambda f: [os.remove(f / n) for n in ("gamma.npy", "var.npy")], "gamma.npy, var.npy: missing", id="missing"),
        pytest.param(lambda f: os.remove(f / "manifest.json"), "manifest.json: there is no such file", id="no manifest"),
        pytest.param(link, "is no regular file", id="a link"),
        pytest.param(write('{"a": 1, "a": 2}'), "an object has the name 'a' twice", id="a name twice"),
        pytest.param(write("{"), "manifest.json is not valid JSON", id="no JSON"),
        pytest.param(replace_eps("NaN"), "is not valid JSON", id="NaN"),
        pytest.param(replace_eps("1e400"), "is not valid JSON", id="infinite"),
        pytest.param(write("[1]"), "is not the manifest of golden files", id="another"),
        pytest.param(unhash(lambda m: [m[name].update(eps=1.0000000000000003e-05) for name in ("options", "convention")]), CHANGED, id="eps"),
        pytest.param(unhash(lambda m: m.update(normcli="9")), CHANGED, id="version"),
        pytest.param(unhash(lambda m: m.update(sha256=None)), CHANGED, id="no hash"),
    ],
)  # fmt: skip
def test_what_is_damaged_is_named(change, message, folder, normcli):
    change(folder)
    require_refusal(normcli("check", folder), 3, message)


@pytest.mark.all_quick
@pytest.mark.parametrize(
    ("line", "code", "message"),
    [
        pytest.param("golden bn --shape 2,3", 2, "golden needs a folder: -o DIR", id="no folder"),
        pytest.param("golden bn --shape 2,3 -o g", 2, "this folder is not empty", id="not empty"),
        pytest.param("golden bn --shape 2,3 -o no/where", 2, "no; make it first", id="no parent"),
        pytest.param("golden bn --shape 2,3 -o g/mean.npy", 2, "this is no folder", id="a file"),
        pytest.param("golden bn --shape 2,3 --dtype bfloat16 -o h", 2, "which has no bfloat16: give inputs as", id="bfloat16"),
        pytest.param("golden rms --shape 2,3 --gate 2 -o h", 2, "-o FILE writes the exact gated, clipped", id="gate"),
        pytest.param("golden bn --data [[1,1]] --strict -o h", 4, "holds a single value", id="strict"),
        pytest.param("golden minmax --shape 3,4 --backward -o h", 2, "minmax has no backward pass", id="no gradient"),
        pytest.param("golden ln --shape 3,4 --dy 1,2,3 -o h", 3, "dy has the shape (3,)", id="dy"),
        pytest.param("check nothing", 2, "there is no norm or folder 'nothing'", id="no folder to check"),
    ],
)  # fmt: skip
def test_bad_input_leaves_nothing(line, code, message, folder, normcli):
    require_refusal(normcli(*line.split()), code, message)
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
    monkeypatch.setattr("normcli.golden.golden.write_npy", fail)
    ran = normcli("golden", "ln", "--shape", "2,3", "-o", "g")
    require_refusal(ran, 3, "g cannot be written: No space left on device")
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize(
    "line",
    [
        pytest.param("gn --groups 2 --group-order interleaved --shape 2,4,3", id="interleaved groups"),
        pytest.param("rms --like torch --dtype float32 --shape 2,4,3", id="the eps of the machine"),
        pytest.param(
            "rms --like llama --dtype float16 --affine-seed 1 --shape 4,128", id="rounded before gamma"
        ),
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


@pytest.fixture
def with_gradients(tmp_path, normcli):
    folder = tmp_path / "g"
    recipe = ["--shape", "3,4,5", "--dist", "normal", "--dtype", "float32"]
    ran = normcli("golden", "ln", *recipe, "--affine-seed", 1, "--backward", "-o", folder)
    assert (ran.code, ran.raw, ran.err) == (0, b"", "")
    return folder


def read(folder, *names):
    return [np.load(folder / f"{name}.npy") for name in names]


def test_a_backward_pass_is_written_beside_the_forward_one(with_gradients):
    x, dy, gamma, beta = read(with_gradients, "input", "dy", "gamma", "beta")
    found = backward(x, dy, "ln", gamma=gamma, beta=beta)
    for name, of in (("dx", x), ("dgamma", gamma), ("dbeta", beta)):
        (kept,) = read(with_gradients, name)
        assert kept.dtype == of.dtype
        np.testing.assert_array_equal(kept, getattr(found, name))
    np.testing.assert_array_equal(
        *read(with_gradients, "normalized"), normalize(x, "ln", gamma=gamma, beta=beta).normalized
    )
    manifest = json.loads((with_gradients / "manifest.json").read_text())
    assert list(manifest["files"])[-4:] == ["dy", "dx", "dgamma", "dbeta"]
    assert (manifest["recipe"]["affine_seed"], manifest["recipe"]["dy_seed"]) == (1, 43)


@pytest.mark.parametrize("name", ["dx", "dgamma", "dbeta"])
def test_a_wrong_gradient_is_exit_code_1_and_said_how(name, with_gradients, normcli):
    change_file(with_gradients, name, np.negative)
    ran = normcli("check", with_gradients)
    assert ran.code == 1
    assert f"✗ {name}: its sign is turned." in ran.lines
    found = normcli("check", with_gradients, "-f", "json").json
    assert (found["ok"], found["check"]["ok"]) == (False, True)
    assert [key for key, entry in found["gradients"].items() if not entry["ok"]] == [name]
    header, line = normcli("check", with_gradients, "-f", "csv").lines
    assert (header.split(",")[0], line.split(",")[0]) == ("compared", name)


def test_another_dy_is_not_that_of_the_recipe(with_gradients, normcli):
    change_file(with_gradients, "dy", np.negative)
    require_refusal(normcli("check", with_gradients), 3, "recipe.dy_seed does not give dy.npy")


@costly
@pytest.mark.parametrize("exponent", [-310, -300, 300, 307])
@pytest.mark.slow
def test_a_backward_pass_at_the_ends_of_the_range_verifies(exponent, normcli, tmp_path):
    np.save(tmp_path / "x.npy", np.random.default_rng(2).normal(size=SHAPE) * 10.0**exponent)
    assert normcli("golden", "ln", "-i", tmp_path / "x.npy", "--backward", "-o", tmp_path / "g").code == 0
    ran = normcli("check", tmp_path / "g", "-f", "json")
    assert (ran.code, ran.err, ran.json["ok"]) == (0, "", True)
