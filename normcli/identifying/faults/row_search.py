"""Trials of the rows of fault tables on a case, alone or in pairs.

A finding (or a variant, a kernel's numbers) explains the values of y that are within rounding of its result.
"""

from __future__ import annotations

import functools
import itertools
from typing import TYPE_CHECKING

import numpy as np

from normcli.checking.ulp import measure_unit
from normcli.identifying.faults.case_sampling import change_case
from normcli.identifying.faults.claim import ONE_NUMBER, OVERFLOWS, REST, STATISTICS, WITHIN_GROUPS
from normcli.identifying.faults.fault_evidence import OF_A_NUMBER, OFF_EXACT, weigh_statistics
from normcli.identifying.faults.tables.around import AROUND
from normcli.identifying.faults.tables.dividing import EPS, OTHER_EPS
from normcli.identifying.faults.tables.gating import GATES
from normcli.identifying.faults.tables.parameters import PARAMETERS
from normcli.identifying.faults.tables.places import ORDER
from normcli.identifying.faults.thin_case import LIKELY, goes_with_x, thin_out
from normcli.identifying.faults.variant import Found, Variant, cut_at, find_share, is_near
from normcli.identifying.models.divisor_fit import COMMON_EPS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from normcli.checking.fault import Fault, Row
    from normcli.dtypes import Floats
    from normcli.identifying.faults.case import Case


def try_rows(case: Case) -> Iterable[Found]:
    """Return the findings with one fault, or one fault and another eps, that explain all of y.

    Of findings with equal faults, only those with the most evidence are returned.
    """
    every = (*try_statistics(case), *try_rest(case))
    return keep_likeliest(case, (one for one in every if one.share == 1.0))


def try_statistics(case: Case) -> Iterator[Found]:
    """Return the findings with a fault of statistics: where y is no line in most groups, of parts of groups."""
    if case.has_moments and _has_lines(case, _MOSTLY * float(np.isfinite(case.y).mean())):
        return try_all(case, STATISTICS)
    return try_all(case, WITHIN_GROUPS, _varies_in_groups)


def keep_likeliest(case: Case, every: Iterable[Found]) -> list[Found]:
    """Return findings, without those that have the faults of another one and over 8 bits less evidence.

    The evidence is that of the statistics recovered from y, minus 12 bits for each fitted number. If statistics
    are not comparable, only the fitted numbers count. Another eps and another place of eps are taken for one
    fault.
    """
    places = dict.fromkeys((row.fault for row in EPS), OTHER_EPS.fault)
    found: list[tuple[tuple[Fault, ...], float, Found]] = []
    for one in every:
        bits = (weigh_statistics(case, one.variants[0]) or 0.0) - OF_A_NUMBER * one.numbers
        found.append((tuple(places.get(fault, fault) for fault in one.faults), bits, one))
    best = {faults: bits for faults, bits, _ in sorted(found, key=lambda each: each[1])}
    return [one for faults, bits, one in found if bits > best[faults] - _AS_LIKELY]


def try_exact(case: Case) -> list[Found]:
    """Return the findings of one number with which every y, within rounding, is exact to two last places.

    Far off centre, bounds of rounding hide such a number. Empty for fewer than four groups, whose means and
    divisors a kernel's rounding may change alike, and if half of y is within 16 units in the last place.
    """
    unit, (most, least) = measure_unit(np.nan_to_num(case.y), case.dtype), OFF_EXACT[-1]
    off = np.abs(case.y - case.right.values)[case.judged] / unit[case.judged]
    if case.divisor.size < _LEAST_GROUPS or np.median(off) < least:
        return []
    tried = (one for one in try_all(case, ONE_NUMBER) if not one.is_fitted)
    exact = (
        one for one in tried if np.all((np.abs(case.y - one.prediction.values) <= most * unit) | ~case.judged)
    )
    return keep_likeliest(case, exact)


_LEAST_GROUPS = 4
"""The fewest groups in which one number shows beside rounding."""

_AS_LIKELY = 8.0
"""Findings with equal faults are as likely as the best of them with at most so many bits less evidence."""


@functools.lru_cache(maxsize=64)  # of each case, and again where parts of y are looked at
def try_rest(case: Case) -> tuple[Found, ...]:
    """Return the findings that explain at least 30 % of y, with one fault that is not of statistics."""
    return tuple(one for one in try_all(case, REST) if one.share >= LIKELY)


_MOSTLY = 0.5
"""Faults of statistics are tried if at least this part of finite y lies on a line a · x + b of its group."""


