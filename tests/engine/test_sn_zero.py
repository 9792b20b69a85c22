"""A σ of 0 by power iterations, of a matrix that is not zeros: IEEE 754's quotients, and true sentences."""

from __future__ import annotations

import numpy as np
import pytest

from normcli import normalize

MISSED = ("--data", "[[1,0],[0,0]]", "--u", "[0,1]")


def test_torch_divides_by_the_0():
    y = normalize([[1.0, 0.0], [0.0, -2.0]], "sn", u=[1, 0], v=[0, 1], like="torch").normalized
    np.testing.assert_array_equal(y, [[np.inf, np.nan], [np.nan, -np.inf]])


@pytest.mark.parametrize(
    ("like", "y", "said"),
    [
        ((), [[1.0, 0.0], [0.0, 0.0]], "it is divided by 1"),
        (("--like", "torch"), [["inf", "nan"], ["nan", "nan"]], "its normalized values are infinite or NaN"),
    ],
)
def test_a_matrix_that_u_misses_is_not_said_to_be_zeros(normcli, like, y, said):
    result = normcli("sn", *MISSED, *like, "-f", "json")
    assert result.json["normalized"] == y
    assert f"the only group is not all zeros, but its σ by these vectors is 0: {said}" in result.err
    assert "is all zeros" not in result.err


def test_zeros_are_said_to_be_zeros(normcli):
    assert "the only group is all zeros" in normcli("sn", "--data", "[[0,0],[0,0]]", "--u", "[0,1]").err


def test_explain_does_not_say_that_all_values_are_0(normcli):
    told = normcli("explain", "sn", *MISSED, "--at", "0,0").out
    assert "The divisor is 0: it counts as 1." in told
    told = normcli("explain", "sn", *MISSED, "--at", "0,0", "--like", "torch").out
    assert "The divisor is 0: what is not 0 is infinite over it, and 0 is NaN." in told
    assert (
        "The divisor is 0, as all values are"
        in normcli("explain", "sn", "--data", "[[0,0],[0,0]]", "--at", "0,0").out
    )
