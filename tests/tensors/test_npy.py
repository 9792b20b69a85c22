from __future__ import annotations

import io
import os
import struct

import numpy as np
import pytest

from normcli.errors import DataError
from normcli.tensors.formats.npy import read_npy, write_npy
from normcli.tensors.mapped import Region
from tests.marks import sampled
from tests.tensors.test_safetensors import DTYPES


def saved(array, version=None) -> io.BytesIO:
    stream = io.BytesIO()
    np.lib.format.write_array(stream, np.asarray(array), version=version)
    stream.seek(0)
    return stream


@pytest.mark.all_quick
@pytest.mark.parametrize("dtype", [*DTYPES, ">i4", ">f2", ">f4", ">f8", "g"])
def test_every_real_dtype_is_read(dtype):
    array = np.array([[0, 1, 1], [1, 0, 100]]).astype(dtype)
    np.testing.assert_array_equal(read_npy(saved(array), "x.npy"), array, strict=True)


@sampled
@pytest.mark.parametrize("version", [(1, 0), (2, 0), (3, 0)])
@pytest.mark.parametrize("shape", [(), (0,), (0, 3), (3, 0), (1,), (2, 3, 4)])
@pytest.mark.parametrize("order", ["C", "F"])
def test_every_version_shape_and_order_is_read(version, shape, order):
    array = np.asarray(np.random.default_rng(0).normal(size=shape), order=order)
    np.testing.assert_array_equal(read_npy(saved(array, version), "x.npy"), array, strict=True)


@pytest.mark.parametrize("shape", [(), (0, 3), (2, 3, 4)])
def test_what_is_written_is_read_by_numpy(shape):
    array = np.asfortranarray(np.random.default_rng(0).normal(size=shape).astype("f4"))
    stream = io.BytesIO()
    write_npy(stream, array)
    stream.seek(0)
    np.testing.assert_array_equal(np.load(stream), array)


@pytest.mark.parametrize(
    ("array", "message"),
    [
        pytest.param(["a"], "<U1", id="text"),
        pytest.param(np.zeros(1, "i4,i4"), "f0", id="a structure"),
        pytest.param(np.zeros(1, "M8[D]"), "datetime64", id="dates"),
    ],
)
def test_other_dtypes_are_refused(array, message):
    with pytest.raises(DataError, match=f"x.npy holds .*{message}"):
        read_npy(saved(array), "x.npy")


def test_pickled_objects_are_refused_and_never_loaded(tmp_path):
    class Bomb:
        def __reduce__(self):
            return (open, (str(tmp_path / "exploded"), "w"))

    stream = io.BytesIO()
    np.lib.format.write_array(stream, np.array([Bomb()], dtype=object), allow_pickle=True)
    stream.seek(0)
    with pytest.raises(DataError, match="holds Python objects"):
        read_npy(stream, "x.npy")
    assert not (tmp_path / "exploded").exists()


def test_a_file_cut_short_is_refused():
    data = saved(np.ones(100)).getvalue()
    told = r"cut short: its header says \(100,\) float64, 800 bytes; 500 are there"
    with pytest.raises(DataError, match=told):
        read_npy(io.BytesIO(data[:-300]), "x.npy")


@pytest.mark.parametrize("mapped", [False, True])
def test_a_file_longer_than_its_header_says_is_refused(mapped, tmp_path, monkeypatch):
    if mapped:
        monkeypatch.setattr("normcli.tensors.mapped.SMALLEST_MAPPED", 1)
    path = tmp_path / "x.npy"
    path.write_bytes(saved(np.ones(100)).getvalue() + bytes(3))
    with (
        path.open("rb") as stream,
        pytest.raises(DataError, match=r"damaged: its header says \(100,\) float64, 800 bytes; 803 are there"),
    ):
        read_npy(stream, "x.npy")


def head(shape):
    """Return the header of a file of doubles that claims to be of a shape."""
    text = f"{{'descr': '<f8', 'fortran_order': False, 'shape': {shape}, }}".encode().ljust(384)
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(text)) + text


