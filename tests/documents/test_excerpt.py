from __future__ import annotations

import math

import pytest

from normcli.documents.excerpt import MOST_MATRICES, choose_positions


@pytest.mark.parametrize(
    "shape", [(1001,), (64, 64, 64), (8, 64, 32, 32), (2, 3, 4, 5, 6, 7), (9,) * 6, (3,) * 12]
)
def test_large_tensors_are_cut_to_what_a_reader_takes_in(shape):
    positions = choose_positions(shape, full=False)
    assert math.prod(p.size for p in positions) <= MOST_MATRICES * 36
    for p, length in zip(positions, shape, strict=True):
        assert p.shown[0] == 0
        assert p.shown[-1] == length - 1 or len(shape) > 5
    assert math.prod(p.size for p in choose_positions(shape, full=True)) == math.prod(shape)


def test_no_mark_stands_for_a_single_matrix():
    batch, channels, *_ = choose_positions((64, 3, 20, 20), full=False)
    assert (batch.shown, channels.shown, channels.gap) == ((0, 63), (0, 1, 2), None)


@pytest.mark.parametrize(
    ("shape", "whole"),
    [
        ((), True),
        ((1000,), True),
        ((48, 4), True),
        ((150, 4), False),
        ((60, 1, 2, 2), False),
        ((1, 60, 2, 2), True),
        ((10**9, 0), True),
    ],
)
def test_what_would_fill_more_than_a_screen_is_cut(shape, whole):
    shown = math.prod(positions.size for positions in choose_positions(shape, full=False))
    assert (shown == math.prod(shape)) == whole
    assert math.prod(positions.size for positions in choose_positions(shape, full=True)) == math.prod(shape)
