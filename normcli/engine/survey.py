"""What the tiles of a tensor hold, as records that can be added exactly, in any order: for fitting."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from normcli.numerics.leaves import Leaves, measure_leaves
from normcli.numerics.moments import choose_scale
from normcli.numerics.narrow import measure_narrow_leaves

if TYPE_CHECKING:
    from collections.abc import Iterable

    from numpy.typing import NDArray

    from normcli.dtypes import Floats, Integers, Selected
    from normcli.numerics.workspace import Workspace


class Batch(NamedTuple):
    """What a tile holds.

    Parameters
    ----------
    groups : ndarray of int, shape (groups,)
        The number of each group in C order over the kept axes.
    leaves : Leaves
        Of the finite values, of shape (groups, leaves); the values of extreme leaves times 2^scale.
    scale : ndarray of int, shape (groups, leaves)
        Not 0 where the squares of a leaf would over- or underflow.
    low, high : ndarray, shape (groups,)
        The extremes of what is not NaN; inf and -inf where nothing is.
    nan, above, below : ndarray of int, shape (groups,)
        How many values are NaN, inf and -inf.
    whole : bool
        Whether all leaves of these groups are here.
    """

    groups: Integers
    leaves: Leaves
    scale: Integers
    low: Floats
    high: Floats
    nan: Integers
    above: Integers
    below: Integers
    whole: bool


class _Rows(NamedTuple):
    """What rows of values hold, as in `Batch`, with one number for each row."""

    leaves: Leaves
    scale: Integers
    low: NDArray[Any]
    high: NDArray[Any]
    nan: Integers
    above: Integers
    below: Integers


def measure_batch(
    pieces: Iterable[NDArray[Any]], groups: Integers, work: Workspace, *, need_sum: bool, whole: bool
) -> Batch:
    """Measure a tile.

    Parameters
    ----------
    pieces : iterable of ndarray
        The leaves of the tile, with one array for each length of leaf, as `Geometry.cut_leaves` yields them; of
        float32 or float64.
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
    scale, low, high, *counts = map(join, zip(*(part[1:] for part in parts), strict=True))
    # Which of 0 and -0 is the least depends on the order, so that 0 is added.
    low = np.minimum.reduce(low, axis=-1).astype(np.float64) + 0.0
    high = np.maximum.reduce(high, axis=-1).astype(np.float64) + 0.0
    nan, above, below = (np.add.reduce(rows, axis=-1) for rows in counts)
    return Batch(groups, leaves, scale, low, high, nan, above, below, whole)


def _measure_rows(rows: NDArray[Any], work: Workspace, *, need_sum: bool) -> _Rows:
    """Measure leaves of one length, of shape (leaves, values)."""
    leaves, scale, low, high = _measure_selected(rows, work, None, need_sum=need_sum)
    if (np.isfinite(low) & np.isfinite(high)).all():  # `minimum` passes NaN on
        none = np.zeros_like(scale)
        return _Rows(leaves, scale, low, high, none, none, none)
    finite, is_nan = np.isfinite(rows), np.isnan(rows)
    zeroed = np.where(finite, rows, rows.dtype.type(0))
    leaves, scale, _, _ = _measure_selected(zeroed, work, finite, need_sum=need_sum)
    low = np.minimum.reduce(np.where(is_nan, np.inf, rows), axis=-1)
    high = np.maximum.reduce(np.where(is_nan, -np.inf, rows), axis=-1)
    counts = (np.add.reduce(a, axis=-1, dtype=np.int64) for a in (is_nan, rows == np.inf, rows == -np.inf))
    return _Rows(leaves, scale, low, high, *counts)


def _measure_selected(
    rows: NDArray[Any], work: Workspace, selected: Selected | None, *, need_sum: bool
) -> tuple[Leaves, Integers, NDArray[Any], NDArray[Any]]:
    """Measure the selected values of leaves, the others being 0; return leaves, scale, low and high."""
    scale = np.zeros(len(rows), dtype=np.int64)
    if rows.dtype == np.float32:
        leaves, low, high = measure_narrow_leaves(rows, work, need_sum=need_sum, selected=selected)
        return leaves, scale, low, high
    low, high = np.minimum.reduce(rows, axis=-1), np.maximum.reduce(rows, axis=-1)
    leaves = measure_leaves(rows, work, need_sum=need_sum, selected=selected)
    if leaves.extreme.any():
        extreme = leaves.extreme.copy()
        scale[extreme] = choose_scale(np.maximum(np.abs(low[extreme]), np.abs(high[extreme])))
        again = np.ldexp(rows[extreme], scale[extreme][:, None])
        some = None if selected is None else selected[extreme]
        leaves.put(extreme, measure_leaves(again, work, need_sum=need_sum, selected=some))
    return leaves, scale, low, high
