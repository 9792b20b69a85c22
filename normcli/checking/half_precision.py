"""Half precision: tensors of a longer dtype with only numbers of half precision, and sums rounded to it."""

from __future__ import annotations

import functools
import math
import operator
from typing import TYPE_CHECKING, Any

import numpy as np

from normcli.checking.ulp import measure_unit
from normcli.dtypes import find_type
from normcli.errors import MissingExtraError
from normcli.numerics.rounding import round_to_short
from normcli.tensors.mapped import fetch

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from numpy.typing import NDArray

    from normcli.checking.tally import Comparison
    from normcli.dtypes import Floats

HALVES = ("bfloat16", "float16")
"""The dtypes of half precision."""

_LEAST_SAVED, _MOST_SAVED = 16, 1 << 22
"""The fewest different values that show half precision, and the most values of a tensor that is examined."""

_FEW = 1 << 10
"""The number of values that are tested before all are."""

_HALF_BYTES = 2


def find_saved_dtype(
    y: NDArray[Any], inputs: Sequence[NDArray[Any]] = (), *, few: bool = False
) -> np.dtype[Any] | None:
    """Return the half precision that a tensor seems rounded to: every number is also a float16, or a bfloat16.

    None if there is no such dtype, for tensors that are no float32 or float64 or have more than 2²² values, and
    if bfloat16's package is not installed.

    Parameters
    ----------
    y : ndarray
        The output of a kernel, or a gradient.
    inputs : sequence of ndarray
        Tensors whose numbers have to be of the half precision, too. Then a kernel of half precision is right to
        have rounded y to it; if an input has more digits, y has lost digits it should have.
    few : bool
        If False, None is returned also for fewer than 16 different values, and for multiples of one step, which
        rounding to half precision would not make.
    """
    if y.dtype.kind != "f" or y.dtype.itemsize <= _HALF_BYTES or y.size > _MOST_SAVED:
        return None
    values = fetch(y).reshape(-1)
    try:
        held = (np.dtype(find_type(name)) for name in HALVES if _holds(values, name))
        half = next((one for one in held if all(is_of_half(x, one) for x in inputs)), None)
    except MissingExtraError:
        return None
    return half if half is not None and (few or _shows(values, half)) else None


def _shows(values: NDArray[Any], half: np.dtype[Any]) -> bool:
    """Whether values are so many that rounding to `half` made them what they are, and not multiples."""
    is_enough = len(np.unique(values[: _MOST_SAVED >> 4])) >= _LEAST_SAVED
    return is_enough and not _lies_on_grid(values, half)


def is_of_half(x: NDArray[Any], half: np.dtype[Any]) -> bool:
    """Whether a tensor is of a half precision, or a float32 or float64 with only numbers of it."""
    is_wider = x.dtype.kind == "f" and x.dtype.itemsize > _HALF_BYTES
    return x.dtype == half or (is_wider and _holds(fetch(x).reshape(-1), half.name))


def _holds(values: NDArray[Any], name: str) -> bool:
    """Whether each value of a flat array is a number of a dtype; the first thousand are tested before all."""
    for part in (values[:_FEW], values):
        with np.errstate(invalid="ignore"):  # a signalling NaN is one like any other
            wide = part.astype(np.float64)
        if not np.array_equal(round_to_short(wide, name), wide, equal_nan=True):
            return False
    return True


def compare_saved(
    inputs: Sequence[NDArray[Any]] | None,
    y: NDArray[Any],
    compare: Callable[[np.dtype[Any] | None], Comparison],
) -> tuple[Comparison, np.dtype[Any] | None]:
    """Return the comparison of a tensor, and the half precision from which it was saved; None without one.

    Few different values, and multiples of one step, show no half precision by themselves. They do if, of the
    values that differ in the tensor's own dtype, at least half are the exact ones, rounded to half precision.

    Parameters
    ----------
    inputs : sequence of ndarray or None
        The inputs, as `find_saved_dtype` takes them; None if y is judged in its own dtype whatever it holds.
    y : ndarray
        The output or a gradient.
    compare : callable
        Takes a half precision, or None for the dtype of y, and returns the comparison of y in that.
    """
    half = None if inputs is None else find_saved_dtype(y, inputs, few=True)
    if half is not None and find_saved_dtype(y) is not None:
        return compare(half), half
    found = compare(None)
    if half is None or found.ok:
        return found, None
    again = compare(half)
    rounded_once, right = int(again.bins[0]), found.compared - found.mismatches
    return (again, half) if 2 * (rounded_once - right) >= found.mismatches else (found, None)


