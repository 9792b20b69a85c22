"""The search for the faults in a norm's parts (statistics, parameters, gate, residual) that led to y."""

from __future__ import annotations

import functools
import itertools
import math
from typing import TYPE_CHECKING

import numpy as np

from normcli.checking.fault import find_fault
from normcli.checking.half_precision import may_be_of_float32
from normcli.identifying.faults.case_sampling import change_case
from normcli.identifying.faults.claim import (
    ANY_NUMBER,
    DDOFS,
    GATE_ORDERS,
    OVERFLOWS,
    REST,
    STATISTICS,
    Claim,
    keep_first,
    make_claim,
    may_be_rounding,
    rank_claims,
)
from normcli.identifying.faults.index_region import find_any_region, find_region
from normcli.identifying.faults.row_search import (
    list_others,
    try_all,
    try_exact,
    try_pairs,
    try_rest,
    try_rows,
    try_statistics,
)
from normcli.identifying.faults.tables.dividing import weigh_few_bits
from normcli.identifying.faults.tables.parameters import PARAMETERS
from normcli.identifying.faults.tables.places import (
    CAST,
    NOT_FINITE,
    OF_COPIES,
    OF_REGIONS,
    ORDER,
    UNKNOWN,
)
from normcli.identifying.faults.tables.summing import may_cancel
from normcli.identifying.faults.thin_case import LIKELY
from normcli.identifying.faults.unnamed_fault import find_unknown
from normcli.identifying.faults.variant import NOTHING, Found, IndexRegion, Variant, is_near
from normcli.identifying.models.weight import CERTAIN

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from normcli.checking.fault import Row
    from normcli.identifying.faults.case import Case


def open_joints(cases: Sequence[Case], saved: str | None = None, *, in_parts: bool = True) -> tuple[Claim, ...]:
    """Return the claims that y has a fault, the likeliest first; empty if y is right, or no fault leads to it.

    Parameters
    ----------
    cases : sequence of Case
        x and y with the exact result of each norm that y may be of.
    saved : str or None
        The half precision of y if it was saved in a longer dtype: the one claim on a right y. Else None.
    in_parts : bool
        Whether faults in only a part of y are looked for too.

    Notes
    -----
    Each fault of the tables is tried by itself; if none leads to y, pairs: a fault of gamma and beta with one
    of statistics, or another input or gate with another eps; and at last faults in a part of y.
    """
    with np.errstate(all="ignore"):
        right = next((case for case in cases if not case.differs.any()), None)
        if right is not None:
            causes = (CAST.fault.words.format(dtype=saved),)
            cast = Claim((CAST.fault,), right.plan, causes, misfit=0.0, bits=math.inf, rank=1.0)
            hidden = [make_claim(right, one) for one in try_exact(right)] if saved is None else [cast]
            return rank_claims(hidden, is_asked=True)
        if len(cases) == 1 and cases[0].is_constant and np.isfinite(cases[0].y).all():
            return rank_claims([make_claim(cases[0], one) for one in _try_beta(cases[0])], is_asked=True)
        if not cases:
            return ()
        if np.ptp(cases[0].y[cases[0].judged]) == 0.0:  # which any divisor makes, if it is large enough
            rows = OVERFLOWS if len(cases) == 1 else ()
            return rank_claims([make_claim(cases[0], one) for one in try_all(cases[0], rows)])
        if len(cases) == 1 and cases[0].count == 1 and np.isnan(cases[0].y).all():
            found = try_all(cases[0], DDOFS) if cases[0].eps else _find_parts(cases[0], None)  # 0 / 0
            return rank_claims([make_claim(cases[0], one) for one in found], is_asked=True)
        claims = _open(tuple(cases), in_parts=in_parts)
        if cases[0].arithmetic < _SHORTER and (not claims or claims[0].rank > 1.0):
            claims += _open(_list_careless(tuple(cases)), in_parts=in_parts)
        own = next((case for case in cases if claims and case.plan is claims[0].plan), None)
        if own is not None and own.divisor.size == 1 and claims[0].numbers:  # its statistics explain as much
            claims += [claim._replace(rank=claims[0].rank) for claim in recover(own)]
        return keep_first(sorted(claims, key=lambda claim: claim.rank))


