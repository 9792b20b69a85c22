"""Which of a norm's tensors and options a framework's call can express, and what it says of the others."""

from __future__ import annotations

import numpy as np
import pytest

from normcli.norms.calls import CALLS
from normcli.norms.plan import make_plan
from normcli.norms.request import Request

SHAPE, FLOAT32 = (2, 4, 3, 6), np.dtype("float32")


def find_obstacles(framework, norm, shape=SHAPE, *, evaluation=False, dtype=FLOAT32, **options):
    plan = make_plan(Request(norm, **options), shape, np.dtype(dtype))
    return list(CALLS[framework, norm].list_obstacles(plan, evaluation=evaluation))


def test_groups_of_one_value_are_refused_in_training_alone():
    assert find_obstacles("torch", "bn", (1, 4)) == ["one value a group: it refuses to train on that"]
    assert find_obstacles("torch", "bn", (1, 4), evaluation=True) == []
    assert find_obstacles("torch", "bn", (2, 4)) == []


@pytest.mark.all_quick
@pytest.mark.parametrize(
    ("call", "shape", "options", "told"),
    [
        pytest.param("torch bn", SHAPE, {}, [], id="bn"),
        pytest.param("torch bn", SHAPE, {"axes": (2, 3)}, ["axes: it is for where one axis is kept"], id="bn, two axes"),
        pytest.param("torch in", SHAPE, {"axes": (3,)}, ["axes: it is for where batch and channel are kept"], id="in, one"),
        pytest.param("torch gn", SHAPE, {"groups": 2}, [], id="gn"),
        pytest.param(
            "torch gn", SHAPE, {"groups": 2, "group_order": "interleaved"},
            ["axes: it is for where batch and groups of channels are kept"], id="gn interleaved",
        ),
        pytest.param("torch bn", SHAPE, {"ddof": 1}, ["ddof 1: it has 0"], id="ddof"),
        pytest.param("torch in", (2, 4), {}, ["a tensor of 2 axes", "one value a group: it refuses to train on that"], id="too few axes"),
        pytest.param("tensorflow lrn", (2, 3, 3, 3, 4), {"layout": "NDHWC"}, ["a tensor of 5 axes"], id="too many axes"),
        pytest.param("onnx lrn", SHAPE, {"size": 4}, ["size 4: its windows are odd"], id="an even window"),
        pytest.param(
            "torch lrn", SHAPE, {"size": 4}, ["size 4 with 1 channels before and 2 after"], id="a window the other way round"
        ),
        pytest.param("torch lrn", SHAPE, {"size": 4, "like": "torch"}, [], id="an even window of its own"),
        pytest.param("keras lp", SHAPE, {"p": 3.0}, ["p 3: it has 2"], id="another exponent"),
        pytest.param("onnx lp", SHAPE, {"p": 3.0}, ["p 3: it has 1, 2"], id="other exponents"),
        pytest.param("torch lp", SHAPE, {"p": 3.0}, [], id="any exponent"),
        pytest.param("torch lp", SHAPE, {"axes": (2, 3)}, ["axes: it is for where one axis is reduced"], id="two axes reduced"),
        pytest.param("tensorflow lp", SHAPE, {"axes": (2, 3), "like": "tensorflow"}, [], id="any axes"),
        pytest.param("torch ln", SHAPE, {"axes": ()}, ["axes: it is for where whole axes are reduced"], id="none reduced"),
        pytest.param("tensorflow bn", SHAPE, {"axes": ()}, ["axes: it is for where axes are reduced or kept"], id="none at all"),
        pytest.param("torch bn", SHAPE, {"eps": 0.0}, ["eps 0: it refuses to train with that"], id="eps 0"),
        pytest.param("keras bn", SHAPE, {"eps": 0.0}, [], id="eps 0, which it takes"),
        pytest.param("torch gn", (1, 4), {"groups": 4}, ["one value a group: it refuses to train on that"], id="one value of all samples"),
        pytest.param("tensorflow bn", SHAPE, {"eps_mode": "outside"}, ["eps, outside: its eps is inside"], id="eps elsewhere"),
        pytest.param("keras bn", (), {"axes": ()}, ["axes: it is for where one axis is kept"], id="no axes"),
        pytest.param("torch sn", (4, 3), {"v": (1.0,) * 3}, [], id="iterations from its start"),
        pytest.param("torch sn", (4, 3), {"u": (1.0,) * 4}, ["iterations from u: it divides by what power iterations from v come to"], id="from another"),
        pytest.param("torch sn", (4, 3), {}, ["the largest singular value itself: it divides by what power iterations from v come to"], id="no iterations"),
        pytest.param("torch sn", (2, 4, 3), {"rows": (0, 1), "v": (1.0,) * 3}, ["rows along 2 axes: it has one"], id="rows along two axes"),
        pytest.param("onnx ln", SHAPE, {"feature_axes": (1,)}, ["gamma and beta along these axes"], id="gamma along others"),
        pytest.param("onnx gn", SHAPE, {"groups": 2, "like": "onnx-18"}, ["a gamma for each group: it has one for each channel"], id="gamma of groups"),
    ],
)  # fmt: skip
def test_what_a_call_cannot_express_is_told(call, shape, options, told):
    assert find_obstacles(*call.split(), shape, **options) == told


@pytest.mark.parametrize(("dtype", "takes"), [("float16", True), ("float32", True), ("float64", False)])
def test_other_dtypes_are_told(dtype, takes):
    told = [] if takes else ["float64: it takes float16, float32"]
    assert find_obstacles("onnx", "in", dtype=dtype) == told


def test_running_statistics_are_told_where_there_are_none_and_free_of_what_is_of_training():
    assert find_obstacles("torch", "gn", evaluation=True, groups=2) == ["eval: it takes no running statistics"]
    assert find_obstacles("torch", "bn", evaluation=True, eps=0.0) == []
    fault = "training: ONNX Runtime 1.31.1 mixes running statistics into y, by momentum"
    assert find_obstacles("onnx", "bn") == [fault]
    assert find_obstacles("onnx", "bn", evaluation=True) == []


def test_the_only_eps_of_a_call_is_told():
    fault = "constant groups: ONNX Runtime 1.31.1 gives nan for them"
    assert find_obstacles("onnx", "mvn", like="onnx") == [fault]
    assert find_obstacles("onnx", "mvn", like="onnx", eps=1e-5) == ["eps 1e-05: it has 1e-09", fault]


@pytest.mark.parametrize(
    ("norm", "options", "own"),
    [
        pytest.param("gn", {"groups": 2}, True, id="along the channel"),
        pytest.param("ln", {"axes": (2, 3), "feature_axes": (1,)}, False, id="along an axis that is kept"),
        pytest.param("rms", {"gamma_offset": 1}, False, id="an offset"),
        pytest.param("rms", {"like": "llama"}, False, id="rounded before"),
    ],
)
def test_gamma_is_a_calls_own_where_it_is_plain_and_along_its_axes(norm, options, own):
    plan = make_plan(Request(norm, **options), SHAPE, FLOAT32)
    assert CALLS["torch", norm].takes_parameters(plan) is own


def test_calls_are_named_by_what_is_called():
    names = {f"{framework} {norm}": call.name for (framework, norm), call in CALLS.items()}
    assert names["torch bn"] == "torch.nn.functional.batch_norm"
    assert names["keras bn"] == "keras.layers.BatchNormalization"
    assert all(names.values())
    assert not [name for name in names.values() if "(" in name]
    assert CALLS["flax", "ln"].convention.framework == "flax-nnx"
    assert CALLS["tensorflow", "ln"].convention.norm == "bn"
