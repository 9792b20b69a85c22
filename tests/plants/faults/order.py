"""Kernels whose result is right, but in another order."""

from __future__ import annotations

import numpy as np

from tests.plants.faults.kernel import (
    ADALN,
    BN,
    BN_ROWS,
    BN_SQUARE,
    EVALUATED,
    GN,
    IN,
    LN,
    LN_BARE,
    LN_ROWS,
    LN_SQUARE,
    RMS,
    Array,
    Kernel,
)
from tests.plants.faults.row import coarse


def exchange(values: Array, axis: int, first: int, second: int) -> Array:
    """Return values with two indices of an axis exchanged."""
    order = np.arange(values.shape[axis])
    order[[first, second]] = second, first
    return np.take(values, order, axis)


def _permute(k: Kernel, axis: int) -> Array:
    return np.take(k.y, k.rng.permutation(k.shape[axis]), axis)


def _read_as_last(k: Kernel) -> Array:
    """Return the norm of memory that is taken to have its channels last, as it lies in memory."""
    n, c, *rest = k.shape
    x = k.x.reshape(n, *rest, c)
    axes = tuple(range(x.ndim - 1))
    gamma, beta = k.gamma.reshape(-1), k.beta.reshape(-1)
    y = (x - x.mean(axes)) / np.sqrt(x.var(axes) + k.eps) * gamma + beta
    return y.reshape(k.shape)


def _read_as_first(k: Kernel) -> Array:
    """Return the norm of memory that has its channels last, and is taken to have them first."""
    order = (0, *range(2, k.x.ndim), 1)
    x = k.x.transpose(order).reshape(k.shape)
    mean, square = (f(x, k.axes, keepdims=True) for f in (np.mean, np.var))
    y = (x - mean) / np.sqrt(square + k.eps) * k.gamma + k.beta
    return y.reshape([k.shape[axis] for axis in order]).transpose(np.argsort(order))


ROWS = (
    coarse("order-rolled", "tokens rolled by one", lambda k: np.roll(k.y, 1, 1), LN, RMS, ADALN, LN_BARE),
    coarse("order-rolled", "rows rolled by one", lambda k: np.roll(k.y, 1, 0), LN_ROWS, BN, GN),
    coarse("order-rolled", "rows rolled back by 3", lambda k: np.roll(k.y, -3, 0), LN_ROWS, BN_ROWS, LN),
    coarse("order-rolled", "columns rolled by one", lambda k: np.roll(k.y, 1, -1), LN, BN, IN, RMS),
    coarse("order-rolled", "tokens rolled by half", lambda k: np.roll(k.y, k.shape[1] // 2, 1), LN, RMS),
    coarse("order-reversed", "tokens reversed", lambda k: k.y[:, ::-1], LN, RMS, LN_BARE),
    coarse("order-reversed", "rows reversed", lambda k: k.y[::-1], LN_ROWS, BN, GN, BN_ROWS),
    coarse("order-reversed", "columns reversed", lambda k: k.y[..., ::-1], LN, BN, EVALUATED, RMS),
    coarse("order-exchanged", "rows 2 and 4 exchanged", lambda k: exchange(k.y, 0, 2, 4), LN, BN, LN_ROWS, BN_ROWS),
    coarse("order-exchanged", "tokens 3 and 7 exchanged", lambda k: exchange(k.y, 1, 3, 7), RMS, LN, LN_BARE, ADALN),
    coarse("order-exchanged", "channels 1 and 2 exchanged", lambda k: exchange(k.y, 1, 1, 2), BN, GN, IN),
    coarse("order-exchanged", "features 5 and 6 exchanged", lambda k: exchange(k.y, -1, 5, 6), LN, RMS),
    coarse("order-permuted", "tokens permuted", lambda k: _permute(k, 1), LN, RMS, LN_BARE),
    coarse("order-permuted", "rows permuted", lambda k: _permute(k, 0), LN_ROWS, BN, BN_ROWS),
    coarse("order-permuted", "features permuted", lambda k: _permute(k, -1), LN, LN_ROWS),
    coarse("order-transposed", "batch and tokens transposed", lambda k: k.y.swapaxes(0, 1), LN_SQUARE, times=2),
    coarse("order-transposed", "height and width transposed", lambda k: k.y.swapaxes(2, 3), BN_SQUARE, BN, GN, IN),
    coarse(
        "order-memory", "written with channels last, read with channels first",
        lambda k: k.y.transpose(0, 2, 3, 1).reshape(k.shape), BN, GN, IN, EVALUATED,
    ),
    coarse(
        "order-memory", "written with channels first, read with channels last",
        lambda k: k.y.reshape(k.shape[0], *k.shape[2:], k.shape[1]).transpose(0, 3, 1, 2), BN, IN,
    ),
    coarse("order-memory stats-other-axes", "memory that has channels last taken to have them first", _read_as_first, BN, BN_SQUARE),
    coarse("order-memory stats-other-axes", "memory taken to have channels last", _read_as_last, BN, BN_SQUARE),
)  # fmt: skip
