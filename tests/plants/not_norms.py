"""Seeded maps and transforms that are no norm, of several shapes and dtypes: none may be given the name of one."""

from __future__ import annotations

import itertools
import math

import numpy as np

from normcli.dtypes import find_type
from normcli.identifying.question import Question

SHAPES = ((22, 7), (31,), (2, 26), (5, 3, 7), (1, 3, 5, 5))
DTYPES = ("float32", "float64", "float16")


def _along(rng, x, axis, low, high):
    """Return one number for each index of an axis, to be broadcast."""
    return rng.uniform(low, high, [n if other == axis else 1 for other, n in enumerate(x.shape)])


def _channel(x):
    return min(1, x.ndim - 1)


def _rank(x, axis):
    return x.argsort(axis).argsort(axis) / max(1, x.shape[axis] - 1)


def _whiten(x):
    rows = x.reshape(len(x), -1)
    rows = rows - rows.mean(0)
    values, vectors = np.linalg.eigh(rows.T @ rows / len(rows) + 1e-3 * np.eye(rows.shape[1]))
    return (rows @ vectors / np.sqrt(values) @ vectors.T).reshape(x.shape)


def _softmax(x, axis):
    powers = np.exp(x - x.max(axis, keepdims=True))
    return powers / powers.sum(axis, keepdims=True)


MAPS = {
    "half": lambda r, x: 0.5 * x,
    "negative": lambda r, x: -x,
    "one factor": lambda r, x: r.uniform(0.1, 3) * x,
    "one pair": lambda r, x: r.uniform(0.1, 3) * x + r.normal(),
    "shifted": lambda r, x: x + 2.0,
    "bytes": lambda r, x: x / 255.0,
    "from -1 to 1": lambda r, x: x / 127.5 - 1.0,
    "per channel": lambda r, x: _along(r, x, _channel(x), 0.2, 3) * x + _along(r, x, _channel(x), -2, 2),
    "factors per channel": lambda r, x: _along(r, x, _channel(x), 0.2, 3) * x,
    "shifts per channel": lambda r, x: x + _along(r, x, _channel(x), -2, 2),
    "negative per channel": lambda r, x: -_along(r, x, _channel(x), 0.2, 3) * x,
    "per last axis": lambda r, x: _along(r, x, x.ndim - 1, 0.2, 3) * x + _along(r, x, x.ndim - 1, -2, 2),
    "factors per last axis": lambda r, x: _along(r, x, x.ndim - 1, 0.2, 3) * x,
    "per row": lambda r, x: _along(r, x, 0, 0.2, 3) * x + _along(r, x, 0, -2, 2),
    "factors per row": lambda r, x: _along(r, x, 0, 0.2, 3) * x,
    "shifts per row": lambda r, x: x + _along(r, x, 0, -2, 2),
    "square": lambda r, x: x * x,
    "cube": lambda r, x: x**3,
    "signed root": lambda r, x: np.sign(x) * np.sqrt(np.abs(x)),
    "logarithm": lambda r, x: np.sign(x) * np.log1p(np.abs(x)),
    "exponential": lambda r, x: np.exp(0.5 * x),
    "tanh": lambda r, x: np.tanh(x),
    "sigmoid": lambda r, x: 1 / (1 + np.exp(-x)),
    "relu": lambda r, x: np.maximum(x, 0),
    "leaky relu": lambda r, x: np.where(x > 0, x, 0.01 * x),
    "gelu": lambda r, x: 0.5 * x * (1 + np.vectorize(math.erf, otypes=[float])(x / np.sqrt(2))),
    "softsign": lambda r, x: x / (1 + np.abs(x)),
    "clip": lambda r, x: np.clip(x, -1, 1),
    "softmax, last": lambda r, x: _softmax(x, -1),
    "softmax, channel": lambda r, x: _softmax(x, _channel(x)),
    "log softmax": lambda r, x: np.log(_softmax(x, -1)),
    "noise": lambda r, x: r.normal(size=x.shape),
    "with noise": lambda r, x: x + 0.01 * r.normal(size=x.shape),
    "sorted": lambda r, x: np.sort(x, -1),
    "rank": lambda r, x: _rank(x, -1),
    "rank, first axis": lambda r, x: _rank(x, 0) / 2,
    "sign": lambda r, x: np.sign(x),
    "above the mean": lambda r, x: (x > x.mean(-1, keepdims=True)).astype(float),
    "one hot": lambda r, x: (x == x.max(-1, keepdims=True)).astype(float),
    "rounded": lambda r, x: np.round(x),
    "reversed": lambda r, x: x[..., ::-1],
    "shuffled": lambda r, x: r.permutation(x.reshape(-1)).reshape(x.shape),
    "summed up": lambda r, x: np.cumsum(x, -1),
    "differences": lambda r, x: np.diff(x, axis=-1, prepend=0),
    "rotated": lambda r, x: x @ np.linalg.qr(r.normal(size=(x.shape[-1],) * 2))[0],
    "projected": lambda r, x: x @ r.normal(size=(x.shape[-1],) * 2),
    "whitened": lambda r, x: _whiten(x) if x.ndim > 1 else x**5,
    "quantiles of a normal": lambda r, x: np.sqrt(2) * np.arctanh(1.9 * _rank(x, -1) * 0.5 - 0.475),
    "stored statistics": lambda r, x: (
        (x - _along(r, x, _channel(x), -1, 1)) / np.sqrt(_along(r, x, _channel(x), 0.5, 4) + 1e-5)
    ),
    "smoothed": lambda r, x: 0.5 * (x + np.roll(x, 1, -1)),
    "divided by the largest": lambda r, x: x / (1.01 * x.max()),
    "mean removed, times 3": lambda r, x: 3.0 * (x - x.mean(-1, keepdims=True)),
    "deviation to the power 3": lambda r, x: (x - x.mean(-1, keepdims=True)) / x.std(-1, keepdims=True) ** 3,
    "median removed": lambda r, x: x - np.median(x, -1, keepdims=True),
    "log of the absolute": lambda r, x: np.log(np.abs(x) + 1e-3),
    "sine": lambda r, x: np.sin(x),
    "product of neighbours": lambda r, x: x * np.roll(x, 1, -1),
}


