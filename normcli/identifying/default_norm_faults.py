"""Faults of the default norms, or of the requested one, that explain a y without another answer."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING

from normcli.checking.ulp import choose_counting_dtype
from normcli.engine.inputs import Inputs
from normcli.identifying.faults.case_sampling import AskedNorm
from normcli.identifying.faults.claim import GAMMAS, OTHER_NORMS, keep_first
from normcli.identifying.faults.fault_search import claims_of_places, open_cases, recover_one
from normcli.identifying.faults.joint_search import open_joints, recover
from normcli.identifying.models.known_maps import find_untrained_eps

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from normcli.identifying.faults.case import Case
    from normcli.identifying.faults.claim import Claim
    from normcli.identifying.question import Identification, Question


def add_claims(
    found: Identification, list_cases: Callable[[], Sequence[Case]], *, in_parts: bool = True
) -> Identification:
    """Return an identification with claims that a norm with faults made y, if it has no answer yet.

    An identification with matches, claims, a reason for none, or a known map is returned as it is. For a
    requested norm, only another eps and statistics or parameters recovered from y are tried.

    Parameters
    ----------
    found : Identification
    list_cases : callable
        Returns cases: x and y with the exact result of each default norm.
    in_parts : bool
        True to look also for faults in only a part of y, and for recovered statistics.
    """
    x, y, *_, subject = found.question
    is_map = found.plain is not None and not found.plain.axes
    stored = None if subject is None else subject.inputs.given
    is_told = found.claims or found.matches or found.reason or (found.known and stored is None)
    if is_told or is_map or x.shape != y.shape:
        return found
    if subject is not None and subject.plan.norm.tracks and found.plain is not None:
        evaluation = found.evaluation
        is_untrained = evaluation is not None and find_untrained_eps(evaluation) is not None
        if is_untrained or stored is None:
            return found  # evaluation, as far as anything shows
    if subject is not None:
        cases = open_cases((subject,), x, y, choose_counting_dtype(y.dtype))
        return found._replace(claims=tuple(itertools.chain.from_iterable(map(recover, cases))))
    claims = open_joints(list_cases(), in_parts=in_parts)
    if not claims and in_parts and found.sampled:
        claims = _find_places(found.question, list_cases())
    is_open = found.question.gamma is None and found.question.beta is None
    asked = OTHER_NORMS | GAMMAS if is_open else OTHER_NORMS
    told = [claim.leave_out(OTHER_NORMS) for claim in claims if not claim.ids <= asked]
    told = [claim for claim in told if not (is_open and claim.ids & GAMMAS)]
    if not told and in_parts and not found.doubtful and found.plain is None:
        return found._replace(claims=recover_one(list_cases()))
    return found._replace(claims=keep_first(told))


def _find_places(question: Question, cases: Sequence[Case]) -> tuple[Claim, ...]:
    """Return claims that parts of a large y are wrong, or that its rows are in another order.

    `cases` hold the first groups, with the exact result of each default norm; the norm to which they agree is
    taken. Empty if they agree with none, or if there is no such fault.
    """
    plan = next((case.plan for case in cases if not case.differs.any()), None)
    if plan is None:
        return ()
    given = {name: getattr(question, name) for name in ("gamma", "beta")}
    gamma, beta = (None if value is None else plan.fit_parameter(name, value) for name, value in given.items())
    dtype = choose_counting_dtype(question.y.dtype)
    return claims_of_places(AskedNorm(plan, Inputs(gamma, beta)), question.x, question.y, dtype)
