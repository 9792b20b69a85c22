"""Verdicts on a tensor that somebody made: whether it is the norm of another one, and which norm it is."""

from __future__ import annotations

import functools
import io
import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Generic, TypeVar

import numpy as np

from normcli.answers.judging.check_verdict import GroupedVerdict, Verdict
from normcli.answers.judging.identification import IdentificationAnswer
from normcli.checking import check as checking
from normcli.checking.ulp import choose_tolerance
from normcli.documents.document import View
from normcli.documents.plan_header import name_inputs
from normcli.errors import DataError, UsageError
from normcli.identifying import identify as identification
from normcli.identifying.faults.case_sampling import AskedNorm
from normcli.identifying.gated_norm import identify_gated
from normcli.identifying.grouped_check import GroupedTable
from normcli.identifying.grouped_diagnosis import diagnose_groups
from normcli.identifying.models.matrix_model import find_start
from normcli.identifying.question import Identification, Kind, Question
from normcli.identifying.words.phrasing import diagnose
from normcli.identifying.words.request_phrasing import diagnose_actual
from normcli.identifying.words.suggestion import hint_exchange
from normcli.library.intake import group_rows, refuse_groups
from normcli.norms.layout import make_layout
from normcli.norms.request import Choices, Request
from normcli.norms.table import find_norm
from normcli.results.arguments import read_arguments, read_numbers
from normcli.results.arrays import find_lazy, take
from normcli.results.normalize import require_options
from normcli.tensors.tensor import Tensor
from normcli.writers.structured import write_json
from normcli.writers.table import write, write_html

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import ArrayLike, NDArray

    from normcli.checking.ulp import Tolerance
    from normcli.documents.document import Document
    from normcli.identifying.question import Diagnosis
    from normcli.norms.rules import NormName
    from normcli.results.arguments import Arguments

Found = TypeVar("Found")


@dataclass(frozen=True, repr=False, eq=False)
class Judgement(Generic[Found]):
    """The verdict of `check`, `identify` or `audit`: true or false; printed, it is the command's report.

    Parameters
    ----------
    ok : bool
        Whether everything agrees (`check`, `audit`), or a norm reproduces the tensor without a fault
        (`identify`).
    found : Checked, Identification, Audit or RunComparison
        The findings as numbers: `comparisons` by name for `check`; `matches`, the best first, for `identify`;
        `layers` and `first`, or `parting`, for `audit`.
    document : Document
        The report, for any writer.
    diagnosis : Diagnosis or None
        The findings on what made the tensor: `verdict`, `cause`, `evidence`, `alternatives`, `remedy`,
        `next_step` and `fault`. None for an audit, and for a check that has nothing to say.
    """

    ok: bool
    found: Found
    document: Document
    diagnosis: Diagnosis | None = None

    def __bool__(self) -> bool:
        return self.ok

    def __repr__(self) -> str:
        said = "" if self.diagnosis is None else f": {self.diagnosis.cause}"
        return f"<Judgement: {'ok' if self.ok else 'not ok'}{said}>"

    def __str__(self) -> str:
        text = io.StringIO()
        write(self.document, text, View())
        return text.getvalue().rstrip("\n")

    def _repr_html_(self) -> str:
        return write_html(self.document, View())

    def data(self) -> dict[str, Any]:
        """Return what the command prints with `--format json`, parsed."""
        text = io.StringIO()
        write_json(self.document, text, View())
        data: dict[str, Any] = json.loads(text.getvalue())
        return data


