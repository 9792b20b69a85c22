"""One group of a tensor, measured for a story: its values, its statistics, some of its results."""

from __future__ import annotations

import functools
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from normcli.engine.single import differentiate_group, normalize_group
from normcli.numerics.rounding import widen
from normcli.results.degenerate_groups import find_degeneracies
from normcli.tensors.mapped import fetch, require_unchanged

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from normcli.engine.inputs import Inputs
    from normcli.engine.single import SingleGroup
    from normcli.engine.walk import Effort
    from normcli.norms.plan import Plan
    from normcli.numerics.elements.gate import Gated
    from normcli.results.degenerate_groups import Degeneracy


@dataclass(frozen=True, slots=True)
class Outcome:
    """One value of the group, and its result.

    Parameters
    ----------
    place : int
        The value's index in its group, in C order.
    index : tuple of int
        The value's index in the tensor.
    value : int or float
        The input value.
    scaled : float or None
        x̂ in float64, before gamma and beta; None with running statistics.
    parameters : mapping of str to float
        The gamma and beta of the value, those that are given.
    normalized : float
        The result, in the output's dtype.
    dy, dx : float or None
        The derivatives of a loss with respect to the result and to the value; None in a forward pass.
    gate : Gated or None
        The gate of the value, which multiplies the result; None without one.
    """

    place: int
    index: tuple[int, ...]
    value: float
    scaled: float | None
    parameters: Mapping[str, float]
    normalized: float
    dy: float | None = None
    dx: float | None = None
    gate: Gated | None = None


@dataclass(frozen=True)
class MeasuredGroup:
    """A group (or a window) with its values, statistics and results.

    Parameters
    ----------
    plan : Plan
    number : int
        The group's index, in C order over the kept axes.
    values : ndarray
        The input values of the group: a view of the tensor, which may be mapped from a file.
    statistics : mapping of str to float
    outcomes : sequence of Outcome
        The values that the story shows.
    dtype : dtype
        The dtype of the output.
    degeneracies : tuple of Degeneracy
    gradients : ndarray or None
        dy of each value, in the order of `values`; None in a forward pass.
    parameters : mapping of str to ndarray
        gamma and beta of each value, in the order of `values`, those that are given.
    addends : tuple of ndarray
        x and the residual of each value, in the order of `values`; empty if x is no sum.
    gate : Gated or None
        In a backward pass, the gate of each value, in the order of `values`; its `times` are x before the gate.
    """

    plan: Plan
    number: int
    values: NDArray[Any]
    statistics: Mapping[str, float]
    outcomes: Sequence[Outcome]
    dtype: np.dtype[Any]
    degeneracies: tuple[Degeneracy, ...]
    gradients: NDArray[Any] | None = None
    parameters: Mapping[str, NDArray[Any]] = field(default_factory=dict)
    addends: tuple[NDArray[Any], ...] = ()
    gate: Gated | None = None

    @property
    def name(self) -> str:
        """The name of the group, such as `n=0 c=1`."""
        return self.plan.grid.group_name(self.number)

    @property
    def count(self) -> int:
        """The number of values."""
        return self.values.size

    def value(self, place: int) -> float:
        """Return a value as a Python int or float."""
        return get_number(self.values, np.unravel_index(place, self.values.shape))

    def list_columns(self, *, summed: bool) -> dict[str, NDArray[Any]]:
        """Return arrays of the group by name: x, and dy in a backward pass; if `summed`, x, r and x + r."""
        if summed:
            return dict(zip(("x", "r", "x + r"), (*self.addends, self.values), strict=True))
        return {"x": self.values} | ({} if self.gradients is None else {"dy": self.gradients})

    def find_whole_number(self, rank: int) -> int | None:
        """Return the integer of a rank (0 is the smallest), unrounded; None if the values are floats."""
        if self.values.dtype.kind not in "iu":
            return None
        return int(np.partition(self.values, rank, axis=None)[rank])

    def index(self, place: int) -> tuple[int, ...]:
        """Return the index in the tensor of a value of the group."""
        return tuple(map(int, self.plan.grid.locate_values(self.number, np.asarray(place))))

    def indices(self, places: NDArray[np.intp]) -> NDArray[np.intp]:
        """Return the indices of some values of the group, of shape (values, axes)."""
        located = self.plan.grid.locate_values(self.number, places)
        return np.array(located, dtype=np.intp).reshape(len(located), places.size).T


def find_group(plan: Plan, index: tuple[int, ...]) -> tuple[int, int]:
    """Return the index of the group (or window) of a value, and the value's index in that group, in C order."""
    indices = [np.asarray(i, dtype=np.intp) for i in index]
    if plan.grid.reach is not None:
        place = min(index[plan.grid.axes[0]], plan.grid.reach.before)
    else:
        place = int(plan.grid.locate_within_groups(indices))
    return int(plan.grid.locate_groups(indices)), place


