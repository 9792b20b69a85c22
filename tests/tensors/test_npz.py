from __future__ import annotations

import io

import numpy as np
import pytest

from normcli.errors import DataError, UsageError
from normcli.tensors.npz import read_npz, write_npz


def archive(compressed=False, **arrays) -> io.BytesIO:
    stream = io.BytesIO()
    (np.savez_compressed if compressed else np.savez)(stream, **arrays)
    stream.seek(0)
    return stream


@pytest.mark.parametrize("compressed", [False, True])
def test_an_array_is_picked_by_its_key(compressed):
    stream = archive(compressed, a=np.arange(3), b=np.ones((2, 2)))
    np.testing.assert_array_equal(read_npz(stream, "x.npz", "b"), np.ones((2, 2)))


def test_the_only_array_needs_no_key():
    np.testing.assert_array_equal(read_npz(archive(a=np.arange(3)), "x.npz", None), np.arange(3))


def test_several_arrays_need_a_key():
    with pytest.raises(UsageError, match="x.npz holds 2 arrays; say which: x.npz:a, x.npz:b"):
        read_npz(archive(a=np.arange(3), b=np.arange(4)), "x.npz", None)


def test_an_unknown_key_is_refused():
    with pytest.raises(UsageError, match="x.npz holds no array 'c'; it has x.npz:a"):
        read_npz(archive(a=np.arange(3)), "x.npz", "c")


def test_an_archive_without_arrays_is_refused():
    with pytest.raises(DataError, match="holds no arrays"):
        read_npz(archive(), "x.npz", None)


@pytest.mark.parametrize("compressed", [False, True])
def test_a_damaged_archive_is_refused(compressed):
    data = bytearray(archive(compressed, a=np.arange(1000)).getvalue())
    for spoiled in (
        data[:-40],
        data[:200],
        b"PK\x03\x04" + bytes(300),
        data[:300] + b"\xff" * 200 + data[500:],
    ):
        with pytest.raises(DataError, match=r"x\.npz"):
            read_npz(io.BytesIO(spoiled), "x.npz", None)


def test_what_is_written_is_read_by_numpy():
    stream = io.BytesIO()
    write_npz(stream, {"mean": np.arange(3.0), "var": np.ones((2, 2))})
    stream.seek(0)
    with np.load(stream) as loaded:
        assert set(loaded) == {"mean", "var"}
        np.testing.assert_array_equal(loaded["mean"], np.arange(3.0))
