"""One group of a tensor, normalized by itself: the same to the bit as in a run of the whole tensor."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from normcli.engine.inputs import NO_INPUTS, Inputs
from normcli.engine.run import run
from normcli.engine.tiling.geometry import find_geometry
from normcli.engine.walk import DEFAULT_EFFORT
from normcli.numerics.statistics.solution import Given
from normcli.tuples import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from normcli.engine.inputs import Selection
    from normcli.engine.tiling.geometry import Geometry
    from normcli.engine.walk import Effort
    from normcli.norms.plan import Plan
    from normcli.numerics.elements.gate import Gated

_PAGE, _MOST_TOUCHED, _SHORTEST_BLOCK = 4096, 64 << 20, 1 << 14
"""Bytes that are read from a file for one value; the most bytes, and the fewest values, of a tile."""


class SingleGroup(NamedTuple):
    """The result of one group.

    Parameters
    ----------
    statistics : dict of str to float
    values : ndarray, shape (wanted,)
        The normalized values that were asked for, in the output's dtype.
    """

    statistics: dict[str, float]
    values: NDArray[Any]


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
        The group's index, in C order over the kept axes.
    wanted : sequence of int
        Which values of the group to return: their indices in C order over the reduced axes of the view. A
        window has one value, with index 0.
    inputs : Inputs
        Gamma, beta, known statistics (`given`) and the gate are used; the selection, `measured` and the bounds
        (`clip`) are not.
    effort : Effort

    Returns
    -------
    SingleGroup
        Its numbers equal, to the bit, the numbers of a run over the whole tensor with these inputs.
    """
    part = _isolate(plan, group, inputs)
    place = tuple(0 for _ in plan.grid.kept_view_axes)
    if part.along is not None:
        axis, at = part.along
        wanted, place = [at], tuple(at if each == axis else 0 for each in plan.grid.kept_view_axes)
    effort = _choose_effort(values, find_geometry(plan), effort)
    normalized, statistics = run(part.plan, part.take(plan, values), part.inputs, effort=effort)
    found = {name: float(array[place]) for name, array in statistics.items()}
    return SingleGroup(found, np.asarray(normalized.reshape(-1)[np.asarray(wanted, np.intp)]))


def differentiate_group(
    plan: Plan, values: NDArray[Any], dy: NDArray[Any], group: int, inputs: Inputs = NO_INPUTS
) -> NDArray[Any]:
    """Return dx of the values of one group, flat, in C order of the view; to the bit that of `run_backward`.

    If groups are windows, return dx of every value on the window's line along its axis.

    Parameters
    ----------
    plan : Plan
    values, dy : ndarray
        The whole tensors.
    group : int
        The group's index, in C order over the kept axes.
    inputs : Inputs
        Gamma, beta, known statistics (`given`), gates and the selection are used.
    """
    from normcli.engine.backward import run_backward  # for those alone who ask for it

    part = _isolate(plan, group, inputs)
    part = part.count_as(plan, inputs.selection)
    x, gradient = (np.ascontiguousarray(part.take(plan, array)) for array in (values, dy))
    before = part.inputs.gated_input
    downstream = before and before._replace(times=None)
    return run_backward(part.plan, x, gradient, part.inputs, None, DEFAULT_EFFORT, downstream).dx.reshape(-1)


class GroupPart(NamedTuple):
    """One group of a tensor as a problem of its own.

    Parameters
    ----------
    plan : Plan
        The plan of a tensor that has only this group.
    inputs : Inputs
        Gamma, beta, known statistics and gates of the group.
    places : mapping of int to int
        The group's position on each axis of the view along which it has only one.
    along : tuple of int or None
        If groups are windows: their axis, and the position on it of the window's own value. None otherwise.
    """

    plan: Plan
    inputs: Inputs
    places: Mapping[int, int]
    along: tuple[int, int] | None

    def count_as(self, plan: Plan, selection: Selection | None) -> GroupPart:
        """Return this part with the selection of a whole tensor cut to the group; itself if that is None."""
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
    """Return a group, given by its index, as a problem of its own: its plan, and its part of the inputs.

    The selection is left out. If groups are windows, the part is the line along their axis that holds all
    values of the window.
    """
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
    part = GroupPart(alone, Inputs(scale, shift, given), index, along)

    def cut(gate: Gated | None) -> Gated | None:
        return gate and gate.map(lambda a: part.take(plan, np.broadcast_to(a, plan.grid.shape)))

    inputs = part.inputs._replace(gate=cut(inputs.gate), gated_input=cut(inputs.gated_input))
    return part._replace(inputs=inputs)


def _take(array: NDArray[Any], index: Mapping[int, int]) -> NDArray[Any]:
    """Return a part of an array: one position of some axes, which are kept with length 1.

    `index` has the position by axis; axes of length 1, which broadcast, are left as they are.
    """
    part = tuple(
        slice(index[axis], index[axis] + 1) if axis in index and length > 1 else slice(None)
        for axis, length in enumerate(array.shape)
    )
    return array[part]


def _choose_effort(values: NDArray[Any], geometry: Geometry, effort: Effort) -> Effort:
    """Return an effort with small tiles for a mapped file, so that reading one tile touches few of its pages.

    For an array in memory, the effort is returned as it is.
    """
    if not isinstance(values, np.memmap):
        return effort
    behind = math.prod(geometry.dims[geometry.reduced_runs[-1] + 1 :])
    touched = min(_PAGE, behind * values.dtype.itemsize)
    block = max(_SHORTEST_BLOCK, min(effort.block, _MOST_TOUCHED // touched))
    return effort._replace(block=block, whole=min(effort.whole, block))