def check(
    actual: Any,
    x: Any,
    norm: NormName = "bn",
    *,
    max_ulp: float | None = None,
    rtol: float | None = None,
    atol: float | None = None,
    by: Any | None = None,
    **options: Any,
) -> Judgement[checking.Checked]:
    """Compare a tensor with the exact norm of another tensor.

    Parameters
    ----------
    actual : array_like
        The tensor to judge, of the shape of `x`: what somebody made of `x`. Ulp are of its dtype.
    x : array_like
        The input, as `normalize` takes it: tensors and tables of other libraries too.
    norm : str
        A name of the table `normcli.NORMS`, or an alias.
    max_ulp : float, optional
        The most units in the last place by which a value may differ; a value rounded once is within 0.5.
    rtol, atol : float, optional
        A value may differ by atol + rtol · |exact|, in place of `max_ulp`. Without any of the three, rtol and
        atol are those of torch's `assert_close` for the dtype.
    by : sequence, optional
        The group of each row of a table, or of each value of an array of one axis: rows are normalized with the
        statistics of their group, as `fit` has them. Groups of no more rows than ddof are not judged.
    **options
        Options of `normcli.normalize` without `out`; `gate`, `gate_act` and `gate_order` too.

    Returns
    -------
    Judgement
        True if every value agrees; otherwise its text says what made `actual` instead, if the data show it.

    Raises
    ------
    DataError
        If `actual` does not have the shape of `x`, a tensor does not hold real numbers, or no group of `by` has
        more rows than ddof.
    UsageError
        If an option makes no sense for the norm; if `by` is given for an `x` that a scheduler holds in blocks,
        or beside an option of the whole tensor, such as `mask`, `axes` or `gate`.

    Examples
    --------
    >>> judgement = check([[-1.0, 1.0]], [[1.0, 3.0]], "ln", eps=0)
    >>> judgement.ok, judgement.found.comparisons["normalized"].max_ulp
    (True, 0.0)
    >>> bool(check([[-1.0, 1.5]], [[1.0, 3.0]], "ln", eps=0))
    False
    """
    require_options("check", options, but=("out",), takes_gate=True)
    tolerate = functools.partial(choose_tolerance, rtol=rtol, atol=atol, max_ulp=max_ulp)
    lazy = find_lazy(x)
    if lazy is not None:
        refuse_groups(by)
        plan, parameters, found = lazy.work.check_array(actual, lazy.taken, norm, options, tolerate)
        hollow = Tensor(np.broadcast_to(np.zeros((), lazy.taken.values.dtype), plan.grid.shape), "x")
        return Judgement(
            found.ok, found, Verdict(plan, hollow, parameters, {checking.NORMALIZED: "actual"}, found)
        )
    if by is not None and (column := take(x, "x").values).ndim == 1:
        x = column[:, np.newaxis]
    asked = read_arguments(x, norm, options)
    theirs = checking.fit_actual(asked.plan, read_numbers(actual, "actual"))
    if theirs.shape != asked.plan.grid.shape:
        raise DataError(f"actual has the shape {theirs.shape}; x has {asked.plan.grid.shape}")
    if by is None:
        return judge(asked, theirs, tolerate)
    refused = next((name for name in _OF_WHOLE if options.get(name) is not None), None)
    if refused is not None:
        raise UsageError(f"{refused} is of the whole tensor: leave it out beside by")
    plan = asked.plan
    rule, affine = Choices(plan.request).pick_nan_rule(options.get("nan")), asked.inputs.parameters
    tensor = Tensor(asked.values, "x", plan.grid.columns, by=group_rows(by, asked.values))
    table = GroupedTable(tensor, Tensor(theirs, "actual"), affine, rule, tolerate, asked.effort)
    grouped = table.compare(plan.request)
    told = None if grouped.checked.ok else diagnose_groups(table, plan.request, grouped)
    sources, warnings = {checking.NORMALIZED: "actual"}, grouped.warnings
    answer = GroupedVerdict(
        plan, tensor, affine, sources, grouped.checked, warnings, diagnosis=told, found=grouped
    )
    return Judgement(grouped.checked.ok, grouped.checked, answer, told)


_OF_WHOLE = ("mask", "lengths", "fill", "gate", "residual", "clip", "axes", "keep", "layout")
"""The options that are refused beside `by`: they are of the whole tensor."""


