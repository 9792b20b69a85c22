"""Comparisons: what is wrong is found, where it is, whichever way the tensor is cut."""

from __future__ import annotations

import functools
import math

import numpy as np
import pytest

from normcli import NORMS, normalize
from normcli.answers.judging.distances import build_line
from normcli.checking.check import check
from normcli.checking.tally import Comparison
from normcli.checking.ulp import choose_tolerance
from normcli.engine.walk import Effort
from normcli.errors import DataError, UsageError
from normcli.norms.plan import make_plan
from normcli.norms.request import Request
from normcli.results.given_inputs import fit_inputs
from tests.conftest import pose
from tests.strategies import options_for

SHAPE = (4, 6, 5, 7)


@pytest.fixture
def x(rng):
    return rng.normal(size=SHAPE).astype("f4")


def plan_of(norm, shape=SHAPE, **options):
    return make_plan(Request(norm, **(options_for(norm, shape) | options)), shape, np.dtype("f8"))


def compare(plan, x, y, *, effort=None, **options):
    limits = {k: options.pop(k) for k in ("rtol", "atol", "max_ulp") if k in options}
    inputs = fit_inputs(plan, x, options)
    problem = pose(plan, x, inputs)._replace(effort=effort or Effort())
    checked = check(problem, {"normalized": y}, functools.partial(choose_tolerance, **limits))
    return checked.comparisons["normalized"]


@pytest.mark.parametrize("norm", NORMS)
def test_one_corrupted_value_is_found_with_its_place_and_group(norm, x):
    plan = plan_of(norm)
    y = normalize(x, norm, **options_for(norm, SHAPE)).normalized.copy()
    y[2, 3, 1, 4] += 0.01
    found = compare(plan, x, y)
    place = int(np.ravel_multi_index((2, 3, 1, 4), SHAPE))
    assert (found.ok, found.mismatches, found.worst.place) == (False, 1, place)
    if plan.spec.window is None:
        group = int(plan.grid.locate_groups([np.array(i) for i in (2, 3, 1, 4)]))
        assert [(g.group, g.mismatches) for g in found.groups] == [(group, 1)]


@pytest.mark.parametrize("norm", ["bn", "ln", "lrn", "zscore"])
@pytest.mark.parametrize("effort", [Effort(1), Effort(3, block=50, whole=20), Effort(2, block=1)], ids=str)
def test_nothing_depends_on_threads_and_tiles(norm, effort, x, rng):
    y = normalize(x, norm).normalized.astype("f8") * (1 + rng.normal(size=SHAPE) * 1e-6)
    y[0, 1], y[3, 2, 1, 1] = np.nan, np.inf
    plain, cut = (compare(plan_of(norm), x, y, effort=how) for how in (Effort(), effort))
    assert repr(cut.worst) == repr(plain.worst)  # NaN and all
    assert cut.histogram == plain.histogram
    assert (cut.max_abs, cut.mismatches) == (plain.max_abs, plain.mismatches)
    assert list(cut.groups or ()) == list(plain.groups or ())


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("norm", ["bn", "gn", "lrn", "zscore"])
def test_files_as_memory(norm, order, x, tmp_path, monkeypatch):
    monkeypatch.setattr("normcli.tensors.spool.SMALLEST_SCRATCH", 1)
    y = normalize(x, norm, **options_for(norm, SHAPE)).normalized.copy()
    y[1, 2] += 0.1
    plain = compare(plan_of(norm), x, y)
    np.save(tmp_path / "x.npy", x)
    np.save(tmp_path / "y.npy", np.asarray(y, order=order))
    mapped = [np.load(tmp_path / f"{name}.npy", mmap_mode="r") for name in "xy"]
    found = compare(plan_of(norm), *mapped)
    assert (found.worst, found.histogram) == (plain.worst, plain.histogram)
    assert list(found.groups or ()) == list(plain.groups or ())


