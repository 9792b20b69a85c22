"""The axes of a plan in words: what is reduced and kept, and what was assumed of them."""

from __future__ import annotations

import contextlib
import math
from typing import TYPE_CHECKING

from normcli.documents.number_format import format_shape
from normcli.errors import NormError
from normcli.norms.layout import CHANNEL_LAST_LAYOUTS, DEFAULT_LAYOUTS
from normcli.norms.plan import make_plan
from normcli.norms.rules import AxesRule
from normcli.printable import format_count
from normcli.tuples import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from normcli.norms.plan import Plan

_TOKENS = 3
"""The rank of tensors that may be (batch, tokens, features); tensors of more axes may be images."""

_MOST_COLOURS = 4
"""The greatest length of a last axis that may be colours, if it is the shortest axis of a sample."""

_KINDS = {3: "tokens", 4: "images", 5: "volumes"}
"""Rank → the contents of tensors whose channel is the last axis, in words."""


def list_assumed(plans: Iterable[Plan]) -> tuple[tuple[str, tuple[str, ...]], ...]:
    """Return header lines on a guessed layout, and on unusual axes, with the option that says otherwise.

    A layout is mentioned only if another likely one would change the groups or their names. Each line is a
    label and its facts; the result is () if nothing was assumed.

    Parameters
    ----------
    plans : iterable of Plan
        The plans of one tensor's norms.

    Examples
    --------
    >>> import numpy as np
    >>> from normcli.norms.request import Request
    >>> list_assumed([make_plan(Request("bn"), (2, 4, 6), np.dtype("f8"))])
    (('assumed', ('layout NCL; --layout NLC for tokens',)),)
    >>> list_assumed([make_plan(Request("ln"), (2, 3, 4, 4), np.dtype("f8"))])
    (('assumed', ('W alone is reduced; --axes CHW for images',)),)
    """
    plans = list(plans)
    several = len({plan.norm.name for plan in plans}) > 1
    assumed = tuple(dict.fromkeys(fact for plan in plans for fact in _find_assumed(plan, named=several)))
    noted = tuple(dict.fromkeys(filter(None, map(_note_batch, plans))))
    return tuple((label, facts) for label, facts in (("assumed", assumed), ("note", noted)) if facts)


def _note_batch(plan: Plan) -> str | None:
    """Return a note if the caller's axes leave out the batch, which the norm reduces by default; or None."""
    layout = plan.grid.layout
    if plan.norm.axes is not AxesRule.ALL_BUT_CHANNEL or layout.batch is None or layout.batch in plan.grid.axes:
        return None
    batch = (layout.letters or layout.names)[layout.batch]
    return f"{plan.norm.name} does not reduce {batch} with these axes: each sample has its own statistics"


def _find_assumed(plan: Plan, *, named: bool) -> Iterator[str]:
    """Yield texts on the layout and axes that were assumed, with the options that would change them.

    `named` says whether the texts name the norm, as for several norms.
    """
    grid, rank = plan.grid, len(plan.grid.shape)
    letters = grid.layout.letters
    if letters is None or rank not in _KINDS:
        return
    if plan.request.layout is None and letters == DEFAULT_LAYOUTS[rank] and _may_end_in_channels(plan):
        other = CHANNEL_LAST_LAYOUTS[rank]
        if plan.norm.axes is AxesRule.LAST or _changes_groups(plan, other):  # or names its groups otherwise
            where = f"for {_KINDS[rank]}" if rank == _TOKENS else "where channels are last"
            yield f"layout {letters}; --layout {other} {where}"
    chosen = plan.request.axes is not None or plan.request.keep is not None
    if chosen or plan.norm.axes is not AxesRule.LAST or rank == _TOKENS:
        return
    if grid.axes == (rank - 1,) and grid.layout.channel != rank - 1:
        sample = "".join(letter for axis, letter in enumerate(letters) if axis != grid.layout.batch)
        axis, name = letters[-1], plan.norm.name
        if named:
            yield f"{name} reduces {axis} alone; {name}:axes={sample} for {_KINDS[rank]}"
        else:
            yield f"{axis} alone is reduced; --axes {sample} for {_KINDS[rank]}"


def _may_end_in_channels(plan: Plan) -> bool:
    shape = plan.grid.shape
    return len(shape) == _TOKENS or shape[-1] <= min(_MOST_COLOURS, *(length - 1 for length in shape[1:-1]))


