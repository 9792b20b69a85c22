"""What is subtracted of a group, and what divides it."""

from __future__ import annotations

import numpy as np
import pytest

from normcli.dtypes import find_type
from normcli.numerics.rounding import round_to_short
from tests.identifying.faulty import ask, draw, name, standardize

X = draw((12, 64), "f8")
SMALL = X * 0.02
M, V = X.mean(-1, keepdims=True), X.var(-1, keepdims=True)
EPS = 1e-5


def test_an_eps_is_said_beside_the_one_that_was_asked_for():
    y = (SMALL - SMALL.mean(-1, keepdims=True)) / np.sqrt(SMALL.var(-1, keepdims=True) + 1e-3)
    assert "eps is 0.001, not 1e-05" in name("ln", SMALL, y)[1]


@pytest.mark.slow
def test_no_divisor_of_all_is_negative_or_infinite():
    assert not any("all groups, -" in claim.cause for claim in ask("rms", X, -X))
    assert ask("ln", X, X * 0.0) == ()


def test_norms_without_moments_have_no_faults_in_moments():
    assert not any(claim.fault.id.startswith("stats") for claim in ask("minmax", X, 2 * X))
    low, high = X.min(0), X.max(0)
    assert name("minmax", X, (X - low) / (high - low) * 2)[0] == ["affine-constant"]


@pytest.mark.slow
def test_factors_of_rows_beside_a_factor_of_all_are_not_told_apart():
    y = standardize(X[:2]) * np.array([[0.9], [0.904]])
    assert not any(len(claim.faults) > 1 for claim in ask("ln", X[:2], y))


# -- differences of squares in half precision


def _round(values):
    return round_to_short(np.asarray(values, "f8"), "bfloat16")


@pytest.mark.parametrize("spread", [0.1, 0.3])
@pytest.mark.parametrize("rounds", [False, True], ids=["the difference", "every step"])
def test_a_variance_of_one_pass_in_bfloat16_is_named(spread, rounds):
    x = _round(5 + spread * np.random.default_rng(0).normal(size=(16, 64)))
    mean, square = x.mean(-1, keepdims=True), (x * x).mean(-1, keepdims=True)
    step = _round if rounds else np.asarray
    with np.errstate(all="ignore"):
        variance = _round(_round(square) - _round(_round(mean) ** 2))
        y = step(x - step(mean)) * step(1 / np.sqrt(variance + 1e-5))
    half = find_type("bfloat16")
    claims = ask("ln", x.astype(half), y, rounded=half)
    assert claims[0].fault.id == "stats-one-pass"


def test_a_mean_that_half_precision_rounds_is_no_median():
    x = round_to_short(draw((12, 64), "f8") + 1000.0, "float16")
    mean, var = x.mean(-1, keepdims=True), x.var(-1, keepdims=True)
    y = round_to_short((x - round_to_short(mean, "float16")) / np.sqrt(var + EPS), "float16")
    ids = name("ln", x.astype("f2"), y.astype("f2"))[0]
    assert "stats-median" not in ids
    assert "stats-rounded-mean" in ids
