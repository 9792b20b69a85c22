"""Power iterations, told step by step."""

from __future__ import annotations

import pytest


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        pytest.param(
            ["--u", "1,0"],
            [
                "The rows of X are along n. 1 power iteration from u: v = Xᵀu / ‖Xᵀu‖, then u = Xv / ‖Xv‖.",
                "That makes v = (1, 0) and u = (0.6, 0.8).",
                "The largest singular value is 6.7082: σ is 25.46% below it.",
            ],
            id="from u",
        ),
        pytest.param(
            ["--v", "0,2", "--iterations", "3"],
            [
                "3 power iterations from v: u = Xv / ‖Xv‖, then v = Xᵀu / ‖Xᵀu‖.",
                "That makes v = (0.706136, 0.708076) and u = (0.312321, 0.949977).",
            ],
            id="from v",
        ),
        pytest.param(["--u", "1,0", "--v", "1,0"], ["u and v are as they were given"], id="of both"),
    ],
)
def test_power_iterations_are_told(arguments, told, normcli):
    said = normcli("explain", "sn", "--data", "[[3,0],[4,5]]", "--at", "0,0", *arguments).out
    assert all(sentence in said for sentence in told)
    assert "σ is uᵀXv." in said


def test_a_start_at_a_right_angle_is_told(normcli):
    said = normcli("explain", "sn", "--data", "[[3,0],[0,0]]", "--at", "0,0", "--u", "0,1").out
    assert "u is at a right angle to the matrix: σ is 0." in said


def test_zeros_are_told(normcli):
    ran = normcli("explain", "sn", "--data", "[[0,0],[0,0]]", "--at", "0,0", "--u", "0,1")
    assert ran.code == 0
    assert "y = 0" in ran.out
