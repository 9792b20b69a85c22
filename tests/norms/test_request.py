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


def test_a_word_for_nan_that_is_none_is_refused():
    with pytest.raises(UsageError, match="^nan 'skip' is none of propagate, omit, raise$"):
        Choices(Request("bn")).pick_nan_rule("skip")


def test_eps_is_for_norms_without_where_a_convention_brings_one():
    with pytest.raises(UsageError, match="robust has no option eps"):
        Choices(Request("robust", eps=0.5))
    assert Choices(Request("zscore", eps=0.5, like="keras")).pick("eps") == 0.5
    with pytest.raises(UsageError, match="robust has no option eps_mode"):
        Choices(Request("robust", eps_mode="inside"))


@pytest.mark.parametrize(("like", "rule"), [("sklearn", NanRule.OMIT), (None, NanRule.PROPAGATE)])
def test_a_nan_does_what_the_convention_says(like, rule):
    assert Choices(Request("zscore", like=like)).pick_nan_rule(None) == rule
