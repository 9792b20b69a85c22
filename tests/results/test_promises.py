from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from normcli import normalize
from normcli.engine.inputs import COUNT
from normcli.results.promises import _combine, check_promises


@pytest.mark.parametrize(
    ("norm", "change", "quantity"),
    [
        pytest.param("bn", lambda y: y + 1e-6, "mean", id="shifted"),
        pytest.param("bn", lambda y: y * 1.000001, "var", id="scaled"),
        pytest.param("rms", lambda y: y * 1.000001, "ms", id="scaled, rms"),
        pytest.param("lp", lambda y: y * 1.000001, "norm", id="scaled, lp"),
        pytest.param("minmax", lambda y: y * 1.000001, "max", id="scaled, minmax"),
        pytest.param("robust", lambda y: y * 1.000001, "iqr", id="scaled, robust"),
        pytest.param("robust", lambda y: y + 1e-6, "median", id="shifted, robust"),
    ],
)
def test_a_changed_tensor_is_caught(norm, change, quantity, rng):
    result = normalize(rng.normal(size=(50, 8)), norm)
    failed = [c for c in check_promises(result.plan, result.statistics, change(result.normalized)) if not c.ok]
    assert [check.quantity for check in failed] == [quantity]


@pytest.mark.parametrize("change", [1e-9, np.nan])
def test_one_changed_group_is_caught(change, rng):
    result = normalize(rng.normal(size=(50, 8)), "bn")
    changed = result.normalized.copy()
    changed[7, 3] += change
    assert not all(check.ok for check in check_promises(result.plan, result.statistics, changed))


def test_eps_and_constant_groups_are_predicted():
    result = normalize([[1.0, 1.0], [-1.0, 1.0]], "bn", eps=1.0)
    _, variance = result.check
    assert variance.ok
    assert (variance.lowest, variance.highest) == (0.0, pytest.approx(0.5))


def test_the_check_is_of_the_values_before_gamma_and_beta(rng):
    x = rng.normal(size=(50, 8))
    plain, scaled = normalize(x, "bn"), normalize(x, "bn", gamma=5.0, beta=3.0)
    assert plain.check == scaled.check


def test_a_tensor_of_which_no_group_is_finite_passes_no_check():
    assert not any(check.ok for check in normalize([[float("nan"), 1.0]], "ln").check)


def test_norms_that_promise_nothing_have_no_check():
    assert normalize(np.ones((1, 2, 3)), "lrn").check == ()
    assert normalize([[1.0, 2.0]], "lp", p=0).check == ()
    assert normalize(np.zeros((0, 3)), "bn").check == ()


def test_quartiles_of_groups_do_not_make_those_of_all():
    assert all(np.isnan(check.overall) for check in normalize(np.arange(10.0), "robust").check)


@pytest.mark.parametrize("norm", ["bn", "minmax", "robust"])
def test_groups_that_are_not_finite_are_left_out(norm):
    checks = normalize([[1.0, np.nan, np.inf], [2.0, 1.0, 2.0], [3.0, 1.0, np.inf]], norm).check
    assert all(check.ok for check in checks)
    assert np.isfinite([check.lowest for check in checks]).all()


@pytest.mark.parametrize("counts", [pytest.param(None, id="of one size"), pytest.param([5, 3, 7], id="masked")])
def test_moments_of_all_groups_follow_exactly_from_those_of_each(counts, rng):
    plan = normalize(np.ones((3, 7)), "ln", ddof=1).plan
    measured = {"mean": rng.normal(size=3) * 1e-9, "var": rng.uniform(0.9, 1.1, 3)}
    if counts is not None:
        measured[COUNT] = np.array(counts, dtype=np.float64)
    n = counts or [7, 7, 7]
    mean, var = ([Fraction(value) for value in measured[name].tolist()] for name in ("mean", "var"))
    overall = sum(a * m for a, m in zip(n, mean, strict=True)) / sum(n)
    spread = sum((a - 1) * v + a * (m - overall) ** 2 for a, v, m in zip(n, var, mean, strict=True)) / sum(n)
    assert _combine(plan, measured) == {"mean": float(overall), "var": float(spread)}
