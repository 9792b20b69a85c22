"""Slips of kernels that are nearly norms are named, and stored statistics are read off."""

from __future__ import annotations

import numpy as np
import pytest

from normcli import normalize
from normcli.norms.divisors import DEVIATION, RANGE, ROOT_MEAN_SQUARE
from normcli.norms.grid import Grid
from normcli.norms.layout import Layout
from normcli.numerics.solution import Given
from normcli.testing import provocations
from normcli.verify.affine import AffineStep
from normcli.verify.identify import Kind, Question, identify
from normcli.verify.other_sentence import format_evaluation, format_stored
from normcli.verify.sentence import format_sentence
from normcli.verify.slips import Bounded, Slip, find_slips
from normcli.verify.standards import standardize
from tests.marks import slowly


def draw(*shape):
    rng = np.random.default_rng(4)
    return (rng.normal(0.7, 2.0, shape) * rng.uniform(0.5, 2.0, (shape[1], 1, 1))).astype("f4")


X = draw(7, 5, 3, 7)
GAMMA, BETA = (np.random.default_rng(seed).uniform(0.5, 2.0, 5).astype("f4") for seed in (1, 2))


@pytest.mark.parametrize("given", [False, True])
def test_a_division_by_the_variance_without_its_root(given):
    mean, var = X.mean((0, 2, 3), keepdims=True), X.var((0, 2, 3), keepdims=True)
    y = (X - mean) / (var + np.float32(1e-5))
    y, parameters = (y * GAMMA[:, None, None] + BETA[:, None, None], (GAMMA, BETA)) if given else (y, ())
    found = identify(Question(X, y, *parameters))
    assert (found.kind, found.slip.grid.axes) == (Kind.SLIP, (0, 2, 3))
    assert "divided by the variance and not by its root" in format_sentence(found)


ROWS = draw(6, 5, 4, 7).transpose(0, 1, 3, 2).reshape(30, 28)[:8].astype("f8")
ROW_GRID = Grid(ROWS.shape, Layout(2, None), (1,))


def name_slips(divisor, factor, way="none", rows=ROWS, width=2.0**-22):
    """Return the words of the slips that give each group some factor of x̂."""
    standard = standardize(rows, divisor)
    mean = rows.mean(axis=1)
    factors = factor(standard.size, mean)
    bounded = Bounded(ROW_GRID, standard, AffineStep(way), factors * (1 - width), factors * (1 + width))
    return [slip.words for slip in find_slips([bounded])]


@pytest.mark.parametrize("scale", [2.0**-4, 1.0, 2.0**4])
@pytest.mark.parametrize(
    ("divisor", "factor", "words"),
    [
        pytest.param(DEVIATION, lambda s, m: 1 / s, "divided by the variance and not by its root (an eps of up to ", id="variance"),
        pytest.param(DEVIATION, lambda s, m: s / (s**2 + 1e-3), "divided by the variance and not by its root (eps 0.001)", id="eps"),
        pytest.param(
            DEVIATION, lambda s, m: s / (s**2 * 28 / 27 + 1e-3),
            "divided by the variance and not by its root (eps 0.001, ddof 1)", id="ddof",
        ),
        pytest.param(
            DEVIATION, lambda s, m: s * np.sqrt(s**2 + 1e-3),
            "multiplied by the root of the variance, not divided by it (eps 0.001)", id="multiplied",
        ),
        pytest.param(
            DEVIATION, lambda s, m: s / np.sqrt(s**2 + m**2 + 1e-3), "divided by the root of the mean square (eps 0.001)", id="square"
        ),
        pytest.param(
            ROOT_MEAN_SQUARE, lambda s, m: s / (s**2 + 1e-3), "divided by the mean square and not by its root (eps 0.001)", id="rms"
        ),
        pytest.param(DEVIATION, lambda s, m: s, "not divided by anything", id="nothing"),
        pytest.param(DEVIATION, lambda s, m: s / 4.0, "divided by one number for all, 4", id="a number"),
        pytest.param(
            DEVIATION, lambda s, m: s / np.sqrt(s**2 + 3 * m**2 / 28 + 1e-5),
            "divided by the root of a variance that counts 3 values of padding, 0 less the mean, beside the 28 of each group",
            id="padding",
        ),
        pytest.param(
            DEVIATION, lambda s, m: s / np.sqrt(s**2 + m**2 / 28),
            "divided by the root of a variance that counts 1 value of padding, 0 less the mean, beside the 28 of each group",
            id="one of padding",
        ),
    ],
)  # fmt: skip
def test_each_slip_is_named_of_values_of_any_size(divisor, factor, words, scale):
    (found, *_) = name_slips(divisor, factor, rows=ROWS * scale)
    assert found.startswith(words)


