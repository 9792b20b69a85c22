"""A variance that was calculated as E[x²] − E[x]² is told from one that was not."""

from __future__ import annotations

import numpy as np
import pytest

from normcli.identifying.identify import identify
from normcli.identifying.models.one_pass import fit_one_pass, measure_step
from normcli.identifying.models.standards import standardize
from normcli.identifying.question import Question
from normcli.identifying.words.phrasing import diagnose
from normcli.norms.divisors import DEVIATION, ROOT_MEAN_SQUARE


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
    assert "the variance is E[x²] − E[x]², off by up to" in diagnose(found).sentence


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


def test_a_match_that_is_far_from_the_exact_result_is_a_fault():
    """With gamma and beta given, its norm is found: what it makes is no less wrong for that."""
    x = make(300.0)
    gamma, beta = (np.linspace(a, 1.5, x.shape[1]).astype("f4") for a in (0.5, -1.0))
    found = identify(Question(x, (normalize_in_one_pass(x) * gamma + beta).astype("f4"), gamma, beta))
    told = diagnose(found)
    assert found.matches[0].max_ulp > 1000.0
    assert (told.verdict, told.fault, told.remedy) == ("fault", "stats-one-pass", "take squares of x − mean")
    assert told.cause == "y is ln, but the variance is E[x²] − E[x]², which cancels"
    assert told.evidence[0].startswith("y is off by up to ")


def test_a_variance_that_is_far_off_is_named_as_a_fault():
    x = make(3000.0)
    found = ask(x, normalize_in_one_pass(x))
    assert not found.matches
    assert found.doubtful[0].cancelled > 1.0
    assert diagnose(found).fault == "stats-one-pass"


def fit(mean, eps, *, off=0.0, width=2.0**-24, rows=13):
    """Return what is fitted to factors of variances that are whole steps, but for a part of one."""
    standard = standardize(np.random.default_rng(3).normal(mean, 1.0, (rows, 67)), DEVIATION)
    step = 2.0 ** (np.floor(2.0 * np.log2(standard.offset * standard.size)) - 23)
    variance = np.round(standard.size**2 / step) * step + off * step
    factors = standard.size / np.sqrt(variance + eps)
    found = next(fit_one_pass(standard, factors * (1.0 - width), factors * (1.0 + width), np.dtype("f4")), None)
    return found, variance, standard


@pytest.mark.parametrize("eps", [1e-5, 1e-3, 0.0, 0.1])
def test_variances_of_whole_steps_and_their_eps_are_found(eps):
    (model, measured), variance, _ = fit(300.0, eps)
    np.testing.assert_allclose(measured, variance, rtol=1e-12)
    assert model.low <= eps <= model.high
    assert (model.eps_mode, model.ddof, model.bits > 20.0) == ("inside", 0, True)


@pytest.mark.parametrize(
    ("mean", "asked"),
    [
        pytest.param(300.0, {"off": 0.4}, id="no whole steps"),
        pytest.param(300.0, {"off": 21.0}, id="too far off"),
        pytest.param(300.0, {"width": 2.0**-8}, id="hardly seen"),
        pytest.param(300.0, {"rows": 1}, id="one group"),
        pytest.param(0.5, {}, id="near zero"),
    ],
)
def test_variances_that_show_no_steps(mean, asked):
    assert fit(mean, 1e-5, **asked)[0] is None


def test_variances_may_be_some_steps_off():
    (_, measured), variance, _ = fit(300.0, 1e-5, off=19.0)
    np.testing.assert_allclose(measured, variance, rtol=1e-12)


def test_groups_that_are_constant_or_not_of_deviations_show_nothing():
    rows = np.random.default_rng(3).normal(300.0, 1.0, (13, 67))
    rows[3] = 7.0
    for standard in (standardize(rows, DEVIATION), standardize(rows[4:], ROOT_MEAN_SQUARE)):
        factors = np.ones(len(standard.size))
        assert not [*fit_one_pass(standard, factors, factors * 1.0001, np.dtype("f4"))]
    standard = standardize(rows[4:], DEVIATION)
    assert not [*fit_one_pass(standard, np.ones(9), np.full(9, np.inf), np.dtype("f4"))]


def test_a_step_is_the_last_place_of_the_squared_mean():
    standard = standardize(np.array([[31.0, 33.0], [-1.0, -3.0]]), DEVIATION)
    assert measure_step(standard, np.dtype("f4")).tolist() == [2.0 ** (10 - 23), 2.0 ** (2 - 23)]
