"""The rows of tables, tried on a case by themselves or beside another: how much of y each explains."""

from __future__ import annotations

import functools
import itertools
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from normcli.identifying.faults.claim import (
    REST,
    STATISTICS,
    WITHIN_GROUPS,
)
from normcli.identifying.faults.open_case import LIKELY, goes_with_x, thin_out
from normcli.identifying.faults.tables.around import AROUND
from normcli.identifying.faults.tables.dividing import OTHER_EPS
from normcli.identifying.faults.tables.parameters import PARAMETERS
from normcli.identifying.faults.tables.places import ORDER
from normcli.identifying.faults.variant import Found, Variant, cut_at, is_near
from normcli.identifying.models.evidence import COMMON_EPS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from normcli.checking.fault import Fault, Row
    from normcli.dtypes import Floats
    from normcli.identifying.faults.case import Case


def try_rows(case: Case) -> Iterable[Found]:
    """Yield what explains y with one row."""
    if case.has_moments and _has_lines(case, _MOSTLY):
        statistics = try_all(case, STATISTICS)
    else:
        statistics = try_all(case, WITHIN_GROUPS, _varies_in_groups)
    return keep_shortest(one for one in (*statistics, *try_rest(case)) if one.share == 1.0)


def keep_shortest(every: Iterable[Found]) -> list[Found]:
    """Return what was found, of one fault with the fewest fitted numbers: others say it in more digits."""
    found = [*every]
    fewest: dict[tuple[Fault, ...], int] = {}
    for one in found:
        fewest[one.faults] = min(one.numbers, fewest.get(one.faults, one.numbers))
    return [one for one in found if one.numbers == fewest[one.faults]]


@functools.lru_cache(maxsize=64)  # of each case, and again where parts of y are looked at
def try_rest(case: Case) -> tuple[Found, ...]:
    """Return what explains a part of y at least, but for statistics."""
    return tuple(one for one in try_all(case, REST) if one.share >= LIKELY)


_MOSTLY = 0.5
"""The part of the values that lie on the lines of their groups where statistics alone are wrong, at least."""


def try_all(
    case: Case, rows: Sequence[Row], may_explain: Callable[[Case, Variant], bool] | None = None
) -> Iterator[Found]:
    """Yield what the variants of some rows explain: of all variants, or of those that may explain most."""
    for row in _choose(case, rows):
        fault = row.fault
        for variant in row.vary(case):
            if may_explain is None or may_explain(case, variant):
                yield from _try(case, (fault,), (variant,))
            if may_explain is _varies_in_groups or variant.square is None:
                continue  # where y is no line in a group, it shows no eps
            if (eps := _find_eps(case, variant.square)) is not None:
                moved = variant._replace(square=None, divisor=case.root(variant.square, eps))
                of_eps = Variant(values={"eps": f"{eps:g}", "asked": f"{case.eps:g}"}, numbers=1)
                yield from _try(case, (fault, OTHER_EPS.fault), (moved, of_eps))


def _choose(case: Case, rows: Sequence[Row]) -> Sequence[Row]:
    """Return the rows that may explain y: of a y that does not go with x, the orders alone."""
    return rows if goes_with_x(case) else [row for row in rows if row in ORDER]


def _varies_in_groups(case: Case, variant: Variant) -> bool:
    """Whether a variant makes more than one line of x in a group."""
    shapes = (case.find_divisor(variant).shape, () if variant.mean is None else variant.mean.shape)
    return variant.result is not None or any(shape not in ((), case.divisor.shape) for shape in shapes)


def _is_near_line(case: Case, variant: Variant) -> bool:
    """Whether a variant has about the divisors that y shows, or divisors that differ within groups."""
    divisor = case.find_divisor(variant)
    return divisor.shape != case.divisor.shape or is_near(case.used.divisor, divisor)


