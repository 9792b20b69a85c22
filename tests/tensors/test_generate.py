from __future__ import annotations

import numpy as np
import pytest

from normcli.errors import DataError, UsageError
from normcli.tensors.random.generate import draw_affine, generate
from normcli.tensors.random.recipe import RNGS, Recipe

LEGACY, NEW = np.random.RandomState, np.random.default_rng
BEYOND = Recipe((2,), low=65519, high=65521, dtype="float16")


@pytest.mark.all_quick
@pytest.mark.parametrize(
    ("recipe", "expected"),
    [
        pytest.param(Recipe((2, 3)), LEGACY(42).randint(0, 10, (2, 3)), id="default"),
        pytest.param(Recipe((20,), dist="normal", seed=3), LEGACY(3).randn(20), id="legacy normal"),
        pytest.param(
            Recipe((4,), "uniform", low=-1, high=2), LEGACY(42).uniform(-1, 2, 4), id="legacy uniform"
        ),
        pytest.param(Recipe((9,), rng="numpy", seed=7), NEW(7).integers(0, 10, 9), id="numpy randint"),
        pytest.param(Recipe((9,), "normal", rng="numpy"), NEW(42).standard_normal(9), id="numpy normal"),
        pytest.param(Recipe((2, 2), dist="arange", low=5), [[5, 6], [7, 8]], id="arange"),
        pytest.param(Recipe((2,), dist="arange", skip=3), [3, 4], id="arange, skipped"),
        pytest.param(Recipe((0, 3)), np.zeros((0, 3)), id="empty"),
        pytest.param(Recipe(()), 6, id="0-D"),
    ],
)
def test_generate(recipe, expected):
    values = generate(recipe).values
    np.testing.assert_array_equal(values, expected)
    assert values.shape == recipe.shape


@pytest.mark.all_quick
@pytest.mark.parametrize("rng", RNGS)
@pytest.mark.parametrize("dist", ["randint", "uniform", "normal"])
def test_skipping_is_drawing_earlier(rng, dist, monkeypatch):
    monkeypatch.setattr("normcli.tensors.random.generate._SKIPPED_AT_ONCE", 7)
    both = generate(Recipe((66,), rng=rng, dist=dist)).values
    np.testing.assert_array_equal(generate(Recipe((50,), rng=rng, dist=dist, skip=16)).values, both[16:])


def test_uniform_values_of_numpy_are_passed_over_at_once():
    ahead = np.random.default_rng(3)
    ahead.bit_generator.advance(10**30)
    values = generate(Recipe((4,), rng="numpy", dist="uniform", seed=3, skip=10**30)).values
    np.testing.assert_array_equal(values, ahead.uniform(0, 1, 4))


@pytest.mark.parametrize("rng", ["numpy", "numpy-legacy"])
@pytest.mark.parametrize(
    ("dist", "low", "high", "dtype"),
    [
        pytest.param("uniform", 0, 1, "float16", id="below high"),
        pytest.param("uniform", 0.1, 0.11, "float16", id="from low on"),
        pytest.param("uniform", 1, 1.007, "bfloat16", id="bfloat16"),
        pytest.param("uniform", 1, 1 + 2**-22, "float32", id="float32"),
        pytest.param("randint", 0, 4096, "float16", id="whole numbers"),
        pytest.param("randint", 2**53 - 2, 2**53 + 4, "float64", id="whole numbers in float64"),
    ],
)
def test_rounding_to_a_dtype_stays_within_the_bounds(dist, low, high, dtype, rng):
    if dtype == "bfloat16":
        pytest.importorskip("ml_dtypes")
    recipe = Recipe((99999,), dist=dist, low=low, high=high, rng=rng)
    values, drawn = (generate(recipe._replace(dtype=name)).values for name in (dtype, None))
    assert values.dtype.name == dtype
    assert low <= float(values.min()) <= float(values.max()) < high
    rounded = drawn.astype(values.dtype).astype("float64")
    outside = (rounded < low) | (rounded >= high)
    assert 0 < outside.sum() < outside.size
    np.testing.assert_array_equal(values[~outside], rounded[~outside])


