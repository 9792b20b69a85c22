"""Derivatives against exact rational ones: each way in which they are decided, once."""

from __future__ import annotations

import numpy as np
import pytest

from normcli import backward
from normcli.numerics.pairs import Pair
from normcli.numerics.slopes import _invert
from tests.results.test_backward import require_exact

RNG = np.random.default_rng(29)
X, DY = RNG.normal(1.0, 2.0, (4, 6)), RNG.normal(size=(4, 6))
GAMMA = RNG.normal(1.0, 0.5, 6)
FAR = X * 10.0 ** RNG.integers(-60, 60, X.shape)
ALIKE = 1e9 + np.rint(X)  # sums cancel, and fractions decide
SOME_ZEROS = np.where(RNG.random(X.shape) < 0.3, 0.0, X)


@pytest.mark.parametrize(
    ("x", "norm", "options"),
    [
        pytest.param(X, "ln", {"gamma": GAMMA}, id="about the mean"),
        pytest.param(X, "bn", {"gamma": GAMMA, "eps": 0.5, "eps_mode": "outside"}, id="eps outside of the root"),
        pytest.param(ALIKE, "ln", {"gamma": GAMMA}, id="sums that cancel"),
        pytest.param(FAR, "ln", {}, id="far apart"),
        pytest.param(SOME_ZEROS, "rms", {"eps": 0.0}, id="about zero"),
        pytest.param(SOME_ZEROS, "lp", {"p": 1}, id="absolute values"),
        pytest.param(SOME_ZEROS, "lp", {"p": 3}, id="cubes"),
        pytest.param(X, "lp", {"p": 0.5}, id="square roots"),
        pytest.param(1e200 * X, "lp", {"p": 1.25}, id="decimals"),
        pytest.param(np.rint(X), "lp", {"p": np.inf}, id="the largest, of which there are several"),
        pytest.param(np.ones((4, 6)), "ln", {"eps": 0.0}, id="without a derivative"),
        pytest.param(X.reshape(2, 6, 2), "lrn", {"size": 3}, id="windows"),
        pytest.param(1e200 * X.reshape(2, 6, 2), "lrn", {"size": 3, "alpha": 1.0}, id="windows in fractions"),
    ],
)  # fmt: skip
def test_every_way_is_exact(x, norm, options):
    require_exact(backward(x, DY.reshape(x.shape), norm, **options))
    if norm != "lrn":
        mask = np.arange(x.shape[-1]) != 2
        require_exact(backward(x, DY, norm, **options, mask=mask))


def test_the_inverse_of_0_and_of_infinity_has_no_low_part():
    with np.errstate(all="ignore"):
        inverse = _invert(Pair(np.array([np.inf, 0.0, 4.0]), np.zeros(3)))
    np.testing.assert_array_equal(inverse, ([0.0, np.inf, 0.25], [0.0, 0.0, 0.0]))
