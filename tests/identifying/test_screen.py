"""Large groups are refuted by a few of their values, and those that a norm made never are."""

from __future__ import annotations

import numpy as np
import pytest

from normcli import normalize
from normcli.identifying.search.affine_step import enumerate_affine_steps
from normcli.identifying.search.screen import find_possible
from normcli.norms.grid import Grid
from normcli.norms.layout import Layout

SHAPE = (12, 4, 40, 30)
RNG = np.random.default_rng(8)
PLAIN = RNG.normal(0.7, 2.0, SHAPE)
DATA = {
    "normal": PLAIN,
    "heavy tails": RNG.standard_cauchy(SHAPE) ** 3,
    "far from zero": PLAIN + 3e3,
    "one outlier": np.where(np.arange(PLAIN.size).reshape(SHAPE) == 777, 1e6, PLAIN),
    "not a number": np.where(np.arange(PLAIN.size).reshape(SHAPE) % 97 == 0, np.nan, PLAIN),
}


def may_be(x, y, axes, **parameters):
    steps = list(enumerate_affine_steps(x.shape, *map(parameters.get, ("gamma", "beta"))))
    return bool(find_possible(x, y, Grid(x.shape, Layout(4, None), axes), steps, y.dtype))


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16"])
@pytest.mark.parametrize("data", DATA)
@pytest.mark.parametrize(("norm", "axes"), [("bn", (0, 2, 3)), ("maxabs", (0, 2, 3)), ("rms", (0, 1, 2, 3))])
def test_what_a_norm_made_is_not_refuted(norm, axes, data, dtype):
    with np.errstate(all="ignore"):
        x = DATA[data].astype(dtype)
    made = normalize(x, norm, axes=axes).normalized
    assert may_be(x, made, axes)


LARGE = 12, 4, 80, 70
"""All of it is more values than are looked at of a group before they are measured."""


def test_a_large_group_of_half_precision_is_refuted_by_values_that_are_nearly_on_a_line():
    x = np.random.default_rng(3).standard_normal(LARGE).astype("f2")
    assert may_be(x, normalize(x, "ln", axes=(0, 1, 2, 3)).normalized, (0, 1, 2, 3))
    assert not may_be(x, normalize(x, "ln", axes=(2, 3)).normalized, (0, 1, 2, 3))


def test_the_affine_step_is_undone():
    gamma, beta = RNG.uniform(0.5, 2.0, 4).astype("f4"), RNG.normal(size=4).astype("f4")
    x = PLAIN.astype("f4")
    y = normalize(x, "ln", axes=(1, 2, 3)).normalized * gamma[:, None, None] + beta[:, None, None]
    assert may_be(x, y, (1, 2, 3), gamma=gamma, beta=beta)
    assert not may_be(x, y, (1, 2, 3))


@pytest.mark.parametrize("axes", [(0, 1, 2, 3), (0, 2, 3)])
def test_other_groups_are_refuted(axes):
    x = PLAIN.astype("f4")
    assert not may_be(x, normalize(x, "ln").normalized, axes)
