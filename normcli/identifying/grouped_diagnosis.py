"""The diagnosis of a table whose rows are not normalized group by group as was asked."""

from __future__ import annotations

import contextlib
import itertools
from typing import TYPE_CHECKING, Any

import numpy as np

from normcli.checking.check import NORMALIZED
from normcli.checking.half_precision import find_saved_dtype
from normcli.dtypes import get_eps
from normcli.errors import NormError
from normcli.fitting.by_column import number_groups_of
from normcli.fitting.statistics import find_few, find_varying
from normcli.identifying.faults.fault_search import NearNorm
from normcli.identifying.faults.tables.places import OF_REGIONS
from normcli.identifying.grouped_order import OtherRequest, find_labelled_order, find_order, find_other_columns
from normcli.identifying.grouped_scale import find_common_divisor, find_mean_of_others
from normcli.identifying.models.divisor_fit import COMMON_EPS
from normcli.identifying.models.line_fit import fit_lines
from normcli.identifying.question import Diagnosis, Kind
from normcli.identifying.words.phrasing import diagnose_near
from normcli.identifying.words.request_phrasing import diagnose_actual
from normcli.norms.conventions import list_frameworks
from normcli.norms.plan import make_plan
from normcli.norms.rules import EpsMode
from normcli.printable import format_count
from normcli.tensors.mapped import fetch

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from normcli.checking.check import Checked
    from normcli.checking.tally import GroupDifference
    from normcli.identifying.grouped_check import GroupedCheck, GroupedTable
    from normcli.norms.plan import Plan
    from normcli.norms.request import Request


_MOST_ROWS = 1 << 20
"""The most rows in which one line for all groups, or small errors, are looked for."""


_EQUAL = 1.25, 1.0
"""Requests are equally near up to 1.25 times the least of their largest errors, or a machine epsilon more."""


_FEW, _OF_GROUP = 0.05, 0.25
"""A table is right with few wrong values if they are at most this part of all, and of each group's values."""


_FREEDOM, _SMALL, _LINES = 32, 0.02, 1.25
"""Bounds of small errors: the fewest values beyond two of each group, the largest error as a part of the spread
of y, and the largest factor by which fitted lines of the groups reduce the error."""


def _list_other_requests(plan: Plan, request: Request) -> list[OtherRequest]:
    """Return other requests that a table may be the result of: another ddof, eps, eps mode or framework.

    Each has other choices than all before it. Requests without eps are first, then the likelier ones.
    """
    ddof, eps, mode = plan.spec.ddof or 0, plan.spec.eps or 0.0, plan.spec.eps_mode or EpsMode.INSIDE
    every = [OtherRequest(f"--ddof {1 - ddof}", request._replace(ddof=1 - ddof))]
    every += [
        OtherRequest(f"--like {like}", request._replace(like=like, eps=None, ddof=None))
        for like in list_frameworks(plan.norm.name)
    ]
    modes = EpsMode.INSIDE, EpsMode.OUTSIDE
    for other_ddof, other_eps, other_mode in itertools.product((ddof, 1 - ddof), (0.0, *COMMON_EPS), modes):
        changed = {
            f"--eps {other_eps:g}": other_eps != eps,
            f"--eps-mode {other_mode}": other_eps > 0.0 and other_mode is not mode,
            f"--ddof {other_ddof}": other_ddof != ddof,
        }
        options = " ".join(option for option, is_other in changed.items() if is_other)
        changes = request._replace(eps=other_eps, eps_mode=other_mode, ddof=other_ddof)
        every.append(OtherRequest(options, changes))
    different = {_read_convention(plan, request): OtherRequest("", request)}
    for other in every:
        with contextlib.suppress(NormError):
            different.setdefault(_read_convention(plan, other.request), other)
    return sorted([*different.values()][1:], key=lambda other: _read_convention(plan, other.request)[0] > 0)


def _read_convention(plan: Plan, request: Request) -> tuple[float, object, object, object, object]:
    """Return the options that a request's result follows from: eps, its mode, ddof, zero rule, flat rule."""
    grid = plan.grid
    spec = make_plan(request._replace(layout=plan.request.layout), grid.shape, np.dtype("float64")).spec
    return spec.eps or 0.0, spec.eps_mode if spec.eps else None, spec.ddof, spec.zero_rule, spec.flat_rule


def _list_nearest(others: Iterable[OtherRequest], compare: Callable[[Request], Checked]) -> list[OtherRequest]:
    """Return the requests whose exact result a table agrees with, without those clearly further off.

    They are in the given order; requests for which `compare` raises `NormError` are left out.

    Parameters
    ----------
    others : iterable of OtherRequest
    compare : callable
        Returns the comparison of the table with the exact result of a request.
    """
    passing = []
    for other in others:
        with contextlib.suppress(NormError):
            found = compare(other.request).comparisons[NORMALIZED]
            if found.ok:
                unit = get_eps(found.tolerance.dtype) * (found.largest_expected or 1.0)
                passing.append((found.max_abs / unit, other))
    factor, more = _EQUAL
    least = min((off for off, _ in passing), default=0.0)
    return [other for off, other in passing if off <= max(factor * least, least + more)]


