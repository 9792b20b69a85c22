"""What a caller asks for, and what follows for every choice that is left open: the caller's, a convention's, a norm's."""

from __future__ import annotations

import pytest

from normcli.errors import UsageError
from normcli.norms.request import Choices, NanRule, Request


def test_what_a_tensor_brings_is_taken_where_nothing_is_asked_for():
    assert Request("ln").adopt_dtype("float16").dtype == "float16"
    assert Request("ln", dtype="float32").adopt_dtype("float16").dtype == "float32"
    assert Request("ln").adopt_layout("NLC").layout == "NLC"
    assert Request("ln", layout="NC").adopt_layout("NLC").layout == "NC"


def test_a_request_is_collected_of_what_is_given():
    given = {"eps": 1, "axes": [0, 1], "momentum": 0.1, "ddof": None, "groups": 2}
    assert Request.collect("gn", given) == Request("gn", eps=1.0, axes=(0, 1), groups=2)
    with pytest.raises(UsageError, match="^eps 'small' is not a number$"):
        Request.collect("gn", {"eps": "small"})


@pytest.mark.parametrize(
    ("request_", "name", "value"),
    [
        pytest.param(Request("bn", eps=0.5, like="keras"), "eps", 0.5, id="the caller's"),
        pytest.param(Request("bn", eps=0.0, like="keras"), "eps", 0.0, id="the caller's, which is 0"),
        pytest.param(Request("bn", like="keras"), "eps", 1e-3, id="the convention's"),
        pytest.param(Request("bn"), "eps", 1e-5, id="the norm's"),
        pytest.param(Request("l1"), "p", 1.0, id="the name's"),
        pytest.param(Request("lp"), "p", 2.0, id="the option's"),
        pytest.param(Request("bn"), "channel", None, id="nobody's"),
    ],
)
def test_choices_are_the_callers_first(request_, name, value):
    assert Choices(request_).pick(name) == value


def test_who_is_followed_is_told():
    assert Choices(Request("bn")).like is None
    assert Choices(Request("bn", like="keras")).like == "keras"


@pytest.mark.parametrize(
    ("norm", "like", "given", "rule"),
    [
        ("zscore", None, None, NanRule.PROPAGATE),
        ("zscore", "sklearn", None, NanRule.OMIT),
        ("zscore", "sklearn", "raise", NanRule.RAISE),
        ("bn", None, "omit", NanRule.OMIT),
    ],
)
def test_what_a_nan_does(norm, like, given, rule):
    assert Choices(Request(norm, like=like)).pick_nan_rule(given) == rule


def test_a_word_for_nan_that_is_none_is_refused():
    with pytest.raises(UsageError, match="^nan 'skip' is none of propagate, omit, raise$"):
        Choices(Request("bn")).pick_nan_rule("skip")


@pytest.mark.parametrize(
    ("request_", "steps"),
    [
        pytest.param(Request("zscore"), (True, True), id="both"),
        pytest.param(Request("zscore", no_mean=True), (False, True), id="nothing subtracted"),
        pytest.param(Request("zscore", no_scale=True), (True, False), id="nothing divides"),
    ],
)
def test_steps_that_are_left_out(request_, steps):
    norm = Choices(request_).norm
    assert (norm.centre.statistic is not None, norm.divisor.divides) == steps
    assert norm.is_partial == (steps != (True, True))


def test_eps_is_for_norms_without_where_a_convention_brings_one():
    with pytest.raises(UsageError, match="robust has no option eps"):
        Choices(Request("robust", eps=0.5))
    assert Choices(Request("zscore", eps=0.5, like="keras")).pick("eps") == 0.5
    with pytest.raises(UsageError, match="robust has no option eps_mode"):
        Choices(Request("robust", eps_mode="inside"))
