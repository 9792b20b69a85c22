"""The search for the default norm whose result is a tensor with a given gate, and its words."""

from __future__ import annotations

import itertools
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from normcli.checking.check import NORMALIZED, check
from normcli.checking.half_precision import find_saved_dtype
from normcli.checking.ulp import choose_counting_dtype
from normcli.errors import DataError
from normcli.identifying.faults.fault_search import open_cases
from normcli.identifying.faults.joint_search import open_joints
from normcli.identifying.faults.variant import Variant
from normcli.identifying.inquiry import list_subjects
from normcli.identifying.models.divisor_fit import list_usual_eps
from normcli.identifying.question import Diagnosis, Identification, Kind
from normcli.identifying.search.match import Match
from normcli.identifying.words.phrasing import diagnose, tell_saved
from normcli.norms.request import Request
from normcli.numerics.elements.activation import Activation
from normcli.numerics.rounding import widen
from normcli.results.arguments import Problem
from normcli.results.surroundings import GateOrder, Surroundings
from normcli.tensors.mapped import fetch
from normcli.tensors.tensor import Tensor

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from normcli.identifying.faults.case import Case
    from normcli.identifying.faults.claim import Claim
    from normcli.identifying.question import Question


_MOST_TRIED = 1 << 14
"""About how many values norms are tried on; those that agree in all of these are tried on the whole tensor."""

_LEAST_VALUES = 16
"""Fewer values do not tell norms apart."""