_SHORTER = 2.0**-23
"""The machine epsilon of float32, in which results of float64 may have been calculated."""


@functools.lru_cache(maxsize=128)  # of each case, every stage asks
def _calculate_shorter(case: Case) -> Case:
    """Return the case with arithmetic in float32, which allows larger errors than that of float64."""
    return change_case(case, precision="float32")


@functools.lru_cache(maxsize=2)  # they are the same where parts of y are looked at
def _list_careless(cases: tuple[Case, ...]) -> tuple[Case, ...]:
    """Return the cases with arithmetic in float32; empty if y is right within its rounding in any of them.

    Cases are left out if neither x nor y (`may_be_of_float32`) nor the divisors of y are of float32.
    """
    are_short = may_be_of_float32(cases[0].x, cases[0].y)
    shown = (case for case in cases if are_short or weigh_few_bits(case, _BITS_OF_FLOAT32) >= CERTAIN)
    careless = tuple(map(_calculate_shorter, shown))
    return careless if all(case.differs.any() for case in careless) else ()


_BITS_OF_FLOAT32 = 24


def _open(cases: tuple[Case, ...], *, in_parts: bool) -> list[Claim]:
    """Return the claims of the first stage that has any: one fault, two faults, or faults in a part of y.

    Empty if no stage has any. Parts of y are tried only if `in_parts`.
    """
    is_finite = any(np.isfinite(case.y).any() for case in cases)
    for stage in (try_rows, try_pairs) if is_finite else ():
        if found := _list_claims(cases, stage):
            return list(found)
    if not in_parts:
        return []
    found = _list_claims(cases, _find_parts if len(cases) == 1 else _find_parts_of_right)
    if not any(claim.rank <= 1.0 for claim in found):  # two faults are no likelier than one
        found += _list_claims(cases, _find_beside_copies)
    return sorted(found, key=lambda claim: claim.rank)


@functools.lru_cache(maxsize=4)  # what holds in all of y is asked for again before parts of it are looked at
def _list_claims(cases: tuple[Case, ...], stage: Callable[[Case], Iterable[Found]]) -> tuple[Claim, ...]:
    """Return the claims of one stage of the search, ranked within each case, in the order of the cases.

    `stage` returns the findings for a case. Those that may be rounding (`may_be_rounding`) make no claim.
    """
    is_asked = len(cases) == 1
    find = _find_most_likely if stage in (try_rows, try_pairs) and not is_asked else _find_all
    claims = (
        [make_claim(case, one) for one in find(case, stage) if not may_be_rounding(case, one)] for case in cases
    )
    ranked = (rank_claims(some, is_asked=is_asked) for some in claims)
    return tuple(itertools.chain.from_iterable(ranked))


@functools.lru_cache(maxsize=128)  # of each case, what holds in all of y is asked for with two precisions
def _find_all(case: Case, stage: Callable[[Case], Iterable[Found]]) -> tuple[Found, ...]:
    return tuple(stage(case))


def _find_most_likely(case: Case, stage: Callable[[Case], Iterable[Found]]) -> tuple[Found, ...]:
    """Return the findings of a stage of the search for a case.

    A case with arithmetic in float64 is first tried with float32, which allows larger errors: if that finds
    nothing, the tuple is empty.
    """
    if case.arithmetic < _SHORTER and not _find_all(_calculate_shorter(case), stage):
        return ()
    return _find_all(case, stage)


