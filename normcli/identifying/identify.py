"""The search for the norm (with its axes and eps), norm with faults, or map y = a · x + b that made y of x.

Explanations of y are looked for step by step, the likeliest first; the first that holds ends the search.
"""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any

import numpy as np

from normcli.checking.half_precision import find_saved_dtype
from normcli.checking.ulp import choose_counting_dtype
from normcli.dtypes import get_eps, is_half, is_long_float
from normcli.identifying.explanations import (
    find_algorithm,
    find_default_faults,
    find_faults,
    find_norms,
    find_others,
    find_simple_line,
    find_single_values,
    look_for_reason,
    part,
    prefer_faults,
    take_steps,
)
from normcli.identifying.faults.claim import GAMMAS, REQUESTS
from normcli.identifying.faults.fault_search import (
    BOTH,
    claims_of_order,
    claims_of_padding,
    claims_of_places,
    find_nearest,
    open_cases,
    recover_one,
    shows_means,
    shows_nothing,
)
from normcli.identifying.faults.joint_search import open_joints, recover
from normcli.identifying.faults.variant import NEAR, REGION_IDS
from normcli.identifying.inquiry import Inquiry, list_subjects, pose_default
from normcli.identifying.models.known_maps import read_evaluation
from normcli.identifying.models.map_search import find_near_map
from normcli.identifying.question import (
    CONSTANT_GROUPS,
    INFINITE,
    NOT_FINITE,
    ZEROS,
    Identification,
    Kind,
    Question,
    find_reason,
)
from normcli.identifying.search.affine_step import ESTIMATED, enumerate_affine_steps
from normcli.identifying.search.match import BY_LUCK
from normcli.tensors.mapped import fetch, require_unchanged
from normcli.tensors.tensor import Tensor

if TYPE_CHECKING:
    from collections.abc import Iterable

    from normcli.identifying.faults.case import Case
    from normcli.identifying.faults.claim import Claim
    from normcli.identifying.search.match import Match


def identify(question: Question, norm: str | None = None) -> Identification:
    """Identify the norm, the fault or the map that turns x into y; return every finding, perhaps none.

    Parameters
    ----------
    question : Question
    norm : str or None
        The only norm to look for; None for all.

    Raises
    ------
    DataError
        If y has the shape of x in no order of axes, no axes have that of gamma or beta, or a file changed.
    """
    tensors = question.x, question.y
    x, y = (fetch(one).astype(np.float64) if is_long_float(one.dtype) else one for one in tensors)
    question = question._replace(x=x, y=y)
    saved = find_saved_dtype(question.y)
    with np.errstate(all="ignore"):  # hypotheses that do not fit overflow, and are left out for it
        found = _identify_as(saved, question, norm)
        is_open = saved is None and not found.matches and (found.plain is None or bool(found.plain.axes))
        if is_open and (half := find_saved_dtype(question.y, (question.x,), few=True)) is not None:
            again = _identify_as(half, question, norm)  # few values show it, if all are exact ones, rounded
            exact = [one for one in (*again.matches, *again.doubtful) if one.equal == 1.0]
            certain, may = part([one for one in exact if one.is_certain or one.has_default_eps])
            found = Identification(again.question, certain, again.sampled, doubtful=may) if exact else found
    require_unchanged(question.x, question.y)
    return found


def _identify_as(half: np.dtype[Any] | None, question: Question, norm: str | None) -> Identification:
    """Return the identification of y as a tensor that was saved from a half precision, if that is not None."""
    if half is not None:
        question = question._replace(y=fetch(question.y).astype(half), saved=half.name)
    return _check_subject(question) or _identify_any(Inquiry(question, norm))


_EXPLANATIONS = (look_for_reason, find_single_values, find_simple_line, find_norms, find_faults, find_others)
"""The first steps of every search, in the order of what is likely."""


def _find_any_norm(asked: Inquiry) -> Identification:
    """Return the identification of y as a norm, a fault in all of y, or a map; perhaps of nothing."""
    return prefer_faults(asked, take_steps(asked, _EXPLANATIONS))


def _identify_any(asked: Inquiry) -> Identification:
    """Return the identification of y as any norm, a norm with default options and a fault, or a map.

    If nothing is found, the identification says only so.
    """
    found = find_algorithm(asked, _find_any_norm(asked))
    found = found._replace(claims=find_default_faults(asked, found, in_parts=True))
    found = _prefer_statistics(asked, found)
    if found.kind is Kind.UNDECIDED or asked.x.shape != asked.y.shape:
        return found
    return take_steps(asked, (_find_order, _find_other_parameters, _find_near_map, _find_near_norm), found)


def _prefer_statistics(asked: Inquiry, found: Identification) -> Identification:
    """Find other statistics of a norm that make the lines y = a · x + b that were found.

    The norm is the requested one, or a default norm whose own means y shows. Another mean and another divisor
    in every group are left out, as every line has them.
    """
    is_of_lines = found.kind is Kind.AFFINE and found.plain is not None and bool(found.plain.axes)
    subject = asked.question.subject
    if not is_of_lines or asked.sampled or (subject is None and found.known):
        return found
    shown = (case for case in asked.cases if shows_means(case))
    claims = recover_one([*(shown if subject is None else open_cases((subject,), asked.y, asked.dtype))])
    return found._replace(plain=None, claims=claims) if claims and claims[0].fault.id != BOTH else found


