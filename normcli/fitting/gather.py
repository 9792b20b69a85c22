"""The sums of a tensor, which is read once, tile by tile."""

from __future__ import annotations

import math
import operator
from typing import TYPE_CHECKING, Any

import numpy as np

from normcli.engine.blocks import open_source
from normcli.engine.geometry import Geometry
from normcli.engine.passes import Run
from normcli.fitting.subject import find_batch, find_positions, has_images
from normcli.fitting.sums import Sums, solve_deviations
from normcli.numerics.fixed import Fixed
from normcli.numerics.leaves import Leaves
from normcli.numerics.moments import merge_leaves
from normcli.numerics.pairs import divide_by_count, pair_root, two_prod, two_square

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from normcli.dtypes import Floats, Integers
    from normcli.engine.survey import Batch
    from normcli.engine.walk import Effort
    from normcli.norms.plan import Plan


_ADDED_AT_ONCE = 1 << 12
"""Leaves of small tiles are added together from this number on, as each call takes its time."""


def gather(plan: Plan, values: NDArray[Any], effort: Effort) -> Sums:
    """Return the sums of a tensor's groups.

    Where a sample has several values of a group, its leaves are its own: so what is kept of it depends on its
    values alone, and neither on the other samples nor on the file they came in.

    Parameters
    ----------
    plan : Plan
        Of the tensor's shape; its groups extend over the batch axis.
    values : ndarray
    effort : Effort

    Notes
    -----
    Elsewhere (the columns of a table) leaves run over samples. What is kept of a tensor still depends on it
    alone; but rows dealt otherwise to files make other leaves, whose squares are good to 2⁻⁶⁸: once in some ten
    thousand columns the variance is then rounded to the other side.
    """
    sums = Sums.zeros(plan.grid.group_count)
    if values.size == 0:
        return sums
    positions = find_positions(plan)
    geometry = Geometry.of(plan.grid.view_shape, positions or plan.grid.view_axes)
    gatherer = _Gatherer(plan, geometry, sums, by_sample=bool(positions))
    with open_source(values, plan, geometry) as source, np.errstate(all="ignore"):
        Run(plan, geometry, source, None, effort=effort).survey(gatherer.add)
        gatherer.flush()
    return sums


class _Gatherer:
    """Adds the batches of a survey to sums."""

    def __init__(self, plan: Plan, geometry: Geometry, sums: Sums, *, by_sample: bool) -> None:
        self.sums = sums
        self._images = has_images(plan)
        self._leaf_count = len(geometry.leaf_sizes)
        self._plain: list[Batch] = []
        self._pending: dict[int, list[tuple[Leaves, Integers | None]]] = {}
        self._samples, self._inner = 1, 1
        if by_sample:
            batch = find_batch(plan)
            self._samples = plan.grid.view_shape[batch]
            kept = [
                axis for axis in range(batch + 1, len(plan.grid.view_shape)) if axis not in plan.grid.view_axes
            ]
            self._inner = math.prod(plan.grid.view_shape[axis] for axis in kept)

    def add(self, batch: Batch) -> None:
        """Add a tile, now or later together with others: sums are exact, so the order does not matter."""
        if batch.not_finite is not None or batch.scale is not None or (self._images and not batch.whole):
            self._add(batch)
            return
        if self._plain and self._plain[0].leaves.count.shape[-1] != batch.leaves.count.shape[-1]:
            self.flush()
        self._plain.append(batch)
        if sum(one.leaves.count.size for one in self._plain) >= _ADDED_AT_ONCE:
            self.flush()

    def flush(self) -> None:
        """Add the tiles that have been waiting."""
        waiting, self._plain = self._plain, []
        if waiting:
            self._add(_join(waiting))

    def _add(self, batch: Batch) -> None:
        sums = self.sums
        outer, inner = np.divmod(batch.groups, self._samples * self._inner)
        groups = outer * self._inner + inner % self._inner
        np.minimum.at(sums.low, groups, batch.low)
        np.maximum.at(sums.high, groups, batch.high)
        np.add.at(sums.count, groups, np.add.reduce(batch.leaves.count, axis=-1).astype(np.int64))
        if batch.not_finite is not None:
            for mine, found in zip((sums.nan, sums.above, sums.below), batch.not_finite, strict=True):
                np.add.at(mine, groups, found)
        add_leaves(sums.total, sums.square, groups, batch.leaves, batch.scale)
        if self._images:
            self._add_batch_images(groups, batch)

    def _add_batch_images(self, groups: Integers, batch: Batch) -> None:
        if batch.whole or batch.leaves.count.shape[-1] == self._leaf_count:
            self._add_images(groups, batch.leaves, batch.scale)
            return
        for row, number in enumerate(batch.groups.tolist()):
            parts = self._pending.setdefault(number, [])
            scale = None if batch.scale is None else batch.scale[row : row + 1]
            parts.append((batch.leaves.map(operator.itemgetter(slice(row, row + 1))), scale))
            if sum(leaves.count.shape[-1] for leaves, _ in parts) == self._leaf_count:
                self._add_parts(groups[row : row + 1], self._pending.pop(number))

    def _add_parts(self, group: Integers, parts: list[tuple[Leaves, Integers | None]]) -> None:
        """Add the deviation of a sample whose leaves lay in several tiles."""
        total, square = Fixed.zeros(1), Fixed.zeros(1)
        here = np.zeros(1, dtype=np.int64)
        for leaves, scale in parts:
            add_leaves(total, square, here, leaves, scale)
        count = np.array([sum(float(leaves.count.sum()) for leaves, _ in parts)])
        self._add_deviations(group, solve_deviations(total, square, count), count)

    def _add_images(self, groups: Integers, leaves: Leaves, scale: Integers | None) -> None:
        count = np.add.reduce(leaves.count, axis=-1)
        if scale is None:
            some = np.maximum(count, 1.0)
            moments = merge_leaves(leaves, some, centred=True, short=False)
            deviations = np.asarray(pair_root(divide_by_count(moments.m2, some)).hi)
        else:
            total, square = Fixed.zeros(len(groups)), Fixed.zeros(len(groups))
            add_leaves(total, square, np.arange(len(groups)), leaves, scale)
            deviations = solve_deviations(total, square, count)
        self._add_deviations(groups, deviations, count)

    def _add_deviations(self, groups: Integers, deviations: Floats, count: Floats) -> None:
        some = count > 0
        self.sums.deviation.add(groups[some], deviations[some][:, None])
        np.add.at(self.sums.images, groups[some], 1)


