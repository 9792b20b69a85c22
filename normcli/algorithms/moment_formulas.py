"""Formulas by which kernels compute the mean and the variance of a row, or its mean square."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

import numpy as np

from normcli.algorithms.summation_orders import fuse, round_twice
from normcli.tuples import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable

    from normcli.algorithms.summation_orders import Add, MultiplyAdd, Values

    Measure = Callable[[Values, Add, int], "RowMoments"]
    """A function of rows, of shape (groups, values), the order of addition, and ddof; it returns `RowMoments`.

    Rows are in the dtype of the sums, in which each operation is rounded.
    """


class RowMoments(NamedTuple):
    """The mean, and the variance or mean square, of each row, as a kernel calculates them.

    Both have the dtype of the kernel's sums.

    Parameters
    ----------
    mean : ndarray, shape (groups,)
        0 for norms that do not centre.
    square : ndarray, shape (groups,)
        The variance; for norms that do not centre the mean square; for ℓ2 lengths the sum of squares.
    """

    mean: Values
    square: Values


_WARP = 32
"""The number of a GPU's threads that each keep a mean and a sum of squares."""

_CHUNK = 16
"""The number of vectors for which torch keeps one mean."""

_LANES = 8
"""The number of float32 values in a vector of AVX2."""


class RowPart(NamedTuple):
    """The moments of some values of each row: their number, mean, and Σ (x − mean)²."""

    size: int
    mean: Values
    squares: Values


def measure_one_pass(rows: Values, add: Add, ddof: int) -> RowMoments:
    """Return E[x] and E[x²] − E[x]² of each row, which cancels where |mean| is far above the deviation."""
    count = make_count(rows)
    mean = add(rows) / count
    variance = add(rows * rows) / count - mean * mean
    return RowMoments(mean, variance * (count / make_count(rows, ddof)) if ddof else variance)


def measure_one_pass_clamped(rows: Values, add: Add, ddof: int) -> RowMoments:
    """Return E[x] and max(E[x²] − E[x]², 0) of each row."""
    mean, variance = measure_one_pass(rows, add, ddof)
    return RowMoments(mean, np.maximum(variance, rows.dtype.type(0.0)))


def measure_two_pass(rows: Values, add: Add, ddof: int) -> RowMoments:
    """Return E[x] and E[(x − mean)²] of each row, in two passes."""
    mean = add(rows) / make_count(rows)
    deviations = rows - mean[:, None]
    return RowMoments(mean, add(deviations * deviations) / make_count(rows, ddof))


def measure_shifted(rows: Values, add: Add, ddof: int) -> RowMoments:
    """Return mean and variance by one pass over x minus its row's first value (Chan, Golub & LeVeque 1983).

    `add` returns the sum of each row.
    """
    count, first = make_count(rows), rows[:, 0]
    shifted = rows - first[:, None]
    total = add(shifted)
    square = (add(shifted * shifted) - total * total / count) / make_count(rows, ddof)
    return RowMoments(first + total / count, square)


def measure_welford(rows: Values, add: Add, ddof: int) -> RowMoments:
    """Return mean and variance by Welford's recurrence, value by value (Welford 1962); `add` is not used."""
    part = _run_welford(rows.T)
    return RowMoments(part.mean, part.squares / make_count(rows, ddof))


def measure_chunked_welford(rows: Values, add: Add, ddof: int) -> RowMoments:
    """Return mean and variance by Welford's recurrence in 32 threads, each over every 32nd value of a row.

    The threads' results are then merged in pairs, until one is left. `add` is not used.
    """
    groups, count = rows.shape
    steps = count // _WARP
    full = steps * _WARP
    part = _run_welford(rows[:, :full].reshape(groups, steps, _WARP).transpose(1, 0, 2))
    rest = rows[:, full:]
    if rest.size:  # the last values go to the first threads
        ahead = (slice(None), slice(0, count - full))
        delta = rest - part.mean[ahead]
        part.mean[ahead] += delta / rows.dtype.type(steps + 1)
        part.squares[ahead] += delta * (rest - part.mean[ahead])
    threads = [
        RowPart(steps + (thread < count - full), part.mean[:, thread], part.squares[:, thread])
        for thread in range(_WARP)
    ]
    while len(threads) > 1:
        half = len(threads) // 2
        threads = [merge_parts(*pair) for pair in zip(threads[:half], threads[half:], strict=True)]
    return RowMoments(threads[0].mean, threads[0].squares / make_count(rows, ddof))


