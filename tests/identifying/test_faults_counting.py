"""Which values the statistics of a group are of, and how many there are."""

from __future__ import annotations

import numpy as np
import pytest

from tests.identifying.faulty import ask, draw, name, standardize

X = draw((8, 100), "f8")
M, V = X.mean(-1, keepdims=True), X.var(-1, keepdims=True)
PADDED = np.pad(X, ((0, 0), (0, 28)))


def divide(mean, square, x=X):
    return (x - mean) / np.sqrt(square + 1e-5)


FIRST = X[:, :96]
HALVES = np.stack(np.split(X, 2, axis=-1))

COUNTED = {
    "stats-padded": divide(PADDED.mean(-1, keepdims=True), PADDED.var(-1, keepdims=True)),
    "stats-padded-mean": divide(PADDED.mean(-1, keepdims=True), V),
    "stats-padded-variance": divide(M, ((PADDED - M) ** 2).mean(-1, keepdims=True)),
    "stats-count": divide(M, V * 100 / 101),
    "stats-partial": divide(FIRST.mean(-1, keepdims=True), FIRST.var(-1, keepdims=True)),
    "stats-tail-skipped": divide(
        FIRST.sum(-1, keepdims=True) / 100,
        ((FIRST - FIRST.sum(-1, keepdims=True) / 100) ** 2).sum(-1, keepdims=True) / 100,
    ),
    "stats-shard": np.concatenate([standardize(half) for half in HALVES], axis=-1),
    "stats-averaged": divide(M, HALVES.var(-1).mean(0)[:, None]),
    "stats-other-row": divide(np.roll(M, 1, 0), np.roll(V, 1, 0)),
    "stats-other-axes": divide(X.mean(0), X.var(0)),
}


@pytest.mark.all_tried
@pytest.mark.parametrize("fault", COUNTED)
def test_what_the_statistics_are_of_is_named(fault):
    assert name("ln", X, COUNTED[fault])[0] == [fault]


@pytest.mark.slow
def test_how_many_is_said():
    assert name("ln", X, COUNTED["stats-padded"])[1] == ["mean and variance count 28 zeros of padding"]
    assert "the sum of the squares is divided by 101, not 100" in name("ln", X, COUNTED["stats-count"])[1]


def test_a_length_that_is_divided_by_n_says_by_what_it_should_be():
    y = X / np.sqrt((X * X).mean(-1, keepdims=True))
    assert name("l2", X, y)[1][0] == "the sum of the squares is divided by 100, not 1"


@pytest.mark.slow
def test_groups_of_one_and_of_two_values_are_possible():
    for n in (1, 2):
        x = draw((6, n), "f8")
        for y in (standardize(x), standardize(x) * 1.5, x, -x):
            ask("ln", x, y)
            ask("rms", x, y)
