"""A plain map in words: its formula, what it may be made by, and which norms look so."""

from __future__ import annotations

import numpy as np
import pytest

from normcli.identifying.models.known_maps import Evaluation
from normcli.identifying.models.line_fit import PlainMap
from normcli.identifying.question import Question
from normcli.identifying.search.affine_step import NO_AFFINE, AffineStep
from normcli.identifying.words.map_words import format_evaluation, list_hidden_by_map
from normcli.identifying.words.phrasing import diagnose
from tests.identifying.diagnoses import DOUBTFUL, find, make_map

STORED = ("evaluation with stored statistics", "a scaler fitted elsewhere")


def say(plain, **found):
    return diagnose(find(plain=plain, **found))


@pytest.mark.parametrize(
    ("a", "b", "cause"),
    [
        ([0.5], [0.0], "y is 0.5 · x for all values"),
        ([1.0], [-2.25], "y is x − 2.25 for all values"),
        ([-3.0], [1 / 3], "y is -3 · x + 0.333333333 for all values"),
    ],
)
def test_one_pair_for_all_values(a, b, cause):
    told = say(make_map(a, b))
    assert (told.verdict, told.cause, told.evidence, told.alternatives) == ("affine", cause, (), STORED)
    assert say(make_map(a, b), known=("x / 255", "any")).alternatives == ("x / 255", "any", *STORED)


@pytest.mark.parametrize(
    ("a", "b", "axes", "cause", "evidence"),
    [
        ([1, 2, 3, 4], [5, 6, 7, 8.5], (1,), "y is a · x + b for each index of l", ("a is 1, 2, 3, 4", "b is 5, 6, 7, 8.5")),
        ([1, 2, -3, 4, 5], [0] * 5, (2,), "y is a · x in each channel", ("a is -3 to 5",)),
        ([1 / 3, 2, 3], [0, 0, 1], (0,), "y is a · x + b for each index of n", ("a is 0.333333, 2, 3", "b is 0, 0, 1")),
    ],
)  # fmt: skip
def test_a_pair_for_each_index(a, b, axes, cause, evidence):
    told = say(make_map(a, b, axes), gamma=np.ones(4))
    assert (told.cause, told.evidence, told.next_step) == (cause, evidence, None)


def test_norms_whose_statistics_may_be_hidden_in_one_pair_are_named():
    ln, rms = DOUBTFUL, DOUBTFUL._replace(norm="rms")
    both = ("layer normalization", "root mean square normalization")
    assert say(make_map([0.5], [0.0]), doubtful=(ln, rms, ln)).alternatives == (*both, *STORED)
    assert say(make_map([0.5], [0.0]), doubtful=(ln, rms._replace(bits=0.0))).alternatives == (both[0], *STORED)
    shifted = say(make_map([0.5], [1.0]), doubtful=(rms, ln))
    assert shifted.alternatives == (both[0], *STORED)
    assert shifted.evidence == ("y shows no statistic of x but its mean",)
    assert say(make_map([0.5], [1.0]), doubtful=(rms,)).evidence == ()


@pytest.mark.parametrize(
    ("step", "words"),
    [
        pytest.param(NO_AFFINE, ", if gamma is 1 and beta is 0", id="neither"),
        pytest.param(AffineStep("gamma", np.ones(1)), ", then gamma, if beta is 0", id="gamma"),
        pytest.param(AffineStep("swapped", np.ones(1), np.ones(1)), ", with gamma and beta exchanged", id="both"),
    ],
)  # fmt: skip
def test_an_evaluation_is_told_with_what_is_not_known(step, words):
    evaluation = Evaluation(np.array([1.0, 2.0]), np.array([3.0, 4.0]), step)
    said = f"evaluation with running mean ≈ 1, 2, running variance + eps ≈ 3, 4{words}"
    assert format_evaluation(evaluation) == said
    plain = make_map([1, 2, 3, 4], [1, 2, 3, 4], (1,))
    assert say(plain, evaluation=evaluation).alternatives == (said, STORED[1])
    assert say(plain, evaluation=evaluation._replace(mean=np.zeros(2))).alternatives == STORED


def hide(axes, shift=1.0, shape=(3, 4, 5, 6), **given):
    lengths = [n if axis in axes else 1 for axis, n in enumerate(shape)]
    plain = PlainMap(axes, np.ones(lengths), np.full(lengths, shift))
    return list_hidden_by_map(Question(np.ones(shape), np.ones(shape), layout="NCHW", **given), plain)


@pytest.mark.all_quick
@pytest.mark.parametrize(
    ("axes", "asked", "names"),
    [
        pytest.param((1,), {}, ["bn"], id="channels"),
        pytest.param((0, 1), {}, ["bn", "in"], id="samples and channels"),
        pytest.param((1,), {"shape": (1, 4, 5, 6)}, ["bn", "in"], id="one sample"),
        pytest.param((1,), {"shape": (2, 4, 5, 6)}, ["bn"], id="two samples"),
        pytest.param((0, 1, 2), {}, ["bn", "ln", "in"], id="positions"),
        pytest.param((0, 1, 2), {"shift": 0.0}, ["bn", "ln", "in", "rms"], id="without a shift"),
        pytest.param((2,), {}, [], id="no groups of a norm"),
        pytest.param((1,), {"beta": np.ones(4)}, [], id="beta is given"),
    ],
)
def test_norms_that_a_map_may_hide(axes, asked, names):
    assert hide(axes, **asked) == names


def test_gamma_and_beta_tell():
    plain = make_map([1, 2, 3, 4, 5], [5, 4, 3, 2, 1], (2,))
    told = say(plain)
    assert told.evidence[-1] == "any bn with unknown gamma and beta looks so"
    assert told.next_step == "give --gamma and --beta"
