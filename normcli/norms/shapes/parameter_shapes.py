"""The shapes of gamma and beta, and the ways in which a gamma of another shape may lie along a tensor."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from normcli.norms.rules import ParameterRule
from normcli.tuples import NamedTuple

if TYPE_CHECKING:
    from normcli.norms.grid import Grid


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
        The norm's own shapes, where gamma and beta are given in another shape; None where these are its own.
    alike : bool
        False where gamma and beta are given in different shapes: `shape` is then what both broadcast to.
    """

    rule: ParameterRule
    axes: tuple[int, ...]
    shape: tuple[int, ...]
    full_shape: tuple[int, ...]
    view_shape: tuple[int, ...]
    own: ParameterShapes | None = None
    alike: bool = True

    def locate(self, number: int) -> dict[int, int]:
        """Return the position of a parameter as axis → place, given its number in C order."""
        index = np.unravel_index(number, self.full_shape) if self.full_shape else ()
        return {axis: int(index[axis]) for axis in self.axes}


def shape_parameters(rule: ParameterRule, grid: Grid, features: tuple[int, ...] | None) -> ParameterShapes:
    """Return the shapes of gamma and beta: along the axes `features`, or where that is None, by the rule."""
    every, channel = tuple(range(len(grid.shape))), grid.layout.channel
    by_group = rule is ParameterRule.GROUP and features is None
    axes = (
        features
        if features is not None
        else {
            ParameterRule.NONE: (),
            ParameterRule.REDUCED: grid.axes,
            ParameterRule.KEPT: grid.kept,
            ParameterRule.LAST: every[-1:],
        }.get(rule, () if channel is None else (channel,))
    )
    lengths = (grid.groups or 1,) * len(every) if by_group else grid.shape
    full_shape = tuple(lengths[axis] if axis in axes else 1 for axis in every)
    shape = tuple(full_shape[axis] for axis in axes)
    return ParameterShapes(rule, axes, shape, full_shape, grid.split_shape(full_shape))


def place_parameter(grid: Grid, shapes: ParameterShapes, shape: tuple[int, ...]) -> list[tuple[int, ...]]:
    """Return the ways in which a gamma of a shape may lie along the tensor, as shapes at the view's rank.

    The list is empty if the shape fits nowhere; its first entry is the one that is used. The order: as NumPy
    broadcasts, if the shape has as many axes as the tensor; along the norm's own axes; along channel groups; as
    NumPy broadcasts against the tensor, then against its view; and only if none of these fits, a flat gamma
    along several last axes together.
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
    """Return `[shape]`, padded with ones in front to the target's rank; `[]` if it does not broadcast to it."""
    padded = (*(1,) * (len(target) - len(shape)), *shape)
    fits = len(padded) == len(target) and all(
        n in (1, length) for n, length in zip(padded, target, strict=True)
    )
    return [padded] if fits else []
