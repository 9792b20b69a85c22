"""Power iterations, told step by step."""

from __future__ import annotations

import pytest


@pytest.mark.parametrize(
    ("data", "start", "told"),
    [
        pytest.param(
            "[[3,0],[4,5]]",
            ["--u", "1,0"],
            [
                "The rows of X are along n. 1 power iteration from u: v = Xᵀu / ‖Xᵀu‖, then u = Xv / ‖Xv‖.",
                "That makes v = (1, 0) and u = (0.6, 0.8).",
                "The largest singular value is 6.7082: σ is 25.46% below it.",
            ],
            id="from u",
        ),
        pytest.param(
            "[[3,0],[4,5]]",
            ["--v", "0,2", "--iterations", "3"],
            [
                "3 power iterations from v: u = Xv / ‖Xv‖, then v = Xᵀu / ‖Xᵀu‖.",
                "That makes v = (0.706136, 0.708076) and u = (0.312321, 0.949977).",
            ],
            id="from v",
        ),
        pytest.param(
            "[[3,0],[4,5]]", ["--u", "1,0", "--v", "1,0"], ["u and v are as they were given"], id="both"
        ),
        pytest.param(
            "[[3,0],[0,0]]", ["--u", "0,1"], ["u is at a right angle to the matrix: σ is 0."], id="angle"
        ),
        pytest.param("[[0,0],[0,0]]", ["--u", "0,1"], ["y = 0"], id="zeros"),
    ],
)
def test_power_iterations_are_told(data, start, told, normcli):
    said = normcli("explain", "sn", "--data", data, "--at", "0,0", *start).out
    assert [sentence for sentence in (*told, "σ is uᵀXv.") if sentence not in said] == []
