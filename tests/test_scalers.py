"""Scaling by range, largest value and quartiles: of what counts alone, from files, and beside scikit-learn."""

from __future__ import annotations

import os
from importlib import import_module

import numpy as np
import pytest

from normcli import backward, fit, normalize
from normcli.errors import UsageError
from tests.strategies import SCALERS
from tests.test_large_files import measure_peak


def scale(norm, values):
    """Return the counting values of one group, scaled as a textbook has it."""
    if norm == "minmax":
        return (values - values.min()) / (np.ptp(values) or 1.0)
    if norm == "midrange":
        middle, half = (values.max() + values.min()) / 2, np.ptp(values) / 2
        return (values - middle) / (half or 1.0)
    if norm == "maxabs":
        return values / (np.abs(values).max() or 1.0)
    first, third = np.percentile(values, [25, 75])
    return (values - np.median(values)) / (third - first or 1.0)


def scale_columns(norm, x, marks):
    result = x.copy()
    for column in range(x.shape[1]):
        some = marks[:, column]
        if some.any():
            result[some, column] = scale(norm, x[some, column])
    return result


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("norm", SCALERS)
def test_nan_is_left_out_where_it_is_asked_for(norm, dtype, rng):
    x = rng.normal(size=(50, 6)).astype(dtype)
    x[rng.random(x.shape) < 0.2] = np.nan
    expected = scale_columns(norm, x.astype(float), ~np.isnan(x))
    omitted, spread = (normalize(x, norm, nan=nan) for nan in ("omit", "propagate"))
    rtol = 2e-6 if dtype == "float32" else 1e-12
    np.testing.assert_allclose(omitted.normalized, expected, rtol=rtol, atol=1e-7)
    assert all(check.ok for check in omitted.check)
    spoilt = np.isnan(x).any(axis=0)
    assert all((np.isnan(array) == spoilt).all() for array in spread.statistics.values())
    assert np.isnan(spread.normalized[:, spoilt]).all()


def test_the_named_statistics():
    x = np.array([1.0, 2.0, 4.0, 9.0])
    result = normalize(x, "minmax")
    assert (result.min, result.max, result.range) == (1.0, 9.0, 8.0)
    result = normalize(x, "midrange")
    assert (result.min, result.max, result.middle, result.half_range) == (1.0, 9.0, 5.0, 4.0)
    result = normalize(x, "robust")
    assert (result.q1, result.median, result.q3, result.iqr) == (1.75, 3.0, 5.25, 3.5)


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_midrange_is_twice_minmax_less_1(dtype, rng):
    x = rng.normal(5.0, 30.0, (40, 6)).astype(dtype)
    x[:, 2] = 7.0
    once, twice = normalize(x, "minmax", dtype="float64").normalized, normalize(x, "midrange", dtype="float64")
    expected = np.where(np.ptp(x, axis=0) == 0.0, 0.0, 2.0 * once - 1.0)
    np.testing.assert_allclose(twice.normalized, expected, rtol=0, atol=4e-16)
    assert all(check.ok for check in normalize(x, "midrange").check)


@pytest.mark.parametrize("norm", SCALERS)
def test_zeros_of_either_sign_have_one_order(norm):
    for x in ([0.0, -0.0, 1.0], [-0.0, 0.0, 1.0]):
        for values in normalize(x, norm).statistics.values():
            assert not np.signbit(values).any()


@pytest.mark.slow
@pytest.mark.skipif(not os.path.exists("/proc/self/status"), reason="needs Linux' /proc")
@pytest.mark.parametrize(("norm", "most"), [("robust", 120), ("midrange", 90)])  # by order, and by extremes
def test_a_table_of_long_columns_takes_no_more_memory_than_its_tiles(norm, most, tmp_path):
    x = np.lib.format.open_memmap(tmp_path / "x.npy", "w+", "f4", (1 << 20, 12))
    rng = np.random.default_rng(1)
    values = rng.normal(3, 2, (1 << 16, 12))
    for number, part in enumerate(np.array_split(x, 16)):
        part[...] = values + number / 7
    x.flush()
    arguments = [norm, "-i", tmp_path / "x.npy", "-o", tmp_path / "y.npy", "--show", "stats"]
    assert measure_peak(*arguments) < most  # with the file, of 48 MiB, it would be more
    y, column = np.load(tmp_path / "y.npy", mmap_mode="r"), np.array(x[:, 5])
    np.testing.assert_allclose(y[:, 5], scale(norm, column), rtol=2e-6, atol=2e-7)


# -- beside scikit-learn


def peer(name):
    if os.environ.get("NORMCLI_REQUIRE_PEERS"):
        return import_module(name)
    return pytest.importorskip(name)


