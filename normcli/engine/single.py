"""One group of a tensor, normalized by itself: the same to the bit as in a run of the whole tensor."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from normcli.engine.blocks import ArraySource
from normcli.engine.geometry import find_geometry, find_lengths
from normcli.engine.inputs import NO_INPUTS, Inputs
from normcli.engine.run import run_source
from normcli.engine.walk import DEFAULT_EFFORT
from normcli.numerics.statistics.solution import Given
from normcli.tuples import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from normcli.engine.geometry import Geometry, Slices
    from normcli.engine.inputs import Selection
    from normcli.engine.walk import Effort
    from normcli.norms.plan import Plan
    from normcli.numerics.workspace import Workspace

_PAGE, _MOST_TOUCHED, _SHORTEST_BLOCK = 4096, 64 << 20, 1 << 14
"""Bytes that are read of a file for one value; the most bytes, and the fewest values, of a tile."""


class SingleGroup(NamedTuple):
    """The result of one group.

    Parameters
    ----------
    statistics : dict of str to float
    values : ndarray, shape (asked for,)
        The normalized values that were asked for, in the output's dtype.
    """

    statistics: dict[str, float]
    values: NDArray[Any]


class _Picker:
    """A sink that keeps some values of a group and drops the others."""

    def __init__(self, geometry: Geometry, wanted: Sequence[int], dtype: np.dtype[Any]) -> None:
        self.dtype = dtype
        lengths = [geometry.dims[run] for run in geometry.reduced_runs]
        self._runs = geometry.reduced_runs
        self._places = np.unravel_index(np.asarray(wanted, dtype=np.intp), lengths)
        self.values = np.empty(len(wanted), dtype)

    def open(self, tile: Slices, work: Workspace) -> NDArray[Any]:
        """Return a buffer for a tile."""
        return work.get("write", find_lengths(tile), self.dtype)

    def put(self, tile: Slices, values: NDArray[Any], work: Workspace) -> None:
        """Keep those of the tile's values that are wanted."""
        parts = tuple(tile[run] for run in self._runs)
        pairs = list(zip(parts, self._places, strict=True))
        inside = np.logical_and.reduce([(at >= part.start) & (at < part.stop) for part, at in pairs])
        chosen = tuple(at[inside] - part.start for part, at in pairs)
        self.values[inside] = values.reshape(find_lengths(parts))[chosen]


def normalize_group(
    plan: Plan,
    values: NDArray[Any],
    group: int,
    wanted: Sequence[int],
    inputs: Inputs = NO_INPUTS,
    effort: Effort = DEFAULT_EFFORT,
) -> SingleGroup:
    """Normalize some values of one group; no other group is read.

    Parameters
    ----------
    plan : Plan
    values : ndarray
        The whole tensor, which may be a map of a large file.
    group : int
        The group's number, in C order over the kept axes.
    wanted : sequence of int
        Which values of the group to return: their numbers in C order over the reduced axes of the view. A
        window has one value, number 0.
    inputs : Inputs
        Of which the selection is not used.
    effort : Effort

    Returns
    -------
    SingleGroup
        The same to the bit as the whole tensor's.
    """
    part = _isolate(plan, group, inputs)
    dtype = plan.choose_output_dtype(values.dtype)
    place = tuple(0 for _ in plan.grid.kept_view_axes)
    if part.along is not None:
        axis, at = part.along
        wanted, place = [at], tuple(at if each == axis else 0 for each in plan.grid.kept_view_axes)
    among = find_geometry(plan)
    lengths = tuple(n if reduced else 1 for n, reduced in zip(among.dims, among.reduced, strict=True))
    geometry = replace(among, dims=lengths)
    source = ArraySource(part.take(plan, values), part.plan.grid.view_shape, geometry)
    picker = _Picker(geometry, wanted, dtype)
    effort = _choose_effort(values, among, effort)
    statistics = run_source(part.plan, geometry, source, picker, part.inputs, effort)
    return SingleGroup({name: float(array[place]) for name, array in statistics.items()}, picker.values)


