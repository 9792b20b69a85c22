"""The axes that a request reduces, and the split of channels; the axes and shapes of gamma and beta."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from normcli.errors import UsageError
from normcli.norms.grid import Split
from normcli.norms.rules import AxesRule, GroupOrder, ParameterRule
from normcli.printable import format_count
from normcli.tuples import NamedTuple

if TYPE_CHECKING:
    from normcli.norms.grid import Grid
    from normcli.norms.layout import Layout
    from normcli.norms.request import Choices


EACH_CHANNEL = -1
"""The number of groups that means one group for each channel, as in Keras."""

_MOST_DIVISORS = 1024
"""The largest divisor that a message suggests as a number of groups or the length of a block."""


def list_divisors(count: int) -> str:
    """Return the divisors of an axis's length, up to 1,024, as text for a message; `none` for an empty axis."""
    return ", ".join(str(g) for g in range(1, min(count, _MOST_DIVISORS) + 1) if count % g == 0) or "none"


def choose_axes(chosen: Choices, layout: Layout) -> tuple[int, ...]:
    """Return the axes that are reduced, in ascending order: those that the request names, or the norm's own.

    Raises
    ------
    UsageError
        If a given axis does not exist, the norm's rule needs a channel axis that the layout does not have, the
        convention has no default axes, or a norm with a window is given any number of axes but one.
    """
    request, norm, every = chosen.request, chosen.norm, tuple(range(layout.ndim))
    if request.axes is not None:
        axes = layout.resolve(request.axes, "axes")
    elif request.keep is not None:
        kept = layout.resolve(request.keep, "keep")
        axes = tuple(axis for axis in every if axis not in kept)
    else:
        axes = _default_axes(chosen.pick("axes"), layout, every)
    if norm.axes is AxesRule.CHANNEL_WINDOW and len(axes) != 1:
        raise UsageError(f"{norm.name} has a window along one axis, not along {len(axes)}")
    return axes


_PLACES = {
    AxesRule.FIRST: slice(0, 1),
    AxesRule.SECOND: slice(1, 2),
    AxesRule.LAST: slice(-1, None),
    AxesRule.LAST_THREE: slice(-3, None),
    AxesRule.ALL_BUT_FIRST: slice(1, None),
    AxesRule.ALL_BUT_LAST: slice(0, -1),
}
"""The rules that need no layout, as slices of the tuple of all axes."""


def _default_axes(rule: AxesRule, layout: Layout, every: tuple[int, ...]) -> tuple[int, ...]:
    """Return the axes that a rule reduces; `every` has the numbers of all axes.

    Raises `UsageError` if the rule needs a channel axis and there is none, or has no default axes.
    """
    if rule in _PLACES:
        return every[_PLACES[rule]]
    if rule in (AxesRule.CHANNEL, AxesRule.CHANNEL_WINDOW):
        return (_require_channel(layout),)
    if rule is AxesRule.GIVEN:
        raise UsageError("this convention has no default axes; give them (--axes)")
    if rule is AxesRule.ALL:
        return every
    batch = {layout.batch}
    if rule is AxesRule.ALL_BUT_BATCH:
        return tuple(axis for axis in every if axis not in batch)
    channel = {layout.channel if layout.words is None else _require_channel(layout)}
    kept = {
        AxesRule.ALL_BUT_BATCH_AND_CHANNEL: batch | channel,
        AxesRule.CHANNEL_GROUPS: batch - channel,
    }.get(rule, channel)
    return tuple(axis for axis in every if axis not in kept)


def choose_rows(chosen: Choices, layout: Layout, axes: tuple[int, ...]) -> tuple[int, ...] | None:
    """Return the reduced axes that are rows of a matrix; None for norms whose groups are no matrices.

    Raises
    ------
    UsageError
        If an axis given as a row does not exist, or is not reduced.
    """
    if chosen.norm.rows is None:
        return None
    rows = chosen.pick("rows")
    if isinstance(rows, AxesRule):
        return axes[_PLACES[rows]]
    found = layout.resolve(rows, "rows")
    if not set(found) <= set(axes):
        raise UsageError(f"rows are of a matrix, which has the axes {', '.join(map(str, axes))}")
    return found


def _require_channel(layout: Layout) -> int:
    """Return the channel axis of a layout; raise `UsageError` if it has none."""
    if layout.channel is None and layout.words is not None:
        raise UsageError(f"none of the axes {', '.join(layout.words)} is called channel; give axes (--axes)")
    if layout.channel is None:
        axes = format_count(layout.ndim, "axis", "axes")
        raise UsageError(f"a tensor of {axes} has no channel axis; name it with a layout such as NC")
    return layout.channel


