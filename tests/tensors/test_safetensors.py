from __future__ import annotations

import io
import json
import os
import sys

import numpy as np
import pytest
from safetensors.numpy import load_file, save_file

from normcli import normalize
from normcli.errors import DataError, MissingExtraError
from normcli.tensors.files import load
from normcli.tensors.formats.file_formats import Saved
from normcli.tensors.formats.safetensors import read_safetensors, starts_like_safetensors
from normcli.tensors.mapped import Mapped
from tests.marks import sampled
from tests.tensors.test_files import save

DTYPES = ["?", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "f2", "f4", "f8"]
X = np.random.default_rng(0).normal(size=(3, 4))


def build(header: object, data: bytes = b"") -> bytes:
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    return len(text).to_bytes(8, "little") + text + data


@pytest.fixture(params=[False, True], ids=["in memory", "mapped"])
def mapped(request, monkeypatch):
    """Read files as small ones, and as large ones."""
    if request.param:
        monkeypatch.setattr("normcli.tensors.mapped.SMALLEST_MAPPED", 1)
    return request.param


@sampled
@pytest.mark.parametrize("dtype", DTYPES)
def test_every_dtype_that_the_library_writes_is_read(dtype, mapped, tmp_path):
    array = np.array([[0, 1, 1], [1, 0, 100]]).astype(dtype)
    path = str(tmp_path / "x.safetensors")
    save_file({"first": np.ones(3, "u1"), "x": array, "y": X}, path)
    read = load(f"{path}:x")
    assert (isinstance(read.values, Mapped), read.source) == (mapped, f"{path}:x")
    np.testing.assert_array_equal(read.values, array, strict=True)


@sampled
@pytest.mark.parametrize("shape", [(), (0,), (0, 3), (2, 3, 4)])
@pytest.mark.parametrize("dtype", DTYPES)
def test_the_library_reads_what_is_written(shape, dtype, tmp_path):
    array = np.asfortranarray(np.random.default_rng(0).normal(size=shape) * 10).astype(dtype)
    path = str(tmp_path / "x.safetensors")
    save(path, Saved(array, "a:b.c"))
    ((name, read),) = load_file(path).items()
    assert name == "a:b.c"
    np.testing.assert_array_equal(read, array, strict=True)


ONE = {"dtype": "F64", "shape": [2], "data_offsets": [0, 16]}
BYTE = {"dtype": "U8", "shape": [1], "data_offsets": [0, 1]}
TWICE = '{"x": {"dtype": "F64", "shape": [1], "data_offsets": [0, 8]}, "x": ' + json.dumps(ONE) + "}"


@pytest.mark.all_quick
@pytest.mark.parametrize(
    ("data", "message"),
    [
        pytest.param(b"random bytes", "no readable .safetensors", id="random bytes"),
        pytest.param(build({"x": ONE}, bytes(15)), "damaged or cut short", id="cut short"),
        pytest.param(build({"x": ONE}, bytes(17)), "damaged or cut short", id="too long"),
        pytest.param(build({"x": ONE | {"shape": [3]}}, bytes(16)), "damaged", id="another shape"),
        pytest.param(build({"x": ONE | {"data_offsets": [8, 24]}}, bytes(24)), "damaged", id="a hole"),
        pytest.param(build({"x": ONE | {"data_offsets": [-8, 8]}}, bytes(16)), "damaged", id="a negative offset"),
        pytest.param(build(b"{" * 1000), "damaged", id="no JSON"),
        pytest.param(build({"x": "ab"}), "damaged", id="a text for a tensor"),
        pytest.param(build([1]), "damaged", id="a list"),
        pytest.param(build({"x": {"dtype": "F64", "shape": [2]}}, bytes(16)), "damaged", id="no offsets"),
        pytest.param(build({"x": ONE | {"shape": [2**70]}}, bytes(16)), "damaged", id="a length beyond 64 bits"),
        pytest.param(build(TWICE.encode(), bytes(16)), "its header has the name 'x' twice", id="a name twice"),
        pytest.param((10**8 + 1).to_bytes(8, "little") + b"{}", "damaged", id="a header too long"),
        pytest.param(build({"x": BYTE | {"shape": [1] * 70}}, bytes(1)), "x.safetensors:x has 70 axes", id="axes"),
        pytest.param(build({}), "holds no arrays", id="no tensors"),
        pytest.param(build({"__metadata__": {"a": "b"}}), "holds no arrays", id="metadata alone"),
        pytest.param(build({"x": BYTE | {"dtype": "F8_E8M0"}}, bytes(1)), ":x holds F8_E8M0; F64, F32, F16,", id="dtype"),
    ],
)  # fmt: skip
def test_what_cannot_be_read(data, message, mapped, tmp_path):
    (tmp_path / "x.safetensors").write_bytes(data)
    with pytest.raises(DataError, match=message):
        load(str(tmp_path / "x.safetensors"))
    with pytest.raises(DataError, match=message):
        read_safetensors(io.BytesIO(data), "x.safetensors", None)


def test_first_bytes_tell_it(normcli, tmp_path):
    save_file({"x": X}, tmp_path / "x.safetensors")
    data = (tmp_path / "x.safetensors").read_bytes()
    assert starts_like_safetensors(data)
    assert not starts_like_safetensors(b"1,2,3,4,{}")
    assert normcli("ln", "-i", "-", "--print", "shape", stdin=data).lines == ["3", "4"]


@pytest.mark.parametrize("source", ["x.safetensors:w", "x.npy"])
@pytest.mark.parametrize("target", ["y.safetensors", "y.npy"])
def test_large_ones_are_worked_on_where_they_lie(source, target, normcli, tmp_path, monkeypatch):
    monkeypatch.setattr("normcli.tensors.mapped.SMALLEST_MAPPED", 1)
    monkeypatch.chdir(tmp_path)
    x = np.random.default_rng(1).normal(size=(20, 300)).astype("f4")
    np.save("x.npy", x)
    save_file({"odd": np.ones(3, "u1"), "w": x}, "x.safetensors")
    assert normcli("bn", "-i", source, "-o", target).code == 0
    y = load_file(target)["normalized"] if target.endswith("s") else np.load(target)
    assert y.tobytes() == normalize(x, "bn").normalized.tobytes()
    assert sorted(os.listdir()) == sorted(["x.npy", "x.safetensors", target])


def test_without_the_extra_one_line_says_how_to_get_it(tmp_path, monkeypatch):
    save_file({"x": X}, tmp_path / "x.safetensors")
    monkeypatch.setitem(sys.modules, "safetensors", None)
    with pytest.raises(MissingExtraError, match=r"needs the extra: pip install 'normcli\[safetensors\]'$"):
        load(str(tmp_path / "x.safetensors"))
