"""A view collapsed into runs, and cut into tiles that cover it once."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

from normcli.engine.tiling.geometry import Geometry, find_lengths
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


@pytest.mark.parametrize(
    ("shape", "axes", "dims", "reduced"),
    [
        pytest.param((2, 3, 4, 5), (0, 2, 3), (2, 3, 20), (True, False, True), id="neighbours become one"),
        pytest.param((2, 3, 4, 5), (3,), (24, 5), (False, True), id="all the kept ones too"),
        pytest.param((2, 1, 4), (0, 2), (8,), (True,), id="axes of one value vanish"),
    ],
)
def test_runs(shape, axes, dims, reduced):
    geometry = Geometry.of(shape, axes)
    pairs = [(n, kind) for n, kind in zip(geometry.dims, geometry.reduced, strict=True) if n > 1]
    assert pairs == list(zip(dims, reduced, strict=True))


@costly
@pytest.mark.parametrize(("shape", "axes"), CASES, ids=str)
@pytest.mark.slow
def test_tiles_cover_each_value_once(shape, axes):
    geometry = Geometry.of(shape, axes)
    for whole, block in itertools.product([True, False, None], [1, 100, 5000, 1 << 20]):
        seen = np.zeros(geometry.dims, dtype=int)
        for tile in geometry.tiles(whole, block):
            seen[tile] += 1
        assert (seen == 1).all(), (whole, block)


def test_tiles_of_any_values_are_contiguous():
    geometry = Geometry.of((9001, 7), (0,))
    first = next(geometry.tiles(None, 5000))
    assert first == (slice(0, 5000 // 7), slice(0, 7))


@pytest.mark.parametrize(("shape", "axes"), CASES, ids=str)
@pytest.mark.parametrize("block", [1, 100, 5000, 1 << 20])
def test_tiles_hold_all_leaves_of_groups_once(shape, axes, block):
    geometry = Geometry.of(shape, axes)
    leaves = values = 0
    for tile in geometry.tiles(whole=False, block=block):
        lengths = find_lengths(tile)
        x = np.empty(
            (len(geometry.number_groups(tile)), math.prod(lengths[run] for run in geometry.reduced_runs))
        )
        for piece in geometry.cut_leaves(x, tile):
            assert piece.shape[-1] <= geometry.longest_leaf <= 4096
            leaves, values = leaves + math.prod(piece.shape[:-1]), values + piece.size
    assert leaves == geometry.leaf_count * math.prod(geometry.kept_shape)
    assert values == math.prod(shape)


def test_tensors_without_values_have_a_geometry():
    assert Geometry.of((3, 4, 0), (0, 1)).dims == (12, 0)
