"""Which norms a tensor cannot tell apart, and what input would: in words."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from normcli.errors import NormError
from normcli.norms.plan import make_plan
from normcli.norms.request import Request
from normcli.norms.rules import AxesRule, Centre, ParameterRule
from normcli.norms.table import NORMS
from normcli.verify.affine import ESTIMATED

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from normcli.norms.grid import Grid
    from normcli.norms.layout import Layout
    from normcli.norms.norm import Norm
    from normcli.norms.plan import Plan
    from normcli.verify.hypothesis import Match
    from normcli.verify.identify import Question
    from normcli.verify.plain import PlainMap

_FITTED = 2
"""Numbers of each gamma and beta: so many values of each fit whatever they are."""


def join_words(words: Sequence[str]) -> str:
    """Return `a, b or c`.

    Examples
    --------
    >>> join_words(["bn", "in", "ln"])
    'bn, in or ln'
    """
    if not words:
        return "nothing"
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} or {words[-1]}"


def format_axes(axes: Sequence[int], layout: Layout) -> str:
    """Return `axis c`, or `axes h, w`; numbers where axes have no letters."""
    names = ", ".join(layout.name(axis) if layout.letters else str(axis) for axis in axes)
    return f"{'axes' if len(axes) > 1 else 'axis'} {names}"


def list_hidden_by_map(asked: Question, plain: PlainMap, layout: Layout) -> Iterator[str]:
    """Yield which norms a gamma and beta of each index would make a plain map, and what would tell."""
    shape = asked.x.shape
    if not plain.axes or asked.gamma is not None or asked.beta is not None:
        return
    wide, hidden = {axis for axis, length in enumerate(shape) if length > 1}, []
    for norm in _list_layers():
        plan = _try_plan(Request(norm.name, layout=asked.layout), shape)
        if plan is None or (norm.centre is Centre.NOTHING and plain.shift.any()):
            continue
        if wide & {*plan.grid.canonical.kept} <= {*plain.axes}:
            hidden.append(norm.name)
    if hidden:
        axes = format_axes(plain.axes, layout)
        whose = join_words([*hidden, "any norm whose groups hold whole ones"])
        more = ", or more than one sample" if shape[0] == 1 else ""
        yield (
            f"If this is {whose} with a gamma and a beta for each index of {axes}, "
            f"which hide its statistics, give them{more}."
        )


def list_hidden_by_gamma(asked: Question, layout: Layout) -> Iterator[str]:
    """Yield which norms could make any values with a gamma and a beta of their own, and what would tell."""
    shape = asked.x.shape
    if asked.gamma is not None or asked.beta is not None:
        return
    for start in range(1, len(shape)):
        axes = tuple(range(start, len(shape)))
        hidden = [norm.name for norm in _list_layers() if _lies_along(norm, axes, asked)]
        if math.prod(shape[:start]) <= _FITTED and hidden:
            place = f"each index of {format_axes(axes, layout)}"
            yield (
                f"With a gamma and a beta for {place}, {join_words(hidden)} could give any y of so few "
                f"samples: given, they would tell, or more than {_FITTED} samples."
            )
            return


def list_taken_up(best: Match, matches: Iterable[Match]) -> Iterator[str]:
    """Yield what a gamma that was fitted hides of a match, beside all matches of the same tensor."""
    if best.affine != ESTIMATED:
        return
    if NORMS[best.norm].centre is Centre.MEAN:
        yield "The fitted gamma hides ddof."
    same = [match for match in matches if (match.norm, match.axes) == (best.norm, best.axes)]
    for mode in sorted({match.eps_mode for match in same if match.eps_mode} - {best.eps_mode}):
        yield f"Eps {mode} the root fits as well."


def list_untold(best: Match, others: Iterable[Match], asked: Question, layout: Layout) -> Iterator[str]:
    """Yield which axis of length 1 hides that a match and others have other groups."""
    shape, others = asked.x.shape, [match for match in others if match.norm != best.norm]
    for axis in (axis for axis, length in enumerate(shape) if length == 1):
        longer = tuple(2 if place == axis else length for place, length in enumerate(shape))
        grids = {match.norm: _reduce_alike(match, asked, longer) for match in (best, *others)}
        apart = [
            name
            for name, grid in grids.items()
            if None not in (grid, grids[best.norm]) and grid != grids[best.norm]
        ]
        if apart:
            axes = format_axes((axis,), layout)
            yield f"More than one index of {axes} would tell {best.norm} from {join_words(apart)}."


def _list_layers() -> list[Norm]:
    """Return the norms whose gamma lies along the channels or the reduced axes."""
    rules = (ParameterRule.CHANNEL, ParameterRule.REDUCED)
    return [norm for norm in NORMS.values() if norm.parameters in rules]


def _lies_along(norm: Norm, axes: tuple[int, ...], asked: Question) -> bool:
    """Whether a norm of these axes has groups of several values, and a gamma for each index of the axes."""
    request = Request(norm.name, layout=asked.layout)
    if norm.axes is AxesRule.LAST:
        request = request._replace(axes=axes)
    if norm.axes is AxesRule.CHANNEL_GROUPS:
        request = request._replace(groups=1)
    plan = _try_plan(request, asked.x.shape)
    return plan is not None and plan.parameters.axes == axes and plan.grid.group_size > 1


def _reduce_alike(match: Match, asked: Question, shape: tuple[int, ...]) -> Grid | None:
    """Return the groups that the norm of a match has of another shape; None where its axes are no default."""
    norm = NORMS[match.norm]
    request = Request(norm.name, layout=asked.layout, groups=match.groups, group_order=match.group_order)
    if norm.axes is AxesRule.LAST:
        request = request._replace(axes=match.axes)
    here, there = _try_plan(request, asked.x.shape), _try_plan(request, shape)
    if here is None or there is None or here.grid.canonical.axes != match.axes:
        return None
    return there.grid.canonical


def _try_plan(request: Request, shape: tuple[int, ...]) -> Plan | None:
    try:
        return make_plan(request, shape, np.dtype(np.float64))
    except NormError:
        return None
