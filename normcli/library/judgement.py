"""Verdicts on arrays that are read already: for the functions of Python, the command line and assertions."""

from __future__ import annotations

import io
import json
import os
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from normcli.answers.judging.check_verdict import GroupedVerdict, RunningVerdict, Verdict
from normcli.answers.judging.gradients_verdict import GradientsVerdict
from normcli.answers.judging.identification import IdentificationAnswer
from normcli.checking.check import NORMALIZED, Checked, check
from normcli.checking.gradient_check import CheckedGradients, check_gradients
from normcli.documents.document import View
from normcli.documents.plan_header import name_inputs
from normcli.identifying.gated_norm import identify_gated
from normcli.identifying.grouped_diagnosis import diagnose_groups
from normcli.identifying.identify import identify
from normcli.identifying.models.matrix_model import find_start
from normcli.identifying.question import Identification, Kind, Question
from normcli.identifying.words.phrasing import diagnose
from normcli.identifying.words.request_phrasing import diagnose_actual
from normcli.identifying.words.suggestion import hint_exchange
from normcli.norms.layout import make_layout
from normcli.results.framework_departures import find_all_degeneracies
from normcli.writers import GRADIENTS
from normcli.writers.structured import write_json
from normcli.writers.table import format_text, write_html

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    import numpy as np
    from numpy.typing import NDArray

    from normcli.checking.ulp import Tolerance
    from normcli.documents.document import Document
    from normcli.golden.golden import Golden
    from normcli.identifying.grouped_check import GroupedTable
    from normcli.identifying.question import Diagnosis
    from normcli.norms.conventions import RunningRule
    from normcli.norms.plan import Plan
    from normcli.norms.request import Request
    from normcli.results.arguments import Problem
    from normcli.results.degenerate_groups import Degeneracy
    from normcli.results.result import Result
    from normcli.running.average import State
    from normcli.tensors.tensor import Tensor

Found = TypeVar("Found")


@dataclass(frozen=True, repr=False, eq=False)
class Judgement(Generic[Found]):
    """The verdict of `check`, `identify` or `audit`: it is true or false, and printed the command's report.

    Parameters
    ----------
    ok : bool
        The truth value: whether everything agrees (`check`, `audit`), or a norm reproduces the tensor without a
        fault (`identify`).
    found : Checked, Identification, Audit or RunComparison
        The findings as numbers: `comparisons` by name for `check`; `matches`, the best first, for `identify`;
        `layers` and `first`, or `parting`, for `audit`.
    document : Document
        The report, for any writer.
    diagnosis : Diagnosis or None
        The findings on what made the tensor: `verdict`, `cause`, `evidence`, `alternatives`, `remedy`,
        `next_step` and `fault`. None for an audit, and for a check that has nothing to say.
    warnings : sequence of Degeneracy or str
        The kinds of degenerate groups that the input of a check has; each as text is a line.
    """

    ok: bool
    found: Found
    document: Document
    diagnosis: Diagnosis | None = None
    warnings: Sequence[Degeneracy | str] = ()

    def __bool__(self) -> bool:
        return self.ok

    def __repr__(self) -> str:
        said = "" if self.diagnosis is None else f": {self.diagnosis.cause}"
        return f"<Judgement: {'ok' if self.ok else 'not ok'}{said}>"

    def __str__(self) -> str:
        return format_text(self.document, View())

    def _repr_html_(self) -> str:
        return write_html(self.document, View())

    def data(self) -> dict[str, Any]:
        """Return the command's JSON (`--format json`), parsed."""
        text = io.StringIO()
        write_json(self.document, text, View())
        data: dict[str, Any] = json.loads(text.getvalue())
        return data


def judge(
    problem: Problem,
    actual: Mapping[str, Tensor],
    tolerate: Callable[[np.dtype[Any]], Tolerance],
    allowed: NDArray[np.float64] | None = None,
) -> Judgement[Checked]:
    """Compare a tensor and statistics with the exact norm of a tensor, and find the cause of a difference.

    Parameters
    ----------
    problem : Problem
        The norm and its input.
    actual : mapping of str to Tensor
        The tensors to judge: `normalized`, and statistics by name.
    tolerate : callable
        Takes a dtype, and returns the tolerance for it.
    allowed : ndarray or None
        The difference that is allowed for each normalized value; None: `tolerate` decides.

    Raises
    ------
    DataError
        If a tensor to judge does not have the input's shape, or a statistic the shape of the groups.
    """
    arrays = {name: one.values for name, one in actual.items()}
    found = check(problem, arrays, tolerate, allowed)
    told = diagnose_actual(problem, arrays[NORMALIZED], found) if NORMALIZED in arrays else None
    return _report(problem, found, _name_sources(actual), told)


def _report(
    problem: Problem,
    found: Checked,
    sources: Mapping[str, str],
    told: Diagnosis | None = None,
    gradients: GradientsVerdict | None = None,
) -> Judgement[Checked]:
    warnings = _find_warnings(problem, found)
    given, lines = name_inputs(problem.inputs), list(map(str, warnings))
    answer = Verdict(problem.plan, problem.tensor, given, sources, found, lines, told, gradients)
    return Judgement(answer.ok, found, answer, told, warnings)


def _find_warnings(problem: Problem, found: Checked | Result) -> Sequence[Degeneracy]:
    """Return the kinds of degenerate groups that the input and its statistics show."""
    plan, inputs, counts = problem.plan, problem.inputs, found.counts
    return find_all_degeneracies(plan, problem.tensor.values, found.statistics, None, inputs, counts)


