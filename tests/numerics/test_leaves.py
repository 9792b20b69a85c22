"""Leaves against exact rationals: sums to about 2⁻¹⁰⁰ of their scale, sums of squares to 2⁻⁷⁰."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from normcli.numerics.leaves import (
    Dots,
    Leaves,
    find_inexact,
    measure_leaves,
    measure_short_leaves,
)
from normcli.numerics.lengths import measure_powers
from normcli.numerics.workspace import Workspace
from tests.marks import slowly
from tests.test_exactness import make

KINDS = ["normal", "mean 1e6", "mixed", "cancelling", "outlier", "scale 1e-20"]


def exact_sum(row) -> Fraction:
    return sum((Fraction(float(v)) for v in row), Fraction(0))


def exact_square(row, shift: float) -> Fraction:
    return sum(((Fraction(float(v)) - Fraction(shift)) ** 2 for v in row), Fraction(0))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("n", [1, 255, 700, *slowly([2, 4096])])
def test_leaves_of_float64(kind, n):
    x = make(kind, 3, n)
    leaves = measure_leaves(x, Workspace(), need_sum=True)
    for i, row in enumerate(x):
        scale = max(abs(Fraction(float(v))) for v in row) * n
        total = Fraction(float(leaves.sum_hi[i])) + Fraction(float(leaves.sum_lo[i]))
        assert abs(total - exact_sum(row)) <= scale / 2**100
        square = Fraction(float(leaves.square_hi[i])) + Fraction(float(leaves.square_lo[i]))
        expected = exact_square(row, float(leaves.shift[i]))
        assert abs(square - expected) <= max(expected, Fraction(1, 2**1000)) / 2**65


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("n", [1, 255, *slowly([2, 4096])])
@pytest.mark.parametrize("dtype", ["float32", "float16"])
def test_leaves_of_narrow_values_have_exact_sums(kind, n, dtype):
    if dtype == "float16":
        kind = "normal"
    x = make(kind, 3, n).astype(dtype)
    leaves = measure_short_leaves(x, Workspace(), need_sum=True)
    for i, row in enumerate(x):
        total = Fraction(float(leaves.sum_hi[i])) + Fraction(float(leaves.sum_lo[i]))
        largest = max(abs(Fraction(float(v))) for v in row) * n
        assert abs(total - exact_sum(row)) <= largest / 2**100
        expected = exact_square(row, float(leaves.shift[i]))
        assert abs(Fraction(float(leaves.square_hi[i])) - expected) <= expected / 2**36


@pytest.mark.parametrize("n", [3, 700, *slowly([4096])])
@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_a_narrow_leaf_whose_least_value_is_lost_to_a_plain_sum_is_summed_exactly(n, sign):
    x = np.full((4, n), 2.0**40, dtype="float32")
    x[:, ::2] = -(2.0**39)
    x[2, n // 2] = sign * 2.0**-30
    leaves = measure_short_leaves(x, Workspace(), need_sum=True)
    for i, row in enumerate(x):
        assert Fraction(float(leaves.sum_hi[i])) + Fraction(float(leaves.sum_lo[i])) == exact_sum(row)
    assert leaves.sum_lo[2] != 0.0


@pytest.mark.parametrize("n", [3, 700, *slowly([4096])])
def test_zeros_do_not_make_a_narrow_leaf_doubtful(n):
    x = np.maximum(make("integers", 6, n), 0.0).astype("float32")
    x[1] = 0.0
    x[2] = -0.0
    x[3, 0] = np.nan
    x[4] = np.nan
    x[5, :2] = 2.0**60, 1.0
    dots = Dots(6, n)
    with np.errstate(all="ignore"):
        dots.add(slice(0, 6), x.astype("f8"), np.ones((1, n)))
        squares = Dots(6, n)
        squares.add(slice(0, 6), x.astype("f8"), x.astype("f8"))
        doubtful = find_inexact(x, dots.bound(squares))
    np.testing.assert_array_equal(doubtful, [False, False, False, True, True, True])


@pytest.mark.parametrize("n", [1, 300, 511, 700, *slowly([4096])])
@pytest.mark.parametrize("kind", KINDS)
def test_no_sum_of_some_values_of_a_row_exceeds_the_bound(n, kind):
    x = make(kind, 3, n)
    sums, squares = Dots(3, n), Dots(3, n)
    sums.add(slice(0, 3), x, np.ones((1, n)))
    squares.add(slice(0, 3), x, x)
    bound = sums.bound(squares)
    assert (np.abs(x) <= bound[:, None] * (1 + 1e-12)).all()
    parts = x if n < 512 else x[:, : n // 256 * 256].reshape(3, -1, 256)
    reached = np.abs(np.cumsum(parts, axis=-1)).reshape(3, -1).max(axis=-1)
    assert (reached <= bound * (1 + 1e-12)).all()
    between = np.abs(np.cumsum(parts.reshape(3, -1, parts.shape[-1]).sum(axis=-1), axis=-1)).max(axis=-1)
    assert (between <= bound * (1 + 1e-12)).all()


@pytest.mark.parametrize("scale", [1e-300, 1e200])
def test_leaves_whose_squares_leave_float64_are_marked(scale):
    x = make("normal", 4, 50) * np.array([[1.0], [scale], [0.0], [1.0]])
    with np.errstate(all="ignore"):
        leaves = measure_leaves(x, Workspace(), need_sum=True)
    np.testing.assert_array_equal(leaves.extreme, [False, True, False, False])


def test_counts_and_maxima():
    x = np.array([[0.0, -3.0, 2.0, 0.0], [np.nan, 1.0, 0.0, 0.0]])
    np.testing.assert_array_equal(measure_powers(x, Workspace(), p=0.0).hi, [2.0, np.nan])
    np.testing.assert_array_equal(measure_powers(x, Workspace(), p=np.inf).unit, [3.0, np.nan])


def test_records_can_be_put_and_reshaped():
    records = Leaves.empty((2, 3))
    records.put((0, slice(1, 3)), measure_leaves(np.ones((2, 4)), Workspace(), need_sum=True))
    np.testing.assert_array_equal(records.reshape((6,)).sum_hi, [0, 4, 4, 0, 0, 0])


def test_a_workspace_gives_the_same_memory_again():
    work = Workspace()
    first = work.get("a", (3, 4))
    assert np.shares_memory(first, work.get("a", (2, 2), np.float32))
    assert not np.shares_memory(first, work.get("b", (3, 4)))
