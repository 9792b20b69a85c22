"""Which part of a large tensor is shown: head and tail of every long axis, and how much that hides."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

MOST_VALUES = 1000
"""A tensor of at most so many values is shown whole (NumPy's print threshold)."""

MOST_MATRICES = 8
"""So many matrices of a large tensor are shown at most: a screen or two."""

EDGE = 3
"""So many positions at each end of an axis are shown of a larger one (NumPy's edge items)."""

MOST_GROUPS = 24
GROUP_HEAD, GROUP_TAIL = 12, 4


class Positions(NamedTuple):
    """The positions along one axis that are shown.

    Parameters
    ----------
    shown : tuple of int
    gap : int or None
        How many of them stand before the part that is left out; None if nothing is.
    """

    shown: tuple[int, ...]
    gap: int | None = None

    @property
    def size(self) -> int:
        """How many they are."""
        return len(self.shown)


def cut(length: int, head: int, tail: int) -> Positions:
    """Return the first `head` and the last `tail` positions of an axis, or all of a short one."""
    if length <= head + tail:
        return Positions(tuple(range(length)))
    return Positions((*range(head), *range(length - tail, length)), head)


def choose_positions(shape: tuple[int, ...], *, full: bool) -> list[Positions]:
    """Return, for each axis, the positions that a reader can take in.

    Parameters
    ----------
    shape : tuple of int
    full : bool
        Whether everything is asked for.
    """
    if 0 in shape:
        return [cut(length, EDGE, EDGE) for length in shape]
    if full or math.prod(shape) <= MOST_VALUES:
        return [cut(length, length, 0) for length in shape]
    inner = [cut(length, EDGE, EDGE) for length in shape[-2:]]
    for edge in range(EDGE, 0, -1):
        outer = [cut(length, edge, edge) for length in shape[:-2]]
        if _count(outer) <= MOST_MATRICES:
            break
    for axis, length in enumerate(shape[:-2]):
        if _count(outer) > MOST_MATRICES:  # many axes: of the outermost, the first position stands for all
            outer[axis] = cut(length, 1, 0)
    return outer + inner


def _count(positions: list[Positions]) -> int:
    return math.prod(p.size for p in positions)


def choose_groups(count: int, *, full: bool) -> Positions:
    """Return the groups whose statistics are listed."""
    return cut(count, count, 0) if full or count <= MOST_GROUPS else cut(count, GROUP_HEAD, GROUP_TAIL)


def to_arrays(positions: list[Positions]) -> list[np.ndarray[tuple[int], np.dtype[np.intp]]]:
    """Return the positions as index arrays, one per axis."""
    return [np.array(p.shown, dtype=np.intp) for p in positions]
