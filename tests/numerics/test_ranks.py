"""Quantiles by rank: found digit by digit, in any pieces, as an ordered row has them."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from normcli.numerics.statistics import ranks as order
from normcli.numerics.statistics.order_statistics import QUARTILES
from normcli.numerics.statistics.ranks import RankSearch, measure_quantiles
from tests.marks import costly, slowly


def floats(dtype):
    values = st.floats(width=8 * np.dtype(dtype).itemsize, allow_nan=False)
    return hnp.arrays(dtype, hnp.array_shapes(min_dims=2, max_dims=2, max_side=9), elements=values)


def search(parts, groups, dtype, selected=None):
    found = RankSearch(groups, np.dtype(dtype), QUARTILES)
    passes = 0
    while not found.done:
        for rows in parts:
            found.add(slice(None), rows, selected)
        found.advance()
        passes += 1
    assert passes == found.passes
    return found.find()


@pytest.mark.slow
@costly
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("digit", [11, *slowly([16, 4])])
@settings(max_examples=30)
@given(data=st.data())
def test_digits_find_what_order_has(dtype, digit, data):
    x = data.draw(floats(dtype))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(order, "LONGEST_DIGIT", digit)
        found = search([x[:, :3], x[:, 3:]], len(x), dtype)
    expected = measure_quantiles(x, QUARTILES)
    np.testing.assert_array_equal(found.values, expected.values)
    np.testing.assert_array_equal(found.parts, expected.parts)
    assert not np.signbit(found.values.hi[found.values.hi == 0.0]).any()


def test_many_groups_have_short_digits():
    one, many = (RankSearch(n, np.dtype(np.float32), QUARTILES) for n in (1, 30_000))
    assert (one.passes, many.passes) == (2, 8)
    assert sum(histogram.nbytes for histogram in many._histograms.values()) <= 8 * order.MOST_CELLS


def test_nan_spreads_unless_it_does_not_count(rng):
    x = rng.normal(size=(2, 9))
    x[0, 4] = np.nan
    numbers = ~np.isnan(x)
    for selected, expected in ((None, [True, False]), (numbers, [False, False])):
        found, direct = search([x], 2, x.dtype, selected), measure_quantiles(x, QUARTILES, selected)
        np.testing.assert_array_equal(found.values, direct.values)
        np.testing.assert_array_equal(np.isnan(direct.values.hi).all(axis=1), expected)
        np.testing.assert_array_equal(found.count, [9 if selected is None else 8, 9])


def test_groups_without_values_are_nan():
    x, nothing = np.ones((2, 3)), np.array([[False] * 3, [True] * 3])
    for quantiles in (search([x], 2, x.dtype, nothing), measure_quantiles(x, QUARTILES, nothing)):
        np.testing.assert_array_equal(quantiles.values.hi, [[np.nan] * 6, [1.0] * 6])
        np.testing.assert_array_equal(quantiles.count, [0, 3])