def _try(case: Case, faults: tuple[Fault, ...], variants: tuple[Variant, ...]) -> Iterator[Found]:
    """Yield the values of y that a variant explains, unless a sample shows that they are few."""
    few = thin_out(case)
    if few.is_likely(few.cut(variants[0])):
        yield case.hold(faults, variants)


_BESIDE_EPS = 0.1
"""The largest relative difference of the eps that y shows from a usual one."""


def _find_eps(case: Case, square: Floats) -> float | None:
    """Return the eps in use that makes the divisors of y with another square, if it is not the plan's."""
    if case.plan.spec.eps is None:
        return None
    shown = float(np.median(case.unroot(case.used.divisor, square)))
    near = [eps for eps in COMMON_EPS if eps and abs(shown - eps) <= _BESIDE_EPS * eps and eps != case.eps]
    return near[0] if near else None


def try_pairs(case: Case) -> Iterator[Found]:
    """Yield what explains y with a fault in gamma and beta, or around the norm, and one in the statistics."""
    for fault, variant, moved in itertools.islice(_list_moved(case), _MOST_MOVED):
        for one in try_all(moved, STATISTICS, _is_near_line):
            if one.share == 1.0 and not one.is_fitted:  # each group's divisor would have any factor
                yield one._replace(faults=(*one.faults, fault), variants=(*one.variants, variant))
    yield from keep_shortest(one for one in _try_eps_of_others(case) if one.share == 1.0)


def _try_eps_of_others(case: Case) -> Iterator[Found]:
    """Yield what another tensor or gate explains with another eps."""
    for fault, variant, other in list_others(case, AROUND):
        assert variant.noise is not None  # of every other case
        for of_eps in OTHER_EPS.vary(other):
            right = other.predict(of_eps)
            noise = variant.noise + right.allowed - other.right.allowed
            moved = variant._replace(result=right.values, noise=noise)
            yield from _try(case, (fault, OTHER_EPS.fault), (moved, of_eps))


def list_others(case: Case, rows: Sequence[Row]) -> Iterator[tuple[Fault, Variant, Case]]:
    """Yield each fault around the norm with which y is a line in every group of another tensor's case."""
    for row in _choose(case, rows):
        for variant in row.vary(case):
            if variant.other is not None and variant.other.has_moments and _has_lines(variant.other):
                yield row.fault, variant, variant.other


_MOST_MOVED = 24
"""Other gammas and betas beside which statistics are looked at: where these are of groups, all leave lines."""


def _list_moved(case: Case) -> Iterator[tuple[Fault, Variant, Case]]:
    """Yield each fault in gamma and beta with which y is a line of x in every group, and the case with them."""
    for row in _choose(case, PARAMETERS):
        for variant in row.vary(case):
            gamma = case.gamma if variant.gamma is None else variant.gamma
            beta = case.beta if variant.beta is None else variant.beta
            moved = replace(case, gamma=gamma, beta=beta)
            if _may_have_lines(case, gamma, beta) and _has_lines(moved):
                yield row.fault, variant, moved


_UNLIKE_LINES = 0.05
"""The part of a group's square that a line through it leaves, on average, where values lie on none."""


def _may_have_lines(case: Case, gamma: Floats, beta: Floats) -> bool:
    """Whether sampled values of most groups lie near lines: a cheap test for thousands of variants."""
    few, places = thin_out(case)
    gamma, beta = (cut_at(p, places) if p.ndim else p for p in (gamma, beta))
    y = (few.y - beta) / gamma
    y, x = y - few.average(y), few.x - few.average(few.x)
    left = 1.0 - few.average(x * y) ** 2 / (few.average(x * x) * few.average(y * y))
    return bool(2 * np.count_nonzero(left > _UNLIKE_LINES) <= left.size)


def _has_lines(case: Case, least: float = 1.0) -> bool:
    """Whether y is a line of x in each group, but for some values: first of some values, then of all."""
    every = thin_out(case).case, case
    return all(float(one.explains(one.predict(Variant(*one.used))).mean()) >= least for one in every)
