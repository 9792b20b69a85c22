"""How running statistics are used in evaluation."""

from __future__ import annotations

import numpy as np
import pytest

from normcli.dtypes import find_type
from normcli.numerics.statistics.solution import Given
from tests.identifying.faulty import ask, draw, draw_affine, name

X = draw((32, 12), "f8")
GAMMA, BETA = draw_affine(12)
MEAN, VAR = X.mean(0) + 0.3, X.var(0) * np.linspace(0.5, 2.0, 12)
GIVEN = Given(MEAN, VAR)


def evaluate(mean=MEAN, var=VAR, eps=1e-5):
    return (X - mean) / np.sqrt(var + eps) * GAMMA + BETA


def test_running_statistics_that_are_used_as_they_should_be_are_right():
    assert ask("bn", X, evaluate(), GAMMA, BETA, GIVEN) == ()


@pytest.mark.parametrize("dtype", ["f2", "bfloat16"])
def test_an_update_that_moves_values_little_is_named_in_half_precision(dtype):
    mean, var = X.mean(0) + 0.2 * X.std(0), 1.1 * X.var(0)
    y = evaluate(0.9 * mean + 0.1 * X.mean(0), 0.9 * var + 0.1 * X.var(0, ddof=1))
    told = name("bn", X, y, GAMMA, BETA, Given(mean, var), rounded=find_type(dtype))
    assert told[0] == ["stored-updated"]
