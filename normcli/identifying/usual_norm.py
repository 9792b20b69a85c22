"""Which norm, by default or with another usual eps, goes with a given gate, or with codes and scales."""

from __future__ import annotations

import itertools
import math
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from normcli.checking.check import NORMALIZED, check
from normcli.checking.ulp import choose_counting_dtype
from normcli.errors import DataError
from normcli.identifying.faults.fault_search import list_subjects, open_cases
from normcli.identifying.faults.variant import Variant
from normcli.identifying.models.evidence import COMMON_EPS
from normcli.identifying.question import Diagnosis, Kind
from normcli.numerics.elements.activation import Activation
from normcli.quantizing.judging import judge_quantized
from normcli.quantizing.quantize import quantize_plan
from normcli.results.surroundings import GateOrder, Surroundings
from normcli.tuples import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from normcli.engine.walk import Effort
    from normcli.identifying.faults.case import Case
    from normcli.identifying.faults.open_case import AskedNorm
    from normcli.identifying.question import Question
    from normcli.norms.plan import Plan
    from normcli.quantizing.judging import QuantizedPart
    from normcli.quantizing.quantize import Quantization, Quantized


# -- a gate

_MOST_TRIED = 1 << 14
"""Values on which norms are tried; those that explain all of them are held against the whole tensor."""

_LEAST_VALUES = 16
"""Fewer values do not tell norms apart."""


class GatedNorm(NamedTuple):
    """A norm with a gate that makes a tensor.

    Parameters
    ----------
    subject : AskedNorm
    around : Surroundings
    max_ulp : float
        How far values are off at most, in ulp.
    """

    subject: AskedNorm
    around: Surroundings
    max_ulp: float

    @property
    def name(self) -> str:
        """The norm, with its groups: `gn --groups 4`."""
        split = self.subject.plan.grid.split
        return self.subject.plan.norm.name + ("" if split is None else f" --groups {split.groups}")

    @property
    def words(self) -> str:
        """The norm, its eps and its gate: `rms with eps 1e-06, times silu(gate)`."""
        name, act, eps = self.name, self.around.gate_act, f"{self.subject.plan.spec.eps:g}"
        factor = "gate" if act == Activation.NONE else f"{act}(gate)"
        if self.around.gate_order == GateOrder.BEFORE:
            return f"{name} with eps {eps}, of x · {factor}"
        return f"{name} with eps {eps}, times {factor}"

    @property
    def command(self) -> str:
        """The command that calculates it."""
        gate = f"--gate … --gate-act {self.around.gate_act} --gate-order {self.around.gate_order}"
        return f"normcli {self.name} --eps {self.subject.plan.spec.eps:g} {gate}"


def diagnose_gated(question: Question, gate: NDArray[Any], norm: str | None = None) -> Diagnosis:
    """Return which norm by default makes y of x and a gate, in which order, with which activation.

    Parameters
    ----------
    question : Question
    gate : ndarray
        Of a shape that broadcasts to x's.
    norm : str or None
        Look for this norm alone.

    Raises
    ------
    DataError
        If the gate's shape does not broadcast to x's, or y's is another.
    """
    if question.y.shape != question.x.shape:
        raise DataError(f"the actual tensor has the shape {question.y.shape}; x has {question.x.shape}")
    found = [*find_gated(question, gate, norm)]
    exact = [one for one in found if one.max_ulp <= _EXACT]
    if not found or question.x.size < _LEAST_VALUES:
        step = "check NORM --gate FILE names faults of a norm that you know"
        return Diagnosis(Kind.NONE, "no usual norm with that gate makes y", next_step=step)
    best, *others = exact or found
    also = tuple(one.words for one in others)
    evidence = "with that, every value is the exact one, rounded"
    if best.max_ulp > _EXACT:
        evidence = f"the largest difference is {best.max_ulp:.2g} ulp"
    differing = {(one.subject.plan.norm.name, *one.around[2:4]) for one in (best, *others)}
    if len(differing) > 1:
        return Diagnosis(Kind.UNDECIDED, f"y may be {best.words}", (evidence,), also)
    return Diagnosis(Kind.NORM, f"y is {best.words}", (evidence,), also, best.command)


