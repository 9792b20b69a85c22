"""Where a kernel of half precision rounds is told by the bits, within any tolerance."""

from __future__ import annotations

import numpy as np
import pytest

import normcli
from normcli.dtypes import find_type
from normcli.engine.inputs import Inputs, Selection
from normcli.identifying.words.agreement import diagnose_casts
from normcli.norms.plan import make_plan
from normcli.norms.request import Request
from tests.conftest import pose
from tests.identifying.faulty import diagnose_exactly
from tests.marks import slowly

RNG = np.random.default_rng(3)
X = RNG.normal(0.5, 2.0, (24, 6, 20))
GAMMA, BETA = RNG.uniform(0.5, 2.0, 20), RNG.normal(size=20)

ONCE, FIRST, EACH = "the result alone", "x̂ is rounded first", "rounded one by one"


def standardize(x):
    return (x - x.mean(-1, keepdims=True)) / np.sqrt(x.var(-1, keepdims=True) + 1e-5)


def run_kernel(order, x, gamma, beta):
    """Return layer normalization with the roundings of an order, and all else in float64."""
    kind, wide, gamma, beta = x.dtype, *(values.astype("f8") for values in (x, gamma, beta))
    between = kind if order in (FIRST, EACH) else wide.dtype
    product = standardize(wide).astype(between).astype("f8") * gamma
    if order == EACH:
        product = product.astype(kind).astype("f8")
    return (product + beta).astype(kind)


def ask(like, order, dtype="float16", x=X, **changes):
    x, gamma, beta = (values.astype(find_type(dtype)) for values in (x, GAMMA, BETA))
    y = run_kernel(order, x, gamma, beta)
    plan = make_plan(Request("ln", like=like), x.shape, x.dtype)
    return diagnose_casts(plan, x, y, Inputs(gamma, beta)._replace(**changes))


@pytest.mark.parametrize("dtype", ["float16", *slowly(["bfloat16"])])
@pytest.mark.parametrize(
    ("like", "order", "frameworks"),
    [
        pytest.param("torch", FIRST, ["mlx", "onnx", "dit", "flux"], id="first"),
        pytest.param("mlx", ONCE, ["torch"], id="once"),
        pytest.param("torch", EACH, [], id="each"),
        pytest.param("mlx", EACH, [], id="each, not first"),
    ],
)
def test_the_order_is_named_of_which_the_bits_are(like, order, frameworks, dtype):
    told, own = ask(like, order, dtype), ONCE if like == "torch" else FIRST
    words = "x̂, its product and the sum are rounded one by one" if order == EACH else order
    assert told.cause.startswith(f"ln agrees but for its bits: {words}")
    assert told.evidence[0] == f"100 % of the values have the bits of that order in {dtype}"
    assert f" % have those of the order that was checked: {own}" in told.evidence[1]
    assert "; ".join(told.evidence[2:]).startswith(f"so do {', '.join(frameworks)}" if frameworks else "")
    assert told.remedy == (f"normcli ln … --like {frameworks[0]}" if frameworks else None)


@pytest.mark.parametrize(
    "asked",
    [
        pytest.param({"like": "torch", "order": ONCE}, id="the right one"),
        pytest.param({"like": "mlx", "order": FIRST}, id="the right one, rounded first"),
        pytest.param({"like": "torch", "order": FIRST, "dtype": "float32"}, id="no half precision"),
        pytest.param({"like": "torch", "order": FIRST, "x": X[:1, :1]}, id="too few values"),
        pytest.param({"like": "torch", "order": FIRST, "selection": Selection(omits_nan=True)}, id="some do not count"),
        pytest.param({"like": "torch", "order": FIRST, "gamma": None, "beta": None}, id="one order without gamma and beta"),
    ],
)  # fmt: skip
def test_nothing_is_said(asked):
    assert ask(**asked) is None


def test_neither_order_is_named_of_a_rougher_kernel():
    x, gamma, beta = (values.astype("f2") for values in (X, GAMMA, BETA))
    y = run_kernel(FIRST, x, gamma, beta)
    rough = np.nextafter(y, np.where(RNG.random(y.shape) < 0.4, np.inf, y).astype("f2"))
    assert diagnose_casts(make_plan(Request("ln"), x.shape, x.dtype), x, rough, Inputs(gamma, beta)) is None


@pytest.mark.parametrize("names", [(), ("gamma", "beta")])
def test_bits_that_are_cut_off_in_place_of_rounded_are_told(names):
    x, gamma, beta = (cut(values.astype("f4")) for values in (X, GAMMA, BETA))
    given = {"gamma": gamma, "beta": beta} if names else {}
    y = normcli.normalize(x, "ln", **given, dtype="float64").normalized.astype("f4")
    told = normcli.check(cut(y), x, "ln", **given, max_ulp=0.5).diagnosis
    assert told.cause == "ln agrees but for its bits: the result is cut off toward 0, not rounded"
    assert told.evidence[1] == "100 % of the values have the bits of that order in bfloat16"


def cut(values):
    """Return float32 without the bits that bfloat16 does not have."""
    return (values.view("u4") & np.uint32(0xFFFF0000)).view("f4")


def test_gemma_adds_1_before_gamma_multiplies():
    x, gamma = X.astype("f2"), (GAMMA - 1.0).astype("f2")
    wide = x.astype("f8")
    rounded = (wide / np.sqrt((wide**2).mean(-1, keepdims=True) + 1e-6)).astype("f2").astype("f8")
    y = (rounded * (1.0 + gamma.astype("f8"))).astype("f2")
    plan = make_plan(Request("rms", like="gemma"), x.shape, x.dtype)
    assert FIRST in diagnose_casts(plan, x, y, Inputs(gamma)).cause


@pytest.mark.parametrize(("wrong", "is_said"), [(0.08, True), (0.12, False)])
def test_nearly_all_values_are_those_of_an_order_that_is_named(wrong, is_said):
    x, gamma, beta = (values.astype("f2") for values in (X, GAMMA, BETA))
    y = run_kernel(FIRST, x, gamma, beta)
    y.reshape(-1)[: int(wrong * y.size)] += np.float16(1.0)
    plan = make_plan(Request("ln", like="torch"), x.shape, x.dtype)
    assert (diagnose_casts(plan, x, y, Inputs(gamma, beta)) is not None) == is_said


@pytest.mark.costly
@pytest.mark.parametrize("scale", [1e-6, 1e-3])
def test_bits_of_a_rounded_input_of_gamma_are_not_called_exact(scale):
    """Where few values show which step rounds, y is within rounding; but it is not the exact result, rounded."""
    rng = np.random.default_rng(0)
    x = (rng.standard_normal((4, 16)) * scale).astype("f2")
    gamma = rng.uniform(0.5, 2.0, 16).astype("f2")
    standardized = standardize(x.astype("f8")).astype("f2")
    y = (standardized.astype("f8") * gamma).astype("f2")
    told = diagnose_exactly(pose(make_plan(Request("ln"), x.shape, x.dtype), x, Inputs(gamma)), y)
    assert told.evidence == ("every value has the bits of an x̂ that is rounded to float16 before gamma",)
