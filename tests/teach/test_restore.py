"""Whether gamma and beta undo a norm: for every norm that has them, and why or why not."""

from __future__ import annotations

import numpy as np
import pytest

from normcli.norms.divisors import DEVIATION, LENGTH, RANGE, ROOT_MEAN_SQUARE
from normcli.norms.plan import make_plan
from normcli.norms.request import Request
from normcli.norms.rules import Centre
from normcli.norms.table import NORMS
from normcli.results.calculate import calculate
from normcli.teach import restore as restoring
from normcli.teach.restore import find_shrinkage, measure_closeness
from tests.conftest import plan_request, pose
from tests.strategies import options_for

SHAPE = (3, 4, 2, 3)
ABLE = [row.name for row in NORMS.values() if row.parameter_names]
ALIGNED = {"bn", "ws", "wn"}


def draw(shape=SHAPE, seed=0):
    return np.random.default_rng(seed).normal(1, 2, shape)


def restore(request, x, **options):
    return restoring.restore(pose(plan_request(request, x), x), **options)


@pytest.mark.parametrize("name", ABLE)
def test_a_norm_is_undone_where_its_parameters_run_along_its_statistics(name):
    attempt = restore(Request(name, **options_for(name, SHAPE)), draw())
    assert attempt.recovered == attempt.aligned == (name in ALIGNED)


@pytest.mark.parametrize("name", ABLE)
def test_gamma_and_beta_are_measured_over_the_axes_that_they_do_not_vary_along(name):
    x, norm = draw(), NORMS[name]
    attempt = restore(Request(name, **options_for(name, SHAPE)), x)
    plan = attempt.result.plan
    over = tuple(axis for axis in range(x.ndim) if axis not in plan.parameters.axes)
    gamma = {
        DEVIATION: lambda: x.std(axis=over),
        ROOT_MEAN_SQUARE: lambda: np.sqrt((x * x).mean(axis=over)),
        LENGTH: lambda: np.sqrt((x * x).sum(axis=over)),
        RANGE: lambda: np.ptp(x, axis=over),
    }[norm.divisor]()
    beta = {
        Centre.NOTHING: lambda: np.zeros(plan.parameters.shape),
        Centre.MEAN: lambda: x.mean(axis=over),
        Centre.MINIMUM: lambda: x.min(axis=over),
    }[norm.centre]()
    np.testing.assert_allclose(attempt.result.gamma, gamma, rtol=1e-13)
    if norm.takes_beta:
        np.testing.assert_allclose(attempt.result.beta, beta, rtol=1e-12)
    plain = calculate(plan_request(Request(name, **options_for(name, SHAPE)), x), x).normalized
    np.testing.assert_array_equal(attempt.result.standardized, plain)


