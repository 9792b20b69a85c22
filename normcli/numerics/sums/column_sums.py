"""Sums of groups of a few values, or of values far apart in memory, as columns: along the groups."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from normcli.numerics.integers import widen_exactly
from normcli.numerics.pairs import distill_within, quick_two_sum, two_prod, two_square, two_sum
from normcli.numerics.sums.leaf_records import Leaves, are_extreme, count_values, make_leaves, set_not_finite
from normcli.numerics.sums.short_row_sums import cut_squares, find_small

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from normcli.dtypes import Floats, Selected
    from normcli.numerics.workspace import Workspace


FEW = 16
"""Groups of fewer values than this are laid out as columns, so that every operation runs along the groups."""


def measure_columns(
    x: NDArray[Any], work: Workspace, selected: Selected | None = None, *, short: bool, need_sum: bool
) -> Leaves:
    """Measure groups of a few values that are the columns of x: as leaves, of shape (groups,).

    Parameters
    ----------
    x : ndarray, shape (values, groups)
        Of any dtype.
    work : Workspace
    selected : ndarray of bool or None
        Which values count, of the shape of x; the others have to be 0. None if all count.
    short : bool
        Whether the values have 24 bits or fewer, so that their squares are doubles.
    need_sum : bool
        False for norms that do not centre.
    """
    if short:
        leaves = _measure_short_columns(x, work, selected, need_sum=need_sum)
        again = leaves.extreme.copy()
        if again.any():
            part = None if selected is None else selected[:, again]
            leaves.put(again, _measure_columns(x[:, again], work, part, need_sum=need_sum))
        return leaves
    return _measure_columns(x, work, selected, need_sum=need_sum)


def _measure_short_columns(
    raw: NDArray[Any], work: Workspace, selected: Selected | None, *, need_sum: bool
) -> Leaves:
    """Measure columns as `measure_short_leaves` does rows; those that have to be measured again are extreme."""
    n, groups = raw.shape
    x, p, t = (work.get(name, raw.shape) for name in ("x", "squares", "high"))
    np.copyto(x, raw)
    np.multiply(x, x, out=p)
    bound = cut_squares(p, t, np.add.reduce(p, axis=0))
    square, rest = quick_two_sum(np.add.reduce(t, axis=0), np.add.reduce(p, axis=0))
    leaves = Leaves.empty((groups,))
    leaves.square_0, leaves.square_1, leaves.count = (
        square,
        rest,
        count_values(raw.T, None if selected is None else selected.T),
    )
    if need_sum:
        leaves.sum_0 = np.add.reduce(x, axis=0)
    leaves.extreme = ~np.isfinite(square)
    if raw.dtype != np.float16:
        leaves.extreme |= find_small(raw, np.sqrt(n * bound), 0)
    return leaves


def _measure_columns(
    x: NDArray[Any], work: Workspace, selected: Selected | None, size: int = 4, *, need_sum: bool
) -> Leaves:
    """Measure columns of any values, added up in so many doubles; with more, what they leave is bounded."""
    groups = x.shape[1]
    sums = [np.zeros(groups) for _ in range(size if need_sum else 0)]
    squares = [np.zeros(groups) for _ in range(size)]
    left, square_left = np.zeros(groups), np.zeros(groups)
    high, low = widen_exactly(x, work)
    for number, row in enumerate(high):
        values: tuple[Floats, ...] = (row,)
        terms: tuple[Floats, ...] = two_square(row)
        if low is not None:
            rest = low[number]
            values, terms = (row, rest), (*terms, *two_prod(2.0 * row, rest), rest * rest)
        for term in values if need_sum else ():
            left += np.abs(_add(sums, term))
        for term in terms:
            square_left += np.abs(_add(squares, term))
    zero = np.zeros(groups)
    count = count_values(x.T, None if selected is None else selected.T)
    largest = np.maximum.reduce(np.abs(high), axis=0)
    extreme = are_extreme(largest)
    total, lost = distill_within(sums or [zero], 3)
    square, square_lost = distill_within(squares, 4)
    leaves = make_leaves(total, square, extreme, count)
    leaves.sum_left, leaves.square_left = 2.0 * left + lost, 2.0 * square_left + square_lost
    wide = leaves.are_rounded & ~extreme
    leaves = set_not_finite(leaves, high.T, largest)
    if size < _MANY_DOUBLES and wide.any():
        part = None if selected is None else selected[:, wide]
        leaves.put(wide, _measure_columns(x[:, wide], work, part, _MANY_DOUBLES, need_sum=need_sum))
    return leaves


_MANY_DOUBLES = 6


def _add(numbers: list[Floats], term: Floats) -> Floats:
    """Add a term to numbers that are sums of doubles, in place; return what they have no room for."""
    for i, part in enumerate(numbers):
        numbers[i], term = two_sum(part, term)
    return term
