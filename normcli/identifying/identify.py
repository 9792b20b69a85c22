"""The search for the norm (with its axes and eps), norm with faults, or map y = a · x + b that made y of x.

Hypotheses combine a grouping, a centre and an affine step; `models/divisor_fit` solves for eps and ddof.
"""

from __future__ import annotations

import functools
import itertools
import math
from typing import TYPE_CHECKING, Any

import numpy as np

from normcli.checking.half_precision import find_saved_dtype
from normcli.checking.ulp import choose_counting_dtype
from normcli.dtypes import is_half
from normcli.identifying.attempts import Candidate
from normcli.identifying.confirmation import Confirmation
from normcli.identifying.default_norm_faults import (
    add_claims,
    claims_of_matches,
    keep_requests,
    list_subjects,
    may_be_fault,
)
from normcli.identifying.faults.case_sampling import choose_case_eps, goes_with_x
from normcli.identifying.faults.claim import REQUESTS, SCALERS
from normcli.identifying.faults.fault_search import (
    BOTH,
    claims_of_order,
    claims_of_places,
    find_nearest,
    list_near_plans,
    open_cases,
    recover_one,
    shows_means,
    shows_nothing,
)
from normcli.identifying.faults.joint_search import open_joints, recover
from normcli.identifying.faults.variant import REGION_IDS
from normcli.identifying.models.known_maps import SPECTRAL, WEIGHT, name_map, read_evaluation
from normcli.identifying.models.map_search import (
    SampledBlock,
    find_global_map,
    find_near_map,
    find_plain_map,
    is_known,
)
from normcli.identifying.models.weight import CERTAIN
from normcli.identifying.question import (
    CONSTANT_GROUPS,
    NOT_FINITE,
    ZEROS,
    Identification,
    Kind,
    Question,
    find_reason,
)
from normcli.identifying.reproduction import hold_against_all, list_candidates, reproduce
from normcli.identifying.sampling import MOST_SAMPLED
from normcli.identifying.search.affine_step import ESTIMATED, choose_usual, enumerate_affine_steps
from normcli.identifying.search.groups import find_orders, put_in_order
from normcli.identifying.search.match import Scope, rank_matches
from normcli.identifying.search.norm_search import Search, drop_shorter
from normcli.identifying.search.samples import Samples
from normcli.norms.layout import make_layout
from normcli.tensors.mapped import fetch, require_unchanged
from normcli.tensors.pieces import iterate_pieces

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from normcli.identifying.faults.case import Case
    from normcli.identifying.models.line_fit import PlainMap
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
    saved = find_saved_dtype(question.y)
    with np.errstate(all="ignore"):  # hypotheses that do not fit overflow, and are left out for it
        found = _identify_as(saved, question, norm)
        is_open = saved is None and not found.matches and (found.plain is None or bool(found.plain.axes))
        if is_open and (half := find_saved_dtype(question.y, (question.x,), few=True)) is not None:
            again = _identify_as(half, question, norm)  # few values show it, if all are exact ones, rounded
            exact = [one for one in (*again.matches, *again.doubtful) if one.equal == 1.0]
            certain, may = _part([one for one in exact if one.is_certain or one.has_default_eps])
            found = Identification(again.question, certain, again.sampled, doubtful=may) if exact else found
    require_unchanged(question.x, question.y)
    return found


def _identify_as(half: np.dtype[Any] | None, question: Question, norm: str | None) -> Identification:
    """Return the identification of y as a tensor that was saved from a half precision, if that is not None."""
    if half is not None:
        question = question._replace(y=fetch(question.y).astype(half), saved=half.name)
    return _check_subject(question) or _identify_any(question, norm)


def _identify_any(question: Question, norm: str | None) -> Identification:
    """Return the identification of y as any norm, a norm with default options and a fault, or a map.

    `norm` is the only norm to look for; None for all. If nothing is found, the identification says only so.
    """
    x, y, gamma, beta, layout, *_ = question
    dtype, addends = choose_counting_dtype(y.dtype), question.addends

    @functools.cache
    def list_cases() -> list[Case]:
        subjects = list_subjects(x, gamma, beta, layout, norm, addends)
        opened = open_cases(subjects, y, dtype, most=_MOST_OF_EACH)
        likely = (case for case in opened if case.y.size <= _MOST_UNRELATED or goes_with_x(case))
        return [*map(choose_case_eps, likely)]

    found = add_claims(_tell_algorithm(_identify(question, norm, list_cases), list_cases), list_cases)
    is_of_lines = found.kind is Kind.AFFINE and found.plain is not None and bool(found.plain.axes)
    subject = question.subject
    if is_of_lines and x.size <= MOST_SAMPLED and (subject is not None or not found.known):
        tried = filter(shows_means, list_cases()) if subject is None else open_cases((subject,), y, dtype)
        claims = recover_one([*tried])
        if claims and claims[0].fault.id != BOTH:  # as every line has another mean and divisor
            return found._replace(plain=None, claims=claims)
    is_told = found.kind is not Kind.NONE or found.reason or found.unchanged or found.reproductions
    if is_told or x.shape != y.shape:
        return found
    if ordered := claims_of_order(list_subjects(x, gamma, beta, layout, norm), y, dtype):
        return found._replace(claims=ordered)
    if (gamma is not None or beta is not None) and x.size <= MOST_SAMPLED:  # which may be others' parameters
        bare = _identify(question._replace(gamma=None, beta=None, subject=None), norm, tuple)
        if claims := claims_of_matches(question, bare.matches):
            return found._replace(claims=claims)
    near = find_near_map(x, y, dtype)
    if near is None:
        asked = () if subject is None else open_cases((subject,), y, dtype)
        return found._replace(nearest=find_nearest(itertools.chain(asked, list_cases())))
    ways = enumerate_affine_steps(x.shape, gamma, beta)
    return found._replace(plain=near, evaluation=read_evaluation(near, ways))