def choose_split(
    chosen: Choices, layout: Layout, axes: tuple[int, ...], shape: tuple[int, ...]
) -> Split | None:
    """Return the split of the channel axis (or of the last reduced axis) into groups; None without a split.

    Raises
    ------
    UsageError
        If a norm that needs a number of groups gets none, or the layout has no channel axis for it; if the
        number does not divide the length of the axis; if the axis is not reduced; or if groups or their order
        are given and nothing is split.
    """
    norm, groups = chosen.norm, chosen.request.groups
    if not norm.needs_groups and (groups is None or not axes):
        if (groups, chosen.request.group_order) != (None, None):
            raise UsageError("groups are of an axis that is reduced: give groups, and axes")
        return None
    channel = _require_channel(layout) if norm.needs_groups else axes[-1]
    count = shape[channel]
    divisors = list_divisors(count)
    if groups is None:
        raise UsageError(
            f"{norm.name} needs groups (--groups): the divisors of {count} (axis {channel}) are {divisors}"
        )
    groups = count if groups == EACH_CHANNEL else groups
    if groups < 1 or count % groups:
        which = f"{'channel ' * norm.needs_groups}axis {channel}"
        raise UsageError(f"groups {groups} does not divide the length {count} of the {which}; try {divisors}")
    if channel not in axes:
        raise UsageError(f"{norm.name} reduces the channels of a group: axes must hold axis {channel}")
    return Split(channel, groups, GroupOrder(chosen.pick("group_order")))


class ParameterShapes(NamedTuple):
    """The shapes of gamma and beta.

    Parameters
    ----------
    rule : ParameterRule
    axes : tuple of int
        The axes of the tensor that gamma and beta vary along.
    shape : tuple of int
        The shape of gamma and of beta: one length for each of `axes`.
    full_shape : tuple of int
        The shape at the tensor's rank, with 1 for the other axes.
    view_shape : tuple of int
        The shape at the rank of the grid's view, where a split axis is two.
    own : ParameterShapes or None
        The norm's own shapes, if gamma and beta were given in other shapes; None if these are the norm's own.
    alike : bool
        False if gamma and beta were given in different shapes: `shape` is then the shape both broadcast to.
    """

    rule: ParameterRule
    axes: tuple[int, ...]
    shape: tuple[int, ...]
    full_shape: tuple[int, ...]
    view_shape: tuple[int, ...]
    own: ParameterShapes | None = None
    alike: bool = True

    def locate(self, number: int) -> dict[int, int]:
        """Return the index of one number of gamma or beta as axis → index, given its number in C order."""
        index = np.unravel_index(number, self.full_shape) if self.full_shape else ()
        return {axis: int(index[axis]) for axis in self.axes}


def shape_parameters(rule: ParameterRule, grid: Grid, features: tuple[int, ...] | None) -> ParameterShapes:
    """Return the shapes of gamma and beta: along the axes `features`, or if these are None, by the rule.

    A rule that needs a channel axis gives single numbers, shape (), where there is none.
    """
    every, channel = tuple(range(len(grid.shape))), grid.layout.channel
    by_group = rule is ParameterRule.GROUP and features is None
    of_rule = {
        ParameterRule.NONE: (),
        ParameterRule.REDUCED: grid.axes,
        ParameterRule.KEPT: grid.kept,
        ParameterRule.LAST: every[-1:],
    }
    axes = of_rule.get(rule, () if channel is None else (channel,)) if features is None else features
    lengths = (grid.groups or 1,) * len(every) if by_group else grid.shape
    full_shape = tuple(lengths[axis] if axis in axes else 1 for axis in every)
    shape = tuple(full_shape[axis] for axis in axes)
    return ParameterShapes(rule, axes, shape, full_shape, grid.split_shape(full_shape))


def place_parameter(grid: Grid, shapes: ParameterShapes, shape: tuple[int, ...]) -> list[tuple[int, ...]]:
    """Return the ways in which a gamma or beta of a shape may lie along the tensor, the likeliest first.

    A way is a shape at the rank of the grid's view, in which a split axis is two. An empty list means that the
    shape fits nowhere. The order of ways:

    1. as NumPy broadcasts, if the shape has as many axes as the tensor;
    2. along the norm's own axes;
    3. along channel groups;
    4. as NumPy broadcasts against the tensor, then against its view;
    5. only if none of these fits, a flat gamma along several last axes together.
    """
    own = shapes.own or shapes
    every = range(len(grid.shape))
    column = shape[:1] if len(shape) == 2 and shape[1] == 1 else shape  # as a CSV file has it
    fitting = [fitted for given in (shape, column) for fitted in pad_shape(given, own.shape)]
    spread = [dict(enumerate(fitted)) for fitted in pad_shape(shape, grid.shape)]
    full = spread if len(shape) == len(grid.shape) else []
    full = [*full, *(dict(zip(own.axes, fitted, strict=True)) for fitted in fitting)]
    full += [dict(enumerate(fitted)) for fitted in pad_shape(shape, own.full_shape)]
    if grid.split is not None and shape == (grid.split.groups,):
        full.append({grid.split.axis: grid.split.groups})
    full += spread
    found = [grid.split_shape(tuple(along.get(axis, 1) for axis in every)) for along in full]
    found += pad_shape(shape, grid.view_shape)
    for first in reversed(every[:-1]):
        if not found and shape == (math.prod(grid.shape[first:]),):
            found.append(grid.split_shape((*(1,) * first, *grid.shape[first:])))
    return [*dict.fromkeys(found)]


def pad_shape(shape: tuple[int, ...], target: tuple[int, ...]) -> list[tuple[int, ...]]:
    """Return a list with one shape: `shape`, with ones in front up to the target's rank.

    The list is empty if the shape does not broadcast to the target.
    """
    padded = (*(1,) * (len(target) - len(shape)), *shape)
    fits = len(padded) == len(target) and all(
        n in (1, length) for n, length in zip(padded, target, strict=True)
    )
    return [padded] if fits else []
