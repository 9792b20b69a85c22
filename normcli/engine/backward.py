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
    """The derivatives with respect to tensor, gamma and beta; None for a parameter that the norm lacks."""

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
    """Return dx, and the derivatives with respect to gamma and beta; each is the exact one, rounded once.

    Parameters
    ----------
    plan : Plan
        The plan of a norm that has a derivative.
    values, dy : ndarray
        The tensor, and the derivative of a loss with respect to its normalized values: of one shape, in memory
        or in files.
    inputs : Inputs
        Gamma, beta, known statistics, the selection and a gate; if there is a gate, dy is multiplied by its
        factors, without a rounding.
    out : ndarray or None
        The array that dx is written to: C-contiguous, of dx's shape and dtype. None for a new one.
    effort : Effort
        Threads and memory; the result does not depend on it.
    downstream : Gated or None
        A gate that multiplies dx before it is rounded; None for no gate.

    Raises
    ------
    UsageError
        If `out` is not of dx's shape and dtype, C-contiguous and writable, or shares memory with an input; or
        if matrices are differentiated with a selection that normalizes values that do not count.
    DataError
        If dx does not fit into memory, or a file has changed since it was opened.
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
    """Return the derivative of a loss with respect to a gate that is broadcast over the tensor.

    It has the gate's shape and the output's dtype; each of its numbers is a sum over the values that the gate's
    number multiplies.

    Parameters
    ----------
    plan : Plan
    values, dy : ndarray
        The norm's input, and the derivative of the loss with respect to the final result.
    inputs : Inputs
        For a gate behind the norm, its `gate` is `slope`; for one before the norm, its `gate` is None.
    slope : Gated
        The slope of the gate (`is_slope`). Its `times` is dy for a gate behind the norm; for one before it, the
        tensor that the gate multiplied.
    effort : Effort

    Raises
    ------
    DataError
        If a file has changed since it was opened.
    """
    from normcli.engine.gradients.gate_sums import GateSumPasses

    geometry = find_geometry(plan)
    with open_source(values, plan, geometry) as source, open_source(dy, plan, geometry) as gradients:
        passes = GateSumPasses(plan, geometry, source, None, inputs, effort)
        return passes.add_up(gradients, values, slope)


def _choose_passes(plan: Plan) -> Any:
    """Return the class of passes that differentiates a norm; it is imported on use."""
    if plan.norm.divisor.measurement is Measurement.WINDOW:
        from normcli.engine.lrn.gradients import WindowBackwardPasses

        return WindowBackwardPasses
    if plan.norm.divisor.measurement is Measurement.SINGULAR_VALUE:
        from normcli.engine.sn.passes import MatrixBackwardPasses

        return MatrixBackwardPasses
    from normcli.engine.gradients.passes import GroupBackwardPasses

    return GroupBackwardPasses
