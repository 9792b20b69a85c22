"""Evaluations by running statistics that are not used as they should be."""

from __future__ import annotations

import numpy as np

from tests.plants.faults.kernel import EVALUATED, EVALUATED_ROWS, FINE, Array, Kernel, Layer, Way
from tests.plants.faults.row import Row, coarse

LAYERS = (EVALUATED, EVALUATED_ROWS, Layer("bn", (6, 4, 4, 10), {"layout": "NHWC"}, evaluates=True))

_POSITIVE = (Way("float32", 6), Way("float64", 30), Way("float32", 12))
"""Means that have roots."""


def _row(ids: str, words: str, run, *, times: int = 2, **options) -> Row:
    return coarse(ids, words, run, *LAYERS[:times], **options)


def _roll(values: Array) -> Array:
    return np.roll(values.reshape(-1), 1).reshape(values.shape)


def _update(k: Kernel, momentum: float) -> Array:
    """Return y of statistics that hold a share of this batch's."""
    mean = (1 - momentum) * k.mean + momentum * k.batch_mean
    square = (1 - momentum) * k.square + momentum * k.batch_square * (k.n / (k.n - 1))
    return k.finish(mean, square)


ROWS = (
    _row("stored-exchanged", "mean and variance exchanged", lambda k: k.finish(k.square, k.mean), times=3, ways=_POSITIVE),
    _row("stored-rolled", "both rolled by one channel", lambda k: k.finish(_roll(k.mean), _roll(k.square)), times=3),
    _row("stored-rolled", "mean rolled by one channel", lambda k: k.finish(_roll(k.mean))),
    _row("stored-rolled", "variance rolled by one channel", lambda k: k.finish(None, _roll(k.square))),
    _row("stored-biased", "variance divided by n", lambda k: k.finish(square=k.square * ((k.n - 1) / k.n)), ways=FINE),
    _row("stored-not-rooted", "divided by the variance", lambda k: k.finish(divisor=k.square + k.eps), times=3),
    _row("stored-rooted-twice", "deviation in the place of the variance", lambda k: k.finish(square=np.sqrt(k.square)), times=3),
    _row("stored-updated", "updated with a tenth of this batch", lambda k: _update(k, 0.1), times=3),
    _row("stored-updated", "updated with a hundredth of this batch", lambda k: _update(k, 0.01)),
    _row(
        "stored-unused", "statistics of the batch", lambda k: k.finish(k.batch_mean, k.batch_square), times=3,
        really={},
    ),
    _row("stats-eps-other", "eps 0.001", lambda k: k.finish(square=k.square + (1e-3 - k.eps)), scale=0.3),
    _row("stats-no-mean", "mean not subtracted", lambda k: k.finish(0.0)),
)  # fmt: skip
