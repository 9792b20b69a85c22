"""One group of a tensor as a story needs it: its values where they lie, its statistics, some of its results."""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np

from normcli.dtypes import is_float
from normcli.engine.inputs import Inputs
from normcli.engine.run import choose_output_dtype
from normcli.engine.single import normalize_group
from normcli.results.degenerate import find_degeneracies
from normcli.teach.expression import MOST_TERMS

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from numpy.typing import NDArray

    from normcli.engine.inputs import Inputs
    from normcli.engine.walk import Effort
    from normcli.norms.plan import Plan
    from normcli.results.degenerate import Degeneracy
    from normcli.results.result import Result

_SIZES = ("mean", "norm", "rms", "ms")
"""Statistics that are finite unless the values are not (or are beyond float64)."""

_WHOLE_DOUBLES = 2**53
"""Whole numbers up to here are doubles."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of one value.

    Parameters
    ----------
    place : int
        Its number among the values of the group.
    index : tuple of int
        Where it lies in the tensor.
    value : int or float
    scaled : float or None
        x̂ in float64, before gamma and beta; None where that was not calculated apart.
    gamma, beta : float or None
    normalized : float
        The result, of the output's dtype.
    """

    place: int
    index: tuple[int, ...]
    value: float
    scaled: float | None
    gamma: float | None
    beta: float | None
    normalized: float


@dataclass(frozen=True)
class Group:
    """The values that share a statistic; of a window, those that it holds.

    Parameters
    ----------
    plan : Plan
    number : int
        In C order over the kept axes.
    values : ndarray
        In the order of the view; a view of the tensor, which may be a map of a file.
    statistics : mapping of str to float
    outcomes : sequence of Outcome
        Of the values that are told of.
    dtype : dtype
        Of the output.
    degeneracies : tuple of Degeneracy
    """

    plan: Plan
    number: int
    values: NDArray[Any]
    statistics: Mapping[str, float]
    outcomes: Sequence[Outcome]
    dtype: np.dtype[Any]
    degeneracies: tuple[Degeneracy, ...]

    @property
    def name(self) -> str:
        """What the group is called."""
        return self.plan.grid.group_name(self.number)

    @property
    def count(self) -> int:
        """How many values share the statistics."""
        return self.values.size

    def value(self, place: int) -> float:
        """Return a value as Python's own number; whole numbers stay whole, where float64 holds them."""
        shape = self.values.shape
        return _number(self.values[np.unravel_index(place, shape) if shape else ()])

    def index(self, place: int) -> tuple[int, ...]:
        """Return where a value of the group lies in the tensor."""
        return tuple(map(int, self.plan.grid.locate_values(self.number, np.asarray(place))))

    def indices(self, places: NDArray[np.intp]) -> NDArray[np.intp]:
        """Return where some values of the group lie, of shape (values, axes)."""
        located = self.plan.grid.locate_values(self.number, places)
        return np.array(located, dtype=np.intp).reshape(len(located), places.size).T

    @functools.cached_property
    def finite(self) -> bool:
        """Whether each of the values is a number; of a large group, whether its size is."""
        if not is_float(self.values.dtype):
            return True
        if self.count > MOST_TERMS:
            sizes = [value for name, value in self.statistics.items() if name in _SIZES]
            return all(map(math.isfinite, sizes))
        return bool(np.isfinite(self.values.astype(np.float64)).all())

    def fractions(self) -> Iterator[Fraction]:
        """Yield the values, in exact arithmetic."""
        for place in range(self.count):
            yield Fraction(self.value(place))


def find_group(plan: Plan, index: tuple[int, ...]) -> tuple[int, int]:
    """Return the number of a value's group, and the value's number in it (in a window: 0)."""
    indices = [np.asarray(i, dtype=np.intp) for i in index]
    place = 0 if plan.grid.reach is not None else int(plan.grid.locate_within_groups(indices))
    return int(plan.grid.locate_groups(indices)), place


def measure_group(
    plan: Plan,
    values: NDArray[Any],
    inputs: Inputs,
    number: int,
    places: Sequence[int],
    effort: Effort,
) -> Group:
    """Normalize one group of a tensor and nothing else.

    Parameters
    ----------
    plan : Plan
        With at least one value in each group.
    values : ndarray
    inputs : Inputs
        Gamma and beta.
    number : int
        The group's.
    places : sequence of int
        The values of the group to tell of.
    effort : Effort
    """
    run = functools.partial(normalize_group, values=values, group=number, wanted=places, effort=effort)
    final = run(plan, inputs=inputs)
    scaled = run(plan.change_spec(dtype="float64")).values
    return _collect(
        plan, values, inputs, number, places, final.statistics, scaled.tolist(), final.values,
        choose_output_dtype(plan, values.dtype), degenerate=True,
    )  # fmt: skip