def test_nan_where_none_is_expected_is_a_difference_and_where_it_is_expected_none(x):
    x = x.copy()
    x[0, 0, 0, 0] = np.nan
    y = normalize(x, "ln").normalized.copy()
    assert compare(plan_of("ln"), x, y).ok
    y[1, 1, 1, 1] = np.nan
    found = compare(plan_of("ln"), x, y)
    assert found.worst.place == int(np.ravel_multi_index((1, 1, 1, 1), SHAPE))
    assert math.isnan(found.worst.actual)
    assert found.histogram[-1] == (math.inf, math.inf, 1)


def test_a_number_where_infinity_is_exact_is_a_difference():
    x, beta = np.array([[0.0, 0.0], [3.0, 5.0]]), np.array([np.inf, 0.0])
    y = normalize(x, "bn", beta=beta).normalized.copy()
    assert compare(plan_of("bn", (2, 2)), x, y, beta=beta).ok
    y[0, 0] = 1.5
    found = compare(plan_of("bn", (2, 2)), x, y, beta=beta)
    assert (found.mismatches, found.worst.place, found.max_abs) == (1, 0, math.inf)


@pytest.mark.parametrize("shape", [SHAPE[:2], (4, 6, 1, 1), (24,), (4, 6)])
@pytest.mark.parametrize("name", ["mean", "var", "std", "rstd"])
def test_statistics_alone_in_any_shape_that_is_theirs(name, shape, x):
    exact = getattr(normalize(x, "in"), name).astype("f4").reshape(shape)
    plan = plan_of("in")
    assert check(pose(plan, x), {name: exact}, tolerate=functools.partial(choose_tolerance, max_ulp=0.501)).ok
    exact.reshape(-1)[17] *= np.float32(1.001)
    found = check(pose(plan, x), {name: exact}).comparisons[name]
    assert [(g.group, g.mismatches) for g in found.groups] == [(17, 1)]
    assert found.worst.place == 17


@pytest.mark.parametrize(
    ("name", "shape"),
    [("normalized", (6, 4, 5, 7)), ("normalized", (4 * 6 * 5 * 7,)), ("mean", (6, 4)), ("mean", (4, 5))],
)
def test_other_shapes_are_refused_even_of_equal_size(name, shape, x):
    with pytest.raises(DataError, match=r"the shape is \("):
        check(pose(plan_of("in"), x), {name: np.zeros(shape)})


def test_what_a_norm_does_not_have(x):
    with pytest.raises(UsageError, match="rms has no mean; it has ms, rms, rstd"):
        check(pose(plan_of("rms"), x), {"mean": np.zeros(120)})
    with pytest.raises(UsageError, match="nothing to compare"):
        check(pose(plan_of("rms"), x), {})


def test_the_dtype_that_is_asked_for_counts(x):
    y = normalize(x, "ln").normalized.astype("f8")
    assert compare(plan_of("ln", dtype="float32"), x, y, max_ulp=0.501).ok
    assert not compare(plan_of("ln"), x, y, max_ulp=0.501).ok


@pytest.mark.parametrize(
    ("ulp", "bounds"),
    [(0.0, (0, 0.5)), (0.5, (0, 0.5)), (0.51, (0.5, 1)), (1.0, (0.5, 1)), (1.01, (1, 2)), (2.0, (1, 2)), (2.01, (2, 4))],
)  # fmt: skip
def test_the_bins_hold_their_upper_bound(ulp, bounds):
    found = Comparison(choose_tolerance(np.dtype("f2")))
    actual = np.array([1 + ulp * 2.0**-10])
    found.compare(actual, np.ones(1), 0)
    assert [part[:2] for part in found.histogram] == [bounds]


def test_what_is_expected_where_it_is_furthest_in_ulp():
    expected = np.array([1.0, 2.0**-20, 3.0, -(2.0**-30)])
    actual = expected + 2.0**-23
    parts = Comparison(choose_tolerance(np.dtype("f4")))
    for start in (2, 0, 3, 1):
        parts.compare(actual[start : start + 1], expected[start : start + 1], start)
    assert (parts.max_ulp, parts.max_ulp_expected, parts.is_near_zero) == (2.0**30, 2.0**-30, True)
    assert build_line("y", parts).facts[1] == "furthest 1.074e+09 ulp, at an exact value of 9.3e-10"