def _changes_groups(plan: Plan, layout: str) -> bool:
    """Whether the plan's norm would have other groups with this layout; False if it does not fit."""
    with contextlib.suppress(NormError):  # groups that do not divide the other axis
        other = make_plan(
            plan.request._replace(layout=layout), plan.grid.shape, plan.tensor_dtype, plan.grid.columns
        )
        return (other.grid.axes, other.grid.split) != (plan.grid.axes, plan.grid.split)
    return False


def format_running(plan: Plan) -> tuple[str, ...]:
    """Return the facts of a header on groups whose statistics are given: nothing is reduced."""
    return "reduces nothing", f"has statistics given for {find_reduction(plan, given=True).keeps}"


class ReductionWords(NamedTuple):
    """The reduction of a plan, in words.

    Parameters
    ----------
    over : str
        The reduced axes with their lengths; for a sliding window, its reach and axis.
    keeps : str
        The axes that are not reduced, with the number of statistics along each.
    shapes : str or None
        The shapes of tensor and statistics, `nchw → 1c11`; None for a window, where they are equal.
    groups : str
        The number of groups, and their size.
    """

    over: str
    keeps: str
    shapes: str | None
    groups: str


def format_reduction(plan: Plan) -> tuple[str, ...]:
    """Return the reduction as facts of one line: reduced axes, kept axes, shapes, groups × size.

    Examples
    --------
    >>> import numpy as np
    >>> from normcli.norms.plan import make_plan
    >>> from normcli.norms.request import Request
    >>> format_reduction(make_plan(Request("bn"), (2, 3, 4, 4), np.dtype("f8")))
    ('reduces N×H×W = 2×4×4', 'keeps C = 3', 'nchw → 1c11', '3 groups × 32')
    """
    over, keeps, shapes, groups = find_reduction(plan)
    reduces = "window" if shapes is None else "reduces"
    return tuple(filter(None, (f"{reduces} {over}", f"keeps {keeps}", shapes, groups)))


def find_reduction(plan: Plan, *, given: bool = False) -> ReductionWords:
    """Return the reduction of a plan in words.

    Parameters
    ----------
    plan : Plan
    given : bool
        Whether running statistics are given, so that no axis is reduced.

    Examples
    --------
    >>> import numpy as np
    >>> from normcli.norms.plan import make_plan
    >>> from normcli.norms.request import Request
    >>> find_reduction(make_plan(Request("ln", layout="bnd"), (2, 3, 4), np.dtype("f8")))
    ReductionWords(over='D = 4', keeps='B×N = 2×3', shapes='bnd → bn1', groups='6 groups × 4')
    """
    grid, names, window = plan.grid, plan.grid.layout.names, plan.spec.window
    if given:
        running = grid.running
        kept = [name.upper() if running.layout.letters else name for name in running.kept_names]
        count = format_count(math.prod(running.stats_shape), "group")
        return ReductionWords(
            "nothing", _multiply(kept, running.stats_shape), format_shape(running.stats_shape), count
        )
    short = [name.upper() if grid.layout.letters else name for name in names]
    kept = [name.upper() if grid.layout.letters or name == "g" else name for name in grid.kept_names]
    keeps = _multiply(kept, grid.stats_shape)
    if window is not None:
        name, along = names[grid.axes[0]], short[grid.axes[0]]
        reach = f"{name}−{window.before} … {name}+{window.after} along {along}"
        return ReductionWords(
            reach, keeps, None, f"{format_count(grid.group_count, 'window')} of {grid.group_size}"
        )
    split = None if grid.split is None else grid.split.axis
    reduced = [f"{short[axis]}/G" if axis == split else short[axis] for axis in grid.axes]
    over = _multiply(reduced, tuple(grid.view_shape[axis] for axis in grid.view_axes))
    groups = f"{format_count(grid.group_count, 'group')} × {grid.group_size:,}"
    return ReductionWords(over, keeps, _format_shapes(plan), groups)


def _format_shapes(plan: Plan) -> str:
    grid, names = plan.grid, plan.grid.layout.names
    if grid.layout.letters is None:
        return f"{format_shape(grid.shape)} → {format_shape(grid.keepdims_shape)}"
    after = dict(zip(grid.kept, grid.kept_names, strict=True))
    return f"{''.join(names)} → {''.join(after.get(axis, '1') for axis in range(len(names)))}"


def _multiply(names: Sequence[str], sizes: tuple[int, ...]) -> str:
    return f"{'×'.join(names)} = {'×'.join(map(str, sizes))}" if names else "nothing"
