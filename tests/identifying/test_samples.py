"""Groups of an input and of what was made of it: which are taken, and how far values may be off."""

from __future__ import annotations

import math

import numpy as np
import pytest

from normcli import normalize
from normcli.identifying.identify import identify
from normcli.identifying.models.divisor_fit import Model
from normcli.identifying.models.error_bounds import Level
from normcli.identifying.models.known_maps import read_evaluation
from normcli.identifying.models.line_fit import PlainMap
from normcli.identifying.models.standards import MOMENTS, STANDARDS
from normcli.identifying.question import Question
from normcli.identifying.sampling import choose_groups
from normcli.identifying.search.affine_step import NO_AFFINE, AffineStep, enumerate_affine_steps
from normcli.identifying.search.groups import Hypothesis, enumerate_grids
from normcli.identifying.search.match import Furthest, Match, Scope
from normcli.identifying.search.samples import Samples, list_grids
from normcli.norms.divisors import DEVIATION, LENGTH, RANGE, ROOT_MEAN_SQUARE
from normcli.norms.rules import EpsMode

X = np.random.default_rng(0).normal(0.7, 2.0, (12, 8)).astype("f4")
ROWS = next(grid for grid in enumerate_grids(X.shape) if grid.axes == (1,))


def make(x=X, y=None, norm=None, **parameters):
    y = normalize(x, "ln").normalized if y is None else y
    steps = list(enumerate_affine_steps(x.shape, *map(parameters.get, ("gamma", "beta"))))
    return Samples(x, y, steps, Scope(norm, frozenset({1}), (0, 1), np.dtype(y.dtype)))


def test_what_is_divided_by_order_is_tried_for_its_own_norm_alone():
    assert make().standards == list(STANDARDS)
    assert make(norm="ln").standards == list(MOMENTS)
    assert make(norm="minmax").standards == [*MOMENTS, RANGE]


def test_groups_are_taken_evenly():
    samples = make()
    assert choose_groups(ROWS, 10**6).tolist() == list(range(12))
    assert choose_groups(ROWS, 24).tolist() == [0, 5, 11]
    assert choose_groups(ROWS, 7).tolist() == [0]
    taken = samples.take(ROWS, np.array([2, 5]), DEVIATION)
    np.testing.assert_array_equal(taken.actual, samples.y[[2, 5]])
    np.testing.assert_array_equal(taken.standard.rows, X[[2, 5]])


def test_ways_whose_shift_alone_is_y_show_no_norm_and_are_left_out():
    gamma, beta = np.linspace(0.5, 2.0, 8), np.linspace(-1.0, 1.0, 8)
    samples = make(X, np.broadcast_to(beta, X.shape), gamma=gamma, beta=beta)
    assert {step.way for step in samples.steps} == {"gamma", "1 + gamma", "swapped", "none"}
    assert len(make(X, gamma=gamma, beta=beta).steps) == 7


def test_groups_that_are_not_finite_are_apart():
    x = X.copy()
    x[3, 2], x[5, 1] = np.inf, np.nan
    with np.errstate(all="ignore"):
        y = normalize(x, "ln").normalized
        sample = make(x, y).take(ROWS, np.arange(12), DEVIATION)
    assert sample.chosen.tolist() == [0, 1, 2, 4, 6, 7, 8, 9, 10, 11]
    assert sample.undefined.chosen.tolist() == [3, 5]
    assert make(np.full((12, 8), np.inf), y).take(ROWS, np.arange(12), DEVIATION) is None
    both = normalize(x[4:], "ln", nan="omit").normalized
    sample = make(x[4:], both).take(
        next(grid for grid in enumerate_grids((8, 8)) if grid.axes == (1,)), np.arange(8), DEVIATION
    )
    assert sample.chosen.tolist() == list(range(8))  # where y has the same NaN, it counts for nothing
    assert sample.undefined is None


@pytest.mark.parametrize(("value", "is_wrong"), [(np.nan, False), (0.0, True), (1.0, True)])
def test_what_comes_of_a_group_with_nan_is_no_number(value, is_wrong):
    x = X.copy()
    x[3, 2] = np.nan
    with np.errstate(all="ignore"):
        y = normalize(x, "ln").normalized.copy()
        y[3, 4] = value
        samples = make(x, y)
        sample = samples.take(ROWS, np.arange(12), DEVIATION)
        assert samples.find_wrong(sample.undefined, NO_AFFINE).any() == is_wrong
        assert (samples.bound(sample, NO_AFFINE, samples.levels[-1]) is None) == is_wrong


def test_what_each_value_may_be_off():
    samples = make(gamma=np.ones(8), beta=np.full(8, 4.0))
    sample, (once, *_, careless) = samples.take(ROWS, np.arange(12), DEVIATION), samples.levels
    unit = 2.0 ** (np.floor(np.log2(np.abs(sample.actual.astype("f8")))) - 23)
    dtype = samples.scope.dtype
    np.testing.assert_allclose(NO_AFFINE.allow(sample.actual, dtype, once), 0.501 * unit)
    step = sample.place(next(step for step in samples.affines if step.way == "beta"))
    np.testing.assert_allclose(step.allow(sample.actual, dtype, careless), unit + 4 * 32 * 2.0**-23)
    hypothesis = Hypothesis(sample, NO_AFFINE, Model(DEVIATION, EpsMode.INSIDE, low=1e-5))
    plain, own = samples.tolerate(hypothesis, careless), NO_AFFINE.allow(sample.actual, dtype, careless)
    doubled = samples.tolerate(hypothesis._replace(affine=AffineStep("gamma", np.full((1, 8), 2.0))), careless)
    np.testing.assert_allclose(doubled - own, 2 * (plain - own))
    assert np.all(plain > own)


