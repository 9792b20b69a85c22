"""Activations of gates in doubles: their errors are within the bounds that are said of them."""

from __future__ import annotations

import numpy as np
import pytest

from normcli.numerics.elements.activation import Activation
from normcli.numerics.elements.activation_in_doubles import estimate
from tests.marks import sampled

SCALES = [1e-300, 1e-8, 0.1, 1.0, 5.0, 30.0, 200.0, 1000.0, 1e5, 1e300]


@sampled
@pytest.mark.parametrize("slope", [False, True], ids=["value", "slope"])
@pytest.mark.parametrize("activation", list(Activation))
def test_errors_are_within_half_their_bounds(activation, slope):
    rng = np.random.default_rng(5)
    z = np.concatenate([rng.standard_normal(500) * scale for scale in SCALES] + [[0.0, -0.0, 5e-324, -1.278]])
    with np.errstate(all="ignore"):
        value, error = estimate(activation, z, slope=slope)
        known = activation.find_slope(z, 53) if slope else activation.evaluate(z, 53)
        exact = known.pair
        off = np.abs((value - exact.hi) - exact.lo)
    is_known = np.broadcast_to(known.error < 2.0**-70, z.shape)
    assert is_known.mean() > 0.4
    assert (2.0 * off <= error)[is_known].all()
