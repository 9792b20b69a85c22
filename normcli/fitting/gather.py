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
from normcli.numerics.moments import merge_leaves
from normcli.numerics.pairs import divide_by_count, pair_root, two_prod, two_square

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from normcli.dtypes import Floats, Integers, Selected
    from normcli.engine.survey import Batch
    from normcli.engine.walk import Effort
    from normcli.norms.plan import Plan
    from normcli.numerics.leaves import Leaves


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
    return sums


class _Gatherer:
    """Adds the batches of a survey to sums: exactly, so that their order does not matter."""

    def __init__(self, plan: Plan, geometry: Geometry, sums: Sums, *, by_sample: bool) -> None:
        self.sums = sums
        self._images = has_images(plan)
        self._leaf_count = len(geometry.leaf_sizes)
        self._pending: dict[int, tuple[Fixed, Fixed, list[float]]] = {}
        self._samples, self._inner = 1, 1
        if by_sample:
            batch = find_batch(plan)
            self._samples = plan.grid.view_shape[batch]
            behind = range(batch + 1, len(plan.grid.view_shape))
            self._inner = math.prod(plan.grid.view_shape[a] for a in behind if a not in plan.grid.view_axes)

    def add(self, batch: Batch) -> None:
        """Add a tile."""
        sums = self.sums
        outer, inner = np.divmod(batch.groups, self._samples * self._inner)
        groups = outer * self._inner + inner % self._inner
        np.minimum.at(sums.low, groups, batch.low)
        np.maximum.at(sums.high, groups, batch.high)
        count = np.add.reduce(batch.leaves.count, axis=-1)
        for mine, found in (
            (sums.count, count.astype(np.int64)),
            (sums.nan, batch.nan),
            (sums.above, batch.above),
            (sums.below, batch.below),
        ):
            np.add.at(mine, groups, found)
        add_leaves(sums.total, sums.square, groups, batch.leaves, batch.scale)
        if not self._images:
            return
        if not batch.whole and batch.leaves.count.shape[-1] != self._leaf_count:
            self._add_parts(groups, batch)
        elif batch.scale.any():
            total, square = Fixed.zeros(len(groups)), Fixed.zeros(len(groups))
            add_leaves(total, square, np.arange(len(groups)), batch.leaves, batch.scale)
            self._add_deviations(groups, solve_deviations(total, square, count), count)
        else:
            some = np.maximum(count, 1.0)
            moments = merge_leaves(batch.leaves, some, centred=True, short=False)
            root = pair_root(divide_by_count(moments.m2, some))
            self._add_deviations(groups, np.asarray(root.hi), count)

    def _add_parts(self, groups: Integers, batch: Batch) -> None:
        """Keep some leaves of each sample, and add its deviation once all of its leaves are there."""
        for row, number in enumerate(batch.groups.tolist()):
            total, square, counts = self._pending.setdefault(number, (Fixed.zeros(1), Fixed.zeros(1), []))
            here = slice(row, row + 1)
            leaves = batch.leaves.map(operator.itemgetter(here))
            add_leaves(total, square, np.zeros(1, dtype=np.int64), leaves, batch.scale[here])
            counts += leaves.count[0].tolist()
            if len(counts) == self._leaf_count:
                del self._pending[number]
                count = np.array([sum(counts)])
                self._add_deviations(groups[here], solve_deviations(total, square, count), count)

    def _add_deviations(self, groups: Integers, deviations: Floats, count: Floats) -> None:
        some = count > 0
        self.sums.deviation.add(groups[some], deviations[some][:, None])
        np.add.at(self.sums.images, groups[some], 1)


def add_leaves(total: Fixed, square: Fixed, groups: Integers, leaves: Leaves, scale: Integers) -> None:
    """Add leaves, of shape (groups, leaves), to the sums of groups: exactly what their records hold.

    Squares about a shift c become raw ones, Σx² = Σ(x − c)² + 2c Σx − n c², whose digits cancel later without
    any loss: the sum is the very one that the mean is made of.
    """
    if not scale.any():
        _add_scaled(total, square, groups, leaves, 0)
        return
    for k in np.unique(scale).tolist():
        _add_scaled(total, square, groups, _keep(leaves, scale == k), k)


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


def _keep(leaves: Leaves, chosen: Selected) -> Leaves:
    """Return leaves with zeros for those that are not chosen."""
    return leaves.map(lambda a: np.where(chosen, a, a.dtype.type(0)))
