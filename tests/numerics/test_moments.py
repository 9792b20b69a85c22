"""Moments merged from leaves, and those of short groups that stand as columns."""

from __future__ import annotations

import numpy as np
import pytest

from normcli.numerics.leaves import Leaves, measure_leaves
from normcli.numerics.moments import choose_scale, measure_columns, merge_leaves
from normcli.numerics.workspace import Workspace
from tests.test_exactness import make


@pytest.mark.parametrize("kind", ["normal", "mean 1e9", "mixed"])
@pytest.mark.parametrize("pieces", [[10], [5, 5], [4, 4, 2], [1] * 10])
def test_merging_pieces_is_measuring_the_whole(kind, pieces):
    x = make(kind, 3, 10)
    records = Leaves.empty((3, len(pieces)))
    start = 0
    for number, size in enumerate(pieces):
        records.put(
            (slice(None), number), measure_leaves(x[:, start : start + size], Workspace(), need_sum=True)
        )
        start += size
    merged = merge_leaves(records, sum(pieces), centred=True, short=False)
    whole, _ = measure_columns(np.ascontiguousarray(x.T), exact=True, centred=True)
    assert merged.count == whole.count == 10
    np.testing.assert_array_equal(merged.mean.hi, whole.mean.hi)
    np.testing.assert_array_equal(merged.m2.hi, whole.m2.hi)


def test_a_constant_has_no_deviation_however_it_is_cut():
    x = np.full((1, 9), 1e15 / 3)
    records = Leaves.empty((1, 3))
    for number in range(3):
        piece = np.ascontiguousarray(x[:, 3 * number : 3 * number + 3])
        records.put((slice(None), number), measure_leaves(piece, Workspace(), need_sum=True))
    merged = merge_leaves(records, 9, centred=True, short=False)
    assert (merged.mean.hi[0], merged.m2.hi[0]) == (1e15 / 3, 0.0)


def test_choose_scale():
    largest = np.array([1e300, 1e-200, 0.0, np.inf, np.nan, 1.0])
    k = choose_scale(largest)
    np.testing.assert_array_equal(k[2:5], 0)
    scaled = np.ldexp(largest[[0, 1, 5]], k[[0, 1, 5]])
    assert ((scaled >= 0.5) & (scaled <= 1.0)).all()
