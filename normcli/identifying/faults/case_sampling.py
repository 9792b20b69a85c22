"""Cases of a tensor in memory or in a file: all of its values, or a sample."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from normcli.checking.gradient_terms import spread_parameter
from normcli.engine.run import run
from normcli.identifying.faults.case import Case
from normcli.identifying.faults.variant import cut_at
from normcli.identifying.sampling import LEAST_PLACES, choose_lengths
from normcli.norms.divisors import Measurement
from normcli.norms.request import Fill
from normcli.norms.rules import Centre
from normcli.results.calculate import calculate
from normcli.tensors.mapped import fetch

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

    from normcli.dtypes import Floats, Selected
    from normcli.norms.plan import Plan
    from normcli.results.arguments import Problem


MOST_VALUES = 1 << 16
"""The most values, about, in which faults are looked for: the first groups of larger tensors."""

MOST_IN_MEMORY = 1 << 22
"""Size of the largest tensor whose every group is examined if the first groups show no fault."""

_MOST_WIDE = 1 << 19
"""The most values, about, that are then taken from all groups."""

_LARGEST_GROUP = 1 << 18
"""Groups with more values than this are not examined for faults."""


def is_open(subject: Problem) -> bool:
    """Whether faults of a norm can be looked for.

    They can if the norm has groups of at most 2¹⁸ values, and if a value counts.
    """
    selection = subject.inputs.selection
    counts = selection is None or selection.count(subject.values) > 0
    return counts and subject.plan.has_groups and subject.plan.grid.group_size <= _LARGEST_GROUP


def choose_index(plan: Plan, most: int) -> tuple[slice, ...]:
    """Return a slice for each axis of the view, which together hold the first groups, about `most` values.

    Reduced axes are whole, and kept axes have at least two indices if they are that long.
    """
    return tuple(map(slice, choose_lengths(plan.grid.view_shape, most, plan.grid.kept_view_axes, 2)))


def open_case(subject: Problem, y: NDArray[Any], dtype: np.dtype[Any], most: int = MOST_VALUES) -> Case:
    """Return the case of x and y, or of their first groups if they are large.

    Parameters
    ----------
    subject : Problem
        The requested norm and its input x, in memory or mapped from a file.
    y : ndarray
        The output, of the plan's shape, in memory or mapped from a file.
    dtype : numpy.dtype
        The dtype to which y was rounded.
    most : int
        About how many values to take.
    """
    return _open_at(subject, y, dtype, choose_index(subject.plan, most))


def _open_at(subject: Problem, y: NDArray[Any], dtype: np.dtype[Any], index: tuple[slice, ...]) -> Case:
    """Return the case of the values of x and y at an index of the view.

    Parameters
    ----------
    subject : Problem
        The requested norm and its input x, in memory or mapped from a file.
    y : ndarray
        The output, of the plan's shape, in memory or mapped from a file.
    dtype : numpy.dtype
        The dtype to which y was rounded.
    index : tuple of slice
        A slice for each axis of the view.
    """
    plan, selection = subject.plan, subject.inputs.selection
    if selection is None:
        return _open_all(subject, y, dtype, index)
    counted = find_counted(subject, index)
    keep = _choose_groups(plan, counted)
    counted, unmasked = keep(counted), _open_all(leave_selection(subject), y, dtype, index, keep)
    if counted.all():
        return unmasked
    others: dict[str, Any] = {"x": unmasked.x, "y": unmasked.y}
    if unmasked.exact is not None:
        exact = run(plan.change_spec(dtype="float64"), fetch(subject.values), subject.inputs)[0]
        others["exact"] = keep(cut_at(exact.reshape(plan.grid.view_shape), index))
    if selection.fill is not Fill.NORMALIZE:
        others = {name: np.where(counted, values, np.nan) for name, values in others.items()}
    return replace(unmasked, **others, counted=counted, unmasked=unmasked)


def leave_selection(subject: Problem) -> Problem:
    """Return a request without its mask or slice."""
    return subject._replace(inputs=subject.inputs._replace(selection=None))


def find_counted(subject: Problem, index: tuple[slice, ...]) -> Selected:
    """Return True for the values at an index of the view that count; the request has a selection."""
    shape, selection = subject.plan.grid.view_shape, subject.inputs.selection
    assert selection is not None
    mask = np.ones((), np.bool_) if selection.mask is None else selection.mask
    counted = np.broadcast_to(mask, subject.values.shape).reshape(shape)[index]
    return np.asarray(counted & ~(selection.omits_nan & np.isnan(subject.values.reshape(shape)[index])))


def _choose_groups(plan: Plan, counted: Selected) -> Callable[[NDArray[Any]], NDArray[Any]]:
    """Return a function that takes from an array the groups in which two values or more count.

    Such groups are along the last of the axes at whose indices groups are left out; the others have length 1.
    Where no group has two, groups of one value are taken.

    Parameters
    ----------
    plan : Plan
    counted : ndarray of bool
        True for the values that count, of the rank of the view.
    """
    counts = counted.sum(plan.grid.view_axes, keepdims=True)
    chosen = counts >= min(2, counts.max())
    axes = tuple(axis for axis in range(chosen.ndim) if np.any(chosen != chosen.take([0], axis)))
    places = chosen.any(tuple(axis for axis in range(chosen.ndim) if axis not in axes))

    def keep(values: NDArray[Any]) -> NDArray[Any]:
        if all(values.shape[axis] == 1 for axis in axes):
            return values
        lengths = [chosen.shape[axis] if axis in axes else n for axis, n in enumerate(values.shape)]
        taken = np.moveaxis(np.broadcast_to(values, lengths), axes, range(len(axes)))[places]
        return np.moveaxis(np.expand_dims(taken, tuple(range(len(axes) - 1))), range(len(axes)), axes)

    return keep


def _open_all(
    subject: Problem,
    y: NDArray[Any],
    dtype: np.dtype[Any],
    index: tuple[slice, ...],
    keep: Callable[[NDArray[Any]], NDArray[Any]] = lambda values: values,
) -> Case:
    """Return the case at an index of the view in which all values count, of the groups that `keep` takes.

    The other parameters are as of `_open_at`.
    """
    plan, inputs, x, addends = subject.plan, subject.inputs, subject.values, subject.tensor.addends
    gates, inputs = (inputs.gate, inputs.gated_input), inputs._replace(gate=None, gated_input=None)
    shape = plan.grid.view_shape

    def see(values: NDArray[Any], lengths: Sequence[int] = shape) -> NDArray[Any]:
        return keep(fetch(cut_at(np.reshape(values, lengths), index)))

    def take(values: NDArray[Any], lengths: Sequence[int] = shape) -> Floats:
        return np.asarray(see(values, lengths), dtype=np.float64)

    gamma, beta = (
        keep(cut_at(spread_parameter(plan, fetch(values) if values is not None else None, otherwise), index))
        for values, otherwise in ((inputs.gamma, 1.0), (inputs.beta, 0.0))
    )
    gamma = gamma if inputs.gamma is None else gamma + plan.spec.gamma_offset
    stored = None
    if inputs.given is not None:
        lengths = [1 if axis in plan.grid.view_axes else n for axis, n in enumerate(shape)]
        mean, var = (take(plan.grid.spread_running(values), lengths) for values in inputs.given)
        stored = mean, var
    exact = None
    if not _goes_by_moments(plan):
        exact = take(run(plan.change_spec(dtype="float64"), fetch(x), inputs)[0])
    has = inputs.gamma is not None, inputs.beta is not None
    if addends is not None:
        addends = addends._replace(values=see(addends.values), residual=see(addends.residual))
    gate, gated_input = (
        None if gate is None else gate.map(lambda a: see(np.broadcast_to(a, plan.grid.shape))) for gate in gates
    )
    return Case(
        plan, take(x), take(y), dtype, gamma, beta, *has, stored, exact, addends=addends, gate=gate,
        gated_input=gated_input,
    )  # fmt: skip


def _measure_moments(subject: Problem) -> tuple[Floats, Floats] | None:
    """Return the mean and the variance of each group, or 0 and the mean square for a norm without mean.

    Both have the view's rank. None for a norm with neither variance nor mean square.
    """
    plan = subject.plan
    known = calculate(plan, fetch(subject.values), subject.inputs, statistics_alone=True).statistics
    if not {"var", "ms"} & set(known):
        return None
    of_groups = [1 if axis in plan.grid.view_axes else n for axis, n in enumerate(plan.grid.view_shape)]
    square = known["var" if "var" in known else "ms"].reshape(of_groups)
    return (known["mean"].reshape(of_groups) if plan.norm.centre is Centre.MEAN else 0.0 * square), square


def open_wide_case(subject: Problem, y: NDArray[Any], dtype: np.dtype[Any]) -> Case | None:
    """Return a case with values of every group, to find rows in another order and wrong parts of y.

    Above 2¹⁹ values, the case has evenly spaced values along the longest axis of a group, with the statistics
    of all values. None for tensors of at most 2¹⁶ or more than 2²² values, with a gate behind the norm, and if
    a group's longest axis is too short for such a sample.

    Parameters
    ----------
    subject : Problem
        The requested norm and its input x.
    y : ndarray
        The output, of the plan's shape.
    dtype : numpy.dtype
        The dtype to which y was rounded.
    """
    size = subject.values.size
    if not MOST_VALUES < size <= MOST_IN_MEMORY or subject.inputs.gate is not None:
        return None
    plan, step = subject.plan, -(-size // _MOST_WIDE)
    lengths = plan.grid.view_shape
    longest = max(plan.grid.view_axes, key=lambda axis: lengths[axis])
    if step == 1:
        return open_case(subject, y, dtype, size)
    if step > lengths[longest] // LEAST_PLACES:
        return None
    places = tuple(slice(None, None, step if axis == longest else 1) for axis in range(len(lengths)))
    case = replace(_open_at(subject, y, dtype, places), whole=plan.grid.group_size, step=step)
    if case.stored is not None or not case.has_moments:
        return case
    moments = _measure_moments(subject)
    return None if moments is None else replace(case, stored=moments)


_EUCLIDEAN = 2.0


def _goes_by_moments(plan: Plan) -> bool:
    measurement = plan.norm.divisor.measurement
    is_euclidean = measurement is Measurement.LENGTH and plan.spec.p == _EUCLIDEAN
    return (measurement is Measurement.MOMENTS or is_euclidean) and plan.norm.centre in (
        Centre.MEAN,
        Centre.NOTHING,
    )


_OF_Y = {"parts", "factor", "right", "differs", "used", "arithmetic"}
"""What a case calculates of y, gamma, beta, gate or precision."""


def change_case(case: Case, **fields: Any) -> Case:
    """Return a case with another y, gamma, beta, gate or precision; what was calculated of x stays."""
    changed: Case = replace(case, **fields)
    again = {*vars(changed), *_OF_Y, *(() if case.exact is None else ("standardized",))}
    vars(changed).update({name: known for name, known in vars(case).items() if name not in again})
    return changed