def may_be_of_float32(x: NDArray[Any], y: NDArray[Any]) -> bool:
    """Whether the first finite values of a kernel's output y, or of its input x, are all float32 numbers.

    Otherwise nothing tells that a kernel calculated in float32.
    """

    def holds(values: NDArray[Any]) -> bool:
        first = np.asarray(values.flat[:_FEW], np.float64)
        return bool(np.all((first == first.astype(np.float32)) | ~np.isfinite(first)))

    with np.errstate(all="ignore"):
        return holds(y) or holds(x)


def _lies_on_grid(values: NDArray[Any], half: np.dtype[Any]) -> bool:
    """Return True if all values are multiples of one step, the ulp of the largest in the dtype `half`.

    Floats rounded to `half` have smaller steps near 0. False for fewer than 64 finite values.
    """
    size = np.abs(values[np.isfinite(values)].astype(np.float64))
    if size.size < _LEAST_ON_GRID:
        return False
    return not np.remainder(size, measure_unit(size.max(keepdims=True), half)).any()


_LEAST_ON_GRID = 64


_NEAR, _ODD = 0.06, 0.05
"""The deviation of recovered numbers from half precision, in ulp, and the part of them that is further off."""


@np.errstate(all="ignore")
def weigh_half(numbers: Floats, dtype: np.dtype[Any]) -> float:
    """Return the evidence, in bits, that numbers with small errors are of half precision, `dtype`.

    It is negative for other numbers, which are up to half a unit in the last place away.
    """
    off = (numbers - round_to_short(numbers, dtype.name)) / measure_unit(numbers, dtype) / _NEAR
    density = np.exp(-0.5 * off**2) / (_NEAR * math.sqrt(2.0 * math.pi))
    return float(np.log2((1.0 - _ODD) * density + _ODD).sum())


# -- sums in half precision: large ones stop growing

_LEAST_ROWS, _MOST_ROWS = 8, 1 << 14
"""The fewest rows whose sums are evidence of half precision, and the most rows that are added one by one."""


_BLOCKS = (8, 16, 32, 64, 128, 256, 512)
"""The numbers of rows that a block of threads adds before the sums of blocks are added."""


def sum_in_half(factors: Sequence[Floats], axes: tuple[int, ...]) -> Iterator[tuple[str, str, Floats]]:
    """Yield sums of products of factors, such as Σ dy · x̂, as kernels that add in half precision make them.

    Parameters
    ----------
    factors : sequence of ndarray
        The factors, of one shape.
    axes : tuple of int
        The axes to sum over. Kernels either add all values in half precision, or first sum exactly over all
        these axes but the first, and add only these sums in half precision.

    Yields
    ------
    name, order, sum
        The half precision, the order of additions in words ("row by row", "in blocks of 32"), and the flat
        array of sums. An order is yielded several times: with factors, terms or sums of blocks that are exact,
        or rounded to half precision. Nothing is yielded unless there are 8 to 16,384 rows to add.
    """
    wide = [np.moveaxis(factor, axes, range(len(axes))) for factor in factors]
    shape = wide[0].shape
    for name in HALVES:
        round_half = functools.partial(round_to_short, name=name)
        exact = functools.reduce(operator.mul, wide)
        rounded = functools.reduce(operator.mul, map(round_half, wide))
        for terms, counted in ((exact, 1), (rounded, 1), (exact, len(axes)), (rounded, len(axes))):
            rows = terms.sum(tuple(range(counted, len(axes)))).reshape(math.prod(shape[:counted]), -1)
            if _LEAST_ROWS <= len(rows) <= _MOST_ROWS:
                yield name, "row by row", _accumulate(rows, round_half)
                yield name, "row by row", _accumulate(round_half(rows), round_half)
                for block in (block for block in _BLOCKS if block < len(rows) and not len(rows) % block):
                    parts = rows.reshape(-1, block, *rows.shape[1:]).swapaxes(0, 1)
                    for sums in (parts.sum(0), _accumulate(parts, round_half)):
                        yield name, f"in blocks of {block}", _accumulate(round_half(sums), round_half)


def _accumulate(rows: Floats, round_half: Callable[[Floats], Floats]) -> Floats:
    total = np.zeros(rows.shape[1:])
    for row in rows:
        total = round_half(total + row)
    return total
