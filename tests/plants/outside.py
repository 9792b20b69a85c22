"""What no norm of the input made: evaluations with running statistics, and maps that are no norm."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from normcli.identifying.question import Question
from tests.peers import run_keras, run_nnx, run_torch
from tests.plants.frameworks import CHANNELS
from tests.plants.not_norms import make_far_plants, make_plants
from tests.plants.plant import Array, Plant

if TYPE_CHECKING:
    from collections.abc import Iterator


def list_evaluations() -> Iterator[Plant]:
    """Yield evaluations with running statistics, and scalers that were fitted to other data."""
    for number, (name, call) in enumerate(_EVALUATIONS.items()):
        for names in ((), ("gamma", "beta")):
            rng = np.random.default_rng(number)
            x, mean = rng.normal(0.3, 1.7, (16, 5, 7, CHANNELS)).astype("f4"), rng.normal(size=CHANNELS)
            running = {"mean": mean.astype("f4"), "var": rng.uniform(0.5, 2.0, CHANNELS).astype("f4")}
            drawn = {"gamma": rng.normal(1.0, 0.3, CHANNELS), "beta": rng.normal(0.0, 0.5, CHANNELS)}
            parameters = {name: drawn[name].astype("f4") for name in names}
            y = call(x, **running, **parameters)
            nearly = ("stats-partial", "stats-shard") if call is _scale_elsewhere else ()
            asked = Question(x, y, **parameters)
            yield Plant(f"{name} {' '.join(names)}", EVALUATION, asked, None, nearly=nearly)


EVALUATION = "evaluation"

Given = Array | None


def _evaluate_torch(x: Array, mean: Array, var: Array, gamma: Given = None, beta: Given = None) -> Array:
    import torch

    module = torch.nn.BatchNorm2d(CHANNELS).eval()
    module.running_mean, module.running_var = map(torch.from_numpy, (mean, var))
    return run_torch(module, x.transpose(0, 3, 1, 2), gamma, beta).transpose(0, 2, 3, 1)


def _evaluate_keras(x: Array, mean: Array, var: Array, gamma: Given = None, beta: Given = None) -> Array:
    import keras

    layer = keras.layers.BatchNormalization()
    layer.build(x.shape)
    layer.moving_mean.assign(mean)
    layer.moving_variance.assign(var)
    return run_keras(layer, x, gamma, beta, training=False)


def _evaluate_nnx(x: Array, mean: Array, var: Array, gamma: Given = None, beta: Given = None) -> Array:
    from flax import nnx

    module = nnx.BatchNorm(CHANNELS, use_running_average=True, rngs=nnx.Rngs(0))
    module.mean[...], module.var[...] = mean, var
    return run_nnx(module, x, gamma, beta)


def _scale_elsewhere(x: Array, gamma: float | Array = 1.0, beta: float | Array = 0.0, **_: Array) -> Array:
    from sklearn.preprocessing import StandardScaler

    rows = x.reshape(-1, CHANNELS)
    scaler = StandardScaler().fit(rows[: len(rows) // 2])
    return (scaler.transform(rows) * gamma + beta).reshape(x.shape).astype(x.dtype)


_EVALUATIONS = {
    "bn torch": _evaluate_torch,
    "bn keras": _evaluate_keras,
    "bn flax-nnx": _evaluate_nnx,
    "zscore sklearn of other data": _scale_elsewhere,
}


MAP = "no norm"

NEARLY = {
    "mean removed, times 3": ("stats-constant", "stats-no-divisor", "affine-constant"),
    "median removed": ("stats-median", "stats-no-divisor"),
    "deviation to the power 3": ("stats-unknown-divisor",),  # of each row's own mean
    "whitened, float32, (2, 26)": ("stats-constant",),  # of two rows, which lie on a line
}
"""Maps that are a norm but for a fault."""


def list_maps() -> Iterator[Plant]:
    """Yield maps and transforms that are no norm."""
    for name, question in make_plants():
        nearly = next((ids for start, ids in NEARLY.items() if name.startswith(start)), ())
        yield Plant(name, MAP, question, None, nearly=nearly)


def list_far_maps() -> Iterator[Plant]:
    """Yield maps of data far from zero, of which one divisor of all groups is nearly the norm."""
    for name, question in make_far_plants():
        yield Plant(name, MAP, question, None, nearly=("stats-constant",))
