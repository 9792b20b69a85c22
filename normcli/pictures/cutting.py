"""Which cells of a tensor a picture shows: all of a small one, else both ends of its long axes."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from normcli.documents.excerpt import Positions, cut, to_arrays
from normcli.errors import UsageError

if TYPE_CHECKING:
    from normcli.norms.plan import Plan

MOST_CELLS = 400
"""A tensor of at most so many values is drawn whole, unless an axis is long."""

MOST_GROUPS = 32
"""So many groups are told apart without pain: eight colours, plain and hatched in three ways."""

MOST_AXES = 8
"""With more axes than that nobody finds a cell in a picture."""

_LADDER = (20, 12, 8, 6, 4, 3, 2, 1)
"""The numbers of positions along an axis that are tried one after the other."""

_REDUCED = 1.5
"""Positions along a reduced axis say less than those along a kept one, each of which is another group."""


def choose_shown(plan: Plan) -> list[Positions]:
    """Return the positions along each axis that are drawn.

    The axis of which most is shown is cut first, until the cells and the groups that they belong to are few
    enough.

    Raises
    ------
    UsageError
        If the tensor has more axes than a picture can hold.
    """
    shape = plan.grid.shape
    if len(shape) > MOST_AXES:
        raise UsageError(
            f"a picture holds at most {MOST_AXES} axes; the tensor has {len(shape)}: draw a slice of it, or "
            "join axes that are kept or reduced together"
        )
    if 0 in shape:
        return [cut(length, 1, 0) for length in shape]
    shown = [_cut_to(length, _LADDER[0]) for length in shape]
    while True:
        groups = _count_groups(plan, shown) > MOST_GROUPS
        if not groups and math.prod(p.size for p in shown) <= MOST_CELLS:
            return shown
        axes = [
            axis
            for axis in range(len(shape))
            if shown[axis].size > 1 and (axis in plan.grid.kept or not groups)
        ]
        weights = {axis: shown[axis].size * (1 if axis in plan.grid.kept else _REDUCED) for axis in axes}
        longest = max(axes, key=weights.__getitem__)
        shown[longest] = _cut_to(shape[longest], _step_down(shown[longest].size))


def _cut_to(length: int, most: int) -> Positions:
    """Return both ends of an axis, more of the first."""
    tail = most // 3 if most > 2 else most // 2
    return cut(length, most - tail, tail)


def _step_down(size: int) -> int:
    return next(step for step in _LADDER if step < size)


def _count_groups(plan: Plan, shown: list[Positions]) -> int:
    """Return of how many groups the cells are; a window is drawn for one value alone."""
    if plan.spec.window is not None or not shown:
        return 1
    import numpy as np

    return np.unique(plan.grid.locate_groups(np.ix_(*to_arrays(shown)))).size


def narrow(positions: Positions, length: int, most: int) -> Positions:
    """Return at most so many positions, all of them among those given."""
    if positions.size <= most:
        return positions
    head = positions.size if positions.gap is None else positions.gap
    tail = min(positions.size - head, most // 3) if positions.gap is not None else most // 3
    return cut(length, min(head, most - tail), tail)


def count_hidden(positions: Positions, length: int) -> int:
    """Return how many positions of an axis are left out."""
    return length - positions.size
