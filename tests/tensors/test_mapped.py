"""Parts of large files, read by position: the same values as of the map, whatever their strides."""

from __future__ import annotations

import numpy as np
import pytest

from normcli.cli import sources
from normcli.errors import DataError
from normcli.tensors.files import load

PARTS = [
    pytest.param(lambda x: x, id="all"),
    pytest.param(lambda x: x[2:5], id="rows"),
    pytest.param(lambda x: x[:, 1:3], id="columns"),
    pytest.param(lambda x: x[1, :, 2:4], id="a box"),
    pytest.param(lambda x: x[::2, ::-1, 1::3], id="steps"),
    pytest.param(lambda x: x.transpose(2, 0, 1)[1:], id="other axes"),
    pytest.param(lambda x: x[:, 2:3], id="an axis of one"),
    pytest.param(lambda x: x[3, 2, 1:2], id="one value"),
    pytest.param(lambda x: x[3, 2, 1, ...], id="no axis"),
    pytest.param(lambda x: x[:0], id="nothing"),
]


@pytest.fixture(params=["C", "F"])
def mapped(request, tmp_path, monkeypatch):
    monkeypatch.setattr("normcli.tensors.mapped.SMALLEST_MAPPED", 1)
    x = np.arange(7 * 5 * 6 * 40.0).reshape(7, 5, -1)
    np.save(tmp_path / "x.npy", np.asarray(x, order=request.param))
    return load(str(tmp_path / "x.npy")).values


@pytest.mark.parametrize("take", PARTS)
def test_a_part_is_read_as_it_lies_in_the_file(take, mapped):
    part = take(mapped)
    copy = mapped.read(part)
    assert (copy.shape, copy.dtype) == (part.shape, part.dtype)
    assert not np.may_share_memory(copy, mapped)
    np.testing.assert_array_equal(copy, part)


def test_only_the_map_itself_is_whole(mapped):
    assert mapped.is_whole
    assert not any(part.is_whole for part in (mapped[1:], mapped.T, mapped.copy()))


def test_a_view_knows_its_file_and_a_copy_does_not(mapped):
    assert mapped[1:].T.opened == mapped.opened is not None
    assert mapped.copy().opened is None


@pytest.mark.parametrize("norm", ["ln", "bn"])
def test_a_file_that_shrinks_ends_in_one_line(norm, mapped, normcli, monkeypatch):
    def shrink(tensor, settings):
        with open(mapped.filename, "r+b") as stream:
            stream.truncate(5000)
        return tensor

    monkeypatch.setattr(sources, "_note_remarks", shrink)
    ran = normcli(norm, "-i", mapped.filename, "--print", "mean")
    assert (ran.code, ran.raw, len(ran.err.splitlines())) == (3, b"", 1)
    assert "x.npy was cut short while it was read" in ran.err


def test_a_part_that_is_no_longer_there_is_an_error(mapped):
    with open(mapped.filename, "r+b") as stream:
        stream.truncate(5000)
    with pytest.raises(DataError, match="cut short"):
        mapped.read(mapped[6:])
