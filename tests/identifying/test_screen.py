"""Large groups are refuted by a few of their values, and those that a norm made never are."""

from __future__ import annotations

import numpy as np
import pytest

from normcli import normalize
from normcli.identifying.search.affine_step import NO_AFFINE, AffineStep, enumerate_affine_steps
from normcli.identifying.search.screen import find_possible, lie_on_lines, measure_offset
from normcli.norms.grid import Grid
from normcli.norms.layout import Layout

SHAPE = (12, 4, 40, 30)
RNG = np.random.default_rng(8)
PLAIN = RNG.normal(0.7, 2.0, SHAPE)
DATA = {
    "normal": PLAIN,
    "heavy tails": RNG.standard_cauchy(SHAPE) ** 3,
    "sorted": np.sort(PLAIN, axis=None).reshape(SHAPE),
    "far from zero": PLAIN + 3e3,
    "one outlier": np.where(np.arange(PLAIN.size).reshape(SHAPE) == 777, 1e6, PLAIN),
    "mostly zero": np.maximum(PLAIN - 3.0, 0.0),
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


@pytest.mark.parametrize("dtype", ["float32", "float16"])
@pytest.mark.parametrize("data", DATA)
def test_what_made_a_large_group_is_not_refuted(data, dtype):
    with np.errstate(all="ignore"):
        x = np.resize(DATA[data], LARGE).astype(dtype)
    assert may_be(x, normalize(x, "ln", axes=(0, 1, 2, 3)).normalized, (0, 1, 2, 3))


def test_a_large_group_of_half_precision_is_refuted_by_values_that_are_nearly_on_a_line():
    x = np.random.default_rng(3).standard_normal(LARGE).astype("f2")
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


SOME = PLAIN.ravel()[:64]


def lies(y, step=NO_AFFINE, x=SOME, slack=1e-6):
    return bool(lie_on_lines(x, y, [(step, np.full(64, slack))], np.full(64, slack))[0])


def test_values_that_gamma_hides_say_nothing():
    x, gamma = SOME, np.tile([0.0, 0.0, 0.0, 2.0], 16)
    step = AffineStep("gamma", gamma)
    assert lies(gamma * (x - 1.0) / 2.0, step)
    assert not lies(gamma * x * x, step)
    assert lies(np.zeros(64), AffineStep("gamma", np.zeros(64)))


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_values_that_are_not_finite_say_nothing(value):
    x, y = SOME.copy(), SOME / 2.0
    for values in (x, y):
        values[:5] = value
        assert lies(y, x=x)
    assert not lies(y**2, x=x)
    assert lies(y, x=np.full(64, value))


@pytest.mark.parametrize(("times", "is_one"), [(0.9, True), (1.1, False)])
def test_values_lie_on_a_line_within_eight_times_what_is_allowed(times, is_one):
    x = np.arange(-31.5, 32.0)
    off = np.where(np.arange(64) % 2, 1.0, -1.0) * 1e-3
    allowed = 1e-3 / (8.0 * 2.0 * times)
    assert lie_on_lines(x, x + off, [(NO_AFFINE, np.full(64, allowed))], np.zeros(64))[0] == is_one


def test_how_many_deviations_values_are_from_zero():
    assert measure_offset(np.array([9.0, 10.0, 11.0, 12.0, 500.0])) == 11.0
    assert measure_offset(np.array([-10.0, -12.0, -14.0])) == 6.0
    assert measure_offset(np.array([3.0, 3.0, 9.0])) == np.inf
