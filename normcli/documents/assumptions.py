"""Guesses about a tensor's axes that an answer states, with the option that corrects them."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING

from normcli.errors import NormError
from normcli.norms.layout import CHANNEL_LAST_LAYOUTS, DEFAULT_LAYOUTS
from normcli.norms.plan import make_plan
from normcli.norms.rules import AxesRule

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from normcli.norms.plan import Plan

_TOKENS = 3
"""The rank of tensors that may be (batch, tokens, features); tensors of more axes may be images."""

_MOST_COLOURS = 4
"""The greatest length of a last axis that may be colours, if it is the shortest axis of a sample."""

_KINDS = {3: "tokens", 4: "images", 5: "volumes"}
"""Rank → what tensors whose channel is the last axis hold."""


def list_assumed(plans: Iterable[Plan]) -> tuple[tuple[str, tuple[str, ...]], ...]:
    """Return the header's lines on unusual axes, and on a guessed layout if another has other groups or names.

    Parameters
    ----------
    plans : iterable of Plan
        Of one tensor.

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
    """Return a note on axes that leave the batch out of groups that it is in by default; else None."""
    layout = plan.grid.layout
    if plan.norm.axes is not AxesRule.ALL_BUT_CHANNEL or layout.batch is None or layout.batch in plan.grid.axes:
        return None
    batch = (layout.letters or layout.names)[layout.batch]
    return f"{plan.norm.name} does not reduce {batch} with these axes: each sample has its own statistics"


def _find_assumed(plan: Plan, *, named: bool) -> Iterator[str]:
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
    """Whether a layout makes other groups than the plan has."""
    with contextlib.suppress(NormError):  # groups that do not divide the other axis
        other = make_plan(
            plan.request._replace(layout=layout), plan.grid.shape, plan.tensor_dtype, plan.grid.columns
        )
        return (other.grid.axes, other.grid.split) != (plan.grid.axes, plan.grid.split)
    return False