_EXACT = 0.5
"""Ulp by which a value that is rounded once is off at most."""


def find_gated(question: Question, gate: NDArray[Any], norm: str | None) -> Iterator[GatedNorm]:
    """Yield the norms that make y with a gate, of the default eps or another in use, the likelier first."""
    x, y, gamma, beta, layout, *_ = question
    dtype = choose_counting_dtype(y.dtype)
    for order, act in itertools.product(GateOrder, Activation):
        around = Surroundings(gate=gate, gate_act=act, gate_order=order)
        for subject in list_subjects(x, gamma, beta, layout, norm):
            request, values = around.prepare(subject.plan.request, x)
            inputs = around.surround(subject.inputs, subject.plan, x)
            plan = subject.plan if values is x else replace(subject.plan, request=request)
            gated = subject._replace(plan=plan, inputs=inputs)
            for case in open_cases(iter((gated,)), values, y, dtype, most=_MOST_TRIED):
                for eps in _find_eps(case):
                    plain = gated._replace(plan=plan.change_spec(eps=eps))
                    compared = check(plain.plan, values, {NORMALIZED: y}, inputs).comparisons[NORMALIZED]
                    if compared.ok:
                        yield GatedNorm(plain, around, compared.max_ulp)


def _list_eps(plan: Plan) -> tuple[float | None, ...]:
    """Return the eps in use, the norm's own first; None alone of a norm without."""
    own = plan.spec.eps
    return (own,) if own is None else tuple(dict.fromkeys((own, *COMMON_EPS)))


def _find_eps(case: Case) -> Iterator[float]:
    """Yield the eps in use with which a norm explains each value that was taken."""
    for eps in _list_eps(case.plan):
        if eps is not None and case.explains(case.predict(Variant(divisor=case.root(case.square, eps)))).all():
            yield eps


# -- codes and scales

MOST_DIFFERENT = 0.5
"""The part of the codes that differs from those of a norm that is named, at most."""


class QuantizedNorm(NamedTuple):
    """A norm whose result is quantized.

    Parameters
    ----------
    found : Quantized
        Its exact codes and scales.
    parts : list of QuantizedPart
        Those of somebody, compared with them.
    also : tuple of Quantized
        Norms whose codes and scales differ from somebody's in as few places.
    """

    found: Quantized
    parts: list[QuantizedPart]
    also: tuple[Quantized, ...]

    @property
    def is_near(self) -> bool:
        """Whether the norm explains codes at all, by its own scales or by others."""
        return min(_count(self.parts)) <= MOST_DIFFERENT


def guess_sharing(shape: tuple[int, ...], scales: NDArray[Any]) -> str:
    """Return which values share a scale, as `--per` has it, by the shape of scales.

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
    """Return the norm whose codes and scales differ least from somebody's; None where no group has two values.

    Parameters
    ----------
    question : Question
        Whose y are the codes.
    scales, tensor_scale : ndarray
        As `judge_quantized` takes them.
    asked : Quantization
    norm : str or None
        Try this norm alone.
    effort : Effort

    Raises
    ------
    DataError
        If codes or scales are of other shapes than the tensor has.
    """
    given = question.y, scales, tensor_scale

    def measure(subject: AskedNorm, eps: float | None) -> tuple[tuple[float, float], Quantized] | None:
        plan = subject.plan.change_spec(dtype="float64", eps=eps)
        try:
            found = quantize_plan(plan, question.x, subject.inputs, asked, effort)
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
    every = [one for subject in near for eps in _list_eps(subject.plan) if (one := measure(subject, eps))]
    best = min(counts for counts, _ in every)
    found, *also = (one for counts, one in every if counts == best)
    return QuantizedNorm(found, judge_quantized(found, *given), tuple(also))


def _count(parts: list[QuantizedPart]) -> tuple[float, float]:
    """Return the part of the codes that differs, and that of the scales."""
    shares = {part.name: part.different / part.total for part in parts}
    return shares["codes"], shares["scales"]
