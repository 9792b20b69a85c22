"""What the tiles of a tensor hold, as records that can be added exactly, in any order: for fitting."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from normcli.numerics.leaves import Leaves, measure_leaves
from normcli.numerics.moments import choose_scale
from normcli.numerics.narrow import measure_narrow_leaves

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from normcli.dtypes import Floats, Integers, Selected
    from normcli.numerics.workspace import Workspace


class NotFinite(NamedTuple):
    """How many values are NaN, inf and -inf: one number for each leaf, or each group."""

    nan: Integers
    above: Integers
    below: Integers


class Batch(NamedTuple):
    """What a tile holds.

    Parameters
    ----------
    groups : ndarray of int, shape (groups,)
        The number of each group in C order over the kept axes.
    leaves : Leaves
        Of the finite values, of shape (groups, leaves); the values of extreme leaves times 2^scale.
    scale : ndarray of int, or None
        Of the shape of the leaves; None where it is 0 for all.
    low, high : ndarray, shape (groups,)
        The extremes of what is not NaN; inf and -inf where nothing is.
    not_finite : NotFinite or None
        For each group; None where all values are finite.
    whole : bool
        Whether all leaves of these groups are here.
    """

    groups: Integers
    leaves: Leaves
    scale: Integers | None
    low: Floats
    high: Floats
    not_finite: NotFinite | None
    whole: bool


class _Rows(NamedTuple):
    """What leaves hold, as in `Batch`, with one number for each leaf."""

    leaves: Leaves
    scale: Integers | None
    low: NDArray[Any]
    high: NDArray[Any]
    not_finite: NotFinite | None = None


def measure_batch(
    pieces: Sequence[NDArray[Any]], groups: Integers, work: Workspace, *, need_sum: bool, whole: bool
) -> Batch:
    """Measure a tile.

    Parameters
    ----------
    pieces : sequence of ndarray
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

    def join(arrays: Sequence[NDArray[Any]]) -> NDArray[Any]:
        rows = [array.reshape(len(groups), -1) for array in arrays]
        return rows[0] if len(rows) == 1 else np.concatenate(rows, axis=-1)

    def join_extremes(ufunc: np.ufunc, arrays: Sequence[NDArray[Any]]) -> Floats:
        extremes: Floats = ufunc.reduce(join(arrays), axis=-1).astype(np.float64)
        return extremes + 0.0  # which of 0 and -0 is the least depends on the order

    leaves = Leaves(*map(join, zip(*(part.leaves.arrays() for part in parts), strict=True)))
    scale = None
    if any(part.scale is not None for part in parts):
        scale = join(
            [np.zeros(len(part.low), np.int64) if part.scale is None else part.scale for part in parts]
        )
    not_finite = None
    found = [part.not_finite for part in parts if part.not_finite is not None]
    if found:
        counts = (np.add.reduce(join(arrays), axis=-1) for arrays in zip(*found, strict=True))
        not_finite = NotFinite(*counts)
    low = join_extremes(np.minimum, [part.low for part in parts])
    high = join_extremes(np.maximum, [part.high for part in parts])
    return Batch(groups, leaves, scale, low, high, not_finite, whole)


def _measure_rows(rows: NDArray[Any], work: Workspace, *, need_sum: bool) -> _Rows:
    """Measure leaves of one length, of shape (leaves, values)."""
    measured = _measure_selected(rows, work, None, need_sum=need_sum)
    if (np.isfinite(measured.low) & np.isfinite(measured.high)).all():  # `minimum` passes NaN on
        return measured
    finite = np.isfinite(rows)
    measured = _measure_selected(np.where(finite, rows, rows.dtype.type(0)), work, finite, need_sum=need_sum)
    is_nan = np.isnan(rows)
    counts = (np.add.reduce(a, axis=-1, dtype=np.int64) for a in (is_nan, rows == np.inf, rows == -np.inf))
    return measured._replace(
        low=np.minimum.reduce(np.where(is_nan, np.inf, rows), axis=-1),
        high=np.maximum.reduce(np.where(is_nan, -np.inf, rows), axis=-1),
        not_finite=NotFinite(*counts),
    )


def _measure_selected(
    rows: NDArray[Any], work: Workspace, selected: Selected | None, *, need_sum: bool
) -> _Rows:
    """Measure the selected values of leaves; the others are 0."""
    if rows.dtype == np.float32:
        leaves, low, high = measure_narrow_leaves(rows, work, need_sum=need_sum, selected=selected)
        return _Rows(leaves, None, low, high)
    low, high = np.minimum.reduce(rows, axis=-1), np.maximum.reduce(rows, axis=-1)
    leaves = measure_leaves(rows, work, need_sum=need_sum, selected=selected)
    extreme = leaves.extreme
    if not extreme.any():
        return _Rows(leaves, None, low, high)
    extreme = extreme.copy()
    scale = np.zeros(len(rows), dtype=np.int64)
    scale[extreme] = choose_scale(np.maximum(np.abs(low[extreme]), np.abs(high[extreme])))
    again = np.ldexp(rows[extreme], scale[extreme][:, None])
    some = None if selected is None else selected[extreme]
    leaves.put(extreme, measure_leaves(again, work, need_sum=need_sum, selected=some))
    return _Rows(leaves, scale, low, high)