def test_a_header_that_claims_terabytes_allocates_nothing():
    with pytest.raises(DataError, match="cut short"):
        read_npy(io.BytesIO(head((1000000, 1000000)) + b"\0" * 64), "x.npy")


@pytest.mark.all_quick
@pytest.mark.parametrize(
    "data",
    [
        pytest.param(b"", id="empty"),
        pytest.param(b"\x93NUM", id="cut in the magic"),
        pytest.param(b"\x93NUMPY\x01\x00\x40\x00{'descr'", id="cut in the header"),
        pytest.param(b"\x93NUMPY\x09\x00" + b" " * 100, id="unknown version"),
        pytest.param(b"\x93NUMPY\x01\x00\x10\x00" + b"[" * 16, id="no dictionary"),
        pytest.param(bytes(range(256)), id="random bytes"),
        pytest.param(head((-3,)), id="a negative length"),
        pytest.param(head((10**30, 0)), id="a length of 30 digits"),
        pytest.param(head((True, 2)), id="a truth value"),
        pytest.param(head((2.5,)), id="half a length"),
    ],
)
def test_a_damaged_header_is_refused(data):
    with pytest.raises(DataError, match="x.npy is no readable .npy file"):
        read_npy(io.BytesIO(data), "x.npy")


def test_a_shape_that_numpy_cannot_index_is_refused():
    with pytest.raises(DataError, match="which NumPy cannot hold"):
        read_npy(io.BytesIO(head((2**62, 0, 16))), "x.npy")


def test_a_header_that_python_2_wrote_is_read_without_a_warning():
    data = saved(np.arange(3)).getvalue().replace(b"(3,)", b"(3L,)").replace(b" \n", b"\n", 1)
    np.testing.assert_array_equal(read_npy(io.BytesIO(data), "x.npy"), np.arange(3))


class Stream(io.BytesIO):
    """A file that ends after so many bytes, and yet says that it is longer; of a read it gives 10,000 at most."""

    end = 1 << 20

    def read(self, size=-1):
        assert 0 <= size <= 10_000
        return super().read(size)

    def readinto(self, buffer):
        return super().readinto(memoryview(buffer)[: max(0, self.end - self.tell())])


def test_a_header_that_claims_to_be_long_is_not_read():
    data = b"\x93NUMPY\x02\x00" + struct.pack("<I", 2**31) + b" " * 100
    with pytest.raises(DataError, match="header is damaged"):
        read_npy(Stream(data), "x.npy")


def test_a_stream_that_ends_early_is_cut_short():
    stream = Stream(saved(np.ones(100)).getvalue())
    stream.end = 528
    with pytest.raises(DataError, match=r"cut short: its header says .* 800 bytes; 400 are there"):
        read_npy(stream, "x.npy")


def test_a_file_that_becomes_short_before_it_is_mapped(tmp_path, monkeypatch):
    monkeypatch.setattr("normcli.tensors.mapped.SMALLEST_MAPPED", 1)
    np.save(tmp_path / "x.npy", np.ones(10_000))

    def shrink(region, stream):
        os.truncate(tmp_path / "x.npy", 5000)
        return plain(region, stream)

    plain = Region.map
    monkeypatch.setattr(Region, "map", shrink)
    with (tmp_path / "x.npy").open("rb") as stream, pytest.raises(DataError, match="was cut short while"):
        read_npy(stream, "x.npy")


@pytest.mark.parametrize("name", ["float8_e4m3fn", "bfloat16"])
def test_dtypes_that_numpy_saves_without_their_name_are_explained(name):
    array = np.ones((2, 4), getattr(pytest.importorskip("ml_dtypes"), name))
    with pytest.raises(DataError, match="as NumPy saves float8 and bfloat16 of ml_dtypes; save .safetensors"):
        read_npy(saved(array), "c.npy")
