"""A tensor, in memory or in a file, as what a norm should have made of another."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from normcli.engine.run import run
from normcli.identifying.faults.case import Case
from normcli.identifying.faults.variant import cut
from normcli.norms.divisors import Measurement
from normcli.norms.rules import Centre
from normcli.tensors.mapped import fetch

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from normcli.checking.gate import Gate
    from normcli.dtypes import Floats
    from normcli.engine.inputs import Inputs
    from normcli.norms.plan import Plan
    from normcli.tensors.residual import Addends


_EUCLIDEAN = 2.0


def open_case(
    plan: Plan,
    x: NDArray[Any],
    y: NDArray[Any],
    dtype: np.dtype[Any],
    inputs: Inputs,
    index: tuple[slice, ...] | None = None,
    addends: Addends | None = None,
    gate: Gate | None = None,
) -> Case:
    """Return the case of tensors, in memory or in files.

    Parameters
    ----------
    plan : Plan
    x, y : ndarray
        Of the plan's shape.
    dtype : numpy.dtype
        In which y was rounded.
    inputs : Inputs
        gamma, beta and running statistics.
    index : tuple of slice or None
        Which places of the view to take; None for all.
    addends : Addends or None
    gate : Gate or None
        As of `Case`, of the plan's shape.
    """
    shape = plan.grid.view_shape
    index = (slice(None),) * len(shape) if index is None else index

    def see(values: NDArray[Any]) -> NDArray[Any]:
        return fetch(cut(values.reshape(shape), index))

    def take(values: NDArray[Any], lengths: Sequence[int]) -> Floats:
        return np.asarray(fetch(cut(np.reshape(values, lengths), index)), dtype=np.float64)

    gamma, beta = (
        np.full((1,) * len(shape), otherwise)
        if values is None
        else take(values, plan.parameters.view_shape) + offset
        for values, otherwise, offset in (
            (inputs.gamma, 1.0, plan.spec.gamma_offset), (inputs.beta, 0.0, 0),
        )
    )  # fmt: skip
    stored = None
    if inputs.given is not None:
        lengths = [1 if axis in plan.grid.view_axes else n for axis, n in enumerate(shape)]
        mean, var = (take(plan.grid.spread_running(values), lengths) for values in inputs.given)
        stored = mean, var
    exact = None
    if not _goes_by_moments(plan):
        exact = take(run(plan.change_spec(dtype="float64"), fetch(x), inputs)[0], shape)
    has = inputs.gamma is not None, inputs.beta is not None
    if addends is not None:
        addends = addends._replace(values=see(addends.values), residual=see(addends.residual))
    gate = None if gate is None else gate._replace(values=see(gate.values))
    case = Case(plan, take(x, shape), take(y, shape), dtype, gamma, beta, *has, stored, exact)
    return replace(case, addends=addends, gate=gate)


def _goes_by_moments(plan: Plan) -> bool:
    measurement = plan.norm.divisor.measurement
    is_euclidean = measurement is Measurement.LENGTH and plan.spec.p == _EUCLIDEAN
    return (measurement is Measurement.MOMENTS or is_euclidean) and plan.norm.centre in (
        Centre.MEAN,
        Centre.NOTHING,
    )
