"""Kernels whose mean or divisor is another."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from normcli.dtypes import find_type
from tests.plants.faults.kernel import (
    ADALN,
    BN,
    BN_LAST,
    BN_ROWS,
    GN,
    IN,
    LN,
    LN_BARE,
    LN_FEW,
    LN_ROWS,
    LN_SLICE,
    LN_TINY,
    QK,
    RMS,
    RMS_ROWS,
    RMS_SLICE,
    ZSCORE,
    Array,
    Kernel,
    Way,
)
from tests.plants.faults.row import coarse, fine

# -- counting


def _add_in_half(k: Kernel) -> Array:
    """Return y of sums that are kept in the dtype of the tensor."""
    x = k.x.astype(k.tensor.dtype)

    def average(values: Array) -> Array:
        total: Array = np.add.accumulate(values, -1, dtype=x.dtype)[..., -1:]
        return total / x.dtype.type(x.shape[-1])

    mean = average(x) if np.ndim(k.mean) else x.dtype.type(0.0)
    return k.finish(mean.astype(k.work), average((x - mean) * (x - mean)).astype(k.work))


@np.errstate(over="ignore")
def _overflow(k: Kernel) -> Array:
    """Return y of squares that are added up in float32, and rounded to float16."""
    total = (k.square * k.n).astype(np.float16).astype(k.work)
    return k.finish(square=total / k.n)


def _underflow(k: Kernel, *, whole: bool) -> Array:
    """Return y of a variance, or of squares, that float16 holds as 0."""
    square = k.square if whole else (k.x - k.mean) ** 2
    return k.finish(square=k.average(square.astype(np.float16).astype(k.work)))


def _pad_mean(k: Kernel, *, follows: bool) -> Array:
    mean = k.mean * (k.n / k.lanes)
    return k.finish(mean, k.square_about(mean) if follows else None)


def _pad_variance(k: Kernel, *, count: int | None = None) -> Array:
    """Return y where zeros of padded lanes are centred and squared too, and the sum is divided by all or by n."""
    total = k.square * k.n + (k.lanes - k.n) * k.mean**2
    return k.finish(square=total / (count or k.lanes))


def _pad_both(k: Kernel) -> Array:
    """Return y of statistics of all lanes, those of zeros too."""
    mean = k.mean * (k.n / k.lanes)
    return k.finish(mean, (k.square_about(mean) * k.n + (k.lanes - k.n) * mean**2) / k.lanes)


def _take_from(k: Kernel, first: int, last: int) -> Array:
    """Return y of statistics of some of the features alone."""
    return _use(k, k.x[..., first:last])


def _slice(k: Kernel, first: int, last: int) -> Array:
    """Return y of statistics of another slice than the one asked for."""
    x = k.x[..., first:last]
    mean = x.mean(-1, keepdims=True) if np.ndim(k.mean) else 0.0
    return k.finish(mean, ((x - mean) ** 2).mean(-1, keepdims=True))


def _use(k: Kernel, values: Array) -> Array:
    """Return y of the statistics of other values."""
    mean = k.average(values) if np.ndim(k.mean) else 0.0
    return k.finish(mean, k.average((values - mean) ** 2))


def _skip(k: Kernel, count: int) -> Array:
    """Return y where the sums are of the first features, but divided by all of them."""
    part = k.x[..., :count]
    mean = k.average(part) * (count / k.n) if np.ndim(k.mean) else 0.0
    return k.finish(mean, k.average((part - mean) ** 2) * (count / k.n))


def _weigh(k: Kernel, weights: Array, *, keeps_count: bool) -> Array:
    """Return y where each value of the last axis counts as often as its weight says."""
    weights = weights.astype(k.work)
    count = k.n if keeps_count else weights.sum()
    mean = (k.x * weights).sum(-1, keepdims=True) / k.work(count) if np.ndim(k.mean) else k.work(0.0)
    return k.finish(mean, ((k.x - mean) ** 2 * weights).sum(-1, keepdims=True) / k.work(count))


# -- shards


def _split(k: Kernel, axis: int, shards: int | tuple[int, ...]) -> list[Array]:
    return np.split(k.x, shards, axis)


def _by_itself(k: Kernel, axis: int, shards: int | tuple[int, ...]) -> Array:
    """Return y where every shard has statistics of its own."""
    standardized = []
    for part in _split(k, axis, shards):
        mean = k.average(part) if np.ndim(k.mean) else 0.0
        standardized.append((part - mean) / np.sqrt(k.average((part - mean) ** 2) + k.eps))
    return np.concatenate(standardized, axis) * k.gamma + k.beta


def _average_shards(k: Kernel, axis: int, shards: int) -> Array:
    """Return y with the mean of the shards' variances, each about its own mean."""
    return k.finish(square=sum(part.var(k.axes, keepdims=True) for part in _split(k, axis, shards)) / shards)


