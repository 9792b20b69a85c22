"""What was found that is no norm, in words: a plain map, a slip, too little evidence."""

from __future__ import annotations

import numpy as np
import pytest

from normcli.norms.grid import Grid, Split
from normcli.norms.layout import Layout
from normcli.norms.rules import GroupOrder
from normcli.numerics.solution import Given
from normcli.verify.affine import NO_AFFINE, AffineStep
from normcli.verify.evaluation import Evaluation
from normcli.verify.hypothesis import Furthest, Match
from normcli.verify.identify import Identification, Question
from normcli.verify.other_sentence import format_affine, format_evaluation, format_stored
from normcli.verify.plain import PlainMap
from normcli.verify.sentence import format_sentence
from normcli.verify.slips import Bounded, Slip

X = np.random.default_rng(0).normal(0.7, 2.0, (3, 4, 5)).astype("f4")
DOUBTFUL = Match(
    "ln", (2,), "float32", ("torch",), 0.5, 1e-7, 0.5, 60, Furthest((1, 2, 3), 1.25, 1.5), (0, 1, 2),
    eps=1e-5, eps_range=(9e-6, 1.1e-5), eps_mode="inside", bits=9.0,
)  # fmt: skip
STORED = "any norm's evaluation with stored statistics, a scaler fitted elsewhere, or no norm at all."


def say(y=X, gamma=None, beta=None, **found):
    return format_sentence(Identification(Question(X, y, gamma, beta, "NLC"), (), **found))


def make_map(a, b, axes=()):
    lengths = [len(a) if axis in axes else 1 for axis in range(3)]
    return PlainMap(axes, *(np.array(values, float).reshape(lengths) for values in (a, b)))


@pytest.mark.parametrize(
    ("a", "b", "formula"),
    [
        ([0.5], [0.0], "y = 0.5 · x, one factor for all values."),
        ([1.0], [0.0], "y = x, one factor for all values."),
        ([1.0], [-2.25], "y = x − 2.25, one pair for all values."),
        ([-3.0], [1 / 3], "y = -3 · x + 0.333333333, one pair for all values."),
        ([1 / 3], [-1.5], "y = 0.333333333 · x − 1.5, one pair for all values."),
    ],
)
def test_one_pair_for_all_values(a, b, formula):
    assert say(plain=make_map(a, b)) == f"{formula} It may be {STORED}"
    assert say(plain=make_map(a, b), known=("x / 255", "any")) == f"{formula} It may be x / 255, any, {STORED}"


@pytest.mark.parametrize(
    ("a", "b", "axes", "formula"),
    [
        ([1, 2, 3, 4], [5, 6, 7, 8.5], (1,), "a · x + b, a = 1, 2, 3, 4, b = 5, 6, 7, 8.5, for each index of axis l"),
        ([1, 2, 3, 4], [0, 0, 0, 0], (1,), "a · x, a = 1, 2, 3, 4, for each index of axis l"),
        ([1, 2, -3, 4, 5], [0] * 5, (2,), "a · x, a = 1, 2, … (-3 to 5), for each index of axis c"),
        ([1 / 3, 2, 3], [0, 0, 1], (0,), "a · x + b, a = 0.333333, 2, 3, b = 0, 0, 1, for each index of axis n"),
    ],
)  # fmt: skip
def test_a_pair_for_each_index(a, b, axes, formula):
    assert say(gamma=np.ones(4), plain=make_map(a, b, axes)) == f"y = {formula}. It may be {STORED}"


