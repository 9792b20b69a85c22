"""Parts of large files, read by position: the same values as of the map, whatever their strides."""

from __future__ import annotations

import os

import numpy as np
import pytest

from normcli.cli.files import sources
from normcli.tensors.files import load

PARTS = [
    pytest.param(lambda x: x, id="all"),
    pytest.param(lambda x: x[2:5], id="rows"),
    pytest.param(lambda x: x[:, 1:3], id="columns"),
    pytest.param(lambda x: x[1, :, 2:4], id="a box"),
    pytest.param(lambda x: x[::2, ::-1, 1::3], id="steps"),
    pytest.param(lambda x: x.transpose(2, 0, 1)[1:], id="other axes"),
    pytest.param(lambda x: x[3, 2, 1:2], id="one value"),
    pytest.param(lambda x: x[3, 2, 1, ...], id="no axis"),
    pytest.param(lambda x: x[:0], id="nothing"),
    pytest.param(lambda x: x[2, :, 5], id="a column, read with what is between"),
    pytest.param(lambda x: np.broadcast_to(x[:, :1], (3, 7, 5, 240), subok=True), id="repeated"),
]


@pytest.fixture(params=["C", "F"])
def mapped(request, tmp_path, monkeypatch):
    monkeypatch.setattr("normcli.tensors.mapped.SMALLEST_MAPPED", 1)
    x = np.arange(7 * 5 * 6 * 40.0).reshape(7, 5, -1)
    np.save(tmp_path / "x.npy", np.asarray(x, order=request.param))
    return load(str(tmp_path / "x.npy")).values


@pytest.mark.all_quick
@pytest.mark.parametrize("take", PARTS)
def test_a_part_is_read_as_it_lies_in_the_file(take, mapped):
    part = take(mapped)
    copy = part.read()
    assert not np.may_share_memory(copy, mapped)
    np.testing.assert_array_equal(copy, part, strict=True)


@pytest.fixture
def places(mapped, monkeypatch):
    """The places of a file that are read."""
    places, read = [], type(mapped)._read_into

    def read_and_note(self, missing, place):
        places.append(place)
        read(self, missing, place)

    monkeypatch.setattr(type(mapped), "_read_into", read_and_note)
    return places


@pytest.mark.parametrize(
    "index",
    [
        pytest.param((3, -2, 7), id="a value"),
        pytest.param(np.ix_([6, 0], [1, 1, 4], [0, -1]), id="an excerpt"),
        pytest.param((np.arange(5), 2, np.uint8(9)), id="along an axis"),
        pytest.param(tuple(np.zeros((3, 0), int)), id="nothing"),
    ],
)
@pytest.mark.parametrize("take", [lambda x: x, lambda x: x[:, ::-1, ::2]], ids=["all", "a view"])
def test_values_that_an_index_picks_are_read_by_position(take, index, mapped, places):
    part, copy = take(mapped), np.array(take(mapped))
    picked = part[index]
    assert type(picked) is type(copy[index])
    np.testing.assert_array_equal(picked, copy[index])
    assert bool(places) == bool(np.size(picked))


def test_an_index_out_of_range_is_an_error(mapped):
    with pytest.raises(IndexError, match="out of bounds"):
        mapped[7, 0, 0]


def test_what_lies_near_is_read_at_once(mapped, places):
    near = mapped[2, :, 5]
    np.testing.assert_array_equal(near.read(), np.array(near))
    assert len(places) == 1


@pytest.mark.parametrize(
    "line",
    [
        *("ln -i {0}", "bn -i {0}", "explain ln -i {0} --at 6,4,239", "explain bn -i {0}", "explain lrn -i {0} --at 6,4,239"),
        *("compare ln bn -i {0}", "draw bn -i {0}", "restore ln -i {0}", "identify -i {0} --actual y.npy"),
    ],
)  # fmt: skip
def test_a_file_that_shrinks_ends_in_one_line(line, mapped, normcli, monkeypatch):
    def shrink(tensor, settings):
        with open(mapped.filename, "r+b") as stream:
            stream.truncate(5000)
        return tensor

    monkeypatch.setattr(sources, "_note_remarks", shrink)
    monkeypatch.chdir(os.path.dirname(mapped.filename))
    np.save("y.npy", np.ones(mapped.shape) * 2)
    ran = normcli(*(part.format(mapped.filename) for part in line.split()))
    assert (ran.code, ran.raw, len(ran.err.splitlines())) == (3, b"", 1)
    assert "x.npy was cut short while it was read" in ran.err
