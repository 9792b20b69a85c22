"""What a tensor cannot tell apart is said, and what input would."""

from __future__ import annotations

import numpy as np
import pytest

from normcli import normalize
from normcli.verify.identify import Kind, Question, identify
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


@pytest.mark.parametrize("given", [{"gamma": np.ones(6)}, {"beta": np.ones(6)}])
def test_nothing_is_hidden_by_a_gamma_or_beta_that_is_given(given):
    assert "could give any y" not in ask(make(1, 4, 5, 6), make(1, 4, 5, 6), **given)


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
