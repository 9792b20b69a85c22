"""Orders in which a kernel adds the values of a row, and x · y + z: each sum is rounded to the dtype."""

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
    from collections.abc import Callable

    MultiplyAdd = Callable[[Values, Values | np.generic, Values], Values]


_PAIRWISE_LEAF, _PAIRWISE_LANES = 128, 8
"""NumPy's constants: the most values that are added in lanes, and how many lanes; longer rows are halved."""


def add_in_turn(rows: Values) -> Values:
    """Return the sum of each row, added from first to last.

    Examples
    --------
    >>> float(add_in_turn(np.full((1, 4000), 1.0, np.float16))[0])
    2048.0
    """
    return add_up(rows)[:, -1]


def add_up(rows: Values) -> Values:
    """Return the partial sums of each row, added from first to last, in the shape and dtype of the rows."""
    sums: Values = np.add.accumulate(rows, axis=1, dtype=rows.dtype)
    return sums


def add_by_halves(rows: Values) -> Values:
    """Return the sum of each row: the second half is added to the first, until one number is left (as on GPUs).

    Rows are first filled up with zeros to a power of two.
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
    """Return the sum of each row as `numpy.add.reduce` adds contiguous floats.

    Rows are halved down to at most 128 values, which are added in 8 lanes.

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
    """Return the sum of each row as torch adds contiguous float32 with AVX2: 4 sums of vectors of 8 values.

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
    """Return the sum along the first axis: four sums of every fourth value are added up, with the rest."""
    full = len(steps) // _SIDES
    sums = _add_in_levels(steps[: full * _SIDES].reshape(full, _SIDES, *steps.shape[1:]))
    rest: Iterator[Values] = iter((*steps[full * _SIDES :], *sums[1:]))
    return functools.reduce(operator.add, rest, sums[0])


def _add_in_levels(steps: Values) -> Values:
    """Return the sum along the first axis, in four levels of partial sums.

    Values are added to the first level; after each full power of two of additions, a level's sum is moved into
    the next level's. At the end the four are added.
    """
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
"""torch's constants: float32 values in a vector, vectors that are added side by side, and levels of sums."""


def round_twice(x: Values, y: Values | np.generic, z: Values) -> Values:
    """Return x · y + z with the product rounded, then the sum."""
    result: Values = x * y + z
    return result


def fuse(x: Values, y: Values | np.generic, z: Values) -> Values:
    """Return x · y + z rounded once if x is float32; for other dtypes with the product rounded, then the sum.

    The product is exact in float64. Its sum is rounded there to odd, which leaves the second rounding right
    (Boldo & Melquiond 2008, "Emulation of FMA and correctly rounded sums").

    Examples
    --------
    >>> x, z = np.float32([1 + 2.0**-12]), np.float32([-1.0])
    >>> bool(fuse(x, x, z) == 2.0**-11 + 2.0**-24), bool(round_twice(x, x, z) == 2.0**-11)
    (True, True)
    """
    if x.dtype != np.float32:
        return round_twice(x, y, z)
    product, term = x.astype(np.float64) * np.float64(y), z.astype(np.float64)
    total = product + term
    shift = total - product
    error = (product - (total - shift)) + (term - shift)
    is_even = (total.view(np.int64) & 1) == 0
    goes_on = np.nextafter(total, np.copysign(np.inf, error))
    odd = np.where((error != 0.0) & is_even & np.isfinite(total), goes_on, total)
    return odd.astype(np.float32)