_MOST_OF_EACH = 1 << 14
"""About how many values are searched for faults of each default norm; more if two groups have more."""

_MOST_UNRELATED = 1 << 16
"""For more values than this, a y that does not depend on x is not searched for rows in another order."""


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
    if reason not in (None, NOT_FINITE, ZEROS) and not is_constant:
        return None
    dtype = choose_counting_dtype(y.dtype)
    cases = [*open_cases((subject,), y, dtype)]
    claims = open_joints(cases, saved)
    if not claims or claims[0].ids & REGION_IDS:  # of the first groups
        claims = claims_of_places(subject, y, dtype) or claims
    if subject.inputs.gate is not None:  # no norm alone is y
        claims = claims or tuple(itertools.chain.from_iterable(map(recover, cases)))
        nearest = None if claims else find_nearest(cases)
        return Identification(question, (), claims=claims, nearest=nearest)
    if claims and saved is None and is_half(y.dtype) and not claims[0].is_exact:  # coarse values tell little
        found = _identify(question, subject.plan.norm.name, tuple)
        if any(match.equal == 1.0 for match in found.matches):
            return found
    if claims and all(fault.id in REQUESTS for fault in claims[0].faults):
        found = _tell_algorithm(_identify(question, None, tuple))
        is_grouped = subject.plan.grid.split is not None  # of each channel, or of all, it has another name
        matches = keep_requests(found.matches, claims[0], cases[0])
        if any(is_grouped or match.norm == subject.plan.norm.name for match in matches):
            return found._replace(claims=claims)
    if claims or is_constant:
        return Identification(question, (), reason=None if claims else CONSTANT_GROUPS, claims=claims)
    return None


def _identify(question: Question, norm: str | None, list_cases: Callable[[], Sequence[Case]]) -> Identification:
    """Return the identification of y as a norm, with given or fitted gamma and beta, or as a map.

    If no norm fits, faults of the default norms are tried before a fitted gamma and beta, unless y is a map.

    Parameters
    ----------
    question : Question
    norm : str or None
        The only norm to look for; None for all.
    list_cases : callable
        Returns cases: x and y with the exact result of each default norm.
    """
    x, y, gamma, beta, layout, start, *_ = question
    orders = find_orders(x.shape, y.shape)
    if (reason := find_reason(x, y)) is not None:
        return Identification(question, (), reason=reason)
    affines = list(enumerate_affine_steps(x.shape, gamma, beta))
    channel = None if layout is None else make_layout(layout, x.ndim).channel
    channels = frozenset({min(1, x.ndim - 1), x.ndim - 1} if channel is None else {channel})
    sampled = MOST_SAMPLED if x.size > MOST_SAMPLED else None
    dtype = choose_counting_dtype(y.dtype)
    scopes = [Scope(norm, channels, order, dtype, start, layout is not None) for order in orders]
    ways = [affines, *itertools.repeat(choose_usual(affines), len(orders) - 1)]
    samples = [
        Samples(x, put_in_order(y, scope.order), steps, scope)
        for scope, steps in zip(scopes, ways, strict=True)
    ]
    first, search = samples[0], Search(samples[0])
    plain = find_global_map(x, first.y, dtype)
    is_plain = plain is not None and (plain.is_simple or is_known(plain, x, first.y, dtype))
    if sampled and plain is not None and is_plain:  # whatever norm a sample fits as well
        return _read(Identification(question, (), sampled), plain, first)
    found = [search.find_matches()]
    if not found[0].matches:
        found += [Search(other).find_matches() for other in samples[1:]]
    best = min(fitting.level for fitting in found)
    fitting = rank_matches(match for one in found for match in one.matches if one.level == best)
    fitting = drop_shorter(fitting, x, first.y)
    if gamma is None and beta is None:
        fitting = search.find_exact(fitting) or fitting
    matches, doubtful = _part(fitting)
    blank = Identification(question, (), sampled, doubtful=doubtful)
    if plain is not None and (not matches or is_plain):
        return _read(blank._replace(doubtful=(*matches, *doubtful)), plain, first)
    if matches:
        named = _confirm(blank._replace(matches=matches, doubtful=()), samples)
    else:
        is_open = not doubtful and plain is None and question.subject is None
        claims = add_claims(blank, list_cases, in_parts=False).claims if is_open else ()
        if claims and claims[0].fault.id not in SCALERS:
            return blank._replace(claims=claims)
        named = _find_others(blank, samples, search)
        if claims and not named.matches and {*named.known} <= {WEIGHT}:  # no scaler has that eps
            return blank._replace(claims=claims)
    if named.matches and may_be_fault(named.matches[0], channels):
        blank, in_parts = blank._replace(doubtful=()), named.matches[0].affine == ESTIMATED
        known = add_claims(blank, list_cases, in_parts=in_parts)
        return known if known.claims else named
    return named


