"""What made a tensor, in one record: a norm, a fault, a map, a doubt, or nothing known."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from normcli.checking.ulp import choose_counting_dtype
from normcli.dtypes import find_type, is_half
from normcli.identifying.faults.tables.dividing import DIVIDING
from normcli.identifying.faults.tables.parts import CAST
from normcli.identifying.faults.tables.summing import SUMMING
from normcli.identifying.models.weight import CERTAIN
from normcli.identifying.nearly.strange_groups import find_moved_group
from normcli.identifying.question import CONSTANT, CONSTANT_GROUPS, Kind
from normcli.identifying.search.affine_step import ESTIMATED
from normcli.identifying.words.diagnosis import MOST_WORDS, Diagnosis, add_clauses, count_words
from normcli.identifying.words.map_words import diagnose_map, name_norms
from normcli.identifying.words.match_words import (
    choose_others,
    format_match,
    format_place,
    format_share,
    format_title,
    list_clauses,
    list_exactness,
    list_fitted,
    list_of_factor,
    name_frameworks,
)
from normcli.identifying.words.request_difference import find_own_command
from normcli.norms.layout import make_layout
from normcli.printable import agree
from normcli.tuples import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from normcli.checking.fault import Fault
    from normcli.identifying.nearly.nearest import Nearest
    from normcli.identifying.question import Identification, Question
    from normcli.identifying.search.match import Match
    from normcli.norms.layout import Layout

_SMALL = 0.05
"""The part of y's spread that a norm may leave unexplained and still come near y."""

_BETTER = 0.25
"""The residual of a nearest norm must be at most this part of a line's through all values."""

SUGGEST = "normcli identify … --suggest"
"""The command that prints which input tells apart what fits."""


def diagnose(found: Identification) -> Diagnosis:
    """Return what made a tensor, as far as the data show.

    Parameters
    ----------
    found : Identification
    """
    layout = make_layout(found.question.layout, found.question.x.ndim)
    told = _diagnose_kind(found, layout)
    if found.claims:
        told = told._replace(fault=found.claims[0].fault.id)
    if found.reproductions and told.verdict not in (Kind.NORM, Kind.FAULT):
        best = found.reproductions[0]
        nearly = f"{format_title(best.match, layout)}; {next(list_exactness(best.match, found.reproductions))}"
        told = told._replace(alternatives=(nearly, *told.alternatives))
    if found.rounded_to is not None and found.reason is None and told.fault != CAST.fault.id:
        told = told._replace(evidence=(f"y holds {found.rounded_to} numbers", *told.evidence))
    if found.sampled and found.reason is None:
        sample = f"whole groups of about {found.sampled:,} values were compared"
        told = told._replace(evidence=(*told.evidence, sample))
    return told


class WrongArithmetic(NamedTuple):
    """A fault in how a kernel calculates the right norm, and its cause for this tensor."""

    fault: Fault
    cause: str


def find_arithmetic(found: Identification, match: Match) -> WrongArithmetic | None:
    """Return the sums that take a match far from the exact result; None where rounding does, or nothing.

    Parameters
    ----------
    found : Identification
    match : Match
        One of its matches, or the nearest norm.
    """
    told = found.reproductions[0].computation.accumulation if found.reproductions else None
    if told is not None and is_half(np.dtype(find_type(told.dtype))):
        values = {"dtype": told.dtype, "algorithm": f"as {told.algorithm.name} does"}
        fault = next(row.fault for row in SUMMING if row.fault.id == "stats-half-sums")
        return WrongArithmetic(fault, fault.words.format(**values))
    is_one_pass = told is not None and told.algorithm.name.startswith("one-pass")
    if match.cancelled is not None or (match.max_ulp > _FAR and is_one_pass):
        fault = next(row.fault for row in DIVIDING if row.fault.id == "stats-one-pass")
        return WrongArithmetic(fault, "the variance is E[x²] − E[x]², which cancels")
    return None


_FAR = 16.0
"""Units of the last place beyond which a difference of squares has cancelled."""


def is_mostly(near: Nearest | None) -> bool:
    """Whether a norm that leaves some values unexplained is certain all the same."""
    return near is not None and near.bits >= CERTAIN


