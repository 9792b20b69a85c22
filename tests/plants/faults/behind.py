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
)
from tests.plants.faults.row import coarse


def _gelu(y: Array) -> Array:
    return 0.5 * y * (1 + np.vectorize(math.erf, otypes=[y.dtype])(y / math.sqrt(2)))


def _gelu_by_tanh(y: Array) -> Array:
    return 0.5 * y * (1 + np.tanh(math.sqrt(2 / math.pi) * (y + 0.044715 * y**3)))


def _sigmoid(y: Any) -> Any:
    return 1 / (1 + np.exp(-y))


def _other(k: Kernel) -> Array:
    return k.other.astype(k.work)


def _gate(k: Kernel) -> Array:
    """Return x̂ · silu(z)."""
    z = _other(k)
    return k.y * z * _sigmoid(z)


def _gate_before(k: Kernel) -> Array:
    """Return the norm of x · silu(z)."""
    z = _other(k)
    x = k.tensor.astype(k.work) * z * _sigmoid(z)
    return k.finish(x=x, square=np.mean(x * x, k.axes, keepdims=True))


"""Half precision whose values are kept in float32 after."""

ROWS = (
    coarse("after-input-added", "y + x", lambda k: k.y + k.tensor.astype(k.work), LN, RMS, BN, LN_ROWS, GN),
    coarse("after-residual-added", "y + residual", lambda k: k.y + _other(k), LN, RMS, LN_ROWS, other="residual"),
    coarse("after-relu", "relu(y)", lambda k: np.maximum(k.y, 0), BN, LN, GN, RMS, EVALUATED, IN),
    coarse("after-leaky-relu", "leaky relu(y)", lambda k: np.where(k.y < 0, 0.01 * k.y, k.y), LN, BN, LN_ROWS),
    coarse("after-absolute", "|y|", lambda k: np.abs(k.y), LN, BN, GN),
    coarse("after-gelu", "gelu(y)", lambda k: _gelu(k.y), LN, BN, RMS),
    coarse("after-gelu", "gelu(y) by tanh", lambda k: _gelu_by_tanh(k.y), LN, RMS_ROWS),
    coarse("after-silu", "silu(y)", lambda k: k.y * _sigmoid(k.y), BN, GN, RMS),
    coarse("after-tanh", "tanh(y)", lambda k: np.tanh(k.y), LN, BN, LN_ROWS),
    coarse("after-sigmoid", "sigmoid(y)", lambda k: _sigmoid(k.y), LN_ROWS, BN),
    coarse("after-clipped", "y between −1 and 1", lambda k: np.clip(k.y, -1, 1), LN, BN, LN_BARE),
    coarse("after-clipped", "y between 0 and 1.5", lambda k: np.clip(k.y, 0, 1.5), BN, GN),
    coarse("after-clipped", "y up to 2", lambda k: np.minimum(k.y, 2), LN),
    coarse("after-gated", "y · silu(z)", _gate, RMS, LN, QK, other="gate"),
    coarse("after-gated", "norm of x · silu(z)", _gate_before, RMS, RMS_ROWS, other="gate"),
    coarse(
        "after-cast", "y rounded to bfloat16", lambda k: k.y.astype(find_type("bfloat16")).astype(k.work),
        LN, BN, RMS, LN_ROWS, ways=FINE,
    ),
    coarse(
        "after-cast", "y rounded to float16", lambda k: k.y.astype(np.float16).astype(k.work), LN, GN, ways=FINE,
    ),
)  # fmt: skip
