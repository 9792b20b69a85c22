"""The steps of a search for the explanation of a tensor: norms, faults of the default norms, and plain maps."""

from __future__ import annotations

import itertools
import math
from typing import TYPE_CHECKING

import numpy as np

from normcli.checking.ulp import measure_unit
from normcli.dtypes import is_half
from normcli.engine.inputs import Inputs
from normcli.identifying.attempts import Candidate
from normcli.identifying.confirmation import Confirmation
from normcli.identifying.faults.claim import ANY_EPS, GAMMAS, OTHER_NORMS, SCALERS, keep_first
from normcli.identifying.faults.fault_search import claims_of_places, list_near_plans, open_cases, recover_one
from normcli.identifying.faults.joint_search import open_joints, recover
from normcli.identifying.faults.thin_case import choose_case_eps
from normcli.identifying.inquiry import list_subjects
from normcli.identifying.models.known_maps import (
    SPECTRAL,
    WEIGHT,
    find_untrained_eps,
    name_map,
    read_evaluation,
)
from normcli.identifying.models.map_search import SampledBlock, find_known_map, find_plain_map
from normcli.identifying.models.weight import CERTAIN
from normcli.identifying.question import Identification, find_reason
from normcli.identifying.reproduction import hold_against_all, list_candidates, reproduce
from normcli.identifying.sampling import MOST_SAMPLED
from normcli.identifying.search.affine_step import ESTIMATED, WAYS, enumerate_affine_steps
from normcli.identifying.search.match import rank_matches
from normcli.identifying.search.norm_search import Search, drop_shorter
from normcli.results.arguments import Problem
from normcli.tensors.pieces import iterate_pieces
from normcli.tensors.tensor import Tensor

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from normcli.identifying.faults.claim import Claim
    from normcli.identifying.inquiry import Inquiry
    from normcli.identifying.models.line_fit import PlainMap
    from normcli.identifying.search.match import Match
    from normcli.identifying.search.samples import Samples

    Step = Callable[[Inquiry, Identification], Identification]


def take_steps(asked: Inquiry, steps: Sequence[Step], found: Identification | None = None) -> Identification:
    """Return the identification of the first step that explains y; without any, of all steps together.

    `found` is the identification before the first step; None for an empty one.
    """
    found = found or Identification(asked.question, (), asked.sampled)
    for step in steps:
        if found.is_told:
            break
        found = step(asked, found)
    return found


# -- steps, each of which returns an identification with what it found; as it was, if it found nothing


def look_for_reason(asked: Inquiry, found: Identification) -> Identification:
    """Find the reason why no norm can be identified from x and y."""
    reason = find_reason(asked.x, asked.y)
    return found if reason is None else found._replace(reason=reason, sampled=None)


def find_single_values(asked: Inquiry, found: Identification) -> Identification:
    """Find that y is a default norm of groups of one value, which shows nothing of it, as the reason."""
    x, y, gamma, beta, layout, *_ = asked.question
    is_open = x.shape == y.shape and not asked.sampled
    subjects = list_subjects(x, gamma, beta, layout, asked.norm, is_single=True) if is_open else ()
    for case in map(choose_case_eps, open_cases(subjects, y, asked.dtype)):
        right = case.right.values
        if case.plan.request.axes != () and np.all(np.abs(case.y - right) <= measure_unit(right, case.dtype)):
            shown = "x̂ is 0" if case.centres else "x̂ is 1, 0 or −1"
            return found._replace(reason=f"each group of {case.plan.norm.name} has one value: {shown}")
    return found


def find_simple_line(asked: Inquiry, found: Identification) -> Identification:
    """Find one simple map y = a · x + b of a large tensor, whatever norm its sample fits as well."""
    line = asked.line if asked.sampled and asked.has_simple_line else None
    return found if line is None else _read(found, line, asked.samples[0])


def find_norms(asked: Inquiry, found: Identification) -> Identification:
    """Find the norms, with the given gamma and beta, that y is the result of; or one map of all values.

    The map is preferred to doubtful norms, and to all norms if it is simple.
    """
    first = asked.search.find_matches()
    fittings = [first]
    if not first.matches:
        fittings += [Search(other).find_matches() for other in asked.samples[1:]]
    best = min(fitting.level for fitting in fittings)
    fitting = rank_matches(match for one in fittings for match in one.matches if one.level == best)
    fitting = drop_shorter(fitting, asked.x, asked.samples[0].y)
    if asked.question.gamma is None and asked.question.beta is None:
        fitting = asked.search.find_exact(fitting) or fitting
    matches, doubtful = part(fitting)
    line = asked.line
    if line is None and not matches and all(match.is_rough for match in doubtful):
        line = find_known_map(asked.x, asked.samples[0].y, asked.dtype)
    if line is not None and (not matches or asked.has_simple_line):
        return _read(found._replace(doubtful=(*matches, *doubtful)), line, asked.samples[0])
    if matches:
        return _confirm(found._replace(matches=matches), asked.samples)
    return found._replace(doubtful=doubtful)