def list_wrong(near: Nearest, layout: Layout) -> Iterator[str]:
    """Yield where the values lie that a norm does not explain: the last is a sentence of its own."""
    if near.shared:
        yield f"all at {' '.join(f'{layout.name(axis)}={index}' for axis, index in near.shared)}"
    yield f"the first of them is at {format_place(near.first)}"


def split_reason(reason: str) -> tuple[str, tuple[str, ...]]:
    """Return why nothing can be identified, and what stands behind it."""
    first, _, rest = reason.replace(", as where", ":").partition(": ")
    return first, tuple(filter(None, [rest]))


def _diagnose_kind(found: Identification, layout: Layout) -> Diagnosis:
    claims, size = found.claims, found.question.x.size
    if found.reason is not None:
        reason, evidence = split_reason(found.reason)
        step = _suggest_input(found.question) if found.reason in (CONSTANT, CONSTANT_GROUPS) else None
        return Diagnosis(Kind.NONE, f"no norm can be identified: {reason}", evidence, next_step=step)
    if found.matches:
        return _add_arithmetic(_diagnose_match(found, found.matches, None, layout), found)
    if claims:
        first, *others = claims
        also = tuple(claim.cause for claim in others if claim.rank == first.rank)
        cause = f"y is {first.plan.norm.name}, but {first.cause}"
        return Diagnosis(Kind.FAULT, cause, first.evidence, also, first.fault.remedy, fault=first.fault.id)
    if found.plain is not None:
        return diagnose_map(found, found.plain, layout)
    if found.doubtful:
        return _diagnose_doubtful(found, layout)
    if found.unchanged is not None:
        return Diagnosis(Kind.NONE, f"y is the input, except for {size - found.unchanged:,} of {size:,} values")
    near = found.nearest
    if near is not None and is_mostly(near):
        few = near if near.mismatches else None
        return _diagnose_match(found, (near.match, *near.others), few, layout)._replace(verdict=Kind.NONE)
    return _diagnose_nothing(found, layout)


def _add_arithmetic(told: Diagnosis, found: Identification) -> Diagnosis:
    """Return the diagnosis of a match with the fault of its sums, if they take it far from the exact result."""
    best = found.matches[0]
    wrong = find_arithmetic(found, best)
    if wrong is None or not best.max_ulp > _FAR:
        return told
    far = f"y is off by up to {best.max_ulp:,.0f} ulp"
    return told._replace(
        verdict=Kind.FAULT, cause=f"y is {best.norm}, but {wrong.cause}",
        evidence=(far, told.cause, *told.evidence), remedy=wrong.fault.remedy, fault=wrong.fault.id,
    )  # fmt: skip


def _diagnose_match(
    found: Identification, matches: Sequence[Match], near: Nearest | None, layout: Layout
) -> Diagnosis:
    """Return which norm a tensor is, but for a few values where something is only near."""
    asked, best = found.question, matches[0]
    others = choose_others(best, matches[1:])
    wrong = []
    if near is not None:
        wrong = [f"except for {near.mismatches:,} of {near.compared:,} values", *list_wrong(near, layout)]
    clauses = [*wrong[:1], *list_clauses(best, asked, layout), *wrong[1:-1]]
    cause, evidence = add_clauses(f"y is {format_title(best, layout)}", clauses)
    evidence += tuple(wrong[-1:])
    if best.like:
        names = [name_frameworks(best, most) for most in range(len(best.like), 0, -1)]
        fitting = (name for name in names if count_words(f"{cause} {name}") <= MOST_WORDS)
        named = next(fitting, None)
        cause = cause if named is None else f"{cause} ({named})"
        evidence += () if named == names[0] else (f"so {agree(len(names), 'does', 'do')} {names[0]}",)
    exactness = list_exactness(best, found.reproductions) if near is None else ()
    size = math.prod(asked.x.shape[axis] for axis in best.axes) // (best.groups or 1)
    exactness = (*exactness, *list_of_factor([best, *others], size))
    hidden = list_fitted(best, [match for match in matches if near is None or match is best])
    return Diagnosis(
        Kind.NORM, cause, (*evidence, *exactness, *hidden),
        tuple(format_match(match, asked, layout) for match in others), find_own_command(best, asked),
        "give --gamma and --beta" if best.affine == ESTIMATED else SUGGEST if others else None,
    )  # fmt: skip