def _join(batches: list[Batch]) -> Batch:
    """Return tiles of finite values, of as many leaves a group, as one."""
    if len(batches) == 1:
        return batches[0]
    columns = zip(*(batch.leaves.arrays() for batch in batches), strict=True)
    groups, low, high = (
        np.concatenate(arrays)
        for arrays in zip(*((one.groups, one.low, one.high) for one in batches), strict=True)
    )
    leaves = Leaves(*(np.concatenate(column) for column in columns))
    return batches[0]._replace(groups=groups, leaves=leaves, low=low, high=high)


def add_leaves(total: Fixed, square: Fixed, groups: Integers, leaves: Leaves, scale: Integers | None) -> None:
    """Add leaves, of shape (groups, leaves), to the sums of groups: exactly what their records hold.

    Squares about a shift c become raw ones, Σx² = Σ(x − c)² + 2c Σx − n c², whose digits cancel later without
    any loss: the sum is the very one that the mean is made of.
    """
    if scale is not None and scale.any():
        for k in np.unique(scale).tolist():
            _add_scaled(total, square, groups, _keep(leaves, scale == k), k)
        return
    _add_scaled(total, square, groups, leaves, 0)


def _add_scaled(total: Fixed, square: Fixed, groups: Integers, leaves: Leaves, k: int) -> None:
    """Add leaves of values times 2^k."""
    total.add(groups, np.concatenate([leaves.sum_hi, leaves.sum_lo], axis=-1), -k)
    square.add(groups, np.concatenate([leaves.square_hi, leaves.square_lo], axis=-1), -2 * k)
    shifted = leaves.shift.any(axis=-1)
    if not shifted.any():
        return
    part = leaves.map(lambda a: a[shifted])
    c, n = part.shift, part.count
    terms = [*two_prod(2.0 * c, part.sum_hi), *two_prod(2.0 * c, part.sum_lo)]
    for piece in two_square(c):
        terms += [-a for a in two_prod(n, piece)]
    square.add(groups[shifted], np.concatenate(terms, axis=-1), -2 * k)


def _keep(leaves: Leaves, chosen: NDArray[np.bool_]) -> Leaves:
    """Return leaves with zeros for those that are not chosen."""
    return leaves.map(lambda a: np.where(chosen, a, a.dtype.type(0)))
