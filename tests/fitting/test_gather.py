"""The sums of a tensor: the deviation of each sample is the exact one, rounded once, and rarely by integers."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from normcli.engine.walk import Effort
from normcli.fitting import gather as module
from normcli.norms.plan import make_plan
from normcli.norms.request import Request
from normcli.numerics.rational import find_root, round_once


def make(dtype):
    """Return samples of three channels, some of which hold a constant, large and small values, and no number."""
    x = (np.random.default_rng(4).standard_normal((40, 3, 5, 4)) * 3 + 7).astype(dtype)
    x[3, 1], x[5, 2], x[6, 0] = 0.1, np.nan, 0.0
    x[7, 0, 0, 0], x[8, 2, 1, :2] = np.nan, (np.finfo(dtype).max, np.finfo(dtype).smallest_subnormal)
    return x


def find_deviation(values):
    exact = [Fraction(float(value)) for value in values if np.isfinite(value)]
    if not exact:
        return 0
    variance = sum(value * value for value in exact) / len(exact) - (sum(exact) / len(exact)) ** 2
    return Fraction(float(round_once(find_root(variance)))) if variance else 0


@pytest.mark.usefixtures("either_kernel")
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_deviations_of_samples_are_rounded_once(dtype, monkeypatch):
    x, asked = make(dtype), []
    exact_sums = module.ExactSums
    monkeypatch.setattr(module, "ExactSums", lambda *sums: asked.append(1) or exact_sums(*sums))
    sums = module.gather(make_plan(Request("bn"), x.shape, x.dtype), x, Effort(threads=1, block=300))
    integers, exponent = sums.deviation.integers()
    for channel, found in enumerate(integers):
        assert found * Fraction(2) ** exponent == sum(find_deviation(x[n, channel].ravel()) for n in range(40))
    assert len(asked) < 5
    assert sums.images.tolist() == [40, 40, 39]
