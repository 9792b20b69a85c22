"""Stores and files, worked on by a cluster: arrays block by block, or each file in a task of its own."""

from __future__ import annotations

import contextlib
import itertools
import math
import os
from functools import lru_cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
from dask.delayed import delayed

from normcli.cluster import require_dask
from normcli.cluster.blocks import ALONE, build_tree, choose_whole, gather_block, require_sums, require_version
from normcli.errors import DataError, UsageError
from normcli.fitting.fit import fit
from normcli.norms.layout import find_layout
from normcli.tensors.files import load
from normcli.tensors.formats.stored_array import Stored, choose_chunks
from normcli.tensors.formats.stores import limit_threads, open_store
from normcli.tensors.held_files import StoreRules, Stores, StoreVersion
from normcli.tensors.tensor import find_place, locate
from normcli.tuples import NamedTuple
from normcli.version import __version__

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from normcli.checking.check import Checked
    from normcli.checking.tally import Comparison
    from normcli.cluster.block_comparison import BlockCheck
    from normcli.cluster.blocks import BlockNorm, BlockUse
    from normcli.cluster.session import Session
    from normcli.fitting.block_sums import Box, Part, Whole
    from normcli.fitting.fit import Fitted, Policy, Survey, Surveyed
    from normcli.fitting.statistics import Stats
    from normcli.norms.plan import Plan
    from normcli.norms.request import Request
    from normcli.tensors.held_files import StoreRules
    from normcli.tensors.many import Named


with require_dask():
    from distributed import get_worker


class Origin(NamedTuple):
    """The path or URL of an array, in a form that is sent to workers, each of which opens it once.

    Parameters
    ----------
    place : str
        A path as workers find it, or a URL.
    opened : bytes
        Random bytes, drawn anew for each run, so that no worker uses an array that it opened in an earlier run.
    rules : StoreRules
    """

    place: str
    opened: bytes
    rules: StoreRules

    @classmethod
    def name(cls, source: str) -> Origin:
        """Return the origin for a path or URL, which each worker opens anew."""
        return cls(locate(source), os.urandom(8), Stores.rules)

    def open(self) -> Stored:
        """Return the array; a process opens each origin once and keeps the last 16."""
        return _open_once(self)


@lru_cache(maxsize=16)  # a worker reads many blocks of one array
def _open_once(origin: Origin) -> Stored:
    Stores.rules = origin.rules
    return open_source(origin.place)


def open_source(source: str) -> Stored:
    """Return the array at a path or URL; in a worker, zarr's threads are limited to the worker's.

    Raises
    ------
    UsageError
        If the file is text or a table, of which no blocks can be read.
    DataError
        If the array cannot be read.
    """
    place = find_place(source)
    if place is None:
        return _open_file(source)
    if place.is_zarr:
        with contextlib.suppress(ValueError):  # raised if this process is no worker
            limit_threads(get_worker().state.nthreads)
    return open_store(place, source)


def _open_file(source: str) -> Stored:
    """Return the array of a file as a `Stored`; raise `UsageError` for text and tables.

    A memory-mapped array is divided into chunks; an array that was read into memory is a single chunk.
    """
    tensor = load(source)
    if tensor.has_no_dtype:
        raise UsageError(
            f"{source} is text or a table, of which one machine reads all: without --workers and --scheduler"
        )
    values, version = tensor.values, tensor.opened or StoreVersion.describe(source, None)
    lies_in_file = isinstance(values, np.memmap)
    chunks = choose_chunks(values.shape, values.dtype) if lies_in_file else values.shape
    return Stored(source, values, chunks, version)


Item = TypeVar("Item")
Outcome = TypeVar("Outcome")


def run_each(session: Session, work: Callable[[Item], Outcome], items: Sequence[Item]) -> list[Outcome]:
    """Return the result of a function for each item, each calculated in a task of its own; [] for no items.

    Parameters
    ----------
    session : Session
    work : callable
        A function of a module, or `functools.partial` of one: workers find it by its name.
    items : sequence
        Values that can be pickled.

    Raises
    ------
    NormError
        If a task raises one, or the cluster fails.
    """
    task, shared = delayed(_run_one, pure=False), delayed(work)
    return session.run([task(shared, item, __version__, Stores.rules) for item in items]) if items else []


