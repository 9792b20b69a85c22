"""The distribution function of the normal law in pairs, against its sum to more bits."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from normcli.numerics.deciding import NORMAL
from normcli.numerics.elements.activation import Activation
from normcli.numerics.elements.normal_law import LARGEST, LEAST, add_normal, find_normal_share


def draw():
    rng = np.random.default_rng(5)
    steps = np.arange(LEAST * 64 + 1, LARGEST * 64, 41) / 64  # halfway between the table's numbers
    near = np.nextafter(steps, [[-np.inf], [np.inf]]).ravel()
    return np.array([LEAST, LARGEST, 1e-300, -5e-324, *steps, *near, *rng.uniform(LEAST, LARGEST, 60)])


def test_a_sum_is_within_its_bound():
    z = draw()
    hi, lo = add_normal(z)
    worst = 0.0
    for one, *parts in zip(z.tolist(), hi.tolist(), lo.tolist(), strict=True):
        exact = find_normal_share(Fraction(one), 160)
        worst = max(worst, float(abs(sum(map(Fraction, parts)) / exact - 1)))
    assert 2.0**-110 < worst < NORMAL.error / 2
    assert add_normal(np.zeros(1)) == ([0.5], [0.0])


@pytest.mark.parametrize("is_slope", [False, True])
def test_gelu_and_its_slope_are_within_their_errors(is_slope):
    z = draw()
    z = z[np.abs(z) > 1e-290]
    found = (Activation.GELU.find_slope if is_slope else Activation.GELU.evaluate)(z, 53)
    error = np.broadcast_to(found.error, z.shape)
    for place, one in enumerate(z.tolist()):
        exact, _ = Activation.GELU.evaluate_exactly(Fraction(one), 200, slope=is_slope)
        pair = sum((Fraction(float(part[place])) for part in found.value), Fraction(0))
        pair *= Fraction(2) ** int(found.exponent[place])
        assert abs(pair - exact) <= abs(pair) * Fraction(float(error[place]))
