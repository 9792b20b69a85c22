"""The diagnosis of a tensor compared with the requested norm: how it differs, and what makes both agree."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from normcli.checking.check import NORMALIZED, check
from normcli.checking.fault import find_fault
from normcli.checking.half_precision import find_saved_dtype
from normcli.checking.ulp import choose_counting_dtype
from normcli.dtypes import get_eps, is_half
from normcli.identifying.faults.case_sampling import leave_selection
from normcli.identifying.faults.fault_search import is_off_by_rounding
from normcli.identifying.faults.tables.places import UNKNOWN
from normcli.identifying.gated_norm import find_exact_eps
from normcli.identifying.identify import identify
from normcli.identifying.question import MOST_WORDS, Diagnosis, Kind, Question, add_clauses, count_words
from normcli.identifying.search.affine_step import ESTIMATED
from normcli.identifying.words.agreement import diagnose_casts, diagnose_closer_convention
from normcli.identifying.words.map_words import tell_sigma
from normcli.identifying.words.match_words import choose_others, list_exactness
from normcli.identifying.words.phrasing import SUGGEST, diagnose, find_arithmetic, split_reason, tell_claim
from normcli.identifying.words.request_difference import (
    OtherChoice,
    choose_request,
    find_remedy,
    is_computed,
    is_twice,
    list_other_choices,
    narrow_eps,
)
from normcli.identifying.words.suggestion import suggest_option
from normcli.norms.rules import AxesRule
from normcli.printable import format_up
from normcli.tensors.mapped import fetch

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from normcli.checking.check import Checked
    from normcli.identifying.question import Identification
    from normcli.identifying.search.match import Match
    from normcli.norms.plan import Plan
    from normcli.numerics.statistics.solution import Given
    from normcli.results.arguments import Problem


_UNEXPLAINED = (Kind.NONE, Kind.UNDECIDED)
"""The verdicts that leave open why a tensor differs."""


def diagnose_actual(subject: Problem, actual: NDArray[Any], checked: Checked) -> Diagnosis | None:
    """Return the diagnosis of a tensor that differs from the requested norm, or was made by another kernel.

    None if the tensor agrees and its bits show nothing else.

    Parameters
    ----------
    subject : Problem
        The requested norm, with its input.
    actual : ndarray
        The tensor that is checked.
    checked : Checked
        The comparison of the tensor with the exact result.
    """
    values, saved, selection = subject.values, checked.saved, subject.inputs.selection
    if selection is not None and selection.count(values) == values.size:
        subject = leave_selection(subject)
    if saved is None:
        told = _diagnose(subject, actual, checked)
        half = None if told is None else find_saved_dtype(actual)
        if told is None or half is None:
            return told
        if told.verdict not in _UNEXPLAINED and not _agrees_as(half, subject, actual):
            return told
        cause = f"{subject.plan.norm.name} differs: y holds {half} numbers, though x is {values.dtype}"
        return told._replace(cause=cause, remedy=f"calculate in {values.dtype}, or check as --dtype {half}")
    told = _diagnose(subject, fetch(actual).astype(saved), checked)
    note = f"y holds {saved} numbers, saved as {actual.dtype}"
    if told is None:
        cause = f"{subject.plan.norm.name} agrees: {note}"
        return Diagnosis(Kind.NORM, cause, (f"it is judged as {saved}",))
    return told._replace(evidence=(note, *told.evidence))


_ROUNDED_HALVES = 4.0
"""The error by rounding x, gamma, beta and y to half precision, in machine epsilons, as a part of the largest
|y|."""


def _agrees_as(half: np.dtype[Any], subject: Problem, actual: NDArray[Any]) -> bool:
    """Return True if y is the norm's result up to a few roundings to half precision.

    False without running statistics. `actual` is y, and `half` the half precision.
    """
    if subject.inputs.given is None:
        return False
    found = check(subject, {NORMALIZED: actual}).comparisons[NORMALIZED]
    return bool(found.max_abs <= _ROUNDED_HALVES * get_eps(half) * np.abs(fetch(actual)).max())


def _diagnose(subject: Problem, actual: NDArray[Any], checked: Checked) -> Diagnosis | None:
    """Return the diagnosis of a tensor in the dtype in which it is judged, as `diagnose_actual` describes."""
    plan, values, inputs = subject.plan, subject.values, subject.inputs
    gate = inputs.gate
    if gate is None:
        told = diagnose_casts(plan, values, actual, inputs)
        if told is not None:
            return told
    if checked.ok:
        return None if gate is not None else diagnose_closer_convention(plan, values, actual, inputs)
    option = suggest_option(checked.comparisons[NORMALIZED])
    looser = None if option is None else f"normcli check {plan.norm.name} … {option}"
    is_gated = gate is not None or inputs.gated_input is not None
    if is_gated and is_half(actual.dtype) and (eps := find_exact_eps(subject, actual)) is not None:
        name = plan.norm.name  # in half precision other faults come near, too
        cause = f"{name} differs: eps is {eps:g}, not {plan.spec.eps:g}"
        remedy = f"normcli {name} … --eps {eps:g}"
        evidence = ("with that, every value is the exact one, rounded",)
        return Diagnosis(Kind.NORM, cause, evidence, remedy=remedy, fault="stats-eps-other")
    found = identify(
        Question(values, actual, inputs.gamma, inputs.beta, plan.grid.layout.text, subject=subject)
    )
    if not (gate is None and inputs.selection is None) and not found.claims:
        told = _diagnose_rounding(subject, actual, looser)
        if told.verdict != Kind.NONE or (found.nearest is None and gate is not None):
            return told
    return diagnose_request(plan, found, inputs.given, looser)


def _diagnose_rounding(subject: Problem, actual: NDArray[Any], looser: str | None) -> Diagnosis:
    """Return the diagnosis of a gated or masked tensor that no fault explains: it may differ only by rounding.

    `looser` is the command with the smallest tolerance at which the tensor passes, or None.
    """
    name, dtype = subject.plan.norm.name, choose_counting_dtype(actual.dtype)
    if is_off_by_rounding(subject, actual, dtype):
        is_half_gated = is_half(dtype) and subject.inputs.gate is not None
        steps = ("the norm, the activation and the product may each be rounded",) if is_half_gated else ()
        return Diagnosis(Kind.NORM, f"{name} differs by rounding alone", steps, remedy=looser)
    if is_half(dtype) and is_off_by_rounding(subject, actual, dtype, _MORE_ROUNDINGS):
        cause = f"{name} may differ by rounding in {dtype.name} alone"
        return Diagnosis(Kind.UNDECIDED, cause, remedy=looser)
    step = "check the norm by itself, without its gate"
    return Diagnosis(Kind.NONE, f"{name} differs: no fault of it explains y with that gate", next_step=step)


_MORE_ROUNDINGS = 4.0
"""The factor on the error bounds of a gated result, if each step may be rounded to half precision."""


def diagnose_request(
    plan: Plan, found: Identification, given: Given | None = None, looser: str | None = None
) -> Diagnosis:
    """Return the diagnosis of a tensor's difference from the requested norm, or of another norm or map.

    Parameters
    ----------
    plan : Plan
        The plan of the request.
    found : Identification
        The identification of the tensor.
    given : Given or None
        Running statistics; None without them.
    looser : str or None
        The command with the smallest tolerance at which the tensor passes; None without one.
    """
    likely, less_likely = found.doubtful[:_MOST_DOUBTFUL], found.doubtful[_MOST_DOUBTFUL:]
    same = {id(match) for match in likely if list_other_choices(plan, match, found.question) == []}
    likely = tuple(sorted(likely, key=lambda match: id(match) not in same))
    found = found._replace(doubtful=(*likely, *less_likely))
    told, name, matches = diagnose(found), plan.norm.name, found.matches
    if found.claims and not matches:
        told = told._replace(cause=f"{name} differs: {tell_claim(found.claims[0])[0]}")
        if told.fault != UNKNOWN["both"].id or plan.norm.axes is not AxesRule.FIRST:
            return told
        step = f"normcli fit {name} TRAIN -o stats.npz, then normcli apply stats.npz to the input"
        return told._replace(alternatives=(*told.alternatives, "a scaler fitted elsewhere"), next_step=step)
    narrowed = [narrow_eps(match, found, plan.spec.eps) for match in matches]
    compared = [(match, list_other_choices(plan, match, found.question)) for match in narrowed]
    requests = [(match, some) for match, some in compared if some is not None]
    shown = [pair for pair in requests if not any(pair[0] is match for match in matches)]
    requests = shown or requests
    if requests:
        half, (match, differences) = found.question.saved, choose_request(requests, found.reproductions)
        others = choose_others(match, [one for one, _ in requests])
        told_so = "; ".join(one.words for one in differences)
        words = ["; ".join(one.words for one in some) for other, some in requests if other in others]
        twice = [find_fault("stats-eps-twice").words] if is_twice(plan, match) else []
        also = tuple(dict.fromkeys(each for each in (*twice, *words) if each not in ("", told_so)))
        cause, evidence, remedy = _contrast(plan, found, match, differences, given, looser)
        options = [word for one in differences for word in (one.option or "").split(" ")]
        faults = [_FAULTS[word] for word in options if word in _FAULTS]
        if (wrong := find_arithmetic(found, match)) is not None:
            faults.append(wrong.id)
        return Diagnosis(
            told.verdict, cause,
            evidence if half is None else (f"y holds {half} numbers", *evidence), also,
            remedy or (found.claims[0].fault.remedy if found.claims else None),
            "give --gamma and --beta" if match.affine == ESTIMATED else SUGGEST if also else None,
            told.fault if told.fault in faults or not faults else faults[0],
        )  # fmt: skip
    if (estimated := tell_sigma(plan, found)) is not None:
        return estimated
    is_channels = given is None and found.plain is not None and bool(found.plain.axes)
    if same and is_channels and told.verdict == Kind.AFFINE and likely[0].max_ulp <= _FEW_ULP:
        near = f"y is at most {format_up(likely[0].max_ulp)} ulp from the exact result"
        told = Diagnosis(Kind.UNDECIDED, told.cause, (near,)) if likely[0].is_rough else told
    if same and told.verdict == Kind.UNDECIDED and likely[0].is_rough:
        precision = likely[0].precision.split(",")[0]
        cause = f"{name} may differ by rounding in {precision} alone"
        return told._replace(cause=cause, evidence=told.evidence[-1:], remedy=looser)
    if same and told.verdict == Kind.UNDECIDED and not likely[0].is_odd:
        return told._replace(cause=f"{name} may differ by rounding alone", remedy=looser)
    clause = told.cause if found.reason is None else split_reason(found.reason)[0]
    causes = [f"{name} differs: {each}" for each in (clause, clause.rpartition(" (")[0] or clause)]
    return told._replace(cause=next((each for each in causes if count_words(each) <= MOST_WORDS), clause))


_MOST_DOUBTFUL = 16
"""The number of doubtful matches among which the requested norm is looked for."""

_FEW_ULP = 4.0
"""The largest distance from the requested norm, in ulp, with which a map of each channel is no cause."""

_BLURRED = 2.0**-14
"""The largest error of a mean, as a part of the deviation, with which rounding leaves no room for a fault."""

_FAULTS = {
    "--axes": "stats-other-axes", "--eps": "stats-eps-other", "--eps-mode": "stats-eps-outside",
    "--ddof": "stats-ddof",
}  # fmt: skip
"""The ids of the faults that another request cures, by its option on the command line."""


def _contrast(
    plan: Plan,
    found: Identification,
    match: Match,
    differences: Sequence[OtherChoice],
    given: Given | None,
    looser: str | None,
) -> tuple[str, tuple[str, ...], str | None]:
    """Return the cause, evidence and remedy (or None) of a match that differs from the request.

    Parameters
    ----------
    plan : Plan
        The plan of the request.
    found : Identification
    match : Match
        One of its matches.
    differences : sequence of OtherChoice
        The options in which the match differs from the plan; may be empty.
    given : Given or None
        Running statistics that the request has.
    looser : str or None
        The command with the smallest tolerance at which the tensor passes.
    """
    name = plan.norm.name
    remedy = find_remedy(plan, match, found.question, differences) if differences else None
    told = list(differences)
    if given is not None:
        told.insert(0, OtherChoice("statistics are this tensor's own", "the running ones"))
        remedy = f"normcli {name} … without --eval"
    if (wrong := find_arithmetic(found, match)) is not None:
        told.append(OtherChoice(wrong.words))
        remedy = remedy or wrong.remedy
    exactness = [*list_exactness(match, [one for one in found.reproductions if one.is_of(match)])]
    if not told and match.is_far:
        largest = f"the largest difference is {match.max_ulp:.2g} ulp"
        return f"{name} differs: nothing known explains y", (largest,), None
    is_shown = match.lost <= _BLURRED or is_computed(match, found.reproductions)
    if not told and not is_shown:
        precision = match.precision.split(",")[0]
        words = f"{name} may differ by rounding in {precision} alone"
        return words, tuple(exactness), looser
    if not told:
        return f"{name} differs by rounding alone", tuple(exactness), looser
    cause, unsaid = _join_differences(name, told, (remedy or "").partition("--like ")[2])
    evidence = []
    if exactness:
        together = {1: "with that", 2: "with both"}.get(len(told), "with all of these")
        evidence = [f"{together}, {exactness[0]}", *exactness[1:]]
    return cause, (*unsaid, *evidence), remedy


def _join_differences(name: str, told: Sequence[OtherChoice], framework: str) -> tuple[str, tuple[str, ...]]:
    """Return the cause, in at most 15 words, and all differences as clauses if it has no room for them.

    The cause contrasts the match's choices with the requested ones and names the framework, as far as there is
    room. `framework` may be empty.
    """
    contrasts = f"{name} differs: {'; '.join(one.contrast for one in told)}"
    words = f"{name} differs: {', '.join(one.words for one in told)}"
    like = f" (as {framework})" if framework else ""
    for cause in (f"{contrasts}{like}", f"{words}{like}", contrasts, words):
        if count_words(cause) <= MOST_WORDS:
            return cause, ()
    first, *others = (one.words for one in told)
    cause, _ = add_clauses(f"{name} differs: {first}", others)
    return cause, tuple(one.contrast for one in told)
