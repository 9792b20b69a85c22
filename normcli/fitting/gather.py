"""The sums of a tensor, which is read once, tile by tile."""

from __future__ import annotations

import itertools
import math
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from normcli.engine.passes import Passes
from normcli.engine.tiling.blocks import open_source
from normcli.engine.tiling.geometry import Geometry
from normcli.fitting.subject import find_batch, find_positions, has_images
from normcli.fitting.sums import Sums, find_deviations, round_deviations
from normcli.numerics.elements.compiled_kernel import measure_rows
from normcli.numerics.pairs import Pair, lower_at, raise_at
from normcli.numerics.rational import ExactSums, make_fraction, sum_exactly
from normcli.numerics.rounding import widen_to_pair
from normcli.numerics.statistics.moments import find_moments
from normcli.numerics.sums.leaf_records import MAX_LEAF, join
from normcli.tuples import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from normcli.dtypes import Floats, Integers, Selected
    from normcli.engine.walk import Effort
    from normcli.norms.plan import Plan
    from normcli.numerics.sums.leaf_records import Leaves
    from normcli.numerics.workspace import Workspace


class SharedSums(NamedTuple):
    """Existing sums, to which a tensor's groups are added; several groups may go to one sum.

    Parameters
    ----------
    sums : Sums
    numbers : ndarray of int
        For each group of the tensor, the number of its sum.
    """

    sums: Sums
    numbers: NDArray[np.intp]


def gather(
    plan: Plan, values: NDArray[Any], effort: Effort, *, apart: bool = False, shared: SharedSums | None = None
) -> Sums:
    """Return the exact sums of a tensor's groups, of which statistics are calculated.

    Groups are cut into leaves, short rows of values that are summed at once. If a sample has several values of
    a group, each leaf lies in one sample, so that the sample's standard deviation follows from its own leaves.

    Parameters
    ----------
    plan : Plan
        The plan for the tensor's shape; its groups extend over the batch axis unless `apart`.
    values : ndarray
    effort : Effort
    apart : bool
        True for a block that holds only a part of each of its samples. The plan then does not reduce the batch
        axis, so that each sample has sums of its own, and no standard deviations of samples are calculated.
    shared : SharedSums or None
        Sums to which the groups are added in place, and which are returned; None: new sums, one for each group.
    """
    sums = Sums.zeros(plan.grid.group_count) if shared is None else shared.sums
    if values.size == 0:
        return sums
    positions = () if apart else find_positions(plan)
    geometry = Geometry.of(plan.grid.view_shape, positions or plan.grid.view_axes)
    numbers = None if shared is None else shared.numbers
    sample_size = geometry.count if has_images(plan) and not apart else 0
    gatherer = _Gatherer(plan, sums, numbers, by_sample=bool(positions), sample_size=sample_size)
    with open_source(values, plan, geometry) as source, np.errstate(all="ignore"):
        Passes(plan, geometry, source, None, effort=effort).survey(measure_sums, gatherer.add)
        gatherer.finish()
    return sums


_LEAVES = 1 << 14
"""The number of leaves whose sums are added at once; with fewer, the calls would take longer than the sums."""


class _Gatherer:
    """Adds measured leaves, the short rows that groups are cut into, to exact sums, in any order.

    `finish` has to be called after the last `add`.

    Parameters
    ----------
    plan : Plan
    sums : Sums
        The sums, which are changed in place.
    numbers : ndarray of int or None
        For each group of the tensor, the index in `sums` to which it is added; None: its own number.
    by_sample : bool
        Whether no leaf holds values of two samples. `LeafSums.groups` then numbers pairs of sample and group.
    sample_size : int
        The number of values of a sample's group whose standard deviation is added to the sum of its group's
        deviations; 0 if none are.
    """

    def __init__(
        self, plan: Plan, sums: Sums, numbers: NDArray[np.intp] | None, *, by_sample: bool, sample_size: int
    ) -> None:
        self.sums, self._numbers, self._sample_size = sums, numbers, sample_size
        self._batches: list[LeafSums] = []
        self._leaves = 0
        self._pending: dict[int, Sums] = {}
        self._samples, self._inner = 1, 1
        if by_sample:
            batch = find_batch(plan)
            self._samples = plan.grid.view_shape[batch]
            behind = range(batch + 1, len(plan.grid.view_shape))
            self._inner = math.prod(plan.grid.view_shape[a] for a in behind if a not in plan.grid.view_axes)

    def add(self, batch: LeafSums) -> None:
        """Add the sums of some leaves, now or together with those of later calls."""
        self._batches.append(batch)
        self._leaves += len(batch.groups)
        if self._leaves >= max(_LEAVES, len(self.sums.count)):
            self.finish()

    def finish(self) -> None:
        """Add all leaves that were not added yet."""
        if self._batches:
            self._add_now(join_sums(self._batches))
        self._batches, self._leaves = [], 0

    def _add_now(self, batch: LeafSums) -> None:
        """Add the sums of leaves to those of their groups, and the deviations of complete samples."""
        outer, inner = np.divmod(batch.groups, self._samples * self._inner)
        groups = outer * self._inner + inner % self._inner
        groups = groups if self._numbers is None else self._numbers[groups]
        _add_leaves(self.sums, groups, batch)
        if 0 < self._sample_size <= MAX_LEAF:  # each sample is one leaf
            self.sums.add_deviations(groups, _find_leaf_deviations(batch), batch.leaves.count)
        elif self._sample_size:
            self._add_samples(groups, batch)

    def _add_samples(self, groups: Integers, batch: LeafSums) -> None:
        """Add the standard deviations of samples, each with the last of its leaves.

        Sums of a sample of which leaves are still to come are stored until then.

        Parameters
        ----------
        groups : ndarray of int, shape (leaves,)
            The index in `sums` of each leaf's group.
        batch : LeafSums
        """
        numbers, first, place = np.unique(batch.groups, return_index=True, return_inverse=True)
        samples = Sums.zeros(len(numbers))
        _add_leaves(samples, place, batch)
        for row in np.flatnonzero(samples.size < self._sample_size).tolist():
            before = self._pending.pop(int(numbers[row]), None)
            if before is not None:
                samples.merge(before, np.array([row]))
            part = samples.take(np.array([row]))
            if part.size < self._sample_size:
                self._pending[int(numbers[row])] = part
        whole = np.flatnonzero(samples.size == self._sample_size)
        done, count = samples.take(whole), samples.count[whole].astype(np.float64)
        self.sums.add_deviations(groups[first[whole]], find_deviations(done.total, done.square, count), count)