def identify_gated(
    question: Question, gate: NDArray[Any], norm: str | None = None
) -> tuple[Identification, Diagnosis]:
    """Return the identification of y as a default norm with a gate, and its diagnosis.

    The gate may be before the norm or behind it, with any activation. If no such norm makes y, faults of norms
    with a gate of the default activation are looked for. Below 16 values a norm that makes y is undecided.
    Like `identify`, it takes a y of half precision that was saved in a longer dtype for what it was.

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
    x, y = question.x, question.y
    if y.shape != x.shape:
        raise DataError(f"the actual tensor has the shape {y.shape}; x has {x.shape}")
    found = [*find_gated(question, gate, norm)]
    half = None if found else find_saved_dtype(y) or find_saved_dtype(y, (x,), few=True)
    if half is not None:
        question = question._replace(y=fetch(y).astype(half), saved=half.name)
        found = [*find_gated(question, gate, norm)]
    found.sort(key=lambda match: -match.equal)  # else the likelier first
    is_small = x.size < _LEAST_VALUES
    if not found:
        claims = () if is_small else _find_claims(question, gate, norm)
        blamed = Identification(question, (), claims=claims)
        if claims:
            step = f"check {claims[0].plan.norm.name} --gate FILE tells which values are off, and how far"
            return blamed, diagnose(blamed)._replace(next_step=step)
        step = "check NORM --gate FILE names faults of a norm that you know"
        return blamed, Diagnosis(Kind.NONE, "no usual norm with that gate makes y", next_step=step)
    best, *others = [match for match in found if match.max_ulp <= _EXACT] or found
    words, also = _describe(best), tuple(map(_describe, others))
    evidence = "with that, every value is the exact one, rounded"
    if best.max_ulp > _EXACT:
        evidence = f"the largest difference is {best.max_ulp:.2g} ulp"
    if is_small:
        known = Identification(question, (), doubtful=(best, *others))
        shown, step = ("so few values fit many other things as well",), "more values of the same kernel tell"
        told = Diagnosis(Kind.UNDECIDED, f"y may be {words}", shown, also, next_step=step)
        return known, tell_saved(told, known)
    known = Identification(question, (best, *others))
    if len({(match.norm, match.gate) for match in (best, *others)}) > 1:
        return known, tell_saved(Diagnosis(Kind.UNDECIDED, f"y may be {words}", (evidence,), also), known)
    order, act = best.gate or ("", "")
    command = f"normcli {_name(best)} --eps {best.eps:g} --gate … --gate-act {act} --gate-order {order}"
    return known, tell_saved(Diagnosis(Kind.NORM, f"y is {words}", (evidence,), also, command), known)


def _describe(match: Match) -> str:
    """Return a norm, its eps and its gate in words: `rms with eps 1e-06, times silu(gate)`."""
    order, act = match.gate or ("", "")
    factor = "gate" if act == Activation.NONE else f"{act}(gate)"
    if order == GateOrder.BEFORE:
        return f"{_name(match)} with eps {match.eps:g}, of x · {factor}"
    return f"{_name(match)} with eps {match.eps:g}, times {factor}"


def _name(match: Match) -> str:
    """Return the name of a norm, with its groups: `gn --groups 4`."""
    return match.norm + ("" if match.groups is None else f" --groups {match.groups}")


_EXACT = 0.5
"""The largest error, in ulp, of a value that is rounded once."""


def find_gated(question: Question, gate: NDArray[Any], norm: str | None) -> Iterator[Match]:
    """Yield the norms that make y with a gate, with their own eps or another usual one, the likelier first.

    A norm makes y if every value is within the tolerance of a check. `norm` is the only norm to try, or None.
    """
    x, y, dtype = question.x, question.y, choose_counting_dtype(question.y.dtype)
    for order, act in itertools.product(GateOrder, Activation):
        around = Surroundings(gate=gate, gate_act=act, gate_order=order)
        for gated in _list_gated(question, around, norm):
            for case in open_cases((gated,), y, dtype, most=_MOST_TRIED):
                for eps in _find_eps(case):
                    plan = gated.plan.change_spec(eps=eps)
                    if check(gated._replace(plan=plan), {NORMALIZED: y}).ok:
                        wide = gated._replace(plan=plan.change_spec(dtype="float64"))
                        yield Match.of_plan(
                            plan, widen(fetch(y)), wide.calculate().normalized, dtype,
                            precision=dtype.name, order=tuple(range(x.ndim)),
                            affine=", ".join(gated.inputs.parameters) or "none", gate=(order.value, act.value),
                        )  # fmt: skip


def _list_gated(question: Question, around: Surroundings, norm: str | None) -> Iterator[Problem]:
    """Yield each default norm with its gate, of the tensor that it normalizes: x, or x times the gate.

    `around` has the gate, its activation and its place; `norm` is the only norm to yield, or None for all.
    """
    x, _, gamma, beta, layout, *_ = question
    asked, values = around.prepare(Request("ln"), x)  # the product with a gate is the same for each norm
    for subject in list_subjects(x, gamma, beta, layout, norm):
        plan = subject.plan
        inputs = around.surround(subject.inputs, plan, x)
        if values is not x:
            plan = replace(plan, request=plan.request.adopt_dtype(asked.dtype))
        yield Problem(plan, Tensor(values, "x"), inputs)


def _find_claims(question: Question, gate: NDArray[Any], norm: str | None) -> tuple[Claim, ...]:
    """Return the claims of faults with which a default norm and its gate make y, the likeliest first.

    The gate is tried behind the norm, then before it. Empty if no fault explains y.
    """
    dtype = choose_counting_dtype(question.y.dtype)
    for order in GateOrder:
        subjects = _list_gated(question, Surroundings(gate=gate, gate_order=order), norm)
        claims = open_joints([*open_cases(subjects, question.y, dtype)])
        if claims:
            return claims
    return ()


def _find_eps(case: Case) -> Iterator[float]:
    """Yield the plan's eps and usual ones, each only if all y are within rounding of the norm with it.

    Nothing for a norm without eps.
    """
    for eps in list_usual_eps(case.plan.spec.eps):
        if eps is not None and case.explains(case.predict(Variant(divisor=case.root(case.square, eps)))).all():
            yield eps


def find_exact_eps(subject: Problem, y: NDArray[Any]) -> float | None:
    """Return another usual eps than the plan's with which y is the norm's exact result, rounded once.

    None without such an eps.
    """
    for case in open_cases((subject,), y, choose_counting_dtype(y.dtype), most=_MOST_TRIED):
        for eps in _find_eps(case):
            if eps == subject.plan.spec.eps:
                continue
            other = subject._replace(plan=subject.plan.change_spec(eps=eps))
            if check(other, {NORMALIZED: y}).comparisons[NORMALIZED].max_ulp <= _EXACT:
                return eps
    return None
