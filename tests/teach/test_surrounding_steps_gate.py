"""`explain --gate`: the gate is a step of the story, behind the norm or before it."""

from __future__ import annotations

import math

import numpy as np
import pytest

X, Z = "[[1,2,4,8]]", "[[0.5,-1,2,0]]"
SILU = {z: z / (1 + math.exp(-z)) for z in (0.5, -1.0, 2.0, 0.0)}


def ask(normcli, *more, norm="rms"):
    return normcli("explain", norm, "--data", X, "--gate", Z, *more, "-f", "json").json


@pytest.mark.parametrize("more", [[], ["--gamma", "[1,2,3,4]"], ["--gamma", "[1,2,3,4]", "--beta", "1"]])
@pytest.mark.parametrize("at", [0, 1, 2, 3])
def test_a_gate_behind_the_norm_multiplies_its_result(normcli, at, more):
    steps = ask(normcli, *more, "--at", f"0,{at}")["steps"]
    gate, activation, gated, result = steps[-4:]
    assert [step["step"] for step in steps[-4:]] == ["gate", "activation", "gated", "result"]
    z = [0.5, -1.0, 2.0, 0.0][at]
    assert (gate["symbol"], gate["value"]) == ("z", z)
    assert activation["symbol"] == "silu(z)"
    assert activation["value"] == pytest.approx(SILU[z], rel=1e-15)
    assert eval(gated["expression"]) == pytest.approx(gated["value"], rel=1e-15)
    assert eval(gated["expression"].split("*")[0]) == steps[-5]["value"]
    asked = ("rms", "--data", X, "--gate", Z, *more, "--print", "y")
    assert result["value"] == float(normcli(*asked).out.split()[at])


@pytest.mark.parametrize("act", ["sigmoid", "gelu", "gelu-tanh", "relu", "tanh", "none"])
def test_a_gate_before_the_norm_makes_the_tensor(normcli, act):
    answer = ask(normcli, "--gate-order", "before", "--gate-act", act, norm="ln")
    first, *steps = answer["steps"]
    name = "z" if act == "none" else f"{act}(z)"
    assert first["sentence"] == (
        f"Each x is multiplied by {name}, and rounded to float64. From here on, x is the product."
    )
    products = [step for step in steps if step["step"] == "product"]
    assert [step["value"] for step in products] == answer["group"]["values"]
    for step in products:
        assert eval(step["expression"]) == pytest.approx(step["value"], rel=1e-14)
    text = normcli("explain", "ln", "--data", X, "--gate", Z, "--gate-order", "before", "--gate-act", act).out
    assert f" of x · {'gate' if act == 'none' else f'{act}(gate)'}" in text


def test_a_convention_rounds_before_the_gate(normcli, tmp_path):
    file = tmp_path / "x.npy"
    np.save(file, np.array([[1, 2, 4, 8]], "f2"))
    asked = f"rms --like qwen3-next -i {file} --gamma [1,1.1,1.2,1.3] --gate {Z} --at 0,1".split()
    steps = normcli("explain", *asked, "-f", "json").json["steps"]
    assert "rounds it to float16 before the gate" in " ".join(step["sentence"] for step in steps)
    assert steps[-1]["sentence"] == "The result, rounded again, to float16."


def test_a_gate_that_is_not_finite_has_no_arithmetic(normcli):
    asked = ("explain", "rms", "--data", X, "--gate", "[[NaN,1,1,1]]", "-q", "-f", "json")
    for order in ("after", "before"):
        steps = normcli(*asked, "--gate-order", order, "--at", "0,0").json["steps"]
        assert next(step["value"] for step in steps if step["step"] == "gate") is None


def test_a_page_does_not_show_a_convention_that_rounds_before_the_gate(normcli, tmp_path):
    asked = ("--data", X, "--gate", Z, "--like", "qwen3-next", "-o", tmp_path / "page.html")
    for verb in ([], ["explain"]):
        ran = normcli(*verb, "rms", *asked)
        assert (ran.code, ran.out) == (2, "")
        assert "what --like rounds before a gate" in ran.err
