"""Integers of 64 bits, taken as what they are."""

from __future__ import annotations

import numpy as np
import pytest

from normcli.numerics.rounding import find_magnitudes, split_integers, widen_exactly

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


def test_magnitudes_of_the_least_integer():
    assert find_magnitudes(np.array([-(2**63), 5])).tolist() == [2**63, 5]
    assert find_magnitudes(np.array([-2], np.int16)).tolist() == [2.0]
