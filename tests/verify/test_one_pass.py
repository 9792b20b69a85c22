"""A variance that was calculated as E[x²] − E[x]² is told from one that was not."""

from __future__ import annotations

import numpy as np
import pytest

from normcli.verify.identify import Question, identify
from normcli.verify.sentence import format_sentence


def make(mean):
    return np.random.default_rng(3).normal(mean, 1.0, (13, 67)).astype("f4")


def normalize_in_one_pass(x):
    mean = x.mean(1, keepdims=True)
    variance = np.maximum((x * x).mean(1, keepdims=True) - mean * mean, np.float32(0))
    return (x - mean) / np.sqrt(variance + np.float32(1e-6))


def normalize_in_two_passes(x):
    return (x - x.mean(1, keepdims=True)) / np.sqrt(x.var(1, keepdims=True) + np.float32(1e-6))


def ask(x, y):
    return identify(Question(x, y), "ln")


@pytest.mark.parametrize("mean", [30.0, -300.0, 450.0])
def test_one_pass_leaves_its_steps_far_from_zero(mean):
    x = make(mean)
    y = normalize_in_one_pass(x)
    found = ask(x, y)
    match = found.matches[0]
    exact, wide = x.astype("f8").var(axis=1), x.astype("f4")
    one_pass = (wide * wide).mean(1) - wide.mean(1) ** 2
    assert match.cancelled == pytest.approx(np.abs(one_pass / exact - 1).max(), rel=0.05)
    assert {"flax-linen", "flax-nnx"} <= set(match.like) <= {"flax-linen", "flax-nnx", "jax", "keras"}
    assert match.is_certain
    assert "its variance is E[x²] − E[x]², which cancels: it is off by up to" in format_sentence(found)


def test_two_passes_are_of_frameworks_that_take_two():
    x = make(300.0)
    match = ask(x, normalize_in_two_passes(x)).matches[0]
    assert match.cancelled is None
    assert "torch" in match.like
    assert "flax-linen" not in match.like


def test_near_zero_either_may_have_been():
    x = make(0.5)
    match = ask(x, normalize_in_one_pass(x)).matches[0]
    assert match.cancelled is None
    assert "flax-linen" in match.like


@pytest.mark.slow
@pytest.mark.parametrize("seed", [0, 3])
def test_where_every_variance_cancels_to_nothing_no_norm_is_seen(seed):
    """Of (x − mean) · c, eps gives the c: whatever the groups are, a variance of 0 leaves no trace of them."""
    rng = np.random.default_rng(seed)
    x = rng.normal(1000.0, 1e-4, (4, 4)).astype("f4")
    y = (x - x.mean(1, keepdims=True)) / np.sqrt(np.float32(1e-5))
    assert not identify(Question(x, y)).matches


@pytest.mark.parametrize("divisor", [1.0, 0.25])
def test_one_factor_for_all_is_no_variance_of_whole_steps(divisor):
    """At a mean of 1000 a step is 1/16: every variance would be as many, whatever the groups' own are."""
    x = make(1000.0)
    assert not ask(x, (x - x.mean(1, keepdims=True)) / np.float32(divisor)).matches


def test_a_variance_that_is_far_off_is_not_certain():
    x = make(3000.0)
    found = ask(x, normalize_in_one_pass(x))
    assert not found.matches
    assert found.doubtful[0].cancelled > 1.0
    assert (
        "a kernel in float32 whose sums cancel, as E[x²] − E[x]² does, might give the others"
        in format_sentence(found)
    )
