"""Stored statistics are read off a plain map, and compared with those that were given."""

from __future__ import annotations

import numpy as np
import pytest

from normcli import normalize
from normcli.identifying.identify import identify
from normcli.identifying.question import Kind, Question
from normcli.identifying.words.phrasing import diagnose
from normcli.identifying.words.request_phrasing import diagnose_request
from normcli.norms.plan import make_plan
from normcli.norms.request import Request
from normcli.numerics.statistics.solution import Given
from tests.marks import choose_some, costly, slowly


def draw(*shape):
    rng = np.random.default_rng(4)
    return (rng.normal(0.7, 2.0, shape) * rng.uniform(0.5, 2.0, (shape[1], 1, 1))).astype("f4")


X = draw(7, 5, 3, 7)
GAMMA, BETA = (np.random.default_rng(seed).uniform(0.5, 2.0, 5).astype("f4") for seed in (1, 2))


@pytest.mark.slow
@pytest.mark.parametrize("given", choose_some([True, False], 2))
def test_stored_statistics_are_read_off(given):
    mean, var = (np.random.default_rng(seed).uniform(0.5, 3.0, 5) for seed in (6, 7))
    parameters = {"gamma": GAMMA, "beta": BETA} if given else {}
    stored = {"running_mean": mean, "running_var": var}
    y = normalize(X, "bn", eps=1e-3, **stored, **parameters).normalized
    found = identify(Question(X, y, **parameters))
    assert (found.kind, found.plain.axes, found.evaluation.affine.way) == (
        Kind.AFFINE, (1,), "gamma, beta" if given else "none",
    )  # fmt: skip
    np.testing.assert_allclose(found.evaluation.mean.ravel(), mean, rtol=1e-5)
    np.testing.assert_allclose(found.evaluation.square.ravel(), var + 1e-3, rtol=1e-5)
    assert "evaluation with running mean ≈" in diagnose(found).sentence


@pytest.mark.costly
@pytest.mark.parametrize("names", [("gamma", "beta"), ("gamma",)])
def test_a_gamma_that_is_stored_less_one_is_read_so(names):
    """A gamma of both signs makes no divisor, and that it was left out is less likely."""
    given = {name: {"gamma": GAMMA, "beta": BETA}[name] for name in names} | {
        "gamma": 0.5 * np.sign(GAMMA - 1.0)
    }
    moved = given | {"gamma": 1.0 + given["gamma"]}
    stored = {"running_mean": np.arange(5.0), "running_var": np.arange(1.0, 6.0)}
    found = identify(Question(X, normalize(X, "bn", **stored, **moved).normalized, **given))
    assert found.evaluation.affine.way == ("1 + gamma, beta" if "beta" in names else "1 + gamma")


STORED = Given(*(np.random.default_rng(seed).uniform(0.5, 3.0, 5) for seed in (6, 7)))


# -- statistics that were never updated


@costly
@pytest.mark.slow
@pytest.mark.parametrize("eps", [1e-5, *slowly([1e-3])])
@pytest.mark.parametrize("given", [{}, *slowly([{"gamma": GAMMA, "beta": BETA}])])
def test_untrained_statistics_are_named(eps, given):
    stored = {"running_mean": np.zeros(5), "running_var": np.ones(5)}
    found = identify(
        Question(X, normalize(X, "bn", eps=eps, **stored, **given).normalized, **given, layout="NCHW")
    )
    told = diagnose(found)
    assert told.cause == "running statistics are untrained: mean 0, variance 1"
    assert f"eps is {eps:g}" in told.evidence
    plan = make_plan(Request("bn", layout="NCHW"), X.shape, X.dtype)
    for running in (None, STORED):
        assert diagnose_request(plan, found, running).cause == f"bn differs: {told.cause}"
