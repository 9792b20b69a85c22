"""Orders of addition, against loops over single numbers."""

from __future__ import annotations

import numpy as np
import pytest

from normcli.algorithms import summation_orders as sums
from normcli.dtypes import find_type

LENGTHS = (1, 2, 7, 8, 9, 31, 33, 128, 129, 300)


def draw(count, dtype):
    return np.random.default_rng(count).normal(3.0, 1.0, (3, count)).astype(find_type(dtype))


def add_one_by_one(values):
    total = values[0]
    for value in values[1:]:
        total = total + value
    return total


def add_halves(values):
    if len(values) == 1:
        return values[0]
    half = 1 << (len(values) - 1).bit_length() - 1
    rest = list(values[half:])
    return add_halves([a + rest[i] if i < len(rest) else a for i, a in enumerate(values[:half])])


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64"])
@pytest.mark.parametrize(
    ("add", "expected"),
    [
        pytest.param(sums.add_in_turn, add_one_by_one, id="in turn"),
        pytest.param(sums.add_by_halves, add_halves, id="by halves"),
    ],
)
def test_sums_are_those_of_a_loop(add, expected, dtype):
    for count in LENGTHS:
        rows = draw(count, dtype)
        found = add(rows)
        assert found.dtype == rows.dtype
        assert found.tolist() == [expected(list(row)) for row in rows], count


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_pairwise_sums_are_those_of_numpy(dtype):
    for count in (*LENGTHS, 1000, 5001):
        rows = draw(count, dtype)
        assert sums.add_pairwise(rows).tolist() == [np.add.reduce(row) for row in rows], count


def test_pairwise_sums_of_float16_are_rounded_to_it():
    rows = np.full((1, 4096), 1.0, np.float16)
    rows[:, 0] = 2048.0
    assert float(sums.add_in_turn(rows)[0]) == 2048.0
    assert float(sums.add_pairwise(rows)[0]) == 6144.0 - 16.0  # the first lane stays at 2048
