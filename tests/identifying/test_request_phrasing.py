"""What is said beside the norm that was asked for: what y has otherwise, and what makes both agree."""

from __future__ import annotations

import numpy as np
import pytest

from normcli import check, normalize
from normcli.checking.tally import Comparison
from normcli.checking.ulp import choose_tolerance
from normcli.identifying.words.request_phrasing import diagnose_request
from normcli.identifying.words.suggestion import suggest_option
from normcli.norms.plan import make_plan
from normcli.norms.request import Request
from normcli.norms.rules import AxesRule
from normcli.norms.table import NORMS
from normcli.numerics.statistics.solution import Given
from tests.identifying.diagnoses import CLAIM, FOUND, X, find, reproduce
from tests.marks import slowly

EXACT = "every value is the exact one, rounded"
ANNOTATED = FOUND._replace(
    eps=1e-6, eps_range=(9e-7, 1.1e-6), eps_mode="outside", ddof=1, like=("annotated-transformer",)
)


def ask(*matches, norm="ln", given=None, options=(), **found):
    plan = make_plan(Request(norm, layout="NLC", **dict(options)), X.shape, X.dtype)
    return diagnose_request(plan, find(*matches, **found), given)


def test_the_difference_is_the_cause_and_a_framework_the_remedy():
    told = ask(ANNOTATED)
    assert told.cause == "ln differs: eps is 1e-06 outside the root, ddof is 1 (as annotated-transformer)"
    assert told.evidence == (f"with both, {EXACT}",)
    assert told.remedy == "normcli ln … --like annotated-transformer"
    told = ask(ANNOTATED._replace(like=(), ddof=0))
    assert told.cause == "ln differs: eps is 1e-06 outside the root, not 1e-05"


def test_many_differences_are_said_as_far_as_there_is_room():
    told = ask(ANNOTATED._replace(axes=(1, 2), like=(), order=(0, 2, 1)), gamma=np.ones(5), beta=np.ones(5))
    assert told.cause == "ln differs: axes are l c, eps is 1e-06 outside the root, ddof is 1"
    assert told.evidence[:2] == ("axes are l c, not c", "eps is 1e-06 outside the root, not 1e-05")
    assert told.evidence[-1] == f"with all of these, {EXACT}"
    assert told.remedy is None


def test_the_norm_that_was_asked_for_is_named_if_one_of_its_requests_fits():
    bn = FOUND._replace(norm="bn", axes=(0, 1))
    assert ask(bn, FOUND._replace(axes=(0, 1))).cause == "ln differs: axes are n l, not c"
    said = "ln differs: y is root mean square normalization over c"
    assert ask(FOUND._replace(norm="rms")).cause.startswith(said)


def test_of_several_the_nearest_request_is_named_and_others_fit_as_well():
    other = ANNOTATED._replace(like=())
    told = ask(other, FOUND._replace(ddof=1))
    assert told.cause == "ln differs: ddof is 1, not 0"
    assert told.alternatives == ("eps is 1e-06 outside the root; ddof is 1",)
    assert told.next_step == "normcli identify … --suggest"
    assert ask(FOUND._replace(ddof=1), FOUND._replace(ddof=1, norm="gn", groups=1)).alternatives == ()


@pytest.mark.parametrize(("share", "words"), [(0.8, ANNOTATED), (0.9, FOUND)])
def test_a_request_that_alone_gives_every_value_is_named_though_it_is_not_the_nearest(share, words):
    told = ask(FOUND._replace(ddof=1, equal=share), ANNOTATED._replace(like=()))
    both = "ln differs: eps is 1e-06 outside the root, not 1e-05; ddof is 1, not 0"
    assert told.cause == (both if words is ANNOTATED else "ln differs: ddof is 1, not 0")


def test_a_tolerance_below_the_roundings_of_a_kernel_is_said_so():
    told = ask(FOUND._replace(equal=0.5), reproductions=(reproduce("two-pass:float32"),))
    assert told.cause == "ln differs by rounding alone"
    assert told.evidence[0].startswith("two-pass:float32 gives every bit")
    assert told.remedy is None


@pytest.mark.parametrize(
    "norm", [norm.name for norm in NORMS.values() if norm.centre.statistic and norm.axes is AxesRule.FIRST]
)
def test_a_table_may_be_scaled_by_the_statistics_of_another(norm):
    train, x = np.random.default_rng(3).normal([1.0, 5.0, 9.0], [1.0, 2.0, 3.0], (2, 50, 3))
    y = normalize(np.concatenate([train, x]), norm).normalized[50:]
    told = check(y, x, norm).diagnosis
    assert "a scaler fitted elsewhere" in told.alternatives, told


def test_a_fault_is_said_behind_the_norm():
    told = diagnose_request(make_plan(Request("ln"), X.shape, X.dtype), find(claims=(CLAIM,)))
    assert told.cause == "ln differs: the variance counts 4 padded zeros"
    assert (told.fault, told.remedy) == ("stats-padded-variance", CLAIM.fault.remedy)
    assert ask(unchanged=57).cause == "ln differs: y is the input, except for 3 of 60 values"


