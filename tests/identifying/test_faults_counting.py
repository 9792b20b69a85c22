"""Which values the statistics of a group are of, and how many there are."""

from __future__ import annotations

import numpy as np
import pytest

from tests.identifying.faulty import ask, draw, name, standardize

X = draw((8, 100), "f8")


def test_a_length_that_is_divided_by_n_says_by_what_it_should_be():
    y = X / np.sqrt((X * X).mean(-1, keepdims=True))
    assert name("l2", X, y)[1][0] == "the sum of the squares is divided by 100, not 1"


def tile(*ends):
    return np.concatenate([standardize(part) for part in np.split(X, ends, -1)], -1)


def average_tiles(first):
    parts = X[:, :first], X[:, first:]
    mean = sum(part.mean(-1, keepdims=True) for part in parts) / 2.0
    return standardize(X, mean=mean, square=sum(((x - mean) ** 2).mean(-1, keepdims=True) for x in parts) / 2.0)


@pytest.mark.parametrize(
    ("norm", "y", "cause"),
    [
        ("ln", tile(64), "statistics are of 2 parts along c, up to 64 long, each by itself"),
        ("ln", tile(40, 80), "statistics are of 3 parts along c, up to 40 long, each by itself"),
        ("ln", tile(80), "statistics are of 2 parts along c, up to 80 long, each by itself"),
        ("ln", average_tiles(64), "unequal parts of c, 64 and 36, count alike"),
        ("rms", X / np.sqrt((X**2).sum(-1, keepdims=True) / 128), "the sum of the squares is divided by 128, not 100"),
    ],
)  # fmt: skip
def test_tiles_with_a_shorter_last_one_are_told(norm, y, cause):
    assert name(norm, X, y, **({"eps": 0.0} if norm == "rms" else {}))[1][0] == cause


@pytest.mark.slow
def test_groups_of_one_and_of_two_values_are_possible():
    for n in (1, 2):
        x = draw((6, n), "f8")
        for y in (standardize(x), standardize(x) * 1.5, x, -x):
            ask("ln", x, y)
            ask("rms", x, y)
