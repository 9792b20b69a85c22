"""Kernels whose gamma and beta are not the given ones."""

from __future__ import annotations

from typing import Any

import numpy as np

from normcli.dtypes import find_type
from tests.plants.faults.kernel import (
    ADALN,
    BN,
    BN_LAST,
    BN_ROWS,
    BN_SIGNED,
    EVALUATED,
    GN,
    IN,
    LN,
    LN_ALIKE,
    LN_BARE,
    LN_ROWS,
    LN_SIGNED,
    QK,
    RMS,
    RMS_ROWS,
    ZSCORE,
    Array,
    Kernel,
)
from tests.plants.faults.row import coarse, fine


def move(k: Kernel, values: Any, *, axis: int = -1, step: int = 1) -> Array:
    """Return gamma or beta rolled along an axis of its own shape, or reversed by a step of 0."""
    own = values.reshape(k.plan.parameters.shape)
    moved = np.roll(own, step, axis) if step else np.flip(own, axis)
    return moved.reshape(values.shape)


def _permute(k: Kernel) -> Array:
    return k.rng.permutation(k.gamma.reshape(-1)).reshape(k.gamma.shape)


def _change(values: Any, factor: float) -> Array:
    """Return gamma with another number at its third index."""
    changed = np.array(values)
    changed.flat[2] *= factor
    return changed


def _round(values: Any, dtype: str) -> Array:
    return np.asarray(values).astype(find_type(dtype)).astype(np.float32)


BOTH = (LN, BN, GN, LN_ROWS, ADALN)