OPTIONS = [
    pytest.param("minmax", {"range": (-1, 3)}, "MinMaxScaler", {"feature_range": (-1, 3)}, id="range"),
    pytest.param("robust", {"quantiles": (10, 90)}, "RobustScaler", {"quantile_range": (10, 90)}, id="quantiles"),
    pytest.param("robust", {"quantiles": (60, 99.5)}, "RobustScaler", {"quantile_range": (60, 99.5)}, id="above"),
    pytest.param("robust", {"no_mean": True}, "RobustScaler", {"with_centering": False}, id="robust-no-mean"),
    pytest.param("robust", {"no_scale": True}, "RobustScaler", {"with_scaling": False}, id="robust-no-scale"),
    pytest.param("zscore", {"no_mean": True}, "StandardScaler", {"with_mean": False}, id="zscore-no-mean"),
    pytest.param("zscore", {"no_scale": True}, "StandardScaler", {"with_std": False}, id="zscore-no-scale"),
    pytest.param(
        *("zscore", {"no_mean": True, "no_scale": True}),
        *("StandardScaler", {"with_mean": False, "with_std": False}),
        id="neither",
    ),
]  # fmt: skip


@pytest.mark.peers
@pytest.mark.parametrize(("norm", "options", "name", "theirs"), OPTIONS)
@pytest.mark.parametrize("rows", [1, 6, 201])
def test_options_are_those_of_scikit_learn(norm, options, name, theirs, rows, rng):
    scaler = getattr(peer("sklearn.preprocessing"), name)(**theirs)
    exact = peer("normcli.sklearn").Scaler(norm, **options, like="sklearn")
    x = rng.normal(5.0, 30.0, (rows, 4))
    x[:, 3] = 7.0
    expected = scaler.fit_transform(x)
    stats = fit(x, norm, **options, like="sklearn")
    for y in (normalize(x, norm, **options, like="sklearn").normalized, stats.apply(x), exact.fit_transform(x)):
        np.testing.assert_allclose(y, expected, rtol=1e-12, atol=1e-13)
    back = scaler.inverse_transform(expected)
    np.testing.assert_allclose(stats.invert(expected), back, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize(
    ("options", "center", "scale"),
    [
        ({"quantiles": (10, 90)}, 3.0, 6.2),
        ({"no_scale": True, "quantiles": (10, 90)}, 3.0, 1.0),
        ({"no_mean": True, "quantiles": (0, 100)}, 0.0, 9.0),
    ],
)
def test_robust_with_options(options, center, scale):
    x = np.array([[1.0], [2.0], [3.0], [4.0], [10.0]])
    np.testing.assert_allclose(normalize(x, "robust", **options).normalized, (x - center) / scale, rtol=1e-15)
    stats = fit(x, "robust", **options)
    assert stats.apply(x).tolist() == normalize(x, "robust", **options).normalized.tolist()
    np.testing.assert_allclose(stats.invert(stats.apply(x)), x, rtol=1e-15)


def test_a_column_of_one_value_is_divided_by_1_and_nothing_else():
    x = np.array([[7.0], [7.0]])
    found = normalize(x, "zscore", no_mean=True)
    assert found.normalized.tolist() == x.tolist()
    assert found.warnings == ("group c=0 has the variance 0: its normalized values are x",)
    assert normalize(x, "zscore", no_scale=True).warnings == ()
    assert normalize(x[:1], "zscore", no_mean=True).warnings == (
        "group c=0 holds a single value: its variance is 0 and its normalized value x",
    )


def test_steps_that_are_left_out_have_no_slope():
    x = np.ones((2, 2))
    with pytest.raises(UsageError, match="no backward pass without one of its steps"):
        backward(x, x, "zscore", no_mean=True)


def test_code_to_paste_has_both_steps(normcli, tmp_path):
    np.save(tmp_path / "x.npy", np.arange(6.0).reshape(3, 2))
    normcli("fit", "zscore", tmp_path / "x.npy", "--no-mean", "-o", tmp_path / "s.npz", "-q")
    for framework in ("torchvision", "keras"):
        refused = normcli("merge", tmp_path / "s.npz", "--emit", framework)
        assert (refused.code, refused.out) == (2, "")
        assert f"--emit {framework} has both steps; these statistics were fitted for one" in refused.err


@pytest.mark.parametrize(
    ("norm", "options", "message"),
    [
        ("robust", {"quantiles": (90, 10)}, "no two quantiles from 0 to 100"),
        ("robust", {"quantiles": (10, 101)}, "no two quantiles"),
        ("robust", {"quantiles": (10.0001, 90)}, "with up to 3 decimals"),
        ("robust", {"quantiles": "10,90"}, "is not two numbers"),
        ("zscore", {"quantiles": (10, 90)}, "zscore has no option quantiles"),
        ("zscore", {"no_mean": "yes"}, "is not yes or no"),
        ("minmax", {"range": (0, 2), "gamma": 1.0}, "range says what gamma and beta are"),
    ],
)
def test_options_that_make_no_sense(norm, options, message):
    with pytest.raises(UsageError, match=message):
        normalize(np.ones((3, 2)), norm, **options)
