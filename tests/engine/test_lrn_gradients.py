"""The derivative of local response normalization, against its definition in fractions."""

from __future__ import annotations

import numpy as np

from normcli.engine.lrn.gradients import differentiate_line
from normcli.norms.spec import Window

X = np.array([1.0, -2.0, 3.0, 0.5, -1.5, 4.0, 0.25])
DY = np.array([0.5, 1.0, -1.0, 2.0, 0.0, -0.75, 3.0])


def test_there_is_none_where_a_value_in_reach_is_not_finite_or_a_sum_not_positive():
    window = Window(1, 1, size=1, divisor=1, alpha=1.0, exponent=1.0, k=1.0)
    x = X.copy()
    x[0] = np.inf
    dx = [differentiate_line(window, x, DY, place, 300) for place in range(X.size)]
    assert [value is None for value in dx] == [True, True, True, False, False, False, False]
    negative = Window(0, 0, size=1, divisor=1, alpha=-1.0, exponent=1.0, k=4.0)
    assert differentiate_line(negative, X, DY, 1, 300) is None  # 4 − (−2)² = 0
    assert differentiate_line(negative, X, DY, 0, 300) is not None
