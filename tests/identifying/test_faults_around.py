"""What stands around a norm is named where it is given: the residual before it, the gate behind it."""

from __future__ import annotations

import math

import numpy as np
import pytest

import normcli
from normcli.checking.ulp import choose_counting_dtype
from normcli.engine.inputs import Inputs
from normcli.identifying.faults.fault_search import open_cases
from normcli.identifying.faults.joint_search import open_joints
from normcli.numerics.elements.gate import Gated
from normcli.numerics.rounding import round_to_short
from normcli.tensors.residual import Addends, ResidualSum
from tests.conftest import pose, save
from tests.identifying.faulty import draw, draw_affine, plan, standardize
from tests.marks import costly

SHAPES = ((12, 64), (4, 6, 32))
GAMMA, BETA = draw_affine(64)


def norm(x):
    return standardize(x.astype("f8"))


def sigmoid(z):
    return 1 / (1 + np.exp(-z.astype("f8")))


def tell(x, y, norm="ln", **given):
    told = normcli.check(y.astype(x.dtype), x, norm, **given).diagnosis
    return None if told is None else told.fault


def test_identify_names_what_became_of_the_residual(normcli, tmp_path):
    x, r = draw((8, 32)), draw((8, 32), mean=0.3, seed=7)
    save(tmp_path, x=x, r=r, y=norm(x + r + r).astype("f4"))
    files = {name: tmp_path / f"{name}.npy" for name in "xry"}
    told = normcli("identify", "-i", files["x"], "--residual", files["r"], "--actual", files["y"], "-fjson")
    assert told.json["fault"] == "before-residual-twice"


@pytest.mark.parametrize(
    ("order", "what", "steps"),
    [("after", "the gate", "z"), ("after", "the activation", "a"), ("after", "the norm", "n"),
     ("after", "each step", "zan"), ("after", "each step behind the gate", "an"), ("before", "the gate", "z"),
     ("before", "the activation", "a"), ("before", "the product", "p"), ("before", "each step", "zap")],
)  # fmt: skip
def test_what_is_rounded_of_a_gate_is_told(order, what, steps):
    x, z = draw(SHAPES[0], "f4", 3.0), draw(SHAPES[0], "f4", 0.3, seed=7)

    def step(name, values):
        return round_to_short(values, "bfloat16") if name in steps else values

    gate = step("z", z.astype("f8"))
    factor = step("a", gate * sigmoid(gate))
    y = step("n", norm(x)) * factor if order == "after" else norm(step("p", x * factor))
    told = normcli.check(y.astype("f4"), x, "ln", gate=z, gate_order=order).diagnosis
    where = "product" if order == "after" else "norm"
    assert told.cause == f"ln differs: {what} is rounded to bfloat16 before the {where}"


def test_an_eps_outside_the_root_that_moves_values_by_little_more_than_rounding_is_named_beside_a_gate():
    x, z = draw((24, 72), "f4", 0.0), draw((24, 72), "f4", 0.3, seed=7)
    y = (x - x.mean(-1, keepdims=True, dtype="f8")) / (x.std(-1, keepdims=True, dtype="f8") + 1e-5)
    assert tell(x, y * z * sigmoid(z), gate=z) == "stats-eps-outside"


def test_an_eps_in_half_precision_is_no_sum_in_another_order():
    rng = np.random.default_rng(5)
    x = (rng.normal(size=(24, 72)) * rng.uniform(0.5, 2, (24, 1))).astype("f2")
    z = rng.normal(size=x.shape).astype("f2")
    wide = x.astype("f8")
    y = wide / (np.sqrt((wide**2).mean(-1, keepdims=True)) + 1e-3) * z * sigmoid(z)
    told = normcli.check(y.astype("f2"), x, "rms", gate=z, eps=1e-6).diagnosis
    assert (told.verdict, told.cause) == ("fault", "rms differs: eps 0.001 is outside the root")


def root(x, eps=1e-5):
    return x / np.sqrt((x * x).mean(-1, keepdims=True) + eps)


@pytest.mark.parametrize("order", ["after", "before"])
def test_the_other_order_of_gate_and_norm_is_told_from_another_divisor(order):
    x, z = draw(SHAPES[0], "f4", 0.0), draw(SHAPES[0], "f4", 0.3, seed=7)
    factor, given = z.astype("f8") * sigmoid(z), {"gate": z, "gate_order": order, "eps": 1e-5}
    swapped = root(x * factor, 1e-3) if order == "after" else root(x.astype("f8"), 1e-3) * factor
    told = normcli.check(swapped.astype("f4"), x, "rms", **given).diagnosis
    assert (told.fault, told.evidence[0]) == (
        "before-gate" if order == "after" else "after-gate", "eps is 0.001, not 1e-05"
    )  # fmt: skip
    free = GAMMA * x * factor / np.random.default_rng(1).uniform(0.5, 2.0, (len(x), 1))
    told = normcli.check(free.astype("f4"), x, "rms", gamma=GAMMA, **given).diagnosis
    assert told.cause == "rms differs: the divisor is wrong"
    assert [one.partition(", ")[0] for one in told.alternatives] == [
        "the gate multiplies x" if order == "after" else "the gate multiplies the result"
    ]