@pytest.mark.all_quick
@pytest.mark.parametrize(
    ("request_", "x", "recovered", "why"),
    [
        pytest.param(Request("bn"), draw(), True, r"each c has statistics and a gamma and beta of its own: .*own std and mean back; eps 1e-05 moves each value toward the mean by at most eps/\(2 var\) = 2.3e-06 of its distance, which", id="bn"),
        pytest.param(Request("ln"), draw((3, 4)), False, "each n has statistics of its own, and each c has a gamma and beta of its own: the same gamma and beta serve every n, whose statistics differ", id="ln"),
        pytest.param(Request("gn", groups=2), draw((1, 4, 3)), False, "a group has one divisor for all of its values, but a gamma for each c", id="gn of one sample"),
        pytest.param(Request("bn"), draw((9,)), True, "there is one group, and one gamma for it: ", id="one group"),
        pytest.param(Request("bn", eps=0.0), draw(), True, "without eps, only rounding is left", id="no eps"),
        pytest.param(Request("bn", eps=0.5), draw(), False, r"but eps 0.5 moves the values of group c=\d toward the mean by 0.0\d+ of", id="a large eps"),
        pytest.param(Request("bn", eps=0.01, eps_mode="outside"), draw(), False, r"eps/std = 0.00\d+ of their distance", id="eps outside"),
        pytest.param(Request("bn"), draw() * 1e-5, False, r"but eps 1e-05 moves the values of group c=\d toward the mean by 0.99 of their distance, more than", id="eps beside a small variance"),
        pytest.param(Request("bn"), draw((3, 2)) * [1, 1e-5], True, "of group c=1 toward the mean by 1 of their distance, which the tolerances allow because they are wide", id="a small column beside a large one"),
        pytest.param(Request("minmax"), draw((5, 3)), True, "each c has statistics and a gamma and beta of its own: each group gets its own range and min back; without eps, only rounding", id="minmax"),
        pytest.param(Request("bn", dtype="float16"), draw(), False, "rounding the output to float16 moves them further than", id="rounding"),
        pytest.param(Request("wn"), draw((3, 4)), True, "each group is multiplied by what it was divided by", id="wn"),
        pytest.param(Request("rms", axes=(0, 1)), draw((3, 4)), False, "all values share statistics, and each n c has a gamma and beta of its own", id="rms"),
        pytest.param(Request("ln"), draw((1, 4)), True, "gamma is 0 and beta the value itself", id="one sample"),
        pytest.param(Request("bn"), np.full((3, 2), 7.0), True, "every group is constant, and its value is its mean", id="constant"),
        pytest.param(Request("bn"), np.array([[1, np.nan], [2, 3]]), False, "not finite", id="nan"),
        pytest.param(Request("bn", ddof=2), draw((2, 3)), False, "the statistics are not finite", id="no variance"),
        pytest.param(Request("bn"), np.zeros((0, 3)), True, "there are no values", id="empty"),
        pytest.param(Request("gn", groups=2, like="onnx-18"), draw((1, 4, 3)), True, "each g has statistics and a gamma and beta of its own", id="a gamma for each group"),
    ],
)  # fmt: skip
def test_why(request_, x, recovered, why):
    import re

    attempt = restore(request_, x)
    assert attempt.recovered == recovered
    assert re.search(why, attempt.why), attempt.why


@pytest.mark.parametrize(("mode", "size"), [("inside", 0.3), ("inside", 1e-200), ("outside", 0.3)])
def test_what_eps_takes(mode, size):
    plan = make_plan(Request("bn", eps=1e-3, eps_mode=mode), (3, 4), np.dtype("f8"))
    root = np.sqrt(size**2 + 1e-3) if mode == "inside" else size + 1e-3
    np.testing.assert_allclose(find_shrinkage(plan, size), 1 - size / root, rtol=1e-12)


def test_closeness_is_that_of_isclose():
    rng = np.random.default_rng(3)
    x = rng.normal(size=(40, 50))
    y = x + rng.normal(size=x.shape) * 1e-4
    y[3, 4], y[5, 6], x[5, 6] = np.nan, np.inf, np.inf
    found = measure_closeness(y, x, 1e-4, 1e-4)
    assert found.different == (~np.isclose(y, x, rtol=1e-4, atol=1e-4)).sum()
    assert (found.compared, found.place) == (2000, (3, 4))
    assert np.isnan(found.max_abs)
    y[3, 4] = x[3, 4] + 3
    found = measure_closeness(y, x, 1e-4, 1e-4)
    assert (found.max_abs, found.place) == (pytest.approx(3), (3, 4))


@pytest.mark.parametrize("size", [1e-9, 1e-5, 1e-3])
def test_the_default_atol_is_of_the_size_of_the_values(size, rng):
    x = rng.normal(size=(50, 4)) * size
    attempt = restore(Request("bn"), x)
    assert attempt.scaled
    assert attempt.atol == pytest.approx(1e-4 * np.abs(x).max(), rel=1e-15)
    assert not attempt.recovered
    assert attempt.closeness.different > 190
    assert restore(Request("bn", eps=0.0), x).recovered
    given = restore(Request("bn"), x, atol=1e-4)
    assert not given.scaled
    assert given.atol == 1e-4


def test_the_group_that_is_blamed_holds_a_value_that_is_not_tolerated():
    x = np.array([[1e-6, 0.1], [-1e-6, -0.1], [2e-6, 0.2]])
    attempt = restore(Request("bn"), x, atol=1e-5)
    gaps = np.abs(attempt.result.normalized - x) - 1e-5 - 1e-4 * np.abs(x)
    assert (gaps > 0).any(axis=0).tolist() == [False, True]
    assert attempt.closeness.worst == np.unravel_index(gaps.argmax(), x.shape)
    assert "moves the values of group c=1 toward the mean by eps/(2 var) = 0.0003" in attempt.why