def find_faults(asked: Inquiry, found: Identification) -> Identification:
    """Find faults, in all of y, of a default norm; faults of a scaler only if no other norm or map is found.

    Nothing is looked for if a norm was requested, or if doubtful norms were found.
    """
    if found.doubtful or asked.question.subject is not None:
        return found
    claims = find_default_faults(asked, found, in_parts=False)
    if claims and claims[0].fault.id in SCALERS:
        other = find_others(asked, found)
        if other.matches or not {*other.known} <= {WEIGHT}:  # no scaler has that eps
            return other
    return found._replace(claims=claims)


def find_others(asked: Inquiry, found: Identification) -> Identification:
    """Find a norm with a fitted gamma and beta, if neither was given, or a map y = a · x + b of each index.

    If neither fits, and more than half of the values of y equal x, `unchanged` is their count. Nothing is
    looked for if a doubtful norm has `CERTAIN` bits.
    """
    x, first = asked.x, asked.samples[0]
    if any(match.bits >= CERTAIN for match in found.doubtful):  # too odd or too rough, and not too few values
        return found
    plain = find_plain_map(x, first.y, asked.dtype)
    if asked.question.gamma is None and asked.question.beta is None:
        pairs = math.inf if plain is None else math.prod(x.shape[axis] for axis in plain.axes)
        estimated = rank_matches(asked.search.estimate_matches(pairs))  # with fewer pairs than such a map
        matches, doubtful = part(drop_shorter(estimated, x, first.y), found.doubtful)
        found = found._replace(doubtful=doubtful)
        if matches:
            return _confirm(found._replace(matches=matches, doubtful=()), asked.samples)
    shown = (match for match in found.doubtful if match.bits > 0.0 and not match.is_odd)
    is_of_gamma = any(
        "gamma" in WAYS[match.affine] for match in shown
    )  # one factor of it, in place of many of x
    if plain is not None and not (plain.axes and is_of_gamma):
        return _read(found, plain, first)
    pieces = zip(iterate_pieces(x), iterate_pieces(first.y), strict=True)
    same = sum(int(np.count_nonzero(here == there)) for here, there in pieces)
    return found._replace(unchanged=same) if 2 * same > x.size and not found.doubtful else found


def prefer_faults(asked: Inquiry, found: Identification) -> Identification:
    """Find faults of a default norm that are likelier than the norm that was found.

    Unlikely are groups along no channel axis, and a fitted gamma that is 0 at some indices.
    """
    if not found.matches:
        return found
    match, h = found.matches[0], found.matches[0].hypothesis
    split, scale = (None, None) if h is None else (h.sample.grid.split, h.affine.scale)
    is_zero = match.affine == ESTIMATED and scale is not None and not scale.all()
    if not is_zero and (split is None or split.axis in asked.channels):
        return found
    blank = found._replace(matches=(), doubtful=())
    claims = find_default_faults(asked, blank, in_parts=match.affine == ESTIMATED)
    return blank._replace(claims=claims) if claims else found


def find_algorithm(asked: Inquiry, found: Identification) -> Identification:
    """Find the algorithms that reproduce y's bits, if the exact result does not.

    A norm with a certain algorithm becomes the first match. If y is of half precision and nothing else was
    found, algorithms of the default norms are tried too.
    """
    x, y, gamma, beta, *_, subject = found.question
    matches = found.matches or found.doubtful
    ways = [step.way for step in enumerate_affine_steps(x.shape, gamma, beta)]
    candidates = list(list_candidates(matches, ways))
    is_simple = found.plain is not None and found.plain.is_simple
    if is_half(y.dtype) and not (candidates or found.claims or found.reason or is_simple):
        natural = tuple(range(x.ndim))
        candidates = [Candidate(plan.request, ways[0], natural) for plan in list_near_plans(asked.cases)]
    if subject is not None:
        candidates.sort(key=lambda one: one.request.norm != subject.plan.norm.name)
    is_exact = any(match.equal == 1.0 for match in found.matches)
    if is_exact or not candidates:
        return found
    told = reproduce(x, y, candidates, gamma, beta)
    if found.sampled and found.matches:
        return found._replace(reproductions=told)
    told = hold_against_all(told, x, y)
    if told and told[0].is_certain:
        own = next((match for match in found.doubtful if told[0].is_of(match)), told[0].match)
        same = [one for one in found.doubtful if (one.max_abs, one.affine) == (own.max_abs, own.affine)]
        every = (*reversed(same), *(one.match for one in reversed(told)))
        alike = {(match.norm, match.axes, match.eps_mode): match for match in every}
        computed = {id(match) for match in found.matches if any(one.is_of(match) for one in told)}
        is_first = any(told[0].is_of(match) for match in found.matches)
        matches = tuple(sorted(found.matches, key=lambda match: id(match) not in computed))
        matches = matches if is_first else (*reversed(alike.values()), *matches)
        found = found._replace(matches=matches, doubtful=(), plain=None, unchanged=None)
    return found._replace(reproductions=told)


