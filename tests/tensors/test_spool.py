from __future__ import annotations

import io
import os
import tempfile

import numpy as np
import pytest

from normcli.errors import DataError
from normcli.tensors.files import _load_stream
from normcli.tensors.mapped import Mapped, Region
from normcli.tensors.spool import spool
from normcli.tensors.tables.table_options import AS_FOUND


@pytest.fixture
def small_limit(monkeypatch):
    monkeypatch.setattr("normcli.tensors.mapped.SMALLEST_MAPPED", 1000)


@pytest.mark.usefixtures("small_limit")
@pytest.mark.parametrize(("size", "in_memory"), [(0, True), (1000, True), (1001, False), (3 << 20, False)])
def test_only_what_is_large_goes_to_a_file(size, in_memory, tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    data = np.random.default_rng(0).bytes(size)
    with spool(io.BytesIO(data), "x", len) as spooled:
        assert isinstance(spooled, io.BytesIO) == in_memory
        assert spooled.read() == data
        assert os.listdir(tmp_path) == []


@pytest.mark.usefixtures("small_limit")
def test_a_folder_without_room_is_named_with_the_remedy(monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", "/dev/full")
    with pytest.raises(DataError, match=r"x cannot be stored in /dev/full: .*; set TMPDIR to a folder"):
        spool(io.BytesIO(bytes(2000)), "x", len)


@pytest.mark.usefixtures("small_limit")
def test_what_is_of_no_format_is_not_stored_to_its_end():
    endless = io.BufferedReader(_Endless())
    with pytest.raises(DataError, match=r"x is none of \.npy, .*, by its first bytes"):
        _load_stream(endless, "x", None, AS_FOUND)


class _Endless(io.RawIOBase):
    """A stream of zeros, of which a test reads 1 MB at most."""

    read_bytes = 0

    def readable(self):
        return True

    def readinto(self, buffer):
        self.read_bytes += len(buffer)
        assert self.read_bytes < 1 << 20
        return len(buffer)


def test_a_mapped_array_is_found_when_its_file_has_no_name_any_more(tmp_path):
    path = tmp_path / "x"
    path.write_bytes(bytes(range(16)))
    with path.open("rb") as stream:
        mapped = Region(np.dtype("u1"), (3, 4), 4).map(stream)
    path.unlink()
    assert mapped.tolist() == np.arange(4, 16).reshape(3, 4).tolist()
    assert os.pread(mapped.descriptor, 2, 4) == b"\4\5"
    for other in (mapped[1:], mapped.T, mapped.copy(), mapped + 1):
        assert not isinstance(other, Mapped) or other.descriptor is None