def test_x_may_be_rounded_before_gamma_in_half_precision_alone():
    half = make(X.astype("f2"), normalize(X.astype("f2"), "ln").normalized, gamma=np.ones(8))
    assert [(step.way, step.rounds_to) for step in half.steps] == [
        *((way, dtype) for way in ("gamma", "1 + gamma") for dtype in (None, np.dtype("f2"))),
        ("none", None),
    ]
    single = make(gamma=np.ones(8))
    assert [step.rounds_to for step in single.steps] == [None] * 3
    assert math.isinf(single.count_fine(single.take(ROWS, np.arange(12), DEVIATION).standard, None))
    assert half.count_fine(half.take(ROWS, np.arange(12), DEVIATION).standard, None) == 0.0


def test_the_loosest_level_is_of_the_precision_of_a_match():
    match = Match("ln", (1,), "float32", (), 0.5, 0.1, 0.5, 60, Furthest((0, 0), 1.0, 1.0), (0, 1))
    assert make().choose_loosest(match)[1:] == (1.0, 32.0)
    half = make(X.astype("f2"), normalize(X.astype("f2"), "ln").normalized)
    assert half.choose_loosest(match._replace(precision="float32, rounded before gamma"))[1:] == (0.501, 32.0)
    assert half.choose_loosest(match._replace(precision="float16"))[1:] == (1.0, 2.0)


def test_a_norm_that_was_not_asked_for_is_not_described():
    for norm, named in ((None, {"lp", "wn"}), ("lp", {"lp"}), ("wn", {"wn"}), ("ln", set())):
        samples = make(norm=norm)
        sample = samples.take(ROWS, np.arange(12), ROOT_MEAN_SQUARE)
        model = Model(LENGTH, EpsMode.FLOOR, p=2.0, floor=1.0, square=1.0, fine=3.0)
        found = list(samples.describe(Hypothesis(sample, NO_AFFINE, model), Level("float32", 1.0, 1.0)))
        assert ({match.norm for match in found}, {match.fine for match in found} <= {3.0}) == (named, True)


# -- what is read off a map, and why nothing is


@pytest.mark.parametrize(
    ("steps", "mean", "square", "way"),
    [
        pytest.param([NO_AFFINE], [2.0, -1.0], [0.25, 4.0], "none", id="neither"),
        pytest.param([AffineStep("gamma", np.array([2.0, 3.0])), NO_AFFINE], [2.0, -1.0], [1.0, 36.0], "gamma", id="gamma"),
        pytest.param([AffineStep("beta", None, np.array([1.0, 1.0]))], [2.5, 1.0], [0.25, 4.0], "beta", id="beta"),
        pytest.param([AffineStep("gamma", np.array([2.0, -3.0])), NO_AFFINE], [2.0, -1.0], [0.25, 4.0], "none", id="a negative deviation"),
        pytest.param([AffineStep("gamma", np.array([2.0, 0.0])), NO_AFFINE], [2.0, -1.0], [0.25, 4.0], "none", id="a gamma of 0"),
        pytest.param([AffineStep("gamma", np.ones(3)), NO_AFFINE], [2.0, -1.0], [0.25, 4.0], "none", id="another shape"),
    ],
)  # fmt: skip
def test_stored_statistics_are_read_off_with_the_first_gamma_that_can_be(steps, mean, square, way):
    found = read_evaluation(PlainMap((0,), np.array([2.0, 0.5]), np.array([-4.0, 0.5])), steps)
    np.testing.assert_allclose(found.mean, mean)
    np.testing.assert_allclose(found.square, square)
    assert found.affine.way == way


def test_no_stored_statistics_make_a_negative_factor():
    assert read_evaluation(PlainMap((), np.array([-2.0]), np.array([1.0])), [NO_AFFINE]) is None
    assert read_evaluation(PlainMap((), np.array([0.0]), np.array([1.0])), [NO_AFFINE]) is None


@pytest.mark.parametrize(
    ("x", "y", "reason"),
    [
        pytest.param(X[:1, :1], X[:1, :1] + 1, "the input has fewer than two values", id="one value"),
        pytest.param(X, np.full(X.shape, np.nan), "the actual tensor holds no finite value", id="nan"),
        pytest.param(np.ones((3, 4)), np.zeros((3, 4)), "the input is constant: every norm makes the same of it", id="constant x"),
        pytest.param(X, X.copy(), "the actual tensor is the input, unchanged", id="unchanged"),
        pytest.param(X, np.zeros(X.shape), "every value of the actual tensor is 0, as where a sum of squares overflows", id="zeros"),
        pytest.param(X, np.full(X.shape, 2.0), "the actual tensor is constant: so is every norm of groups of one value", id="constant y"),
    ],
)  # fmt: skip
def test_why_nothing_can_be_told(x, y, reason):
    assert identify(Question(x, y)).reason.startswith(reason)


def test_of_large_tensors_no_large_groups_are_tried_and_no_groups_of_samples(monkeypatch):
    every = list(enumerate_grids((4, 6)))
    assert list_grids((4, 6)) == every
    monkeypatch.setattr("normcli.identifying.search.samples.LARGEST_GROUP", 6)
    assert list_grids((4, 6)) == [grid for grid in every if grid.group_size <= 6]
    monkeypatch.setattr("normcli.identifying.search.samples.MOST_SAMPLED", 23)
    kept = [grid for grid in every if grid.group_size <= 6 and (grid.split is None or grid.split.axis == 1)]
    assert list_grids((4, 6)) == kept
    monkeypatch.setattr("normcli.identifying.search.samples.LARGEST_GROUP", 99)
    assert list_grids((4, 6)) == [grid for grid in every if grid.split is None or grid.split.axis == 1]
