"""Bad input: the documented exit code, one line on stderr that names the culprit, an empty stdout, nothing lost."""

from __future__ import annotations

import errno
import json
import os
import shutil
from unittest import mock

import numpy as np
import pytest

from normcli import normalize
from normcli.errors import DataError

USAGE, DATA = 2, 3


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A folder of files that each test has links to."""
    made = tmp_path_factory.mktemp("bad")
    np.save(made / "x.npy", np.arange(24.0).reshape(2, 3, 4))
    np.savez(made / "two.npz", a=np.arange(3), b=np.arange(3))
    np.save(made / "objects.npy", np.array([None, 1], dtype=object), allow_pickle=True)
    np.save(made / "complex.npy", np.array([1j]))
    np.save(made / "text.npy", np.array(["a"]))
    np.save(made / "gamma.npy", np.ones(5))
    whole = (made / "x.npy").read_bytes()
    files = {
        "empty.npy": b"", "cut.npy": whole[:-50], "random.npy": bytes(range(256)), "random.npz": bytes(range(256)),
        "claims.npy": whole.replace(b"(2, 3, 4)", b"(9, 9, 9)"), "ragged.json": b"[[1,2],[3]]",
        "words.json": b'["a"]', "empty.json": b"", "deep.json": b"[" * 5000 + b"]" * 5000, "open.json": b"[[1, 2",
        "ragged.csv": b"1,2\n3\n", "words.csv": b"a,b\n1,x\n", "all.csv": b"a,b\nx,y\n", "empty.csv": b"", "x.txt": b"1,2\n",
    }  # fmt: skip
    for name, content in files.items():
        (made / name).write_bytes(content)
    (made / "folder").mkdir()
    return made


@pytest.fixture
def folder(made, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return shutil.copytree(made, tmp_path, copy_function=os.link, dirs_exist_ok=True)


CASES = [
    pytest.param("bn -i missing.npy", DATA, "missing.npy: there is no such file", id="missing"),
    pytest.param("bn -i empty.npy", DATA, "empty.npy is empty", id="empty npy"),
    pytest.param("bn -i cut.npy", DATA, "cut.npy is cut short", id="truncated"),
    pytest.param("bn -i random.npy", DATA, "random.npy is no readable .npy", id="random npy"),
    pytest.param("bn -i random.npz", DATA, "random.npz is no readable .npz", id="random npz"),
    pytest.param("bn -i claims.npy", DATA, "claims.npy is cut short", id="header claims more"),
    pytest.param("bn -i objects.npy", DATA, "objects.npy holds Python objects", id="objects"),
    pytest.param("bn -i complex.npy", DATA, "complex.npy holds complex128", id="complex"),
    pytest.param("bn -i text.npy", DATA, "text.npy holds <U1", id="text"),
    pytest.param(
        "zscore -i words.csv --columns b", DATA, "'x' is not a number; no chosen column holds", id="no numbers"
    ),
    pytest.param("zscore -i all.csv", DATA, "'x' is not a number; no chosen column holds", id="text alone"),
    pytest.param("bn -i ragged.json", DATA, "ragged.json is ragged", id="ragged json"),
    pytest.param("bn -i words.json", DATA, 'words.json holds "a"', id="words in json"),
    pytest.param("bn -i empty.json", DATA, "empty.json is empty", id="empty json"),
    pytest.param("bn -i deep.json", DATA, "deep.json is nested too deeply", id="deep json"),
    pytest.param("bn -i open.json", DATA, "open.json is not valid JSON", id="unterminated json"),
    pytest.param("bn -i ragged.csv", DATA, "ragged.csv is ragged: line 2", id="ragged csv"),
    pytest.param(
        "bn -i words.csv",
        DATA,
        "words.csv, line 2, column b: 'x' is not a number; --exclude b leaves it out",
        id="words in csv",
    ),
    pytest.param("bn -i empty.csv", DATA, "empty.csv is empty", id="empty csv"),
    pytest.param("bn -i folder", DATA, "folder: this is a folder", id="a folder"),
    pytest.param("bn -i two.npz", USAGE, "two.npz holds 2 arrays; say which", id="several arrays"),
    pytest.param("bn -i two.npz:c", USAGE, "two.npz holds no array 'c'", id="unknown key"),
    pytest.param("bn -i x.npy:a", USAGE, "a .npy file holds one array", id="key of npy"),
    pytest.param("bn -i x.txt", USAGE, "input x.txt has the suffix .txt", id="unknown suffix in"),
    pytest.param("bn -i -", DATA, "standard input is empty", id="empty stdin"),
    pytest.param("bn --data [[1,2],[3]]", DATA, "--data is ragged", id="ragged data"),
    pytest.param("bn", USAGE, "there is no tensor: give --input FILE", id="no source"),
    pytest.param(
        "ln -i x.npy -i y.npy", USAGE, "2 files are given (x.npy, y.npy); one tensor is taken", id="two inputs"
    ),
    pytest.param(
        "explain bn -i x.npy -i y.npy",
        USAGE,
        "2 files are given (x.npy, y.npy); one tensor is taken",
        id="two inputs of a verb",
    ),
    pytest.param("bn -i x.npy --shape 2,3", USAGE, "--input and --shape each name a tensor", id="two sources"),
    pytest.param(
        "bn -i x.npy --data 1", USAGE, "--input and --data each name a tensor", id="two other sources"
    ),
    pytest.param("bn -i x.npy --seed 3", USAGE, "--seed is of a generated tensor", id="seed of a file"),
    pytest.param("bn -i x.npy --rng torch", USAGE, "--rng is of a generated tensor", id="rng of a file"),
    pytest.param("ln -i x.npy --axes 3", USAGE, "axis 3 is out of range", id="axes out of range"),
    pytest.param("ln -i x.npy --axes 1,1", USAGE, "twice", id="axes repeated"),
    pytest.param("ln -i x.npy --axes Q", USAGE, "no axis 'Q' in the layout NCL", id="axes unknown"),
    pytest.param("ln -i x.npy --axes 1 --keep 2", USAGE, "axes and keep", id="axes and keep"),
    pytest.param("ln -i x.npy --layout NC", USAGE, "names 2 axes; the tensor has 3", id="layout too short"),
    pytest.param("gn -i x.npy", USAGE, "gn needs groups", id="no groups"),
    pytest.param("gn -i x.npy --groups 2", USAGE, "groups 2 does not divide the length 3", id="groups"),
    pytest.param("bn -i x.npy --gamma gamma.npy", DATA, "gamma has the shape (5,)", id="gamma's shape"),
    pytest.param("bn -i x.npy --beta [1,2]", DATA, "beta has the shape (2,)", id="beta's shape"),
    pytest.param("bn -i x.npy --gamma missing.npy", DATA, "missing.npy", id="gamma missing"),
    pytest.param("bn -i x.npy --gamma 1 --affine-seed 1", USAGE, "--affine-seed draws", id="gamma twice"),
    pytest.param("bn --shape 1000000,1000000", DATA, "GiB of memory", id="too big"),
    pytest.param("bn --shape 2,-3", USAGE, "not a list of lengths", id="negative shape"),
    pytest.param("bn --shape two", USAGE, "not a list of lengths", id="shape of words"),
    pytest.param("bn --shape 2,3 --high x", USAGE, "'x' is not a number", id="number of words"),
    pytest.param("bn -i x.npy --eps -1", USAGE, "eps -1.0", id="negative eps"),
    pytest.param("lp -i x.npy --p nan", USAGE, "p nan is not a number", id="p is nan"),
    pytest.param(
        "ln -i x.npy --at 1,2", USAGE, "'--at'; it is an option of explain, draw (", id="of other verbs"
    ),
    pytest.param("fit ln --shape 3", USAGE, "an option of ln, explain, compare, draw, … (", id="of many verbs"),
    pytest.param("ln --lay NC", USAGE, "Did you mean one of: '--lang'", id="an option of no verb"),
    pytest.param(
        "fold sn gan.npz",
        USAGE,
        "(gan.npz); a file goes to --conv-weight, --conv-bias, --checkpoint (",
        id="no option before a file",
    ),
    pytest.param("bn -i x.npy --p 1", USAGE, "No such option", id="an option of another norm"),
    pytest.param("zscore -i x.npy --gamma 1", USAGE, "No such option", id="gamma of zscore"),
    pytest.param("bn -i x.npy --dtype int8", USAGE, "--dtype", id="dtype"),
    pytest.param("bn -i x.npy --show everything", USAGE, "none of input, stats", id="show"),
    pytest.param("bn -i x.npy --format xml", USAGE, "--format", id="format"),
    pytest.param("bn -i x.npy --print median", USAGE, "'median' is none of mean, var", id="field"),
    pytest.param("bn -i x.npy --print gamma", USAGE, "--print gamma: no gamma was given", id="field not given"),
    pytest.param(
        "bn -i x.npy --print mean --format json", USAGE, "--print prints bare numbers", id="print and format"
    ),
    pytest.param(
        "bn -i x.npy -o - --print mean", USAGE, "-o - puts the tensor on standard output", id="print and -o -"
    ),
    pytest.param(
        "bn -i x.npy -o nowhere/y.npy", USAGE, "there is no folder nowhere", id="output folder missing"
    ),
    pytest.param(
        "bn -i x.npy -o y.exe", USAGE, "--output y.exe has the suffix .exe; .npy", id="unknown suffix out"
    ),
    pytest.param(
        "bn -i x.npy -o y.txt",
        USAGE,
        ".parquet, .html, .htm, .svg, .png are known",
        id="what shows a result is known too",
    ),
    pytest.param("bn -i x.npy -o folder.npy/", USAGE, "folder", id="output in no folder"),
    pytest.param(
        "bn -i x.npy --stats-output s.csv", USAGE, "--stats-output s.csv has the suffix .csv", id="stats suffix"
    ),
    pytest.param(
        "bn -i x.npy -o s.npz --stats-output ./s.npz",
        USAGE,
        "one would overwrite the other",
        id="one path twice",
    ),
    pytest.param("bn -i " + "a" * 300 + ".npy", DATA, "File name too long", id="name too long"),
    pytest.param("bn -i x.npy --gamma " + "b" * 300, DATA, "--gamma: bbb", id="gamma's name too long"),
    pytest.param("bn -i x.npy --gamma 1,2", DATA, "gamma has the shape (2,)", id="gamma without brackets"),
    pytest.param("bn --shape " + "9" * 400, DATA, "far too many GiB", id="400 digits"),
    pytest.param("bn --shape " + "9" * 5000, USAGE, "not a list of lengths", id="5000 digits"),
    pytest.param(
        "bn --shape 9999999999999999999999999,0", DATA, "GiB of memory", id="no values, too many groups"
    ),
    pytest.param(
        "bn -i x.npy --axes " + "9" * 5000, USAGE, "axis 999999999999999999 is out", id="axis of 5000 digits"
    ),
    pytest.param("bn --shape 2 --low " + "9" * 400, USAGE, "not a finite number", id="low of 400 digits"),
    pytest.param(
        "bn --shape 2 --dist arange --low 99999999999999999999", USAGE, "64 bits", id="arange too high"
    ),
    pytest.param("bn --shape 2 --dist uniform --low=-1e308 --high 1e308", USAGE, "not a finite", id="too wide"),
    pytest.param("bn --shape 2 --skip 999999999999999999999999", USAGE, "skip passes over", id="endless skip"),
    pytest.param("generate", USAGE, "generate needs --shape", id="generate nothing"),
    pytest.param("generate --shape 2 -o x.exe", USAGE, "the suffix .exe", id="generate to unknown suffix"),
    pytest.param("layernrm -i x.npy", USAGE, "did you mean layernorm", id="unknown command"),
    pytest.param("qqq", USAGE, "the norms are bn, ln", id="nothing like it"),
    pytest.param("--foo", USAGE, "--foo", id="unknown option"),
]


@pytest.mark.all_quick
@pytest.mark.parametrize(("line", "code", "message"), CASES)
def test_bad_input(line, code, message, normcli, folder):
    before = {name: (folder / name).read_bytes() for name in os.listdir(folder) if name != "folder"}
    ran = normcli(*line.split())
    assert (ran.code, ran.raw) == (code, b""), ran.err
    assert len(ran.err.splitlines()) == 1
    assert ran.err.startswith("normcli: ")
    assert message in ran.err
    assert {name: (folder / name).read_bytes() for name in os.listdir(folder) if name != "folder"} == before


@pytest.mark.parametrize(
    "line",
    [
        "bn -i x.npy -o folder/y.npy",
        "bn -i x.npy --state folder/s.npz",
        "golden bn -o folder/g",
        "apply s.npz x.npy -o folder/new/",
        "merge s.npz t.npz -o folder/m.npz",
    ],
)
def test_a_place_that_may_not_be_written_to_is_exit_code_3(line, normcli, folder, monkeypatch):
    for name in ("s", "t"):
        assert normcli(*f"fit minmax x.npy -o {name}.npz".split()).code == 0
    monkeypatch.setattr("os.access", lambda path, mode: mode != os.W_OK)  # root may write anywhere
    ran = normcli(*line.split())
    assert (ran.code, ran.out, ran.err.count("\n")) == (DATA, "", 1)
    assert "no permission to write there" in ran.err


def test_a_folder_that_cannot_be_made_is_exit_code_3(normcli, folder, monkeypatch):
    assert normcli("fit", "minmax", "x.npy", "-o", "s.npz").code == 0
    monkeypatch.setattr("pathlib.Path.mkdir", mock.Mock(side_effect=OSError(errno.EROFS, "Read-only")))
    ran = normcli("apply", "s.npz", "x.npy", "-o", "new/")
    assert (ran.code, ran.err) == (DATA, "normcli: --output new/: the folder cannot be made: Read-only\n")


@pytest.mark.parametrize("verb", ["zscore", "fit zscore", "ln", "explain bn", "identify --actual x.npy"])
@pytest.mark.parametrize("suffix", [".npy", ".json", ".jsonl", ".npz"])
def test_a_tensor_has_32_axes_at_most(verb, suffix, tmp_path, normcli, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for axes, codes in ((33, (3,)), (32, (0, 1))):
        x = np.arange(8.0).reshape((2, 2, 2) + (1,) * (axes - 3))
        np.save("x.npy", x)
        np.savez("x.npz", x)
        for path, items in (("x.json", [x]), ("x.jsonl", x)):
            with open(path, "w") as stream:
                stream.writelines(f"{json.dumps(item.tolist())}\n" for item in items)
        ran = normcli(*verb.split(), "-i", f"x{suffix}", "-f", "json")
        assert ran.code in codes
        assert (ran.code == 3) == (ran.out == "")
        assert ran.code != 3 or ran.err.count("\n") == 1


@pytest.mark.parametrize("axes", [33, 64])
def test_an_array_in_memory_has_32_axes_at_most_too(axes):
    with pytest.raises(DataError, match=f"the tensor has {axes} axes; at most 32 are taken"):
        normalize(np.zeros((1,) * axes), "ln")