def try_all(
    case: Case, rows: Sequence[Row], may_explain: Callable[[Case, Variant], bool] | None = None
) -> Iterator[Found]:
    """Yield a finding for each variant (a kernel's numbers) that rows of fault tables make of a case.

    A variant that explains less than 15 % of a sample is left out. Without `may_explain`, a variant with
    another variance is also tried with another usual eps, if the divisors recovered from y are near one.

    Parameters
    ----------
    case : Case
    rows : sequence of Row
    may_explain : callable or None
        Takes the case and a variant, and returns whether to try it; None to try all.
    """
    for row in _choose(case, rows):
        fault = row.fault
        for variant in row.vary(case):
            if may_explain is None or may_explain(case, variant):
                yield from _try(case, (fault,), (variant,))
            if may_explain is not None or variant.square is None:
                continue  # two faults are enough, and a y that is no line in a group shows no eps
            if (eps := _find_eps(case, variant.square)) is not None:
                moved = variant._replace(square=None, divisor=case.root(variant.square, eps))
                of_eps = Variant(values={"eps": f"{eps:g}", "asked": f"{case.eps:g}"}, numbers=1)
                yield from _try(case, (fault, OTHER_EPS.fault), (moved, of_eps))


def _choose(case: Case, rows: Sequence[Row]) -> Sequence[Row]:
    """Return the rows that may explain y: if y does not depend on x, only those of order and of overflow."""
    return rows if goes_with_x(case) else [row for row in rows if row in (*ORDER, *OVERFLOWS)]


def _varies_in_groups(case: Case, variant: Variant) -> bool:
    """Return True if a variant's result need not be a line a · x + b in each group.

    That is so if it has a whole result, or a mean or a divisor with several numbers for one group.
    """
    shapes = (case.find_divisor(variant).shape, () if variant.mean is None else variant.mean.shape)
    return variant.result is not None or any(shape not in ((), case.divisor.shape) for shape in shapes)


def _is_near_line(case: Case, variant: Variant) -> bool:
    """Return True if a variant's divisors are within 2 % of those recovered from y, in half of the groups.

    True also if the variant has more than one divisor for a group.
    """
    divisor = case.find_divisor(variant)
    return divisor.shape != case.divisor.shape or is_near(case.used.divisor, divisor)


def _try(case: Case, faults: tuple[Fault, ...], variants: tuple[Variant, ...]) -> Iterator[Found]:
    """Yield the finding of some faults; nothing if the first variant explains less than 15 % of a sample."""
    few = thin_out(case)
    if few.is_likely(few.cut(variants[0])):
        yield case.hold(faults, variants)


_BESIDE_EPS = 0.1
"""The largest relative difference of the eps that y shows from a usual one."""


def _find_eps(case: Case, square: Floats) -> float | None:
    """Return a usual eps, not the plan's, that is within 10 % of the eps that y shows; None without one.

    y shows the median over groups of the eps with which `square`, the variance of each group, becomes the
    divisor recovered from y. None also for norms without eps.
    """
    if case.plan.spec.eps is None:
        return None
    shown = float(np.median(case.unroot(case.used.divisor, square)))
    near = [eps for eps in COMMON_EPS if eps and abs(shown - eps) <= _BESIDE_EPS * eps and eps != case.eps]
    return near[0] if near else None


def try_pairs(case: Case) -> Iterator[Found]:
    """Yield the findings that explain all of y with two faults.

    These are a fault of gamma and beta with a fault of statistics, another input or gate with a fault of
    statistics, or a fault of the gate with one of gamma and beta or another of the gate.
    """
    for fault, variant, moved in itertools.islice(_list_moved(case), _MOST_MOVED):
        for one in try_all(moved, _BESIDE, _is_near_line):
            if one.share == 1.0 and not one.is_fitted:  # each group's divisor would have any factor
                yield one._replace(faults=(*one.faults, fault), variants=(*one.variants, variant))
    for fault, variant, other in list_others(case, (*AROUND, *GATES)):
        rows = _BESIDE if other.centres else [row for row in _BESIDE if row.id not in _CONSTANT]
        yield from keep_likeliest(case, _try_beside(fault, variant, other, rows))
    if case.gate is not None or case.gated_input is not None:
        yield from keep_likeliest(case, _try_gates(case))


_BESIDE = tuple(row for row in STATISTICS if row.id != "stats-weighted")
"""The rows of statistics that are tried beside another fault: not those that have thousands of forms."""

_CONSTANT = ("stats-constant", "stats-no-divisor")
"""The rows of one divisor for all groups: without a mean, nothing of a norm is left beside another input."""


def _try_beside(fault: Fault, variant: Variant, other: Case, rows: Sequence[Row]) -> Iterator[Found]:
    """Yield the findings that explain all of y with a fault of `rows` beside one that made the case `other`."""
    is_of_statistics = bool(rows) and rows[0] in STATISTICS
    for found in try_all(other, rows, _is_near_line if is_of_statistics else None):
        if found.share == 1.0 and not found.is_fitted:  # each group's divisor would have any factor
            yield found._replace(faults=(fault, *found.faults), variants=(variant, *found.variants))


