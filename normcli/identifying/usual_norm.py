"""The search for the default norm whose result is a tensor with a given gate, or given codes and scales."""

from __future__ import annotations

import itertools
import math
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from normcli.checking.check import NORMALIZED, check
from normcli.checking.ulp import choose_counting_dtype
from normcli.errors import DataError
from normcli.identifying.faults.fault_search import list_subjects, open_cases
from normcli.identifying.faults.joint_search import open_joints
from normcli.identifying.faults.variant import Variant
from normcli.identifying.models.evidence import COMMON_EPS
from normcli.identifying.question import Diagnosis, Identification, Kind
from normcli.identifying.search.match import Match
from normcli.identifying.words.phrasing import diagnose
from normcli.numerics.elements.activation import Activation
from normcli.numerics.rounding import widen
from normcli.quantizing.judging import judge_quantized
from normcli.quantizing.quantize import quantize_plan
from normcli.results.calculate import calculate
from normcli.results.surroundings import GateOrder, Surroundings
from normcli.tensors.mapped import fetch
from normcli.tuples import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from normcli.engine.walk import Effort
    from normcli.identifying.faults.case import Case
    from normcli.identifying.faults.case_sampling import AskedNorm
    from normcli.identifying.faults.claim import Claim
    from normcli.identifying.question import Question
    from normcli.norms.plan import Plan
    from normcli.quantizing.formats import Quantization
    from normcli.quantizing.judging import QuantizedPart
    from normcli.quantizing.quantize import Quantized


# -- a gate

_MOST_TRIED = 1 << 14
"""About how many values norms are tried on; those that agree in all of these are tried on the whole tensor."""

_LEAST_VALUES = 16
"""Fewer values do not tell norms apart."""


class GatedNorm(NamedTuple):
    """A norm with a gate that reproduces a tensor: its match, and its name, words and command."""

    match: Match

    @property
    def name(self) -> str:
        """The norm, with its groups: `gn --groups 4`."""
        groups = self.match.groups
        return self.match.norm + ("" if groups is None else f" --groups {groups}")

    @property
    def words(self) -> str:
        """The norm, its eps and its gate: `rms with eps 1e-06, times silu(gate)`."""
        order, act = self.match.gate or ("", "")
        factor = "gate" if act == Activation.NONE else f"{act}(gate)"
        if order == GateOrder.BEFORE:
            return f"{self.name} with eps {self.match.eps:g}, of x · {factor}"
        return f"{self.name} with eps {self.match.eps:g}, times {factor}"

    @property
    def command(self) -> str:
        """The command that calculates the norm with its gate."""
        order, act = self.match.gate or ("", "")
        gate = f"--gate … --gate-act {act} --gate-order {order}"
        return f"normcli {self.name} --eps {self.match.eps:g} {gate}"


def identify_gated(
    question: Question, gate: NDArray[Any], norm: str | None = None
) -> tuple[Identification, Diagnosis]:
    """Return the identification of y as a default norm with a gate, and its diagnosis.

    The gate may be before the norm or behind it, with any activation. If no such norm makes y, faults of norms
    with a gate of the default activation are looked for. Nothing is identified below 16 values.

    Parameters
    ----------
    question : Question
    gate : ndarray
        The gate, before its activation, of a shape that broadcasts to that of x.
    norm : str or None
        The only norm to look for; None for all.

    Raises
    ------
    DataError
        If the gate's shape does not broadcast to that of x, or x and y differ in shape.
    """
    if question.y.shape != question.x.shape:
        raise DataError(f"the actual tensor has the shape {question.y.shape}; x has {question.x.shape}")
    found = [*find_gated(question, gate, norm)]
    is_small = question.x.size < _LEAST_VALUES
    if not found or is_small:
        claims = () if is_small else _find_claims(question, gate, norm)
        blamed = Identification(question, (), claims=claims)
        if claims:
            step = f"check {claims[0].plan.norm.name} --gate FILE tells which values are off, and how far"
            return blamed, diagnose(blamed)._replace(next_step=step)
        step = "check NORM --gate FILE names faults of a norm that you know"
        return blamed, Diagnosis(Kind.NONE, "no usual norm with that gate makes y", next_step=step)
    best, *others = [one for one in found if one.match.max_ulp <= _EXACT] or found
    known = Identification(question, tuple(one.match for one in (best, *others)))
    also = tuple(one.words for one in others)
    evidence = "with that, every value is the exact one, rounded"
    if best.match.max_ulp > _EXACT:
        evidence = f"the largest difference is {best.match.max_ulp:.2g} ulp"
    if len({(one.match.norm, one.match.gate) for one in (best, *others)}) > 1:
        return known, Diagnosis(Kind.UNDECIDED, f"y may be {best.words}", (evidence,), also)
    return known, Diagnosis(Kind.NORM, f"y is {best.words}", (evidence,), also, best.command)


_EXACT = 0.5
"""The largest error, in ulp, of a value that is rounded once."""


