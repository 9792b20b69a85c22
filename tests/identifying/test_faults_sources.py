"""Where y is not finite, or 0, x and gamma may show which step made it."""

from __future__ import annotations

import numpy as np
import pytest

from normcli.engine.inputs import Inputs
from normcli.identifying.faults.open_case import AskedNorm
from normcli.identifying.words.request_phrasing import diagnose_actual
from tests.identifying.faulty import ask, draw, draw_affine, plan, standardize

X = draw((6, 16))
G, B = draw_affine(16)


def fill(index, value, x=X, gamma=1.0, beta=0.0):
    y = standardize(x) * gamma + beta
    y[index] = value
    return y


def tell(x, y, gamma=None, beta=None, norm="ln"):
    subject = AskedNorm(plan(norm, x), Inputs(gamma, beta))
    return diagnose_actual(subject, x, np.asarray(y, x.dtype), ok=False)


@pytest.mark.all_quick
@pytest.mark.parametrize(
    ("index", "value", "cause"),
    [
        pytest.param(3, np.nan, "y is NaN for n=3", id="a row"),
        pytest.param(np.s_[:, 4], np.nan, "y is NaN for c=4", id="a column"),
        pytest.param((3, 5), np.nan, "y is NaN for n=3, c=5", id="a value"),
        pytest.param(3, np.inf, "y is infinite for n=3", id="an infinite row"),
        pytest.param(
            ([1, 4], [5, 9]), -np.inf, "y is infinite for 2 values, the first at (1, 5)", id="two values"
        ),
        pytest.param(3, [np.nan, np.inf] * 8, "y is infinite or NaN for n=3", id="both in a row"),
    ],
)
def test_values_that_are_not_finite_are_said(index, value, cause):
    assert tell(X, fill(index, value)).cause == f"ln differs: {cause}"


@pytest.mark.parametrize(("shape", "place"), [((3, 4), 1), ((2, 3), (1, 1))])
def test_of_a_small_tensor_too(shape, place):
    x = draw(shape)
    assert tell(x, fill(place, np.nan, x)).cause.startswith("ln differs: y is NaN for n=1")


def spoil(row):
    x = X.copy()
    x[2] = row
    return x


NEAR = 3000 + np.linspace(0, 0.01, 16)
LARGE = (draw((6, 16), mean=1.0) * np.where(np.arange(6) == 2, 300, 1)[:, None]).astype("f2")
ODD = np.where(np.arange(16) == 4, np.inf, G).astype("f4")


@pytest.mark.all_quick
@pytest.mark.parametrize(
    ("x", "index", "value", "gamma", "clause", "remedy"),
    [
        pytest.param(spoil(NEAR), 2, np.nan, G, "E[x²] − E[x]² may be negative for n=2", "take squares of x − mean", id="one pass"),
        pytest.param(LARGE, 2, B, G, "x · x overflows float16 for n=2", "square and add in float32", id="float16"),
        pytest.param(spoil(2.0), 2, np.nan, G, "x is constant for n=2", "add eps to the variance", id="no eps"),
        pytest.param(X, np.s_[:, 4], np.nan, ODD, "gamma is not finite for c=4", "find what made gamma", id="gamma"),
    ],
)  # fmt: skip
def test_what_made_them_is_said_where_x_or_gamma_show_it(x, index, value, gamma, clause, remedy):
    gamma, beta = gamma.astype(x.dtype), B.astype(x.dtype)
    with np.errstate(all="ignore"):
        told = tell(x, fill(index, value, x, np.nan_to_num(gamma, posinf=1.0), beta), gamma, beta)
    said = "y is beta" if value is B else "y is NaN"
    assert told.cause == f"ln differs: {said}, and {clause}"
    assert told.remedy == remedy


def test_where_other_groups_overflow_as_well_it_is_not_the_source():
    x = (X * 300).astype("f2")
    assert tell(x, fill(2, 0.0, x)).cause == "ln differs: y is 0 for n=2"


def test_x_that_is_not_finite_is_evidence():
    x = spoil(np.nan)
    told = tell(x, fill(2, 0.5, np.nan_to_num(x)))
    assert told.cause == "ln differs: y is right, except for n=2"
    assert told.evidence[0] == "x is not finite there"


def test_all_of_y_is_nan():
    told = tell(np.repeat(np.arange(4.0), 8).reshape(4, 8), np.full((4, 8), np.nan))
    assert (told.cause, told.remedy) == ("ln differs: y is NaN, and x is constant", "add eps to the variance")


# -- constant groups

CONSTANT = np.repeat(np.arange(4.0, dtype="f4")[:, None], 16, 1)


@pytest.mark.all_quick
@pytest.mark.parametrize(
    ("y", "gamma", "beta"),
    [
        pytest.param(np.ones((4, 16)), None, None, id="one number"),
        pytest.param(CONSTANT + 1, None, None, id="near x"),
        pytest.param(np.random.default_rng(0).normal(size=(4, 16)), G, B, id="noise"),
    ],
)
def test_constant_groups_show_nothing_of_the_norm(y, gamma, beta):
    told = tell(CONSTANT, y, gamma, beta)
    assert told.cause == "ln differs: x is constant in every group"
    assert told.evidence == ("it shows nothing of the norm",)
    assert told.next_step.startswith("normcli generate --shape 4,16 ")


@pytest.mark.parametrize(
    ("y", "cause"),
    [
        pytest.param(np.zeros(16), "beta is not applied", id="no beta"),
        pytest.param(-B, "beta is subtracted", id="minus beta"),
        pytest.param(draw_affine(16, 9)[1], "another beta is used at all 16 indices", id="another beta"),
    ],
)
def test_but_a_wrong_beta(y, cause):
    assert tell(CONSTANT, np.broadcast_to(y, (4, 16)), G, B).cause == f"ln differs: {cause}"


def test_a_finite_row_is_no_source():
    (claim, *_) = ask("ln", X, fill(2, 0.0))
    assert (claim.fault.id, claim.cause) == ("where-zeros", "y is 0 for n=2")
