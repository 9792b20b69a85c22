"""The default norms of a tensor; their faults, or the requested one's, that explain a y without an answer."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any

import numpy as np

from normcli.checking.ulp import choose_counting_dtype
from normcli.dtypes import get_eps
from normcli.engine.inputs import Inputs
from normcli.errors import NormError
from normcli.identifying.faults.claim import ANY_EPS, GAMMAS, OTHER_NORMS, keep_first
from normcli.identifying.faults.fault_search import claims_of_places, open_cases, recover_one
from normcli.identifying.faults.joint_search import open_joints, recover
from normcli.identifying.faults.variant import NEAR
from normcli.identifying.models.known_maps import find_untrained_eps
from normcli.identifying.search.affine_step import ESTIMATED
from normcli.identifying.search.match import BY_LUCK, Match
from normcli.identifying.search.match_names import lay_out
from normcli.norms.divisors import Measurement
from normcli.norms.plan import make_plan
from normcli.norms.request import Request
from normcli.norms.rules import AxesRule
from normcli.norms.table import NORMS
from normcli.results.arguments import Problem
from normcli.tensors.tensor import Tensor

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from numpy.typing import NDArray

    from normcli.identifying.faults.case import Case
    from normcli.identifying.faults.claim import Claim
    from normcli.identifying.question import Identification, Question
    from normcli.tensors.residual import Addends


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
        True to look also for faults in only a part of y, and for recovered statistics. If False, no claim is
        made where a gamma and a beta of one number each, not given, are the likeliest.
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
        cases = open_cases((subject,), y, choose_counting_dtype(y.dtype))
        return found._replace(claims=tuple(itertools.chain.from_iterable(map(recover, cases))))
    claims = open_joints(list_cases(), in_parts=in_parts)
    if not claims and in_parts and found.sampled:
        claims = _find_places(found.question, list_cases())
    is_open = found.question.gamma is None and found.question.beta is None
    if is_open and not in_parts and claims and claims[0].ids <= GAMMAS:
        return found  # which a fitted gamma and beta say
    others = OTHER_NORMS if is_open else ANY_EPS
    asked = others | GAMMAS if is_open else others
    is_near = any(float(np.mean(case.differs)) <= _NEARLY_RIGHT for case in list_cases())
    told = [claim for claim in claims if not (is_near and _OTHER_AXES in claim.ids)]
    told = [claim.leave_out(others) for claim in told if not claim.ids <= asked]
    told = [claim for claim in told if not (is_open and claim.ids & GAMMAS)]
    if not told and in_parts and not found.doubtful and found.plain is None:
        return found._replace(claims=recover_one(list_cases()))
    return found._replace(claims=keep_first(told))


_OTHER_AXES, _NEARLY_RIGHT = "stats-other-axes", 0.1
"""The id of the fault of other axes, which no norm has if at most this part of y is unlike another norm."""


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
    subject = Problem(plan, Tensor(question.x, "x"), Inputs(gamma, beta))
    return claims_of_places(subject, question.y, dtype)


def claims_of_matches(question: Question, matches: Iterable[Match]) -> tuple[Claim, ...]:
    """Return claims that y has another gamma or beta than those given, of the first match that takes these.

    Parameters
    ----------
    question : Question
        The question with the given gamma and beta.
    matches : iterable of Match
        Norms with a fitted gamma and beta that reproduce y.
    """
    x, y, gamma, beta, *_ = question
    given = {name: values for name, values in (("gamma", gamma), ("beta", beta)) if values is not None}
    for match in matches:
        request = match.make_request()._replace(layout=question.layout, eps=match.eps)
        subject = _pose(request, Tensor(x, "x"), given)
        if subject is None:
            continue
        cases = [*open_cases((subject,), y, choose_counting_dtype(y.dtype))]
        if claims := open_joints(cases) or tuple(itertools.chain.from_iterable(map(recover, cases))):
            return claims
    return ()


def may_be_fault(match: Match, channels: frozenset[int]) -> bool:
    """Whether a match has groups along no channel axis, or a fitted gamma that is 0 at some indices."""
    h = match.hypothesis
    split, scale = (None, None) if h is None else (h.sample.grid.split, h.affine.scale)
    is_zero = match.affine == ESTIMATED and scale is not None and not scale.all()
    return is_zero or not (split is None or split.axis in channels)


def list_subjects(
    x: NDArray[Any], gamma: NDArray[Any] | None, beta: NDArray[Any] | None, layout: str | None,
    norm: str | None, addends: Addends | None = None,
) -> Iterator[Problem]:  # fmt: skip
    """Yield each norm that divides by a variance or mean square and takes the given gamma and beta.

    Options have their defaults. Of norms that do the same to x, only the first is yielded.

    Parameters
    ----------
    x : ndarray
    gamma, beta : ndarray or None
    layout : str or None
        One letter for each axis; if None, the channel may be the second axis or the last.
    norm : str or None
        The only norm to yield; None for all.
    addends : Addends or None
        The two addends of x, if a residual was added.
    """
    seen = set()
    given = {name: values for name, values in (("gamma", gamma), ("beta", beta)) if values is not None}
    for request in _list_requests(x.shape, layout, norm, given):
        subject = _pose(request, Tensor(x, "x", addends=addends), given)
        if subject is None:
            continue
        plan = subject.plan
        features = plan.parameters.full_shape if given else None
        key = (plan.grid.canonical, plan.norm.centre, plan.norm.divisor, features)
        if key not in seen and plan.grid.group_size > 1:
            seen.add(key)
            yield subject


def _pose(request: Request, x: Tensor, given: Mapping[str, NDArray[Any]]) -> Problem | None:
    """Return a requested norm of x with the given ones of `gamma` and `beta`; None if they do not fit it."""
    try:
        plan = make_plan(request, x.values.shape, x.values.dtype).adopt_parameters(given)
        fitted = {name: plan.fit_parameter(name, values) for name, values in given.items()}
    except NormError:
        return None
    return Problem(plan, x, Inputs(fitted.get("gamma"), fitted.get("beta")))


def _list_requests(
    shape: tuple[int, ...], layout: str | None, norm: str | None, given: Mapping[str, NDArray[Any]]
) -> Iterator[Request]:
    """Yield requests for each norm that divides by a variance or mean square, with every layout to try.

    A norm of channel groups is requested with each number of groups that divides the channels. If gamma or beta
    has several axes, norms are also requested with each choice of axes of x that has their lengths.

    Parameters
    ----------
    shape : tuple of int
        The shape of x.
    layout : str or None
        One letter for each axis; if None, the channel may be the second axis or the last.
    norm : str or None
        The only norm to yield; None for all.
    given : mapping of str to ndarray
        The given ones of `gamma` and `beta`.
    """
    rank = len(shape)
    layouts = (None, lay_out(rank, rank - 1)) if layout is None and rank in _RANKS else (layout,)
    several = {values.shape for values in given.values() if values.ndim > 1}
    for row in NORMS.values():
        if row.divisor.measurement is not Measurement.MOMENTS or norm not in (None, row.name):
            continue
        for letters in layouts:
            request = Request(row.name, layout=letters)
            if row.axes is AxesRule.CHANNEL_GROUPS:
                place = rank - 1 if letters is not None and layout is None else min(1, rank - 1)
                counts = (n for n in range(2, shape[place]) if shape[place] % n == 0)
                yield from (request._replace(groups=n) for n in counts)
            else:
                yield request
        for lengths in several:
            for axes in itertools.combinations(range(rank), len(lengths)):
                if tuple(shape[axis] for axis in axes) == lengths:
                    yield Request(row.name, layout=layout, feature_axes=axes)


_RANKS = range(3, 13)
"""The ranks whose last axis may be the channel, where no layout says so."""


def keep_requests(matches: Iterable[Match], claim: Claim, case: Case) -> Iterable[Match]:
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
    if shows_count(case, claim):
        return [one for one in matches if one.affine != ESTIMATED and one.equal == 1.0]
    if claim.fault.id == "stats-count":  # which is likelier than an eps that was fitted
        return [one for one in matches if one.is_usual or not one.eps]
    if claim.fault.id in GAMMAS:
        return [one for one in matches if one.affine == ESTIMATED or one.equal >= BY_LUCK]
    return matches


def shows_count(case: Case, claim: Claim) -> bool:
    """Return True if a claim's fitted count, in place of n, is likelier than a gamma: divisors within 2 %.

    False where values of y are too coarse to tell a count from the next: then any factor is near a count.
    """
    if claim.fault.id != "stats-count" or not claim.numbers or case.count * get_eps(case.dtype) > _OF_A_COUNT:
        return False
    return abs(float(np.median(case.used.divisor / case.divisor)) - 1.0) <= NEAR


_OF_A_COUNT = 2.0**-8
"""The most that the machine epsilon of y may be, as a part of one count of a group's values."""
