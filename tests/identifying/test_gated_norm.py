"""Which norm, activation and order of a gate make a tensor; and what is said where the data do not tell."""

from __future__ import annotations

import numpy as np
import pytest

import normcli
from normcli import identify
from normcli.dtypes import find_type
from normcli.errors import DataError
from normcli.numerics.elements.activation import Activation
from tests.conftest import save
from tests.marks import costly, sampled

RNG = np.random.default_rng(5)
X, Z = RNG.normal(0.5, 1.0, (2, 12, 32)) * RNG.uniform(0.5, 2.0, (12, 1))
GAMMA = (1.0 + 0.3 * RNG.normal(size=32)).astype("f4")


def make(norm, dtype, **options):
    """Return x, z and the gated result in a dtype."""
    x, z = (values.astype(find_type(dtype)) for values in (X, Z))
    return x, z, normcli.normalize(x, norm, gate=z, **options).normalized


def name_files(folder, x, z, y):
    """Write the tensors to files, and return the arguments that name them."""
    save(folder, x=x, z=z, y=y)
    return [f"--gate={folder / 'z.npy'}", "-i", folder / "x.npy", "--actual", folder / "y.npy"]


@costly
@sampled
@pytest.mark.parametrize("order", ["after", "before"])
@pytest.mark.parametrize("act", Activation)
@pytest.mark.parametrize(("norm", "eps"), [("rms", 1e-6), ("ln", 1e-3)])
@pytest.mark.parametrize("dtype", ["float32", "float64", "float16"])
def test_norm_activation_and_order_are_found(norm, eps, act, order, dtype):
    x, z, y = make(norm, dtype, gamma=GAMMA, eps=eps, gate_act=act.value, gate_order=order)
    judged = normcli.identify(y, x, gamma=GAMMA, gate=z)
    told = judged.diagnosis
    factor = "gate" if act is Activation.NONE else f"{act}(gate)"
    how = f"times {factor}" if order == "after" else f"of x · {factor}"
    causes = [told.cause.removeprefix("y is "), *told.alternatives]
    assert judged.ok
    assert told.cause.startswith(f"y is {norm} with eps ")
    assert f"{norm} with eps {eps:g}, {how}" in causes
    assert all(cause.endswith(how) for cause in causes)
    assert f"--gate-act {act} --gate-order {order}" in told.remedy


@pytest.mark.parametrize("order", ["after", "before"])
def test_matches_are_of_the_same_record(order, tmp_path, normcli):
    x, z, y = make("gn", "float64", layout="nc", groups=2, gate_act="tanh", gate_order=order, eps=1e-3)
    judged = identify(y, x, gate=z, layout="nc", norm="gn")
    best = judged.found.matches[0]
    assert (best.norm, best.groups, best.eps, best.gate) == ("gn", 2, 1e-3, (order, "tanh"))
    assert (best.equal, best.max_ulp, best.compared) == (1.0, 0.0, x.size)
    files = name_files(tmp_path, x, z, y)
    told = normcli("identify", *files, "--norm", "gn", "--layout", "nc", "-fjson")
    assert (told.code, told.err) == (0, "")
    match = told.json["matches"][0]
    wanted = {"groups": 2, "eps": 1e-3, "gate_order": order, "gate_act": "tanh", "affine": "none"}
    assert wanted.items() <= match.items()
    table = normcli("identify", *files, "--norm", "gn", "--layout", "nc").out
    assert f"gn 2 contiguous {'· tanh(gate)' if order == 'after' else 'of x · tanh(gate)'}" in table


def silu(z):
    return z / (1 + np.exp(-z))


def divide(x):
    return x / np.sqrt((x * x).mean(-1, keepdims=True) + 1e-5)


