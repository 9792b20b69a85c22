"""Kernels that are right but for some values, an index or a region."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tests.plants.faults.kernel import ADALN, BN, BN_ROWS, GN, IN, LN, LN_BARE, LN_ROWS, RMS, Array, Kernel
from tests.plants.faults.row import coarse


def _change(k: Kernel, index: Any, fill: Callable[[Kernel], Any]) -> Array:
    """Return y with other values at an index."""
    y = k.y
    y[index] = np.broadcast_to(fill(k), y.shape)[index]
    return y


def _input(k: Kernel) -> Array:
    return k.tensor.astype(k.work)


def _divide_by_zero(k: Kernel) -> Array:
    return np.where(k.rng.random(k.shape) < 0.2, np.nan, np.inf)


def _zero(k: Kernel) -> float:
    return 0.0


def _stale(k: Kernel) -> Array:
    """Return what another call left in memory."""
    return k.rng.normal(0.0, 1.0, k.shape)


def _scatter(k: Kernel, count: int, fill: Callable[[Kernel], Any]) -> Array:
    places = k.rng.choice(k.tensor.size, count, replace=False)
    return _change(k, np.unravel_index(places, k.shape), fill)


def _choose_rows(k: Kernel) -> Array:
    return k.rng.permutation(k.shape[0])[: k.shape[0] // 2]


ROWS = (
    coarse("where-values", "3 values of another call", lambda k: _scatter(k, 3, _stale), LN, BN, RMS),
    coarse("where-values", "one value 0", lambda k: _scatter(k, 1, _zero), LN_ROWS, GN, BN),
    coarse("where-nan", "5 values NaN", lambda k: _scatter(k, 5, lambda k: np.nan), LN, RMS, BN_ROWS),
    coarse("where-nan", "row 2 is NaN", lambda k: _change(k, np.s_[2], lambda k: np.nan), LN, BN, RMS),
    coarse("where-infinite", "row 2 is infinite", lambda k: _change(k, np.s_[2], lambda k: np.inf), LN, BN, RMS),
    coarse("where-infinite", "a column is ∞ or NaN", lambda k: _change(k, np.s_[..., 1], _divide_by_zero), LN, RMS),
    coarse("where-values", "one value off by 1", lambda k: _scatter(k, 1, lambda k: k.y + 1), LN, IN, LN_BARE),
    coarse("where-index where-region where-input", "row 5 is x", lambda k: _change(k, np.s_[5], _input), LN, LN_ROWS, BN),
    coarse("where-index where-region", "row 3 of another call", lambda k: _change(k, np.s_[3], _stale), LN, LN_ROWS, BN, RMS),
    coarse("where-index where-region", "channel 2 of another call", lambda k: _change(k, np.s_[:, 2], _stale), BN, GN, IN, LN),
    coarse("where-index where-region where-zeros", "token 4 is 0", lambda k: _change(k, np.s_[:, 4], _zero), LN, RMS, ADALN),
    coarse("where-index where-region", "last feature of another call", lambda k: _change(k, np.s_[..., -1], _stale), LN, RMS, LN_ROWS),
    coarse("where-region where-input", "rows from 10 on are x", lambda k: _change(k, np.s_[10:], _input), LN_ROWS, BN_ROWS, times=2),
    coarse("where-region where-input", "tokens from 10 on are x", lambda k: _change(k, np.s_[:, 10:], _input), LN, RMS, ADALN),
    coarse("where-region", "rows from 20 on of another call", lambda k: _change(k, np.s_[20:], _stale), LN_ROWS, BN_ROWS),
    coarse("where-region", "tokens from 6 on of another call", lambda k: _change(k, np.s_[:, 6:], _stale), LN, RMS, LN_BARE),
    coarse("where-region", "tokens up to 5 of another call", lambda k: _change(k, np.s_[:, :5], _stale), LN, RMS),
    coarse("where-region where-zeros", "features from 64 on are 0", lambda k: _change(k, np.s_[..., 64:], _zero), LN, RMS, LN_ROWS),
    coarse("where-region where-zeros", "tokens from 10 on are 0", lambda k: _change(k, np.s_[:, 10:], _zero), LN, ADALN),
    coarse("where-input where-region", "the second half of the rows is x", lambda k: _change(k, np.s_[k.shape[0] // 2 :], _input), LN, BN, LN_ROWS),
    coarse("where-input", "half of the rows are x", lambda k: _change(k, _choose_rows(k), _input), LN_ROWS, BN, LN, RMS),
    coarse("where-input", "every other token is x", lambda k: _change(k, np.s_[:, ::2], _input), LN, RMS, LN_BARE),
    coarse("where-zeros", "half of the rows are 0", lambda k: _change(k, _choose_rows(k), _zero), LN_ROWS, BN, LN),
    coarse("where-zeros", "every third token is 0", lambda k: _change(k, np.s_[:, ::3], _zero), LN, RMS),
)  # fmt: skip
