"""What a match has otherwise than a request, in words, and the options that make them the same."""

from __future__ import annotations

import math

import numpy as np
import pytest

from normcli.identifying.models.matrix_model import Steps
from normcli.identifying.question import Question
from normcli.identifying.words.request_difference import find_own_command, find_remedy, list_other_choices
from normcli.norms.plan import make_plan
from normcli.norms.request import Request
from normcli.norms.rules import GroupOrder
from normcli.norms.spec import Window
from tests.identifying.diagnoses import FOUND

X = np.random.default_rng(0).normal(0.7, 2.0, (3, 4, 5, 6)).astype("f4")
LN = FOUND._replace(axes=(3,), order=(0, 1, 2, 3), like=())
NO_EPS = LN._replace(eps_range=(0.0, 0.0))
GN = LN._replace(norm="gn", axes=(1, 2, 3), groups=2, group_order=GroupOrder.CONTIGUOUS)
LP = LN._replace(norm="lp", p=2.0, eps_mode=None, eps_range=(0.0, 1.0))
LRN = LN._replace(norm="lrn", axes=(1,), window=Window(1, 1, 3, 3e-4, 0.75, 2.0, 3), eps_range=(0.0, 0.0))
TWO_STEPS = Steps("u", 2, 2, is_largest=False)
SN = LN._replace(norm="sn", axes=(0, 1, 2, 3), rows=(0,), eps_range=(0.0, 0.0))


def compare(match, norm="ln", gamma=None, beta=None, **options):
    """Return the differences in words, and the remedy; None where it is another norm."""
    asked = Question(X, X, gamma, beta, "NCHW")
    plan = make_plan(Request(norm, layout="NCHW", **options), X.shape, X.dtype)
    differences = list_other_choices(plan, match, asked)
    if differences is None:
        return None
    return [one.contrast for one in differences], find_remedy(plan, match, asked, differences)


@pytest.mark.all_quick
@pytest.mark.parametrize(
    ("match", "asked", "words", "options"),
    [
        pytest.param(LN._replace(eps=1e-6, eps_range=(9e-7, 1.1e-6)), {}, ["eps is 1e-06, not 1e-05"], "--eps 1e-06", id="eps"),
        pytest.param(LN, {"eps": 1.1e-5}, [], "", id="an eps that fits as well"),
        pytest.param(LN._replace(eps_range=(0.0, 2e-6)), {}, ["eps is at most 2e-06, not 1e-05"], "--eps 1e-05", id="no eps to be seen"),
        pytest.param(LN._replace(eps_mode="outside"), {}, ["eps is outside the root"], "--eps-mode outside", id="place"),
        pytest.param(LN._replace(eps_mode="outside", eps_range=(0.0, 1.0)), {}, [], "", id="a place that is not seen"),
        pytest.param(
            LN._replace(eps_mode="outside", eps=1e-6, eps_range=(1e-6, 1e-6)), {},
            ["eps is 1e-06 outside the root, not 1e-05"], "--eps 1e-06 --eps-mode outside", id="place and value",
        ),
        pytest.param(LN._replace(ddof=1), {}, ["ddof is 1, not 0"], "--ddof 1", id="ddof"),
        pytest.param(LN._replace(affine="estimated"), {"ddof": 1}, ["y has a fitted gamma and beta"], None, id="a fitted gamma hides ddof"),
        pytest.param(LN._replace(axes=(1, 2, 3)), {}, ["axes are c h w, not w"], "--axes CHW", id="axes"),
        pytest.param(LN._replace(order=(0, 1, 3, 2)), {}, ["axes of y are in the order (0, 1, 3, 2)"], None, id="order"),
        pytest.param(GN, {"norm": "gn", "groups": 4}, ["groups are 2, not 4"], "--groups 2", id="groups"),
        pytest.param(
            GN._replace(group_order=GroupOrder.INTERLEAVED), {"norm": "gn", "groups": 2},
            ["groups are interleaved, not contiguous"], "--group-order interleaved", id="order of groups",
        ),
        pytest.param(LN._replace(axes=(1, 2, 3)), {"norm": "gn", "groups": 2}, ["groups are 1, not 2"], "--groups 1", id="one group"),
        pytest.param(LN._replace(axes=(2, 3)), {"norm": "gn", "groups": 2}, ["groups are 4, not 2"], "--groups 4", id="each channel"),
        pytest.param(LN._replace(norm="rms"), {"norm": "rms", "groups": 3}, ["groups are 1, not 3"], "--groups 1", id="groups that were left out"),
        pytest.param(LP._replace(p=1.0), {"norm": "lp"}, ["p is 1, not 2"], "--p 1", id="p"),
        pytest.param(LP._replace(axes=(1,), eps_mode="outside", eps_range=(0.01, 0.01), eps=0.01), {"norm": "lp"}, ["eps is added to the length"], None, id="length"),
        pytest.param(LRN, {"norm": "lrn"}, ["size is 3, not 5", "alpha is 0.0003, not 0.0001", "k is 2, not 1"], "--size 3 --alpha 0.0003 --k 2", id="window"),
        pytest.param(SN._replace(rows=(1,)), {"norm": "sn"}, ["rows are c, not n"], "--rows C", id="rows"),
        pytest.param(SN._replace(steps=TWO_STEPS), {"norm": "sn"}, ["σ is by 2 power iterations from u"], "--iterations 2", id="iterations"),
        pytest.param(SN._replace(steps=TWO_STEPS._replace(most=None, is_largest=True)), {"norm": "sn"}, [], "", id="the largest value too"),
        pytest.param(
            SN._replace(steps=TWO_STEPS), {"norm": "sn", "u": (1.0, 1.0, 1.0), "iterations": 5},
            ["σ is by 2 power iterations from u, not 5"], "--iterations 2", id="fewer iterations",
        ),
        pytest.param(SN, {"norm": "sn", "u": (1.0, 1.0, 1.0), "iterations": 5}, ["σ is the largest singular value"], None, id="no iterations"),
    ],
)  # fmt: skip
def test_each_difference_is_said_with_its_option(match, asked, words, options):
    asked = dict(asked)
    name = asked.get("norm", "ln")
    if match.norm == name == "lp":
        asked["axes"] = match.axes
    said, remedy = compare(match, **asked)
    assert said == words
    expected = None if options is None else " ".join(filter(None, [f"normcli {name} …", options]))
    assert remedy == expected