def recover(case: Case) -> tuple[Claim, ...]:
    """Return claims with statistics or parameters recovered from y, which no fault of a table explains.

    Empty if y is not within rounding of any such result.
    """
    with np.errstate(all="ignore"):
        claims = [one for one in (make_claim(case, one) for one in find_unknown(case)) if one.bits >= CERTAIN]
        if claims and claims[0].fault.id == UNKNOWN["divisor"].id:
            maybe = [case.hold((find_fault("stats-one-pass"),), (variant,)) for variant in may_cancel(case)]
            claims += [make_claim(case, one)._replace(rank=claims[0].rank) for one in maybe]
        for fault, _, other in list_others(case, GATE_ORDERS) if claims else ():
            for one in find_unknown(other):
                beside = one._replace(faults=(fault, *one.faults), variants=(*one.variants, NOTHING))
                claims.append(make_claim(other, beside)._replace(rank=claims[0].rank))
        return tuple(claims)


def _try_beta(case: Case) -> Iterator[Found]:
    """Yield the findings that all of y is right with another beta, for an x whose groups have equal values.

    Nothing if no beta was given, or if y has no more values than beta.
    """
    if case.has_beta and case.y.size > case.beta.size:
        found = [one for one in try_all(case, PARAMETERS) if one.share == 1.0]
        yield from (one for one in found if one.variants[0].gamma is None)
        yield from () if found else find_unknown(case)


def _find_parts_of_right(case: Case) -> Iterator[Found]:
    """Yield the findings of `_find_parts`, with the norm's statistics right outside the region.

    It is meant for one of several norms that y may be the result of.
    """
    return _find_parts(case, ())


_OF_GROUPS = tuple(row for row in STATISTICS if row.id != "stats-shard")
"""The rows of statistics that are tried beside a wrong region, which may hide all parts of a group but one."""


def _find_parts(case: Case, rows: Sequence[Row] | None = _OF_GROUPS) -> Iterator[Found]:
    """Yield findings that only a region of y is wrong; outside, y is the norm's result, right or with a fault.

    Each also says what fills the region, or only that it is wrong. The region may be a few scattered values.
    `rows` are the rows of fault tables that are tried outside, in addition to those of `try_rest`; None for no
    fault outside.
    """
    every = () if rows is None else (*try_all(case, rows), *try_rest(case))
    tried = [one for one in every if one.share >= LIKELY]
    right = Found((), (), case.right, ~case.differs)
    whole = [right, *(one for one in tried if one.moves(right) and _holds_beyond_a_group(case, one))]
    for one in sorted(whole, key=lambda one: -one.share)[:_MOST_WHOLE]:
        region = find_any_region(case, ~one.explained)
        if region is None and not np.isfinite(case.y).any():
            region = IndexRegion("", np.ones(case.y.shape, np.bool_))
        if region is not None:
            yield from _tell_region(case, one, region, (*STATISTICS, *REST))


def _holds_beyond_a_group(case: Case, one: Found) -> bool:
    """Whether a finding's numbers hold in several groups: a number of one alone is its mean or divisor."""
    if one.is_fitted or not ANY_NUMBER.issuperset(fault.id for fault in one.faults):
        return not one.is_fitted
    holds = one.explained.mean(case.axes) >= LIKELY
    return bool(holds.size == 1 or np.count_nonzero(holds) > 1)


def _tell_region(case: Case, one: Found, region: IndexRegion, rows: Sequence[Row]) -> Iterator[Found]:
    """Yield the findings for a wrong region of y: what fills it, or else that it is wrong.

    If `one` has no faults, 0, x, NaN, infinity and the faults of `rows` are tried inside the region. If none
    fits, the median error there must be at least 16 rounding bounds, otherwise nothing is yielded. Then the
    findings are other numbers, gamma among them, with which all of y is right; without such numbers, that the
    region is wrong.

    Parameters
    ----------
    case : Case
    one : Found
        The explanation of y outside the region: the norm's right result, or its result with a fault.
    region : IndexRegion
    rows : sequence of Row
        Rows of fault tables to try inside the region. If it is empty, other numbers are not looked for either.
    """
    rest = one._replace(explained=one.explained | region.mask, region=region)
    inside = [] if one.faults else [*_find_inside(case, region, rows)]
    yield from (other._replace(region=region, explained=rest.explained) for other in inside)
    if inside or not _lies_far(case, rest):
        return
    unknown = [*find_unknown(case)] if rows and not one.faults else []
    if any(other.variants[0].gamma is not None for other in unknown):
        yield from unknown
    else:
        fault = OF_REGIONS[region.kind].fault
        yield rest._replace(faults=(*one.faults, fault), variants=(*one.variants, Variant(numbers=1)))