# -- faults of the default norms


def find_default_faults(asked: Inquiry, found: Identification, *, in_parts: bool) -> tuple[Claim, ...]:
    """Return claims that a default norm with faults made y; empty if `found` explains it, or without any.

    Of a requested norm, only another eps and statistics or parameters recovered from y are tried.

    Parameters
    ----------
    asked : Inquiry
    found : Identification
    in_parts : bool
        True to look also for faults in only a part of y, and for recovered statistics. If False, no claim is
        made where a gamma and a beta of one number each, not given, are the likeliest.
    """
    x, y, *_, subject = asked.question
    is_map = found.plain is not None and not found.plain.axes
    stored = None if subject is None else subject.inputs.given
    is_told = found.claims or found.matches or found.reason or (found.known and stored is None)
    if is_told or is_map or x.shape != y.shape:
        return found.claims
    if subject is not None:
        if subject.plan.norm.tracks and found.plain is not None:
            evaluation = found.evaluation
            if stored is None or (evaluation is not None and find_untrained_eps(evaluation) is not None):
                return ()  # evaluation, as far as anything shows
        cases = open_cases((subject,), y, asked.dtype)
        return tuple(itertools.chain.from_iterable(map(recover, cases)))
    claims = open_joints(asked.cases, in_parts=in_parts)
    if not claims and in_parts and asked.sampled:
        claims = _find_places(asked)
    is_open = asked.question.gamma is None and asked.question.beta is None
    if is_open and not in_parts and claims and claims[0].ids <= GAMMAS:
        return ()  # which a fitted gamma and beta say
    others = OTHER_NORMS if is_open else ANY_EPS
    no_faults = others | GAMMAS if is_open else others
    is_near = any(float(np.mean(case.differs)) <= _NEARLY_RIGHT for case in asked.cases)
    told = [claim for claim in claims if not (is_near and _OTHER_AXES in claim.ids)]
    told = [claim.leave_out(others) for claim in told if not claim.ids <= no_faults]
    told = [claim for claim in told if not (is_open and claim.ids & GAMMAS)]
    if not told and in_parts and not found.doubtful and found.plain is None:
        return recover_one(asked.cases)
    return keep_first(told)


_OTHER_AXES, _NEARLY_RIGHT = "stats-other-axes", 0.1
"""The id of the fault of other axes, which no norm has if at most this part of y is unlike another norm."""


def _find_places(asked: Inquiry) -> tuple[Claim, ...]:
    """Return claims that parts of a large y are wrong, or that its rows are in another order.

    The default norm is taken whose first groups are right. Empty without one, or without such a fault.
    """
    plan = next((case.plan for case in asked.cases if not case.differs.any()), None)
    if plan is None:
        return ()
    given = {name: getattr(asked.question, name) for name in ("gamma", "beta")}
    gamma, beta = (None if value is None else plan.fit_parameter(name, value) for name, value in given.items())
    subject = Problem(plan, Tensor(asked.x, "x"), Inputs(gamma, beta))
    return claims_of_places(subject, asked.y, asked.dtype)


# -- parts of steps


def _confirm(found: Identification, samples: Sequence[Samples]) -> Identification:
    """Return an identification with those of its matches that hold for the whole tensor.

    If no match holds, it may have a claim that one holds except for a few values. If the whole tensor was
    compared before (`found.sampled` is None), it is returned as it is.
    """
    if found.sampled is None:
        return found
    order = found.matches[0].order
    own = next(each for each in samples if each.scope.order == order)
    kept, claims = Confirmation(own).confirm([match for match in found.matches if match.order == order])
    return found._replace(matches=kept, claims=claims)


def part(
    ranked: Sequence[Match], doubtful: Sequence[Match] = ()
) -> tuple[tuple[Match, ...], tuple[Match, ...]]:
    """Return the certain ones of ranked matches, and `doubtful` followed by the others."""
    others = (*doubtful, *(match for match in ranked if not match.is_certain))
    return tuple(match for match in ranked if match.is_certain), others


def _read(found: Identification, plain: PlainMap, samples: Samples) -> Identification:
    """Return an identification with the map y = a · x + b, its well-known names, and running statistics."""
    x, y = SampledBlock(samples.x, samples.y, MOST_SAMPLED).take(plain.axes)
    known = name_map(plain, x, y, samples.scope.dtype, is_whole=x.size == samples.x.size)
    if any(match.rows is not None for match in found.doubtful):  # which is named by itself
        known = (name for name in known if name != SPECTRAL)
    evaluation = read_evaluation(plain, samples.affines)
    return found._replace(plain=plain, known=tuple(known), evaluation=evaluation)
