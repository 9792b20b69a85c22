"""A view collapsed into runs, and cut into tiles that cover it once."""

from __future__ import annotations

from normcli.engine.tiling.geometry import Geometry


def test_tiles_hold_at_least_64_values_of_a_group():
    for shape, axes, block, lengths in (
        ((9001, 7), (0,), 5000, (704, 7)),
        ((9001, 700), (0,), 100, (64, 1)),
        ((90, 700, 4), (0, 2), 100, (16, 1, 4)),
    ):
        tile = next(Geometry.of(shape, axes).tiles(whole=False, block=block))
        assert tile == tuple(slice(0, length) for length in lengths)