def _count_alike(k: Kernel, first: int) -> Array:
    """Return y of the first indices of the last axis and of the rest, whose means and variances count alike."""
    parts = k.x[..., :first], k.x[..., first:]
    mean = sum(k.average(part) for part in parts) / 2.0
    return k.finish(mean, sum(k.average((part - mean) ** 2) for part in parts) / 2.0)


# -- another row's


def _move(k: Kernel, *, mean: bool = True, square: bool = True) -> Array:
    """Return y with the statistics of the group before."""
    axis = 0 if k.mean.shape[0] > 1 else 1
    return k.finish(np.roll(k.mean, 1, axis) if mean else None, np.roll(k.square, 1, axis) if square else None)


def _transpose(k: Kernel) -> Array:
    """Return y with the statistics of the group at the flat index with the axes in reverse order."""
    mean, square = (values.reshape(values.shape[::-1]).T for values in (k.mean, k.square))
    return k.finish(mean, square)


def _use_first(k: Kernel) -> Array:
    """Return y where every row of a batch has the statistics of its first."""
    return k.finish(np.take(k.mean, [0], -2) if np.ndim(k.mean) else None, np.take(k.square, [0], -2))


def _use_axes(k: Kernel, *axes: int) -> Array:
    mean = k.x.mean(axes, keepdims=True) if np.ndim(k.mean) else 0.0
    return k.finish(mean, ((k.x - mean) ** 2).mean(axes, keepdims=True))


# -- digits


def _round(values: Any, dtype: str) -> Array:
    return np.asarray(values).astype(find_type(dtype)).astype(np.float32)


def _estimate_root(k: Kernel) -> Array:
    """Return y with the reciprocal root of a magic number and one step of Newton's."""
    values = (k.square + k.eps).astype(np.float32)
    guess = (0x5F3759DF - (values.view(np.int32) >> 1)).view(np.float32)
    return k.finish(divisor=1.0 / (guess * (1.5 - 0.5 * values * guess * guess)))


def _pass_once(k: Kernel, dtype: str = "float32") -> Array:
    """Return y where the variance is E[x²] − E[x]², calculated in float32 of numbers of a dtype."""
    x = k.x.astype(np.float32)
    mean = _round(k.average(x), dtype)
    square = _round(k.average(_round(x * x, dtype)), dtype) - _round(mean * mean, dtype)
    return k.finish(mean, np.maximum(square, 0.0))


def _centre_by_median(k: Kernel, *, divides: bool, factor: float = 1.0) -> Array:
    median = np.median(k.x, k.axes, keepdims=True)
    deviation = factor * np.median(np.abs(k.x - median), k.axes, keepdims=True)
    return k.finish(median, divisor=deviation + k.eps if divides else None)


def _leave_undivided(k: Kernel) -> Array:
    return k.finish(divisor=np.ones_like(k.square))


def _square_rounded(k, name):
    mean = _round(k.mean, name)
    return k.finish(mean, k.average(k.x * k.x) - mean * mean)


def _round_both(k: Kernel, name: str) -> Array:
    return k.finish(_round(k.mean, name), divisor=1.0 / _round(1.0 / k.divisor, name))