def test_what_is_divided_by_is_other_where_gamma_multiplies():
    def divide_by_deviation(size, mean):
        return size / np.sqrt(size**2 - mean**2)

    (found,) = name_slips(ROOT_MEAN_SQUARE, divide_by_deviation, "gamma")
    assert found.startswith("divided by the root of the variance (an eps of up to ")
    assert not name_slips(ROOT_MEAN_SQUARE, divide_by_deviation)  # which is a plain map


@pytest.mark.parametrize(
    ("factor", "width"),
    [
        pytest.param(lambda s, m: np.linspace(0.5, 2.0, 8), 2.0**-22, id="any"),
        pytest.param(
            lambda s, m: s / np.sqrt(s**2 + 2.5 * m**2 / 28 + 1e-5), 2.0**-22, id="half a value of padding"
        ),
        pytest.param(lambda s, m: s / np.sqrt(s**2 - m**2 / 28), 2.0**-22, id="padding of less than none"),
        pytest.param(lambda s, m: s / (s**2 + 0.0123), 2.0**-22, id="an eps that nobody uses"),
        pytest.param(lambda s, m: 1 / s, 0.4, id="hardly seen"),
    ],
)
def test_what_is_no_slip(factor, width):
    assert not name_slips(DEVIATION, factor, width=width)


@pytest.mark.all_quick
@pytest.mark.parametrize(
    ("count", "width", "named"), [(1, 2.0**-22, 0), (2, 2.0**-22, 1), (2, 2.0**-18, 0), (3, 2.0**-18, 1)]
)
@pytest.mark.parametrize(
    ("factor", "words"),
    [
        (lambda s, m: s / np.sqrt(s**2 + 3 * m**2 / 28), "counts 3 values of padding"),
        (lambda s, m: s / 4.0, "divided by one number for all, 4"),
    ],
)
def test_a_number_that_is_fitted_to_one_group_takes_others_to_show(factor, words, count, width, named):
    found = name_slips(DEVIATION, factor, rows=ROWS[:count] + 9.0, width=width)
    assert sum(words in one for one in found) == named


@pytest.mark.parametrize(("width", "named"), [(2.0**-10, 1), (2.0**-6, 0)])
def test_a_number_of_padded_values_is_one_that_is_known(width, named):
    """A whole number lies in every interval of 1."""
    found = name_slips(DEVIATION, lambda s, m: s / np.sqrt(s**2 + 3 * m**2 / 28), rows=ROWS + 9.0, width=width)
    assert sum("counts 3 values of padding" in one for one in found) == named


def test_groups_of_no_size_or_without_bounds_show_no_slip():
    rows = ROWS.copy()
    rows[0] = 1.0
    with np.errstate(all="ignore"):
        assert name_slips(DEVIATION, lambda s, m: 1 / s, rows=rows)
        assert not name_slips(DEVIATION, lambda s, m: np.full(8, np.inf))
        assert not name_slips(RANGE, lambda s, m: 1 / s)


def test_how_far_from_1_a_factor_may_be():
    bounded = Bounded(ROW_GRID, None, AffineStep("none"), np.array([0.5, 0.9]), np.array([0.7, 1.25]))
    slip = Slip(ROW_GRID, centred=True, affine="none", words="", rank=0, bounded=bounded)
    assert slip.measure_factor() == 0.5
    assert slip._replace(bounded=bounded._replace(largest=np.array([0.7, 1.75]))).measure_factor() == 0.75