def _name_sources(tensors: Mapping[str, Tensor]) -> dict[str, str]:
    return {name: tensor.source for name, tensor in tensors.items()}


def judge_golden(golden: Golden, folder: str) -> Judgement[Checked]:
    """Return the verdict on golden files, which are read and compared already; `folder` is their path."""
    gradients, names = golden.gradients, (*golden.checked.comparisons, *GRADIENTS)
    sources = {name: os.path.join(folder, f"{name}.npy") for name in names}  # noqa: PTH118
    backward, problem = None, golden.problem
    if problem.dy is not None and gradients is not None:
        backward = GradientsVerdict(gradients, problem.tensor, problem.dy, sources)
    return _report(problem, golden.checked, sources, gradients=backward)


def judge_gradients(
    problem: Problem,
    actual: Mapping[str, Tensor],
    tolerate: Callable[..., Tolerance],
    allowed: Mapping[str, NDArray[np.float64]] = MappingProxyType({}),
) -> Judgement[CheckedGradients]:
    """Compare gradients with the exact ones, and find the fault of each that differs.

    Parameters
    ----------
    problem : Problem
        The problem, with dy.
    actual : mapping of str to Tensor
        The gradients to judge, by name: some of `dx`, `dgamma`, `dbeta` and `dgate`.
    tolerate : callable
        Takes a dtype and `scale`, the largest magnitude of the gradient, and returns the tolerance.
    allowed : mapping of str to ndarray
        The difference that is allowed for each value of a gradient, by its name.

    Raises
    ------
    NormError
        If the norm has no derivative, or an array does not fit.
    """
    assert problem.dy is not None
    warnings = list(_find_warnings(problem, problem.calculate(statistics_alone=True)))
    found = check_gradients(problem, {name: one.values for name, one in actual.items()}, tolerate, allowed)
    lines = list(map(str, warnings))
    answer = GradientsVerdict(found, problem.tensor, problem.dy, _name_sources(actual), lines)
    return Judgement(found.ok, found, answer, warnings=warnings)


def judge_rows(table: GroupedTable, request: Request, plan: Plan) -> Judgement[Checked]:
    """Compare a table, its rows normalized group by group, with the exact one; diagnose a difference.

    Parameters
    ----------
    table : GroupedTable
        The input, the table to judge, and the groups of rows.
    request : Request
    plan : Plan
        The plan for the whole table as one group of rows.

    Raises
    ------
    NormError
        If the request makes no statistics of the table, or no group can be judged.
    """
    found = table.compare(request)
    told = None if found.checked.ok else diagnose_groups(found)
    sources, checked = {NORMALIZED: table.actual.source}, found.checked
    answer = GroupedVerdict(
        plan, table.tensor, table.affine, sources, checked, found.warnings, diagnosis=told, found=found
    )
    return Judgement(checked.ok, checked, answer, told, found.warnings)


def judge_running(
    batches: Sequence[tuple[str, Result]],
    before: State,
    rule: RunningRule,
    actual: Mapping[str, NDArray[Any]],
    tolerate: Callable[[np.dtype[Any]], Tolerance],
) -> Judgement[Any]:
    """Compare running statistics with those that batches lead to, and find the cause of a difference.

    Parameters
    ----------
    batches : sequence of (str, Result)
        The name and the result of each batch, in order.
    before : State
        The running statistics before the first batch.
    rule : RunningRule
    actual : mapping of str to ndarray
        Some of `running_mean` and `running_var`.
    tolerate : callable
        Takes a dtype, and returns the tolerance for it.
    """
    from normcli.auditing.running_check import check_running

    names, results = zip(*batches, strict=True)
    found = [*check_running(before, list(results), rule, actual, tolerate)]
    answer = RunningVerdict(results[0].plan.norm.name, names, found)
    return Judgement(answer.ok, found, answer)


def ask(
    tensors: tuple[Tensor, Tensor], affine: Mapping[str, NDArray[Any] | None], request: Request
) -> Question:
    """Return the input of `judge_tensor` as a `Question`: two tensors, and what is known of the norm.

    Parameters
    ----------
    tensors : pair of Tensor
        The norm's input, and its output, which is to be identified.
    affine : mapping of str to ndarray or None
        Gamma and beta; None, or missing, for one that is not known.
    request : Request
        The layout, and `u` or `v`, from which power iterations may have started.

    Raises
    ------
    NormError
        If the layout is of other axes, or an array does not fit.
    """
    x, y = (tensor.values for tensor in tensors)
    make_layout(request.layout, x.ndim)  # which refuses one of other axes
    start = find_start(request)
    gamma, beta, addends = affine.get("gamma"), affine.get("beta"), tensors[0].addends
    return Question(x, y, gamma, beta, layout=request.layout, start=start, addends=addends)


def judge_tensor(
    question: Question, tensors: tuple[Tensor, Tensor], norm: str | None, gate: NDArray[Any] | None = None
) -> Judgement[Identification]:
    """Find the norm whose output for the first of two tensors is the second.

    Parameters
    ----------
    question : Question
        The two tensors with what is known of gamma, beta and layout, as `ask` returns it.
    tensors : pair of Tensor
        The input, and the tensor that is identified.
    norm : str or None
        The short name of the only norm to try; None: all of them.
    gate : ndarray or None
        The gate, before its activation; None without one.
    """
    if gate is None:
        found = identify(question, norm)
        told = hint_exchange(question, diagnose(found))
    else:
        found, told = identify_gated(question, gate, norm)
    names = make_layout(question.layout, question.x.ndim).names
    answer = IdentificationAnswer(found, told, *tensors, names)
    return Judgement(told.verdict == Kind.NORM, found, answer, told)
