"""bfloat16 in and out: NumPy knows of it by an extra alone."""

from __future__ import annotations

import re
import sys

import ml_dtypes
import numpy as np
import pytest
from safetensors.numpy import load_file, save_file

from normcli import normalize
from normcli.errors import DataError, UsageError
from tests.engine.test_engine import bits

BFLOAT16 = np.dtype(ml_dtypes.bfloat16)
X = np.random.default_rng(0).normal(size=(6, 5, 8)).astype(BFLOAT16)


@pytest.fixture
def file(tmp_path):
    save_file({"x": X}, tmp_path / "x.safetensors")
    return tmp_path / "x.safetensors"


@pytest.mark.parametrize("norm", ["bn", "ln", "in", "rms", "lp", "zscore", "lrn"])
def test_it_is_the_dtype_of_the_output_and_counts_as_the_floats_it_holds(norm):
    result, wide = normalize(X, norm), normalize(X.astype(np.float64), norm, dtype="bfloat16")
    assert result.dtype == result.normalized.dtype == wide.dtype == BFLOAT16
    assert bits(result.normalized) == bits(wide.normalized)
    for name, values in result.statistics.items():
        np.testing.assert_allclose(values, wide.statistics[name], rtol=1e-13, atol=1e-16)
    assert all(check.ok for check in result.check)


def test_a_result_is_rounded_once():
    x = np.array([[4.0, 1.0 + 2.0**-8 + 2.0**-30]])
    y = normalize(x, "lp", p=np.inf, dtype="bfloat16").normalized
    assert y.tolist() == [[1.0, 0.25 + 2.0**-9]]


@pytest.mark.parametrize("show", ["-fjson", "-fcsv", "-ftable", "--print=normalized"])
def test_signalling_nans_are_quiet(show, normcli, tmp_path):
    x = X.copy()
    x[0, 0, 0] = np.array(0x7F81, np.uint16).view(BFLOAT16)
    save_file({"x": x}, tmp_path / "x.safetensors")
    ran = normcli("ln", "-i", tmp_path / "x.safetensors", show)
    assert ran.code == 0
    assert ran.err.count("\n") == 1
    assert "holds NaN" in ran.err


@pytest.mark.parametrize("mapped", [False, True])
def test_from_file_to_file(mapped, file, normcli, tmp_path, monkeypatch):
    if mapped:
        monkeypatch.setattr("normcli.tensors.mapped.SMALLEST_MAPPED", 1)
    assert normcli("bn", "-i", file, "-o", tmp_path / "y.safetensors").code == 0
    y = load_file(tmp_path / "y.safetensors")["normalized"]
    assert y.dtype == BFLOAT16
    assert bits(y) == bits(normalize(X, "bn").normalized)


@pytest.mark.parametrize("target", [["y.npy"], ["y.npz"], ["-", "-f", "npy"]], ids=lambda t: t[0])
@pytest.mark.parametrize("command", [["ln", "-i", "FILE"], ["ln", "--data", "[[1,2]]", "--dtype", "bfloat16"],
                                     ["generate", "--shape", "2,3", "--dtype", "bfloat16"]], ids=lambda c: c[0])  # fmt: skip
def test_numpys_formats_cannot_hold_it(target, command, file, normcli, here):
    ran = normcli(*[file if word == "FILE" else word for word in command], "-o", *target)
    assert (ran.code, ran.raw, ran.err.count("\n")) == (2, b"", 1)
    assert f"--output {target[0]}" in ran.err
    assert re.search(r"NumPy's formats have no bfloat16; .json, .jsonl, .*\.safetensors hold it", ran.err)
    assert [path.name for path in here.iterdir()] == ["x.safetensors"]


@pytest.mark.parametrize(
    "arguments",
    [["ln", "--data", "[[1,2]]", "--dtype", "bfloat16"], ["generate", "--shape", "2,3", "--dtype", "bfloat16"], ["ln", "-i", "FILE"]],
    ids=["normalize", "generate", "read"],
)  # fmt: skip
def test_without_the_extra_one_line_says_how_to_get_it(arguments, file, normcli, monkeypatch):
    monkeypatch.setitem(sys.modules, "ml_dtypes", None)
    ran = normcli(*[file if word == "FILE" else word for word in arguments])
    assert (ran.code, ran.raw) == (3, b"")
    assert ran.err == "normcli: bfloat16 needs the extra: pip install 'normcli[safetensors]'\n"


def test_structures_of_two_bytes_are_not_taken_for_it():
    with pytest.raises(DataError, match="holds"):
        normalize(np.zeros(3, "V2"), "ln")
    with pytest.raises(UsageError, match="none of float16, bfloat16, float32, float64"):
        normalize([[1.0, 2.0]], "ln", dtype="V2")
