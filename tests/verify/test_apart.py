"""What a tensor cannot tell apart is said, and what input would."""

from __future__ import annotations

import numpy as np
import pytest

from normcli import normalize
from normcli.norms.layout import make_layout
from normcli.verify.apart import (
    format_axes,
    join_words,
    list_hidden_by_gamma,
    list_hidden_by_map,
    list_taken_up,
    list_untold,
)
from normcli.verify.hypothesis import Furthest, Match
from normcli.verify.identify import Kind, Question, identify
from normcli.verify.plain import PlainMap
from normcli.verify.sentence import format_sentence

RNG = np.random.default_rng(2)


def make(*shape):
    return RNG.normal(0.5, 2.0, shape).astype("f4")


def ask(x, y, **given):
    layout = "NCHW"[: x.ndim] if x.ndim in (2, 4) else None
    return format_sentence(identify(Question(x, y, layout=layout, **given)))


@pytest.mark.slow
@pytest.mark.parametrize("samples", [1, 2])
def test_a_gamma_for_every_value_of_few_samples_hides_the_norm(samples):
    x, gamma, beta = make(samples, 4, 5, 6), make(4, 5, 6), make(4, 5, 6)
    sentence = ask(x, normalize(x, "ln", axes=(1, 2, 3), gamma=gamma, beta=beta).normalized)
    assert "No norm reproduces y" in sentence
    assert (
        "With a gamma and a beta for each index of axes c, h, w, ln or rms could give any y of so few"
        in sentence
    )
    assert "given, they would tell, or more than 2 samples" in sentence


def test_one_row_hides_groups_of_its_channels_too():
    x, gamma = make(1, 40), make(40)
    sentence = ask(x, normalize(x, "gn", groups=4, gamma=gamma).normalized)
    assert "for each index of axis c, ln, gn or rms could give any y" in sentence


@pytest.mark.parametrize("given", [{"gamma": np.ones(7)}, {"beta": np.ones(7)}])
def test_nothing_is_hidden_by_a_gamma_or_beta_that_is_given(given):
    assert "could give any y" not in ask(make(1, 3, 5, 7), make(1, 3, 5, 7), **given)


@pytest.mark.slow
def test_three_samples_would_tell():
    assert "could give any y" not in ask(make(3, 4, 5, 6), make(3, 4, 5, 6))


def test_one_sample_does_not_tell_bn_from_in_and_two_do():
    words, gamma = "More than one index of axis n would tell bn from in.", make(4)
    for samples in (1, 2):
        x = make(samples, 4, 5, 6)
        sentence = ask(x, normalize(x, "in", gamma=gamma).normalized, gamma=gamma)
        assert (words in sentence) == (samples == 1)


def test_the_place_of_an_eps_that_does_not_show_makes_no_other_norm():
    x = RNG.normal(size=(200, 5))
    found = identify(Question(x, normalize(x, "zscore").normalized))
    assert {match.eps_mode for match in found.matches if match.norm == "zscore"} == {"inside", "outside"}
    assert format_sentence(found).count("standard score") == 1


@pytest.mark.slow
def test_a_map_that_is_too_simple_is_no_norm_by_accident():
    x = make(8, 6, 5, 5)
    found = identify(Question(x, x * np.float32(0.5)))
    assert found.kind is Kind.AFFINE
    assert "normalization" not in format_sentence(found)


@pytest.mark.slow
def test_no_evaluation_is_read_off_a_map_without_a_shift():
    x = make(8, 6, 5, 5)
    sentence = ask(x, x * np.abs(make(6, 1, 1)))
    assert "As evaluation" not in sentence
    assert "any norm's evaluation with stored statistics" in sentence


# -- what is said, case by case

LAYOUT = make_layout("NCHW", 4)


def ask_plain(axes, shift=1.0, shape=(3, 4, 5, 6), **given):
    lengths = [n if axis in axes else 1 for axis, n in enumerate(shape)]
    plain = PlainMap(axes, np.ones(lengths), np.full(lengths, shift))
    asked = Question(np.ones(shape), np.ones(shape), layout="NCHW", **given)
    return " ".join(list_hidden_by_map(asked, plain, LAYOUT))


