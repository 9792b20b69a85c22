"""Layers whose norm nobody named: one of several alike is identified, the others are compared with its norm."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from normcli.checking.check import NORMALIZED, check
from normcli.checking.ulp import choose_counting_dtype
from normcli.engine.inputs import Inputs
from normcli.errors import DataError
from normcli.identifying.confirmation import find_strange_groups, plan_hypothesis
from normcli.identifying.gated_norm import identify_gated
from normcli.identifying.identify import identify
from normcli.identifying.models.error_bounds import list_levels
from normcli.identifying.question import Question, find_reason
from normcli.identifying.search.affine_step import ESTIMATED, enumerate_affine_steps
from normcli.identifying.words.phrasing import diagnose
from normcli.results.arguments import Problem
from normcli.tensors.tensor import Tensor
from normcli.tuples import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Hashable

    from numpy.typing import NDArray

    from normcli.identifying.models.error_bounds import Level
    from normcli.identifying.question import Diagnosis
    from normcli.identifying.search.groups import Hypothesis


class _Finding(NamedTuple):
    """A norm that was found on an earlier layer, to be tried on later ones.

    Parameters
    ----------
    hypothesis : Hypothesis
        The norm: its groups of values, its divisor, and where gamma and beta are applied.
    eps : float
    level : Level
        The error bounds within which that layer's output agreed with the norm.
    told : Diagnosis
        The diagnosis of that layer's output, which is returned for later layers that agree too.
    """

    hypothesis: Hypothesis
    eps: float
    level: Level
    told: Diagnosis


class KnownNorms:
    """The norms found on layers so far, by the layers' class, shapes and dtypes; it grows with `identify`."""

    def __init__(self) -> None:
        self._findings: dict[Hashable, list[_Finding]] = {}

    def identify(
        self, question: Question, kind: str, gate: NDArray[Any] | None = None
    ) -> tuple[Diagnosis, float | None]:
        """Return the diagnosis of a layer's output, and its largest distance from the norm found, in ulp.

        The distance is None if no norm fits. Norms found before on layers of the same class, shapes and dtypes
        are tried first. A norm that is found is added for later layers, unless it has a gate.

        Parameters
        ----------
        question : Question
            The layer's input x, output y, gamma and beta.
        kind : str
            The layer's class.
        gate : ndarray or None
            The gate that was recorded beside x; None without one.

        Raises
        ------
        DataError
            If y, gamma or beta has more axes than x, or the gate does not fit to x.
        """
        tensors = question.x, question.y, question.gamma, question.beta
        if any(one is not None and one.ndim > question.x.ndim for one in tensors):
            raise DataError(f"its weight or bias has more axes than its input, which has {question.x.ndim}")
        if gate is not None:
            gated, told = identify_gated(question, gate)
            return told, gated.matches[0].max_ulp if gated.matches else None
        key = kind, *(None if one is None else (one.shape, one.dtype) for one in tensors)
        findings = self._findings.setdefault(key, [])
        if find_reason(question.x, question.y) is None:
            for finding in findings:
                ulp = _hold(finding, question)
                if ulp is not None:
                    return finding.told, ulp
        found = identify(question)
        told = diagnose(found)
        if not found.matches:
            return told, None
        best = found.matches[0]
        if best.affine == ESTIMATED and "gamma" not in told.cause:
            told = told._replace(cause=f"{told.cause}, then a fitted gamma")
        is_plain = best.affine != ESTIMATED and best.order == tuple(range(question.x.ndim))
        if best.hypothesis is not None and is_plain and found.question.saved is None and told.fault is None:
            for level in list_levels(choose_counting_dtype(question.y.dtype)):
                finding = _Finding(best.hypothesis, best.eps, level, told)
                if _hold(finding, question) is not None:
                    findings.append(finding)
                    break
        return told, best.max_ulp


def _hold(finding: _Finding, question: Question) -> float | None:
    """Return the largest distance of y from a norm that was found on an earlier layer, in ulp of y's dtype.

    None if y is further off, in any group, than the error bounds of that finding allow, or if gamma and beta
    cannot be applied to this x in the way they were applied on the earlier layer.
    """
    x, y, gamma, beta, *_ = question
    own = finding.hypothesis.affine
    for step in enumerate_affine_steps(x.shape, gamma, beta):
        if step.way == own.way:
            hypothesis = finding.hypothesis._replace(affine=step._replace(rounds_to=own.rounds_to))
            dtype = choose_counting_dtype(y.dtype)
            if find_strange_groups(hypothesis, finding.eps, x, y, finding.level, dtype).size:
                continue
            plan, inputs = plan_hypothesis(hypothesis, finding.eps, x), Inputs(step.scale, step.shift)
            plan = replace(plan, spec=plan.spec._replace(dtype=None))  # so that y's dtype counts
            problem = Problem(plan, Tensor(x, "x"), inputs)
            return check(problem, {NORMALIZED: y}).comparisons[NORMALIZED].max_ulp
    return None
