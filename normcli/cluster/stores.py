"""Arrays of stores and files, worked on by a cluster block by block, each block read where it lies."""

from __future__ import annotations

import itertools
import math
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dask.delayed import delayed

from normcli.cluster.blocks import Whole
from normcli.cluster.sources import Origin
from normcli.errors import DataError
from normcli.norms.layout import find_layout
from normcli.version import __version__

if TYPE_CHECKING:
    from normcli.checking.check import Checked
    from normcli.checking.tally import Comparison
    from normcli.cluster.blocks import BlockNorm, BlockUse
    from normcli.cluster.checks import BlockCheck
    from normcli.cluster.session import Session
    from normcli.fitting.parts import Box, Part
    from normcli.fitting.statistics import Stats
    from normcli.norms.plan import Plan
    from normcli.norms.request import Request
    from normcli.tensors.formats.stored_array import Stored

BLOCK = 1 << 24
"""About the largest size of a block in bytes; a block is never smaller than a chunk."""


def fit_store(session: Session, request: Request, source: str, nan: str) -> Stats:
    """Return the statistics of an array of a store, from sums that the workers of a cluster gather.

    Raises
    ------
    NormError
        If the array cannot be read or fitted, changes meanwhile, or the cluster fails.
    """
    origin = Origin.name(source)
    stored = origin.open()
    request = request.adopt_layout(find_layout(stored.dimensions))
    whole = Whole.choose(request, tuple(stored.array.shape), stored.array.dtype, nan, source)
    lengths = choose_lengths(stored, whole.subject.plan(1))
    gather, shared = delayed(_gather_box), delayed(whole)
    roots = whole.build_tree((box, gather(origin, shared, box, __version__)) for box in stored.cut(lengths))
    parts = session.run(roots)
    stored.version.require_unchanged()
    return whole.join(parts)


def choose_lengths(
    stored: Stored, plan: Plan, least: tuple[int, ...] | None = None, whole: tuple[int, ...] = ()
) -> tuple[int, ...]:
    """Return the length of blocks along each axis: whole chunks, as many along the last axes as `BLOCK` holds.

    Blocks hold all channels if groups are runs of channels.

    Parameters
    ----------
    stored : Stored
    plan : Plan
    least : tuple of int, optional
        The lengths of which those of blocks are multiples; by default the store's chunks.
    whole : tuple of int
        The axes along which blocks are whole.
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


def _gather_box(origin: Origin, whole: Whole, box: Box, version: str) -> Part:
    return whole.gather(box, origin.open().read(box), version)


def use_store(session: Session, use: BlockUse | BlockNorm, source: str, target: Any) -> None:
    """Normalize an array of a store into another array, of which each task writes whole chunks or shards.

    Parameters
    ----------
    session : Session
    use : BlockUse or BlockNorm
        The work for each block.
    source : str
        The path or URL of the array.
    target : zarr.Array
        The array to write, of the same shape.

    Raises
    ------
    NormError
        If the array cannot be read, changes meanwhile, a worker does not find the target, or the cluster fails.
    OSError
        If a file cannot be written.
    """
    origin = Origin.name(source)
    stored = origin.open()
    plan = use.plan(stored.array.dtype)
    lengths = choose_lengths(stored, plan, tuple(target.shards or target.chunks), use.list_whole(plan))
    write, shared = delayed(_write_box), delayed(use)
    session.run([write(origin, target, shared, box, __version__) for box in stored.cut(lengths)])
    stored.version.require_unchanged()


def check_store(session: Session, check: BlockCheck, source: str, actual: str) -> Checked:
    """Return the comparison of the array at `actual` with the exact norm of the array at `source`.

    Raises
    ------
    NormError
        If the shapes differ, an array cannot be read or changes meanwhile, or the cluster fails.
    """
    origins = Origin.name(source), Origin.name(actual)
    stored, theirs = (origin.open() for origin in origins)
    check.require_shape(tuple(theirs.array.shape))
    plan = check.block.plan(stored.array.dtype)
    boxes = list(stored.cut(choose_lengths(stored, plan, whole=check.block.list_whole(plan))))
    compare, shared = delayed(_check_box), delayed(check)
    found = session.run([compare(*origins, shared, box, __version__) for box in boxes])
    for one in (stored, theirs):
        one.version.require_unchanged()
    return check.join(plan, theirs.array.dtype, zip(boxes, found, strict=True))


def _check_box(origin: Origin, actual: Origin, check: BlockCheck, box: Box, version: str) -> Comparison:
    return check.run(box, origin.open().read(box), actual.open().read(box), version)


def _write_box(origin: Origin, target: Any, use: BlockUse | BlockNorm, box: Box, version: str) -> None:
    values = use.run(box, origin.open().read(box), version)
    folder = Path(target.store.root, target.path)
    if not folder.is_dir():  # it was made by the caller
        raise DataError(f"{folder}: a worker finds no such folder: do they share this file system?")
    steps = target.shards or target.chunks
    starts = (range(cut.start, cut.stop, n) for cut, n in zip(box, steps, strict=True))
    for corner in itertools.product(*starts):  # one at a time: zarr writes on behind one that fails
        part = tuple(slice(at, min(at + n, cut.stop)) for at, n, cut in zip(corner, steps, box, strict=True))
        inside = (slice(a.start - cut.start, a.stop - cut.start) for a, cut in zip(part, box, strict=True))
        target[part] = values[tuple(inside)]
