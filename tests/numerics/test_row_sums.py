"""Leaves against exact rationals: every sum is exact, or the leaf says that it is not."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from normcli.numerics.sums.leaf_records import Leaves, fold_leaves
from normcli.numerics.sums.row_sums import measure_leaves
from normcli.numerics.workspace import Workspace
from tests.marks import sampled, slowly
from tests.test_exactness import make

KINDS = [
    "normal", "mean 1e6", "mean 1e15", "cancelling", "outlier", "scale 1e-20", "scale 1e-80",
    "integers", "relu", "all but one",
]  # fmt: skip


UNIT = 1074
"""Doubles are whole multiples of 2⁻¹⁰⁷⁴, and their squares of its square: exact, and cheaper than fractions."""


def count_units(number) -> int:
    numerator, denominator = float(number).as_integer_ratio()
    return numerator << UNIT + 1 - denominator.bit_length()


def add_exactly(numbers) -> int:
    return sum(map(count_units, numbers))


def require_exact(leaves, rows, *, need_sum=True):
    """Hold the sums of rows against rationals; return which rows say that theirs are not exact."""
    leaves = leaves.require_exact()
    for i, row in enumerate(rows):
        if leaves.extreme[i]:
            continue
        values = [*map(count_units, row.tolist())]
        assert not need_sum or add_exactly(a[i] for a in leaves.sums) == sum(values)
        assert add_exactly(a[i] for a in leaves.squares) << UNIT == sum(value * value for value in values)
    return leaves.extreme


@sampled
@pytest.mark.parametrize("need_sum", [True, False])
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("n", [1, 255, 700, *slowly([2, 3, 16, 257, 1024, 4096])])
def test_sums_of_leaves_are_exact(kind, n, need_sum):
    x = make(kind, 3, n)
    extreme = require_exact(measure_leaves(x, Workspace(), need_sum=need_sum), x, need_sum=need_sum)
    assert kind == "cancelling" or not extreme.any()
    for dtype in ("float32", "float16"):
        with np.errstate(over="ignore"):
            short = x.astype(dtype)
        if np.isfinite(short).all():
            leaves = measure_leaves(short, Workspace(), need_sum=need_sum)
            assert kind == "cancelling" or not require_exact(leaves, short, need_sum=need_sum).any()


@pytest.mark.parametrize("need_sum", [True, False])
def test_sums_are_exact_of_parts_that_are_as_large_as_they_may_be(need_sum):
    """Of 4096 values near the largest, products of parts add up to nearly all bits of a double."""
    rng = np.random.default_rng(5)
    x = rng.uniform(0.99, 1.0, (2, 4096)) * (rng.choice([-1.0, 1.0], (2, 4096)) if need_sum else 1.0)
    assert not require_exact(measure_leaves(x, Workspace(), need_sum=need_sum), x, need_sum=need_sum).any()


@pytest.mark.parametrize("short", [True, False])
def test_the_last_rows_of_more_than_are_measured_at_once_are_exact(short):
    x = make("normal", 50, 3000).astype("float32" if short else "float64")
    leaves = measure_leaves(x, Workspace(), need_sum=True)
    chosen = [0, 21, 42, 49]
    assert not require_exact(leaves.map(lambda a: a[chosen]), x[chosen]).any()


def test_values_that_do_not_count_add_nothing():
    x = make("mean 1e6", 3, 300)
    selected = np.random.default_rng(0).random(x.shape) < 0.5
    selected[2] = False
    for dtype in ("float64", "float32"):
        rows = np.where(selected, x, 0.0).astype(dtype)
        leaves = measure_leaves(rows, Workspace(), selected, need_sum=True)
        require_exact(
            leaves.map(lambda a: a[..., :2]), [row[s] for row, s in zip(rows[:2], selected, strict=False)]
        )
        assert leaves.count.tolist() == selected.sum(axis=-1).tolist()
        assert leaves.sum_0[2] == leaves.square_0[2] == 0.0


@pytest.mark.parametrize("exponent", [449, 451, -299, -301, -400, -470, -520])
def test_leaves_near_the_ends_of_the_range_are_exact_or_marked(exponent):
    rng = np.random.default_rng(6)
    x = np.ldexp(rng.uniform(1.0, 2.0, (2, 60)), exponent - rng.integers(0, 60, (2, 60)))
    x[:, 0] = 2.0**exponent
    with np.errstate(all="ignore"):
        leaves = measure_leaves(x, Workspace(), need_sum=True)
    extreme = require_exact(leaves, x)
    assert extreme.all() == (not -300 <= exponent < 450)


@pytest.mark.parametrize("short", [True, False])
def test_sums_that_doubles_do_not_hold_are_marked_or_have_a_bound(short):
    rng = np.random.default_rng(7)
    x = np.ldexp(rng.uniform(1.0, 2.0, (3, 90)), rng.integers(-120, 120, (3, 90)))
    x = x.astype("float32" if short else "float64")
    leaves = measure_leaves(x, Workspace(), need_sum=True)
    assert leaves.require_exact().extreme.all()
    assert not leaves.extreme.any()
    for i, row in enumerate(x.tolist()):
        values = [*map(Fraction, row)]
        off = sum(Fraction(part[i]) for part in leaves.sums) - sum(values)
        assert abs(off) <= Fraction(leaves.sum_left[i])
        off = sum(Fraction(part[i]) for part in leaves.squares) - sum(value * value for value in values)
        assert 0 < abs(off) <= Fraction(leaves.square_left[i]) <= Fraction(leaves.square_0[i]) / 2**150


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_nan_and_infinities_are_those_of_plain_sums(dtype):
    x = np.ones((5, 20), dtype)
    x[0, 3], x[1, 4], x[2, 5] = np.nan, np.inf, -np.inf
    x[3, 3], x[3, 4] = np.inf, -np.inf
    with np.errstate(all="ignore"):
        leaves = measure_leaves(x, Workspace(), need_sum=True)
        folded = fold_leaves(leaves.reshape((1, 5)).map(lambda a: a[..., 1:3]))
    np.testing.assert_array_equal(leaves.sum_0[:4], [np.nan, np.inf, -np.inf, np.nan])
    np.testing.assert_array_equal(leaves.square_0[:4], [np.nan, np.inf, np.inf, np.inf])
    assert not leaves.extreme.any()
    np.testing.assert_array_equal([folded.sum_0[0], folded.square_0[0]], [np.nan, np.inf])


@pytest.mark.parametrize("kind", [*KINDS, "mixed"])
@pytest.mark.parametrize("pieces", [[10], [5, 5], [4, 4, 2], [1] * 10])
def test_leaves_that_are_folded_are_exact_or_say_that_they_are_not(kind, pieces):
    x = make(kind, 3, 10)
    records = Leaves.empty((3, len(pieces)))
    stops = np.cumsum(pieces)
    for number, (stop, size) in enumerate(zip(stops, pieces, strict=True)):
        piece = np.ascontiguousarray(x[:, stop - size : stop])
        records.put((slice(None), number), measure_leaves(piece, Workspace(), need_sum=True))
    extreme = require_exact(fold_leaves(records), x)
    assert kind in ("mixed", "cancelling") or not extreme.any()
