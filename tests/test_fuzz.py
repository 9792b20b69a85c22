"""Damaged files, 50 a format and in `.ci/run` 1,000: exit codes as documented, one line on stderr, little time and memory."""

from __future__ import annotations

import random

import pytest

from tests.fuzz.mutations import mutate
from tests.fuzz.runner import Fuzzer, judge
from tests.fuzz.samples import FORMATS
from tests.marks import costly

_LIBRARIES = dict.fromkeys(("zarr", "zarr2", "chunk"), "zarr")
_LIBRARIES |= {"parquet": "pyarrow", "hdf5": "h5py", "onnx": "onnxruntime"}

CASES = [
    pytest.param(range(20), id="20 cases"),
    pytest.param(range(20, 50), id="30 cases", marks=pytest.mark.slow),
]


@costly
@pytest.mark.parametrize("numbers", CASES)
@pytest.mark.parametrize("name", FORMATS)
@pytest.mark.slow
def test_damaged_files_end_as_documented(name, numbers, tmp_path):
    pytest.importorskip(_LIBRARIES.get(name, "numpy"))
    assert list(Fuzzer(name, tmp_path).try_cases(numbers)) == []


@pytest.mark.slow
def test_a_case_is_the_same_whatever_was_run_before_it():
    data = b'{"schema": "s", "recipe": {"shape": [3, 4], "eps": 0.5}, "files": {"x": {"dtype": "f"}}}'

    def damage(numbers):
        return [mutate(data, data, random.Random(number)) for number in numbers]

    assert damage(range(1000)) == damage(range(1000))


@pytest.mark.parametrize(
    ("ended", "problem"),
    [
        pytest.param((3, b"", "normcli: x.npy is empty\n"), None, id="bad data"),
        pytest.param((3, b"", "normcli: this does not fit into memory\n"), "ran out of memory", id="memory"),
        pytest.param((70, b"", "normcli: a fault of normcli's own\n"), "left with 70", id="a fault"),
        pytest.param((0, b"", "RuntimeWarning: overflow\n"), "wrote to standard error", id="a warning"),
        pytest.param((3, b"1", "normcli: x.npy is empty\n"), "wrote to standard output", id="half an answer"),
        pytest.param((3, b"", "normcli: a\nnormcli: b\n"), "2 lines on standard error", id="two messages"),
    ],
)
def test_what_is_wrong_with_how_a_command_ended(ended, problem):
    found = judge(*ended)
    assert found is None if problem is None else problem in found
