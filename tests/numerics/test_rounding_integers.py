"""Integers of 64 bits, taken as what they are."""

from __future__ import annotations

import numpy as np
import pytest

from normcli.numerics.rounding import find_magnitudes, split_integers, widen_exactly, widen_to_pair
from normcli.numerics.statistics.order_statistics import QUARTILES, fold_extremes, measure_extremes
from normcli.numerics.statistics.ranks import RankSearch, measure_quantiles
from normcli.numerics.sums.leaf_records import fold_leaves
from normcli.numerics.sums.row_sums import measure_leaves
from normcli.numerics.workspace import Workspace

DTYPES = [np.dtype("int64"), np.dtype("uint64")]


def draw(dtype, shape, seed=0):
    """Integers over the whole range, and in each second row within 1000 of its upper end."""
    kind, rng = np.iinfo(dtype), np.random.default_rng(seed)
    x = rng.integers(kind.min, kind.max, shape, dtype=dtype, endpoint=True)
    x[1::2] = kind.max - rng.integers(0, 1000, x[1::2].shape).astype(dtype)
    x[0, :2] = kind.min, kind.max
    return x


def to_integers(pair):
    return [[int(hi) + int(lo) for hi, lo in zip(*row, strict=True)] for row in zip(*pair, strict=True)]


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_a_pair_is_the_integer(dtype):
    x = draw(dtype, (4, 300))
    high, low = split_integers(x)
    assert to_integers((high, low)) == x.tolist()
    np.testing.assert_array_equal(high, x.astype(np.float64))


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_integers_up_to_2_53_need_one_double(dtype):
    assert widen_exactly(np.array([3, 2**53], dtype))[1] is None
    assert widen_exactly(np.array([3, 2**53 + 1], dtype))[1].tolist() == [0.0, 1.0]
    assert widen_exactly(np.empty((0, 2), dtype))[0].shape == (0, 2)


def test_floats_are_themselves():
    x = np.array([1e300, -0.0])
    assert widen_exactly(x)[0] is x
    assert not np.signbit(widen_to_pair(x).hi[1])


def test_magnitudes_of_the_least_integer():
    assert find_magnitudes(np.array([-(2**63), 5])).tolist() == [2**63, 5]
    assert find_magnitudes(np.array([-2], np.int16)).tolist() == [2.0]


def check_sums(leaves, x):
    """Hold the sums of rows against those of Python's integers."""
    for row, values in enumerate(x.tolist()):
        one = leaves.map(lambda a, row=row: a[row])
        assert sum(map(int, one.sums)) == sum(values)
        assert sum(map(int, one.squares)) == sum(value**2 for value in values)
        assert not one.extreme


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_leaves_are_summed_exactly(dtype):
    x = draw(dtype, (6, 4096))
    leaves = measure_leaves(x, Workspace(), need_sum=True)
    check_sums(leaves, x)
    check_sums(fold_leaves(leaves.map(lambda a: a.reshape(2, 3))), x.reshape(2, -1))
    alone = measure_leaves(x, Workspace(), need_sum=False).squares
    assert (
        np.sum(np.array(alone).astype(object), axis=0).tolist()
        == np.sum(np.array(leaves.squares).astype(object), axis=0).tolist()
    )


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_integers_that_do_not_count(dtype):
    x = draw(dtype, (4, 60))
    selected = np.arange(60) % 3 > 0
    zeroed = np.where(selected, x, dtype.type(0))
    leaves = measure_leaves(zeroed, Workspace(), np.broadcast_to(selected, x.shape), need_sum=True)
    check_sums(leaves, x[:, selected])


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_extremes(dtype):
    x = draw(dtype, (6, 50))
    selected = np.arange(300).reshape(6, 50) % 7 > 0
    selected[3] = False
    read = fold_extremes(measure_extremes(x.reshape(3, 2, 50), Workspace())).read()
    rows = x.reshape(3, 100).tolist()
    assert [read["min"].find(i) for i in range(3)] == [min(row) for row in rows]
    assert [read["max"].find(i) for i in range(3)] == [max(row) for row in rows]
    leaves = measure_extremes(x, Workspace(), selected)
    assert (leaves.low[3], leaves.high[3]) == (np.inf, -np.inf)
    folded = fold_extremes(leaves.map(lambda a: a[2:4]))
    chosen = x[2][selected[2]].tolist()
    assert int(folded.low) + int(folded.low_rest) == min(chosen)
    assert int(folded.high) + int(folded.high_rest) == max(chosen)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_quantiles(dtype):
    x = draw(dtype, (4, 101))
    ordered = np.sort(x, axis=-1)
    quantiles = measure_quantiles(x, QUARTILES)
    assert to_integers([part[:, ::2] for part in quantiles.values]) == ordered[:, [25, 50, 75]].tolist()
    search = RankSearch(4, dtype, QUARTILES)
    while not search.done:
        search.add(slice(0, 4), x[:, :60])
        search.add(slice(0, 4), x[:, 60:])
        search.advance()
    np.testing.assert_array_equal(search.find().values, quantiles.values)


def test_quantiles_of_integers_some_of_which_do_not_count():
    x = draw(np.dtype("uint64"), (3, 101))
    selected = np.arange(303).reshape(3, 101) % 3 > 0
    selected[2] = False
    quantiles = measure_quantiles(x, QUARTILES, selected)
    chosen = np.sort(x[1][selected[1]])
    assert to_integers([part[1:2, 2:4] for part in quantiles.values]) == [chosen[[33, 34]].tolist()]
    assert np.isnan(quantiles.values.hi[2]).all()
