"""The norm, or the other request, whose exact codes and scales are given ones."""

from __future__ import annotations

import contextlib
import math
from typing import TYPE_CHECKING, Any

import numpy as np

from normcli.errors import DataError, NormError
from normcli.identifying.inquiry import list_subjects
from normcli.identifying.models.divisor_fit import list_usual_eps
from normcli.identifying.models.weight import CERTAIN
from normcli.numerics.elements.activation import Activation
from normcli.quantizing.codes import find_units
from normcli.quantizing.judging import OWN_ROUNDING, OWN_ROUNDING_FAULTS, judge_quantized
from normcli.quantizing.quantize import quantize_problem
from normcli.results.arguments import Problem
from normcli.tensors.tensor import Tensor
from normcli.tuples import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

    from normcli.engine.inputs import Inputs
    from normcli.engine.walk import Effort
    from normcli.identifying.question import Question
    from normcli.quantizing.formats import Quantization
    from normcli.quantizing.judging import QuantizedPart
    from normcli.quantizing.quantize import Quantized
    from normcli.results.result import Result

MOST_DIFFERENT = 0.5
"""A norm is named if at most this part of the codes (or of the scales) differs from its own."""


class QuantizedNorm(NamedTuple):
    """A norm whose quantized result is near given codes and scales.

    Parameters
    ----------
    found : Quantized
        The norm's exact codes and scales.
    parts : list of QuantizedPart
        The comparisons of the given codes and scales with the exact ones.
    also : tuple of Quantized
        The exact results of other norms, or with other eps, that differ from the given ones in as few codes and
        scales.
    """

    found: Quantized
    parts: list[QuantizedPart]
    also: tuple[Quantized, ...]

    @property
    def is_near(self) -> bool:
        """Whether at most half of the codes, or at most half of the scales, differ from the norm's."""
        return min(_count(self.parts)) <= MOST_DIFFERENT


def guess_sharing(shape: tuple[int, ...], scales: NDArray[Any]) -> str:
    """Return the argument of `--per` (the values that share a scale), guessed from the scales' shape.

    Examples
    --------
    >>> import numpy as np
    >>> guess_sharing((4, 64), np.ones((4, 2))), guess_sharing((4, 64), np.ones(4))
    ('block:32', 'token')
    """
    if scales.size == 1:
        return "tensor"
    if scales.size * shape[-1] == math.prod(shape):
        return "token"
    if scales.shape[:-1] == shape[:-1]:
        return f"block:{shape[-1] // max(1, scales.shape[-1])}"
    return "channel"


def identify_quantized(
    question: Question,
    scales: NDArray[Any],
    tensor_scale: NDArray[Any] | None,
    asked: Quantization,
    norm: str | None,
    effort: Effort,
) -> QuantizedNorm | None:
    """Return the default norm whose codes and scales differ least from the given ones.

    Norms with few differences are tried with every usual eps. None if x has fewer than two values, or if no
    norm's result can be quantized.

    Parameters
    ----------
    question : Question
        The input x, and the given codes as y.
    scales : ndarray
        The given scales.
    tensor_scale : ndarray or None
        The given scale of the whole tensor; None for the exact one.
    asked : Quantization
        The format, the sharing of scales and their rounding.
    norm : str or None
        The only norm to try; None for all.
    effort : Effort
        Threads and memory; the result does not depend on it.

    Raises
    ------
    DataError
        If the shapes of codes or scales do not fit the tensor.
    """
    given = question.y, scales, tensor_scale

    def measure(subject: Problem, eps: float | None) -> tuple[tuple[float, float], Quantized] | None:
        plan = subject.plan.change_spec(dtype="float64", eps=eps)
        try:
            found = quantize_problem(subject._replace(plan=plan, effort=effort), asked)
        except DataError:  # of a result that is not finite
            return None
        return _count(judge_quantized(found, *given, names_rules=False)), found

    subjects = list_subjects(question.x, question.gamma, question.beta, question.layout, norm)
    if question.x.size < 2:
        return None
    tried = [(measured, one) for one in subjects if (measured := measure(one, one.plan.spec.eps))]
    if not tried:
        return None
    least = min(measured[0] for measured, _ in tried)
    near = [subject for measured, subject in tried if measured[0][0] <= 2.0 * least[0]]
    every = [
        one
        for subject in near
        for eps in list_usual_eps(subject.plan.spec.eps)
        if (one := measure(subject, eps))
    ]
    best = min(counts for counts, _ in every)
    found, *also = (one for counts, one in every if counts == best)
    return QuantizedNorm(found, judge_quantized(found, *given), tuple(also))