@pytest.mark.all_quick
@pytest.mark.parametrize(
    ("axes", "asked", "words"),
    [
        pytest.param((1,), {}, "If this is bn or any norm whose groups hold whole ones with a gamma and a beta for each index of "
            "axis c, which hide its statistics, give them.", id="channels"),
        pytest.param((0, 1), {}, "If this is bn, in or any", id="samples and channels"),
        pytest.param((1,), {"shape": (1, 4, 5, 6)}, "If this is bn, in or any norm whose groups hold whole ones with a gamma and a "
            "beta for each index of axis c, which hide its statistics, give them, or more than one sample.", id="one sample"),
        pytest.param((1,), {"shape": (2, 4, 5, 6)}, "If this is bn or any norm", id="two samples"),
        pytest.param((0, 1, 2), {}, "If this is bn, ln, in or any", id="positions"),
        pytest.param((0, 1, 2), {"shift": 0.0}, "If this is bn, ln, in, rms or any", id="without a shift"),
        pytest.param((2,), {}, "", id="no groups of a norm"),
        pytest.param((), {}, "", id="one pair"),
        pytest.param((1,), {"gamma": np.ones(4)}, "", id="gamma is given"),
        pytest.param((1,), {"beta": np.ones(4)}, "", id="beta is given"),
    ],
)  # fmt: skip
def test_norms_that_a_map_may_hide(axes, asked, words):
    said = ask_plain(axes, **asked)
    assert said.startswith(words)
    assert bool(said) == bool(words)


@pytest.mark.parametrize(
    ("shape", "given", "words"),
    [
        ((1, 40), {}, "With a gamma and a beta for each index of axis c, ln, gn or rms could give any y of so few samples: given, "
            "they would tell, or more than 2 samples."),
        ((2, 40), {}, "With a gamma and a beta for each index of axis c, bn, ln, gn or rms could"),
        ((3, 40), {}, ""),
        ((2, 4, 5, 6), {}, "With a gamma and a beta for each index of axes c, h, w, ln or rms could"),
        ((1, 2, 5, 6), {}, "With a gamma and a beta for each index of axes c, h, w, ln or rms could"),
        ((1, 1), {}, ""),
        ((1, 40), {"gamma": np.ones(40)}, ""),
        ((1, 40), {"beta": np.ones(40)}, ""),
    ],
)  # fmt: skip
def test_norms_that_gamma_may_hide(shape, given, words):
    layout = "NCHW"[: len(shape)]
    asked = Question(np.ones(shape), np.ones(shape), layout=layout, **given)
    said = " ".join(list_hidden_by_gamma(asked, make_layout(layout, len(shape))))
    assert said.startswith(words)
    assert bool(said) == bool(words)


MATCH = Match("in", (2, 3), "float32", (), 0.5, 0.1, 0.5, 60, Furthest((0, 0), 1.0, 1.0), (0, 1, 2, 3))


@pytest.mark.parametrize(
    ("best", "others", "shape", "said"),
    [
        pytest.param({}, [{"norm": "bn"}], (1, 4, 5, 6), ["More than one index of axis n would tell in from bn."], id="a sample"),
        pytest.param(
            {"norm": "ln", "axes": (1, 2, 3)}, [{"norm": "gn", "axes": (1, 2, 3), "groups": 1}], (3, 1, 5, 6), [], id="the same"
        ),
        pytest.param(
            {"axes": (2, 3)}, [{"norm": "ln", "axes": (2, 3)}, {"norm": "bn", "axes": (2, 3)}], (1, 1, 5, 6),
            ["More than one index of axis n would tell in from bn."], id="two axes",
        ),
        pytest.param({}, [{}], (1, 4, 5, 6), [], id="itself"),
        pytest.param({}, [{"norm": "bn", "axes": (0, 2, 3)}], (3, 4, 5, 6), [], id="no axis of one index"),
    ],
)  # fmt: skip
def test_an_axis_of_one_index_hides_which_norm_it_is(best, others, shape, said):
    asked = Question(np.ones(shape), np.ones(shape), layout="NCHW")
    matches = [MATCH._replace(**changed) for changed in others]
    assert list(list_untold(MATCH._replace(**best), matches, asked, LAYOUT)) == said


def test_axes_and_words_are_listed():
    assert format_axes((1,), LAYOUT) == "axis c"
    assert format_axes((0, 3), LAYOUT) == "axes n, w"
    assert format_axes((0, 3), make_layout(None, 7)) == "axes 0, 3"
    assert [join_words(words) for words in ((), ("a",), ("a", "b"))] == ["nothing", "a", "a or b"]


@pytest.mark.parametrize(
    ("norm", "affine", "modes", "said"),
    [
        ("ln", "estimated", ["inside"], ["The fitted gamma hides ddof."]),
        (
            "ln", "estimated", ["inside", "outside"],
            ["The fitted gamma hides ddof.", "Eps outside the root fits as well."],
        ),
        ("rms", "estimated", ["inside", "outside"], ["Eps outside the root fits as well."]),
        ("rms", "estimated", ["inside"], []),
        ("ln", "gamma, beta", ["inside", "outside"], []),
    ],
)  # fmt: skip
def test_what_a_fitted_gamma_hides_is_said(norm, affine, modes, said):
    matches = [MATCH._replace(norm=norm, affine=affine, eps_mode=mode) for mode in modes]
    other = MATCH._replace(norm="gn", affine=affine, eps_mode="floor")
    assert list(list_taken_up(matches[0], [*matches, other])) == said
