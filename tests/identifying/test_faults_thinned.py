"""Dropped and quantized values are named with their numbers, and no others."""

from __future__ import annotations

import numpy as np
import pytest

from normcli.dtypes import find_type
from tests.identifying.faulty import ask, draw, draw_affine, name, standardize
from tests.marks import costly, sampled

GAMMA, BETA = draw_affine(64)


def make(dtype, mean, shape=(24, 64)):
    x = draw(shape, dtype, mean)
    return x, standardize(x) * GAMMA + BETA


@sampled
@pytest.mark.parametrize(("dtype", "mean"), [("f4", 0.0), ("f4", 30.0), ("f2", 0.0), ("f2", 30.0), ("f8", 3.0)])
@pytest.mark.parametrize("number", [0.1, 0.125, 0.5])
@pytest.mark.slow
def test_a_dropout_and_a_grid_are_named_with_their_number(number, dtype, mean):
    x, y = make(dtype, mean)
    kept = np.random.default_rng(3).random(y.shape) >= number
    assert name("ln", x, y * kept / (1 - number), GAMMA, BETA)[1] == [f"a dropout of {number} follows"]
    grid = np.round(y / number) * number
    assert name("ln", x, grid, GAMMA, BETA)[1] == [f"y is rounded to steps of {number}"]


def test_ends_of_a_grid_cut():
    x, y = make("f4", 0.0)
    stored = np.clip(np.round(y / 0.02) + 10, -128, 127)
    assert name("ln", x, (stored - 10) * np.float32(0.02), GAMMA, BETA)[1] == ["y is rounded to steps of 0.02"]


@pytest.mark.parametrize("kind", ["float8_e4m3fn", "float8_e5m2"])
@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16"])
def test_numbers_of_float8_are_named(kind, dtype):
    short = getattr(pytest.importorskip("ml_dtypes"), kind)
    x, y = make(find_type(dtype), 3.0)
    found = name("ln", x, y.astype(short).astype("f4"), GAMMA, BETA)
    assert found == (["after-quantized"], [f"y is rounded to {kind.removesuffix('fn')}"])


FEW = {
    "bits": lambda rng, shape: rng.integers(0, 2, shape),
    "signs": lambda rng, shape: rng.integers(-1, 2, shape),
    "bytes": lambda rng, shape: rng.integers(0, 256, shape),
    "decimals": lambda rng, shape: rng.normal(size=shape).round(1),
}
"""Data of few values."""


@costly
@pytest.mark.slow
@pytest.mark.parametrize("kind", FEW)
def test_data_of_few_values_are_not_quantized(kind):
    for shape, dtype in (((6, 16), "f4"), ((40, 32), "f2")):
        x = FEW[kind](np.random.default_rng(2), shape).astype("f4")
        right = standardize(x)
        others = (x, x - x.mean(-1, keepdims=True), np.sign(right), right * 1.1, standardize(x, eps=0.1))
        for y in (right, *others):
            assert not [c for c in ask("ln", x, y, rounded=dtype) if c.fault.id == "after-quantized"]


@pytest.mark.slow
@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_half_precision_is_no_grid(dtype):
    x, y = make(find_type(dtype), 3.0)
    assert ask("ln", x, y, GAMMA, BETA) == ()
    for wrong in (y * 1.1, standardize(x, eps=0.3) * GAMMA + BETA):
        claims = ask("ln", x, wrong, GAMMA, BETA)
        assert not [claim for claim in claims if claim.fault.id == "after-quantized"]