def _find_others(blank: Identification, samples: Sequence[Samples], search: Search) -> Identification:
    """Return the identification of a y that is the result of no norm with the given gamma and beta.

    It has the first that fits y: a norm with fitted gamma and beta (tried only if neither was given), or a map
    y = a · x + b. If none fits, and more than half of the values of y equal x, `unchanged` is their count.

    Parameters
    ----------
    blank : Identification
        An identification without matches; returned as it is if one of its doubtful matches has `CERTAIN` bits.
    samples : sequence of Samples
        Samples of x and y, one for each order of y's axes.
    search : Search
        The search in the first sample.
    """
    x, first = blank.question.x, samples[0]
    if any(match.bits >= CERTAIN for match in blank.doubtful):  # too odd or too rough, and not too few values
        return blank
    plain = find_plain_map(x, first.y, first.scope.dtype)
    if blank.question.gamma is None and blank.question.beta is None:
        pairs = math.inf if plain is None else math.prod(x.shape[axis] for axis in plain.axes)
        estimated = rank_matches(search.estimate_matches(pairs))  # with fewer pairs than such a map
        matches, doubtful = _part(drop_shorter(estimated, x, first.y), blank.doubtful)
        blank = blank._replace(doubtful=doubtful)
        if matches:
            return _confirm(blank._replace(matches=matches, doubtful=()), samples)
    if plain is not None:
        return _read(blank, plain, first)
    pieces = zip(iterate_pieces(x), iterate_pieces(first.y), strict=True)
    same = sum(int(np.count_nonzero(here == there)) for here, there in pieces)
    return blank._replace(unchanged=same) if 2 * same > x.size and not blank.doubtful else blank


def _tell_algorithm(found: Identification, list_cases: Callable[[], Sequence[Case]] = tuple) -> Identification:
    """Return an identification with the algorithms that reproduce y's bits, if the exact result does not.

    A norm with a certain algorithm becomes the first match. `list_cases` returns cases of the default norms,
    which are tried too if y is of half precision and nothing else was found.
    """
    x, y, gamma, beta, *_ = found.question
    matches = found.matches or found.doubtful
    ways = [step.way for step in enumerate_affine_steps(x.shape, gamma, beta)]
    candidates = list(list_candidates(matches, ways))
    is_simple = found.plain is not None and found.plain.is_simple
    is_told = candidates or found.claims or found.reason or is_simple
    if is_half(y.dtype) and not is_told and x.shape == y.shape:
        natural = tuple(range(x.ndim))
        candidates = [Candidate(plan.request, ways[0], natural) for plan in list_near_plans(list_cases())]
    is_exact = any(match.equal == 1.0 for match in found.matches)
    if is_exact or not candidates:
        return found
    told = reproduce(x, y, candidates, gamma, beta)
    if found.sampled and found.matches:
        return found._replace(reproductions=told)
    told = hold_against_all(told, x, y)
    if told and told[0].is_certain:
        alike = {(one.match.norm, one.match.axes, one.match.eps_mode): one.match for one in reversed(told)}
        computed = {id(match) for match in found.matches if any(one.is_of(match) for one in told)}
        is_first = any(told[0].is_of(match) for match in found.matches)
        matches = tuple(sorted(found.matches, key=lambda match: id(match) not in computed))
        matches = matches if is_first else (*reversed(alike.values()), *matches)
        found = found._replace(matches=matches, doubtful=(), plain=None, unchanged=None)
    return found._replace(reproductions=told)


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


def _part(
    ranked: Sequence[Match], doubtful: Sequence[Match] = ()
) -> tuple[tuple[Match, ...], tuple[Match, ...]]:
    """Return the certain ones of ranked matches, and `doubtful` followed by the others."""
    others = (*doubtful, *(match for match in ranked if not match.is_certain))
    return tuple(match for match in ranked if match.is_certain), others


def _read(blank: Identification, plain: PlainMap, samples: Samples) -> Identification:
    """Return an identification with the map y = a · x + b, its well-known names, and running statistics."""
    x, y = SampledBlock(samples.x, samples.y, MOST_SAMPLED).take(plain.axes)
    known = name_map(plain, x, y, samples.scope.dtype, is_whole=x.size == samples.x.size)
    if any(match.rows is not None for match in blank.doubtful):  # which is named by itself
        known = (name for name in known if name != SPECTRAL)
    evaluation = read_evaluation(plain, samples.affines)
    return blank._replace(plain=plain, known=tuple(known), evaluation=evaluation)
