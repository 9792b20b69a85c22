"""What the tiles of a tensor hold, as records that can be added exactly, in any order: for fitting."""

from __future__ import annotations

import itertools
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from normcli.numerics.elements.compiled_kernel import measure_rows
from normcli.numerics.integers import widen_to_pair
from normcli.numerics.pairs import Pair
from normcli.numerics.rational import ExactSums, sum_exactly
from normcli.numerics.sums.leaf_records import Leaves
from normcli.tuples import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from numpy.typing import NDArray

    from normcli.dtypes import Integers, Selected
    from normcli.numerics.workspace import Workspace


class TileSums(NamedTuple):
    """What a tile holds.

    Parameters
    ----------
    groups : ndarray of int, shape (groups,)
        The number of each group in C order over the kept axes.
    leaves : Leaves
        Of the finite values, of shape (groups, leaves); zeros, but for the count, where they are extreme.
    extremes : list of (int, ExactSums)
        The sums of the extreme leaves, each with the place of its group among `groups`.
    low, high : Pair of ndarray, shape (groups,)
        The extremes of what is not NaN; inf and -inf where nothing is.
    nan, above, below : ndarray of int, shape (groups,)
        How many values are NaN, inf and -inf.
    whole : bool
        Whether all leaves of these groups are here.
    """

    groups: Integers
    leaves: Leaves
    extremes: list[tuple[int, ExactSums]]
    low: Pair
    high: Pair
    nan: Integers
    above: Integers
    below: Integers
    whole: bool

    def take(self, row: int) -> TileSums:
        """Return the leaves of one group alone."""
        extremes = [(0, sums) for place, sums in self.extremes if place == row]
        return self._replace(leaves=self.leaves.map(lambda a: a[row : row + 1]), extremes=extremes)

    def is_like(self, other: TileSums) -> bool:
        """Whether both have as many leaves of a group, and all of them or not."""
        return self.whole == other.whole and self.leaves.count.shape[1] == other.leaves.count.shape[1]


def join_batches(batches: Sequence[TileSums]) -> TileSums:
    """Return what like tiles hold, as if they were one."""
    if len(batches) == 1:
        return batches[0]
    firsts = itertools.accumulate((len(batch.groups) for batch in batches), initial=0)
    extremes = [
        (first + row, sums)
        for first, batch in zip(firsts, batches, strict=False)
        for row, sums in batch.extremes
    ]

    def join(arrays: Iterable[NDArray[Any]]) -> NDArray[Any]:
        return np.concatenate(list(arrays))

    def join_fields(*names: str) -> list[NDArray[Any]]:
        return [join(getattr(batch, name) for batch in batches) for name in names]

    leaves = Leaves(*map(join, zip(*(batch.leaves.arrays() for batch in batches), strict=True)))
    low, high = (
        Pair(*map(join, zip(*pairs, strict=True)))
        for pairs in ([batch.low for batch in batches], [batch.high for batch in batches])
    )
    groups, nan, above, below = join_fields("groups", "nan", "above", "below")
    return TileSums(groups, leaves, extremes, low, high, nan, above, below, batches[0].whole)


class RowSums(NamedTuple):
    """What rows of values hold, as in `TileSums`, with one number for each row."""

    leaves: Leaves
    extremes: list[tuple[int, ExactSums]]
    low: NDArray[Any]
    high: NDArray[Any]
    nan: Integers
    above: Integers
    below: Integers


def measure_batch(
    pieces: Iterable[NDArray[Any]], groups: Integers, work: Workspace, *, need_sum: bool, whole: bool
) -> TileSums:
    """Measure a tile.

    Parameters
    ----------
    pieces : iterable of ndarray
        The leaves of the tile, with one array for each length of leaf, as `Geometry.cut_leaves` yields them; of
        float32, float64, or integers of 64 bits.
    groups : ndarray of int
        The numbers of its groups.
    work : Workspace
    need_sum : bool
        False for norms that do not centre.
    whole : bool
        Whether all leaves of these groups are here.
    """
    parts = [_measure_rows(piece.reshape(-1, piece.shape[-1]), work, need_sum=need_sum) for piece in pieces]

    def join(arrays: Iterable[NDArray[Any]]) -> NDArray[Any]:
        rows = [array.reshape(len(groups), -1) for array in arrays]
        return rows[0] if len(rows) == 1 else np.concatenate(rows, axis=-1)

    leaves = Leaves(*map(join, zip(*(part.leaves.arrays() for part in parts), strict=True)))
    extremes = [(row * len(groups) // len(part.low), sums) for part in parts for row, sums in part.extremes]
    low, high, *counts = map(join, zip(*(part[2:] for part in parts), strict=True))
    # Pairs are of 0, never −0: which of the two is the least would depend on the order.
    least, largest = (
        widen_to_pair(reduced)
        for reduced in (np.minimum.reduce(low, axis=-1), np.maximum.reduce(high, axis=-1))
    )
    nan, above, below = (np.add.reduce(rows, axis=-1) for rows in counts)
    return TileSums(groups, leaves, extremes, least, largest, nan, above, below, whole)


def _measure_rows(rows: NDArray[Any], work: Workspace, *, need_sum: bool) -> RowSums:
    """Measure leaves of one length, of shape (leaves, values)."""
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
    return RowSums(leaves, extremes, low, high, nan, above, below)


def _sum_row(rows: NDArray[Any], selected: Selected | None, row: int) -> ExactSums:
    """Return the exact sums of one row's selected values."""
    values = rows[row] if selected is None else rows[row][selected[row]]
    return sum_exactly(values)
