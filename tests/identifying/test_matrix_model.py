"""Spectral normalization is identified, with the axis of its rows, where y is w / σ to rounding."""

from __future__ import annotations

import numpy as np
import pytest

from normcli import normalize
from normcli.identifying.identify import identify
from normcli.identifying.models.matrix_model import find_matrices
from normcli.identifying.question import Kind, Question
from normcli.identifying.words.phrasing import diagnose
from tests.marks import costly


@pytest.mark.slow
@costly
@pytest.mark.parametrize(
    ("shape", "rows", "dtype"),
    [((13, 11), 0, "float32"), ((5, 3, 2, 3), 1, "float32"), ((5, 3, 2), 2, "float64")],
)
def test_a_matrix_over_its_singular_value_is_a_match(shape, rows, dtype, rng):
    w = rng.normal(size=shape).astype(dtype)
    matrix = np.moveaxis(w, rows, 0).reshape(shape[rows], -1)
    found = identify(Question(w, w / np.linalg.norm(matrix, 2)))  # σ is rounded first, as kernels do
    assert found.kind is Kind.NORM
    assert [(match.norm, match.rows) for match in found.matches] == [("sn", (rows,))]
    assert "y is spectral normalization of rows" in diagnose(found).sentence


@pytest.mark.slow
def test_a_singular_value_that_is_still_iterated_is_a_possibility_alone(rng):
    w = rng.normal(size=(13, 11)).astype("float32")
    found = identify(Question(w, (w / np.linalg.norm(w, 2) * 1.0001).astype("float32")))
    assert (found.kind, found.matches) == (Kind.AFFINE, ())
    assert any("sn, w divided" in name for name in found.known)
    assert "spectral norm" in diagnose(found).sentence


@pytest.mark.slow
def test_too_few_bits_are_named_once(rng):
    w = rng.normal(size=(13, 11)).astype("float16")
    sentence = diagnose(identify(Question(w, normalize(w, "sn").normalized))).sentence
    assert sentence.count("spectral normalization") == 1
    assert "sn, w divided" not in sentence


def test_of_rank_1_it_is_the_length(rng):
    w = np.outer(rng.normal(size=6), rng.normal(size=4))
    found = identify(Question(w, normalize(w, "sn").normalized))
    assert {match.norm for match in found.matches} == {"lp"}


W = np.random.default_rng(0).normal(size=(4, 3, 2))


def find(y, slack=2.0**-50, w=W):
    return list(find_matrices(w, y, slack * np.abs(y), np.dtype("f8")))


@pytest.mark.parametrize(
    "change",
    [
        pytest.param(lambda y: y * (1.0 + 2.0**-30), id="a factor"),
        pytest.param(lambda y: np.where(y == y.max(), 0.9 * y, y), id="one value"),
        pytest.param(lambda y: -y, id="the sign"),
        pytest.param(lambda y: 0.0 * y, id="zeros"),
        pytest.param(lambda y: np.where(y == y.max(), np.nan, y), id="nan"),
    ],
)
def test_what_no_matrix_gives(change):
    assert not find(change(normalize(W, "sn").normalized))


def test_zeros_stay_zeros():
    w = W.copy()
    w[1, 2, 0] = 0.0
    y = normalize(w, "sn").normalized.copy()
    assert [one.plan.spec.rows for one in find(y, w=w)] == [(0,)]
    y[1, 2, 0] = 1e-9
    assert not find(y, w=w)
    assert not find(np.zeros(W.shape), w=np.zeros(W.shape))


def test_a_matrix_and_its_transpose_are_one():
    assert [one.plan.spec.rows for one in find(normalize(W[0], "sn").normalized, w=W[0])] == [(0,)]
    assert not find(normalize(W[:, :1, 0], "sn").normalized, w=W[:, :1, 0])  # of rank 1
