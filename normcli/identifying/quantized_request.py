"""The search for another request, such as one without the gate, whose codes and scales are the given ones."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any

from normcli.errors import NormError
from normcli.identifying.usual_norm import list_usual_eps
from normcli.numerics.elements.activation import Activation
from normcli.quantizing.judging import judge_quantized
from normcli.quantizing.quantize import quantize_plan

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

    from normcli.engine.inputs import Inputs
    from normcli.quantizing.judging import QuantizedPart
    from normcli.quantizing.quantize import Quantized
    from normcli.results.result import Result

MOST_RETRIED = 1 << 20
"""The most values of a tensor that is quantized again by other requests."""


def blame_request(
    found: Quantized, given: Sequence[NDArray[Any] | None], parts: list[QuantizedPart]
) -> list[QuantizedPart]:
    """Return comparisons whose first names the other request that made the codes and scales.

    That request has no gate or no bounds, another activation, or another usual eps. `parts` are returned as
    they are if there is no such request, if they agree or name a fault already, and for more than 2²⁰ values.

    Parameters
    ----------
    found : Quantized
        The exact codes and scales.
    given : sequence of ndarray or None
        The given codes, scales and tensor scale.
    parts : list of QuantizedPart
        The comparisons with `found`.
    """
    is_named = any(part.fault not in (None, "scale-bare") for part in parts)
    if is_named or all(part.ok for part in parts) or found.codes.size > MOST_RETRIED:
        return parts
    exact = found.exact
    for fault, cause, eps, inputs in _list_requests(exact):
        with contextlib.suppress(NormError):  # of a result that is not finite
            plan = exact.plan.change_spec(eps=eps)
            other = quantize_plan(plan, exact.input, inputs, found.asked, exact.effort)
            again = judge_quantized(other, *given)
            if all(part.ok or part.fault == "scale-ulp" for part in again):
                first, *rest = parts
                remedy = f"--eps {eps:g}" if fault == "request-eps" else None
                return [first._replace(fault=fault, cause=cause, remedy=remedy), *rest]
    return parts


def _list_requests(exact: Result) -> Iterator[tuple[str, str, float | None, Inputs]]:
    """Yield other requests that a kernel may have carried out: id of the fault, its words, eps, inputs."""
    own, inputs = exact.plan.spec.eps, exact.inputs
    gate = inputs.gate
    if gate is not None:
        yield "request-gate", "the gate was left out", own, inputs._replace(gate=None)
        for act in Activation:
            if act is not gate.activation:
                other = inputs._replace(gate=gate._replace(activation=act))
                told = f"the gate's activation is {act}, not {gate.activation}"
                yield "request-activation", told, own, other
    if inputs.clip is not None:
        yield "request-clip", "the clip was left out", own, inputs._replace(clip=None)
    for eps in list_usual_eps(exact.plan)[1:]:
        yield "request-eps", f"eps is {eps:g}, not {own:g}", eps, inputs
