"""The answer of `identify` as a reader sees it."""

from __future__ import annotations

import numpy as np
import pytest

from normcli import normalize
from normcli.answers.judging.identification import IdentificationAnswer
from normcli.documents.document import View
from normcli.identifying.identify import identify
from normcli.identifying.question import Question
from normcli.identifying.words.phrasing import diagnose
from normcli.tensors.tensor import Tensor
from tests.conftest import render
from tests.marks import costly

X = np.random.default_rng(5).normal(1.0, 2.0, (4, 6, 5, 5)).astype("f4")
SCREEN = 24


def answer(y):
    found = identify(Question(X, y, layout="NCHW"))
    return IdentificationAnswer(found, diagnose(found), Tensor(X, "x.npy"), Tensor(y, "y.npy"), "nchw")


@costly
@pytest.mark.parametrize(
    ("y", "hidden"),
    [
        pytest.param(normalize(X, "ln", axes=(1, 2, 3)).normalized, "matches hidden", id="a norm"),
        pytest.param(X * np.arange(1, 7, dtype="f4")[:, None, None] + 1, "lines hidden", id="a plain map"),
    ],
)
def test_a_screen_holds_the_table_and_the_verdict_below_it(y, hidden):
    document = answer(y)
    lines, every = (render(document, view).splitlines() for view in (View(width=80), View()))
    start, first = (
        next(i for i, line in enumerate(each) if line[:1] in "✓✗" and line) for each in (lines, every)
    )
    assert " ".join(lines[start:]).split() == " ".join(every[first:]).split()
    assert max(map(len, lines)) <= 80
    assert len(lines) < SCREEN + 5  # the table's end at least
    assert any(hidden in line for line in lines)
    assert not any(hidden in line for line in render(document, View(width=80, full=True)).splitlines())


@pytest.mark.slow
def test_what_is_right_but_for_a_wrong_value_is_a_fault_in_json():
    y = normalize(X, "ln", axes=(1, 2, 3)).normalized.copy()
    y[2, 3, 4, 1] = 9.0
    data = answer(y).data()
    assert (data["verdict"], data["fault"], data["matches"]) == ("fault", "where-values", [])