@pytest.mark.slow
def test_squares_that_eps_hides_show_no_slip():
    hidden = next(case for case in provocations("rms", "float16") if case.name == "squares that are subnormal")
    x, gamma = hidden.x, hidden.options["gamma"]
    square = (x * x).sum(1, keepdims=True, dtype="f2") / np.float16(x.shape[1])
    y = (x.astype("f4") / np.sqrt(square.astype("f4") + np.float32(1e-5)) * gamma.astype("f4")).astype("f2")
    found = identify(Question(x, y, gamma), "rms")
    assert found.kind is not Kind.SLIP, format_sentence(found)


def test_a_mean_that_is_subtracted_and_nothing_divided():
    found = identify(Question(X, X - X.mean((2, 3), keepdims=True)))
    assert "not divided by anything" in format_sentence(found)
    assert found.slip.grid.axes == (2, 3)


@pytest.mark.parametrize("given", [False, *slowly([True])])
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
    assert "evaluation: running mean ≈" in format_sentence(found)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("given", "words"),
    [
        pytest.param({}, ", if gamma is 1 and beta is 0.", id="neither"),
        pytest.param({"gamma": GAMMA}, ", then gamma, if beta is 0.", id="gamma"),
        pytest.param({"beta": BETA}, ", then beta, if gamma is 1.", id="beta"),
        pytest.param({"gamma": GAMMA, "beta": BETA}, ", then gamma and beta.", id="both"),
    ],
)
def test_stored_statistics_are_what_they_are_for_the_gamma_and_beta_that_are_said(given, words):
    stored = {"running_mean": np.arange(5.0), "running_var": np.arange(1.0, 6.0)}
    found = identify(Question(X, normalize(X, "bn", **stored, **given).normalized, **given))
    assert words in format_evaluation(found.evaluation)


STORED = Given(*(np.random.default_rng(seed).uniform(0.5, 3.0, 5) for seed in (6, 7)))


@pytest.mark.parametrize(
    ("made", "words"),
    [
        pytest.param({}, "own statistics, as in training", id="training"),
        pytest.param({"eps": 0.1, "running_mean": STORED.mean, "running_var": STORED.var}, "eps of about 0.1", id="eps"),
        pytest.param({"running_mean": STORED.mean, "running_var": STORED.var**2}, "The running variance is not", id="var"),
        pytest.param({"running_mean": STORED.mean + 1, "running_var": STORED.var}, "The running mean is not", id="mean"),
        pytest.param({"running_mean": STORED.var, "running_var": STORED.mean}, "mean and the running variance are not", id="both"),
    ],
)  # fmt: skip
def test_stored_statistics_are_compared_with_the_given_ones(made, words):
    found = identify(Question(X, normalize(X, "bn", **made).normalized, layout="NCHW"))
    assert words in format_stored(found, STORED)
    assert not format_stored(found, None)


@pytest.mark.slow
def test_groups_with_a_mean_of_0_are_not_padded():
    x = np.tile(np.array([-3.0, -1.0, 1.0, 3.0], "f4"), (7, 5)) * np.linspace(1.0, 2.0, 7, dtype="f4")[:, None]
    assert identify(Question(x, x * np.linspace(0.3, 0.4, 7, dtype="f4")[:, None])).kind is Kind.AFFINE


def test_groups_of_which_y_is_0_are_no_slip():
    x = np.where(np.random.default_rng(1).random((16, 2)) < 0.5, -1.0, 1.0)
    assert len({*(x[:, 0] * x[:, 1])}) == 2
    found = identify(Question(x, np.where(x[:, :1] == x[:, 1:], 0.0, x)))
    assert found.kind is not Kind.SLIP, format_sentence(found)


@pytest.mark.parametrize(("mean", "is_near"), [(0.12, True), (3.0, False)])
def test_a_slip_that_rounded_statistics_may_make_is_not_said_flatly(mean, is_near):
    x = np.random.default_rng(0).normal(0.0, 1.0, (12, 64))
    x = (x - x.mean(1, keepdims=True) + np.linspace(0.0, mean, 12)[:, None]).astype("f2")
    wide = x.astype("f8")
    y = (wide - wide.mean(1, keepdims=True)) / np.sqrt((wide**2).mean(1, keepdims=True) + 1e-5)
    found = identify(Question(x, y.astype("f2")))
    assert found.kind is Kind.SLIP
    said = format_sentence(found)
    assert ("y is no norm of the table" in said) != is_near
    assert ("a norm's kernel that calculates in float16" in said) == is_near