def _count(parts: list[QuantizedPart]) -> tuple[float, float]:
    """Return the share of the codes that differ, and the share of the scales that differ."""
    shares = {part.name: part.different / part.total for part in parts}
    return shares["codes"], shares["scales"]


# -- another request

MOST_RETRIED = 1 << 20
"""The most values of a tensor that is quantized again by other requests."""


def blame_request(
    found: Quantized, given: Sequence[NDArray[Any] | None], parts: list[QuantizedPart]
) -> list[QuantizedPart]:
    """Return comparisons whose first one names another request, if that made the given codes and scales.

    The requests that are tried have no gate or no bounds, another activation, or another usual eps. `parts` are
    returned as they are if none of these made the codes, if codes and scales do not tell it from the request
    with `CERTAIN` bits, if they agree or name a fault already, and for more than 2²⁰ values.

    Parameters
    ----------
    found : Quantized
        The exact codes and scales.
    given : sequence of ndarray or None
        The given codes, scales and tensor scale.
    parts : list of QuantizedPart
        The comparisons with `found`.
    """
    is_named = any(part.fault not in (None, "scale-bare", "codes-ulp", "codes-own-scale") for part in parts)
    if is_named or all(part.ok for part in parts) or found.codes.size > MOST_RETRIED:
        return parts
    exact = found.exact
    for fault, cause, eps, inputs in _list_requests(exact):
        with contextlib.suppress(NormError):  # of a result that is not finite
            plan = exact.plan.change_spec(eps=eps)
            problem = Problem(plan, Tensor(exact.input, "x"), inputs, exact.effort)
            other = quantize_problem(problem, found.asked)
            again = judge_quantized(other, *given)
            is_made = all(part.ok or part.fault in OWN_ROUNDING_FAULTS for part in again)
            if is_made and _weigh(found, other, again) >= CERTAIN:
                first, *rest = parts
                remedy = f"--eps {eps:g}" if fault == "request-eps" else None
                return [first._replace(fault=fault, cause=cause, remedy=remedy), *rest]
    return parts


def _weigh(found: Quantized, other: Quantized, parts: list[QuantizedPart]) -> float:
    """Return a lower bound, in bits, of the evidence that given codes and scales are of `other`, not `found`.

    A code that differs by k steps is log2(1 + k) bits: one at a border of rounding. A scale is log2(k - 1) bits
    if the two requests' differ k times as much as by a kernel's own rounding. `parts` compare the given codes
    and scales with `other`: each code that differs from that is a bit against it, and one less for it.
    """
    own, theirs = found.numbers, other.numbers
    units = find_units(np.minimum(np.abs(own), np.abs(theirs)), found.asked.row.grid)
    allowed = np.maximum(OWN_ROUNDING * found.factors, np.finfo(float).tiny)
    bits = {
        "codes": np.log2(1.0 + np.abs(theirs - own) / units),
        "scales": np.log2(np.maximum(np.abs(other.factors - found.factors) / allowed - 1.0, 1.0)),
    }
    against = sum(part.different for part in parts if part.name == "codes")
    return float(sum(bits[part.name].sum() for part in parts)) - 2.0 * against


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
    for eps in list_usual_eps(exact.plan.spec.eps)[1:]:
        yield "request-eps", f"eps is {eps:g}, not {own:g}", eps, inputs