def judge(
    asked: Arguments,
    actual: NDArray[Any],
    tolerate: Callable[[np.dtype[Any]], Tolerance],
    allowed: NDArray[np.float64] | None = None,
) -> Judgement[checking.Checked]:
    """Compare a tensor with the exact norm of another tensor, and diagnose a difference.

    Parameters
    ----------
    asked : Arguments
        The input, the plan and the options, as `read_arguments` returns them.
    actual : ndarray
        The tensor to judge.
    tolerate : callable
        Returns the tolerance for a dtype.
    allowed : ndarray or None
        The difference that is allowed for each value, passed on to `normcli.checking.check.check`.

    Raises
    ------
    DataError
        If `actual` does not have the input's shape.
    """
    plan, values, given, effort = asked.plan, asked.values, asked.inputs, asked.effort
    arrays = {checking.NORMALIZED: actual}
    found = checking.check(plan, values, arrays, given, tolerate, effort, allowed, asked.addends)
    subject = AskedNorm(plan, given, asked.addends)
    told = diagnose_actual(subject, values, actual, found)
    tensor, sources = Tensor(values, "x"), dict.fromkeys(arrays, "actual")
    answer = Verdict(plan, tensor, name_inputs(given), sources, found, diagnosis=told)
    return Judgement(found.ok, found, answer, told)


def identify(
    actual: Any,
    x: Any,
    *,
    norm: NormName | None = None,
    gamma: ArrayLike | None = None,
    beta: ArrayLike | None = None,
    layout: str | None = None,
    u: ArrayLike | None = None,
    v: ArrayLike | None = None,
    gate: ArrayLike | None = None,
) -> Judgement[Identification]:
    """Find the norm that made a tensor of another one: its axes, eps, ddof, gamma and beta.

    Parameters
    ----------
    actual : array_like
        The tensor whose norm is sought, of the shape of `x` or with its axes in another order.
    x : array_like
        The input.
    norm : str, optional
        The only norm to try; None: all of them.
    gamma, beta : array_like, optional
        The scale and the shift; without them, values that fit are sought channel by channel.
    layout : str, optional
        The names of the axes, one letter or word each, which tell the channel axis.
    u, v : array_like, optional
        The vector that power iterations of `sn` may have started from; give one of the two.
    gate : array_like, optional
        The gate z, of a shape that broadcasts to that of `x`: norm(x) · act(z) and norm(x · act(z)) are tried.

    Returns
    -------
    Judgement
        True if a norm reproduces `actual` without a fault; `found.matches` are the norms, the best first.

    Raises
    ------
    DataError
        If the shapes do not match, or a tensor does not hold real numbers.

    Examples
    --------
    >>> import numpy as np
    >>> x = np.random.default_rng(0).normal(size=(8, 6))
    >>> y = (x - x.mean(1, keepdims=True)) / np.sqrt(x.var(1, keepdims=True) + 1e-5)
    >>> best = identify(y, x).found.matches[0]
    >>> best.norm, best.axes, best.eps
    ('ln', (1,), 1e-05)
    """
    taken, theirs = take(x, "x"), read_numbers(actual, "actual")
    given = {name: read_numbers(a, name) for name, a in (("gamma", gamma), ("beta", beta)) if a is not None}
    layout = layout or taken.layout
    names = make_layout(layout, taken.values.ndim).names
    wanted = None if norm is None else find_norm(norm)[0].name
    start = find_start(Request.collect("", {"u": u, "v": v}))
    asked = taken.values, theirs, given.get("gamma"), given.get("beta")
    question = Question(*asked, layout=layout, start=start)
    if gate is None:
        found = identification.identify(question, wanted)
        told = hint_exchange(question, diagnose(found))
    else:
        found, told = identify_gated(question, read_numbers(gate, "gate"), wanted)
    source, other = Tensor(taken.values, "x"), Tensor(theirs, "actual")
    answer = IdentificationAnswer(found, told, source, other, names)
    return Judgement(told.verdict == Kind.NORM, found, answer, told)
