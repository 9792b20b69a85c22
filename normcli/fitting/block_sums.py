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
from normcli.fitting.sums import Sums, find_deviations
from normcli.norms.plan import make_plan
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
        One row for each group of the block; if `apart`, one for each group in each sample.
    apart : bool
        Whether samples have separate rows in `sums`. They have if the standard deviation of each sample is
        measured too (`has_images`), and the block holds only some of the values of each sample.
    """

    box: Box
    sums: Sums
    apart: bool = False


def gather_part(
    subject: Subject, shape: tuple[int, ...], box: Box, values: NDArray[Any], effort: Effort
) -> Part:
    """Return the sums of a block's groups; samples have separate rows of sums if `holds_apart` is True.

    Parameters
    ----------
    subject : Subject
        The norm and the columns of the whole tensor.
    shape : tuple of int
        The shape of the whole tensor.
    box : tuple of slice
        The block's slice along each axis of the tensor.
    values : ndarray
        The values of the block, `tensor[box]`.
    effort : Effort
    """
    plan = _plan_whole(subject, shape)
    apart = holds_apart(subject, shape, box)
    return Part(
        box, gather(_plan_block(subject, plan, values.shape, apart=apart), values, effort, apart=apart), apart
    )


def add_parts(subject: Subject, shape: tuple[int, ...], parts: Iterable[Part]) -> Part:
    """Return the sum of parts, with `apart` False; the given parts are left unchanged.

    The parts must have the same groups. Together they must hold all values of each of their samples, as the
    standard deviation of each sample is calculated from the sum of its parts.

    Parameters
    ----------
    subject, shape
        The subject and the shape of the tensor.
    parts : iterable of Part
        Any two parts that are `apart` have either the same samples, from the same start to the same stop, or no
        sample in common.

    Raises
    ------
    DataError
        If there is no part.
    """
    plan = _plan_whole(subject, shape)
    batch = plan.grid.layout.batch or 0
    slabs: dict[tuple[int, int] | None, Part] = {}
    for part in parts:
        samples = part.box[batch]
        key = (samples.start, samples.stop) if part.apart else None
        if key in slabs:
            slabs[key].sums.merge(part.sums)
        else:  # a copy, as a task that is run again needs the old sums
            slabs[key] = part._replace(sums=part.sums.copy())
    if not slabs:
        raise DataError("there is no block to fit")
    total, *others = (_close_samples(subject, plan, part) if part.apart else part for part in slabs.values())
    for part in others:
        total.sums.merge(part.sums)
    every = tuple(
        slice(0, length) if axis in plan.grid.axes else cut
        for axis, (length, cut) in enumerate(zip(shape, total.box, strict=True))
    )
    return total._replace(box=every)


def join_parts(subject: Subject, shape: tuple[int, ...], parts: Iterable[Part], *, omits_nan: bool) -> Stats:
    """Return the statistics of a tensor from the parts of blocks that together hold each value once.

    Parameters
    ----------
    subject : Subject
    shape : tuple of int
        The shape of the tensor.
    parts : iterable of Part
        The parts, left unchanged; groups of which no part has values have sums and counts of 0.
    omits_nan : bool
        Whether NaN is left out; otherwise it makes the statistics of its group NaN.
    """
    plan = _plan_whole(subject, shape)
    by_groups: dict[tuple[tuple[int, int], ...], list[Part]] = defaultdict(list)
    for part in parts:
        by_groups[tuple((part.box[axis].start, part.box[axis].stop) for axis in plan.grid.kept)].append(part)
    sums = Sums.zeros(plan.grid.group_count)
    for some in by_groups.values():
        added = add_parts(subject, shape, some)
        sums.merge(added.sums, number_groups(plan, added.box))
    return Stats(subject, omits_nan, 1, shape[plan.grid.layout.batch or 0], sums)


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


def _plan_block(subject: Subject, whole: Plan, shape: tuple[int, ...], *, apart: bool) -> Plan:
    """Return the plan of a block; with `apart` it keeps the batch axis, so that each sample has groups."""
    batch = whole.grid.layout.batch
    axes = tuple(axis for axis in whole.grid.axes if not (apart and axis == batch))
    return make_plan(subject.request._replace(axes=axes), shape, whole.tensor_dtype)


def holds_apart(subject: Subject, shape: tuple[int, ...], box: Box) -> bool:
    """Whether each sample of a block needs sums of its own.

    It does if the standard deviation of each sample is measured (`has_images`), and the block holds only a part
    of each sample.
    """
    plan = _plan_whole(subject, shape)
    grid = plan.grid
    return has_images(plan) and not all(
        box[axis] == slice(0, grid.shape[axis]) for axis in grid.axes if axis != grid.layout.batch
    )


def _close_samples(subject: Subject, whole: Plan, part: Part) -> Part:
    """Return a part with one row of sums for each group, from a part with a row for each group in each sample.

    The given part (its `apart` is True) must hold all values of its samples, as the deviation
    √(Σ(x − mean)² / n) of each sample is calculated. The deviations are added to the given part's sums, in
    place; the rows of all samples are then added up in a new part.
    """
    plan = _plan_block(subject, whole, tuple(cut.stop - cut.start for cut in part.box), apart=True)
    sums = part.sums
    deviations = find_deviations(sums.total, sums.square, sums.count.astype(np.float64))
    sums.add_deviations(np.arange(len(deviations)), deviations, sums.count)
    folded = sums.fold(plan.grid.stats_shape, plan.grid.kept.index(whole.grid.layout.batch or 0))
    return Part(part.box, folded)
