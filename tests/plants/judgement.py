"""The verdict on what `identify` says of a plant."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import numpy as np

from normcli.errors import NormError
from normcli.identifying.identify import identify
from normcli.identifying.question import Identification, Kind, Question
from normcli.identifying.search.affine_step import ESTIMATED
from normcli.identifying.words.phrasing import diagnose
from normcli.norms.plan import Plan, make_plan
from normcli.norms.request import Request
from normcli.norms.rules import EpsMode
from normcli.norms.table import NORMS
from tests.plants.plant import Outcome, Plant, Verdict

if TYPE_CHECKING:
    from normcli.identifying.search.match import Match
    from tests.plants.faults import Wrong


def judge(plant: Plant) -> Verdict:
    """Return what `identify` makes of a plant."""
    started = time.process_time()
    try:
        found = identify(plant.question)
    except NormError as error:
        found = Identification(plant.question, (), reason=str(error))
    except Exception as error:  # which a user would see as a fault of the program
        found = Identification(plant.question, (), reason=f"it fails with {error!r}")
        return Verdict(plant, Outcome.WRONG, found, time.process_time() - started)
    seconds = time.process_time() - started
    return Verdict(plant, _compare(found, plant), found, seconds)


def _compare(found: Identification, plant: Plant) -> Outcome:
    if plant.wrong is not None:
        return _compare_fault(found, plant.wrong)
    if found.claims:
        return _compare_claim(found, plant)
    if plant.truth is None:
        return Outcome.WRONG if found.kind is Kind.NORM else Outcome.RIGHT
    hypotheses = found.matches or found.doubtful
    agreeing = [_agrees(match, plant.truth, found.question) for match in hypotheses]
    if found.kind is Kind.NORM and not any(agreeing):
        return Outcome.WRONG
    if found.kind is Kind.NORM and agreeing[0]:
        return Outcome.RIGHT
    # A map along gamma's own axes may be any norm with such a gamma and beta.
    parameters = plant.truth.parameters.axes if plant.is_open else ()
    is_open = found.plain is not None and {*found.plain.axes} <= {*parameters}
    return Outcome.AMONG if any(agreeing) or is_open else Outcome.MISSED


_OF_STATISTICS = "one-pass shard other-axes eps-other ddof rounded rounded-rstd rounded-mean"
_OTHER_WORDS = {"after-cast", *(f"stats-{name}" for name in _OF_STATISTICS.split())}
"""Faults that a right norm may be said to have: the algorithm, or another norm that it is with other options."""


def _compare_claim(found: Identification, plant: Plant) -> Outcome:
    """Return the outcome where a fault is claimed of what no wrong kernel made."""
    claim = found.claims[0]
    claimed = claim.fault.id
    if plant.truth is None:
        return Outcome.RIGHT if claimed in plant.nearly else Outcome.WRONG
    if claim.plan.grid.canonical == plant.truth.grid.canonical:
        if claimed in plant.nearly or (claimed == "stats-one-pass" and plant.one_pass):
            return Outcome.RIGHT
        if any(one.fault.id == "stats-one-pass" for one in found.claims):
            return Outcome.AMONG
    return Outcome.AMONG if claimed in _OTHER_WORDS else Outcome.WRONG


# -- wrong kernels

_SAID_BY_A_MATCH = {
    "none": ("affine-missing", "affine-gamma-missing", "affine-beta-missing"),
    "beta": ("affine-gamma-missing",),
    "gamma": ("affine-beta-missing",),
    "swapped": ("affine-swapped",),
    "1 + gamma": ("affine-gamma-plus-one",),
    "1 + gamma, beta": ("affine-gamma-plus-one",),
}
"""By how gamma and beta entered a match, the faults that this names."""


def _compare_fault(found: Identification, wrong: Wrong) -> Outcome:
    if not found.claims:
        return _compare_matches(found, wrong)
    first, *others = [{fault.id for fault in claim.faults} for claim in found.claims]
    ids = {*wrong.ids}
    extra = first - ids
    if extra < first and extra <= (_OTHER_WORDS if found.question.subject is None else set()):
        return Outcome.RIGHT
    joints = [{name.split("-")[0] for name in names} for names in (first, ids)]
    if joints[0] & joints[1] or any(names & ids for names in others):
        return Outcome.AMONG
    return Outcome.WRONG


def _compare_matches(found: Identification, wrong: Wrong) -> Outcome:
    """Return the outcome where no fault is claimed: a norm that is y may be one with other options."""
    if found.kind is not Kind.NORM:
        return Outcome.MISSED
    if wrong.really is not None:
        agreeing = [_agrees(match, wrong.really, found.question) for match in found.matches]
        if any(agreeing):
            return Outcome.RIGHT if agreeing[0] else Outcome.AMONG
    plan = wrong.kernel.plan
    right = [match for match in found.matches if _agrees(match, plan, found.question)]
    parts = [match for match in found.matches if match.groups and match.norm == plan.norm.name]
    if parts and "stats-shard" in wrong.ids:  # parts of the features by themselves are such groups
        return Outcome.RIGHT
    if not right:
        return Outcome.WRONG
    said = {name for match in right for name in _SAID_BY_A_MATCH.get(match.affine, ())}
    cancels = diagnose(found).fault == "stats-one-pass"
    cancels |= any("one-pass" in each.computation.name for each in found.reproductions)
    shown = {
        "stats-one-pass": cancels,
        "order-transposed": right[0].order != tuple(range(len(right[0].order))),
        "after-cast": found.question.saved is not None,
        "affine-constant": right[0].affine == ESTIMATED,
        "affine-offset": right[0].affine == ESTIMATED,
    }
    said |= {name for name, is_shown in shown.items() if is_shown}
    return Outcome.RIGHT if said & {*wrong.ids} else Outcome.MISSED


# -- norms


def _agrees(match: Match, truth: Plan, question: Question) -> bool:
    """Whether a match groups and divides as the truth does, as far as gamma and beta leave that to be seen."""
    row, spec = NORMS[match.norm], truth.spec
    if (row.divisor, row.centre) != (truth.norm.divisor, truth.norm.centre):
        return False
    if match.window is not None and spec.window is not None:
        constants = [(w.alpha / w.divisor, w.exponent, w.k) for w in (match.window, spec.window)]
        return truth.grid.reach == match.window[:2] and np.allclose(*constants, rtol=0.01)
    request = Request(match.norm, axes=match.axes, groups=match.groups, group_order=match.group_order)
    if match.groups is not None:  # along the truth's channel
        request = request._replace(layout=truth.grid.layout.letters)
    try:
        grid = make_plan(request, question.x.shape, question.x.dtype).grid
    except NormError:  # groups along another axis
        return False
    is_fitted = match.affine == ESTIMATED
    return (
        grid.canonical == truth.grid.canonical
        and np.isclose(match.p or 2.0, spec.p or 2.0, rtol=1e-3)
        and (is_fitted or match.ddof == spec.ddof)
        and _holds_eps(match, truth)
    )


_ABOUT = 1.0 + 1e-6


def _holds_eps(match: Match, truth: Plan) -> bool:
    """Whether the eps is among those that fit, and stands where it should; a floor, or what may be 0, need not show."""
    (low, high), eps = match.eps_range, truth.spec.eps or 0.0
    modes = {match.eps_mode, truth.spec.eps_mode}
    if not match.takes_eps or modes & {EpsMode.FLOOR, EpsMode.SQUARE_FLOOR}:
        return low == 0.0
    is_alike = not eps or low == 0.0 or None in modes or len(modes) == 1
    return is_alike and low <= eps * _ABOUT and eps <= high * _ABOUT