def take_group(result: Result, number: int, places: Sequence[int], *, running: bool = False) -> Group:
    """Return a group of a result that is there already.

    Parameters
    ----------
    result : Result
    number : int
    places : sequence of int
    running : bool
        Whether its statistics were given, and are not those of its values.
    """
    plan = result.plan
    statistics = {name: float(array.reshape(-1)[number]) for name, array in result.statistics.items()}
    view = np.asarray(result.normalized.reshape(plan.grid.view_shape)[plan.grid.select_group(number)]).reshape(
        -1
    )
    return _collect(
        plan, result.input, result.inputs, number, places, statistics, [None] * len(places),
        view[list(places)], result.dtype, degenerate=not running,
    )  # fmt: skip


def _collect(
    plan: Plan,
    values: NDArray[Any],
    inputs: Inputs,
    number: int,
    places: Sequence[int],
    statistics: Mapping[str, float],
    scaled: Sequence[float | None],
    normalized: NDArray[Any],
    dtype: np.dtype[Any],
    *,
    degenerate: bool,
) -> Group:
    members = plan.grid.take_group(values, number)
    outcomes = []
    for place, x_hat, y in zip(places, scaled, normalized.tolist(), strict=True):
        index = _locate(plan, number, place)
        outcomes.append(
            Outcome(
                place,
                index,
                _number(values[index]),
                x_hat,
                _pick_parameter(plan, inputs.gamma, index),
                _pick_parameter(plan, inputs.beta, index),
                float(y),
            )
        )
    found: tuple[Degeneracy, ...] = ()
    if degenerate:
        found = _find_degeneracies(plan, members, number, statistics, normalized, scaled=inputs.scales)
    return Group(plan, number, members, statistics, outcomes, dtype, found)


def _number(item: Any) -> float:
    """Return a value as Python's own number."""
    value = item.item()
    if not isinstance(value, int):
        return float(value)  # of a long double too
    return int(value) if abs(value) <= _WHOLE_DOUBLES else float(value)


def _locate(plan: Plan, number: int, place: int) -> tuple[int, ...]:
    """Return where the outcome of a place lies: of a window, the value that it belongs to."""
    if plan.spec.window is not None:
        return tuple(int(i) for i in np.unravel_index(number, plan.grid.shape))
    return tuple(map(int, plan.grid.locate_values(number, np.asarray(place))))


def _pick_parameter(plan: Plan, parameter: NDArray[Any] | None, index: tuple[int, ...]) -> float | None:
    if parameter is None:
        return None
    spread = np.broadcast_to(parameter.reshape(plan.parameters.view_shape), plan.grid.view_shape)
    flat = int(np.ravel_multi_index(index, plan.grid.shape)) if plan.grid.shape else 0
    there = np.unravel_index(flat, plan.grid.view_shape) if plan.grid.view_shape else ()
    return float(spread[there])


def _find_degeneracies(
    plan: Plan,
    members: NDArray[Any],
    number: int,
    statistics: Mapping[str, float],
    normalized: NDArray[Any],
    *,
    scaled: bool,
) -> tuple[Degeneracy, ...]:
    """Return what is degenerate of the group, as of a tensor that it alone makes up."""
    held = members
    if (
        plan.spec.window is not None
    ):  # each value has a window: of this one, the worst that it holds stands for all
        flat = members.reshape(-1)
        spoilt = flat[~np.isfinite(flat.astype(np.float64))]
        held = (spoilt if spoilt.size else flat)[:1]
    lengths = tuple(1 if axis in plan.grid.kept_view_axes else n for axis, n in enumerate(plan.grid.view_shape))
    alone = plan.restrict(lengths)
    arrays = {name: np.full(alone.grid.stats_shape, value) for name, value in statistics.items()}
    told = normalized if scaled or plan.spec.window is not None else None
    found = find_degeneracies(alone, held.reshape(lengths), arrays, told)
    return tuple(kind._replace(first_group=plan.grid.group_name(number)) for kind in found)
