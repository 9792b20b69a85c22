"""The diagnosis of an identification in words: a norm, a fault, a map, a doubt, or nothing known."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from normcli.checking.fault import find_fault
from normcli.checking.half_precision import is_of_half
from normcli.checking.ulp import choose_counting_dtype
from normcli.dtypes import find_type, is_half
from normcli.identifying.faults.case import Case
from normcli.identifying.faults.shown_statistics import shows_cancelling
from normcli.identifying.faults.tables.places import CAST, OF_REGIONS, UNKNOWN
from normcli.identifying.faults.tables.summing import weigh_cancelling
from normcli.identifying.faults.unnamed_fault import TO_GIVE
from normcli.identifying.models.standards import MOMENTS
from normcli.identifying.models.weight import CERTAIN
from normcli.identifying.question import (
    ANY_NORM,
    CONSTANT,
    CONSTANT_GROUPS,
    MOST_WORDS,
    Diagnosis,
    Kind,
    add_clauses,
    count_words,
)
from normcli.identifying.sampling import widen
from normcli.identifying.search.affine_step import ESTIMATED
from normcli.identifying.words.map_words import diagnose_map, name_norms
from normcli.identifying.words.match_words import (
    choose_others,
    format_axes,
    format_match,
    format_share,
    format_title,
    list_clauses,
    list_exactness,
    list_fitted,
    list_of_factor,
    name_frameworks,
)
from normcli.identifying.words.request_difference import find_own_command, narrow_eps
from normcli.norms.layout import make_layout
from normcli.printable import agree, format_count

if TYPE_CHECKING:
    from normcli.checking.fault import Fault
    from normcli.identifying.faults.claim import Claim
    from normcli.identifying.faults.fault_search import NearNorm
    from normcli.identifying.question import Identification, Question
    from normcli.identifying.search.match import Match
    from normcli.norms.layout import Layout

SUGGEST = "normcli identify … --suggest"
"""The command that suggests an input for which the candidates differ."""


def diagnose(found: Identification) -> Diagnosis:
    """Return the diagnosis of an identification: cause, evidence, alternatives and next steps in words."""
    asked = found.question
    layout = make_layout(asked.layout, asked.x.ndim)
    told = _diagnose_kind(found, layout)
    if found.claims:
        told = told._replace(fault=found.claims[0].fault.id)
    if found.reproductions and told.verdict not in (Kind.NORM, Kind.FAULT):
        best = found.reproductions[0]
        nearly = f"{format_title(best.match, layout)}; {next(list_exactness(best.match, found.reproductions))}"
        told = told._replace(alternatives=(nearly, *told.alternatives))
    told = tell_saved(told, found)
    if found.sampled and found.reason is None:
        sample = f"whole groups of about {found.sampled:,} values were compared"
        told = told._replace(evidence=(*told.evidence, sample))
    return told


def tell_saved(told: Diagnosis, found: Identification) -> Diagnosis:
    """Return a diagnosis with the half precision of y as evidence, if y was saved in a longer dtype.

    The half precision is the fault of a norm that no one requested, if x is not of it.
    """
    asked, saved = found.question, found.question.saved
    if saved is None or found.reason is not None or told.fault == CAST.id:
        return told
    shown = f"y holds {saved} numbers"
    if told.verdict == Kind.NORM and asked.subject is None and not is_of_half(asked.x, asked.y.dtype):
        shown, fault = told.cause, CAST.fault
        cause = f"y is {found.matches[0].norm}, but {fault.words.format(dtype=saved)}"
        told = told._replace(verdict=Kind.FAULT, cause=cause, remedy=fault.remedy, fault=fault.id)
    return told._replace(evidence=(shown, *told.evidence))


@np.errstate(all="ignore")
def find_arithmetic(found: Identification, match: Match) -> Fault | None:
    """Return the fault of a kernel's sums: half precision, E[x²] − E[x]² that cancels, or another divisor.

    The algorithm that reproduces y's bits decides; if none is known, the groups' divisors recovered from y do:
    they are others if only one pass could make their errors, and no known order of its sums does. None without
    such a fault, and if a one-pass algorithm gives y's bits but loses nothing, as no mean is far from 0.

    Parameters
    ----------
    found : Identification
        An identification, with reproductions if an algorithm reproduces y's bits.
    match : Match
        One of its matches; cancellation counts only if its largest distance is large.
    """
    told = found.reproductions[0].computation.accumulation if found.reproductions else None
    if told is not None and is_half(np.dtype(find_type(told.dtype))):
        values = {"dtype": told.dtype, "algorithm": f"as {told.algorithm.name} does"}
        fault = find_fault("stats-half-sums")
        return fault._replace(words=fault.words.format(**values))
    if not match.max_ulp > _FAR:
        return None
    if told is not None:
        h = match.hypothesis
        loses = h is None or float(h.sample.standard.offset.max()) > _LOSING
        return find_fault(_ONE_PASS) if loses and all(one.cancels for one in found.reproductions) else None
    case = _open_sample(match, choose_counting_dtype(found.question.y.dtype))
    if case is None:
        return None
    skew = np.abs(case.mean) / np.sqrt(case.square / case.unbiasing)
    if not shows_cancelling(case.used.divisor, case.divisor, skew, case.count, case.arithmetic):
        return None
    return find_fault(_ONE_PASS if weigh_cancelling(case) >= CERTAIN else UNKNOWN["divisor"].id)


_LOSING = 4.0
"""E[x²] − E[x]² loses digits of the variance of groups whose |mean| is more than this many deviations."""

_ONE_PASS = "stats-one-pass"
"""The id of a variance that is E[x²] − E[x]²."""


def _open_sample(match: Match, dtype: np.dtype[Any]) -> Case | None:
    """Return the case of a match's sampled groups, as rows; None for a norm without a variance.

    None also for a fitted gamma, and for a `dtype` of y of half precision, which shows too little.
    """
    h = match.hypothesis
    if h is None or is_half(dtype) or match.affine == ESTIMATED or not h.sample.standard.centred:
        return None
    if h.model.divisor not in MOMENTS:
        return None
    rows, placed = widen(h.sample.standard.rows), h.sample.place(h.affine)
    gamma, beta = np.ones((1, 1)) if placed.scale is None else placed.scale, placed.shift
    return Case(
        h.model.make_plan((1,), rows, match.eps), rows, h.sample.actual, dtype, gamma,
        np.zeros((1, 1)) if beta is None else beta, precision=match.precision.split(",")[0],
    )  # fmt: skip


_FAR = 16.0
"""Distances in ulp beyond which y is far from the exact result."""


def split_reason(reason: str) -> tuple[str, tuple[str, ...]]:
    """Return a reason up to its explanation, and the explanation in a tuple, empty without one.

    The explanation follows `: ` or `, as where `.
    """
    first, _, rest = reason.replace(", as where", ":").partition(": ")
    return first, tuple(filter(None, [rest]))


_EXCEPT = OF_REGIONS["values"].fault.words
"""The words of faults of which only the place is known."""


def tell_claim(claim: Claim) -> tuple[str, tuple[str, ...]]:
    """Return the cause of a claim, short enough for a sentence with the norm's name, and its evidence.

    The sentence has at most 15 words. If all causes together are too long, the first is the cause, and the
    others become evidence.
    """
    room = MOST_WORDS - (_BEFORE_PLACE if claim.cause.startswith(_EXCEPT) else _BEFORE)
    if count_words(claim.cause) <= room:
        return claim.cause, claim.evidence
    first, *others = claim.causes
    unsaid = ", and ".join(others)
    if first == _EXCEPT and claim.region is not None:
        return "y is right, except in a part", (f"y is wrong {claim.region.words}", *claim.evidence)
    if claim.region is not None:
        unsaid = f"{unsaid} {claim.region.words}" if unsaid else f"this is so {claim.region.words}"
    return first, (*filter(None, [unsaid]), *claim.evidence)


_BEFORE, _BEFORE_PLACE = 4, 2
"""The number of words before a fault, as in `y is ln, but`, and before a place alone, as in `ln differs`."""


def _diagnose_kind(found: Identification, layout: Layout) -> Diagnosis:
    """Return the diagnosis of the first answer there is: a reason, match, claim, map, doubt, or nothing."""
    claims, size = found.claims, found.question.x.size
    if found.reason is not None:
        reason, evidence = split_reason(found.reason)
        step = _suggest_input(found.question) if found.reason in (CONSTANT, CONSTANT_GROUPS) else None
        return Diagnosis(Kind.NONE, f"no norm can be identified: {reason}", evidence, next_step=step)
    if found.matches:
        return _add_arithmetic(_diagnose_match(found, layout), found)
    if claims:
        first, *others = claims
        also = tuple(claim.cause for claim in others if claim.rank == first.rank)
        cause, evidence = tell_claim(first)
        name, where = first.plan.norm.name, cause.removeprefix(f"{_EXCEPT} ")
        cause = f"y is {name}, but {cause}" if where == cause else f"y is {name}, except {where}"
        remedies = [claim.fault.remedy for claim in claims if claim.rank == first.rank]
        step = next((remedy for remedy in remedies if remedy in TO_GIVE), None)
        remedy = None if first.fault.remedy == step else first.fault.remedy
        return Diagnosis(Kind.FAULT, cause, evidence, also, remedy, step, first.fault.id)
    if found.plain is not None:
        return diagnose_map(found, found.plain, layout)
    if found.doubtful:
        return _diagnose_doubtful(found, layout)
    if found.unchanged is not None:
        return Diagnosis(Kind.NONE, f"y is the input, except for {size - found.unchanged:,} of {size:,} values")
    if found.nearest is not None:
        return diagnose_near(found.nearest, layout)
    step = _suggest_input(found.question)
    if found.question.gamma is None and found.question.beta is None:
        step = "give --gamma and --beta, if the kernel has them"
        if size <= _OF_AN_INDEX * max(found.question.x.shape):
            unknown = ("each index of an axis has at most 2 values, which a gamma and a beta of its own fit",)
            return Diagnosis(Kind.NONE, ANY_NORM, unknown, next_step=step)
    tried = "every norm was tried over all axes, and every map a · x + b"
    return Diagnosis(Kind.NONE, "nothing known explains y", (tried,), next_step=step)


_OF_AN_INDEX = 2
"""The most values to which some gamma and beta always lead."""


def diagnose_near(near: NearNorm, layout: Layout) -> Diagnosis:
    """Return the diagnosis of a y that is near a norm's exact result, with errors that nothing explains."""
    plan, groups, share = near.plan, near.plan.request.groups, 100.0 * near.off / near.spread
    title = f"{plan.norm.title} over {format_axes(plan.grid.axes, layout)}"
    clauses = () if groups is None else (format_count(groups, "group"),)
    return Diagnosis(
        Kind.UNDECIDED,
        add_clauses(f"y is nearly {title}", clauses)[0],
        (
            f"values are off by {near.off:.2g} on average, which is {share:.2g} % of the spread of y",
            f"the largest difference is {near.largest:.2g}",
            "rounding explains less, and other statistics of the groups come no nearer",
        ),
        ("a kernel that calculates with fewer bits", "noise behind the norm"),
    )