def _try_gates(case: Case) -> Iterator[Found]:
    """Yield the findings that explain all of y with a fault of the gate, and another of gate, gamma or beta.

    Of two faults of the gate, a roll is applied before the other, and a rounding after it.
    """
    ends = ("rolled",), ("rounded",), ("activation", "bare")
    rolled, rounded, acts = ([row for row in GATES if row.id.endswith(end)] for end in ends)
    others = [row for row in GATES if row not in (*rolled, *rounded)]
    for rows, seconds in ((rolled, (*acts, *rounded)), (others, rounded), (PARAMETERS, rounded)):
        for row in rows:
            for variant in row.vary(case):
                if variant.other is None and (variant.numbers or rows is not PARAMETERS):
                    continue
                other = variant.other or _use_parameters(case, variant)
                tried = [one for one in seconds if _shows(other, one)]
                tried += () if rows is PARAMETERS else PARAMETERS
                yield from _try_beside(row.fault, variant, other, tried)


def _shows(case: Case, row: Row) -> bool:
    """Return True if a sample of y may have the gate's fault of a row, in addition to the fault of the case.

    For a gate behind the norm, most of the sample has to be explained. For one before the norm, True for any
    fault but a rounded gate, which changes the statistics too: then the sample has to be near the right result.
    """
    few = thin_out(case).case
    if case.gate is not None:
        return any(find_share(few.explains(few.predict(one))) > _MOSTLY for one in row.vary(few))
    near = np.median(np.abs(few.y - few.right.values)) <= _OF_ROUNDED_GATE * np.median(np.abs(few.y))
    return bool(near) or not row.id.endswith("rounded")


_OF_ROUNDED_GATE = 2.0**-6
"""The largest median error of a y whose gate was rounded to half precision, as a part of the median |y|."""


def list_others(case: Case, rows: Sequence[Row]) -> Iterator[tuple[Fault, Variant, Case]]:
    """Yield the faults of `rows` that mean another input or gate: fault, variant, and the case with it.

    Only cases are yielded in which y is, within rounding, a line a · x + b in every group.
    """
    for row in _choose(case, rows):
        for variant in row.vary(case):
            if variant.other is not None and variant.other.has_moments and _has_lines(variant.other):
                yield row.fault, variant, variant.other


_MOST_MOVED = 24
"""The most faults of gamma and beta with which faults of statistics are tried together."""


def _list_moved(case: Case) -> Iterator[tuple[Fault, Variant, Case]]:
    """Yield each fault of gamma and beta, its variant, and the case with the variant's gamma and beta.

    Left out are cases in which y before gamma and beta is not a line a · x + b in every group, within rounding,
    or falls with x in most groups, and a gamma and beta that are the case's own. Nothing for groups of at most
    two values, which lie on a line whatever y is.
    """
    for row in _choose(case, PARAMETERS) if case.count > _ON_ANY_LINE else ():
        for variant in row.vary(case):
            moved = _use_parameters(case, variant)
            is_own = np.array_equal(moved.gamma, case.gamma) and np.array_equal(moved.beta, case.beta)
            if (
                not is_own
                and _may_have_lines(case, moved.gamma, moved.beta)
                and _has_lines(moved)
                and np.count_nonzero(moved.used.divisor < 0.0) <= np.count_nonzero(moved.used.divisor > 0.0) / 2
            ):
                yield row.fault, variant, moved


def _use_parameters(case: Case, variant: Variant) -> Case:
    """Return the case with a variant's gamma and beta; what was calculated of x alone stays."""
    gamma = case.gamma if variant.gamma is None else variant.gamma
    return change_case(case, gamma=gamma, beta=case.beta if variant.beta is None else variant.beta)


_ON_ANY_LINE = 2
"""The most values through which some line a · x + b leads exactly."""


_UNLIKE_LINES = 0.05
"""Values of a group do not lie near a line that leaves more than this part of their variance unexplained."""


def _may_have_lines(case: Case, gamma: Floats, beta: Floats) -> bool:
    """Whether (y − beta) / gamma lies near a line a · x + b in at least half of the groups of a sample.

    It is a cheap test for thousands of variants.
    """
    (few, places), (x, square) = thin_out(case), _centre(case)
    gamma, beta = (cut_at(p, places) if p.ndim else p for p in (gamma, beta))
    y = (few.y - beta) / gamma
    y = y - few.average_judged(y)
    left = 1.0 - few.average_judged(x * y) ** 2 / (square * few.average_judged(y * y))
    return bool(2 * np.count_nonzero(left > _UNLIKE_LINES) <= left.size)


@functools.lru_cache(maxsize=2)  # of one case, each other gamma and beta asks
def _centre(case: Case) -> tuple[Floats, Floats]:
    """Return a sample's x − mean of its group, and the mean square of these differences in each group."""
    few = thin_out(case).case
    x = few.x - few.average_judged(few.x)
    return x, few.average_judged(x * x)


def _has_lines(case: Case, least: float = 1.0) -> bool:
    """Return True if a share `least` of y or more is, within rounding, a fitted line a · x + b of its group.

    The share has to be reached in a sample too, which is tried first.
    """
    every = thin_out(case).case, case
    return all(find_share(one.explains(one.predict(Variant(*one.used)))) >= least for one in every)