def test_a_gate_before_the_norm_whose_product_is_rounded_is_no_other_divisor():
    x, z = draw((40, 64), "f2", 0.0), draw((40, 64), "f2", 0.3, seed=7)
    act = (z.astype("f8") * sigmoid(z)).astype("f2")
    assert tell(x, root((x * act).astype("f8")), norm="rms", gate=z, eps=1e-5) == "before-gate"


def test_an_eps_is_told_once_not_with_more_digits_too():
    x, z = draw(SHAPES[0], "f4", 0.0), draw(SHAPES[0], "f4", 0.3, seed=7)
    y = (root(x.astype("f8"), 1e-3) * z * sigmoid(z)).astype("f4")
    y[0, 0] = np.nextafter(y[0, 0], 2.0)
    told = normcli.check(y, x, "rms", gate=z, eps=1e-5).diagnosis
    assert (told.cause, told.alternatives) == ("rms differs: eps is 0.001, not 1e-05", ())


def test_steps_that_are_each_rounded_are_no_fault():
    x, z = draw((64, 64), "f2", 0.0), draw((64, 64), "f2", 0.3, seed=7)
    y = norm(x).astype("f2") * (z * sigmoid(z)).astype("f2")
    judged = normcli.check(y, x, "ln", gate=z)
    assert not judged.ok
    assert judged.diagnosis.cause == "ln differs by rounding alone"


def test_nothing_is_said_of_a_gate_that_explains_nothing():
    x, z = draw(SHAPES[0], "f4", 0.0), draw(SHAPES[0], "f4", 0.3, seed=7)
    told = normcli.check((norm(x) * np.cos(3 * z)).astype("f4"), x, "ln", gate=z).diagnosis
    assert (told.verdict, told.fault) == ("none", None)


@pytest.mark.parametrize("kind", ResidualSum)
def test_a_sum_of_half_precision_that_is_rounded_otherwise_is_named(kind):
    x, r = draw((24, 64), "f2", 30.0), draw((24, 64), "f2", 0.3, seed=7)
    other = next(one for one in ResidualSum if one is not kind)
    y = norm(Addends(x, r, other).add()).astype("f2")
    addends = Addends(x, r, kind)
    subject = pose(plan("ln", x), addends.add(), addends=addends)
    claims = open_joints([*open_cases([subject], y, choose_counting_dtype(y.dtype))])
    assert claims[0].fault.id == "before-residual-rounding"


def test_a_residual_of_zeros_is_no_fault():
    x = draw(SHAPES[0], "f4", 0.0)
    assert tell(x, norm(x), residual=np.zeros_like(x)) is None


@pytest.mark.parametrize("order", ["after", "before"])
@pytest.mark.parametrize("name", ["gelu", "gelu-tanh"])
def test_a_gelu_whose_digits_cancel_in_float32_is_named(name, order):
    x, z = draw((64, 256), "f4", 0.0), np.float32(3.0) * draw((64, 256), "f4", 0.0, seed=7)
    bent = z * np.float32(2**-0.5)
    share = np.vectorize(math.erf, otypes=["f4"])(bent)
    if name == "gelu-tanh":
        share = np.tanh(np.float32(math.sqrt(2 / math.pi)) * (z + np.float32(0.044715) * z**3))
    factor, cause = z * np.float32(0.5) * (1 + share), f"the gate's activation is {name}, not silu"
    y = root(x.astype("f8")) * factor
    if order == "before":
        y, cause = root((x * factor).astype("f8")), f"x is multiplied by {name} of the gate, not silu"
    told = normcli.check(y.astype("f4"), x, "rms", gate=z, gate_order=order, eps=1e-5).diagnosis
    assert (told.cause, told.evidence[0]) == (
        f"rms differs: {cause}",
        "with that, rounding explains every value",
    )


PAIRS = {
    "after-gate-rolled after-gate-activation": lambda x, z, g: norm(x) * g * sigmoid(np.roll(z, 1, 0)),
    "after-gate-activation affine-gamma-missing": lambda x, z, g: norm(x) * sigmoid(z),
    "affine-gamma-missing after-gate-rounded": lambda x, z, g: (
        norm(x) * round_to_short(z * sigmoid(z), "bfloat16")
    ),
    "after-gate-activation stats-ddof": lambda x, z, g: norm(x) * g * sigmoid(z) * math.sqrt(63 / 64),
    "before-gate-rolled before-gate-activation": lambda x, z, g: norm(x * sigmoid(np.roll(z, 1, 0))) * g,
}


@costly
@pytest.mark.parametrize("faults", PAIRS)
def test_two_faults_are_told_of_which_one_is_of_the_gate(faults):
    x, z = draw((12, 64)), draw((12, 64), seed=7)
    y = PAIRS[faults](x, z, GAMMA).astype("f4")
    gate = Gated(z.astype("f8"))
    before = gate._replace(times=x) if faults.startswith("before") else None
    inputs = Inputs(GAMMA, None, gate=None if before else gate, gated_input=before)
    subject = pose(plan("ln", x), before.activate() if before else x, inputs)
    cases = open_cases(iter([subject]), y, np.dtype("f4"))
    assert [fault.id for fault in open_joints([*cases])[0].faults] == faults.split()