def _add_arithmetic(told: Diagnosis, found: Identification) -> Diagnosis:
    """Return the diagnosis of a fault of the best match's sums, if y is off by more than 16 ulp; else `told`.

    `told` is the diagnosis without this fault, and becomes evidence.
    """
    best = found.matches[0]
    wrong = find_arithmetic(found, best)
    if wrong is None or not best.max_ulp > _FAR:
        return told
    far = f"y is off by up to {best.max_ulp:,.0f} ulp"
    if wrong.id == UNKNOWN["divisor"].id:
        told = told._replace(alternatives=(find_fault(_ONE_PASS).words,))
    return told._replace(
        verdict=Kind.FAULT, cause=f"y is {best.norm}, but {wrong.words}",
        evidence=(far, told.cause, *told.evidence), remedy=wrong.remedy, fault=wrong.id,
    )  # fmt: skip


def _diagnose_match(found: Identification, layout: Layout) -> Diagnosis:
    """Return the diagnosis of a tensor with matches: the best match's norm, and the others as alternatives."""
    asked, (best, *rest) = found.question, [narrow_eps(match, found) for match in found.matches]
    others = choose_others(best, rest)
    cause, evidence = add_clauses(f"y is {format_title(best, layout)}", list_clauses(best, asked, layout))
    if best.like:
        names = [name_frameworks(best, most) for most in range(len(best.like), 0, -1)]
        fitting = (name for name in names if count_words(f"{cause} {name}") <= MOST_WORDS)
        named = next(fitting, None)
        cause = cause if named is None else f"{cause} ({named})"
        evidence += () if named == names[0] else (f"so {agree(len(names), 'does', 'do')} {names[0]}",)
    size = math.prod(asked.x.shape[axis] for axis in best.axes) // (best.groups or 1)
    exactness = (*list_exactness(best, found.reproductions), *list_of_factor([best, *others], size))
    return Diagnosis(
        Kind.NORM, cause, (*evidence, *exactness, *list_fitted(best, found.matches)),
        tuple(format_match(match, asked, layout) for match in others), find_own_command(best, asked),
        "give --gamma and --beta" if best.affine == ESTIMATED else SUGGEST if others else None,
    )  # fmt: skip


