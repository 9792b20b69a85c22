"""What the doctor finds, against loops over single numbers."""

from __future__ import annotations

import math

import numpy as np
import pytest

from normcli import normalize
from normcli.algorithms.moment_formulas import RowMoments
from normcli.algorithms.row_computation import parse_computation
from normcli.algorithms.row_formula import RowFormula
from normcli.checking.ulp import measure_distance
from normcli.doctor.doctor import examine, find_lost, locate_overflow, require_summed_statistics
from normcli.dtypes import find_type
from normcli.engine.inputs import Inputs
from normcli.engine.walk import Effort
from normcli.errors import UsageError
from normcli.norms.plan import make_plan
from normcli.norms.request import Request
from normcli.results.arguments import read_arguments
from tests.conftest import pose
from tests.marks import costly

HALF = np.dtype(np.float16)


def draw(seed=0):
    """Rows of which the third is far from zero, and the last constant."""
    x = np.random.default_rng(seed).normal(0.0, 1.0, (6, 40)).astype(np.float32)
    x[2] += 3000.0
    x[5] = 7.0
    return x


def plan_norm(name, x, **options):
    return make_plan(Request(name, **options), x.shape, x.dtype)


def calculate_one_by_one(row, dtype, eps=1e-5):
    """LayerNorm of a row, E[x²] − E[x]² in one pass, with one number at a time."""
    one = find_type(dtype) if dtype == "bfloat16" else np.dtype(dtype).type
    total = squares = one(0)
    for value in map(one, row):
        total, squares = one(total + value), one(squares + one(value * value))
    mean = one(total / one(len(row)))
    variance = one(one(squares / one(len(row))) - one(mean * mean))
    with np.errstate(all="ignore"):
        inverse = one(one(1) / one(np.sqrt(one(variance + one(eps)))))
    return variance, [one(one(one(value) - mean) * inverse) for value in row]


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32"])
def test_distances_and_lost_variances_are_counted(dtype):
    x = draw()
    found = examine(pose(plan_norm("ln", x, dtype="float16"), x))
    finding = found.find(parse_computation(f"one-pass:{dtype}"))
    half = x.astype(np.float16)
    with np.errstate(all="ignore"):
        rows = [calculate_one_by_one(row, dtype) for row in half]
        actual = np.array([[float(v) for v in row] for _, row in rows]).astype(np.float16)
    expected = normalize(half, "ln", dtype="float64").normalized
    error, ulp = measure_distance(actual.astype(np.float64), expected, HALF)
    assert finding.distances.mismatches == np.count_nonzero(~(error <= 1e-5 + 1e-3 * np.abs(expected)))
    assert finding.distances.ulp.largest == ulp.max()
    assert math.isclose(finding.distances.ulp.median, float(np.median(ulp)), rel_tol=0.2)
    assert finding.negative.count == sum(bool(variance < 0) for variance, _ in rows)
    assert finding.distances.excess.place == 2
    assert not finding.is_safe


@pytest.mark.parametrize("norm", ["ln", "rms", "l2"])
@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64"])
def test_float64_sums_of_easy_data_are_safe_in_every_dtype(norm, dtype):
    x = np.random.default_rng(1).normal(0.5, 1.0, (8, 64)).astype(find_type(dtype))
    found = examine(pose(plan_norm(norm, x), x))
    assert found.tolerance.dtype.name == dtype
    finding = found.find(parse_computation("pairwise:float64"))
    assert finding.is_safe
    if dtype != "float64":
        assert finding.distances.ulp.largest <= 0.51


@pytest.mark.slow
@costly
@pytest.mark.parametrize(("block", "threads"), [(40, 1), (100, 3), (1 << 20, 1)])
def test_nothing_depends_on_how_the_tensor_is_cut(block, threads, monkeypatch):
    monkeypatch.setattr("normcli.doctor.doctor.PIECE", 80)
    monkeypatch.setattr("normcli.doctor.doctor.MOST_VALUES", block)
    x = draw().reshape(2, 3, 40)
    gamma = np.linspace(0.5, 2.0, 40, dtype=np.float32)
    plan = plan_norm("ln", x, dtype="float16")
    whole, cut = (
        examine(pose(plan, x, Inputs(gamma=gamma))._replace(effort=effort))
        for effort in (Effort(1), Effort(threads, block=block))
    )
    assert summarize(cut) == summarize(whole)
    names = [finding.computation.name for finding in whole.findings]
    assert "two-pass:float32:before-gamma" in names


def summarize(found):
    def read(one):
        return one.largest, one.place, one.median

    findings = [
        (f.computation.name, read(f.distances.ulp), read(f.distances.excess), f.distances.mismatches,
         (f.negative, f.zero, f.overflow))
        for f in found.findings
    ]  # fmt: skip
    return findings, {name: read(one) for name, one in found.conditions.items()}, found.judged, found.faint