@costly
@pytest.mark.parametrize(
    ("fault", "kernel"),
    [
        ("after-gate-rolled", lambda x, z: divide(x) * GAMMA * np.roll(silu(z), 1, 0)),
        ("after-gate-exchanged", lambda x, z: divide(z) * GAMMA * silu(x)),
        ("affine-gamma-missing", lambda x, z: divide(x) * silu(z)),
        ("before-gate-rolled", lambda x, z: divide(x * np.roll(silu(z), 1, 0)) * GAMMA),
    ],
)
def test_a_fault_of_a_gated_norm_is_named(fault, kernel):
    x, z = X.astype("f4"), Z.astype("f4")
    judged = identify(kernel(x, z), x, gamma=GAMMA, gate=z)
    assert not judged
    told = judged.diagnosis
    assert (told.verdict, told.fault) == ("fault", fault)
    assert told.cause.startswith("y is rms, but ")
    assert told.next_step == "check rms --gate FILE tells which values are off, and how far"


def test_a_tensor_that_no_norm_with_that_gate_makes_is_none():
    x, z, y = make("rms", "float32")
    told = normcli.identify(y + 0.1 * np.sin(x), x, gate=z).diagnosis
    assert (told.verdict, told.cause) == ("none", "no usual norm with that gate makes y")


def test_gates_that_activations_leave_alike_are_undecided():
    x = make("rms", "float32")[0][:4, :16]
    z = np.full_like(x, 40.0)
    y = normcli.normalize(x, "rms", gate=z, gate_act="relu").normalized
    judged = normcli.identify(y, x, gate=z)
    assert not judged
    assert judged.diagnosis.verdict == "undecided"
    assert any("times gate" in other for other in judged.diagnosis.alternatives)


@pytest.mark.parametrize("norm", ["rms", "ln"])
def test_a_norm_that_makes_few_values_is_undecided(norm):
    x, z, gamma = X[:3, :5], Z[:3, :5], GAMMA[:5]
    y = normcli.normalize(x, norm, gate=z, gamma=gamma).normalized
    told = normcli.identify(y, x, gate=z, gamma=gamma).diagnosis
    assert (told.verdict, told.cause) == ("undecided", f"y may be {norm} with eps 1e-05, times silu(gate)")
    assert told.evidence == ("so few values fit many other things as well",)


@pytest.mark.parametrize("of_x", ["bfloat16", "float32"])
def test_half_precision_saved_as_float32_is_told(of_x):
    x, z = (values[:4, :16].astype(find_type(of_x)).astype("f4") for values in (X, Z))
    y = normcli.normalize(x, "ln", gate=z).normalized.astype(find_type("bfloat16")).astype("f4")
    judged = normcli.identify(y, x, gate=z)
    told, right = judged.diagnosis, "y is ln with eps 1e-05, times silu(gate)"
    cause = right if of_x == "bfloat16" else "y is ln, but y is rounded to bfloat16"
    shown = "y holds bfloat16 numbers" if of_x == "bfloat16" else right
    assert (told.cause, told.evidence[0]) == (cause, shown)
    assert judged.found.question.saved == "bfloat16"


def test_a_gate_or_a_tensor_of_another_shape_is_refused():
    x, z, y = make("rms", "float32")
    with pytest.raises(DataError, match=r"the gate has the shape \(3,\)"):
        normcli.identify(y, x, gate=z[0, :3])
    with pytest.raises(DataError, match=r"has the shape \(6, 64\)"):
        normcli.identify(y.reshape(6, 64), x, gate=z)


def test_no_input_is_suggested_with_a_gate(tmp_path, normcli):
    refused = normcli("identify", *name_files(tmp_path, *make("rms", "float32")), "--suggest")
    assert (refused.code, refused.out) == (2, "")


@pytest.mark.parametrize("order", ["after", "before"])
def test_another_eps_that_gives_every_half_is_told_first(order):
    x, z, y = make("rms", "float16", eps=1e-3, gate_order=order)
    told = normcli.check(y, x, "rms", gate=z, gate_order=order, max_ulp=0.5).diagnosis
    assert (told.cause, told.remedy) == ("rms differs: eps is 0.001, not 1e-05", "normcli rms … --eps 0.001")
