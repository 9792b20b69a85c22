"""`explain --residual`: the addition is the first step of the story."""

from __future__ import annotations

import numpy as np
import pytest

X, R = "[[1,2,4,8]]", "[[0.5,0,1,-1]]"


@pytest.mark.parametrize("more", [[], ["--at", "0,2"], ["--backward", "--dy", "[[1,0,0,0]]"]])
def test_the_addition_is_the_first_step(normcli, more):
    asked = ("explain", "ln", "--data", X, "--residual", R, *more)
    answer = normcli(*asked, "-f", "json").json
    first = [step for step in answer["steps"] if step["step"] == "residual"]
    assert answer["steps"][: len(first)] == first
    shown = [step["at"] for step in first]
    assert shown == ([[0, 2]] if "--at" in more else [[0, 0], [0, 1], [0, 2], [0, 3]])
    assert [eval(step["expression"]) for step in first] == [step["value"] for step in first]
    group = answer["group"]
    np.testing.assert_array_equal(np.add(group["x"], group["residual"]), group["values"])


def test_exact_sums_are_told_as_such_and_the_output_keeps_its_dtype(normcli, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    np.savez("of.npz", x=np.array([[1, 2048]], "f2"), r=np.array([[1, 1]], "f2"))
    asked = ("explain", "ln", "-i", "of.npz:x", "--residual", "of.npz:r")
    exact = normcli(*asked, "--residual-sum", "exact", "-f", "json").json
    assert "added to x exactly: no sum is rounded before the norm" in exact["steps"][0]["sentence"]
    assert (exact["group"]["values"], exact["group"]["dtype"]) == ([2, 2049], "float16")
    assert normcli(*asked, "-f", "json").json["group"]["values"] == [2, 2048]


def test_a_value_that_is_not_finite_has_no_arithmetic(normcli):
    answer = normcli("explain", "ln", "--data", "[[NaN,2]]", "--residual", "[[1,1]]", "-q", "-f", "json").json
    assert [step["value"] for step in answer["steps"][:2]] == [None, 3]