def _find_order(asked: Inquiry, found: Identification) -> Identification:
    """Find a default norm of which y has the rows in another order."""
    x, _, gamma, beta, layout, *_ = asked.question
    subjects = list_subjects(x, gamma, beta, layout, asked.norm)
    return found._replace(claims=claims_of_order(subjects, asked.y, asked.dtype))


def _find_other_parameters(asked: Inquiry, found: Identification) -> Identification:
    """Find a norm with a fitted gamma and beta, and name how these differ from the given ones."""
    question = asked.question
    if (question.gamma is None and question.beta is None) or asked.sampled:
        return found
    bare = Inquiry(question._replace(gamma=None, beta=None, subject=None), asked.norm)
    given = {name: getattr(question, name) for name in ("gamma", "beta") if getattr(question, name) is not None}
    for match in take_steps(bare, (find_norms, find_others)).matches:
        request = match.make_request()._replace(layout=question.layout, eps=match.eps)
        subject = pose_default(request, Tensor(asked.x, "x"), given)
        cases = [] if subject is None else [*open_cases((subject,), asked.y, asked.dtype)]
        claims = open_joints(cases) or tuple(itertools.chain.from_iterable(map(recover, cases)))
        if claims:
            return found._replace(claims=claims)
    return found


def _find_near_map(asked: Inquiry, found: Identification) -> Identification:
    """Find a map y = a · x + b with a few wrong values."""
    question = asked.question
    near = find_near_map(asked.x, asked.y, asked.dtype)
    if near is None:
        return found
    steps = enumerate_affine_steps(asked.x.shape, question.gamma, question.beta)
    return found._replace(plain=near, evaluation=read_evaluation(near, steps))


def _find_near_norm(asked: Inquiry, found: Identification) -> Identification:
    """Find the requested norm, or a default one, from which y is off by small errors everywhere."""
    subject = asked.question.subject
    requested = () if subject is None else open_cases((subject,), asked.y, asked.dtype)
    return found._replace(nearest=find_nearest(itertools.chain(requested, asked.cases)))


# -- the requested norm


def _check_subject(question: Question) -> Identification | None:
    """Return the identification of y as the requested norm with faults; None without such a norm or fault.

    With a gate behind the norm, and for an x whose groups have equal values, an identification without claims
    is returned in place of None. If all faults are other choices of a request (such as eps), it has matches
    too.
    """
    x, y, *_, saved, subject = question
    if subject is None or x.shape != y.shape:
        return None
    reason, is_constant = find_reason(x, y), shows_nothing(subject)
    if reason not in (None, NOT_FINITE, ZEROS, INFINITE) and not is_constant:
        return None
    dtype = choose_counting_dtype(y.dtype)
    cases = [*open_cases((subject,), y, dtype)]
    claims = open_joints(cases, saved)
    if not claims or claims[0].ids & REGION_IDS:  # of the first groups
        claims = claims_of_places(subject, y, dtype) or claims
    claims = claims or claims_of_padding(subject, y, dtype)
    if subject.inputs.gate is not None:  # no norm alone is y
        claims = claims or tuple(itertools.chain.from_iterable(map(recover, cases)))
        nearest = None if claims else find_nearest(cases)
        return Identification(question, (), claims=claims, nearest=nearest)
    if claims and saved is None and is_half(y.dtype) and claims[0].exact < 1.0:  # coarse values tell little
        found = _find_any_norm(Inquiry(question, subject.plan.norm.name))
        if any(match.equal == 1.0 for match in found.matches):
            return found
    if claims and all(fault.id in REQUESTS for fault in claims[0].faults):
        asked = Inquiry(question)
        found = find_algorithm(asked, _find_any_norm(asked))
        is_grouped = subject.plan.grid.split is not None  # of each channel, or of all, it has another name
        matches = _keep_requests(found.matches, claims[0], cases[0])
        if any(is_grouped or match.norm == subject.plan.norm.name for match in matches):
            return found._replace(claims=claims)
    if claims or is_constant:
        return Identification(question, (), reason=None if claims else CONSTANT_GROUPS, claims=claims)
    return None


def _keep_requests(matches: Iterable[Match], claim: Claim, case: Case) -> Iterable[Match]:
    """Return the matches whose options are a claim in other words: another eps, ddof, gamma or beta.

    Parameters
    ----------
    matches : iterable of Match
        Norms that reproduce y.
    claim : Claim
        The likeliest fault of the requested norm.
    case : Case
        x and y with the exact result of that norm.
    """
    if claim.fault.id == "affine-offset":
        return ()
    if _shows_count(case, claim):
        return [one for one in matches if one.affine != ESTIMATED and one.equal == 1.0]
    if claim.fault.id == "stats-count":  # which is likelier than an eps that was fitted
        return [one for one in matches if one.is_usual or not one.eps]
    if claim.fault.id in GAMMAS:
        least = max(claim.exact, BY_LUCK)
        return [one for one in matches if one.affine == ESTIMATED or one.equal >= least]
    return matches


def _shows_count(case: Case, claim: Claim) -> bool:
    """Return True if a claim's fitted count, in place of n, is likelier than a gamma: divisors within 2 %.

    False where values of y are too coarse to tell a count from the next: then any factor is near a count.
    """
    if claim.fault.id != "stats-count" or not claim.numbers or case.count * get_eps(case.dtype) > _OF_A_COUNT:
        return False
    return abs(float(np.median(case.used.divisor / case.divisor)) - 1.0) <= NEAR


_OF_A_COUNT = 2.0**-8
"""The most that the machine epsilon of y may be, as a part of one count of a group's values."""