def test_groups_of_other_norms_are_theirs():
    x = draw().reshape(2, 3, 40)
    found = examine(pose(plan_norm("bn", x, dtype="float16"), x))
    means = x.astype(HALF).astype(np.float64).mean((0, 2))
    variances = x.astype(HALF).astype(np.float64).var((0, 2))
    assert found.judged == 3
    condition = found.conditions["mean²/var"]
    assert condition.place == int(np.argmax(means**2 / variances))
    assert math.isclose(condition.largest, float(np.max(means**2 / variances)), rel_tol=1e-9)


CENTRES = RowFormula.of(plan_norm("ln", draw()))


@pytest.mark.parametrize(
    ("name", "values", "place"),
    [
        pytest.param("two-pass:float16", [3000.0] * 64, 21, id="a sum"),  # 22 of them are beyond 65504
        pytest.param("tree:float16", [3000.0] * 64, None, id="a sum in no order"),
        pytest.param("two-pass:float32", [3000.0] * 64, None, id="none"),
        pytest.param("one-pass:float16", [1.0, 2.0, 300.0, 1.0], 2, id="a square"),
    ],
)
def test_where_a_sum_overflows_is_said(name, values, place):
    accumulation = parse_computation(name).accumulation
    assert locate_overflow(accumulation, accumulation.widen(np.array([values], np.float16)), CENTRES) == place


def test_values_beyond_the_dtype_make_nothing_safe():
    x = np.array([[1.0, 2.0, 1e5], [1.0, 2.0, 4.0]], np.float32)
    found = examine(pose(plan_norm("ln", x, dtype="float16"), x))
    assert (found.beyond, found.judged, found.cheapest) == (1, 1, None)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("onepass:float32", "did you mean one-pass"),
        ("welfrod:float32", "did you mean welford"),
        ("two-pass:float8", "did you mean"),
        ("two-pass:float32:twice", "there is no cast order"),
        ("two-pass", "ALGORITHM:DTYPE"),
    ],
)
def test_unknown_names_are_refused_with_what_is_similar(text, words):
    with pytest.raises(UsageError, match=words):
        parse_computation(text)


def test_values_that_do_not_count_are_as_if_they_were_not_there():
    """Groups of 5, 3 and no values, between which lie an infinity, a NaN and what would overflow."""
    x = np.array([[1.0, 2, 3, 4, 6], [300, 301, 302, 0, 0]], np.float16)
    holey = np.full((3, 8), np.inf, np.float16)
    mask = np.zeros((3, 8), bool)
    holey[0, 1:6], mask[0, 1:6] = x[0], True
    holey[1, [0, 3, 7]], mask[1, [0, 3, 7]] = x[1, :3], True
    holey[1, 5], mask[1, 5] = np.nan, True
    found = examine(
        read_arguments(holey, "ln", {"mask": mask, "nan": "omit", "gamma": np.arange(1.0, 9.0)}), 1.0
    )
    parts = [(x[:1], np.arange(2.0, 7.0)), (x[1:, :3], np.array([1.0, 4.0, 8.0]))]
    alone = [examine(read_arguments(values, "ln", {"gamma": gamma}), 1.0) for values, gamma in parts]
    assert (found.judged, found.beyond, found.conditions["max |x|"].largest) == (2, 0, 302.0)
    for finding, *each in zip(found.findings, *(one.findings for one in alone), strict=True):
        assert finding.distances.ulp.largest == max(one.distances.ulp.largest for one in each)
        assert finding.distances.mismatches == sum(one.distances.mismatches for one in each)
        assert finding.zero.count == sum(one.zero.count for one in each)


@pytest.mark.parametrize(
    ("norm", "options", "told"),
    [
        ("minmax", {}, "minmax adds nothing: its statistics are single values, exact in any precision"),
        ("zscore", {"no_mean": True}, "doctor examines whole norms; leave out no_mean and no_scale of zscore"),
        ("sn", {}, "doctor examines means and sums of squares of groups; sn takes a largest singular value"),
        ("lrn", {"size": 3}, "doctor examines means and sums of squares of groups; lrn takes those of windows"),
        ("lp", {"p": 3.0}, "doctor examines means and sums of squares of groups; lp with p 3 has others"),
    ],
)
def test_what_has_no_sums_of_groups_is_refused(norm, options, told):
    with pytest.raises(UsageError) as refused:
        require_summed_statistics(make_plan(Request(norm, **options), (3, 4), np.dtype("f4")))
    assert str(refused.value) == told
    for norm, options in (("lp", {"p": 2.0}), ("ln", {}), ("rms", {}), ("wn", {})):
        require_summed_statistics(make_plan(Request(norm, **options), (3, 4), np.dtype("f4")))


def test_lost_variances_are_those_below_0_and_those_of_0_where_values_differ():
    moments = RowMoments(np.zeros(5), np.array([-1.0, 0.0, 0.0, 1.0, -2.0]))
    negative, zero = find_lost(moments, np.array([True, True, False, True, True]))
    assert (negative.nonzero()[0].tolist(), zero.nonzero()[0].tolist()) == ([0, 4], [1])