def measure_group(
    plan: Plan, values: NDArray[Any], inputs: Inputs, number: int, places: Sequence[int], effort: Effort
) -> MeasuredGroup:
    """Normalize one group of a tensor, without reading the others.

    Parameters
    ----------
    plan : Plan
        A plan with at least one value in each group.
    values : ndarray
        The whole tensor.
    inputs : Inputs
        Gamma, beta and running statistics.
    number : int
        The group's index, in C order over the kept axes.
    places : sequence of int
        The indices in the group, in C order, of the values to show; for a window, that of its own value.
    effort : Effort

    Raises
    ------
    DataError
        If the tensor's file has changed since it was opened.
    """
    normalize = functools.partial(normalize_group, values=values, group=number, wanted=places, effort=effort)
    single = normalize(plan, inputs=inputs)
    scaled: Sequence[float | None] = [None] * len(places)
    if inputs.given is None:
        scaled = normalize(plan.change_spec(dtype="float64")).values.tolist()
    outcomes = []
    for place, x_hat, y in zip(places, scaled, single.values.tolist(), strict=True):
        index = tuple(map(int, plan.grid.locate_values(number, np.asarray(place))))
        parameters = {name: _pick_parameter(plan, p, index) for name, p in inputs.parameters.items()}
        gate = None if inputs.gate is None else pick_gate(inputs.gate, values.shape, index)
        numbers = get_number(values, index), x_hat, parameters, float(y)
        outcomes.append(Outcome(place, index, *numbers, gate=gate))
    members = plan.grid.take_group(values, number)
    require_unchanged(values)
    found = _find_degeneracies(plan, members, number, single, inputs)
    return MeasuredGroup(plan, number, members, single.statistics, outcomes, single.values.dtype, found)


def add_gradients(
    group: MeasuredGroup, values: NDArray[Any], dy: NDArray[Any], inputs: Inputs
) -> MeasuredGroup:
    """Return a group with dy of all its values, and dx of the values that the story shows.

    Parameters
    ----------
    group : MeasuredGroup
    values, dy : ndarray
        The whole tensors.
    inputs : Inputs
        Gamma, beta and running statistics.
    """
    grid = group.plan.grid
    dx = differentiate_group(group.plan, values, dy, group.number, inputs)

    def find_dx(outcome: Outcome) -> float:
        place = outcome.place if grid.reach is None else outcome.index[grid.axes[0]]
        return float(dx[place])

    outcomes = [
        replace(outcome, dy=get_number(dy, outcome.index), dx=find_dx(outcome)) for outcome in group.outcomes
    ]
    spread = {
        name: np.broadcast_to(parameter.reshape(group.plan.parameters.view_shape), grid.view_shape)
        for name, parameter in inputs.parameters.items()
    }
    of_group = {name: array[grid.select_group(group.number)].reshape(-1) for name, array in spread.items()}
    gate = inputs.gate or inputs.gated_input
    if gate is not None:
        gate = gate.map(
            lambda a: fetch(grid.take_group(np.broadcast_to(a, grid.shape), group.number)).reshape(-1)
        )
    gradients = grid.take_group(dy, group.number)
    return replace(group, outcomes=outcomes, gradients=gradients, parameters=of_group, gate=gate)


def get_number(values: NDArray[Any], index: Sequence[Any]) -> float:
    """Return a value of an array as Python's own number."""
    value = fetch(values[(*index, ...)]).item()
    return int(value) if isinstance(value, int) else float(value)  # of a long double too


def pick_gate(gate: Gated, shape: tuple[int, ...], index: tuple[int, ...]) -> Gated:
    """Return the gate at one index of a tensor of some shape, to which it broadcasts."""
    return gate.map(lambda a: np.asarray(np.broadcast_to(fetch(a), shape)[index]))


def _pick_parameter(plan: Plan, parameter: NDArray[Any], index: tuple[int, ...]) -> float:
    """Return the number that gamma or beta has at one index of the tensor."""
    spread = np.broadcast_to(parameter.reshape(plan.parameters.view_shape), plan.grid.view_shape)
    return float(spread[tuple(plan.grid.view_indices([np.asarray(i) for i in index]))])


def _find_degeneracies(
    plan: Plan, members: NDArray[Any], number: int, single: SingleGroup, inputs: Inputs
) -> tuple[Degeneracy, ...]:
    """Return the degeneracies of one group, such as `constant` or `nan`; empty for a sound group.

    Parameters
    ----------
    plan : Plan
        The plan of the whole tensor.
    members : ndarray
        The values of the group.
    number : int
        The group's index.
    single : SingleGroup
        The group's statistics and results.
    inputs : Inputs
    """
    held = members
    if (
        plan.grid.reach is not None
    ):  # each value has a window: of this one, the worst that it holds stands for all
        flat = fetch(members).reshape(-1)
        not_finite = flat[~np.isfinite(widen(flat))]
        held = (not_finite if not_finite.size else flat)[:1]
    lengths = tuple(1 if axis in plan.grid.kept_view_axes else n for axis, n in enumerate(plan.grid.view_shape))
    alone = plan.restrict(lengths)
    arrays = {name: np.full(alone.grid.stats_shape, value) for name, value in single.statistics.items()}
    is_bounded = inputs.given is None and not inputs.scales and plan.norm.divisor.bounded
    normalized = None if is_bounded else single.values
    found = find_degeneracies(alone, held.reshape(lengths), arrays, normalized, inputs)
    return tuple(kind._replace(first_group=plan.grid.group_name(number)) for kind in found)
