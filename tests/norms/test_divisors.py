"""The table of divisors: each statistic is what its words say, and each promise is kept."""

from __future__ import annotations

import numpy as np
import pytest

from normcli import normalize
from normcli.norms.divisors import Measurement
from normcli.norms.plan import make_plan
from normcli.norms.request import Request
from normcli.norms.table import NORMS

X = np.array([[3.0, -1.0, 4.0, 1.0, -5.0], [2.0, 0.5, 8.0, -2.0, 7.0]])


@pytest.mark.parametrize("norm", [name for name in NORMS if name != "gn"])
def test_normalized_values_stay_small_exactly_of_divisors_that_are_bounded(norm):
    x = np.linspace(-1.0, 1.0, 101)
    x[7] = 1e9
    axes = {"axes": (0,)} if norm != "lrn" else {"layout": "C", "exponent": 0.25}
    assert bool(np.abs(normalize(x, norm, **axes).normalized).max() < 11.0) == NORMS[norm].divisor.bounded


@pytest.mark.parametrize("norm", [name for name in NORMS if name not in ("gn", "lrn")])
def test_statistics_of_nothing_are_0_or_nan_as_the_table_says(norm):
    mask = np.array([[True] * 5, [False] * 5])
    result = normalize(X, norm, axes=(1,), mask=mask)
    divisor = result.plan.norm.divisor
    size = result.statistics[divisor.spread][1]
    assert size == 0.0 if divisor.is_0_of_nothing else np.isnan(size)
    assert divisor.words_for_empty == (f"its {divisor.size} is 0" if size == 0.0 else "its statistics are NaN")


@pytest.mark.parametrize("norm", [name for name in NORMS if name not in ("gn", "lrn")])
def test_outliers_are_resisted_exactly_where_the_table_says(norm):
    x = X.copy()
    x[0, 2] = np.inf
    result = normalize(x, norm, axes=(1,))
    divisor = result.plan.norm.divisor
    assert bool(np.isfinite(result.statistics[divisor.spread][0])) == divisor.resists_outliers


OF_MOMENTS = [
    name for name, row in NORMS.items() if row.divisor.measurement is Measurement.MOMENTS and name != "gn"
]


@pytest.mark.parametrize("norm", OF_MOMENTS)
def test_what_is_added_to_all_values_changes_squares_unless_they_are_about_the_mean(norm):
    divisor = NORMS[norm].divisor
    one, other = (normalize(x, norm, axes=(1,)).statistics[divisor.square] for x in (X, X + 8.0))
    assert bool((one == other).all()) == divisor.about_mean


def test_what_is_left_of_a_divisor_that_is_left_out():
    row = make_plan(Request("zscore", no_scale=True), X.shape, X.dtype).norm.divisor
    assert (row.divides, row.bounded, row.promises) == (False, False, ())
    assert row.statistics == ("mean", "var", "std")
    row = make_plan(Request("zscore", no_mean=True), X.shape, X.dtype).norm.divisor
    assert (row.divides, row.bounded) == (True, True)
    assert [promise.statistic for promise in row.promises] == ["var"]