NEAR = (Way("float32", 0), Way("float32", 3), Way("float64", 0))
"""Data that are off by a few spreads at most: further off, one row's statistics say nothing in another."""

OFF = (Way("float32", 20), Way("float32", 30), Way("float32", 40))


def _groups_of_batch(groups: int, *positions: int) -> dict[str, Any]:
    """Return the options of the group norm that a batch norm of parts of the batch is: its channel is the batch."""
    letters = "CXYZ" if positions else "CX"
    channel = next(axis for axis in range(1, len(letters)) if axis not in positions)
    axes = (0, *positions)
    return {"norm": "gn", "groups": groups, "layout": letters, "axes": axes, "feature_axes": channel}


_COUNTS = (
    fine("stats-padded-mean", "mean of padded lanes", lambda k: _pad_mean(k, follows=False), LN, LN_ROWS, GN, LN_FEW),
    fine("stats-padded-mean", "mean of padded lanes, variance about it", lambda k: _pad_mean(k, follows=True), LN, LN_ROWS, GN),
    fine("stats-padded-variance", "zeros of padded lanes centred and squared", _pad_variance, LN, LN_ROWS, GN, times=2),
    fine(
        "stats-padded-variance", "zeros of padded lanes centred and squared, divided by n",
        lambda k: _pad_variance(k, count=k.n), LN, LN_ROWS, LN_FEW, GN, ways=(Way("float32", 3), Way("float64", 30), Way("bfloat16", 3)),
    ),
    fine(
        "stats-padded-variance stats-count", "variance divided by the padded lanes",
        lambda k: k.finish(square=k.square * (k.n / k.lanes)), LN, GN, LN_FEW, times=2,
    ),
    fine(
        "stats-count", "mean square divided by the padded lanes",
        lambda k: k.finish(square=k.square * (k.n / k.lanes)), RMS, RMS_ROWS, times=2,
    ),
    fine("stats-padded", "mean and variance of padded lanes", _pad_both, LN, LN_ROWS, GN, LN_FEW, times=2),
    fine(
        "stats-padded", "mean and variance divided by the padded lanes",
        lambda k: k.finish(k.mean * (k.n / k.lanes), k.square * (k.n / k.lanes)), LN, GN,
    ),
    fine("stats-count", "variance divided by n + 1", lambda k: k.finish(square=k.square * (k.n / (k.n + 1))), LN_FEW, BN_ROWS, LN_ROWS),
    fine("stats-count", "mean divided by n + 1", lambda k: k.finish(k.mean * (k.n / (k.n + 1))), LN_FEW, LN_ROWS),
    fine("stats-count", "mean divided by n − 1", lambda k: k.finish(k.mean * (k.n / (k.n - 1))), LN_FEW, BN_ROWS),
    fine("stats-count stats-ddof", "mean square divided by n − 1", lambda k: k.finish(square=k.square * (k.n / (k.n - 1))), RMS_ROWS),
    fine(
        "stats-ddof", "variance divided by n − 1",
        lambda k: k.finish(square=k.square * (k.n / (k.n - 1))), LN, LN_FEW, BN_ROWS, ZSCORE, IN, GN, really={"ddof": 1},
    ),
    fine("stats-tail-skipped stats-partial", "last block of 4 left out", lambda k: _take_from(k, 0, 96), LN, times=2),
    fine("stats-tail-skipped stats-partial", "last block of 8 left out", lambda k: _take_from(k, 0, 64), LN_ROWS, RMS_ROWS),
    fine("stats-tail-skipped", "last block of 4 not added", lambda k: _skip(k, 96), LN),
    fine("stats-tail-skipped", "last block of 8 not added", lambda k: _skip(k, 64), LN_ROWS, RMS_ROWS),
    coarse("stats-partial stats-tail-skipped", "statistics of the first 40 features", lambda k: _take_from(k, 0, 40), LN, RMS, RMS_ROWS, LN_ROWS),
    coarse("stats-partial stats-shard", "statistics of the first quarter", lambda k: _take_from(k, 0, k.shape[-1] // 4), RMS, LN, LN_ROWS),
    coarse("stats-partial stats-shard", "statistics of features 24 to 48", lambda k: _take_from(k, 24, 48), RMS, LN_ROWS),
)  # fmt: skip

_WEIGHTED = tuple(
    coarse(
        "stats-weighted", words, functools.partial(lambda k, weigh, keeps_count: _weigh(k, weigh(np.arange(k.n)), keeps_count=keeps_count), weigh=weigh, keeps_count=keeps_count),
        LN, RMS_ROWS, LN_ROWS,
    )
    for words, weigh, keeps_count in (
        ("every second lane is lost", lambda place: place % 2 == 0, True),
        ("lanes 16 to 31 are lost, and not counted", lambda place: place % 32 < 16, False),
        ("a block is counted twice", lambda place: 1 + (place // 16 == 2), True),
        ("the last of each 8 is lost", lambda place: place % 8 < 7, True),
    )
)  # fmt: skip

_SHARDS = (
    coarse("stats-shard stats-partial", "statistics of the first half of the features", lambda k: _take_from(k, 0, k.shape[-1] // 2), LN, RMS, LN_ROWS),
    coarse("stats-shard stats-partial", "statistics of the second half of the features", lambda k: _take_from(k, k.shape[-1] // 2, k.shape[-1]), LN, RMS),
    coarse("stats-shard", "each half of the features by itself", lambda k: _by_itself(k, -1, 2), RMS, RMS_ROWS),
    coarse("stats-shard", "tiles of three quarters of the features, and the rest", lambda k: _by_itself(k, -1, (k.shape[-1] // 8 * 6,)), LN, RMS_ROWS),
    coarse(
        "stats-shard stats-other-axes", "each half of the features by itself",
        lambda k: _by_itself(k, -1, 2), LN_ROWS, really={"norm": "gn", "groups": 2, "layout": "NC"},
    ),
    coarse("stats-shard", "each half of the batch by itself", lambda k: _by_itself(k, 0, 2), BN, times=3, really=_groups_of_batch(2, 2, 3)),
    coarse("stats-shard", "each half of the batch by itself", lambda k: _by_itself(k, 0, 2), BN_ROWS, times=2, really=_groups_of_batch(2)),
    coarse("stats-shard", "each half of the batch by itself", lambda k: _by_itself(k, 0, 2), BN_LAST, times=2, really=_groups_of_batch(2, 1, 2)),
    coarse("stats-shard", "each quarter of the batch by itself", lambda k: _by_itself(k, 0, 4), BN, really=_groups_of_batch(4, 2, 3)),
    coarse("stats-shard", "each quarter of the batch by itself", lambda k: _by_itself(k, 0, 4), BN_ROWS, really=_groups_of_batch(4)),
    coarse("stats-shard", "statistics of the first half of the batch", lambda k: _use(k, k.x[: k.shape[0] // 2]), BN, BN_ROWS),
    fine("stats-averaged", "mean of the replicas' variances", lambda k: _average_shards(k, 0, 2), BN, BN_ROWS, BN_LAST),
    fine("stats-averaged", "mean of the variances of 4 replicas", lambda k: _average_shards(k, 0, 4), BN, BN_ROWS),
    coarse("stats-alike", "a third of the features counts as much as the rest", lambda k: _count_alike(k, k.shape[-1] // 3), LN, LN_ROWS),
    fine("stats-averaged", "mean of the shards' variances", lambda k: _average_shards(k, -1, 2), LN, LN_ROWS, LN_BARE),
    fine("stats-averaged", "mean of the variances of 4 shards", lambda k: _average_shards(k, -1, 4), LN, LN_ROWS),
)  # fmt: skip

_OTHERS = (
    coarse("stats-other-row", "statistics of the row before", _move, LN, LN_ROWS, ADALN, ways=NEAR),
    coarse("stats-other-row", "mean of the row before", lambda k: _move(k, square=False), LN_ROWS, LN_BARE, ways=NEAR),
    coarse("stats-other-row", "variance of the row before", lambda k: _move(k, mean=False), LN, LN_ROWS, IN, GN),
    coarse("stats-other-row", "root mean square of the row before", lambda k: k.finish(square=np.roll(k.square, 1, 0)), RMS_ROWS, RMS),
    coarse("stats-other-row", "statistics of the first token", _use_first, LN, RMS, ways=NEAR),
    coarse("stats-other-axes", "over tokens", lambda k: _use_axes(k, 1), LN, LN_BARE, really={"axes": 1, "feature_axes": 2}),
    coarse("stats-other-axes", "over tokens and features", lambda k: _use_axes(k, 1, 2), LN, RMS, really={"axes": (1, 2), "feature_axes": 2}),
    coarse(
        "stats-other-axes", "each image by itself", lambda k: _use_axes(k, 2, 3),
        BN, really={"axes": (2, 3), "feature_axes": 1}, times=2,
    ),
    coarse("stats-other-axes", "over the batch alone", lambda k: _use_axes(k, 0), BN, really={"axes": 0, "feature_axes": 1}),
    coarse("stats-other-axes", "over the head alone", lambda k: _use_axes(k, 2, 3), QK, really={"axes": (2, 3), "feature_axes": (2, 3)}),
    coarse("stats-other-axes", "over the batch too", lambda k: _use_axes(k, 0, 2, 3, 4), GN, really={"axes": (0, 1, 2, 3)}),
    fine("stats-approximate", "fast reciprocal root", _estimate_root, LN, RMS, BN, LN_ROWS, GN, times=2),
    fine("stats-rounded-rstd", "rstd in bfloat16", lambda k: k.finish(divisor=1.0 / _round(1.0 / k.divisor, "bfloat16")), LN, BN, RMS, GN, LN_ROWS),
    fine("stats-rounded-rstd", "rstd in float16", lambda k: k.finish(divisor=1.0 / _round(1.0 / k.divisor, "float16")), LN, RMS, LN_ROWS),
    fine("stats-rounded", "mean and rstd in float16", lambda k: _round_both(k, "float16"), BN, LN, GN),
    fine("stats-rounded", "mean and rstd in bfloat16", lambda k: _round_both(k, "bfloat16"), LN_ROWS, BN),
    fine("stats-rounded-mean", "mean in bfloat16", lambda k: k.finish(_round(k.mean, "bfloat16")), LN, BN, LN_ROWS, GN),
    fine("stats-rounded-mean", "mean in float16", lambda k: k.finish(_round(k.mean, "float16")), LN, LN_ROWS),
    fine("stats-rounded-mean-squared", "mean in bfloat16, squared too", lambda k: _square_rounded(k, "bfloat16"), LN, BN, LN_ROWS),
    fine("stats-rounded-variance", "variance in bfloat16", lambda k: k.finish(square=_round(k.square, "bfloat16")), LN, BN, RMS, LN_ROWS),
    fine("stats-rounded-variance", "variance in float16", lambda k: k.finish(square=_round(k.square, "float16")), LN, BN),
    fine("stats-one-pass", "E[x²] − E[x]² in float32", _pass_once, LN, BN, LN_ROWS, LN_BARE, ways=OFF),
    fine("stats-one-pass", "E[x²] − E[x]² in bfloat16", lambda k: _pass_once(k, "bfloat16"), LN, LN_ROWS, ways=(Way("bfloat16", 3), Way("bfloat16", 6))),
)  # fmt: skip

HALVES = tuple(Way(dtype, offset) for offset in (0, 3) for dtype in ("float16", "bfloat16"))

_SLICES = tuple(
    coarse("stats-slice", f"over {a}:{b}", functools.partial(_slice, first=a, last=b), LN_SLICE, RMS_SLICE)
    for a, b in ((0, 72), (0, 41), (4, 40), (40, 72))
)

_SUMS = (
    coarse("stats-half-sums", "one value after the other", _add_in_half, LN_ROWS, RMS_ROWS, LN, ways=HALVES, times=3),
    coarse("stats-overflow", "in every group", _overflow, LN_ROWS, RMS_ROWS, LN_BARE, ways=HALVES[:1], scale=90.0),
    coarse("stats-overflow", "in some groups", _overflow, LN_ROWS, RMS_ROWS, LN_BARE, ways=HALVES[:1], scale=30.0),
    coarse("stats-underflow", "squares as 0", functools.partial(_underflow, whole=False), RMS, QK, LN_TINY, ways=HALVES[:1], scale=2e-4),
    coarse("stats-underflow", "variance as 0", functools.partial(_underflow, whole=True), RMS, QK, LN_TINY, ways=HALVES[:1], scale=5e-5),
)  # fmt: skip

_FORMULAS = (
    coarse("stats-no-mean", "mean not subtracted", lambda k: k.finish(0.0, k.square), LN, BN, LN_ROWS, GN, IN),
    coarse("stats-no-divisor", "not divided", _leave_undivided, LN, BN, LN_ROWS, IN, scale=3.0),
    coarse("stats-not-rooted", "divided by the variance", lambda k: k.finish(divisor=k.square + k.eps), LN, BN, RMS, LN_ROWS, GN),
    coarse("stats-multiplied", "times the deviation", lambda k: k.finish(divisor=1.0 / k.divisor), LN, BN, LN_ROWS),
    coarse("stats-mean-square", "mean square in the place of the variance", lambda k: k.finish(square=k.square_about(0.0)), LN, BN, LN_ROWS, GN, IN),
    coarse("stats-zero", "1 // n", lambda k: k.finish(square=k.work(0) * k.square), LN, BN, LN_ROWS, ways=NEAR),
    coarse("stats-mean-twice", "mean subtracted twice", lambda k: k.finish(2 * k.mean), LN, BN, LN_ROWS, ways=NEAR),
    coarse("stats-other-row", "statistics of the flat index c · N + n", _transpose, GN, IN, LN, ways=NEAR),
    coarse("stats-count", "squares divided by the length of another axis", lambda k: k.finish(square=k.square * (k.n / k.shape[0])), LN, BN, LN_ROWS),
    # The second names are those of layer norm, which identify takes for the norm: both are the same kernel.
    coarse("stats-mean-subtracted stats-mean-square", "mean subtracted", lambda k: k.finish(k.batch_mean, k.square), RMS, RMS_ROWS, QK),
    coarse("stats-variance stats-no-mean", "variance in the place of the mean square", lambda k: k.finish(square=k.batch_square), RMS, RMS_ROWS, QK, times=2),
    coarse("stats-absolute", "mean absolute deviation", lambda k: k.finish(divisor=k.average(np.abs(k.x - k.mean)) + k.eps), LN, BN, LN_ROWS, ZSCORE),
    coarse("stats-absolute", "mean absolute value", lambda k: k.finish(divisor=k.average(np.abs(k.x)) + k.eps), RMS, RMS_ROWS, ways=NEAR),
    coarse("stats-scaler", "range in the place of the deviation", lambda k: k.finish(divisor=np.ptp(k.x, k.axes, keepdims=True)), LN, BN, ZSCORE),
    coarse("stats-median", "median in the place of the mean", lambda k: _centre_by_median(k, divides=False), LN, BN, ZSCORE, LN_ROWS),
    coarse("stats-median", "median and its absolute deviation", lambda k: _centre_by_median(k, divides=True), BN, LN, BN_ROWS, LN_ROWS),
    coarse("stats-median", "median and 1.4826 of its absolute deviation", lambda k: _centre_by_median(k, divides=True, factor=1.4826), BN, ZSCORE),
    coarse("stats-length", "length in the place of the deviation", lambda k: k.finish(divisor=np.sqrt(k.square * k.n + k.eps)), LN, LN_ROWS, BN_ROWS, GN),
    coarse("stats-length", "length in the place of the root mean square", lambda k: k.finish(divisor=np.sqrt(k.square * k.n)), RMS, RMS_ROWS, really={"norm": "lp", "eps": 1e-12, "feature_axes": None}),
    coarse("stats-constant", "one divisor for all groups", lambda k: k.finish(divisor=np.sqrt(k.square.mean() + k.eps) + 0 * k.square), LN, BN, LN_ROWS, GN),
    coarse("stats-constant", "centred, and divided by 8", lambda k: k.finish(divisor=8.0 + 0 * k.square), LN, BN),
)  # fmt: skip

_FLOORS = (
    fine("stats-eps-floor", "eps as a floor", lambda k: k.finish(divisor=np.sqrt(np.maximum(k.square, k.eps))), LN, GN, IN, scale=0.003),
    fine("stats-eps-twice", "eps inside and outside the root", lambda k: k.finish(divisor=k.divisor + k.eps), LN, BN, GN, scale=0.003),
    fine(
        "stats-eps-twice stats-eps-other", "eps added twice", lambda k: k.finish(square=k.square + k.eps),
        LN, BN, RMS_ROWS, scale=0.01, really={"eps": 2e-5},
    ),
    fine("stats-eps-subtracted", "eps subtracted", lambda k: k.finish(square=k.square - 2 * k.eps), LN, BN, RMS, GN, scale=0.05),
    fine(
        "stats-eps-outside", "eps outside the root", lambda k: k.finish(divisor=np.sqrt(k.square) + k.eps),
        LN, BN, RMS_ROWS, LN_ROWS, scale=0.01, really={"eps_mode": "outside"},
    ),
    fine(
        "stats-eps-scaled", "eps times the square of the largest",
        lambda k: k.finish(square=k.square + k.eps * (np.abs(k.x).max(k.axes, keepdims=True) ** 2 - 1.0)), RMS_ROWS, LN, LN_ROWS, scale=30.0, ways=NEAR,
    ),
    *(
        fine(
            "stats-eps-other", f"eps {eps:.4g}", functools.partial(lambda k, eps: k.finish(square=k.square + (eps - k.eps)), eps=eps),
            *layers, scale=scale, really={"eps": eps}, times=times,
        )
        for eps, scale, times, layers in (
            (1e-6, 0.01, 1, (LN, BN, LN_ROWS, GN)),
            (1e-3, 0.3, 1, (LN, BN, RMS)),
            (1e-12, 0.01, 1, (LN, LN_ROWS)),
            (2.0**-7, 1.0, 2, (RMS,)),
            (2.0**-10, 1.0, 1, (RMS, RMS_ROWS)),
            (0.003, 1.0, 1, (RMS, RMS_ROWS)),
        )
    ),
    fine("stats-eps-other", "no eps", lambda k: k.finish(divisor=np.sqrt(k.square)), LN, BN, RMS_ROWS, scale=0.01, really={"eps": 0.0}),
)  # fmt: skip


def _draw(k: Kernel) -> Array:
    """Return a factor for each group that nothing of x says."""
    return np.asarray(k.rng.uniform(0.6, 1.6, k.square.shape), k.work)


_UNKNOWN = (
    fine("stats-unknown-divisor", "divisors of another call", lambda k: k.finish(divisor=k.divisor * _draw(k)), LN, LN_ROWS),
    fine("stats-unknown-mean", "means of another call", lambda k: k.finish(k.mean + k.divisor * (_draw(k) - 1)), LN, LN_ROWS),
    fine(
        "stats-unknown-both", "statistics of another call",
        lambda k: k.finish(k.mean + k.divisor * (_draw(k) - 1), divisor=k.divisor * _draw(k)), LN, LN_ROWS,
    ),
)  # fmt: skip

ROWS = (*_SUMS, *_SLICES, *_COUNTS, *_WEIGHTED, *_SHARDS, *_OTHERS, *_FORMULAS, *_FLOORS, *_UNKNOWN)
