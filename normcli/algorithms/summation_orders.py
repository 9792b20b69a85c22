"""Orders in which a kernel adds the values of a row: each sum is rounded to the dtype of the values."""

from __future__ import annotations

import functools
import operator
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from numpy.typing import NDArray

    Values = NDArray[Any]
    Add = Callable[[Values], Values]
    """A function that returns the sum of each row, of shape (groups, values), in the dtype of the rows."""

_PAIRWISE_LEAF, _PAIRWISE_LANES = 128, 8
"""NumPy's numbers: the most values that are added in lanes, and the lanes; longer rows are split in halves."""


def add_in_turn(rows: Values) -> Values:
    """Return the sum of each row, added from first to last.

    Examples
    --------
    >>> float(add_in_turn(np.full((1, 4000), 1.0, np.float16))[0])
    2048.0
    """
    return add_up(rows)[:, -1]


def add_up(rows: Values) -> Values:
    """Return all partial sums of each row from first to last, of the shape of the rows."""
    sums: Values = np.add.accumulate(rows, axis=1, dtype=rows.dtype)
    return sums


def add_by_halves(rows: Values) -> Values:
    """Return the sum of each row: halves are added until one number is left, as a GPU's threads do it.

    Rows are filled up with zeros to a power of two.
    """
    count = 1 << max(0, rows.shape[1] - 1).bit_length()
    while count > 1:
        count //= 2
        left, right = rows[:, :count], rows[:, count:]
        if right.shape[1] < count:
            added = left[:, : right.shape[1]] + right
            rows = np.concatenate([added, left[:, right.shape[1] :]], axis=1)
        else:
            rows = left + right
    return rows[:, 0]


def add_pairwise(rows: Values) -> Values:
    """Return the sum of each row as `numpy.add.reduce` adds contiguous floats: halves, leaves of 8 lanes.

    Source: NumPy 2.4, numpy/_core/src/umath/loops_utils.h.src, `pairwise_sum`.
    """
    count = rows.shape[1]
    if count > _PAIRWISE_LEAF:
        half = count // 2
        half -= half % _PAIRWISE_LANES
        return add_pairwise(rows[:, :half]) + add_pairwise(rows[:, half:])
    if count < _PAIRWISE_LANES:
        return add_in_turn(rows)
    even = count - count % _PAIRWISE_LANES
    steps = rows[:, :even].reshape(len(rows), -1, _PAIRWISE_LANES)
    sums = np.add.accumulate(steps, axis=1, dtype=rows.dtype)[:, -1]
    while sums.shape[1] > 1:
        sums = sums[:, ::2] + sums[:, 1::2]
    total = sums[:, 0]
    for place in range(even, count):
        total = total + rows[:, place]
    return total


def add_in_vectors(rows: Values) -> Values:
    """Return the sum of each row as torch adds contiguous float32 with AVX2: vectors of 8, 4 side by side.

    Source: PyTorch 2.13, aten/src/ATen/native/cpu/SumKernel.cpp, `cascade_sum`.
    """
    groups, count = rows.shape
    width = _VECTOR if count >= _VECTOR else 1
    vectors = count // width
    sums = _add_side_by_side(rows[:, : vectors * width].reshape(groups, vectors, width).transpose(1, 0, 2))
    if width == 1:
        return sums[:, 0]
    rest = rows[:, vectors * width :]
    return add_in_turn(np.concatenate([np.zeros((groups, 1), rows.dtype), rest, sums], axis=1))


def _add_side_by_side(steps: Values) -> Values:
    """Add along the first axis: every fourth value into one of four sums, then the rest, then the four sums."""
    full = len(steps) // _SIDES
    sums = _add_in_levels(steps[: full * _SIDES].reshape(full, _SIDES, *steps.shape[1:]))
    rest: Iterator[Values] = iter((*steps[full * _SIDES :], *sums[1:]))
    return functools.reduce(operator.add, rest, sums[0])


def _add_in_levels(steps: Values) -> Values:
    """Add along the first axis in four levels: runs of values in turn, then runs of such sums, and so on."""
    power = max(_LEVELS, max(len(steps) - 1, 0).bit_length() // _LEVELS)
    nothing = np.zeros(steps.shape[1:], steps.dtype)
    levels = [nothing] * _LEVELS
    for number, values in enumerate(steps, 1):
        levels[0] = levels[0] + values
        for level in range(1, _LEVELS):
            if number % (1 << level * power):
                break
            levels[level], levels[level - 1] = levels[level] + levels[level - 1], nothing
    return functools.reduce(operator.add, levels)


_VECTOR, _SIDES, _LEVELS = 8, 4, 4
"""torch's numbers: of float32 values in a vector, of vectors side by side, and of levels of sums."""