def make_plants():
    """Yield the name of every map with what it made of every shape, in turn in every dtype."""
    for place, shape in enumerate(SHAPES):
        for number, (name, transform) in enumerate(MAPS.items()):
            dtype = DTYPES[(number + place) % len(DTYPES)]
            rng = np.random.default_rng([number, *shape])
            x = rng.normal(rng.normal(0, 1), rng.uniform(0.5, 3), shape).astype(dtype)
            with np.errstate(all="ignore"):
                y = np.ascontiguousarray(transform(rng, x.astype(np.float64)), dtype)
            yield f"{name}, {dtype}, {shape}", Question(x, y)


# -- far from zero, where a dtype leaves little of the differences


def _draw_axes(rng, x):
    """Return some axes, but never all."""
    return tuple(rng.choice(x.ndim, size=rng.integers(0, x.ndim), replace=False))


def _draw_numbers(rng, x, axes, low, high):
    return rng.uniform(low, high, [n if axis in axes else 1 for axis, n in enumerate(x.shape)])


def _map_lines(rng, x, *bounds, shift=0.0):
    axes = _draw_axes(rng, x)
    return _draw_numbers(rng, x, axes, *bounds) * x + shift * _draw_numbers(rng, x, axes, -1, 1)


def _nearly_evaluate(rng, x):
    """Return what stored statistics that are nearly those of x make of it."""
    axes = _draw_axes(rng, x)
    mean = x.mean() + 0.02 * x.std() * _draw_numbers(rng, x, axes, -1, 1)
    return (x - mean) / (x.std() * _draw_numbers(rng, x, axes, 0.98, 1.02))


FAR_MAPS = {
    "affine": lambda r, x: _map_lines(r, x, -3, 3, shift=3.0),
    "factors": lambda r, x: _map_lines(r, x, 0.01, 3),
    "small factors": lambda r, x: _map_lines(r, x, 1e-4, 1e-2),
    "factors near 1": lambda r, x: _map_lines(r, x, 0.99, 1.01),
    "nearly evaluation": _nearly_evaluate,
    "another mean": lambda r, x: (x - 0.95 * x.mean(-1, keepdims=True)) / (x.std(-1, keepdims=True) + 1e-9),
    "a factor of each row": lambda r, x: (
        (x - x.mean(-1, keepdims=True))
        / (x.std(-1, keepdims=True) + 1e-9)
        * _draw_numbers(r, x, tuple(range(x.ndim - 1)), 0.7, 1.3)
    ),
    "noise": lambda r, x: x + x.std() * r.normal(size=x.shape),
    "another power": lambda r, x: x / ((x * x).mean(-1, keepdims=True) + 1e-5) ** 0.317,
    "rotated": lambda r, x: x @ np.linalg.qr(r.normal(size=(x.shape[-1],) * 2))[0],
    "summed up": lambda r, x: np.cumsum(x, -1),
    "sine": lambda r, x: np.sin(x),
}
FAR_SHAPES = ((2, 3), (31,), (1, 12), (8, 2), (22, 7), (5, 3, 7), (1, 1, 40), (2, 8, 16), (300, 4), (2,) * 4)
FAR_DTYPES = ("bfloat16", "float16", "float32")
MEANS = (10.0, 30.0, 50.0, 100.0, 1e5)
DEVIATIONS = (0.01, 0.3, 1.0, 10.0)


def make_far_plants():
    """Yield every map likewise, in turn with every dtype, mean and deviation."""
    for number, (shape, (name, transform)) in enumerate(itertools.product(FAR_SHAPES, FAR_MAPS.items())):
        rng = np.random.default_rng([number, 15])
        dtype = FAR_DTYPES[number % len(FAR_DTYPES)]
        mean = rng.choice(MEANS[:-1] if dtype == "float16" else MEANS)
        x = rng.normal(mean, rng.choice(DEVIATIONS), shape).astype(find_type(dtype))
        with np.errstate(all="ignore"):
            y = np.ascontiguousarray(transform(rng, x.astype(np.float64))).astype(x.dtype)
        yield f"{name}, {dtype}, {shape}, about {mean:g}", Question(x, y)
