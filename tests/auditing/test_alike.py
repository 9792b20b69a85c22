"""Layers that nobody named: those alike are identified once, and each is still held against what was found."""

from __future__ import annotations

import numpy as np
import pytest

from normcli import normalize
from normcli.auditing import alike
from normcli.auditing.alike import KnownNorms
from normcli.identifying.question import Question
from tests.marks import costly

RNG = np.random.default_rng(5)


def ask(eps=1e-5, offset=0.0, shift=0.0):
    x = RNG.normal(size=(2, 8, 16)).astype(np.float32)
    gamma, beta = (RNG.normal(1.0, 0.3, 16).astype(np.float32) for _ in range(2))
    y = normalize(x, "ln", axes=-1, eps=eps, gamma=gamma + np.float32(offset), beta=beta).normalized
    return Question(x, y + np.float32(shift), gamma, beta)


@pytest.fixture
def asked(monkeypatch):
    """The questions that are identified in full."""
    every, identify = [], alike.identify
    monkeypatch.setattr(alike, "identify", lambda question: every.append(question) or identify(question))
    return every


def test_layers_alike_are_identified_once(asked):
    known = KnownNorms()
    found = [known.identify(ask(), "Norm") for _ in range(3)]
    assert len(asked) == 1
    assert len({told.cause for told, _ in found}) == 1
    assert all(ulp <= 0.5 for _, ulp in found)


@costly
@pytest.mark.parametrize("other", [{"eps": 1e-3}, {"eps": 1e-6}, {"offset": 1.0}, {"shift": 0.5}])
@pytest.mark.slow
def test_what_another_layer_has_otherwise_is_found(asked, other):
    known, question = KnownNorms(), ask(**other)
    known.identify(ask(), "Norm")
    told, ulp = known.identify(question, "Norm")
    alone = KnownNorms().identify(question, "Norm")
    assert len(asked) == 3
    assert (told.cause, ulp) == (alone[0].cause, alone[1])
