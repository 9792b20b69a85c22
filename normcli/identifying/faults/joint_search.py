"""The joints of a norm, opened one by one: which faults explain a kernel's output, or a part of it."""

from __future__ import annotations

import functools
import itertools
import math
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from normcli.identifying.faults.claim import (
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
from normcli.identifying.faults.open_case import LIKELY, thin_out
from normcli.identifying.faults.row_search import (
    keep_shortest,
    list_others,
    try_all,
    try_pairs,
    try_rest,
    try_rows,
)
from normcli.identifying.faults.tables.dividing import EPS
from normcli.identifying.faults.tables.parameters import PARAMETERS
from normcli.identifying.faults.tables.places import CAST, NOT_FINITE, OF_COPIES, OF_REGIONS, ORDER
from normcli.identifying.faults.unnamed_fault import find_region, find_unknown, tell_places
from normcli.identifying.faults.variant import NOTHING, Found, IndexRegion, Variant
from normcli.identifying.models.evidence import COMMON_EPS
from normcli.identifying.models.weight import CERTAIN, choose_bits

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from normcli.checking.fault import Row
    from normcli.identifying.faults.case import Case


def open_joints(cases: Sequence[Case], *, in_parts: bool = True) -> tuple[Claim, ...]:
    """Return the faults that explain y, the likeliest first; nothing where it is right, or none does.

    Parameters
    ----------
    cases : sequence of Case
        One y as each norm that it may be.
    in_parts : bool
        Whether a fault may hold in a part of y alone.

    Notes
    -----
    Each row of the tables is tried by itself. Where none explains y, gamma and beta of each row are tried with
    the statistics of each other; and then parts of y by themselves.
    """
    with np.errstate(all="ignore"):
        right = next((case for case in cases if not case.differs.any()), None)
        if right is not None:
            causes = (CAST.fault.words.format(dtype=right.saved),)
            cast = Claim((CAST.fault,), right.plan, causes, misfit=0.0, bits=math.inf, rank=1.0)
            return () if right.saved is None else (cast,)
        if len(cases) == 1 and cases[0].is_constant and np.isfinite(cases[0].y).all():
            return rank_claims([make_claim(cases[0], one) for one in _try_beta(cases[0])], is_asked=True)
        if not cases:
            return ()
        if np.ptp(cases[0].y) == 0.0:  # which any divisor makes, if it is large enough
            rows = OVERFLOWS if len(cases) == 1 else ()
            return rank_claims([make_claim(cases[0], one) for one in try_all(cases[0], rows)])
        if len(cases) == 1 and cases[0].count == 1 and np.isnan(cases[0].y).all():
            return rank_claims([make_claim(cases[0], one) for one in try_all(cases[0], DDOFS)])
        claims = _open(tuple(cases), in_parts=in_parts)
        if cases[0].arithmetic < _SHORTER and (not claims or claims[0].rank > 1.0):
            claims += _open(_list_careless(tuple(cases)), in_parts=in_parts)
        return keep_first(sorted(claims, key=lambda claim: claim.rank))


def choose_case_eps(case: Case) -> Case:
    """Return a case with the eps in use that leaves the fewest values unexplained, if at most half of them."""
    if not case.has_moments or case.plan.spec.eps is None:
        return case
    with np.errstate(all="ignore"):
        few = thin_out(case).case
        shares = {
            eps: float(few.explains(few.predict(Variant(divisor=few.root(few.square, eps)))).mean())
            for eps in (case.eps, *COMMON_EPS)
        }
    best = max(shares, key=lambda eps: shares[eps])
    if best == case.eps or shares[best] < _HALF:
        return case
    return replace(case, plan=case.plan.change_spec(eps=best))


_HALF = 0.5


_SHORTER = 2.0**-23
"""From 1 to the next number of float32, which results of float64 may have been calculated in."""


@functools.lru_cache(maxsize=2)  # they are the same where parts of y are looked at
def _list_careless(cases: tuple[Case, ...]) -> tuple[Case, ...]:
    """Return the cases of kernels that calculate in float32, where that does not explain y."""
    careless = (replace(case, precision="float32") for case in cases)
    return tuple(case for case in careless if case.differs.any())


def _open(cases: tuple[Case, ...], *, in_parts: bool) -> list[Claim]:
    """Return the faults that explain y in one precision: one row where that does, two, or in a part of y."""
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
    """Return the claims of one stage of the search, ranked within their case."""
    claims = (
        [make_claim(case, one) for one in stage(case) if not may_be_rounding(case, one)] for case in cases
    )
    ranked = (rank_claims(some, is_asked=len(cases) == 1) for some in claims)
    return tuple(itertools.chain.from_iterable(ranked))


def recover(case: Case) -> tuple[Claim, ...]:
    """Return the statistics, or gamma and beta, that y used, as no row of a table names them.

    Parameters
    ----------
    case : Case

    Notes
    -----
    An eps that moves no value by more than rounding may still show in all of them together: it has a name.
    """
    with np.errstate(all="ignore"):
        found = (one for one in try_all(case, EPS) if one.share == 1.0 and not may_be_rounding(case, one))
        named = rank_claims([make_claim(case, one) for one in keep_shortest(found)])
        if named:
            return named
        claims = [one for one in (make_claim(case, one) for one in find_unknown(case)) if one.bits >= CERTAIN]
        for fault, _, other in list_others(case, GATE_ORDERS) if claims else ():
            for one in find_unknown(other):
                beside = one._replace(faults=(fault, *one.faults), variants=(*one.variants, NOTHING))
                claims.append(make_claim(other, beside)._replace(rank=claims[0].rank))
        return tuple(claims)


def _try_beta(case: Case) -> Iterator[Found]:
    """Yield what explains y by another beta, which is all that constant groups show."""
    if case.has_beta and case.y.size > case.beta.size:
        found = [one for one in try_all(case, PARAMETERS) if one.share == 1.0]
        yield from (one for one in found if one.variants[0].gamma is None)
        yield from () if found else find_unknown(case)


def _find_parts_of_right(case: Case) -> Iterator[Found]:
    """Yield the same of one of many norms that y may be: other statistics in a part of y are not looked for."""
    return _find_parts(case, ())


def _find_parts(case: Case, rows: Sequence[Row] = STATISTICS) -> Iterator[Found]:
    """Yield what explains y but for a region or a few values, with what stands there."""
    tried = [*(one for one in try_all(case, rows) if one.share >= LIKELY), *try_rest(case)]
    right = Found((), (), case.right, ~case.differs)
    whole = [right, *(one for one in tried if one.moves(right) and not one.is_fitted)]
    for one in sorted(whole, key=lambda one: -one.share)[:_MOST_WHOLE]:
        region = find_region(case, ~one.explained) or _find_few(case, one)
        if region is None and not np.isfinite(case.y).any():
            region = IndexRegion("", np.ones(case.y.shape, np.bool_))
        if region is None:
            continue
        yield from _tell_region(case, one, region, (*STATISTICS, *REST))


def _tell_region(case: Case, one: Found, region: IndexRegion, rows: Sequence[Row]) -> Iterator[Found]:
    """Yield what stands in a region where one row, or the norm, does not explain y; at least where it is."""
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
    """Return in which order rows stand, or in which part y is wrong and what stands there.

    Parameters
    ----------
    case : Case
        Of every group: other faults show in some of them as well.
    """
    with np.errstate(all="ignore"):
        orders = try_all(case, [row for row in ORDER if not row.needs])
        found = [one for one in orders if one.share == 1.0]
        right = Found((), (), case.right, ~case.differs)
        region = None if found else find_region(case, case.differs) or _find_few(case, right)
        in_part = region is not None and np.any(region.mask.any(case.axes) & ~region.mask.all(case.axes))
        if region is not None and not (
            in_part and case.step > 1
        ):  # it may end between the values that were taken
            found += _tell_region(case, right, region, ())
        return rank_claims([make_claim(case, one) for one in found], is_asked=True)


def _find_beside_copies(case: Case) -> Iterator[Found]:
    """Yield what explains y beside a region where 0 or x stands, which no line goes through."""
    for row in OF_COPIES:
        for copy in row.vary(case):
            assert copy.result is not None  # of every row of copies
            region = find_region(case, case.differs & (case.y == copy.result))
            if region is None or np.count_nonzero(region.mask) < _LEAST_SHOWN:
                continue
            rest = replace(case, y=np.where(region.mask, np.nan, case.y))
            own = rest.explains(rest.right).mean()
            for one in try_all(rest, (*STATISTICS, *REST)):
                if (one.explained | region.mask).all() and one.share > own:
                    faults, variants = (*one.faults, row.fault), (*one.variants, copy)
                    everywhere = np.ones_like(one.explained)
                    yield one._replace(faults=faults, variants=variants, explained=everywhere, region=region)


def _find_inside(case: Case, region: IndexRegion, rows: Sequence[Row]) -> Iterator[Found]:
    """Yield what explains all of a region: of a few values, or of all, only that they are not finite."""
    is_odd = np.count_nonzero(region.mask) < _LEAST_SHOWN or not np.isfinite(case.y).any()
    copies = NOT_FINITE if is_odd else OF_COPIES  # which no screen tells: a region may be little of y
    tried = (case.hold((row.fault,), (variant,)) for row in copies for variant in row.vary(case))
    others = try_all(case, () if is_odd else rows)
    return (one for one in itertools.chain(tried, others) if one.explained[region.mask].all())


_LEAST_SHOWN = 8
"""The fewest values of a region whose content is named."""


_MOST_WHOLE = 8
"""Rows whose exceptions are looked at, those with the fewest first."""


_FEW = 0.05
"""The part of the values that may be wrong here and there."""


_FAR = 16.0
"""Units of rounding by which most wrong values are off; nearer ones are a sign of other arithmetic."""


def _lies_far(case: Case, one: Found) -> bool:
    """Whether most values of a region are far from the row's prediction."""
    assert one.region is not None
    off = np.abs(case.y - one.prediction.values)[one.region.mask] / one.prediction.allowed[one.region.mask]
    return float(np.median(np.nan_to_num(off, nan=math.inf))) >= _FAR


def _find_few(case: Case, one: Found) -> IndexRegion | None:
    """Return the region of a few values here and there; None where they are many."""
    wrong = ~one.explained
    count = int(np.count_nonzero(wrong))
    if not 0 < count <= max(1.0, _FEW * wrong.size):
        return None
    merged = wrong.reshape(case.plan.grid.merge_shape(wrong.shape))
    where = tell_places(count, [int(place[0]) for place in np.nonzero(merged)])
    return IndexRegion(where, wrong, "values", choose_bits(wrong.size, count))
