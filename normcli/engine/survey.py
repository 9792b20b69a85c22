"""A survey of a tensor: the records of its leaves, its extremes, what is not finite; nothing is written."""

from __future__ import annotations

import contextlib
import math
import threading
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from normcli.dtypes import is_short_float
from normcli.engine.passes import COLUMN_BLOCK
from normcli.engine.walk import Walk
from normcli.numerics.leaves import Leaves, measure_leaves
from normcli.numerics.moments import choose_scale
from normcli.numerics.narrow import measure_narrow_leaves

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from normcli.engine.blocks import Source
    from normcli.engine.geometry import Geometry, Slices
    from normcli.engine.walk import Effort
    from normcli.numerics.workspace import Workspace

    Floats = NDArray[np.float64]
    Integers = NDArray[np.int64]


class Odd(NamedTuple):
    """How many values of some groups are not finite, one number for each group."""

    nan: Integers
    above: Integers
    below: Integers


class Batch(NamedTuple):
    """What a tile holds.

    Parameters
    ----------
    groups : ndarray of int, shape (groups,)
        The number of each group in C order over the axes that are kept.
    leaves : Leaves
        Of the finite values, of shape (groups, leaves), the values of extreme leaves times 2^scale.
    scale : ndarray of int, or None
        Of the shape of the leaves; None where it is 0 for all.
    low, high : ndarray
        The extremes of what is not NaN, of shape (groups,); infinities the wrong way round where nothing is.
    odd : Odd or None
        None where all is finite.
    whole : bool
        Whether all leaves of these groups are here.
    """

    groups: Integers
    leaves: Leaves
    scale: Integers | None
    low: Floats
    high: Floats
    odd: Odd | None
    whole: bool


class Survey:
    """Reads a source once, in threads; `hear` is told of each tile by one thread at a time.

    Parameters
    ----------
    geometry : Geometry
    source : Source
    hear : callable
        Takes a `Batch`. What it makes of them must not depend on their order.
    need_sum : bool
        False for norms that do not centre.
    effort : Effort
    """

    def __init__(
        self,
        geometry: Geometry,
        source: Source,
        hear: Callable[[Batch], None],
        effort: Effort,
        *,
        need_sum: bool,
    ) -> None:
        self._geometry, self._source, self._hear, self._need_sum = geometry, source, hear, need_sum
        self._narrow = is_short_float(source.dtype)
        self._native = np.dtype(np.float32 if self._narrow else np.float64)
        self._order = geometry.kept_runs + geometry.reduced_runs
        self._whole = geometry.count <= effort.whole
        within = math.prod(geometry.dims[geometry.reduced_runs[-1] + 1 :])
        self._whole = self._whole and (within == 1 or geometry.count * within <= effort.block)
        block = effort.block if geometry.count > 1 << 6 else min(effort.block, COLUMN_BLOCK)
        self._walk = Walk(geometry, source, effort, block)
        self._lock = threading.Lock()

    def do(self) -> None:
        """Read all of it."""
        self._walk.expect(1)
        self._walk.each(self._work_on, whole=self._whole, line=int(self._geometry.leaf_sizes.max()))

    def _work_on(self, tile: Slices, work: Workspace) -> None:
        raw = self._source.read(tile, self._order, work)
        if not (raw.flags.c_contiguous and raw.dtype == self._native and raw.flags.aligned):
            canonical = work.get("raw", raw.shape, self._native)
            np.copyto(canonical, raw, casting="unsafe")
            raw = canonical
        groups = math.prod(tile[i].stop - tile[i].start for i in self._geometry.kept_runs)
        rows = raw.reshape(groups, -1)
        parts = [self._measure(piece, work) for _, piece in self._geometry.cut_leaves(rows, tile)]
        batch = _join(parts, self._number(tile), whole=self._whole)
        with self._lock:
            self._hear(batch)

    def _measure(self, piece: NDArray[Any], work: Workspace) -> Batch:
        """Measure leaves of one length, of shape (groups, outer, leaves, values)."""
        shape, flat = piece.shape[:3], piece.reshape(-1, piece.shape[-1])
        leaves, scale, low, high = self._measure_flat(flat, work, None)
        odd = None
        if not (np.isfinite(low) & np.isfinite(high)).all():  # a NaN is the minimum of whatever it is among
            odd, counting = _count_odd(flat), np.isfinite(flat)
            low = np.minimum.reduce(np.where(np.isnan(flat), np.inf, flat), axis=-1)
            high = np.maximum.reduce(np.where(np.isnan(flat), -np.inf, flat), axis=-1)
            leaves, scale, _, _ = self._measure_flat(
                np.where(counting, flat, flat.dtype.type(0)), work, counting
            )
        groups = shape[0]

        def per_group(ufunc: np.ufunc, values: NDArray[Any]) -> Floats:
            reduced: Floats = ufunc.reduce(values.reshape(groups, -1), axis=-1).astype(np.float64)
            return reduced + 0.0  # of 0 and -0 either is the least, by the order in which they are looked at

        return Batch(
            np.zeros(0, np.int64),
            leaves.reshape(shape),
            None if scale is None else scale.reshape(shape),
            per_group(np.minimum, low),
            per_group(np.maximum, high),
            None if odd is None else Odd(*(np.add.reduce(a.reshape(groups, -1), axis=-1) for a in odd)),
            whole=False,
        )

    def _measure_flat(
        self, flat: NDArray[Any], work: Workspace, counting: NDArray[np.bool_] | None
    ) -> tuple[Leaves, Integers | None, NDArray[Any], NDArray[Any]]:
        """Return leaves, their scale if they have one, and their extremes."""
        if self._narrow:
            leaves, low, high = measure_narrow_leaves(flat, work, need_sum=self._need_sum, counting=counting)
            return leaves, None, low, high
        low, high = np.minimum.reduce(flat, axis=-1), np.maximum.reduce(flat, axis=-1)
        leaves = measure_leaves(flat, work, need_sum=self._need_sum, counting=counting)
        chosen = leaves.extreme
        if not chosen.any():
            return leaves, None, low, high
        chosen = chosen.copy()
        scale = np.zeros(len(flat), dtype=np.int64)
        scale[chosen] = choose_scale(np.maximum(np.abs(low[chosen]), np.abs(high[chosen])))
        again = np.ldexp(flat[chosen], scale[chosen][:, None])
        part = None if counting is None else counting[chosen]
        leaves.put(chosen, measure_leaves(again, work, need_sum=self._need_sum, counting=part))
        return leaves, scale, low, high

    def _number(self, tile: Slices) -> Integers:
        """Return the numbers of a tile's groups."""
        numbers = np.zeros(1, dtype=np.int64)
        for run in self._geometry.kept_runs:
            part = np.arange(tile[run].start, tile[run].stop)
            numbers = (numbers[:, None] * self._geometry.dims[run] + part).reshape(-1)
        return numbers


