"""Statistics from blocks of a tensor: boxes that together hold each value once, in any order, on any machine.

A block's sums are those of its own groups. Blocks that lie along a group add up; of a norm whose samples have
deviations of their own, those that hold parts of the same samples are added first, sample by sample.
"""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Any

import numpy as np

from normcli.errors import DataError
from normcli.fitting.gather import gather
from normcli.fitting.statistics import Stats
from normcli.fitting.subject import has_images
from normcli.fitting.sums import Sums, find_deviations, require_no_nan
from normcli.norms.plan import make_plan
from normcli.norms.request import NanRule
from normcli.tuples import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable

    from numpy.typing import NDArray

    from normcli.engine.walk import Effort
    from normcli.fitting.subject import Subject
    from normcli.norms.plan import Plan

Box = tuple[slice, ...]
"""The position of a block in a tensor: a slice for each axis, with start and stop, without a step."""


class Part(NamedTuple):
    """The sums of one block of a tensor, or of several blocks added up.

    Parameters
    ----------
    box : tuple of slice
        The block's slice along each axis of the tensor; for several blocks, the whole axis if it is reduced.
    sums : Sums
        One row for each group of the block; or one for each group in each sample (`Whole.find_slab`).
    """

    box: Box
    sums: Sums


class Whole(NamedTuple):
    """A tensor that is fitted in blocks: the norm, the tensor's shape and dtype, and the rule for NaN.

    Parameters
    ----------
    subject : Subject
        The norm to fit, with the dtype and columns of the tensor.
    shape : tuple of int
        The shape of the whole tensor.
    nan : {"propagate", "omit", "raise"}
    name : str
        The tensor's name in messages.
    """

    subject: Subject
    shape: tuple[int, ...]
    nan: str = NanRule.PROPAGATE.value
    name: str = "x"

    @property
    def plan(self) -> Plan:
        """The plan for the whole tensor."""
        return _plan_whole(self.subject, self.shape)

    def gather(self, box: Box, values: NDArray[Any], effort: Effort) -> Part:
        """Return the sums of a block, `tensor[box]`; raise `DataError` if it holds a NaN that is refused."""
        apart = bool(self.find_slab(box))
        part = Part(box, gather(self._plan_block(values.shape, apart=apart), values, effort, apart=apart))
        if self.nan == NanRule.RAISE:
            require_no_nan(part.sums, self.name)
        return part

    def add(self, parts: Iterable[Part]) -> Part:
        """Return the sum of parts; the given parts are left unchanged.

        The parts must have the same groups. Together they must hold all values of each of their samples, as the
        standard deviation of each sample is calculated from the sum of its parts.

        Parameters
        ----------
        parts : iterable of Part
            Any two parts whose samples have separate rows have either the same samples, from the same start to
            the same stop, or no sample in common.

        Raises
        ------
        DataError
            If there is no part.
        """
        grid = self.plan.grid
        slabs: dict[tuple[tuple[int, int], ...], Part] = {}
        for part in parts:
            slab = self.find_slab(part.box)
            if slab in slabs:
                slabs[slab].sums.merge(part.sums)
            else:  # a copy, as a task that is run again needs the old sums
                slabs[slab] = part._replace(sums=part.sums.copy())
        if not slabs:
            raise DataError("there is no block to fit")
        total, *others = (self._close(part) if slab else part.sums for slab, part in slabs.items())
        for sums in others:
            total.merge(sums)
        every = tuple(
            slice(0, length) if axis in grid.axes else cut
            for axis, (length, cut) in enumerate(zip(self.shape, part.box, strict=True))
        )
        return Part(every, total)

    def join(self, parts: Iterable[Part]) -> Stats:
        """Return the statistics of the tensor from the parts of blocks that together hold each value once.

        The parts are left unchanged; groups of which no part has values have sums and counts of 0.
        """
        plan = self.plan
        by_groups: dict[tuple[tuple[int, int], ...], list[Part]] = defaultdict(list)
        for part in parts:
            by_groups[list_ends(part.box, plan.grid.kept)].append(part)
        sums = Sums.zeros(plan.grid.group_count)
        for some in by_groups.values():
            added = self.add(some)
            sums.merge(added.sums, number_groups(plan, added.box))
        samples = self.shape[plan.grid.layout.batch or 0]
        return Stats(self.subject, self.nan == NanRule.OMIT, 1, samples, sums)

    def find_slab(self, box: Box) -> tuple[tuple[int, int], ...]:
        """Return (start, stop) of a block's samples, as a tuple of one, if each needs sums of its own; else ().

        It does if the standard deviation of each sample is measured (`has_images`), and the block holds only a
        part of each sample.
        """
        plan = self.plan
        batch = plan.grid.layout.batch or 0
        inner = (axis for axis in plan.grid.axes if axis != batch)
        is_part = any(box[axis] != slice(0, self.shape[axis]) for axis in inner)
        return list_ends(box, (batch,)) if is_part and has_images(plan) else ()

    def _plan_block(self, shape: tuple[int, ...], *, apart: bool) -> Plan:
        """Return the plan of a block; with `apart` it keeps the batch axis, so that each sample has groups."""
        plan = self.plan
        axes = tuple(axis for axis in plan.grid.axes if not (apart and axis == plan.grid.layout.batch))
        return make_plan(self.subject.request._replace(axes=axes), shape, plan.tensor_dtype)

    def _close(self, part: Part) -> Sums:
        """Return sums with one row for each group, from a part with a row for each group in each sample.

        The part must hold all values of its samples, as the deviation √(Σ(x − mean)² / n) of each sample is
        calculated. The deviations are added to the part's sums, in place; the rows of all samples are then
        added up.
        """
        grid = self._plan_block(tuple(cut.stop - cut.start for cut in part.box), apart=True).grid
        sums = part.sums
        deviations = find_deviations(sums.total, sums.square, sums.count.astype(np.float64))
        sums.add_deviations(np.arange(len(deviations)), deviations, sums.count)
        return sums.fold(grid.stats_shape, grid.kept.index(grid.layout.batch or 0))


