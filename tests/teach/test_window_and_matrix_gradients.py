"""The story of dx of a matrix: u and v in numbers, and where there is no derivative."""

from __future__ import annotations

import numpy as np
import pytest

from normcli.documents.notation import build_equation
from normcli.results.arguments import read_arguments
from normcli.teach.explain import explain as explaining
from tests.conftest import pose

X, DY = [[3, 0], [4, 5]], [[1, 2], [3, 4]]


def explain(x, dy, at=(0, 0), **options):
    """Return what a story says, by the names of its steps."""
    asked = read_arguments(np.asarray(x), "sn", options)
    story = explaining.explain(pose(asked.plan, asked.values, dy=np.asarray(dy)), at=at)
    told = {step.name: step.sentence for step in story.steps}
    return told | {step.name: build_equation(step).text for step in story.steps if step.symbol is not None}


def test_the_numbers_are_those_of_the_value():
    told = explain(X, DY, (1, 0))
    assert told["vectors"].endswith("u = (0.316228, 0.948683) and v = (0.707107, 0.707107).")
    assert told["changes"] == "σ changes with each value by u of its row times v of its column."
    assert told["slope"].startswith("∂L/∂σ = −Σ dy · x / σ² ≈ −(1 · 3 / 6.7082039²")
    assert told["dx"].startswith("dx = dy / σ + ∂L/∂σ · u · v ≈ 3 / 6.7082039")
    assert "· 0.9486833 · 0.70710678 ≈" in told["dx"]


def test_vectors_of_iterations_are_constants_and_equal_numbers_are_equal():
    told = explain(X, DY, u=[1.0, 0.0], iterations=1)
    assert told["changes"].startswith("u and v count as constants: ")
    assert told["dx"] == "dx = dy / σ + ∂L/∂σ · u · v = 1 / 5 + (-1.4) · 0.6 · 1 = 0.2 + (-0.84) = -0.64"


@pytest.mark.parametrize("x", [[[3, 4]], [[3.0], [4.0]], [[0.1, 0.2], [0.0, 0.0]]])
def test_what_cancels_is_0(x):
    told = explain(x, 2 * np.asarray(x))
    assert told["dx"].endswith(" 0")
    assert told["result"].endswith(" 0")


@pytest.mark.parametrize(
    ("x", "sentence"),
    [
        ([[2, 0], [0, 2]], "Two of the singular values are equally large: there is no derivative."),
        ([[0, 0], [0, 0]], "There is no derivative by values that 0 stands for."),
        (
            [[1.0, np.inf], [0, 1]],
            "The only group holds an infinity: its statistics or values are infinite or NaN.",
        ),
    ],
)
def test_where_there_is_none_a_sentence_says_why(x, sentence):
    told = explain(x, DY)
    assert "dx" not in told
    assert told["result"].endswith(", is NaN.")
    assert sentence in told.values()
