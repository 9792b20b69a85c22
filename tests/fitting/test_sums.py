"""What exact sums amount to."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from normcli.fitting import sums as module
from normcli.fitting.sums import Sums, solve_sums
from normcli.norms.plan import make_plan
from normcli.norms.request import Request
from normcli.numerics.rational import find_root, round_once


def make_sums(x):
    """Return the sums of values of 24 bits, whose squares are doubles, a row for each group."""
    total = Sums.zeros(len(x))
    total.total.add(np.arange(len(x)), x)
    total.square.add(np.arange(len(x)), x * x)
    total.count += x.shape[1]
    total.low, total.high = (
        pair._replace(hi=end) for pair, end in ((total.low, x.min(1)), (total.high, x.max(1)))
    )
    return total


@pytest.mark.parametrize("far", [0.0, 1e6, -3e-5])
def test_many_groups_are_rounded_together_as_integers_would_be(far, monkeypatch):
    x = (far + np.random.default_rng(0).standard_normal((500, 6))).astype(np.float32).astype(np.float64)
    asked = []
    exact_sums = module.ExactSums
    monkeypatch.setattr(module, "ExactSums", lambda *sums: asked.append(1) or exact_sums(*sums))
    plan = make_plan(Request("zscore"), (6, 500), np.dtype("f8"))
    moments = solve_sums(plan, make_sums(x), omits_nan=True, images=False).moments
    assert not moments.undecided.any()
    assert not asked
    for row, *mean in zip(x, *moments.mean, strict=True):
        exact = sum(map(Fraction, row)) / 6
        assert mean[0] == round_once(exact)
        assert mean[1] == round_once(exact - Fraction(mean[0]))


def test_groups_beyond_doubles_are_asked_for_one_by_one():
    x = np.array([[1.0, 2.0, 4.0], [2.0**-500, 2.0**-499, 0.0], [2.0**480, 2.0**481, 2.0**400]])
    plan = make_plan(Request("zscore"), (3, 3), np.dtype("f8"))
    moments = solve_sums(plan, make_sums(x), omits_nan=True, images=False).moments
    assert moments.undecided.tolist() == [False, True, True]
    assert [moments.recall(group).mean() for group in (1, 2)] == [sum(map(Fraction, row)) / 3 for row in x[1:]]


def test_deviations_are_rounded_once_and_rarely_calculated_as_integers(monkeypatch):
    x = np.random.default_rng(1).standard_normal((300, 6)).astype(np.float32).astype(np.float64)
    x[0], x[1] = 0.1, [3, 3, 3, 3, 3, 3]
    asked = []
    exact_sums = module.ExactSums
    monkeypatch.setattr(module, "ExactSums", lambda *sums: asked.append(1) or exact_sums(*sums))
    sums = make_sums(x.astype(np.float32).astype(np.float64))
    sums.count[2] = 0
    found = module.find_deviations(sums.total, sums.square, sums.count.astype(np.float64))
    assert len(asked) < 5
    for row, deviation in zip(np.delete(x, 2, axis=0), np.delete(found, 2), strict=True):
        values = [Fraction(float(np.float32(value))) for value in row]
        variance = sum(value * value for value in values) / 6 - (sum(values) / 6) ** 2
        assert deviation == round_once(find_root(variance))
    assert found[2] == 0.0
