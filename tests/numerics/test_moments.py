"""Moments from exact sums: means and squares as exact rationals have them, or said to be undecided."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from normcli import normalize
from normcli.numerics.rational import sum_exactly
from normcli.numerics.statistics.moments import find_moments
from normcli.numerics.sums.row_sums import measure_leaves
from normcli.numerics.workspace import Workspace
from tests.test_exactness import make


def require_exact(moments, x):
    """Hold what is decided against exact sums of the rows."""
    assert moments.undecided.mean() < 0.1
    for row in np.flatnonzero(~moments.undecided):
        sums = sum_exactly(x[row].astype(float))
        mean = [float(part[row]) for part in moments.mean]
        assert mean[0] == float(sums.mean())
        assert abs(sums.mean() - sum(map(Fraction, mean))) <= abs(Fraction(mean[1])) / 2**88
        found = Fraction(float(moments.square.hi[row])) + Fraction(float(moments.square.lo[row]))
        exact = sums.scatter() * x.shape[1]
        assert abs(found - exact) <= exact * Fraction(float(moments.error[row]))
        assert moments.error[row] < 2.0**-75


@pytest.mark.parametrize("short", [True, False])
@pytest.mark.parametrize("kind", ["normal", "mean 1e6", "outlier", "all but one", "near the mean", "integers"])
def test_moments_are_those_of_exact_sums(kind, short):
    x = make(kind, 40, 300).astype("float32" if short else "float64")
    leaves = measure_leaves(x, Workspace(), need_sum=True)
    moments = find_moments(leaves, 300, None, centred=True)
    require_exact(moments, x)


@pytest.mark.slow
@pytest.mark.parametrize("n", [5, 64])
@pytest.mark.parametrize("bits", [70, 120, 300])
@pytest.mark.parametrize("short", [True, False])
def test_magnitudes_however_far_apart_decide_nearly_all_groups(short, bits, n):
    random = np.random.default_rng(0)
    bits = min(bits, 140) if short else bits
    x = random.standard_normal((200, n)) * 2.0 ** random.integers(-bits, 0, (200, n)) * 2.0 ** (bits // 2)
    x = x.astype("float32" if short else "float64")
    leaves = measure_leaves(x, Workspace(), need_sum=True)
    require_exact(find_moments(leaves, n, None, centred=True), x)


@pytest.mark.parametrize("dtype", ["float64", "float32", "bfloat16", ">f8"])
@pytest.mark.parametrize("ddof", [0, 1])
def test_groups_of_which_few_values_count(dtype, ddof):
    """None, one, or some; of one that is too large for its square, the mean alone is there if ddof is 1."""
    x = np.array([[3.0, 1.0, 5.0, 0.5], [1.0, 2.0, 4.0, 8.0], [1e30, 7.0, 7.0, 7.0]]).astype(dtype)
    if dtype == "float64":
        x[2, 0] = 1e200
    mask = np.array([[False] * 4, [True, False, True, True], [True, False, False, False]])
    found = normalize(x, "ln", ddof=ddof, mask=mask)
    some = normalize(x[1:2, [0, 2, 3]], "ln", ddof=ddof)
    assert (found.mean[1], found.var[1], found.rstd[1]) == (some.mean[0], some.var[0], some.rstd[0])
    np.testing.assert_array_equal(found.normalized[1, [0, 2, 3]], some.normalized[0])
    assert found.mean[2] == float(x[2, 0])
    np.testing.assert_array_equal(found.var[2], np.nan if ddof else 0.0)
    np.testing.assert_array_equal(float(found.normalized[2, 0]), np.nan if ddof else 0.0)


@pytest.mark.parametrize("sign", [1.0, -1.0])
@pytest.mark.parametrize("count", [3, 4, 5])
def test_means_that_a_third_double_decides_are_rounded_once(count, sign):
    """Two doubles are in the middle of two: what the third adds tells which is nearer."""
    rows = [
        [count * (1.0 + unit * 2.0**-52), count * half * 2.0**-53, count * low, *[0.0] * (count - 3)]
        for unit in (0.0, 1.0)
        for half in (1.0, -1.0)
        for low in (2.0**-150, -(2.0**-150), 2.0**-106, -(2.0**-106))
    ]
    x = sign * np.array(rows)
    found = normalize(x, "ln").mean
    assert found.tolist() == [float(sum(map(Fraction, row)) / count) for row in x.tolist()]
