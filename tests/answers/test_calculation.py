"""The answer of a norm: statistics, and how many values each is of."""

from __future__ import annotations

import numpy as np
import pytest

from normcli.answers.calculating.calculation import count_group_values
from normcli.norms.request import Request
from normcli.results.calculate import calculate
from tests.conftest import plan_request


@pytest.mark.parametrize(
    ("shape", "counts"),
    [
        pytest.param((1, 4), [[2, 3, 3, 2]], id="cut off at the edges"),
        pytest.param((1, 1), [[1]], id="longer than the axis"),
        pytest.param((0, 2**40), np.zeros((0, 2**40)), id="no values, beside more places than memory holds"),
    ],
)
def test_how_many_values_a_window_holds(shape, counts):
    values = np.ones(shape)
    result = calculate(plan_request(Request("lrn", size=3), values), values)
    np.testing.assert_array_equal(count_group_values(result), counts)


@pytest.mark.parametrize("form", ["jsonl", "csv", "tsv"])
def test_statistics_alone_are_a_line_a_group_without_values(form, normcli):
    ran = normcli("bn", "--shape", "2,3,4", "-f", form, "--show", "stats")
    assert len(ran.lines) == 3 + (form != "jsonl")
    assert "normalized" not in ran.out
    assert "input" not in ran.out
    assert "4.75" in ran.out