def find_gated(question: Question, gate: NDArray[Any], norm: str | None) -> Iterator[GatedNorm]:
    """Yield the norms that make y with a gate, with their own eps or another usual one, the likelier first.

    A norm makes y if every value is within the tolerance of a check. `norm` is the only norm to try, or None.
    """
    x, y, dtype = question.x, question.y, choose_counting_dtype(question.y.dtype)
    for order, act in itertools.product(GateOrder, Activation):
        around = Surroundings(gate=gate, gate_act=act, gate_order=order)
        for gated, values in _list_gated(question, around, norm):
            for case in open_cases(iter((gated,)), values, y, dtype, most=_MOST_TRIED):
                for eps in _find_eps(case):
                    plan = gated.plan.change_spec(eps=eps)
                    if check(plan, values, {NORMALIZED: y}, gated.inputs).ok:
                        exact = calculate(plan.change_spec(dtype="float64"), values, gated.inputs).normalized
                        split, spec = plan.grid.split, plan.spec
                        match = Match.of(
                            plan.norm.name, widen(fetch(y)), exact, dtype,
                            axes=plan.grid.axes, precision=dtype.name, like=(),
                            order=tuple(range(x.ndim)), groups=None if split is None else split.groups,
                            group_order=None if split is None else split.order.value, eps=eps,
                            eps_range=(eps, eps), eps_mode=spec.eps_mode, ddof=spec.ddof,
                            affine=", ".join(gated.inputs.parameters) or "none",
                            gate=(order.value, act.value),
                        )  # fmt: skip
                        yield GatedNorm(match)


def _list_gated(
    question: Question, around: Surroundings, norm: str | None
) -> Iterator[tuple[AskedNorm, NDArray[Any]]]:
    """Yield each default norm with its gate, and the tensor that it normalizes: x, or x times the gate.

    `around` has the gate, its activation and its place; `norm` is the only norm to yield, or None for all.
    """
    x, _, gamma, beta, layout, *_ = question
    for subject in list_subjects(x, gamma, beta, layout, norm):
        request, values = around.prepare(subject.plan.request, x)
        inputs = around.surround(subject.inputs, subject.plan, x)
        plan = subject.plan if values is x else replace(subject.plan, request=request)
        yield subject._replace(plan=plan, inputs=inputs), values


def _find_claims(question: Question, gate: NDArray[Any], norm: str | None) -> tuple[Claim, ...]:
    """Return the claims of faults with which a default norm and its gate make y, the likeliest first.

    The gate is tried behind the norm, then before it. Empty if no fault explains y.
    """
    dtype = choose_counting_dtype(question.y.dtype)
    for order in GateOrder:
        listed = [*_list_gated(question, Surroundings(gate=gate, gate_order=order), norm)]
        if listed:
            subjects, (values, *_) = zip(*listed, strict=True)
            claims = open_joints([*open_cases(iter(subjects), values, question.y, dtype)])
            if claims:
                return claims
    return ()


def list_usual_eps(plan: Plan) -> tuple[float | None, ...]:
    """Return the plan's eps and then the other usual ones; `(None,)` for a norm without eps."""
    own = plan.spec.eps
    return (own,) if own is None else tuple(dict.fromkeys((own, *COMMON_EPS)))


def _find_eps(case: Case) -> Iterator[float]:
    """Yield the plan's eps and other usual eps with which all y of a case are within rounding of the norm.

    Nothing for a norm without eps.
    """
    for eps in list_usual_eps(case.plan):
        if eps is not None and case.explains(case.predict(Variant(divisor=case.root(case.square, eps)))).all():
            yield eps


def find_exact_eps(subject: AskedNorm, values: NDArray[Any], y: NDArray[Any]) -> float | None:
    """Return another usual eps than the plan's with which y is the norm's exact result, rounded once.

    None without such an eps. `values` are the norm's input, of the plan's shape.
    """
    for case in open_cases(iter((subject,)), values, y, choose_counting_dtype(y.dtype), most=_MOST_TRIED):
        for eps in _find_eps(case):
            plan = subject.plan.change_spec(eps=eps)
            if eps == subject.plan.spec.eps:
                continue
            if check(plan, values, {NORMALIZED: y}, subject.inputs).comparisons[NORMALIZED].max_ulp <= _EXACT:
                return eps
    return None


# -- codes and scales

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
        Other norms, or other eps, whose codes and scales differ from the given ones in as few places.
    """

    found: Quantized
    parts: list[QuantizedPart]
    also: tuple[Quantized, ...]

    @property
    def is_near(self) -> bool:
        """Whether at most half of the codes, or at most half of the scales, differ from the norm's."""
        return min(_count(self.parts)) <= MOST_DIFFERENT


def guess_sharing(shape: tuple[int, ...], scales: NDArray[Any]) -> str:
    """Return which values of a tensor share a scale, as an argument of `--per`, guessed from the scales' shape.

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
    every = [one for subject in near for eps in list_usual_eps(subject.plan) if (one := measure(subject, eps))]
    best = min(counts for counts, _ in every)
    found, *also = (one for counts, one in every if counts == best)
    return QuantizedNorm(found, judge_quantized(found, *given), tuple(also))


def _count(parts: list[QuantizedPart]) -> tuple[float, float]:
    """Return the share of the codes that differ, and the share of the scales that differ."""
    shares = {part.name: part.different / part.total for part in parts}
    return shares["codes"], shares["scales"]