def test_a_dtype_may_have_no_number_between_the_bounds():
    with pytest.raises(UsageError, match="^float16 has no number from low 1.0001 to below high 1.0002"):
        generate(Recipe((3,), "uniform", low=1.0001, high=1.0002, dtype="float16"))


def test_gamma_then_beta_come_from_one_stream():
    drawn = draw_affine("numpy-legacy", 5, (3,), ("gamma", "beta"), None)
    np.testing.assert_array_equal([*drawn["gamma"], *drawn["beta"]], np.random.RandomState(5).randn(6))


def test_a_gamma_beyond_memory_is_refused():
    with pytest.raises(DataError, match=r"gamma and beta of the shape \(1152921504606846976,\) needs .* GiB"):
        draw_affine("numpy", 5, (2**60,), ("gamma", "beta"), None)


@pytest.mark.all_quick
@pytest.mark.parametrize(
    ("recipe", "message"),
    [
        pytest.param(Recipe((2,), dist="cauchy"), "none of randint", id="dist"),
        pytest.param(Recipe((2,), rng="jax"), "none of numpy", id="rng"),
        pytest.param(Recipe((2,), seed=-1), "NumPy takes 0 to 4294967295", id="seed"),
        pytest.param(Recipe((2,), seed=2**32), "NumPy takes", id="legacy seed too large"),
        pytest.param(Recipe((2,), rng="torch", seed=2**64), "torch takes", id="torch seed"),
        pytest.param(Recipe((2,), low=5, high=5), "needs low < high", id="nothing between"),
        pytest.param(Recipe((2,), high=2.5), "whole numbers", id="half"),
        pytest.param(Recipe((2,), high=float("inf")), "not a finite number", id="infinite"),
        pytest.param(Recipe((2,), low=-(10**400)), "not a finite number", id="400 digits"),
        pytest.param(Recipe((2,), "arange", low=2**63), "within 64 bits", id="arange beyond 64 bits"),
        pytest.param(Recipe((2,), skip=10**12), "1e.10 values at most, as randint", id="endless skip"),
        pytest.param(Recipe((2,), "uniform", skip=10**12), "uniform of numpy-legacy", id="legacy skip"),
        pytest.param(Recipe((2,), "normal", rng="numpy", skip=10**12), "normal of numpy", id="normal skip"),
        pytest.param(BEYOND, "up to 65504; randint goes from 65519 to 65520", id="beyond float16"),
        pytest.param(Recipe((2,), "uniform", low=-1e5, dtype="float16"), "up to 65504", id="below float16"),
        pytest.param(Recipe((6,), "arange", low=65500, dtype="float16"), "to 65505", id="arange in float16"),
        pytest.param(Recipe((2,), "uniform", low=3), "low ≤ high", id="uniform"),
        pytest.param(Recipe((2,), "normal", low=3), "normal has no low", id="normal's low"),
        pytest.param(Recipe((2,), "arange", high=3), "arange has no high", id="arange's high"),
        pytest.param(Recipe((-2,)), "negative", id="negative length"),
        pytest.param(Recipe((1,) * 33), "up to 32 lengths", id="too many axes"),
        pytest.param(Recipe((2,), skip=-1), "skip -1", id="negative skip"),
        pytest.param(Recipe((20,), "normal", rng="torch", dtype="float16"), "float32 or float64", id="half"),
    ],
)
def test_what_cannot_be_generated(recipe, message):
    with pytest.raises(UsageError, match=message):
        generate(recipe)


@pytest.mark.all_quick
@pytest.mark.parametrize(
    ("shape", "message"),
    [
        pytest.param((10**6, 10**6), "7.45e.03 GiB of memory; this machine has", id="too big"),
        pytest.param((10**12, 0), "GiB of memory", id="no values and too many groups"),
        pytest.param((10**400,), "far too many GiB", id="400 digits of length"),
    ],
)
def test_what_no_memory_holds(shape, message):
    with pytest.raises(DataError, match=message):
        generate(Recipe(shape))
