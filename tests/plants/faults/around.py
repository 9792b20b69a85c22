"""Kernels that treat the residual before the norm, or the gate behind it, otherwise than they should."""

from __future__ import annotations

from typing import Any

import numpy as np

from normcli.dtypes import find_type
from normcli.numerics.elements.activation import Activation
from normcli.numerics.elements.gate import Gated
from tests.plants.faults.kernel import (
    BN,
    EVALUATED,
    FINE,
    GN,
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
from tests.plants.faults.row import Row, coarse, fine


def _sum(k: Kernel, residual: Any) -> Array:
    """Return the sum of the input and a residual, rounded to the dtype of the tensor."""
    return (k.addend.astype(k.work) + residual).astype(k.tensor.dtype)


def _residual(k: Kernel) -> Array:
    return k.other.astype(k.work)


def _gate(k: Kernel, name: str) -> Array:
    return Gated(k.other.astype(np.float64), Activation(name)).activate().astype(k.work)


def _activate(values: Array, k: Kernel) -> Array:
    return Gated(values.astype(np.float64)).activate().astype(k.work)


def _round_first(k: Kernel, dtype: str) -> Array:
    return k.normalize(k.tensor.astype(find_type(dtype)).astype(k.work))


def _quantize_first(k: Kernel) -> Array:
    """Return the norm of x on a grid of 127 steps to its largest number."""
    x = k.tensor.astype(k.work)
    step = np.abs(x).max() / k.work(127)
    return k.normalize(np.round(x / step) * step)


def _drop_first(k: Kernel) -> Array:
    x = k.tensor.astype(k.work)
    return k.normalize(np.where(k.rng.random(k.shape) < 0.1, k.work(0), x / k.work(0.9)))


def _apply(k: Kernel, name: str) -> Array:
    return Gated(k.tensor.astype(np.float64), Activation(name)).activate().astype(k.work)


def _sum_exactly(k: Kernel) -> Array:
    return k.normalize(k.addend.astype(np.float64) + k.other.astype(np.float64))


def _round_gate(k: Kernel, dtype: str) -> Array:
    return _gate(k, "silu").astype(find_type(dtype)).astype(k.work)


def _multiply_first(k: Kernel, factor: Array) -> Array:
    """Return the norm of x times a factor."""
    return k.normalize(k.addend.astype(k.work) * factor)


def _residual_row(ids: str, words: str, run: Any, *layers: Any, **options: Any) -> Row:
    return coarse(ids, words, run, *layers, other="residual", ways=WAYS, **options)


def _gate_row(ids: str, words: str, run: Any, *layers: Any) -> Row:
    return coarse(ids, words, run, *layers, other="gate", ways=WAYS)


def _before_row(ids: str, words: str, run: Any, *layers: Any, **options: Any) -> Row:
    return coarse(ids, words, run, *layers, other="gate before", **{"ways": WAYS, **options})


WAYS = (
    Way("float32", 0), Way("float32", 30), Way("float16", 0), Way("bfloat16", 0), Way("float64", 3),
    Way("float32", 3), Way("float16", 3),
)  # fmt: skip
CENTRED = (Way("float32", 0), Way("float16", 0), Way("bfloat16", 0), Way("float64", 0))
HALVES = (Way("float16", 30), Way("bfloat16", 3), Way("bfloat16", 30))

ROWS = (
    fine(
        "before-input-scaled", "norm of x / 255", lambda k: k.finish(square=k.square + (255.0**2 - 1.0) * k.eps),
        LN, LN_ROWS, BN, scale=60.0, really={"eps": 255.0**2 * 1e-5},
    ),
    fine("before-input-rounded", "norm of x in float16", lambda k: _round_first(k, "float16"), LN, RMS, BN, LN_ROWS, EVALUATED),
    fine("before-input-rounded", "norm of x in bfloat16", lambda k: _round_first(k, "bfloat16"), LN_BARE, RMS, BN, RMS_ROWS),
    coarse("before-input-rounded", "norm of x in int8", _quantize_first, LN, RMS, BN, LN_ROWS, ways=WAYS[:5]),
    coarse("before-activation", "norm of relu(x)", lambda k: k.normalize(np.maximum(k.tensor, 0)), LN, RMS, BN, LN_ROWS, GN, ways=CENTRED),
    coarse("before-activation", "norm of gelu(x)", lambda k: k.normalize(_apply(k, "gelu")), LN, RMS, BN, LN_ROWS, ways=CENTRED),
    coarse("before-activation", "norm of |x|", lambda k: k.normalize(np.abs(k.tensor)), LN, BN, LN_ROWS, ways=CENTRED),
    coarse("before-dropout", "norm of x after a dropout", _drop_first, LN, RMS, BN, LN_ROWS, ways=CENTRED),
    _residual_row("before-residual-scaled", "norm of x + 0.5 residual", lambda k: k.normalize(_sum(k, 0.5 * _residual(k))), LN, RMS, BN, LN_ROWS),
    _residual_row("before-residual-missing", "norm of x without residual", lambda k: k.normalize(k.addend), LN, RMS, BN, LN_ROWS),
    _residual_row("before-residual-missing", "norm of the residual", lambda k: k.normalize(k.other), LN_BARE, RMS, EVALUATED),
    _residual_row("before-residual-twice", "norm of x + 2 residual", lambda k: k.normalize(_sum(k, 2 * _residual(k))), LN, RMS, BN, LN_ROWS),
    _residual_row("before-residual-subtracted", "norm of x − residual", lambda k: k.normalize(_sum(k, -_residual(k))), LN, RMS, BN, LN_ROWS),
    coarse("before-residual-rounding", "norm of the exact sum", _sum_exactly, LN, BN, LN_ROWS, other="residual", ways=HALVES),
    _residual_row("after-residual-added", "y + residual", lambda k: k.normalize(k.addend) + _residual(k), LN, RMS, LN_ROWS, BN),
    _residual_row("after-residual-added", "norm of x + residual, + residual", lambda k: k.y + _residual(k), LN, RMS_ROWS),
    _gate_row("before-gate", "norm of x · silu(z)", lambda k: k.normalize(k.tensor.astype(k.work) * _gate(k, "silu")), RMS, RMS_ROWS, LN),
    _gate_row("after-gate-missing", "norm without its gate", lambda k: k.normalize(k.tensor), RMS, LN, QK, BN),
    _gate_row("after-gate-bare", "norm · z", lambda k: k.normalize(k.tensor) * _gate(k, "none"), RMS, LN, QK),
    _gate_row("after-gate-activation", "norm · sigmoid(z)", lambda k: k.normalize(k.tensor) * _gate(k, "sigmoid"), RMS, LN_ROWS),
    _gate_row("after-gate-exchanged", "norm of z, silu(x)", lambda k: k.normalize(k.other) * _activate(k.tensor, k), RMS, LN, QK),
    _gate_row("after-gate-norm", "silu(norm) · z", lambda k: _activate(k.normalize(k.tensor), k) * _gate(k, "none"), RMS, LN),
    _gate_row("after-gate-rolled", "norm · silu(z), rows rolled", lambda k: k.normalize(k.tensor) * np.roll(_gate(k, "silu"), 1, 0), RMS, LN),
    _gate_row("after-gate-activation", "norm · gelu(z)", lambda k: k.normalize(k.tensor) * _gate(k, "gelu"), RMS, LN_ROWS),
    fine("after-gate-rounded", "norm · silu(z) in bfloat16", lambda k: k.normalize(k.tensor) * _round_gate(k, "bfloat16"), RMS, LN, QK, BN, other="gate"),
    fine("after-gate-rounded", "norm · silu(z) in float16", lambda k: k.normalize(k.tensor) * _round_gate(k, "float16"), RMS_ROWS, LN, other="gate"),
    _gate_row("stats-centred", "layer normalization · silu(z)", lambda k: k.finish(k.batch_mean, k.batch_square) * _gate(k, "silu"), RMS, RMS_ROWS, QK),
    _gate_row("stats-not-centred", "no mean, mean square, · silu(z)", lambda k: k.finish(0.0, k.square_about(0.0)) * _gate(k, "silu"), LN, LN_ROWS),
    _before_row("after-gate", "norm · silu(z), not before", lambda k: k.normalize(k.addend) * _gate(k, "silu"), RMS, LN, RMS_ROWS, BN),
    _before_row("before-gate-missing", "norm of x without gate", lambda k: k.normalize(k.addend), RMS, LN, RMS_ROWS),
    _before_row("before-gate-bare", "norm of x · z", lambda k: _multiply_first(k, _gate(k, "none")), RMS, LN_ROWS, QK),
    _before_row("before-gate-activation", "norm of x · sigmoid(z)", lambda k: _multiply_first(k, _gate(k, "sigmoid")), RMS, LN),
    _before_row("before-gate-exchanged", "norm of silu(x) · z", lambda k: k.normalize(_activate(k.addend, k) * _gate(k, "none")), RMS, LN),
    _before_row("before-gate-rolled", "norm of x · silu(z), rows rolled", lambda k: _multiply_first(k, np.roll(_gate(k, "silu"), 1, 0)), RMS, LN),
    _before_row("before-gate-rounded", "norm of x · silu(z) in bfloat16", lambda k: _multiply_first(k, _round_gate(k, "bfloat16")), RMS, LN, QK, ways=FINE),
)  # fmt: skip
