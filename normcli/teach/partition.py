"""Which cells share a group, and what is done to a group, each in a form that is equal where they are the same.

Two norms whose forms are equal give equal x̂ for every tensor of their shape. The forms are of the shape's rank,
not of its size: no cell is looked at.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, NamedTuple

from normcli.norms.table import Divisor, EpsMode, GroupOrder, ZeroRule

if TYPE_CHECKING:
    from normcli.norms.plan import Plan


class Partition(NamedTuple):
    """How the cells of a shape fall into groups.

    Parameters
    ----------
    reduced : tuple of int
        The axes that a group extends over whole. Those of length 1 are left out: reduced or not is the same.
    split : tuple of (int, int, GroupOrder) or None
        An axis that a group extends over in part, the number of parts, and how its places are dealt out.
    window : tuple of (int, int, int) or None
        The axis of a sliding window, and how far it reaches before and after a value; None without one.
    """

    reduced: tuple[int, ...]
    split: tuple[int, int, GroupOrder | None] | None = None
    window: tuple[int, int, int] | None = None


def find_partition(plan: Plan) -> Partition:
    """Return how a plan parts the cells of its shape.

    Examples
    --------
    >>> import numpy as np
    >>> from normcli.norms.plan import make_plan
    >>> from normcli.norms.request import Request
    >>> shape = (2, 4, 3, 3)
    >>> dtype = np.dtype("f8")
    >>> find_partition(make_plan(Request("gn", groups=1), shape, dtype)) == find_partition(
    ...     make_plan(Request("ln", axes="CHW"), shape, dtype)
    ... )
    True
    """
    if plan.spec.window is not None:
        axis, last = plan.grid.axes[0], max(0, plan.grid.shape[plan.grid.axes[0]] - 1)
        before, after = min(plan.spec.window.before, last), min(plan.spec.window.after, last)
        return Partition((), window=(axis, before, after) if before or after else (0, 0, 0))
    wide = tuple(axis for axis in plan.grid.axes if plan.grid.shape[axis] != 1)
    channel = plan.grid.layout.channel
    if plan.grid.groups is None or channel is None or plan.grid.groups == 1:
        return Partition(wide)
    whole = tuple(axis for axis in wide if axis != channel)
    if plan.grid.groups == plan.grid.shape[channel]:
        return Partition(whole)
    return Partition(whole, (channel, plan.grid.groups, plan.grid.group_order))


def find_formula(plan: Plan) -> tuple[Any, ...]:
    """Return what is done to the values of a group; equal for two plans that do the same to every group.

    An eps of 0 has no place; what becomes of a group whose divisor is 0 matters only then, and centred values
    of a constant group are 0 whether they are divided by 1 or said to be 0.
    """
    norm = plan.norm
    if plan.spec.window is not None:
        return norm.centre, norm.divisor, *plan.spec.window[3:]
    eps, mode = plan.spec.eps or 0.0, plan.spec.eps_mode
    if not eps:
        mode = None
    elif mode is EpsMode.SQUARE_FLOOR:
        eps, mode = math.sqrt(eps), EpsMode.FLOOR
    spoils = not eps and plan.spec.zero_rule is ZeroRule.NAN
    return *find_quotient(plan), eps, mode, plan.spec.ddof if norm.divisor is Divisor.DEVIATION else 0, spoils


def find_quotient(plan: Plan) -> tuple[Any, ...]:
    """Return what a value is centred by and divided by, whatever eps and ddof."""
    return plan.norm.centre, plan.norm.divisor, plan.spec.p