def test_norms_whose_statistics_may_be_hidden_in_one_pair_are_named():
    ln, rms = DOUBTFUL, DOUBTFUL._replace(norm="rms")
    both = "layer normalization (ln), root mean square normalization (rms)"
    assert say(plain=make_map([0.5], [0.0]), doubtful=(ln, rms, ln)).endswith(f"It may be {both}, {STORED}")
    blind = rms._replace(bits=0.0)
    assert say(plain=make_map([0.5], [0.0]), doubtful=(ln, blind)).endswith(f"It may be {both[:24]}, {STORED}")
    seen = ": of a norm's statistics at most the mean of this tensor is seen in it."
    assert say(plain=make_map([0.5], [1.0]), doubtful=(rms, ln)) == (
        f"y = 0.5 · x + 1, one pair for all values{seen} It may be {both[:24]}, {STORED}"
    )
    assert "statistics at most" not in say(plain=make_map([0.5], [1.0]), doubtful=(rms,))


@pytest.mark.parametrize(
    ("step", "words"),
    [
        pytest.param(NO_AFFINE, ", if gamma is 1 and beta is 0.", id="neither"),
        pytest.param(AffineStep("gamma", np.ones(1)), ", then gamma, if beta is 0.", id="gamma"),
        pytest.param(
            AffineStep("swapped", np.ones(1), np.ones(1)), ", with gamma and beta exchanged.", id="both"
        ),
    ],
)
def test_an_evaluation_is_told_with_what_is_not_known(step, words):
    evaluation = Evaluation(np.array([1.0, 2.0]), np.array([3.0, 4.0]), step)
    said = f"As evaluation: running mean ≈ 1, 2, running variance + eps ≈ 3, 4{words}"
    assert format_evaluation(evaluation) == said
    plain = make_map([1, 2, 3, 4], [1, 2, 3, 4], (1,))
    assert f" {said} It may be" in say(gamma=np.ones(4), plain=plain, evaluation=evaluation)
    no_mean = evaluation._replace(mean=np.zeros(2))
    assert "evaluation:" not in say(gamma=np.ones(4), plain=plain, evaluation=no_mean)


@pytest.mark.parametrize(
    ("mean", "square", "words"),
    [
        pytest.param([1.0, 2.0], [3.1, 4.1], " The running statistics are those that were given, with an eps of about 0.1.", id="both"),
        pytest.param([1.0, 2.0], [3.0, 4.0], " The running statistics are those that were given, with an eps of about 0.", id="no eps"),
        pytest.param([1.0015, 2.0], [3.0, 4.0], " The running statistics are those that were given, with an eps of about 0.", id="nearly"),
        pytest.param([1.0, 2.0], [3.0, 4.002], " The running statistics are those that were given, with an eps of about 0.001.", id="rounded"),
        pytest.param([1.0019, 2.0], [3.0, 4.0], " The running mean is not what was given; the running variance is.", id="mean"),
        pytest.param([1.0, 2.0021], [3.0, 4.0], " The running mean is not what was given; the running variance is.", id="second mean"),
        pytest.param([1.0, 2.0], [3.0, 4.004], " The running variance is not what was given; the running mean is.", id="variance"),
        pytest.param([1.0, 2.0], [2.99, 3.99], " The running variance is not what was given; the running mean is.", id="less"),
        pytest.param([2.0, 1.0], [4.0, 3.0], " The running mean and the running variance are not what was given.", id="neither"),
        pytest.param([1.0, 2.0, 3.0], [3.0, 4.0, 5.0], "", id="others"),
    ],
)  # fmt: skip
def test_stored_statistics_are_held_against_the_given_ones(mean, square, words):
    given = Given(np.array([1.0, 2.0]), np.array([3.0, 4.0]))
    evaluation = Evaluation(np.array(mean), np.array(square), NO_AFFINE)
    found = Identification(Question(X, X), (), plain=make_map([1.0], [0.0]), evaluation=evaluation)
    assert format_stored(found, given) == words
    assert format_stored(found._replace(evaluation=None), given) == ""
    own = " These are this tensor's own statistics, as in training, and not the running ones that were given."
    assert format_stored(found._replace(matches=(DOUBTFUL,)), given) == own


