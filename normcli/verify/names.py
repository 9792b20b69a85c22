"""What a way of grouping and dividing is called, and which frameworks do just so."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from normcli.conventions import list_frameworks
from normcli.errors import NormError
from normcli.norms import NORMS, AxesRule, Centre, Divisor, EpsMode
from normcli.plan import make_plan
from normcli.request import Request

if TYPE_CHECKING:
    from collections.abc import Iterator

    from normcli.norms import Norm
    from normcli.plan import Window
    from normcli.verify.affine import Affine
    from normcli.verify.evidence import Model
    from normcli.verify.groupings import Grouping


class Name(NamedTuple):
    """A norm of the table that a hypothesis amounts to.

    Parameters
    ----------
    norm : str
    groups : int or None
    """

    norm: str
    groups: int | None = None


def name_hypothesis(
    grouping: Grouping, model: Model, channels: frozenset[int], *, centred: bool
) -> Iterator[Name]:
    """Yield every norm whose groups these are, in the order of the table; at least one.

    Parameters
    ----------
    grouping : Grouping
    model : Model
    channels : frozenset of int
        The axes that may be the channel.
    centred : bool
    """
    rows = [norm for norm in NORMS.values() if _divides_so(norm, model, centred=centred)]
    named = [norm for norm in rows if any(_reduces_so(norm, grouping, channel) for channel in channels)]
    if not named:  # by a choice of axes that is nobody's default
        rule = AxesRule.LAST if grouping.split is None else AxesRule.CHANNEL_GROUPS
        named = [norm for norm in rows if norm.axes is rule][:1] or rows[:1]
    for norm in named:
        yield Name(
            norm.name, (grouping.groups or 1) if norm.axes is AxesRule.CHANNEL_GROUPS else grouping.groups
        )


def _divides_so(norm: Norm, model: Model, *, centred: bool) -> bool:
    if (norm.centre is Centre.MEAN) != centred:
        return False
    if model.p is not None:
        return norm.divisor is Divisor.LP_NORM and norm.p in (None, model.p)
    if norm.divisor is not (Divisor.DEVIATION if centred else Divisor.ROOT_MEAN_SQUARE):
        return False
    if norm.eps is None:
        return model.low == 0.0
    return norm.eps_mode in (EpsMode.INSIDE, model.eps_mode)  # what is not usual is a norm's own


def _reduces_so(norm: Norm, grouping: Grouping, channel: int) -> bool:
    shape, axes = grouping.shape, grouping.axes
    if norm.axes is AxesRule.LAST:
        wide = [axis for axis, length in enumerate(shape) if length > 1]
        return grouping.split is None and list(axes) == [axis for axis in wide if axis >= axes[0]]
    groups = (grouping.groups or 1) if norm.axes is AxesRule.CHANNEL_GROUPS else None
    if grouping.split is not None and (groups is None or grouping.interleaved):
        return groups is not None and grouping.split == channel and set(axes) == _all_but_first(shape)
    try:
        plan = make_plan(Request(norm=norm.name, groups=groups, layout=_name_axes(len(shape), channel)), shape)
    except NormError:  # no such norm of such a shape
        return False
    return sign(plan.view_shape, plan.view_axes) == sign(grouping.view_shape, grouping.view_axes)


def _all_but_first(shape: tuple[int, ...]) -> set[int]:
    return {axis for axis, length in enumerate(shape) if length > 1 and axis > 0}


def _name_axes(rank: int, channel: int) -> str:
    """Return a layout with the batch first and a channel where it is wanted."""
    letters = list("NABDEFGHIJKLMOPQRSTUVWXYZ"[:rank])
    letters[channel] = "C"
    return "".join(letters)


def find_like(name: Name, grouping: Grouping, model: Model, affine: Affine) -> tuple[str, ...]:
    """Return the frameworks whose defaults for a norm of this shape are just these."""
    found = []
    for framework in list_frameworks(name.norm):
        try:
            plan = make_plan(Request(norm=name.norm, groups=name.groups, like=framework), grouping.shape)
        except NormError:  # a framework that does not take such a shape
            continue
        same_groups = sign(plan.view_shape, plan.view_axes) == sign(grouping.view_shape, grouping.view_axes)
        eps = plan.eps or 0.0
        same_divisor = (
            model.low <= eps <= model.high
            and plan.ddof == model.ddof
            and (plan.eps_mode in (None, model.eps_mode) or eps == 0.0)
            and (model.p is None or plan.p == model.p)
        )
        offset = getattr(plan, "gamma_offset", 0)
        same_affine = affine.scale is None or affine.estimated or (offset == 1) == affine.name.startswith("1 +")
        if same_groups and same_divisor and same_affine:
            found.append(framework)
    return tuple(found)


WINDOWED = next(norm.name for norm in NORMS.values() if norm.divisor is Divisor.WINDOW_POWER)
"""The norm with a window."""


def find_like_window(window: Window, shape: tuple[int, ...], axis: int) -> tuple[str, ...]:
    """Return the frameworks whose windows lie so; their constants are everybody's own."""
    found = []
    for framework in list_frameworks(WINDOWED):
        request = Request(norm=WINDOWED, like=framework, size=window.size, axes=(axis,))
        try:
            theirs = make_plan(request, shape).window
        except NormError:  # a framework that does not take such a shape or size
            continue
        if theirs is not None and (theirs.before, theirs.after) == (window.before, window.after):
            found.append(framework)
    return tuple(found)


def sign(view_shape: tuple[int, ...], view_axes: tuple[int, ...]) -> list[tuple[int, bool]]:
    """Return what tells groupings apart: the lengths above 1, and whether each is reduced."""
    return [(length, axis in view_axes) for axis, length in enumerate(view_shape) if length > 1]