def _run_one(work: Callable[[Item], Outcome], item: Item, version: str, rules: StoreRules) -> Outcome:
    """Return `work(item)`, with the caller's rules for stores set in this process.

    Raises `DataError` if `version`, the caller's of normcli, is not this process's.
    """
    require_version(version)
    Stores.rules = rules
    return work(item)


def fit_files(session: Session, request: Request, named: Sequence[Named], policy: Policy) -> Fitted:
    """Return the statistics over files, which workers read by their names.

    The first file is also opened by this process, for the dtype and the axes that all must have.

    Raises
    ------
    NormError
        If a file cannot be read or does not fit the others and `policy` does not leave it out, the statistics
        are quantiles, or the cluster fails.
    """

    def survey_all(survey: Survey, sources: Sequence[Named]) -> list[Surveyed | str]:
        require_sums(survey.subject)
        return run_each(session, partial(survey.survey, effort=ALONE), sources)

    return fit(request, named, policy, ALONE, survey_all)


BLOCK = 1 << 24
"""About the largest size of a block in bytes; a block is never smaller than a chunk."""


def fit_store(session: Session, request: Request, source: str, nan: str) -> Stats:
    """Return the statistics of an array of a store, from sums that the workers of a cluster gather.

    Parameters
    ----------
    session : Session
    request : Request
    source : str
        The path or URL of the array.
    nan : {"propagate", "omit", "raise"}

    Raises
    ------
    NormError
        If the array cannot be read or fitted, changes meanwhile, or the cluster fails.
    """
    origin = Origin.name(source)
    stored = origin.open()
    request = request.adopt_layout(find_layout(stored.dimensions))
    whole = choose_whole(request, tuple(stored.array.shape), stored.array.dtype, nan, source)
    lengths = choose_lengths(stored, whole.subject.plan(1))
    gather, shared = delayed(_gather_box), delayed(whole)
    roots = build_tree(whole, ((box, gather(origin, shared, box, __version__)) for box in stored.cut(lengths)))
    parts = session.run(roots)
    stored.version.require_unchanged()
    return whole.join(parts)


def choose_lengths(
    stored: Stored, plan: Plan, least: tuple[int, ...] | None = None, whole: tuple[int, ...] = ()
) -> tuple[int, ...]:
    """Return the length of blocks along each axis: whole chunks, as many as fit into 16 MiB.

    Chunks are joined along the last axis first. If the norm divides the channels into groups, each block holds
    all channels.

    Parameters
    ----------
    stored : Stored
    plan : Plan
    least : tuple of int, optional
        A length for each axis: the lengths of blocks are multiples of it. By default the length of the chunks.
    whole : tuple of int
        The axes that blocks do not divide.
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
    return gather_block(whole, box, origin.open().read(box), version)


def use_store(session: Session, use: BlockUse | BlockNorm, source: str, target: Any) -> None:
    """Normalize an array of a store into another, by blocks that consist of the target's chunks or shards.

    Parameters
    ----------
    session : Session
    use : BlockUse or BlockNorm
        The work on each block.
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
    """Compare one array of a store with the exact norm of another, block by block.

    Parameters
    ----------
    session : Session
    check : BlockCheck
        The comparison of each block.
    source, actual : str
        The paths or URLs of the array x, and of the array that is compared.

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
    """Normalize a block and write it into the array `target`, one chunk or shard at a time.

    `box` is the block's slice along each axis.

    Raises
    ------
    DataError
        If the worker does not find the array's folder, or runs another version than `version`.
    OSError
        If a file cannot be written.
    """
    values = use.run(box, origin.open().read(box), version)
    folder = Path(target.store.root, target.path)
    if not folder.is_dir():  # the caller has made it
        raise DataError(f"{folder}: a worker finds no such folder: do they share this file system?")
    steps = target.shards or target.chunks
    starts = (range(cut.start, cut.stop, n) for cut, n in zip(box, steps, strict=True))
    for corner in itertools.product(*starts):  # one at a time: zarr goes on after a chunk that fails
        part = tuple(slice(at, min(at + n, cut.stop)) for at, n, cut in zip(corner, steps, box, strict=True))
        inside = (slice(a.start - cut.start, a.stop - cut.start) for a, cut in zip(part, box, strict=True))
        target[part] = values[tuple(inside)]