def _diagnose_doubtful(found: Identification, layout: Layout) -> Diagnosis:
    """Return the norm that fits with too little evidence, or that fits only nearly."""
    first, asked = found.doubtful[0], found.question
    dtype, clauses = choose_counting_dtype(asked.y.dtype), [*list_clauses(first, asked, layout)]
    title = format_title(first, layout)
    odd = next((match for match in found.doubtful if match.is_odd), None)
    if first.is_rough and not first.is_odd:  # of a usual eps, which others may come near
        cause, unsaid = add_clauses(f"y is nearly {title}", clauses)
        evidence = [*unsaid, f"{format_share(first.equal)} of the values are the exact ones, rounded"]
        half = first.precision.split(",")[0]
        also = [f"a kernel that calculates in {half}, or rounds to it on the way"]
        if not first.sums_in_half:
            also = [f"a kernel in {half} with sums that cancel, as E[x²] − E[x]² does", "another map"]
        elif (moved := first.hypothesis and find_moved_group(first.hypothesis, first.eps, dtype)) is not None:
            group = format_place(moved.first)
            evidence.append(f"the group of {group} is {moved.factor:.5g} of what it should be")
        return Diagnosis(Kind.UNDECIDED, cause, tuple(evidence), tuple(also))
    if odd is not None:
        evidence = ["no kernel is known to have that eps", "that eps is not small beside the variances"]
        cause = f"{format_title(odd, layout)} needs an eps of {odd.eps:.6g} to give y"
        return Diagnosis(Kind.UNDECIDED, cause, tuple(evidence))
    if first.takes_up_rounding and first.bits >= CERTAIN:
        cause, unsaid = add_clauses(f"y may be {title}", clauses)
        also = [f"another eps, with statistics that are rounded to {dtype}"]
    else:
        cause, unsaid = f"y may be {title}", ("so few values fit many other things as well",)
        also = name_norms(found.doubtful)[1:]
    return Diagnosis(
        Kind.UNDECIDED, cause, unsaid, tuple(also), next_step="more values of the same kernel tell"
    )


def _diagnose_nothing(found: Identification, layout: Layout) -> Diagnosis:
    """Return the nearest explanation; if none is near, what was tried and what would tell more."""
    asked, near = found.question, found.nearest
    rest = math.inf if near is None else _measure_rest(near.match)
    if near is not None and rest <= _SMALL:
        cause, unsaid = add_clauses(
            f"y is nearly {format_title(near.match, layout)}", list_clauses(near.match, asked, layout)
        )
        evidence = [*unsaid, f"it is off by up to {near.match.max_abs:.3g}, {100.0 * rest:.2g} % of y's spread"]
    else:
        cause = "nothing known explains y"
        evidence = ["every norm was tried over all axes, and every map a · x + b"]
    step = _suggest_input(asked)
    if asked.gamma is None and asked.beta is None:
        step = "give --gamma and --beta, if the kernel has them"
    return Diagnosis(Kind.NONE, cause, tuple(evidence), next_step=step)


def _suggest_input(asked: Question) -> str:
    shape = ",".join(map(str, asked.x.shape))
    return f"normcli generate --shape {shape} --dist normal -o x.npy writes another input to try"


def _measure_rest(match: Match) -> float:
    """Return the part of y's spread that a norm leaves; infinity where one line does as well."""
    if match.hypothesis is None:
        return math.inf
    sample = match.hypothesis.sample
    with np.errstate(all="ignore"):
        predicted = match.hypothesis.approximate(match.eps)
        every = np.stack((sample.standard.rows, sample.actual, predicted), dtype=np.float64)
        x, y, predicted = every[:, np.isfinite(every).all(0)]
        if not x.size:
            return math.inf
        off = x - x.mean()
        line = y.mean() + off * (off @ y) / (off @ off)
        rest, other, spread = (float(np.sqrt(np.mean((y - z) ** 2))) for z in (predicted, line, y.mean()))
    return rest / spread if rest <= _BETTER * other and rest < spread else math.inf