@pytest.mark.parametrize(
    ("match", "asked"),
    [
        pytest.param(LN, {"norm": "rms"}, id="another divisor"),
        pytest.param(GN, {"norm": "bn"}, id="groups of a norm without"),
        pytest.param(LN, {"norm": "zscore"}, id="an eps of a norm without"),
        pytest.param(NO_EPS._replace(norm="zscore"), {"norm": "zscore", "no_mean": True}, id="without a step"),
        pytest.param(NO_EPS._replace(norm="robust"), {"norm": "robust", "quantiles": (10, 90)}, id="quantiles"),
        pytest.param(LP._replace(p=1.0), {"norm": "wn"}, id="another p of a norm that fixes it"),
    ],
)
def test_another_norm_is_no_request(match, asked):
    assert compare(match, **asked) is None


def test_one_norm_may_be_asked_for_as_another():
    same = LN._replace(norm="in", axes=(2, 3))
    assert compare(same, "in")[0] == []
    assert compare(LN._replace(axes=(1, 2, 3)), "in") == (
        ["axes are c h w, not h w"],
        "normcli in … --axes CHW",
    )
    assert compare(LN._replace(axes=(0,), eps_range=(0.0, 1.0)), "zscore")[0] == []


@pytest.mark.parametrize(
    ("way", "given", "like", "words"),
    [
        ("gamma, beta", "gb", None, []),
        ("none", "gb", None, ["gamma and beta are not applied"]),
        ("gamma", "gb", None, ["beta is not applied"]),
        ("beta", "gb", None, ["gamma is not applied"]),
        ("swapped", "gb", None, ["gamma and beta are exchanged"]),
        ("1 + gamma", "g", None, ["1 + gamma multiplies, not gamma"]),
        ("gamma", "g", "gemma", ["gamma multiplies, not 1 + gamma"]),
        ("1 + gamma", "g", "gemma", []),
        ("none", "g", "gemma", ["gamma is not applied"]),
    ],
)
def test_how_gamma_and_beta_entered(way, given, like, words):
    given = {name: np.ones(6) for name in ("gamma", "beta") if name[0] in given}
    match = LN._replace(affine=way, norm="rms" if "beta" not in given else "ln", eps_range=(0.0, 1.0))
    assert compare(match, match.norm, **given, like=like)[0] == words


def test_the_command_of_a_match_has_what_is_no_default():
    asked = Question(X, X, layout="NCHW")
    assert find_own_command(LN, asked) == "normcli ln …"
    assert find_own_command(LN._replace(eps=0.01, eps_range=(0.01, 0.01)), asked) == "normcli ln … --eps 0.01"
    assert find_own_command(GN, asked) == "normcli gn … --groups 2"
    assert find_own_command(LN._replace(affine="estimated"), asked) is None
    assert find_own_command(LN._replace(eps_range=(0.0, math.inf)), asked) == "normcli ln …"
