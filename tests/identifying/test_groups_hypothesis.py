"""What a hypothesis predicts of the sampled values, and what is made of how far these are."""

from __future__ import annotations

import math

import numpy as np
import pytest

from normcli import normalize
from normcli.identifying.models.divisor_fit import Model
from normcli.identifying.models.standards import standardize
from normcli.identifying.sampling import take_groups
from normcli.identifying.search.affine_step import ESTIMATED, NO_AFFINE, AffineStep
from normcli.identifying.search.groups import Hypothesis, Sample, measure_equality
from normcli.identifying.search.match import Furthest, Match
from normcli.norms.divisors import DEVIATION, LENGTH, ROOT_MEAN_SQUARE
from normcli.norms.grid import Grid
from normcli.norms.layout import Layout
from normcli.norms.rules import EpsMode

X = np.random.default_rng(0).normal(0.7, 2.0, (4, 6, 5))
CHOSEN = np.array([1, 3, 4])
GRID = Grid(X.shape, Layout(3, None), (0, 2))
MATCH = Match("ln", (1,), "float32", (), 0.5, 0.1, 0.5, 60, Furthest((0, 0), 1.0, 1.0), (0, 1), eps=1e-5)


def make(divisor=DEVIATION, affine=NO_AFFINE, x=X, **model):
    standard = standardize(take_groups(GRID, x, CHOSEN), divisor)
    sample = Sample(GRID, CHOSEN, standard, take_groups(GRID, x, CHOSEN))
    fitted = Model(LENGTH if model.get("p") else divisor, model.pop("mode", EpsMode.INSIDE), **model)
    return Hypothesis(sample, affine, fitted)


@pytest.mark.parametrize(
    ("norm", "options", "hypothesis"),
    [
        ("bn", {"eps": 0.1}, make()),
        ("mvn", {"eps": 0.1, "eps_mode": "outside"}, make(mode=EpsMode.OUTSIDE)),
        ("mvn", {"eps": 0.1, "ddof": 1}, make(ddof=1, mode=EpsMode.OUTSIDE)),
        ("rms", {"eps": 0.1}, make(ROOT_MEAN_SQUARE)),
        ("lp", {"eps": 0.1, "p": 3.0}, make(ROOT_MEAN_SQUARE, mode=EpsMode.FLOOR, p=3.0)),
    ],
)
def test_what_is_predicted_is_the_norm_of_the_chosen_groups(norm, options, hypothesis):
    exact = take_groups(GRID, normalize(X, norm, axes=(0, 2), **options).normalized, CHOSEN)
    np.testing.assert_array_equal(hypothesis.predict(0.1), exact)
    np.testing.assert_allclose(hypothesis.approximate(0.1), exact, rtol=1e-13)


def test_gamma_and_beta_are_those_of_the_chosen_groups():
    gamma, beta = np.arange(1.0, 7.0)[:, None], np.arange(5.0)
    exact = take_groups(GRID, normalize(X, "bn", axes=(0, 2), eps=0.1).normalized * gamma + beta, CHOSEN)
    hypothesis = make(affine=AffineStep("gamma, beta", gamma[None], beta[None, None]))
    np.testing.assert_allclose(hypothesis.predict(0.1), exact, rtol=1e-13)
    np.testing.assert_allclose(hypothesis.approximate(0.1), exact, rtol=1e-13)
    rounded = make(affine=AffineStep("gamma", gamma[None], None, np.dtype("f2")))
    first = take_groups(GRID, normalize(X, "bn", axes=(0, 2), eps=0.1).normalized.astype("f2") * gamma, CHOSEN)
    np.testing.assert_array_equal(rounded.predict(0.1), first)


def test_groups_of_one_value_have_no_factor():
    x = np.ones(X.shape)
    assert make(x=x).measure_factors(0.0).tolist() == [[0.0]] * 3
    assert make(x=x).measure_factors(0.25).tolist() == [[2.0]] * 3


def test_a_sampled_value_has_a_place_in_the_tensor():
    assert make().sample.locate(1, 7) == (1, 3, 2)
    assert make().sample.locate(2, 0) == (0, 4, 0)


@pytest.mark.parametrize(
    ("changed", "is_certain"),
    [
        pytest.param({}, True, id="as it is"),
        pytest.param({"bits": 20.0}, True, id="evidence enough"),
        pytest.param({"bits": 19.9}, False, id="too little"),
        pytest.param({"is_odd": True}, False, id="an odd eps"),
        pytest.param({"has_default_eps": False}, True, id="another eps"),
        pytest.param({"has_default_eps": False, "fine": 20.0}, True, id="another eps that shows"),
        pytest.param({"has_default_eps": False, "fine": 19.9}, True, id="another eps that need not be there"),
        pytest.param(
            {"has_default_eps": False, "fine": 19.9, "eps_range": (1e-6, 1.0)}, False, id="another eps that may be rounding"
        ),
        pytest.param({"fine": 0.0}, True, id="a default eps"),
        pytest.param({"precision": "float16"}, False, id="sums of half precision"),
        pytest.param({"precision": "bfloat16, rounded before gamma"}, False, id="and x̂ rounded"),
        pytest.param({"equal": 0.0, "max_ulp": 65.0}, True, id="none to the bit"),
        pytest.param({"equal": 0.0, "lost": 1.0}, False, id="none to the bit, and blurred"),
        pytest.param({"equal": 0.99, "lost": 1.0}, True, id="most to the bit"),
        pytest.param({"equal": 0.0, "lost": 1.0, "affine": ESTIMATED}, True, id="with a gamma that was fitted"),
    ],
)  # fmt: skip
def test_when_a_match_is_more_than_chance(changed, is_certain):
    assert MATCH._replace(**changed).is_certain == is_certain


def test_an_eps_is_usual_or_not_and_there_is_room_for_one_or_not():
    assert MATCH.is_usual
    assert not MATCH._replace(eps=1.1e-5).is_usual
    assert MATCH.takes_eps
    assert not MATCH._replace(norm="minmax").takes_eps
    assert MATCH._replace(norm="minmax", eps_range=(0.0, 1e-9)).takes_eps


def test_values_are_equal_if_they_round_alike():
    actual, expected = np.array([1.0, np.nan, np.inf, 2.0]), np.array([1.0 + 2.0**-12, np.nan, 1e6, 2.001])
    assert measure_equality(actual, expected, np.dtype("f2")) == 0.75
    assert measure_equality(actual, expected, np.dtype("f4")) == 0.25
    assert math.isinf(MATCH.bits)