def _add_leaves(sums: Sums, groups: Integers, batch: LeafSums) -> None:
    """Add the sums of leaves, in place, to the sums of their groups, whose numbers are in `groups`."""
    lower_at(sums.low, groups, batch.low)
    raise_at(sums.high, groups, batch.high)
    np.add.at(sums.count, groups, batch.leaves.count.astype(np.int64))
    for name in ("nan", "above", "below"):
        np.add.at(getattr(sums, name), groups, getattr(batch, name))
    for fixed, terms in ((sums.total, batch.leaves.sums), (sums.square, batch.leaves.squares)):
        fixed.add(groups, np.stack([term for term in terms if term.any()] or terms[:1], axis=-1))
    for row, exact in batch.extremes:
        sums.total.add_fraction(int(groups[row]), exact.total)
        sums.square.add_fraction(int(groups[row]), exact.square)


def _find_leaf_deviations(batch: LeafSums) -> Floats:
    """Return the deviation √(Σ(x − mean)² / n) of each leaf, rounded once; 0 for a leaf without values."""
    exact = dict(batch.extremes)

    def recall(row: int) -> ExactSums:
        if row in exact:
            return exact[row]
        total, square = (
            sum((make_fraction(term[row]) for term in terms), make_fraction(0))
            for terms in (batch.leaves.sums, batch.leaves.squares)
        )
        return ExactSums(int(batch.leaves.count[row]), total, square)

    n = np.maximum(batch.leaves.count, 1.0)
    return round_deviations(find_moments(batch.leaves, n, recall, centred=True), batch.leaves.count)


class LeafSums(NamedTuple):
    """The measurements of some leaves, one number for each.

    Parameters
    ----------
    groups : ndarray of int, shape (leaves,)
        The number of each leaf's group, in C order over the axes that are not reduced.
    leaves : Leaves
        The sums of the finite values; zeros, except for the count, in extreme leaves.
    extremes : list of (int, ExactSums)
        The sums of the extreme leaves, whose values are too large or too small for floats; each with its row.
    low, high : Pair
        The least and the largest value that is not NaN; inf and -inf in leaves without such a value.
    nan, above, below : ndarray of int
        The numbers of values that are NaN, inf and -inf.
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
    """Return the leaves of one or more batches as one batch, in order."""
    if len(batches) == 1:
        return batches[0]
    groups, leaves, extremes, low, high, *counts = zip(*batches, strict=True)
    firsts = itertools.accumulate(map(len, groups), initial=0)
    exact = [(first + row, sums) for first, rows in zip(firsts, extremes, strict=False) for row, sums in rows]
    low, high = (Pair(*map(np.concatenate, zip(*pairs, strict=True))) for pairs in (low, high))
    return LeafSums(np.concatenate(groups), join(leaves), exact, low, high, *map(np.concatenate, counts))


def measure_sums(rows: NDArray[Any], groups: Integers, work: Workspace, *, need_sum: bool) -> LeafSums:
    """Return the measurements of leaves, one in each row.

    Parameters
    ----------
    rows : ndarray, shape (leaves, values)
        Floats of up to 64 bits, or integers of 64.
    groups : ndarray of int, shape (leaves,)
        The number of each leaf's group.
    work : Workspace
    need_sum : bool
        Whether Σx is needed; False for norms that do not centre, where it is 0.
    """
    low, high = np.minimum.reduce(rows, axis=-1), np.maximum.reduce(rows, axis=-1)
    selected = None
    nan = above = below = np.zeros(len(rows), dtype=np.int64)
    if not (np.isfinite(low) & np.isfinite(high)).all():  # `minimum` is NaN if a value is
        selected, is_nan = np.isfinite(rows), np.isnan(rows)
        low = np.minimum.reduce(np.where(is_nan, np.inf, rows), axis=-1)
        high = np.maximum.reduce(np.where(is_nan, -np.inf, rows), axis=-1)
        masks = (is_nan, rows == np.inf, rows == -np.inf)
        nan, above, below = (np.add.reduce(mask, axis=-1, dtype=np.int64) for mask in masks)
        rows = np.where(selected, rows, rows.dtype.type(0))
    leaves = measure_rows(rows, work, selected, need_sum=need_sum).require_exact()
    extremes = [(row, _sum_row(rows, selected, row)) for row in np.flatnonzero(leaves.extreme).tolist()]
    if not need_sum:
        extremes = [(row, replace(sums, total=make_fraction(0))) for row, sums in extremes]
    # Pairs hold 0, never −0: otherwise the order would decide which of the two is the least.
    ends = widen_to_pair(low), widen_to_pair(high)
    return LeafSums(groups, leaves, extremes, *ends, nan, above, below)


def _sum_row(rows: NDArray[Any], selected: Selected | None, row: int) -> ExactSums:
    """Return the exact sums of one row's selected values."""
    values = rows[row] if selected is None else rows[row][selected[row]]
    return sum_exactly(values)
