"""A gate multiplies what a norm should make, wherever the tiles are cut."""

from __future__ import annotations

import math

import numpy as np
import pytest

import normcli
from normcli.checking.check import check
from normcli.checking.gate import ACTIVATIONS, Gate, make_gate
from normcli.cli.verbs.judging.check import GATE_ACTIVATIONS
from normcli.errors import DataError, UsageError
from normcli.norms.plan import make_plan
from normcli.norms.request import Request

Z = np.linspace(-4.0, 4.0, 9)


def test_the_command_line_has_every_activation():
    assert tuple(ACTIVATIONS) == GATE_ACTIVATIONS


def test_activations_are_as_defined():
    for name, define in {
        "sigmoid": lambda z: 1 / (1 + math.exp(-z)),
        "silu": lambda z: z / (1 + math.exp(-z)),
        "gelu": lambda z: z * math.erfc(-z / math.sqrt(2)) / 2,
        "gelu-tanh": lambda z: z * (1 + math.tanh(math.sqrt(2 / math.pi) * (z + 0.044715 * z**3))) / 2,
        "relu": lambda z: max(z, 0.0),
        "tanh": math.tanh,
        "none": lambda z: z,
    }.items():
        assert ACTIVATIONS[name](Z) == pytest.approx([define(z) for z in Z], rel=1e-14, abs=1e-15), name


@pytest.mark.parametrize("norm", ["bn", "ln", "gn", "lrn"])
def test_every_value_has_its_own_gate(norm, tmp_path):
    rng = np.random.default_rng(0)
    x, z = rng.normal(size=(2, 4, 3, 5)), rng.normal(size=(2, 4, 3, 5))
    options = {"groups": 2} if norm == "gn" else {}
    y = normcli.normalize(x, norm, **options).normalized / (1 + np.exp(-z))
    np.save(tmp_path / "z.npy", z)
    plan = make_plan(Request(norm, **options), x.shape, x.dtype)
    for values in (z, np.load(tmp_path / "z.npy", mmap_mode="r")):
        found = check(plan, x, {"normalized": y}, gate=Gate(values, "sigmoid")).comparisons["normalized"]
        assert found.max_ulp <= 4.0


def test_a_gate_of_another_shape_is_refused():
    with pytest.raises(DataError, match=r"the gate has the shape \(3,\); x has \(2, 3\)"):
        make_gate(np.ones(3), None, (2, 3), "the gate")
    with pytest.raises(UsageError, match="give gate too"):
        make_gate(None, "silu", (2, 3), "gate")
    with pytest.raises(UsageError, match="'swish' is none of silu, sigmoid"):
        make_gate(np.ones(3), "swish", (3,), "gate")