def _diagnose_doubtful(found: Identification, layout: Layout) -> Diagnosis:
    """Return the diagnosis of a norm that fits only nearly, with little evidence, or with an unusual eps."""
    first, asked = found.doubtful[0], found.question
    dtype, clauses = choose_counting_dtype(asked.y.dtype), [*list_clauses(first, asked, layout)]
    title = format_title(first, layout)
    if first.is_rough and not first.is_odd:  # of a usual eps, which others may come near
        cause, unsaid = add_clauses(f"y is nearly {title}", clauses)
        evidence = [*unsaid, f"{format_share(first.equal)} of the values are the exact ones, rounded"]
        half = first.precision.split(",")[0]
        also = [f"a kernel that calculates in {half}, or rounds to it on the way"]
        if not first.sums_in_half:
            also = [f"a kernel in {half} with sums that cancel, as E[x²] − E[x]² does", "another map"]
        return Diagnosis(Kind.UNDECIDED, cause, tuple(evidence), tuple(also))
    if first.is_odd:
        cause = f"{title} needs an eps of {first.eps:.6g} to give y"
        return Diagnosis(Kind.UNDECIDED, cause, ("no kernel is known to have that eps",))
    if first.takes_up_rounding and first.bits >= CERTAIN:
        cause, unsaid = add_clauses(f"y may be {title}", clauses)
        also = [f"another eps, with statistics that are rounded to {dtype}"]
    else:
        cause, unsaid = f"y may be {title}", ("so few values fit many other things as well",)
        also = name_norms(found.doubtful)[1:]
    return Diagnosis(
        Kind.UNDECIDED, cause, unsaid, tuple(also), next_step="more values of the same kernel tell"
    )


def _suggest_input(asked: Question) -> str:
    shape = ",".join(map(str, asked.x.shape))
    return f"normcli generate --shape {shape} --dist normal -o try.npy writes another input to try"