ROWS = (
    fine(
        "affine-unknown-gamma", "gamma and beta of another layer",
        lambda k: k.finish(gamma=k.rng.uniform(0.5, 2.0, k.gamma.shape), beta=k.rng.normal(size=np.shape(k.beta))), LN, LN_ROWS,
    ),
    fine("affine-unknown-gamma", "one number of gamma", lambda k: k.finish(gamma=_change(k.gamma, 0.5)), LN, LN_ROWS, RMS),
    coarse("affine-missing", "neither gamma nor beta", lambda k: k.finish(gamma=1.0, beta=0.0), LN, BN, GN, IN, ADALN),
    coarse("affine-gamma-missing", "no gamma", lambda k: k.finish(gamma=1.0), LN, BN, GN, ADALN),
    coarse("affine-gamma-missing affine-missing", "no gamma", lambda k: k.finish(gamma=1.0), RMS, QK),
    coarse("affine-beta-missing", "no beta", lambda k: k.finish(beta=0.0), LN, BN, IN, ADALN),
    coarse("affine-swapped", "gamma and beta exchanged", lambda k: k.finish(gamma=k.beta, beta=k.gamma), LN, BN, GN, ADALN, EVALUATED),
    coarse("affine-gamma-twice", "gamma squared", lambda k: k.finish(gamma=k.gamma**2), LN, BN, RMS, GN, EVALUATED, ADALN),
    coarse("affine-gamma-doubled", "2 · gamma", lambda k: k.finish(gamma=2 * k.gamma), *BOTH),
    coarse("affine-gamma-doubled affine-constant", "2 · gamma", lambda k: k.finish(gamma=2 * k.gamma), RMS),
    coarse("affine-gamma-negated", "−gamma", lambda k: k.finish(gamma=-k.gamma), *BOTH),
    coarse("affine-gamma-negated affine-constant", "−gamma", lambda k: k.finish(gamma=-k.gamma), QK),
    coarse("affine-gamma-divided", "divided by gamma", lambda k: k.finish(gamma=1 / k.gamma), LN, BN, RMS, EVALUATED),
    coarse("affine-gamma-rolled", "gamma rolled by one", lambda k: k.finish(gamma=move(k, k.gamma)), LN, BN, RMS, GN, ADALN, QK, EVALUATED),
    coarse("affine-gamma-rolled", "gamma rolled back by 3", lambda k: k.finish(gamma=move(k, k.gamma, step=-3)), LN_ROWS, BN_ROWS, RMS_ROWS),
    coarse("affine-gamma-rolled", "gamma of the next head", lambda k: k.finish(gamma=move(k, k.gamma, axis=0)), QK, times=2),
    coarse("affine-gamma-reversed", "gamma reversed", lambda k: k.finish(gamma=move(k, k.gamma, step=0)), LN, BN, RMS, IN, ADALN, EVALUATED),
    coarse("affine-gamma-exp", "exp(gamma)", lambda k: k.finish(gamma=np.exp(k.gamma)), LN, BN, RMS, GN),
    coarse("affine-gamma-absolute", "|gamma|", lambda k: k.finish(gamma=np.abs(k.gamma)), LN_SIGNED, BN_SIGNED),
    coarse("affine-gamma-plus-one", "1 + gamma", lambda k: k.finish(gamma=1 + k.gamma), LN, BN, RMS, ADALN, QK, EVALUATED),
    coarse("affine-gamma-plus-two", "2 + gamma", lambda k: k.finish(gamma=2 + k.gamma), RMS, LN, QK, RMS_ROWS),
    coarse("affine-gamma-shifted", "gamma + 0.1", lambda k: k.finish(gamma=k.gamma + 0.1), RMS, LN),
    coarse(
        "affine-other-axis", "gamma and beta of the row",
        lambda k: k.finish(gamma=k.gamma.reshape(-1, 1), beta=k.beta.reshape(-1, 1)),
        LN_ALIKE, times=2, really={"norm": "ws"},
    ),
    coarse("affine-gamma-plus-one-twice", "(1 + gamma)²", lambda k: k.finish(gamma=(1 + k.gamma) ** 2), RMS, LN, RMS_ROWS),
    fine("affine-gamma-rounded", "gamma in bfloat16", lambda k: k.finish(gamma=_round(k.gamma, "bfloat16")), LN, BN, RMS, LN_ROWS, EVALUATED, QK),
    fine("affine-gamma-rounded", "gamma in float16", lambda k: k.finish(gamma=_round(k.gamma, "float16")), LN, RMS),
    coarse("affine-gamma-permuted", "gamma permuted", lambda k: k.finish(gamma=_permute(k)), LN, BN_ROWS, RMS),
    coarse(
        "affine-gamma-other-sample affine-gamma-rolled", "gamma of the next sample",
        lambda k: k.finish(gamma=move(k, k.gamma, axis=0)), ADALN, times=2,
    ),
    coarse(
        "affine-gamma-other-sample", "gamma of the first sample",
        lambda k: k.finish(gamma=k.gamma[:1]), ADALN, times=2,
    ),
    coarse("affine-beta-first", "beta before gamma", lambda k: k.finish(beta=k.gamma * k.beta), LN, BN, GN, ADALN, EVALUATED, IN),
    coarse("affine-beta-negated", "−beta", lambda k: k.finish(beta=-k.beta), LN, BN, GN, ADALN, EVALUATED),
    coarse("affine-beta-doubled", "2 · beta", lambda k: k.finish(beta=2 * k.beta), LN, BN, LN_ROWS, ADALN),
    coarse("affine-beta-rolled", "beta rolled by one", lambda k: k.finish(beta=move(k, k.beta)), LN, BN, IN, ADALN),
    coarse("affine-beta-alone", "beta in every row", lambda k: 0 * k.y + k.beta, LN, BN, LN_ROWS),
    coarse("affine-constant", "times 3.7", lambda k: 3.7 * k.y, LN, BN, RMS, LN_BARE),
    coarse("affine-constant", "times 1e-4", lambda k: 1e-4 * k.y, LN, RMS_ROWS, BN_LAST),
    coarse("affine-constant", "divided by 5", lambda k: k.y / 5, LN_BARE, RMS, ZSCORE),
    coarse("affine-constant stats-length", "divided by the root of the length", lambda k: k.y * k.shape[-1] ** -0.5, LN_ROWS),
    coarse(
        "affine-constant stats-length", "divided by the root of the length", lambda k: k.y * k.shape[-1] ** -0.5,
        RMS, really={"norm": "lp", "eps": 1e-12, "feature_axes": None},
    ),
    coarse("affine-offset", "plus 0.25", lambda k: k.y + 0.25, LN, BN, RMS, ZSCORE),
    coarse("affine-offset", "minus 1", lambda k: k.y - 1.0, LN_ROWS, GN, LN_BARE),
)  # fmt: skip
