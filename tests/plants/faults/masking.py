"""Kernels of sequences of several lengths, which take the wrong values for padding."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from normcli.norms.plan import make_plan
from normcli.norms.request import Request
from tests.plants.faults.kernel import (
    BN_LENGTHS,
    IN_LENGTHS,
    MASKED,
    RMS_LENGTHS,
    ZSCORE_LENGTHS,
    Array,
    Kernel,
)
from tests.plants.faults.row import coarse, fine

if TYPE_CHECKING:
    from collections.abc import Callable

ALL = (True, True)
CENTRED = tuple(layer for layer in MASKED if layer is not RMS_LENGTHS)


def _count(k: Kernel, mask: Array, moved: tuple[bool, bool] = ALL, ddof: int = 0) -> Array:
    """Return y with the mean, the variance or both of other values."""
    counts = mask.sum(k.axes, keepdims=True)

    def add(values: Array) -> Any:
        return np.where(mask, values, 0.0).sum(k.axes, keepdims=True, dtype=k.work)

    mean = add(k.x) / counts if moved[0] and np.ndim(k.mean) else k.mean
    return k.finish(mean, add((k.x - mean) ** 2) / (counts - ddof) if moved[1] else k.square)


def _invert(k: Kernel) -> Array:
    """Return y of a kernel that takes padding for the values that count."""
    other = replace(k)
    other.__dict__["mask"] = ~k.mask
    return _count(other, other.mask)


def _find_length(k: Kernel) -> int:
    return k.plan.grid.layout.names.index("l")


def _move_ends(k: Kernel, step: int) -> Array:
    lengths = tuple(min(max(kept + step, 1), k.shape[_find_length(k)]) for kept in k.lengths)
    return _count(k, replace(k, lengths=lengths).mask)


def _by_sample(k: Kernel) -> Array:
    alone = replace(k, plan=make_plan(Request("in", layout="NLC"), k.shape, k.tensor.dtype))
    return k.finish(alone.batch_mean, alone.batch_square)


def _average_samples(k: Kernel) -> Array:
    alone = replace(k, plan=make_plan(Request("in", layout="NLC"), k.shape, k.tensor.dtype))
    return k.finish(alone.batch_mean.mean(0), alone.batch_square.mean(0))


def _pad(k: Kernel, *, squares: bool) -> Array:
    """Return y of sums that are divided by the number of all values; of masked ones as 0, `squares` of the mean, too."""
    x, n = np.where(k.mask, k.x, 0.0), math.prod(k.x.shape[axis] for axis in k.axes)
    mean = x.sum(k.axes, keepdims=True, dtype=k.work) / n if np.ndim(k.mean) else k.mean
    moved = (x - mean) ** 2
    return k.finish(mean, (moved if squares else np.where(k.mask, moved, 0.0)).sum(k.axes, keepdims=True) / n)


def _write(fill: Callable[[Kernel], Any]) -> Callable[[Kernel], Array]:
    """Return a kernel that is right but for what it writes where values do not count."""
    return lambda k: np.where(k.mask, k.y.reshape(k.x.shape), np.broadcast_to(fill(k), k.x.shape))


ROWS = (
    coarse("stats-masked", "the mask is left out", lambda k: _count(k, k.mask | True), *MASKED),
    fine("stats-masked", "the mask is of the mean alone", lambda k: _count(k, k.mask | True, (False, True)), *MASKED),
    fine("stats-masked", "the mask is of the variance alone", lambda k: _count(k, k.mask | True, (True, False)), *CENTRED),
    fine("stats-masked", "the mask is of the mean alone, ddof 1", lambda k: _count(k, k.mask | True, (False, True), 1), *CENTRED),
    coarse("stats-mask-inverted", "the mask is inverted", lambda k: _count(k, ~k.mask), BN_LENGTHS, ZSCORE_LENGTHS),
    coarse("stats-mask-inverted", "the mask is inverted, of y too", _invert, BN_LENGTHS, ZSCORE_LENGTHS),
    coarse("stats-mask-end", "padding comes first", lambda k: _count(k, np.flip(k.mask, _find_length(k))), BN_LENGTHS, IN_LENGTHS, RMS_LENGTHS),
    coarse("stats-mask-end", "lengths of sorted samples", lambda k: _count(k, -np.sort(-k.mask.astype(int), 0) > 0), BN_LENGTHS),
    coarse("stats-mask-end", "the first 4 tokens alone", lambda k: _count(k, k.mask & (np.arange(k.shape[_find_length(k)]) < 4)[:, None]), BN_LENGTHS),
    fine("stats-mask-end", "lengths + 1", lambda k: _move_ends(k, 1), *MASKED),
    fine("stats-mask-end", "lengths − 1", lambda k: _move_ends(k, -1), *MASKED),
    coarse("stats-mask-divisor", "n of all values", lambda k: _pad(k, squares=False), *MASKED),
    coarse("stats-mask-zeros stats-mask-divisor", "padding as 0", lambda k: _pad(k, squares=True), *MASKED),
    coarse("stats-other-axes", "each sequence by itself", _by_sample, BN_LENGTHS),
    coarse("stats-alike", "each sequence counts alike", _average_samples, BN_LENGTHS),
    coarse("after-masked", "padding is normalized", _write(lambda k: k.bare * k.gamma + k.beta), *MASKED),
    coarse("after-masked", "padding is 0", _write(lambda k: 0.0), *MASKED),
    coarse("after-masked", "padding is beta", _write(lambda k: k.beta), BN_LENGTHS, IN_LENGTHS),
)  # fmt: skip
