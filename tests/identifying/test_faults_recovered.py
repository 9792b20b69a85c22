"""What nobody asked for is told as one norm with other statistics or parameters, if no other norm has them."""

from __future__ import annotations

import numpy as np
import pytest

from normcli.identifying.faults.fault_search import open_cases, recover_one
from normcli.identifying.identify import identify
from normcli.identifying.inquiry import list_subjects
from normcli.identifying.question import Kind, Question
from normcli.identifying.words.phrasing import diagnose
from tests.identifying.faulty import draw, draw_affine, standardize

X = draw((12, 24))
GAMMA, BETA = draw_affine(24)
MEAN, DEVIATION = (np.asarray(v, "f8") for v in (X.mean(-1, keepdims=True), X.std(-1, keepdims=True)))
OTHER = np.random.default_rng(5).uniform(0.5, 2.0, (12, 1))


def make(mean=MEAN, divisor=DEVIATION, gamma=GAMMA, beta=BETA):
    return ((X - mean) / divisor * gamma + beta).astype("f4")


def recover(y):
    return recover_one([*open_cases(list_subjects(X, GAMMA, BETA, None, None), y, y.dtype)])


@pytest.mark.all_quick
@pytest.mark.parametrize(
    ("y", "words"),
    [
        pytest.param(make(divisor=OTHER), "y is ln, but the divisor is wrong, the mean is right", id="divisor"),
        pytest.param(
            (standardize(X, mean=OTHER, square=DEVIATION**2) * GAMMA + BETA).astype("f4"),
            "y is ln, but the mean is wrong, the divisor is right", id="mean",
        ),
        pytest.param(make(OTHER, 1.5 * OTHER), "y is ln, but mean and divisor are wrong", id="both"),
        pytest.param(
            (standardize(X) * draw_affine(24, 7)[0] + BETA).astype("f4"),
            "y is ln, but another gamma is used at all 24 indices", id="gamma",
        ),
    ],
)  # fmt: skip
def test_one_norm_alone_explains_y(y, words):
    (claim,) = recover(y)
    assert f"y is {claim.plan.norm.name}, but {claim.cause}" == words


@pytest.mark.slow
def test_identify_says_so():
    found = identify(Question(X, make(divisor=OTHER), GAMMA, BETA))
    said = "y is ln, but the divisor is wrong, the mean is right"
    assert (found.kind, diagnose(found).cause) == (Kind.FAULT, said)


def test_noise_is_nothing():
    assert recover(np.random.default_rng(1).normal(size=X.shape).astype("f4")) == ()
