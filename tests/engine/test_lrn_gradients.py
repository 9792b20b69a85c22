"""The derivative of local response normalization, against its definition in fractions."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from normcli.engine.lrn.gradients import differentiate_line, differentiate_windows
from normcli.norms.spec import Window

X = np.array([1.0, -2.0, 3.0, 0.5, -1.5, 4.0, 0.25])
DY = np.array([0.5, 1.0, -1.0, 2.0, 0.0, -0.75, 3.0])


def define(window, place):
    """Return dx of a value, of y = x / U: the sum over all values of dy · ∂y/∂x."""
    scale = Fraction(window.alpha) / window.divisor
    x, dy = ([Fraction(value) for value in values] for values in (X, DY))
    total = Fraction(0)
    for i in range(len(x)):
        near = [j for j in range(len(x)) if i - window.before <= j <= i + window.after]
        u = Fraction(window.k) + scale * sum(x[j] ** 2 for j in near)
        coefficients = (Fraction(i == place)) / u - (x[i] * 2 * scale * x[place] / u**2 if place in near else 0)
        total += dy[i] * coefficients
    return total


@pytest.mark.slow
@pytest.mark.parametrize(("before", "after"), [(1, 1), (2, 1), (0, 2), (6, 6), (9, 0)])
def test_it_is_the_sum_over_the_windows_that_hold_a_value(before, after):
    window = Window(before, after, size=3, divisor=3, alpha=0.5, exponent=1.0, k=2.0)
    expected = [define(window, place) for place in range(X.size)]
    found = differentiate_windows(window, X, DY)
    assert not found.unclear.any()
    for place, value in enumerate(expected):
        for bits in (200, 1000):
            exact, error = differentiate_line(window, X, DY, place, bits)
            assert abs(exact - value) <= error <= Fraction(1, 2 ** (bits - 20))
        pair = Fraction(found.value.hi[place]) + Fraction(found.value.lo[place])
        assert abs(pair - value) <= found.error[place]


def test_there_is_none_where_a_value_in_reach_is_not_finite_or_a_sum_not_positive():
    window = Window(1, 1, size=1, divisor=1, alpha=1.0, exponent=1.0, k=1.0)
    x = X.copy()
    x[0] = np.inf
    dx = [differentiate_line(window, x, DY, place, 300) for place in range(X.size)]
    assert [value is None for value in dx] == [True, True, True, False, False, False, False]
    negative = Window(0, 0, size=1, divisor=1, alpha=-1.0, exponent=1.0, k=4.0)
    assert differentiate_line(negative, X, DY, 1, 300) is None  # 4 − (−2)² = 0
    assert differentiate_line(negative, X, DY, 0, 300) is not None
