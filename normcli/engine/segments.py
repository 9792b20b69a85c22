"""The records of groups too large for a tile: folded as they come, so that few are kept of a large tensor."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from normcli.numerics.leaves import Leaves

if TYPE_CHECKING:
    from collections.abc import Callable

    from normcli.engine.geometry import Geometry, Slices

    Fold = Callable[[Leaves], Leaves]


@dataclass(slots=True)
class _Part:
    """The leaves of a segment that have come so far."""

    leaves: Leaves
    missing: int


@dataclass(slots=True)
class Segments:
    """Records of segments, of shape kept_shape + (segments,); tiles put leaves in any order, from any thread.

    A segment is a fixed number of a group's leaves, so what is folded with what does not depend on the tiles.

    Parameters
    ----------
    geometry : Geometry
    fold : callable
        Makes one record of leaves of shape (groups, leaves).
    """

    geometry: Geometry
    fold: Fold
    records: Leaves = field(init=False)
    _parts: dict[tuple[tuple[int, ...], int], _Part] = field(init=False, default_factory=dict)
    _lock: threading.Lock = field(init=False, default_factory=threading.Lock)

    def __post_init__(self) -> None:
        self.records = Leaves.empty((*self.geometry.kept_shape, len(self.geometry.segment_sizes)))

    def put(self, tile: Slices, leaves: Leaves) -> None:
        """Put a tile's leaves, of shape (groups, leaves)."""
        kept = tuple(tile[i] for i in self.geometry.kept_runs)
        groups = tuple(s.stop - s.start for s in kept)
        length, first = self.geometry.segment, self.geometry.first_leaf(tile)
        end = first + leaves.extreme.shape[1]
        if length == 1:
            self.records.put((*kept, slice(first, end)), leaves.reshape((*groups, end - first)))
            return
        for number in range(first // length, -(-end // length)):
            start, stop = max(first, number * length), min(end, (number + 1) * length)
            whole = self._complete(kept, number, start % length, leaves.part(start - first, stop - first))
            if whole is not None:
                self.records.put((*kept, number), self.fold(whole).reshape(groups))

    def _complete(self, kept: Slices, number: int, at: int, leaves: Leaves) -> Leaves | None:
        """Return a segment's leaves if these were the last that it missed."""
        groups, count = leaves.extreme.shape
        length = min(self.geometry.segment, len(self.geometry.leaf_sizes) - number * self.geometry.segment)
        if count == length:
            return leaves
        key = (tuple(s.start for s in kept), number)
        with self._lock:
            part = self._parts.get(key)
            if part is None:
                part = self._parts[key] = _Part(Leaves.empty((groups, length)), length)
            part.leaves.put((slice(None), slice(at, at + count)), leaves)
            part.missing -= count
            return None if part.missing else self._parts.pop(key).leaves


def fold_rows(leaves: Leaves, geometry: Geometry, fold: Fold) -> Leaves:
    """Fold all leaves of groups, of shape (groups, leaves), into segments at once."""
    length = geometry.segment
    if length == 1:
        return leaves
    groups, count = leaves.extreme.shape
    records = Leaves.empty((groups, len(geometry.segment_sizes)))
    for number, start in enumerate(range(0, count, length)):
        records.put((slice(None), number), fold(leaves.part(start, start + length)))
    return records
