"""Which numbers of gamma and beta are others is said with the first of them, where no row says what they are."""

from __future__ import annotations

import numpy as np
import pytest

import normcli
from tests.identifying.faulty import ask, draw, draw_affine, standardize

X = draw((16, 32))
GAMMA, BETA = draw_affine(32)
XHAT = standardize(X)


def change(values, *places, by=0.25):
    changed = values.copy()
    changed[list(places)] += by
    return changed


@pytest.mark.all_quick
@pytest.mark.parametrize(
    ("gamma", "beta", "cause", "first"),
    [
        pytest.param(change(GAMMA, 3), BETA, f"gamma[3] is {GAMMA[3] + 0.25:.5g}, not {GAMMA[3]:.5g}", None, id="one gamma"),
        pytest.param(GAMMA, change(BETA, 31), f"beta[31] is {BETA[31] + 0.25:.5g}, not {BETA[31]:.5g}", None, id="one beta"),
        pytest.param(
            change(GAMMA, 3, 9), BETA, "another gamma is used at 2 of 32 indices", ["gamma[3]"], id="two gammas"
        ),
        pytest.param(
            change(GAMMA, 3), change(BETA, 3, 5), "another gamma and beta are used at 2 of 32 indices", ["gamma[3]", "beta[3]"], id="both"
        ),
    ],
)  # fmt: skip
def test_some_numbers_of_gamma_and_beta_are_others(gamma, beta, cause, first):
    (claim, *_) = ask("ln", X, XHAT * gamma + beta, GAMMA, BETA)
    assert (claim.fault.id, claim.cause) == ("affine-unknown-gamma", cause)
    assert [line.split(" is ")[0] for line in claim.shown] == (first or [])
    assert claim.region is None


@pytest.mark.slow
def test_where_gamma_lies_along_the_groups_it_may_be_the_divisor():
    x = draw((8, 6, 5, 5))
    gamma, beta = draw_affine(6)
    xhat = standardize(x, (0, 2, 3))
    y = xhat * change(gamma, 3)[:, None, None] + beta[:, None, None]
    causes = [claim.cause for claim in ask("bn", x, y, gamma, beta)]
    assert causes[0].startswith("gamma[3] is ")
    assert "the divisor is wrong, the mean is right" in causes[1:]


@pytest.mark.slow
def test_what_is_no_line_of_a_feature_is_no_gamma():
    y = (XHAT * GAMMA + BETA).astype("f4")
    y[:, 3] = np.random.default_rng(0).normal(size=16)
    assert ask("ln", X, y, GAMMA, BETA)[0].fault.id == "where-index"


def test_numbers_that_are_near_have_the_digits_that_tell_them_apart():
    gamma = GAMMA.astype("f8")
    (claim, *_) = ask(
        "ln", X.astype("f8"), XHAT * change(gamma, 0, 9, by=1e-6) + BETA, gamma, BETA.astype("f8")
    )
    there, right = claim.shown[0].removeprefix("gamma[0] is ").split(", not ")
    assert there != right
    assert float(there) == pytest.approx(float(right), rel=1e-5)


@pytest.mark.parametrize(
    ("given", "cause"),
    [((GAMMA, None), "a beta that was"), ((None, BETA), "a gamma that was")],
    ids=["beta", "gamma"],
)
def test_one_parameter_that_was_not_given_is_asked_for(given, cause):
    told = normcli.check((XHAT * GAMMA + BETA).astype("f4"), X, "ln", gamma=given[0], beta=given[1]).diagnosis
    assert told.cause == f"ln differs: y has {cause} not given"
    assert told.next_step == f"give --{cause.split()[1]}"
