"""A view collapsed into runs, and cut into tiles that cover it once."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from normcli.engine.geometry import Geometry

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


@pytest.mark.parametrize(("shape", "axes"), CASES, ids=str)
def test_tiles_cover_each_value_once(shape, axes):
    geometry = Geometry.of(shape, axes)
    for whole, block in itertools.product([True, False, None], [1, 100, 5000, 1 << 20]):
        seen = np.zeros(geometry.dims, dtype=int)
        for tile in geometry.tiles(whole, block):
            seen[tile] += 1
        assert (seen == 1).all(), (whole, block)
    assert geometry.leaf_sizes.sum() == geometry.count


def test_tiles_of_any_values_are_contiguous():
    geometry = Geometry.of((9001, 7), (0,))
    first = next(geometry.tiles(None, 5000))
    assert first == (slice(0, 5000 // 7), slice(0, 7))


@pytest.mark.parametrize(("shape", "axes"), CASES, ids=str)
def test_leaves_depend_on_the_shape_alone(shape, axes):
    one, other = (Geometry.of(shape, axes) for _ in range(2))
    np.testing.assert_array_equal(one.leaf_sizes, other.leaf_sizes)
    assert one.leaf_sizes.max(initial=0) <= 4096


@pytest.mark.parametrize(("shape", "axes"), CASES, ids=str)
@pytest.mark.parametrize("block", [1, 100, 5000, 1 << 20])
def test_the_leaves_of_a_tile_follow_each_other(shape, axes, block):
    geometry = Geometry.of(shape, axes)
    seen = np.zeros((*geometry.kept_shape, len(geometry.leaf_sizes)), dtype=int)
    for tile in geometry.tiles(whole=False, block=block):
        values = int(np.prod([tile[i].stop - tile[i].start for i in geometry.reduced_runs]))
        first = stop = geometry.first_leaf(tile)
        while geometry.leaf_sizes[first:stop].sum() < values:
            stop += 1
        seen[(*(tile[i] for i in geometry.kept_runs), slice(first, stop))] += 1
    assert (seen == 1).all()


def test_the_records_of_a_group_do_not_grow_with_it():
    counts = [len(Geometry.of((n, 64, 56, 56), (0, 2, 3)).segment_sizes) for n in (1 << 10, 1 << 14)]
    assert max(counts) <= 1024
    assert Geometry.of((1 << 14, 64, 56, 56), (0, 2, 3)).segment_sizes.sum() == (56 * 56) << 14


def test_tensors_without_values_have_a_geometry():
    assert Geometry.of((3, 4, 0), (0, 1)).dims == (12, 0)
