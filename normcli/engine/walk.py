"""A walk over a tensor's tiles in threads, and what decides its speed: it changes no bit of a result."""

from __future__ import annotations

import math
import os
import threading
from typing import TYPE_CHECKING, Protocol

import numpy as np

from normcli.engine.tiling.geometry import find_lengths
from normcli.numerics.workspace import Workspace
from normcli.tuples import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from normcli.engine.tiling.blocks import Source
    from normcli.engine.tiling.geometry import Geometry, Slices

    Work = Callable[[Slices, Workspace], None]

BLOCK = 1 << 20
"""Values in a tile: enough that a hundred calls of NumPy take little of the time that the values take."""

WHOLE = 1 << 18
"""The most values in a group that is read once and written at once."""


class Observer(Protocol):
    """The protocol of observers, to which a long run reports its progress, from several threads."""

    def expect(self, byte_count: int) -> None:
        """Add to the number of bytes that the run will read in all; called before its passes."""
        ...

    def advance(self, byte_count: int) -> None:
        """Add to the number of bytes that have been read; called after each tile."""
        ...


class Effort(NamedTuple):
    """Settings of how a tensor is worked on, which change the speed and memory of a run, but no result.

    Parameters
    ----------
    threads : int or None
        The most threads to use; None for as many as there are processors that the process may use.
    observer : Observer or None
        Takes the progress of the run; None for no progress.
    block : int
        The most values in a tile, about.
    whole : int
        The most values in a group that is read only once; larger groups are first measured, then read again.
    keeps_statistics : bool
        Whether the run returns the statistics of groups; if not, it returns an empty dict of them. For short
        groups, keeping them takes longer than the arithmetic.
    """

    threads: int | None = None
    observer: Observer | None = None
    block: int = BLOCK
    whole: int = WHOLE
    keeps_statistics: bool = True


DEFAULT_EFFORT = Effort()


def count_processors() -> int:
    """Return the number of processors that this process may use."""
    try:
        return len(os.sched_getaffinity(0))
    except AttributeError:  # not on every system
        return os.cpu_count() or 1


class _SharedTiles:
    """An iterator over tiles that several threads share; it ends early once `stop` is called."""

    def __init__(self, tiles: Iterator[Slices]) -> None:
        self._tiles, self._stopped = tiles, False
        self._lock = threading.Lock()

    def __iter__(self) -> _SharedTiles:
        return self

    def __next__(self) -> Slices:
        with self._lock:
            if self._stopped:
                raise StopIteration
            return next(self._tiles)

    def stop(self) -> None:
        """Hand out no more tiles."""
        self._stopped = True


class Walk:
    """A walk over the tiles of a tensor in threads, which reports its progress to an observer.

    Parameters
    ----------
    geometry : Geometry
    source : Source
        The source of the tiles.
    effort : Effort
    block : int
        The number of values in a tile.
    """

    def __init__(self, geometry: Geometry, source: Source, effort: Effort, block: int) -> None:
        self._geometry, self._source, self._block = geometry, source, block
        self.effort = effort
        self._size = math.prod(geometry.dims)

    def expect(self, passes: int) -> None:
        """Add the bytes of `passes` walks over the tensor to what the observer expects, if there is one."""
        if self.effort.observer is not None:
            self.effort.observer.expect(passes * self._size * self._source.dtype.itemsize)

    def each(
        self,
        work_on: Work,
        *,
        whole: bool,
        most: int = BLOCK,
        within: Slices | None = None,
        at_once: int = 1,
    ) -> None:
        """Call a function on every tile of the view, or of a part of it that holds whole groups, in threads.

        Parameters
        ----------
        work_on : callable
            Takes a tile and a workspace, which belongs to the thread.
        whole : bool
            True if tiles hold whole groups, however large; if False, a group may be cut into parts.
        most : int
            The most values in a tile, about; no more than the walk's `block`.
        within : slices or None
            The part of the view; None for all of it.
        at_once : int
            A factor by which tiles are larger than this, for a `work_on` that cuts each tile into pieces
            itself.

        Raises
        ------
        BaseException
            The first exception that `work_on` raised in a thread; no tile is begun after it.
        """
        block = min(self._block, most) * at_once
        tiles = self._geometry.tiles(whole, block, within)
        size = self._size if within is None else math.prod(find_lengths(within))
        tile_count = -(-size // block)
        threads = 1 if tile_count <= 1 else min(self.effort.threads or count_processors(), tile_count)
        if threads == 1:
            self._work_through(tiles, work_on)
            return
        from concurrent import futures  # on use: small tensors need no threads

        shared = _SharedTiles(tiles)
        with futures.ThreadPoolExecutor(threads) as pool:  # its end waits for all threads
            parts = [pool.submit(self._work_through, shared, work_on) for _ in range(threads)]
            try:
                for part in futures.as_completed(parts):
                    part.result()
            finally:  # after a failure, or an interrupt, which only the main thread receives
                shared.stop()

    def _work_through(self, tiles: Iterator[Slices], work_on: Work) -> None:
        """Work on tiles until there are no more."""
        work = Workspace()
        with np.errstate(all="ignore"):
            for tile in tiles:
                work_on(tile, work)
                self._source.forget()
                self._advance(tile)

    def _advance(self, tile: Slices) -> None:
        if self.effort.observer is not None:
            self.effort.observer.advance(math.prod(find_lengths(tile)) * self._source.dtype.itemsize)
