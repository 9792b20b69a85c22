"""The backward pass: what other rooms call."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from normcli.engine.run import open_run, require_place
from normcli.engine.tiling.blocks import open_full, open_source
from normcli.engine.tiling.geometry import find_geometry
from normcli.norms.divisors import Measurement
from normcli.tuples import NamedTuple

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from normcli.engine.inputs import Inputs
    from normcli.engine.walk import Effort
    from normcli.norms.plan import Plan
    from normcli.numerics.elements.gate import Gated


class RawGradients(NamedTuple):
    """The derivatives of a loss by the tensor, by gamma and by beta; None of what the norm has not."""

    dx: NDArray[Any]
    dgamma: NDArray[Any] | None
    dbeta: NDArray[Any] | None


def run_backward(
    plan: Plan,
    values: NDArray[Any],
    dy: NDArray[Any],
    inputs: Inputs,
    out: NDArray[Any] | None,
    effort: Effort,
    downstream: Gated | None = None,
) -> RawGradients:
    """Return dx, and the derivatives by gamma and beta; each is the exact one, rounded once.

    Parameters
    ----------
    plan : Plan
        Of a norm that has a derivative.
    values, dy : ndarray
        The tensor, and the derivative of a loss by what it is normalized to: of one shape, maps of files too.
    inputs : Inputs
        Its gate multiplies dy.
    out : ndarray or None
        Where dx goes, as in `run`.
    effort : Effort
    downstream : Gated or None
        What multiplies dx before it is rounded.

    Raises
    ------
    UsageError
        If `out` is not what it has to be.
    """
    require_place(out, plan, values, dy)
    if inputs.gate is not None:
        inputs = inputs._replace(gate=inputs.gate._replace(times=dy))
    with (
        open_run(plan, values, out) as (place, geometry, source, sink),
        open_source(dy, plan, geometry) as gradients,
    ):
        passes = _choose_passes(plan)(plan, geometry, source, sink, inputs, effort)
        if downstream is not None:
            passes.downstream = downstream.map(lambda a: open_full(plan, geometry, a))
        if values.size:
            passes.differentiate(gradients, values)
        return RawGradients(place, *passes.find_parameters())  # which may read both once more


def sum_gate(
    plan: Plan, values: NDArray[Any], dy: NDArray[Any], inputs: Inputs, slope: Gated, effort: Effort
) -> NDArray[Any]:
    """Return the derivative by a gate that is broadcast, of its shape and the dtype of the plan's output.

    Parameters
    ----------
    plan, values, dy, inputs, effort
        As of `run_backward`, but the gate behind the norm has its slope, times dy.
    slope : Gated
        That gate; or one before the norm, whose slope is multiplied by what entered it.
    """
    from normcli.engine.gradients.gate_sums import GateSumPasses

    geometry = find_geometry(plan)
    with open_source(values, plan, geometry) as source, open_source(dy, plan, geometry) as gradients:
        passes = GateSumPasses(plan, geometry, source, None, inputs, effort)
        return passes.add_up(gradients, values, slope)


def _choose_passes(plan: Plan) -> Any:
    """Return the passes that differentiate a norm; those of one norm alone are imported on use."""
    if plan.norm.divisor.measurement is Measurement.WINDOW:
        from normcli.engine.lrn.gradients import WindowBackwardPasses

        return WindowBackwardPasses
    if plan.norm.divisor.measurement is Measurement.SINGULAR_VALUE:
        from normcli.engine.sn.passes import MatrixBackwardPasses

        return MatrixBackwardPasses
    from normcli.engine.gradients.passes import GroupBackwardPasses

    return GroupBackwardPasses
