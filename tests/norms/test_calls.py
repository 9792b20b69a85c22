"""Which of a norm's tensors and options a framework's call can express, and what it says of the others."""

from __future__ import annotations

import numpy as np
import pytest

from normcli.norms.calls import CALLS
from normcli.norms.plan import make_plan
from normcli.norms.request import Request

SHAPE, FLOAT32 = (2, 4, 3, 6), np.dtype("float32")


def find_obstacles(framework, norm, shape=SHAPE, *, evaluation=False, **options):
    plan = make_plan(Request(norm, **options), shape, FLOAT32)
    return list(CALLS[framework, norm].list_obstacles(plan, evaluation=evaluation))


@pytest.mark.parametrize(
    ("norm", "options", "told"),
    [
        pytest.param("bn", {}, None, id="bn"),
        pytest.param("bn", {"axes": (2, 3)}, "axes: it is for where one axis is kept", id="bn over two axes"),
        pytest.param("bn", {"axes": (0, 1, 2, 3)}, "axes: it is for where one axis is kept", id="bn over all"),
        pytest.param("ln", {}, None, id="ln"),
        pytest.param("in", {}, None, id="in"),
        pytest.param("in", {"axes": (3,)}, "axes: it is for where batch and channel are kept", id="in over one"),
        pytest.param("in", {"axes": (0, 3)}, "axes: it is for where batch and channel are kept", id="in over the batch"),
        pytest.param("gn", {"groups": 2}, None, id="gn"),
        pytest.param(
            "gn", {"groups": 2, "group_order": "interleaved"},
            "axes: it is for where batch and groups of channels are kept", id="gn interleaved",
        ),
        pytest.param("lrn", {"size": 3}, None, id="lrn"),
        pytest.param("bn", {"ddof": 1}, "ddof 1: it has 0", id="ddof"),
        pytest.param("bn", {"eps_mode": "outside"}, "eps, outside: its eps is inside", id="eps outside of the root"),
    ],
)  # fmt: skip
def test_what_a_call_of_torch_cannot_express_is_told(norm, options, told):
    assert find_obstacles("torch", norm, **options) == ([] if told is None else [told])


def test_groups_of_one_value_are_refused_in_training_alone():
    assert find_obstacles("torch", "bn", (1, 4)) == ["one value a group: it refuses to train on that"]
    assert find_obstacles("torch", "bn", (1, 4), evaluation=True) == []
    assert find_obstacles("torch", "bn", (2, 4)) == []


def test_parameters_are_a_calls_own_along_its_axes_alone():
    for norm, own in (("bn", True), ("ln", True), ("lrn", False)):
        plan = make_plan(Request(norm), SHAPE, FLOAT32)
        assert CALLS["torch", norm].takes_parameters(plan) is own
    other = make_plan(Request("ln", axes=(2, 3), feature_axes=(1,)), SHAPE, FLOAT32)
    assert not CALLS["torch", "ln"].takes_parameters(other)
