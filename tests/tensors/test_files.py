from __future__ import annotations

import os
import pickle
import re
import threading

import numpy as np
import pytest

from normcli.dtypes import find_type
from normcli.errors import DataError, UsageError
from normcli.tensors.files import load
from normcli.tensors.formats.file_formats import FORMATS, Saved, find_format, require_holdable
from normcli.tensors.written_whole import require_writable
from tests.marks import sampled

X = np.random.default_rng(0).normal(size=(3, 4))


def save(path, saved):
    with open(path, "wb") as stream:
        find_format(path, "output").write(stream, saved)


@pytest.fixture
def _library(suffix):
    """Skip what needs a library that is not here."""
    if suffix == ".parquet":
        pytest.importorskip("pyarrow.parquet")


SHAPES = [(), (1,), (3,), (1, 1), (3, 1), (2, 3), (0,), (0, 3), (3, 0), (2, 3, 4), (2, 0, 3), (2, 1, 3, 2)]

DTYPES = ["float64", "float32", "float16", "bfloat16", "int64", "uint64", "int8", "bool"]


@sampled
@pytest.mark.usefixtures("_library")
@pytest.mark.parametrize("suffix", FORMATS)
@pytest.mark.parametrize("dtype", DTYPES)
def test_what_is_written_is_read_back_or_refused(dtype, suffix, tmp_path):
    exact = object if np.dtype(find_type(dtype)).kind in "iu" else np.float64
    for number, shape in enumerate(SHAPES):
        values = _fill(shape, find_type(dtype))
        path = str(tmp_path / f"{number}{suffix}")
        if FORMATS[suffix].refuses(shape, values.dtype) is not None:
            with pytest.raises(UsageError, match=r"\.safetensors hold it"):
                require_holdable(suffix, f"--output {path}", shape, values.dtype)
        else:
            save(path, Saved(values, "x"))
            read = load(path).values
            assert read.shape == shape
            np.testing.assert_array_equal(read.astype(exact), values.astype(exact), str(shape))


def _fill(shape, dtype):
    """Return a tensor with the values of a dtype that are hardest to write."""
    if np.dtype(dtype).kind in "iu":
        limits = np.iinfo(dtype)
        hard = [limits.max, limits.min, limits.max - 2, 0, 1]
    elif np.dtype(dtype) == np.bool_:
        hard = [True, False]
    else:
        hard = [np.nan, 0.1, -0.0, np.inf, -np.inf, 1e-7, 60000.0, 1 / 3]
    return np.resize(np.array(hard, dtype=dtype), shape)


@pytest.mark.parametrize("suffix", [".csv", ".tsv", ".json", ".jsonl"])
def test_names_of_columns_are_written_and_read_back(suffix, tmp_path):
    path = str(tmp_path / f"x{suffix}")
    save(path, Saved(np.array([[1.5, 2.0], [np.nan, 4.0]]), "x", columns=("a, b", 'say "c"')))
    read = load(path)
    assert read.columns == ("a, b", 'say "c"')
    np.testing.assert_array_equal(read.values, [[1.5, 2.0], [np.nan, 4.0]])


def test_a_colon_in_a_files_name_is_no_key(tmp_path):
    path = tmp_path / "a:b.npy"
    np.save(path, X)
    np.testing.assert_array_equal(load(str(path)).values, X)


def test_a_pipe_is_told_apart_by_its_first_bytes(tmp_path):
    path = tmp_path / "pipe"
    os.mkfifo(path)
    writer = threading.Thread(target=lambda: path.write_text("[[1, 2]]"))
    writer.start()
    np.testing.assert_array_equal(load(str(path)).values, [[1, 2]])
    writer.join()


@pytest.mark.all_quick
@pytest.mark.parametrize(
    ("name", "content", "error", "message"),
    [
        pytest.param("x.npy", None, DataError, "there is no such file", id="missing"),
        pytest.param("x.npy", b"", DataError, "is empty", id="empty"),
        pytest.param("x.txt", b"1", UsageError, "has the suffix .txt; .npy, .npz, .json, .jsonl, .csv, .tsv, .s", id="suffix"),
        pytest.param("x", b"1", UsageError, "has no suffix", id="no suffix"),
        pytest.param("x.npy", b"random bytes", DataError, "no readable .npy", id="random npy"),
        pytest.param("x.npz", b"random bytes", DataError, "no readable .npz", id="random npz"),
        pytest.param("x.json", b"random bytes", DataError, "not valid JSON", id="random json"),
        pytest.param("x.csv", bytes(range(256)), DataError, "x.csv", id="random csv"),
        pytest.param("x.csv:key", None, DataError, "no such file", id="no such file, with a colon"),
        pytest.param("", None, DataError, "this is a folder", id="a folder"),
        pytest.param("a" * 300 + ".npy", None, DataError, "a+", id="too long a name"),
        pytest.param("a\0b.npy", None, DataError, "a+", id="an impossible name"),
    ],
)  # fmt: skip
def test_what_cannot_be_loaded(tmp_path, name, content, error, message):
    if content is not None:
        (tmp_path / name).write_bytes(content)
    with pytest.raises(error, match=message):
        load(str(tmp_path / name))


@pytest.mark.parametrize(
    ("path", "message"),
    [
        pytest.param("missing/x.npy", "there is no folder", id="folder"),
        pytest.param("x.exe", "the suffix .exe", id="suffix"),
        pytest.param("folder.npy", "this is a folder", id="a folder"),
    ],
)
def test_what_cannot_be_saved(tmp_path, path, message):
    (tmp_path / "folder.npy").mkdir()
    with pytest.raises(UsageError, match=message):
        find_format(str(tmp_path / path), "--output")
        require_writable(str(tmp_path / path), "--output")


@pytest.mark.parametrize("suffix", [".pkl", ".pt", ".pth"])
def test_a_pickle_is_refused_with_what_turns_it_into_safetensors(suffix, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / f"x{suffix}").write_bytes(pickle.dumps(np.arange(3.0)))
    with pytest.raises(UsageError, match="x.* is a pickle") as caught:
        load(f"x{suffix}")
    function = "pickle.loads" if suffix == ".pkl" else "torch.load"
    assert str(caught.value).endswith(f"a part of it, choose that: x = {function}(…)['state_dict']")
    command = re.search('python -c "(.*)"', str(caught.value))[1]
    if suffix != ".pkl":
        assert "torch.load('x" in command
        return
    exec(command, {})
    assert load("x.safetensors").values.tolist() == [0.0, 1.0, 2.0]


def test_a_packed_file_is_refused_with_what_unpacks_it():
    with pytest.raises(
        UsageError, match=r"x y\.csv\.gz is packed; .*: gzip -dc 'x y\.csv\.gz' \| normcli … -$"
    ):
        find_format("x y.csv.gz", "input")
