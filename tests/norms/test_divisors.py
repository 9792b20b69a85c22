"""The table of divisors: each statistic is what its words say, and each promise is kept."""

from __future__ import annotations

import numpy as np
import pytest

from normcli import normalize
from normcli.norms.divisors import ORDER_STATISTICS, Measurement
from normcli.norms.plan import make_plan
from normcli.norms.request import Request
from normcli.norms.table import DIVISORS, NORMS

X = np.array([[3.0, -1.0, 4.0, 1.0, -5.0], [2.0, 0.5, 8.0, -2.0, 7.0]])
STATISTICS = {
    "mean": np.mean,
    "var": np.var,
    "std": np.std,
    "ms": lambda x: np.mean(x * x),
    "rms": lambda x: np.sqrt(np.mean(x * x)),
    "norm": np.linalg.norm,
    "sigma": np.linalg.norm,
    "min": np.min,
    "max": np.max,
    "median": np.median,
    "q1": lambda x: np.quantile(x, 0.25),
    "q3": lambda x: np.quantile(x, 0.75),
    "range": lambda x: np.max(x) - np.min(x),
    "middle": lambda x: (np.max(x) + np.min(x)) / 2,
    "half_range": lambda x: (np.max(x) - np.min(x)) / 2,
    "iqr": lambda x: np.quantile(x, 0.75) - np.quantile(x, 0.25),
    "q_low": lambda x: np.quantile(x, 0.1),
    "q_high": lambda x: np.quantile(x, 0.975),
    "q_range": lambda x: np.quantile(x, 0.975) - np.quantile(x, 0.1),
}
REQUESTS = {
    **{norm: {} for norm in NORMS if norm != "lrn"},
    "gn": {"groups": 1, "layout": "NC"},
    "bn": {"axes": (1,)},
    "robust, other quantiles": {"quantiles": (10.0, 97.5)},
}


def make_request(name):
    norm, _, _ = name.partition(",")
    axes = {} if norm == "gn" else {"axes": (1,)}
    lengths = {"p": 2.0} if norm == "lp" else {}
    return norm, {**axes, **lengths, **REQUESTS[name]}


@pytest.mark.parametrize("name", REQUESTS)
def test_each_statistic_is_what_its_name_says(name):
    norm, options = make_request(name)
    found = normalize(X, norm, **options).statistics
    for statistic, values in found.items():
        if statistic != "rstd":
            define = (lambda x: np.max(np.abs(x))) if norm == "maxabs" else STATISTICS[statistic]
            np.testing.assert_allclose(
                np.ravel(values), [define(row) for row in X], rtol=1e-14, err_msg=statistic
            )


def test_every_statistic_has_a_definition_here():
    names = {name for row in DIVISORS for name in row.statistics} | set(ORDER_STATISTICS)
    assert names - {"rstd"} == set(STATISTICS)


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


def test_sizes_are_the_statistics_that_neither_squares_nor_sums_are():
    sizes = {norm: row.divisor.sizes for norm, row in NORMS.items()}
    assert sizes["bn"] == ("mean", "std")
    assert sizes["rms"] == ("rms",)
    assert sizes["minmax"] == ("min", "max")
    assert sizes["robust"] == ("median", "q1", "q3")


def test_what_is_left_of_a_divisor_that_is_left_out():
    row = make_plan(Request("zscore", no_scale=True), X.shape, X.dtype).norm.divisor
    assert (row.divides, row.bounded, row.promises) == (False, False, ())
    assert row.statistics == ("mean", "var", "std")
    row = make_plan(Request("zscore", no_mean=True), X.shape, X.dtype).norm.divisor
    assert (row.divides, row.bounded) == (True, True)
    assert [promise.statistic for promise in row.promises] == ["var"]