def survey(
    source: Source,
    geometry: Geometry,
    hear: Callable[[Batch], None],
    effort: Effort,
    *,
    need_sum: bool,
) -> None:
    """Read a source once and tell of every tile; the source is closed."""
    with contextlib.closing(source):
        Survey(geometry, source, hear, effort, need_sum=need_sum).do()


def _count_odd(flat: NDArray[Any]) -> Odd:
    def count(marks: NDArray[np.bool_]) -> Integers:
        counts: Integers = np.add.reduce(marks, axis=-1, dtype=np.int64)
        return counts

    return Odd(count(np.isnan(flat)), count(flat == np.inf), count(flat == -np.inf))


def _join(parts: list[Batch], groups: Integers, *, whole: bool) -> Batch:
    """Join the full leaves and the shorter last ones, if there are any; their order is not told."""
    count = len(groups)
    flat = [(part.leaves.reshape((count, -1)), part) for part in parts]
    if len(flat) == 1:
        leaves, part = flat[0]
        scale = None if part.scale is None else part.scale.reshape(count, -1)
        return part._replace(groups=groups, leaves=leaves, scale=scale, whole=whole)
    joined = Leaves(
        *(
            np.concatenate(arrays, axis=-1)
            for arrays in zip(*(leaves.arrays() for leaves, _ in flat), strict=True)
        )
    )
    scale = None
    if any(part.scale is not None for part in parts):
        scale = np.concatenate(
            [
                np.zeros(leaves.count.shape, np.int64) if part.scale is None else part.scale.reshape(count, -1)
                for leaves, part in flat
            ],
            axis=-1,
        )
    odds = [part.odd for part in parts if part.odd is not None]
    odd = Odd(*(sum(arrays[1:], arrays[0]) for arrays in zip(*odds, strict=True))) if odds else None
    low = np.minimum.reduce([part.low for part in parts])
    high = np.maximum.reduce([part.high for part in parts])
    return Batch(groups, joined, scale, low, high, odd, whole)