def differentiate_group(
    plan: Plan, values: NDArray[Any], dy: NDArray[Any], group: int, inputs: Inputs = NO_INPUTS
) -> NDArray[Any]:
    """Return dx of the values of one group, flat, in C order of the view: as `run_backward` has it.

    Of a window, that of every value on its line along the axis.

    Parameters
    ----------
    plan : Plan
    values, dy : ndarray
        The whole tensors.
    group : int
    inputs : Inputs
    """
    from normcli.engine.backward import run_backward  # for those alone who ask for it

    part = _isolate(plan, group, inputs)
    part = part.count_as(plan, inputs.selection)
    x, gradient = (np.ascontiguousarray(part.take(plan, array)) for array in (values, dy))
    return run_backward(part.plan, x, gradient, part.inputs, None, DEFAULT_EFFORT).dx.reshape(-1)


class GroupPart(NamedTuple):
    """One group as a problem of its own.

    Parameters
    ----------
    plan : Plan
    inputs : Inputs
        Gamma, beta and running statistics of the group.
    places : mapping of int to int
        The axes of the view of which it holds one place, and which.
    along : tuple of int or None
        Of a window: its axis, and where on it the value lies that the window belongs to.
    """

    plan: Plan
    inputs: Inputs
    places: Mapping[int, int]
    along: tuple[int, int] | None

    def count_as(self, plan: Plan, selection: Selection | None) -> GroupPart:
        """Return the part with which of its values count."""
        if selection is None:
            return self
        mask = selection.mask
        if mask is not None:
            mask = _take(mask.reshape(plan.grid.split_shape(mask.shape)), self.places)
        return self._replace(inputs=self.inputs._replace(selection=selection._replace(mask=mask)))

    def take(self, plan: Plan, values: NDArray[Any]) -> NDArray[Any]:
        """Return the group's part of a tensor, at the view's rank."""
        return _take(values.reshape(plan.grid.view_shape), self.places)


def _isolate(plan: Plan, group: int, inputs: Inputs) -> GroupPart:
    selected = plan.grid.select_group(group)
    index = {axis: place for axis, place in enumerate(selected) if isinstance(place, int)}
    along = None
    if plan.groups_overlap:  # groups are lines along its axis, of which each value has its own
        axis = plan.grid.view_axes[0]
        along = axis, index.pop(axis)
    alone = plan.restrict(tuple(1 if axis in index else n for axis, n in enumerate(plan.grid.view_shape)))
    scale, shift = (
        None if parameter is None else _take(parameter.reshape(plan.parameters.view_shape), index)
        for parameter in (inputs.gamma, inputs.beta)
    )
    given = None
    if inputs.given is not None:
        own = (plan.grid.spread_running(known).reshape(-1)[group] for known in inputs.given)
        given = Given(*(np.full(alone.grid.running.stats_shape, known) for known in own))
    return GroupPart(alone, Inputs(scale, shift, given), index, along)


def _take(array: NDArray[Any], index: Mapping[int, int]) -> NDArray[Any]:
    """Return the part of a view at an index of some of its axes, of length 1 there; axes of 1 stay."""
    part = tuple(
        slice(index[axis], index[axis] + 1) if axis in index and length > 1 else slice(None)
        for axis, length in enumerate(array.shape)
    )
    return array[part]


def _choose_effort(values: NDArray[Any], geometry: Geometry, effort: Effort) -> Effort:
    """Return tiles so short that they touch few pages of a mapped file, however far apart their values lie."""
    if not isinstance(values, np.memmap):
        return effort
    behind = math.prod(geometry.dims[geometry.reduced_runs[-1] + 1 :])
    touched = min(_PAGE, behind * values.dtype.itemsize)
    block = max(_SHORTEST_BLOCK, min(effort.block, _MOST_TOUCHED // touched))
    return effort._replace(block=block, whole=min(effort.whole, block))
