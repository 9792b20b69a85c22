"""Values of which beta cancels nearly everything, against exact rationals."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from normcli import normalize
from normcli.norms.table import EpsMode
from normcli.numerics.rational import add_eps, round_once, sum_exactly
from normcli.numerics.settling import round_to_odd


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("name", ["ln", "bn"])
def test_what_beta_cancels_is_the_exact_value_rounded_once(name, dtype):
    rng = np.random.default_rng(5)
    x = rng.standard_normal((6, 40)).astype(dtype)
    gamma = rng.uniform(1, 2, 40)
    plain = np.asarray(normalize(x.astype("f8"), name, gamma=gamma, eps=1e-5).normalized)
    beta = -plain[3]
    y = np.asarray(normalize(x, name, gamma=gamma, beta=beta, eps=1e-5).normalized)
    for column in range(40):
        group = x[3] if name == "ln" else x[:, column]
        sums = sum_exactly(group.astype("f8"))
        divisor = add_eps(sums.scatter() / sums.count, 1e-5, EpsMode.INSIDE)
        exact = Fraction(gamma[column]) * (Fraction(float(x[3, column])) - sums.mean()) / divisor
        exact += Fraction(beta[column])
        assert y[3, column] == np.dtype(dtype).type(
            round_to_odd(exact) if dtype == "float32" else round_once(exact)
        )
        assert abs(exact) < abs(beta[column]) * 2.0**-50 or beta[column] == 0.0


def test_rounding_to_odd_and_then_to_float32_is_rounding_once():
    half = 1 + Fraction(1, 2**24)
    tiny = Fraction(1, 2**90)
    assert [np.float32(round_to_odd(half + sign * tiny)) for sign in (-1, 0, 1)] == [1, 1, 1 + 2.0**-23]
    assert round_to_odd(Fraction(10) ** 400) == np.inf
    assert round_to_odd(-half) == -float(half)
