"""Arrays of stores, fitted and normalized by the workers of a cluster, each block read where it lies."""

from __future__ import annotations

import contextlib
import math
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from dask.delayed import delayed
from distributed import get_worker

from normcli.cluster.blocks import Whole
from normcli.norms.layout import find_layout
from normcli.tensors.places import find_place, locate
from normcli.tensors.stores import limit_threads, open_store
from normcli.version import __version__

if TYPE_CHECKING:
    from normcli.cluster.blocks import BlockNorm, BlockUse
    from normcli.cluster.checks import BlockCheck
    from normcli.cluster.session import Session
    from normcli.fitting.parts import Box, Part
    from normcli.fitting.statistics import Stats
    from normcli.norms.plan import Plan
    from normcli.norms.request import Request
    from normcli.tensors.stored import Stored
    from normcli.verify.check import Checked
    from normcli.verify.tally import Comparison

BLOCK = 1 << 24
"""Bytes in a block, or in a chunk where that is larger."""


def fit_store(session: Session, request: Request, source: str, nan: str) -> Stats:
    """Return the statistics of an array of a store, by the workers of a cluster.

    Raises
    ------
    NormError
        As `normcli.fit`; if the cluster fails.
    """
    stored = open_source(source)
    request = request.adopt_layout(find_layout(stored.dimensions))
    whole = Whole.choose(request, tuple(stored.array.shape), stored.array.dtype, nan, source)
    lengths = choose_lengths(stored, whole.subject.plan(1))
    path, gather, shared = locate(source), delayed(_gather_box), delayed(whole)
    roots = whole.build_tree((box, gather(path, shared, box, __version__)) for box in stored.cut(lengths))
    parts = session.run(roots)
    stored.version.require_unchanged()
    return whole.join(parts)


def choose_lengths(
    stored: Stored, plan: Plan, least: tuple[int, ...] | None = None, whole: tuple[int, ...] = ()
) -> tuple[int, ...]:
    """Return the lengths of blocks: some chunks along the last axes, all channels where they are of groups.

    Parameters
    ----------
    stored : Stored
    plan : Plan
    least : tuple of int, optional
        What the lengths are multiples of; by default the chunks.
    whole : tuple of int
        The axes that blocks hold all of.
    """
    shape, room = stored.array.shape, BLOCK // stored.array.dtype.itemsize
    lengths = list(least or stored.chunks)
    for axis in (*whole, *(() if plan.grid.split is None else (plan.grid.split.axis,))):
        lengths[axis] = shape[axis]
    for axis in reversed(range(len(shape))):
        times = max(1, room // max(1, math.prod(lengths)))
        lengths[axis] = min(-(-shape[axis] // lengths[axis]), times) * lengths[axis]
        if lengths[axis] < shape[axis]:
            break
    return tuple(lengths)


@lru_cache(maxsize=16)  # of a worker, which reads many blocks of one array
def open_source(source: str) -> Stored:
    """Return the array of a store that a text names."""
    place = find_place(source)
    assert place is not None
    if place.is_zarr:
        with contextlib.suppress(ValueError):  # where this is no worker
            limit_threads(get_worker().state.nthreads)
    return open_store(place, source)


def _gather_box(source: str, whole: Whole, box: Box, version: str) -> Part:
    return whole.gather(box, open_source(source).read(box), version)


def use_store(session: Session, use: BlockUse | BlockNorm, source: str, target: Any) -> None:
    """Normalize an array of a store into another array, of which each task writes whole chunks or shards.

    Parameters
    ----------
    session : Session
    use : BlockUse or BlockNorm
        The latter of groups that blocks can hold whole.
    source : str
    target : zarr.Array
    """
    stored = open_source(source)
    plan = use.plan(stored.array.dtype)
    lengths = choose_lengths(stored, plan, tuple(target.shards or target.chunks), use.list_whole(plan))
    path, write, shared = locate(source), delayed(_write_box), delayed(use)
    session.run([write(path, target, shared, box, __version__) for box in stored.cut(lengths)])
    stored.version.require_unchanged()


def check_store(session: Session, check: BlockCheck, source: str, actual: str) -> tuple[Plan, Checked]:
    """Return the plan of an array of a store, and how far another is from its exact norm.

    Raises
    ------
    NormError
        As `normcli.verify.check.check`; if the cluster fails.
    """
    stored, theirs = open_source(source), open_source(actual)
    check.require_shape(tuple(theirs.array.shape))
    plan = check.block.plan(stored.array.dtype)
    boxes = list(stored.cut(choose_lengths(stored, plan, whole=check.block.list_whole(plan))))
    paths, compare, shared = (locate(source), locate(actual)), delayed(_check_box), delayed(check)
    found = session.run([compare(*paths, shared, box, __version__) for box in boxes])
    for one in (stored, theirs):
        one.version.require_unchanged()
    return plan, check.join(plan, theirs.array.dtype, zip(boxes, found, strict=True))


def _check_box(source: str, actual: str, check: BlockCheck, box: Box, version: str) -> Comparison:
    return check.run(box, open_source(source).read(box), open_source(actual).read(box), version)


def _write_box(source: str, target: Any, use: BlockUse | BlockNorm, box: Box, version: str) -> None:
    target[box] = use.run(box, open_source(source).read(box), version)