def diagnose_groups(found: GroupedCheck) -> Diagnosis | None:
    """Return the diagnosis of a table that differs from the exact result; None without findings.

    It is the first of these that holds: numbers of half precision, rows in another order, a few wrong values,
    rows normalized without groups, another ddof, eps or framework, one divisor for all groups, means without
    the row itself, small errors, with or without another ddof, or the fault of a single group.
    """
    half = None if found.request.dtype is not None else find_saved_dtype(found.table.actual.values)
    if half is not None:
        return _diagnose_half(found, half)
    tally = found.checked.comparisons[NORMALIZED].groups
    assert tally is not None
    differing, others = tally.find_worst(tally.count()), _list_other_requests(found.plan, found.request)
    told = find_labelled_order(found) or find_order(found) or _find_few_wrong(found, differing)
    told = told or _find_other_request(found, differing, others)
    told = told or find_common_divisor(found) or find_mean_of_others(found)
    told = told or _find_small_errors(found, len(differing)) or _find_errors_beside_ddof(found, len(differing))
    told = told or find_other_columns(found, others)
    return told or _examine_group(found, [each.group for each in differing])


def _diagnose_half(asked: GroupedCheck, half: np.dtype[Any]) -> Diagnosis | None:
    """Return the diagnosis of a table that has only numbers of half precision, unlike x.

    If it agrees with the request in that dtype, that is the diagnosis; else it is that of the remaining
    difference, or None.
    """
    found, wide = asked.table.compare(asked.request._replace(dtype=half.name)), asked.table.tensor.values.dtype
    if found.checked.ok:
        cause = f"{found.plan.norm.name} differs: y holds {half} numbers, though x is {wide}"
        return Diagnosis(Kind.NORM, cause, remedy=f"calculate in {wide}, or check as --dtype {half}")
    told = diagnose_groups(found)
    return None if told is None else told._replace(evidence=(f"y holds {half} numbers", *told.evidence))


