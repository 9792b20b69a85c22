"""Whether y goes with x: any function of x does, in a part of y too, and chance does not."""

from __future__ import annotations

import numpy as np
import pytest

from normcli.identifying.search.screen import go_together

RNG = np.random.default_rng(7)
X = RNG.normal(size=(24, 72))
GAMMA = RNG.normal(size=72)


@pytest.mark.parametrize(
    "y",
    [
        pytest.param(X**2, id="not monotone"),
        pytest.param(np.where(RNG.random(X.shape) < 0.4, X, RNG.normal(size=X.shape)), id="here and there"),
        pytest.param(np.where(np.arange(24)[:, None] < 8, X, np.nan), id="a third of the rows"),
        pytest.param(X * GAMMA + GAMMA[::-1], id="gamma and beta of each feature"),
    ],
)
def test_a_function_of_x_goes_with_it(y):
    assert go_together([X], y)


@pytest.mark.parametrize("seed", range(6))
def test_chance_does_not(seed):
    x, y = np.random.default_rng(seed).normal(size=(2, 6, 12, 5, 8))
    assert not go_together([x, x**2], y)
    assert not go_together([x], np.sign(y))
