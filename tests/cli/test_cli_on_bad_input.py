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
from tests.conftest import require_refusal

USAGE, DATA = 2, 3


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A folder of files that each test has links to."""
    made = tmp_path_factory.mktemp("bad")
    np.save(made / "x.npy", np.arange(24.0).reshape(2, 3, 4))
    np.savez(made / "two.npz", a=np.arange(3), b=np.arange(3))
    np.save(made / "gamma.npy", np.ones(5))
    whole = (made / "x.npy").read_bytes()
    files = {
        "cut.npy": whole[:-50], "deep.json": b"[" * 5000 + b"]" * 5000,
        "words.csv": b"a,b\n1,x\n", "x.txt": b"1,2\n",
    }  # fmt: skip
    for name, content in files.items():
        (made / name).write_bytes(content)
    (made / "folder").mkdir()
    return made


@pytest.fixture
def folder(made, here):
    return shutil.copytree(made, here, copy_function=os.link, dirs_exist_ok=True)


CASES = [
    ("bn -i cut.npy", DATA, "cut.npy is cut short"),
    ("zscore -i words.csv --columns b", DATA, "'x' is not a number; no chosen column holds"),
    ("bn -i deep.json", DATA, "deep.json is nested too deeply"),
    ("bn -i folder", DATA, "folder: this is a folder"),
    ("bn -i two.npz", USAGE, "two.npz holds 2 arrays; say which"),
    ("bn -i x.npy:a", USAGE, "a .npy file holds one array"),
    ("bn -i x.txt", USAGE, "input x.txt has the suffix .txt"),
    ("bn -i -", DATA, "standard input is empty"),
    ("bn --data [[1,2],[3]]", DATA, "--data is ragged"),
    ("bn", USAGE, "there is no tensor: give --input FILE"),
    ("ln -i x.npy -i y.npy", USAGE, "2 files are given (x.npy, y.npy); one tensor is taken"),
    ("bn -i x.npy --shape 2,3", USAGE, "--input and --shape each name a tensor"),
    ("bn -i x.npy --seed 3", USAGE, "--seed is of a generated tensor"),
    ("ln -i x.npy --axes Q", USAGE, "no axis 'Q' in the layout NCL"),
    ("ln -i x.npy --layout NC", USAGE, "names 2 axes; the tensor has 3"),
    ("bn -i x.npy --gamma gamma.npy", DATA, "gamma has the shape (5,)"),
    ("bn -i x.npy --gamma 1 --affine-seed 1", USAGE, "--affine-seed draws"),
    ("bn --shape 1000000,1000000", DATA, "GiB of memory"),
    ("bn --shape 2,3 --high x", USAGE, "'x' is not a number"),
    ("ln -i x.npy --at 1,2", USAGE, "'--at'; it is an option of explain, draw ("),
    ("fit ln --shape 3", USAGE, "an option of ln, explain, compare, draw, … ("),
    ("ln --lay NC", USAGE, "Did you mean one of: '--lang'"),
    ("fold sn gan.npz", USAGE, "(gan.npz); a file goes to --conv-weight, --conv-bias, --checkpoint ("),
    ("bn -i x.npy --show everything", USAGE, "none of input, stats"),
    ("bn -i x.npy --format xml", USAGE, "--format"),
    ("bn -i x.npy --print gamma", USAGE, "--print gamma: no gamma was given"),
    ("bn -i x.npy --print median", USAGE, "'median' is none of mean, var"),
    ("bn -i x.npy --print mean --format json", USAGE, "--print prints bare numbers"),
    ("bn -i x.npy -o - --print mean", USAGE, "-o - puts the tensor on standard output"),
    ("bn -i x.npy -o nowhere/y.npy", USAGE, "there is no folder nowhere"),
    ("bn -i x.npy -o y.exe", USAGE, "--output y.exe has the suffix .exe; .npy"),
    ("bn -i x.npy -o folder.npy/", USAGE, "folder"),
    ("bn -i x.npy --stats-output s.csv", USAGE, "--stats-output s.csv has the suffix .csv"),
    ("bn -i x.npy -o s.npz --stats-output ./s.npz", USAGE, "one would overwrite the other"),
    ("bn -i " + "a" * 300 + ".npy", DATA, "File name too long"),
    ("bn --shape " + "9" * 5000, USAGE, "not a list of lengths"),
    ("bn -i x.npy --axes " + "9" * 5000, USAGE, "axis 999999999999999999 is out"),
    ("bn --shape 2 --skip 999999999999999999999999", USAGE, "skip passes over"),
    ("generate", USAGE, "generate needs --shape"),
    ("layernrm -i x.npy", USAGE, "did you mean layernorm"),
    ("qqq", USAGE, "the norms are bn, ln"),
]


@pytest.mark.all_quick
@pytest.mark.parametrize(("line", "code", "message"), CASES, ids=range(len(CASES)))
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
    require_refusal(normcli(*line.split()), DATA, "no permission to write there")


def test_a_folder_that_cannot_be_made_is_exit_code_3(normcli, folder, monkeypatch):
    assert normcli("fit", "minmax", "x.npy", "-o", "s.npz").code == 0
    monkeypatch.setattr("pathlib.Path.mkdir", mock.Mock(side_effect=OSError(errno.EROFS, "Read-only")))
    ran = normcli("apply", "s.npz", "x.npy", "-o", "new/")
    assert (ran.code, ran.err) == (DATA, "normcli: --output new/: the folder cannot be made: Read-only\n")


@pytest.mark.parametrize("verb", ["zscore", "fit zscore", "ln", "explain bn", "identify --actual x.npy"])
@pytest.mark.parametrize("suffix", [".npy", ".json", ".jsonl", ".npz"])
def test_a_tensor_has_32_axes_at_most(verb, suffix, here, normcli):
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