def list_ends(box: Box, axes: Iterable[int]) -> tuple[tuple[int, int], ...]:
    """Return (start, stop) of a block along some axes."""
    return tuple((box[axis].start, box[axis].stop) for axis in axes)


def number_groups(plan: Plan, box: Box) -> NDArray[np.intp]:
    """Return the numbers of the groups that have values in a block, flat, in C order."""
    numbers = np.arange(plan.grid.group_count).reshape(plan.grid.stats_shape)
    return numbers[locate_groups(plan, box)].reshape(-1)


def locate_groups(plan: Plan, box: Box) -> Box:
    """Return the slices that take a block's groups from an array of the shape `Grid.stats_shape`.

    They are the block's slices along the axes that are not reduced. For an axis that is split into groups of
    channels, the slice covers all groups.
    """
    split = None if plan.grid.split is None else plan.grid.split.axis
    return tuple(slice(None) if axis == split else box[axis] for axis in plan.grid.kept)


def cut_stats(stats: Stats, shape: tuple[int, ...], box: Box) -> Stats:
    """Return the statistics of the groups with values in a block, as for a tensor of the block's shape.

    Parameters
    ----------
    stats : Stats
        The statistics of the whole tensor.
    shape : tuple of int
        The shape of the whole tensor.
    box : tuple of slice
        The block's slice along each axis of the whole tensor.
    """
    plan = _plan_whole(stats.subject, shape)
    lengths = tuple(
        cut.stop - cut.start if axis in plan.grid.kept else n
        for axis, (n, cut) in enumerate(zip(stats.subject.shape, box, strict=True))
    )
    columns = stats.subject.columns
    if columns is not None and len(shape) - 1 in plan.grid.kept:
        columns = columns[box[-1]]
    subject = stats.subject._replace(shape=lengths, columns=columns)
    return stats.take(number_groups(plan, box), subject)


def _plan_whole(subject: Subject, shape: tuple[int, ...]) -> Plan:
    return subject._replace(shape=shape).plan(shape[subject.plan(1).grid.layout.batch or 0])
