"""What the tiles of a tensor hold, as records that can be added exactly, in any order: for fitting."""

from __future__ import annotations

import itertools
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from normcli.engine.geometry import join
from normcli.numerics.elements.compiled_kernel import measure_rows
from normcli.numerics.integers import widen_to_pair
from normcli.numerics.pairs import Pair
from normcli.numerics.rational import ExactSums, sum_exactly
from normcli.tuples import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from normcli.dtypes import Integers, Selected
    from normcli.numerics.sums.leaf_records import Leaves
    from normcli.numerics.workspace import Workspace


class LeafSums(NamedTuple):
    """What some leaves hold, one number for each of them.

    Parameters
    ----------
    groups : ndarray of int, shape (leaves,)
        The number of the group of each, in C order over the kept axes.
    leaves : Leaves
        Of the finite values; zeros, but for the count, where they are extreme.
    extremes : list of (int, ExactSums)
        The sums of the extreme leaves, each with its place.
    low, high : Pair
        The extremes of what is not NaN; inf and -inf where nothing is.
    nan, above, below : ndarray of int
        How many values are NaN, inf and -inf.
    """

    groups: Integers
    leaves: Leaves
    extremes: list[tuple[int, ExactSums]]
    low: Pair
    high: Pair
    nan: Integers
    above: Integers
    below: Integers


def join_sums(batches: Sequence[LeafSums]) -> LeafSums:
    """Return what all leaves of some batches hold."""
    if len(batches) == 1:
        return batches[0]
    groups, leaves, extremes, low, high, *counts = zip(*batches, strict=True)
    firsts = itertools.accumulate(map(len, groups), initial=0)
    exact = [(first + row, sums) for first, rows in zip(firsts, extremes, strict=False) for row, sums in rows]
    low, high = (Pair(*map(np.concatenate, zip(*pairs, strict=True))) for pairs in (low, high))
    return LeafSums(np.concatenate(groups), join(leaves), exact, low, high, *map(np.concatenate, counts))


def measure_sums(rows: NDArray[Any], groups: Integers, work: Workspace, *, need_sum: bool) -> LeafSums:
    """Measure leaves.

    Parameters
    ----------
    rows : ndarray, shape (leaves, values)
        Of floats of up to 64 bits, or of integers of 64.
    groups : ndarray of int, shape (leaves,)
    work : Workspace
    need_sum : bool
        False for norms that do not centre.
    """
    low, high = np.minimum.reduce(rows, axis=-1), np.maximum.reduce(rows, axis=-1)
    selected = None
    nan = above = below = np.zeros(len(rows), dtype=np.int64)
    if not (np.isfinite(low) & np.isfinite(high)).all():  # `minimum` passes NaN on
        selected, is_nan = np.isfinite(rows), np.isnan(rows)
        low = np.minimum.reduce(np.where(is_nan, np.inf, rows), axis=-1)
        high = np.maximum.reduce(np.where(is_nan, -np.inf, rows), axis=-1)
        masks = (is_nan, rows == np.inf, rows == -np.inf)
        nan, above, below = (np.add.reduce(mask, axis=-1, dtype=np.int64) for mask in masks)
        rows = np.where(selected, rows, rows.dtype.type(0))
    leaves = measure_rows(rows, work, selected, need_sum=need_sum).require_exact()
    extremes = [(row, _sum_row(rows, selected, row)) for row in np.flatnonzero(leaves.extreme).tolist()]
    if not need_sum:
        extremes = [(row, replace(sums, total=0)) for row, sums in extremes]
    # Pairs are of 0, never −0: which of the two is the least would depend on the order.
    ends = widen_to_pair(low), widen_to_pair(high)
    return LeafSums(groups, leaves, extremes, *ends, nan, above, below)


def _sum_row(rows: NDArray[Any], selected: Selected | None, row: int) -> ExactSums:
    """Return the exact sums of one row's selected values."""
    values = rows[row] if selected is None else rows[row][selected[row]]
    return sum_exactly(values)