def find_places(case: Case) -> tuple[Claim, ...]:
    """Return claims that y has its rows in another order, or that a part of y is wrong, and what fills it.

    Empty without such a fault.

    Parameters
    ----------
    case : Case
        A case with values of every group, since these faults may show in few groups.
    """
    with np.errstate(all="ignore"):
        orders = try_all(case, [row for row in ORDER if not row.needs])
        found = [one for one in orders if one.share == 1.0]
        right = Found((), (), case.right, ~case.differs)
        region = None if found else find_any_region(case, case.differs)
        if region is not None:
            in_part = np.any(region.mask.any(case.axes) & ~region.mask.all(case.axes))
            ends_between = in_part and case.step > 1  # the values that were taken
            found += () if ends_between else _tell_region(case, right, region, ())
        return rank_claims([make_claim(case, one) for one in found], is_asked=True)


def _find_beside_copies(case: Case) -> Iterator[Found]:
    """Yield findings of two faults: a region filled with 0, x, NaN or infinity, and a fault of y outside it.

    Regions of fewer than 8 values are left out, and those where what fills them is about the right result.
    """
    for row in OF_COPIES:
        for copy in row.vary(case):
            assert copy.result is not None  # of every row of copies
            region = find_region(case, case.differs & (case.y == copy.result))
            if region is None or np.count_nonzero(region.mask) < _LEAST_SHOWN:
                continue
            if is_near(copy.result[region.mask], case.right.values[region.mask]):  # rounding makes it so
                continue
            rest = change_case(case, y=np.where(region.mask, np.nan, case.y))
            own = rest.explains(rest.right).mean()
            for one in itertools.chain(try_statistics(rest), try_all(rest, REST)):
                if (one.explained | region.mask).all() and one.share > own:
                    faults, variants = (*one.faults, row.fault), (*one.variants, copy)
                    everywhere = np.ones_like(one.explained)
                    yield one._replace(faults=faults, variants=variants, explained=everywhere, region=region)


def _find_inside(case: Case, region: IndexRegion, rows: Sequence[Row]) -> Iterator[Found]:
    """Yield the findings with which y is right in all of a region: x, 0, NaN or infinity, or a fault of `rows`.

    In regions of fewer than 8 values, and for a y without a finite value, only NaN and infinity are tried.
    """
    is_odd = np.count_nonzero(region.mask) < _LEAST_SHOWN or not np.isfinite(case.y).any()
    is_padding = not (case.y.any(where=region.mask) or (case.shows_norm & region.mask).any())
    copies = NOT_FINITE if is_odd else OF_COPIES[1:2] if is_padding else OF_COPIES  # which no screen tells
    tried = (case.hold((row.fault,), (variant,)) for row in copies for variant in row.vary(case))
    others = try_all(case, () if is_odd or is_padding else rows)
    return (one for one in itertools.chain(tried, others) if one.explained[region.mask].all())


_LEAST_SHOWN = 8
"""The fewest values of a region whose content is named."""


_MOST_WHOLE = 8
"""The most explanations whose unexplained values are examined, those that explain most of y first."""


_FAR = 16.0
"""The least median error of wrong values, in rounding bounds; smaller errors are a sign of other arithmetic."""


def _lies_far(case: Case, one: Found) -> bool:
    """Whether the median error of a region's values is at least 16 rounding bounds."""
    assert one.region is not None
    off = np.abs(case.y - one.prediction.values)[one.region.mask] / one.prediction.allowed[one.region.mask]
    return float(np.median(np.nan_to_num(off, nan=math.inf))) >= _FAR
