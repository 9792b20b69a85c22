"""Gated kernels, right and wrong, held against each order and activation."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

from tests.marks import costly

erf = np.vectorize(math.erf)

ACTIVATIONS = {
    "silu": lambda z: z / (1 + np.exp(-z)),
    "sigmoid": lambda z: 1 / (1 + np.exp(-z)),
    "gelu": lambda z: z * (1 + erf(z / np.sqrt(2))) / 2,
    "none": lambda z: z,
}


def normalize(x, groups):
    rows = x.reshape(len(x), groups, -1)
    return (rows / np.sqrt((rows * rows).mean(-1, keepdims=True) + 1e-5)).reshape(x.shape)


KERNELS = {
    ("after", act, groups): lambda x, z, f=f, groups=groups: normalize(x, groups) * f(z)
    for (act, f), groups in itertools.product(ACTIVATIONS.items(), (1, 2))
} | {
    ("before", act, groups): lambda x, z, f=f, groups=groups: normalize(x * f(z), groups)
    for (act, f), groups in itertools.product(ACTIVATIONS.items(), (1, 2))
}


@pytest.mark.slow
@costly
@pytest.mark.parametrize(("order", "act", "groups"), KERNELS)
def test_a_gated_kernel_agrees_with_its_own_order_activation_and_groups_alone(
    order, act, groups, normcli, tmp_path
):
    x, z = np.random.default_rng(5).standard_normal((2, 4, 16)).astype(np.float32)
    files = {"x": x, "z": z, "y": KERNELS[order, act, groups](x, z).astype(np.float32)}
    paths = {name: str(tmp_path / f"{name}.npy") for name in files}
    for name, values in files.items():
        np.save(paths[name], values)
    given = ("-i", paths["x"], "--gate", paths["z"], "--actual", paths["y"])
    others = [(order, act, 3 - groups), (order, "gelu" if act != "gelu" else "silu", groups)]
    others.append(("before" if order == "after" else "after", act, groups))
    for ordered, activation, count in [(order, act, groups), *others]:
        more = ("--gate-order", ordered, "--gate-act", activation, "--groups", count)
        ran = normcli("check", "rms", *given, *more)
        assert ran.code == (0 if (ordered, activation, count) == (order, act, groups) else 1), ran.out
