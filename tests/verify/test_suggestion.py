"""Tensors that tell apart what fits."""

from __future__ import annotations

import shlex

import numpy as np
import pytest

from normcli import normalize
from normcli.algorithms.computation import parse_computation
from normcli.algorithms.elements import Formula
from normcli.norms.plan import make_plan
from normcli.norms.request import Request
from normcli.tensors.generate import generate
from normcli.verify.identify import Question, identify
from normcli.verify.suggestion import suggest


def test_a_batch_of_several_tells_bn_from_ln_and_in():
    x = np.random.default_rng(0).normal(0.0, 1.0, (1, 4, 16)).astype(np.float32)
    found = identify(Question(x, normalize(x, "bn").normalized))
    names = {match.norm for match in found.matches}
    assert {"bn", "in"} <= names
    suggestion = suggest(found)
    assert suggestion.recipe.shape == (2, 4, 16)
    other = generate(suggestion.recipe).values
    again = identify(Question(other, normalize(other, "bn").normalized))
    assert "bn" in {match.norm for match in again.matches}
    assert "in" not in {match.norm for match in again.matches}


@pytest.mark.slow
def test_algorithms_that_give_the_same_bits_are_told_apart():
    x = np.random.default_rng(0).normal(0.5, 1.5, (24, 40)).astype(np.float16)
    formula = Formula.of(make_plan(Request("ln"), x.shape, x.dtype))
    computation = parse_computation("one-pass:float16")
    found = identify(Question(x, computation.run(x, formula, x.dtype)))
    low, high = found.matches[0].eps_range
    assert low < high
    suggestion = suggest(found)
    assert 0 < suggestion.told <= suggestion.pairs
    other = generate(suggestion.recipe).values
    again = identify(Question(other, computation.run(other, formula, x.dtype)))
    assert again.matches[0].eps_range[1] - again.matches[0].eps_range[0] < high - low


def test_one_answer_needs_no_suggestion():
    x = np.random.default_rng(0).normal(0.0, 1.0, (3, 4, 16))
    y = normalize(x, "ln", eps=1e-3, eps_mode="outside", ddof=1).normalized
    assert suggest(identify(Question(x, y))) is None


@pytest.fixture
def files(tmp_path):
    x = np.random.default_rng(0).normal(0.0, 1.0, (1, 4, 16)).astype(np.float32)
    np.save(tmp_path / "x.npy", x)
    np.save(tmp_path / "y.npy", normalize(x, "bn").normalized)
    np.save(tmp_path / "noise.npy", x[:, ::-1])
    return tmp_path


def test_the_command_that_is_printed_runs(files, normcli, monkeypatch):
    ran = normcli("identify", "-i", files / "x.npy", "--actual", files / "y.npy", "--suggest")
    assert (ran.code, len(ran.lines)) == (0, 1)
    assert "tells apart" in ran.err
    monkeypatch.chdir(files)
    program, *arguments = shlex.split(ran.out)
    (files / "x.npy").unlink()
    assert (program, normcli(*arguments).code) == ("normcli", 0)
    assert np.load(files / "x.npy").shape == (2, 4, 16)


def test_nothing_to_tell_apart_is_said(files, normcli):
    ran = normcli("identify", "-i", files / "x.npy", "--actual", files / "noise.npy", "--suggest")
    assert (ran.code, ran.out) == (1, "")
    assert "nothing to tell apart" in ran.err
