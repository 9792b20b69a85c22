"""A view collapsed into runs, and cut into tiles that cover it once."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from normcli.engine.tiling.geometry import Geometry
from normcli.numerics.sums.leaf_records import MAX_LEAF, cut_leaves
from tests.marks import costly

CASES = [
    ((2, 3, 4, 5), (0, 2, 3)),
    ((2, 3, 4, 5), (1,)),
    ((7, 9001), (1,)),
    ((9001, 7), (0,)),
    ((1, 6, 1), (1,)),
    ((), ()),
    ((5,), ()),
    ((300, 40, 3), (0, 1)),
]


@costly
@pytest.mark.parametrize(("shape", "axes"), CASES, ids=str)
@pytest.mark.slow
def test_tiles_cover_each_value_once(shape, axes):
    geometry = Geometry.of(shape, axes)
    for whole, block in itertools.product([True, False], [1, 100, 5000, 1 << 20]):
        seen = np.zeros(geometry.dims, dtype=int)
        for tile in geometry.tiles(whole, block):
            seen[tile] += 1
        assert (seen == 1).all(), (whole, block)


def test_tiles_hold_at_least_64_values_of_a_group():
    for shape, axes, block, lengths in (
        ((9001, 7), (0,), 5000, (704, 7)),
        ((9001, 700), (0,), 100, (64, 1)),
        ((90, 700, 4), (0, 2), 100, (16, 1, 4)),
    ):
        tile = next(Geometry.of(shape, axes).tiles(whole=False, block=block))
        assert tile == tuple(slice(0, length) for length in lengths)


@pytest.mark.parametrize("n", [1, 4095, 4096, 4097, 10_000])
def test_leaves_hold_all_values_of_rows_once(n):
    rows = np.arange(3.0 * n).reshape(3, n)
    pieces = list(cut_leaves(rows))
    assert all(piece.shape[-1] <= MAX_LEAF for piece in pieces)
    np.testing.assert_array_equal(np.hstack([piece.reshape(3, -1) for piece in pieces]), rows)


def test_tensors_without_values_have_a_geometry():
    assert Geometry.of((3, 4, 0), (0, 1)).dims == (12, 0)