def measure_cascade(rows: Values, add: Add, ddof: int, loads: int = 1) -> RowMoments:
    """Return mean and variance as torch's CPU kernels on x86 with AVX2 do: 8 lanes, fused products.

    Welford's recurrence runs over chunks of 16 vectors. Two results of equally many chunks are merged into one,
    again and again; at the end, the lanes are merged one after the other. `loads` is the number of vectors that
    are loaded at once: 1, or 2 for half precision. `add` is not used.

    Source: PyTorch 2.13, aten/src/ATen/native/cpu/moments_utils.h, `RowwiseMomentsImpl`.
    """
    groups, count = rows.shape
    loaded = count // (loads * _LANES)
    full = loaded * loads * _LANES
    steps = rows[:, :full].reshape(groups, loaded, loads, _LANES).transpose(1, 2, 0, 3)
    nothing = RowPart(0, np.zeros((groups, _LANES), rows.dtype), np.zeros((groups, _LANES), rows.dtype))
    chunks = [steps[start : start + _CHUNK] for start in range(0, loaded, _CHUNK)]
    stack = [nothing] * max(1, (len(chunks) - 1).bit_length())
    for number, chunk in enumerate(chunks, 1):
        for load in range(loads):
            stack[0] = _merge_fused(stack[0], _run_fused(chunk[:, load]))
        level = 1
        while level < len(stack) and number % (1 << level) == 0:
            stack[level], stack[level - 1] = _merge_fused(stack[level], stack[level - 1]), nothing
            level += 1
    whole = functools.reduce(_merge_fused, stack)
    found = _run_welford(rows[:, full:].T)
    for lane in range(_LANES):
        found = merge_parts(found, RowPart(whole.size, whole.mean[:, lane], whole.squares[:, lane]), fuse)
    return RowMoments(found.mean, found.squares / make_count(rows, ddof))


measure_cascade_of_halves = functools.partial(measure_cascade, loads=2)
"""The algorithm of torch's CPU kernels for float16 and bfloat16."""


def measure_in_float64(rows: Values, add: Add, ddof: int) -> RowMoments:
    """Return mean and variance as torch's CPU batch norm does: float64 sums of values and of rounded squares.

    The mean, the deviations, their squares, and the sum of these are rounded to the dtype of the values. `add`
    returns the sum of each row.

    Source: PyTorch 2.13, aten/src/ATen/native/cpu/batch_norm_kernel.cpp,
    `batch_norm_cpu_collect_stats_contiguous_impl`.
    """
    dtype = rows.dtype
    mean = (add(rows.astype(np.float64)) / rows.shape[1]).astype(dtype)
    deviations = rows - mean[:, None]
    squares = add((deviations * deviations).astype(np.float64)).astype(dtype)
    return RowMoments(mean, squares / make_count(rows, ddof))


def _run_fused(steps: Values) -> RowPart:
    """Return the count, mean and Σ (x − mean)² of the values along the first axis, by Welford's recurrence.

    As in kernels, products are added by fused multiply-add, and deltas are multiplied by a rounded 1 / count.
    """
    mean, squares = np.zeros(steps.shape[1:], steps.dtype), np.zeros(steps.shape[1:], steps.dtype)
    type_ = steps.dtype.type
    for number, values in enumerate(np.ascontiguousarray(steps), 1):
        delta = values - mean
        mean = fuse(delta, type_(1.0) / type_(number), mean)
        squares = fuse(delta, values - mean, squares)
    return RowPart(len(steps), mean, squares)


def _merge_fused(part: RowPart, added: RowPart) -> RowPart:
    type_, count = part.mean.dtype.type, part.size + added.size
    share = type_(added.size) / type_(count) if count else type_(0.0)
    delta = added.mean - part.mean
    moved = share * delta
    squares = fuse(delta * type_(part.size), moved, part.squares + added.squares)
    return RowPart(count, part.mean + moved, squares)


def merge_parts(part: RowPart, added: RowPart, multiply_add: MultiplyAdd = round_twice) -> RowPart:
    """Return the count, mean and Σ (x − mean)² of two parts of rows together (Chan, Golub & LeVeque 1983).

    `multiply_add` calculates x · y + z.
    """
    type_, count = part.mean.dtype.type, part.size + added.size
    share = type_(added.size) / type_(count) if count else type_(0.0)
    delta = added.mean - part.mean
    squares = part.squares + multiply_add(delta * delta * share, type_(part.size), added.squares)
    return RowPart(count, multiply_add(delta, share, part.mean), squares)


def _run_welford(steps: Values) -> RowPart:
    """Return the count, mean and Σ (x − mean)² along the first axis, by Welford's recurrence."""
    mean, squares = np.zeros(steps.shape[1:], steps.dtype), np.zeros(steps.shape[1:], steps.dtype)
    type_ = steps.dtype.type
    for number, values in enumerate(np.ascontiguousarray(steps), 1):
        delta = values - mean
        mean = mean + delta / type_(number)
        squares = squares + delta * (values - mean)
    return RowPart(len(steps), mean, squares)


def measure_squares(rows: Values, add: Add, ddof: int) -> RowMoments:
    """Return 0 and E[x²] of each row, for norms without mean; `ddof` is not used."""
    total = add(rows * rows)
    return RowMoments(np.zeros_like(total), total / make_count(rows))


def measure_length(rows: Values, add: Add, ddof: int) -> RowMoments:
    """Return 0 and Σx² of each row, for norms that divide by an ℓ2 length; `ddof` is not used."""
    total = add(rows * rows)
    return RowMoments(np.zeros_like(total), total)


def make_count(rows: Values, ddof: int = 0) -> Any:
    """Return the number of values in a row minus ddof, in the dtype of the rows; in float16, ∞ above 65504."""
    return rows.dtype.type(rows.shape[1] - ddof)