def test_statistics_of_the_batch_in_place_of_running_ones():
    given = Given(np.zeros(5), np.ones(5))
    told = ask(FOUND._replace(norm="bn", axes=(0, 1)), norm="bn", given=given)
    assert told.cause == "bn differs: statistics are this tensor's own, not the running ones"
    assert told.remedy == "normcli bn … without --eval"


PLAIN = [name for name, norm in NORMS.items() if norm.rows is None and norm.axes is not AxesRule.CHANNEL_WINDOW]


@pytest.mark.slow
@pytest.mark.parametrize("norm", [PLAIN[0], *slowly(PLAIN[1:])])
def test_a_wrong_value_of_the_norm_that_was_asked_for_is_named(norm):
    x, options = np.random.default_rng(0).normal(0.7, 2.0, (4, 6, 20)).astype("f4"), {}
    if NORMS[norm].axes is AxesRule.CHANNEL_GROUPS:
        options = {"groups": 2}
    y = normalize(x, norm, **options).normalized.copy()
    y[2, 3, 4] += 1.0
    told = check(y, x, norm, **options).diagnosis
    assert told.cause == f"{norm} differs: y is right, except for n=2, c=3, l=4"


@pytest.mark.slow
def test_what_was_asked_of_gamma_is_no_evidence_of_rounding():
    ml_dtypes = pytest.importorskip("ml_dtypes")
    rng = np.random.default_rng(0)
    half = ml_dtypes.bfloat16
    x = (rng.normal(size=(16, 512)) * 3 + 1).astype(half)
    gamma, beta = (rng.normal(one, 0.1, 512).astype(half) for one in (1, 0))
    centred = (x - x.mean(1, keepdims=True, dtype="f4").astype(half)).astype(half)
    var = (centred.astype("f4") ** 2).mean(1, keepdims=True).astype(half)
    y = centred * (1 / np.sqrt(var.astype("f4") + 1e-5)).astype(half) * gamma + beta
    told = check(y, x, "ln", gamma=gamma, beta=beta).diagnosis
    assert told.cause == "ln may differ by rounding in bfloat16 alone"
    assert [line.partition(" % ")[2] for line in told.evidence] == ["of the values are the exact ones, rounded"]


@pytest.mark.parametrize(
    ("actual", "expected", "given", "option"),
    [
        pytest.param([1.5], [1.0], {"rtol": 0.1, "atol": 0.01}, "--rtol 0.49", id="that grows less"),
        pytest.param([1.5], [1.0], {"rtol": 0.01, "atol": 0.1}, "--atol 0.49", id="either"),
        pytest.param([0.5], [0.0], {"rtol": 0.5, "atol": 0.0}, "--atol 0.5", id="the one that can pass"),
        pytest.param(
            [2.5], [1.0], {"rtol": 0.1, "atol": 0.01}, "--atol 1.4", id="no rtol with which zeros pass"
        ),
        pytest.param([1.0 + 2.0**-22], [1.0], {"max_ulp": 1.0}, "--max-ulp 2", id="in units"),
        pytest.param([np.nan], [1.0], {"max_ulp": 1.0}, None, id="none of NaN"),
        pytest.param([1.0], [1.0], {}, None, id="none of what agrees"),
    ],
)
def test_the_option_that_lets_pass_is_suggested(actual, expected, given, option):
    found = Comparison(choose_tolerance(np.dtype("f4"), **given))
    found.compare_all(np.array(actual), np.array(expected))
    assert suggest_option(found) == option


def test_an_eps_outside_the_root_that_alone_gives_every_bit_is_the_cause():
    x = (np.random.default_rng(31).standard_normal((2, 5, 48)) + 100).astype("f4")
    d = x - x.mean(-1, keepdims=True)
    y = d / (np.sqrt((d * d).sum(-1, keepdims=True) / np.float32(48)) + np.float32(1e-3))
    told = check(y, x, "ln", layout="BND").diagnosis
    assert told.cause == "ln differs: eps is 0.001 outside the root, not 1e-05"
    assert told.evidence[0].startswith("with that, pairwise:float32:divided")
    assert told.fault == "stats-eps-outside"


@pytest.mark.slow
def test_a_map_of_each_channel_is_no_cause_where_y_is_within_few_ulp():
    x = (np.random.default_rng(7).standard_normal((2, 4, 4, 16)) + 100).astype("f2")
    wide = x.astype("f4").reshape(2, 16, 4, 4)
    mean = wide.mean((1, 3), keepdims=True)
    square = (wide * wide).mean((1, 3), keepdims=True) - mean * mean
    y = ((wide - mean) / np.sqrt(square + np.float32(1e-5))).reshape(x.shape).astype("f2")
    told = check(y, x, "gn", groups=4, layout="NHWC").diagnosis
    assert told.cause == "gn may differ by rounding in float16 alone"
    assert told.alternatives == ()
