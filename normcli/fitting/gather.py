"""The sums of a tensor, which is read once, tile by tile."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from normcli.engine.blocks import open_source
from normcli.engine.geometry import Geometry
from normcli.engine.passes import Passes
from normcli.engine.survey import join_batches
from normcli.fitting.subject import find_batch, find_positions, has_images
from normcli.fitting.sums import Sums, find_deviations, make_exact, round_deviations
from normcli.numerics.pairs import lower_at, raise_at
from normcli.numerics.statistics.moments import find_moments
from normcli.numerics.sums.fixed_point import Fixed

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from normcli.dtypes import Floats, Integers
    from normcli.engine.survey import TileSums
    from normcli.engine.walk import Effort
    from normcli.norms.plan import Plan
    from normcli.numerics.rational import ExactSums


def gather(plan: Plan, values: NDArray[Any], effort: Effort, *, apart: bool = False) -> Sums:
    """Return the sums of a tensor's groups.

    Where a sample has several values of a group, its leaves are its own: so what is kept of it depends on its
    values alone, and neither on the other samples nor on the file they came in.

    Parameters
    ----------
    plan : Plan
        Of the tensor's shape; its groups extend over the batch axis.
    values : ndarray
    effort : Effort
    apart : bool
        Each sample's are groups of their own, and the plan keeps the batch axis: of a block of a tensor, which
        does not hold all values of its samples, whose deviations are found later.
    """
    sums = Sums.zeros(plan.grid.group_count)
    if values.size == 0:
        return sums
    positions = () if apart else find_positions(plan)
    geometry = Geometry.of(plan.grid.view_shape, positions or plan.grid.view_axes)
    gatherer = _Gatherer(plan, geometry, sums, by_sample=bool(positions), images=has_images(plan) and not apart)
    with open_source(values, plan, geometry) as source, np.errstate(all="ignore"):
        Passes(plan, geometry, source, None, effort=effort).survey(gatherer.add)
        gatherer.finish()
    return sums


_LEAVES = 1 << 14
"""Leaves whose sums are added at once: so many that not the number of tiles says how long it takes."""


class _Gatherer:
    """Adds the batches of a survey to sums: exactly, so that their order does not matter."""

    def __init__(self, plan: Plan, geometry: Geometry, sums: Sums, *, by_sample: bool, images: bool) -> None:
        self.sums = sums
        self._images = images
        self._leaf_count = geometry.leaf_count
        self._batches: list[TileSums] = []
        self._leaves = 0
        self._pending: dict[int, tuple[Fixed, Fixed, list[float]]] = {}
        self._samples, self._inner = 1, 1
        if by_sample:
            batch = find_batch(plan)
            self._samples = plan.grid.view_shape[batch]
            behind = range(batch + 1, len(plan.grid.view_shape))
            self._inner = math.prod(plan.grid.view_shape[a] for a in behind if a not in plan.grid.view_axes)

    def add(self, batch: TileSums) -> None:
        """Add a tile, now or together with others."""
        if self._batches and not self._batches[-1].is_like(batch):
            self.finish()
        self._batches.append(batch)
        self._leaves += batch.leaves.count.size
        if self._leaves >= _LEAVES:
            self.finish()

    def finish(self) -> None:
        """Add the tiles that wait for others."""
        if self._batches:
            self._add_now(join_batches(self._batches))
        self._batches, self._leaves = [], 0

    def _add_now(self, batch: TileSums) -> None:
        sums = self.sums
        outer, inner = np.divmod(batch.groups, self._samples * self._inner)
        groups = outer * self._inner + inner % self._inner
        lower_at(sums.low, groups, batch.low)
        raise_at(sums.high, groups, batch.high)
        count = np.add.reduce(batch.leaves.count, axis=-1)
        for mine, found in (
            (sums.count, count.astype(np.int64)),
            (sums.nan, batch.nan),
            (sums.above, batch.above),
            (sums.below, batch.below),
        ):
            np.add.at(mine, groups, found)
        is_leaf = batch.whole and batch.leaves.count.shape[-1] == 1
        if is_leaf or not self._images or not (batch.whole or batch.leaves.count.shape[-1] == self._leaf_count):
            add_batch(sums.total, sums.square, groups, batch)
            if self._images and is_leaf:
                self.sums.add_deviations(groups, _find_leaf_deviations(batch), count)
            elif self._images:
                self._add_parts(groups, batch)
            return
        total, square = Fixed.zeros(len(groups)), Fixed.zeros(len(groups))
        add_batch(total, square, np.arange(len(groups)), batch)
        sums.total.gather(total, groups)
        sums.square.gather(square, groups)
        self.sums.add_deviations(groups, find_deviations(total, square, count), count)

    def _add_parts(self, groups: Integers, batch: TileSums) -> None:
        """Keep some leaves of each sample, and add its deviation once all of its leaves are there."""
        for row, number in enumerate(batch.groups.tolist()):
            total, square, counts = self._pending.setdefault(number, (Fixed.zeros(1), Fixed.zeros(1), []))
            add_batch(total, square, np.zeros(1, dtype=np.int64), batch.take(row))
            counts += batch.leaves.count[row].tolist()
            if len(counts) == self._leaf_count:
                del self._pending[number]
                count = np.array([sum(counts)])
                self.sums.add_deviations(groups[row : row + 1], find_deviations(total, square, count), count)


def _find_leaf_deviations(batch: TileSums) -> Floats:
    """Return the deviation of each group of a batch whose groups are a leaf each, as `find_deviations`."""

    def recall(row: int) -> ExactSums:
        total, square = Fixed.zeros(1), Fixed.zeros(1)
        add_batch(total, square, np.zeros(1, dtype=np.int64), batch.take(row))
        return make_exact(total, square, batch.leaves.count[row].astype(np.int64))[0]

    leaves = batch.leaves.reshape((len(batch.groups),))
    n = np.maximum(leaves.count, 1.0)
    return round_deviations(find_moments(leaves, n, recall, centred=True), leaves.count)


def add_batch(total: Fixed, square: Fixed, groups: Integers, batch: TileSums) -> None:
    """Add what a tile holds to the sums of groups, exactly.

    Where the tile's groups go is said by their numbers among those of the sums.
    """
    for fixed, terms in ((total, batch.leaves.sums), (square, batch.leaves.squares)):
        fixed.add(groups, np.concatenate([term for term in terms if term.any()] or terms[:1], axis=-1))
    for row, sums in batch.extremes:
        total.add_integer(int(groups[row]), sums.total, sums.exponent)
        square.add_integer(int(groups[row]), sums.square, 2 * sums.exponent)
