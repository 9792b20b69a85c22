"""Arrays a piece at a time: every value once, in C order, whatever the shape and the strides."""

from __future__ import annotations

import json

import numpy as np
import pytest

from normcli.errors import DataError
from normcli.tensors.files import load
from normcli.tensors.formats import json_lists as nested
from normcli.tensors.formats.json_lists import NestedLists, to_lists
from normcli.tensors.pieces import forget, iterate_pieces

ARRAYS = [
    np.array(3.5),
    np.zeros(0),
    np.zeros((2, 0, 3)),
    np.arange(7),
    np.arange(24.0).reshape(2, 3, 4),
    np.arange(24.0).reshape(2, 3, 4).transpose(2, 0, 1),
    np.arange(30.0)[::-2],
    np.array([[np.nan, 1.0], [np.inf, -np.inf]], dtype="f4"),
]


@pytest.mark.parametrize("size", [1, 2, 5, 1000])
@pytest.mark.parametrize("values", ARRAYS, ids=lambda a: str(a.shape))
def test_pieces_are_the_values_in_c_order(values, size):
    pieces = list(iterate_pieces(values, size))
    assert all(piece.ndim == 1 and 0 < piece.size <= size for piece in pieces)
    np.testing.assert_array_equal(np.concatenate([*pieces, np.zeros(0)]), values.reshape(-1))


@pytest.mark.parametrize("values", ARRAYS, ids=lambda a: str(a.shape))
@pytest.mark.parametrize("at_once", [1, 2, 5, 8192])
def test_json_in_pieces_is_json_at_once(values, at_once, monkeypatch):
    monkeypatch.setattr(nested, "_FORMATTED_AT_ONCE", at_once)
    assert "".join(NestedLists(values).format_json()) == json.dumps(to_lists(values))


def test_a_private_map_keeps_what_was_written_to_it(tmp_path):
    np.save(tmp_path / "x.npy", np.zeros(5000))
    private = np.load(tmp_path / "x.npy", mmap_mode="c")
    private[:] = 7.0
    forget(private)
    assert (private == 7.0).all()


@pytest.fixture
def mapped(tmp_path, monkeypatch):
    monkeypatch.setattr("normcli.tensors.mapped.SMALLEST_MAPPED", 1)
    np.save(tmp_path / "x.npy", np.arange(60_000.0).reshape(30, 4, 500))
    return load(str(tmp_path / "x.npy")).values


@pytest.mark.parametrize("size", [300, 700, 4000, 10**6])
def test_pieces_of_a_file_are_read_by_position(mapped, size):
    pieces = list(iterate_pieces(mapped, size))
    assert not any(np.may_share_memory(piece, mapped) for piece in pieces)
    np.testing.assert_array_equal(np.concatenate(pieces), np.arange(60_000.0))


def test_a_file_that_has_become_short_is_an_error_and_no_crash(mapped):
    with open(mapped.filename, "r+b") as stream:
        stream.truncate(10_000)
    with pytest.raises(DataError, match=r"x\.npy was cut short while it was read"):
        list(iterate_pieces(mapped))
