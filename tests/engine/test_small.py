"""Small tensors in one call of the kernel: the same as in tiles, of all that can be given at once, and in few steps."""

from __future__ import annotations

import sys
from unittest import mock

import numpy as np
import pytest

from normcli import normalize
from normcli.compiled import find_kernel
from normcli.engine import small
from normcli.engine.inputs import NO_INPUTS, Inputs, Selection
from normcli.engine.run import run
from normcli.engine.walk import DEFAULT_EFFORT, Effort
from normcli.norms.plan import make_plan
from normcli.norms.request import Request
from normcli.numerics.statistics.solution import Given
from tests.marks import sampled

pytestmark = pytest.mark.skipif(
    find_kernel() is None, reason="the compiled kernel is not there, or not to be used"
)

REQUESTS = [
    Request("bn"), Request("ln", axes="CHW"), Request("in", eps=0.0), Request("gn", groups=2), Request("rms"),
    Request("mvn", layout="NHWC"), Request("zscore", axes=(1, 3), ddof=1), Request("lp", axes=(0, 1, 2, 3)),
    Request("wn", dtype="float64"), Request("bn", dtype="float16", axes=()),
]  # fmt: skip


def make(shape=(2, 4, 3, 5), dtype="float32"):
    return np.random.default_rng(3).standard_normal(shape).astype(dtype)


def run_small(x, request=REQUESTS[0], inputs=NO_INPUTS, out=None, effort=DEFAULT_EFFORT):
    return small.run_small(make_plan(request, x.shape, x.dtype), x, inputs, out, effort)


def require_same(found, wanted):
    assert found is not None
    assert (found[0].dtype, found[0].tobytes()) == (wanted[0].dtype, wanted[0].tobytes())
    assert list(found[1]) == list(wanted[1])
    for name, array in wanted[1].items():
        assert (found[1][name].shape, found[1][name].tobytes()) == (array.shape, array.tobytes())


@sampled
@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
@pytest.mark.parametrize("given", [(), ("gamma",), ("beta",), ("gamma", "beta")], ids="-".join)
@pytest.mark.parametrize("request_", REQUESTS, ids=lambda request: request.norm)
def test_the_same_bits_as_in_tiles(request_, given, dtype):
    x, rng = make(dtype=dtype), np.random.default_rng(7)
    plan = make_plan(request_, x.shape, x.dtype)
    names = [name for name in given if name in plan.norm.parameter_names]
    inputs = Inputs(**{name: rng.standard_normal(plan.parameters.shape).astype(dtype) for name in names})
    with mock.patch.object(small, "MOST_VALUES", 0):
        wanted = run(plan, x, inputs)
    require_same(small.run_small(plan, x, inputs, None, DEFAULT_EFFORT), wanted)


@pytest.mark.parametrize("norm", ["bn", "ln", "rms"])
def test_groups_that_the_kernel_leaves_are_normalized_in_tiles(norm):
    x = make()
    x[1, 2, 2, 1] = np.inf
    assert run_small(x, Request(norm)) is None
    plan, out = make_plan(Request(norm), x.shape, x.dtype), np.full(x.shape, 7.0, "f4")
    with mock.patch.object(small, "MOST_VALUES", 0):
        wanted = run(plan, x)
    found = run(plan, x, out=out)
    assert found[0] is out
    np.testing.assert_array_equal(out, wanted[0])
    for name, array in wanted[1].items():
        np.testing.assert_array_equal(found[1][name], array)


@pytest.mark.parametrize("dtype", ["int64", "uint8", ">i4", "bool"])
def test_integers_are_doubles_where_these_hold_them(dtype):
    x = (make() * 100.0).astype(dtype)
    require_same(run_small(x), run_small(x.astype("f8")))


ONES = np.ones((1, 4, 1, 1))

LEFT_TO_TILES = [
    pytest.param(
        {"inputs": Inputs(gamma=ONES), "request": Request("rms", like="llama")}, id="rounded before gamma"
    ),
    pytest.param({"inputs": Inputs(gamma=ONES.view(np.memmap))}, id="gamma in a file"),
    pytest.param({"inputs": Inputs(given=Given(ONES, ONES))}, id="running statistics"),
    pytest.param({"inputs": Inputs(selection=Selection(omits_nan=True))}, id="values that do not count"),
    pytest.param({"effort": Effort(keeps_statistics=False)}, id="no statistics"),
    pytest.param({"effort": Effort(block=119)}, id="small tiles"),
    pytest.param({"effort": Effort(whole=119)}, id="two passes"),
    pytest.param({"x": np.asfortranarray(make())}, id="another memory order"),
    pytest.param({"x": make().astype(">f4")}, id="another byte order"),
    pytest.param({"x": make().astype("i8") + 2**60 + 1}, id="integers that no doubles hold"),
    pytest.param({"x": make((2, 4, small.MOST_VALUES // 8 + 1))}, id="too large"),
    pytest.param({"request": Request("minmax")}, id="extremes"),
    pytest.param({"request": Request("lp", p=3.0)}, id="another length"),
    pytest.param({"request": Request("lrn", size=3)}, id="a window"),
    pytest.param(
        {"x": make((2, 3, 2, 3, 2)), "request": Request("bn", axes=(0, 2, 4))}, id="three axes of values"
    ),
]


@pytest.mark.all_quick
@pytest.mark.parametrize("given", LEFT_TO_TILES)
def test_what_is_left_to_tiles(given):
    assert run_small(**{"x": make(), **given}) is None


MOST_CALLS = 160
"""In tiles there are 284, and they take twice as long as these."""


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_a_small_tensor_takes_few_calls(dtype):
    x, calls = make((2, 3, 4, 4), dtype), []
    normalize(x)
    sys.setprofile(lambda frame, event, argument: event in ("call", "c_call") and calls.append(event))
    try:
        normalize(x)
    finally:
        sys.setprofile(None)
    assert len(calls) < MOST_CALLS
