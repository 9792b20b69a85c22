"""Which values the statistics of a group are of, and how many there are."""

from __future__ import annotations

import numpy as np
import pytest

from tests.identifying.faulty import ask, draw, name, standardize

X = draw((8, 100), "f8")


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