def _find_few_wrong(found: GroupedCheck, differing: Sequence[GroupDifference]) -> Diagnosis | None:
    """Return the diagnosis of a table that is right except for a few values; None if it is not.

    At most 5 % of all values may be wrong, and 25 % of each group in `differing`, the groups that differ.
    """
    comparison, tensor = found.checked.comparisons[NORMALIZED], found.table.tensor
    wrong, worst, width = comparison.mismatches, comparison.worst, tensor.values.shape[1]
    sizes = np.bincount(found.places)
    are_few = all(each.mismatches <= _OF_GROUP * sizes[each.group // width] for each in differing)
    limit = _FEW if wrong > 1 else _OF_GROUP
    if worst is None or wrong > limit * comparison.compared or not (are_few or wrong == 1):
        return None
    row, place = divmod(worst.place, width)
    column = str(place) if tensor.columns is None else tensor.columns[place]
    where = f"row {row + 1}, column {column}: {worst.actual:.6g}, where {worst.expected:.6g} is right"
    cause = f"{found.plan.norm.name} differs: y is right, except for {format_count(wrong, 'value')}"
    return Diagnosis(Kind.FAULT, cause, (where,), fault=OF_REGIONS["values"].id)


def _find_other_request(
    found: GroupedCheck, differing: Sequence[GroupDifference], others: Sequence[OtherRequest]
) -> Diagnosis | None:
    """Return the diagnosis of rows that were normalized without groups, or by another request; else None."""
    norm, table, width = found.plan.norm.name, found.table, found.table.tensor.values.shape[1]
    if len(found.groups.labels) > 1 and _has_one_line(table):
        every = (OtherRequest("", found.request), *others)
        near = _list_nearest(every, lambda other: table.judge(other)[-1])
        near.sort(key=lambda other: other.option != "")
        if near:
            cause = f"{norm} differs: the rows of all groups were normalized together"
            shown = (f"every value agrees with {near[0].option}",) if near[0].option else ()
            also = tuple(other.option for other in near[1:]) if near[0].option else ()
            remedy = "normalize the rows of each group by its own statistics"
            return Diagnosis(Kind.NORM, cause, shown, also, remedy)
    largest = max((each.group // width for each in differing), key=np.bincount(found.places).__getitem__)
    near = _list_nearest(others, lambda other: table.judge(other, found.places == largest)[-1])
    near = _list_nearest(near, lambda other: table.compare(other).checked)
    if not near:
        return None
    option, also = near[0].option, tuple(other.option for other in near[1:])
    cause, remedy = f"{norm} differs: it is that of {option}", f"normcli {norm} … {option}"
    return Diagnosis(Kind.NORM, cause, ("every group agrees with that",), also, remedy)


def _examine_group(found: GroupedCheck, differing: Sequence[int]) -> Diagnosis | None:
    """Return the diagnosis of one group's rows as a table without groups; None without findings.

    It is the first group in `differing`, the indices of the groups that differ, whose values vary. If all
    differ, but the group of the most unlike size has another cause, the words are of the first alone.
    """
    varies, width = find_varying(found.stats.sums) & ~find_few(found.stats), found.table.tensor.values.shape[1]
    sizes, groups = np.bincount(found.places), [one for one in differing if varies[one]] or differing[:1]

    def diagnose(group: int) -> Diagnosis | None:
        return diagnose_actual(*found.table.judge(found.request, found.places == group // width))

    worst = groups[0]
    told = diagnose(worst)
    if told is None:
        return None
    name, count = found.stats.subject.name_group(worst), len(differing)
    told = told._replace(evidence=(f"of the rows of {name}, counted by themselves", *told.evidence))
    if told.verdict == Kind.NONE:
        told = told._replace(next_step=None)
    other = max(groups, key=lambda group: abs(sizes[group // width] - sizes[worst // width]))
    if count >= np.count_nonzero(varies):
        beside = told if other == worst else diagnose(other)
        if told.verdict == Kind.NONE or (beside is not None and beside.cause == told.cause):
            return told
    where = f"in group {name} alone"
    if count > 1:
        where = f"in group {name}, one of {count} of {varies.size} that differ"
    return told._replace(cause=f"{told.cause}; {where}", remedy=None, next_step=None)


@np.errstate(all="ignore")
def _has_one_line(table: GroupedTable) -> bool:
    """Return True if each column of y is a · x + b with one a and b for all rows, not one for each group.

    Errors of 2 % of y's deviation are allowed, in root mean square, over the first 2²⁰ rows.
    """
    x, y = (fetch(part[:_MOST_ROWS]).astype(np.float64) for part in (table.tensor.values, table.actual.values))
    off = y - fit_lines(x, y, (1,), through_zero=False, refinements=0).apply(x)
    y = np.where(np.isfinite(off), y, np.nan)
    return bool(np.all(np.nansum(off**2, 0) <= _SMALL**2 * np.nansum((y - np.nanmean(y, 0)) ** 2, 0)))


@np.errstate(all="ignore")
def _find_small_errors(found: GroupedCheck, differing: int) -> Diagnosis | None:
    """Return the diagnosis of small errors in most groups that no other means and divisors explain; or None.

    `differing` is the number of groups that differ.
    """
    table, plan = found.table, found.plan
    numbers = number_groups_of(found.places[:_MOST_ROWS], table.tensor.values.shape[1])
    parts = (table.tensor.values, table.actual.values, table.normalize(found.stats))
    x, y, right = (fetch(part[:_MOST_ROWS]).astype(np.float64).reshape(-1) for part in parts)
    finite = np.isfinite(x) & np.isfinite(y) & np.isfinite(right)
    numbers, x, y, right = numbers[finite], x[finite], y[finite], right[finite]
    counts = np.bincount(numbers)
    x, off = (part - (np.bincount(numbers, part) / counts)[numbers] for part in (x, y - right))
    slopes = np.nan_to_num(np.bincount(numbers, x * off) / np.bincount(numbers, x * x))
    freedom = y.size - 2 * np.count_nonzero(counts)
    varies = np.count_nonzero(find_varying(found.stats.sums) & ~find_few(found.stats))
    if freedom < _FREEDOM or 2 * differing < varies:
        return None
    errors, left = np.abs(y - right), off - slopes[numbers] * x
    size, spread = float(np.sqrt(np.mean(errors**2))), float(y.std())
    if not (size <= _SMALL * spread and size**2 <= _LINES**2 * (left**2).sum() / freedom):
        return None
    told = diagnose_near(NearNorm(plan, size, float(errors.max()), spread), plan.grid.layout)
    return told._replace(cause=f"{plan.norm.name} differs: y is nearly the norm of each group")


def _find_errors_beside_ddof(found: GroupedCheck, differing: int) -> Diagnosis | None:
    """Return the diagnosis of another ddof together with small errors in most groups; or None.

    `differing` is the number of groups that differ from the requested norm.
    """
    plan, told = found.plan, None
    other = 1 - (plan.spec.ddof or 0)
    with contextlib.suppress(NormError):
        if plan.norm.divisor.about_mean:
            told = _find_small_errors(found.table.compare(found.request._replace(ddof=other)), differing)
    if told is None:
        return None
    cause = f"{plan.norm.name} differs: ddof is {other}, and y is nearly the norm of each group"
    return told._replace(cause=cause, remedy=f"normcli {plan.norm.name} … --ddof {other}")
