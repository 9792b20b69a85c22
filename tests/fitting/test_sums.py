"""What exact sums amount to."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from normcli.fitting import sums as module
from normcli.fitting.sums import Sums, solve_sums
from normcli.norms.plan import make_plan
from normcli.norms.request import Request
from normcli.numerics.rational import round_once


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
