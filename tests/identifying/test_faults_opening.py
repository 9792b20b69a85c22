"""The joints are opened one by one; what is named explains y, and what the data cannot tell apart is said."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from normcli import normalize
from normcli.dtypes import find_type
from normcli.errors import NormError
from normcli.identifying.faults.fault_search import open_cases
from normcli.identifying.faults.joint_search import open_joints
from normcli.norms.table import NORMS
from normcli.numerics.statistics.solution import Given
from tests.conftest import pose
from tests.identifying.faulty import ask, draw, draw_affine, name, plan, standardize
from tests.marks import choose_some, costly, sampled

X = draw((12, 64))
GAMMA, BETA = draw_affine(64)


def test_a_right_result_has_no_fault():
    assert ask("ln", X, standardize(X) * GAMMA + BETA, GAMMA, BETA) == ()


@pytest.mark.slow
def test_a_number_is_not_said_beside_the_fault_that_it_comes_from():
    ids, causes = name("ln", X, standardize(X), np.full(64, 2.0, "f4"), None)
    assert (ids, causes) == (["affine-gamma-missing"], ["gamma is not applied"])


@pytest.mark.slow
def test_gamma_that_is_rolled_and_ddof_are_named_together():
    square = X.astype("f8").var(-1, ddof=1, keepdims=True)
    y = standardize(X, square=square) * np.roll(GAMMA, 1) + BETA
    ids, causes = name("ln", X, y, GAMMA, BETA)
    assert ids == ["stats-ddof", "affine-gamma-rolled"]
    assert causes == ["ddof is 1, not 0, and gamma is rolled by 1"]


@pytest.mark.slow
def test_another_eps_beside_a_fault_is_named():
    x = X * np.float32(0.02)
    y = standardize(x, square=(x.astype("f8") ** 2).mean(-1, keepdims=True), eps=1e-3) * GAMMA
    assert name("ln", x, y, GAMMA)[0] == ["stats-mean-square", "stats-eps-other"]


@pytest.mark.slow
def test_a_fault_everywhere_but_in_a_region_is_named_with_it():
    y = standardize(X) * GAMMA
    y[3] = 7.0
    ids, causes = name("ln", X, y, GAMMA, BETA)
    assert ids == ["affine-beta-missing", "where-index"]
    assert causes == ["beta is not applied, and y is right, except for n=3"]


def test_half_precision_that_was_saved_is_said_where_y_is_right():
    half = standardize(X).astype("f2")
    subject = pose(plan("ln", X), X)
    (claim,) = open_joints([*open_cases([subject], half, half.dtype)], "float16")
    assert (claim.fault.id, claim.cause) == ("after-cast", "y is rounded to float16")


# -- what is no fault


SOMETHING_ELSE = {
    "an affine map of each feature": lambda x, y, rng: y * rng.normal(1, 0.3, x.shape[1]),
    "an affine map of each row": lambda x, y, rng: y * rng.normal(1, 0.3, (len(x), 1)) + rng.normal(size=(len(x), 1)),
    "noise of 10 %": lambda x, y, rng: y * (1 + 0.1 * rng.normal(size=x.shape)),
    "noise of 1 %": lambda x, y, rng: y * (1 + 0.01 * rng.normal(size=x.shape)),
    "noise of 0.1 %": lambda x, y, rng: y * (1 + 0.001 * rng.normal(size=x.shape)),
    "another tensor": lambda x, y, rng: standardize(rng.normal(3, 1, x.shape)),
    "another grid of each row": lambda x, y, rng: np.round(y * (steps := rng.normal(40, 5, (len(x), 1)))) / steps,
    "signs at random": lambda x, y, rng: y * rng.choice([-1, 1], x.shape),
    "dropout of another factor": lambda x, y, rng: y * (rng.random(x.shape) < 0.5) * 1.6,
    "one value": lambda x, y, rng: np.ones_like(y),
    "zeros": lambda x, y, rng: np.zeros_like(y),
    "an exponential": lambda x, y, rng: np.exp(-np.abs(y)),
    "sums of absolute values": lambda x, y, rng: x / np.abs(x).sum(-1, keepdims=True),
}  # fmt: skip


@costly
@pytest.mark.parametrize("made", SOMETHING_ELSE)
@pytest.mark.slow
def test_what_is_no_fault_of_a_table_is_not_named(made):
    dtypes, shapes = ("float32", "bfloat16", "float64", "float16", "float32"), ((2, 3), (3, 5), (12, 40))
    for (number, dtype), shape in choose_some(itertools.product(enumerate(dtypes), shapes), 2):
        rng = np.random.default_rng([number, *shape])
        x = draw(shape, find_type(dtype), float(number % 2) * 5, number)
        given = draw_affine(shape[1], number) if number % 2 else (None, None)
        y = standardize(x) * (1 if given[0] is None else given[0]) + (0 if given[1] is None else given[1])
        claims = ask("ln", x, SOMETHING_ELSE[made](x.astype("f8"), y, rng), *given)
        assert [claim.cause for claim in claims] == [], (dtype, shape)


def test_signs_of_few_values_are_no_absolute_value():
    x = draw((2, 3), mean=0.0)
    assert not any(claim.faults[0].id == "after-absolute" for claim in ask("ln", x, np.abs(standardize(x))))


@pytest.mark.slow
def test_a_divisor_of_one_row_is_none_of_all():
    x = draw((3, 5))
    y = x / x.max(-1, keepdims=True)
    assert name("rms", x, y) == (["stats-scaler"], ["nothing is subtracted, the maximum divides"])


@pytest.mark.slow
def test_a_region_is_not_all_but_a_feature_that_is_right_by_chance():
    y = standardize(X) * np.linspace(0.9, 1.1, 64)
    y[:, 5] = standardize(X)[:, 5]
    assert name("ln", X, y)[1] == ["y has a gamma that was not given"]


# -- whatever is asked


@costly
@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.slow
def test_nothing_raises_and_nothing_warns_for_any_norm(norm):
    rng, options = np.random.default_rng(0), {"groups": 2} if norm == "gn" else {}
    for shape in ((4, 6), (1, 6), (4, 1), (2, 4, 5), (2, 1, 5), (1, 1), (0, 4), (2, 0, 3), (3, 4, 1, 1)):
        x = rng.normal(1, 2, shape).astype("f4")
        for y in (rng.normal(size=shape), x * 2, x * 0, x * np.nan, np.where(x > 2, np.inf, x), np.roll(x, 1)):
            try:
                ask(norm, x, y, **options)
            except NormError:
                assert 1 in shape or 0 in shape or len(shape) < 4


@costly
@sampled
@pytest.mark.parametrize("size", [1e300, 1e150, 1e-160, 1e-300, 5e-324])
@pytest.mark.parametrize("norm", ["ln", "rms", "bn", "l2"])
@pytest.mark.slow
def test_huge_and_tiny_numbers_neither_raise_nor_warn(norm, size):
    x = draw((6, 8), "f8", 0.0)
    gamma = draw_affine(8)[0].clip(0, 1.5).astype("f8") if norm != "l2" else None
    y = standardize(x)
    for values in (y, x, 1.5 * y, np.roll(y, 1, 0)):
        ask(norm, x * size, values, gamma)
        ask(norm, x * size, values * size, gamma)
        if gamma is not None:
            ids = [claim.fault.id for claim in ask(norm, x, values, gamma * size)]
            assert not [one for one in ids if one.startswith("after-")]


POSSIBLE = {
    "gamma": {"gamma": np.full(64, 0.0, "f4"), "beta": BETA},
    "no gamma of some": {"gamma": np.where(np.arange(64) % 3 == 0, np.nan, GAMMA).astype("f4")},
    "an infinite gamma": {"gamma": np.where(np.arange(64) % 3 == 0, np.inf, GAMMA).astype("f4")},
    "a constant group": {"x": np.where(np.arange(12)[:, None] == 2, 3, X)},
    "one number": {"x": np.full_like(X, 2)},
    "gaps": {"x": np.where(X > 4, np.nan, X)},
    "round numbers": {"x": np.round(X).astype("i4"), "rounded": "f4"},
    "no variance": {"norm": "bn", "given": Given(np.ones(64), np.zeros(64)), "gamma": GAMMA},
    "a negative variance": {"norm": "bn", "given": Given(np.ones(64), np.full(64, -1.0)), "gamma": GAMMA},
    "a variance of NaN": {"norm": "bn", "given": Given(np.ones(64), np.full(64, np.nan)), "gamma": GAMMA},
}


@costly
@pytest.mark.all_tried
@pytest.mark.parametrize("given", POSSIBLE)
def test_any_input_is_possible(given):
    asked = {"norm": "ln", "x": X} | POSSIBLE[given]
    for y in (standardize(X), 2 * standardize(X), X, np.where(X > 4, np.nan, X)):
        ask(asked["norm"], asked["x"], y, **{name: asked[name] for name in asked if name not in ("norm", "x")})


@pytest.mark.slow
def test_groups_may_be_interleaved():
    x, (gamma, beta), given = draw((4, 12, 25)), draw_affine(12), {"groups": 3, "group_order": "interleaved"}
    y = normalize(x.astype("f8"), "gn", gamma=np.roll(gamma, 1), beta=beta, **given).normalized
    assert name("gn", x, y, gamma, beta, **given)[0] == ["affine-gamma-rolled"]


def test_integers_are_named_as_floats_are():
    x = np.round(draw((12, 64)) * 20).astype("i4")
    y = standardize(x, square=x.astype("f8").var(-1, ddof=1, keepdims=True))
    assert name("ln", x, y, rounded="f4")[0] == ["stats-ddof"]
