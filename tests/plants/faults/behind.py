"""Kernels that do something behind the right result, or store it in fewer digits."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from normcli.dtypes import find_type
from tests.plants.faults.kernel import (
    BN,
    EVALUATED,
    FINE,
    GN,
    IN,
    LN,
    LN_BARE,
    LN_ROWS,
    QK,
    RMS,
    RMS_ROWS,
    Array,
    Kernel,
    Way,
)
from tests.plants.faults.row import coarse


def _gelu(y: Array) -> Array:
    return 0.5 * y * (1 + np.vectorize(math.erf, otypes=[y.dtype])(y / math.sqrt(2)))


def _gelu_by_tanh(y: Array) -> Array:
    return 0.5 * y * (1 + np.tanh(math.sqrt(2 / math.pi) * (y + 0.044715 * y**3)))


def _sigmoid(y: Any) -> Any:
    return 1 / (1 + np.exp(-y))


def _gate(k: Kernel) -> Array:
    """Return y · silu(x)."""
    x = k.tensor.astype(k.work)
    return k.y * x * _sigmoid(x)


def _drop(k: Kernel, p: float) -> Array:
    return np.where(k.rng.random(k.shape) < p, 0, k.y / k.work(1 - p)).astype(k.work)


def _quantize(k: Kernel, most: int, zero: int = 0) -> Array:
    """Return y on a grid of 2 · most steps, most of it used."""
    step = k.work(np.abs(k.y).max() / (0.9 * (most - abs(zero))))
    return np.clip(np.round(k.y / step) + zero, -most - 1, most) * step - zero * step


def _quantize_each(k: Kernel) -> Array:
    """Return y on a grid of 127 steps to the largest number of each group."""
    step = np.abs(k.y).max(k.axes, keepdims=True) / k.work(127)
    return np.round(k.y / step) * step


def _shorten(k: Kernel, bits: int, least: int) -> Array:
    """Return y with so many bits behind the first."""
    unit = 2.0 ** (np.maximum(np.floor(np.log2(np.maximum(np.abs(k.y), 1e-30))), least) - bits)
    return (np.round(k.y / unit) * unit).astype(k.work)


GRIDS = tuple(Way(dtype, offset) for offset in (0, 30) for dtype in ("float32", "float16", "float64"))
"""What int8 and float8 are coarse beside."""

ROWS = (
    coarse("after-input-added", "y + x", lambda k: k.y + k.tensor.astype(k.work), LN, RMS, BN, LN_ROWS, GN),
    coarse("after-relu", "relu(y)", lambda k: np.maximum(k.y, 0), BN, LN, GN, RMS, EVALUATED, IN),
    coarse("after-leaky-relu", "leaky relu(y)", lambda k: np.where(k.y < 0, 0.01 * k.y, k.y), LN, BN, LN_ROWS),
    coarse("after-absolute", "|y|", lambda k: np.abs(k.y), LN, BN, GN),
    coarse("after-gelu", "gelu(y)", lambda k: _gelu(k.y), LN, BN, RMS),
    coarse("after-gelu", "gelu(y) by tanh", lambda k: _gelu_by_tanh(k.y), LN, RMS_ROWS),
    coarse("after-silu", "silu(y)", lambda k: k.y * _sigmoid(k.y), BN, GN, RMS),
    coarse("after-tanh", "tanh(y)", lambda k: np.tanh(k.y), LN, BN, LN_ROWS),
    coarse("after-sigmoid", "sigmoid(y)", lambda k: _sigmoid(k.y), LN_ROWS, BN),
    coarse("after-activation", "elu(y)", lambda k: np.where(k.y > 0, k.y, np.expm1(np.minimum(k.y, 0))), LN, BN, GN),
    coarse("after-clipped", "y between −1 and 1", lambda k: np.clip(k.y, -1, 1), LN, BN, LN_BARE),
    coarse("after-clipped", "y between 0 and 1.5", lambda k: np.clip(k.y, 0, 1.5), BN, GN),
    coarse("after-clipped", "y up to 2", lambda k: np.minimum(k.y, 2), LN),
    coarse("after-gated", "y · silu(x)", _gate, RMS, LN, QK),
    coarse("after-dropout", "dropout of 0.1", lambda k: _drop(k, 0.1), LN, RMS, BN, GN, LN_ROWS, EVALUATED),
    coarse("after-dropout", "dropout of 0.5", lambda k: _drop(k, 0.5), LN_BARE, RMS_ROWS),
    coarse("after-quantized", "y in int8", lambda k: _quantize(k, 127), LN, RMS, LN_BARE, BN, RMS_ROWS, ways=GRIDS),
    coarse("after-quantized", "y in int8, a scale each group", _quantize_each, LN, RMS, LN_BARE, RMS_ROWS, ways=GRIDS),
    coarse("after-quantized", "y in uint8 with a zero point", lambda k: _quantize(k, 127, 20), LN, GN, ways=GRIDS),
    coarse("after-quantized", "y in int8 with ends that cut", lambda k: _quantize(k, 127, 60), LN, BN, ways=GRIDS),
    coarse("after-quantized", "y to 3 decimals", lambda k: np.round(k.y, 3), LN, LN_ROWS, ways=FINE),
    coarse("after-quantized", "y in float8 e4m3", lambda k: _shorten(k, 3, -6), LN, RMS, BN, ways=GRIDS),
    coarse("after-quantized", "y in float8 e5m2", lambda k: _shorten(k, 2, -14), LN, RMS_ROWS, ways=GRIDS),
    coarse(
        "after-cast", "y rounded to bfloat16", lambda k: k.y.astype(find_type("bfloat16")).astype(k.work),
        LN, BN, RMS, LN_ROWS, ways=FINE,
    ),
    coarse(
        "after-cast", "y rounded to float16", lambda k: k.y.astype(np.float16).astype(k.work), LN, GN, ways=FINE,
    ),
)  # fmt: skip
