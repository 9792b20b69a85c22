"""Activations of gates and their slopes in doubles, with bounds: pairs are asked where these do not decide.

The formulas are those of `activation`.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from normcli.numerics.deciding import ACTIVATION
from normcli.numerics.elements.activation import Activation, find_complement

if TYPE_CHECKING:
    from normcli.dtypes import Floats

_LOST = 2.0**-900
"""Upper bound of the error of a result that is so small that e⁻ᵗ, or the C library's erfc, loses digits."""

_CUBIC, _ROOT, _DENSITY = 0.044715, math.sqrt(8.0 / math.pi), 1.0 / math.sqrt(2.0 * math.pi)

_FURTHEST_BENT, _FURTHEST_NORMAL = 1e4, 45.0
"""Beyond these z, σ(t) of gelu-tanh and the tails of the normal law are 0 or 1."""


def estimate(activation: Activation, z: Floats, *, slope: bool) -> tuple[Floats, Floats]:
    """Return act(z), or act′(z) if `slope`, of finite doubles, and bounds of the errors; 0 where exact."""
    if activation in (Activation.NONE, Activation.RELU):
        is_linear = activation is Activation.NONE
        if slope:
            return np.where((z > 0.0) | is_linear, 1.0, 0.0), np.zeros_like(z)
        return z if is_linear else np.maximum(z, 0.0), np.zeros_like(z)
    value, size = (_find_slope if slope else _find_value)(activation, z)
    return value, np.where(z == 0.0, 0.0, ACTIVATION.error * size + _LOST)


def _find_value(activation: Activation, z: Floats) -> tuple[Floats, Floats]:
    """Return act(z) in doubles, and a size for each: the error is at most `ACTIVATION.error` · size."""
    match activation:
        case Activation.TANH:
            value = np.tanh(z)
            return value, np.abs(value)
        case Activation.GELU:
            value = z * _find_normal(z)
            return value, np.abs(value) * _spread_normal(z)
        case Activation.GELU_TANH:
            t, _ = _bend(z)
            value = z * _find_shares(t)[0]
            return value, np.abs(value) * (1.0 + np.maximum(-t, 0.0))
        case _:
            share = _find_shares(z)[0]
            value = share if activation is Activation.SIGMOID else z * share
            return value, np.abs(value)


def _find_slope(activation: Activation, z: Floats) -> tuple[Floats, Floats]:
    """Return act′(z) in doubles, and a size for each: the error is at most `ACTIVATION.error` · size."""
    match activation:
        case Activation.SIGMOID | Activation.TANH:
            is_tanh = activation is Activation.TANH  # tanh z is 2σ(2z) − 1
            share, rest = _find_shares(2.0 * z if is_tanh else z)
            value = (4.0 if is_tanh else 1.0) * share * rest
            return value, value
        case Activation.GELU:
            share, near = _find_normal(z), np.clip(z, -_FURTHEST_NORMAL, _FURTHEST_NORMAL)
            term = near * (_DENSITY * np.exp(near * near / -2.0))
            return share + term, (share + np.abs(term)) * (1.0 + near * near / 4.0)
        case _:
            t, by = _bend(z) if activation is Activation.GELU_TANH else (z, 1.0)
            share, rest = _find_shares(t)
            term = np.clip(z, -_FURTHEST_BENT, _FURTHEST_BENT) * by * rest
            spread = 1.0 if t is z else 1.0 + np.minimum(np.abs(t), 1000.0)
            return share * (1.0 + term), share * (1.0 + np.abs(term)) * spread


def _bend(z: Floats) -> tuple[Floats, Floats]:
    """Return t(z) = √(8/π) · (z + 0.044715 z³) and t′(z); gelu-tanh is z times the logistic function of t."""
    near = np.clip(z, -_FURTHEST_BENT, _FURTHEST_BENT)
    bent = _CUBIC * (near * near)
    return _ROOT * (near * (1.0 + bent)), _ROOT * (1.0 + 3.0 * bent)


def _find_shares(t: Floats) -> tuple[Floats, Floats]:
    """Return σ(t) and σ(−t), which is 1 − σ(t): nothing cancels."""
    small = np.exp(-np.abs(t))
    total, is_negative = 1.0 + small, t < 0.0
    more, less = 1.0 / total, small / total
    return np.where(is_negative, less, more), np.where(is_negative, more, less)


def _find_normal(z: Floats) -> Floats:
    """Return Φ(z) by the C library's erfc."""
    twice: Floats = find_complement(z * -math.sqrt(0.5))
    return twice / 2.0


def _spread_normal(z: Floats) -> Floats:
    """Return the factor of `ACTIVATION.error` in Φ(z): it grows with z² left of 0, where Φ(z) is small."""
    left = np.clip(-z, 0.0, _FURTHEST_NORMAL)
    return 1.0 + left * left / 4.0