def test_what_was_given_and_did_not_enter_is_said():
    asked = Question(X, X, np.ones(5), np.ones(5))
    assert format_affine("none", asked) == ", without the given gamma and beta"
    assert format_affine("gamma", asked) == ", then gamma, without the given beta"
    assert format_affine("gamma, beta", asked) == ", then gamma and beta"
    assert format_affine("none", asked._replace(beta=None)) == ", without the given gamma"


LN = "layer normalization (ln)"


@pytest.mark.parametrize(
    ("changed", "sentence"),
    [
        pytest.param({}, f"No norm is identified: {LN} would fit, but on so few values so would many other things.", id="few"),
        pytest.param(
            {"is_odd": True, "eps": 3.03},
            f"No norm is identified: {LN} over axis c would need an eps of 3.03, which is none in use and not small "
            "beside the variances.", id="odd",
        ),
        pytest.param(
            {"has_default_eps": False, "fine": 19.0, "bits": 20.0, "affine": "gamma"},
            f"No norm is identified: {LN} over axis c with eps 1e-05, then gamma would fit, but on so few values so would "
            "another eps with statistics that are rounded to float32.", id="hidden",
        ),
        pytest.param(
            {"has_default_eps": False, "fine": 19.0, "bits": 19.0},
            f"No norm is identified: {LN} would fit, but on so few values so would many other things.", id="and few",
        ),
        pytest.param(
            {"precision": "float16, rounded before gamma", "equal": 0.12345},
            f"y is near {LN} over axis c: only 12.3 % of the values are the exact ones; a kernel that calculates in float16, "
            "or rounds to it on the way, might give the others.", id="half",
        ),
        pytest.param(
            {"cancelled": 0.2},
            f"y is near {LN} over axis c: only 50 % of the values are the exact ones; a kernel in float32 whose sums cancel, as "
            "E[x²] − E[x]² does, might give the others, and so might other maps.", id="cancelled",
        ),
    ],
)  # fmt: skip
def test_what_there_is_too_little_evidence_for(changed, sentence):
    assert say(doubtful=(DOUBTFUL._replace(**changed),)) == sentence


def test_names_of_which_there_is_too_little_evidence_are_each_said_once():
    doubtful = tuple(DOUBTFUL._replace(norm=name) for name in ("ln", "ln", "in", "bn", "rms", "lp", "wn"))
    assert "(ln), instance normalization (in), batch normalization (bn) or root mean square normalization (rms) would fit" in say(
        doubtful=doubtful
    )  # fmt: skip


@pytest.mark.parametrize(
    ("changed", "dtype", "sentence"),
    [
        pytest.param({}, "f4", "y is no norm of the table: x minus its mean over axes l, c, divided by d.", id="centred"),
        pytest.param({"centred": False, "affine": "gamma"}, "f4", "y is no norm of the table: x over axes l, c, divided by d, then gamma.", id="gamma"),
        pytest.param({}, "f2", "y is near x minus its mean over axes l, c, divided by d; a norm's kernel that calculates in float16", id="near"),
        pytest.param({"far": 9.0}, "f2", "y is no norm of the table: x minus its mean", id="far"),
        pytest.param({"split": Split(1, 2, GroupOrder.INTERLEAVED)}, "f4", "x minus its mean over axes l, c in 2 interleaved groups, divided", id="groups"),
    ],
)  # fmt: skip
def test_a_slip_is_near_a_norm_where_half_precision_may_give_it(changed, dtype, sentence):
    changed = dict(changed)
    grid = Grid((3, 4, 5), Layout(3, 2), (1, 2), split=changed.pop("split", None))
    ends = 1.0 - np.array([1.0, 7.9]) * 2.0**-10, 1.0 + np.array([1.0, changed.pop("far", 2.0)]) * 2.0**-10
    bounded = Bounded(grid, None, NO_AFFINE, *ends)
    slip = Slip(grid, centred=True, affine="none", words="divided by d", rank=0, bounded=bounded)._replace(
        **changed
    )
    assert sentence in say(y=X.astype(dtype), slip=slip)
