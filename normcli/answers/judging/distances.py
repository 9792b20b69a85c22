"""Distances from exact values: an array's verdict, its worst value, and the histogram of distances."""

from __future__ import annotations

import itertools
import math
from typing import TYPE_CHECKING, Any

import numpy as np

from normcli.checking.check import NORMALIZED
from normcli.checking.tally import Bin
from normcli.documents.document import Facts, Line, Table, TableRow, describe_members, describe_value
from normcli.printable import format_count, format_up, make_printable
from normcli.teach.value_index import format_index

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from normcli.auditing.layer_verdict import JudgedTensor
    from normcli.checking.tally import Comparison
    from normcli.checking.ulp import Tolerance
    from normcli.documents.document import View
    from normcli.identifying.grouped_check import GroupedCheck
    from normcli.norms.grid import Grid
    from normcli.norms.plan import Plan

_ULP_DIGITS = 4

_SHORT_DIGITS, _LONG_DIGITS = 10, 17
"""Significant digits that tell neighbours apart: of floats of up to 4 bytes, and of float64."""

_FINE_BOUND, _COARSE_STEP = 1024.0, 10
"""Above this many ulp, a histogram in a table has one bin for each factor of two to this power."""


def list_verdict_lines(name: str, found: Comparison) -> Iterator[Line]:
    """Yield a line with the verdict on an array and, if there are any, one with tolerances that pass."""
    yield build_line(name, found)
    yield from list_smallest(found)


def tell_difference(wrong: int, counted: str) -> str:
    """Return a clause that some of a number of things differ.

    Examples
    --------
    >>> tell_difference(1, "10 values")
    '1 of 10 values differs'
    """
    return f"1 of {counted} differs" if wrong == 1 else f"{wrong:,} of {counted} differ"


def tell_agreement(count: int, counted: str) -> str:
    """Return a clause that a number of things agree.

    Examples
    --------
    >>> tell_agreement(10, "10 values")
    '10 values agree'
    """
    return f"{counted} agrees" if count == 1 else f"{counted} agree"


def build_short_line(
    name: str, found: Comparison | JudgedTensor, details: tuple[tuple[str, str], ...] = ()
) -> Line:
    """Return a line on how many values of a tensor differ, and the largest distance in ulp.

    `details` are lines below it, pairs (label, text).
    """
    text = tell_difference(found.mismatches, format_count(found.compared, "value"))
    return Line((f"{name}: {text}", tell_ulp(found.max_ulp)), found.ok, details)


def build_line(name: str, found: Comparison) -> Line:
    """Return a line with an array's verdict: values that agree or differ, largest ulp, largest difference."""
    if not found.compared:
        return Line((f"{name}: there are no values to compare",), mark=True)
    furthest: tuple[str, ...] = ("some infinitely far",)
    if found.max_ulp < math.inf:
        where = f", at an exact value of {found.max_ulp_expected:.2g}" if found.is_near_zero else ""
        furthest = f"furthest {format_ulp(found.max_ulp)} ulp{where}", f"largest difference {found.max_abs:.3g}"
    values = format_count(found.compared, "value")
    text = tell_agreement(found.compared, values) if found.ok else tell_difference(found.mismatches, values)
    return Line((f"{name}: {text}", *furthest), found.ok)


def list_smallest(found: Comparison) -> Iterator[Line]:
    """Yield a line with the smallest rtol, atol and ulp with which the array passes, each rounded up.

    If an infinite difference makes every tolerance fail, the line says so. Nothing if each value has a bound of
    its own in place of a tolerance, or if no value was compared.
    """
    smallest, limits, worst = found.smallest, found.tolerance, found.worst
    if smallest is None or worst is None:
        return
    if found.max_abs == math.inf:
        actual, expected = (_format_odd(value) for value in (worst.actual, worst.expected))
        yield Line((f"no tolerance passes: {actual} where {expected} is expected",))
        return
    rtol = f"{_format_limit('rtol', smallest.rtol)} (at atol {limits.atol:g})"
    atol = f"{_format_limit('atol', smallest.atol)} (at rtol {limits.rtol:g})"
    yield Line(("passes with one of", rtol, atol, f"{format_up(smallest.max_ulp)} ulp"))


def _format_limit(name: str, value: float) -> str:
    return f"no {name}" if math.isinf(value) else f"{name} {format_up(value)}"


def _format_odd(value: float) -> str:
    """Return a value, which may be infinite or NaN, as text."""
    return "NaN" if math.isnan(value) else f"{value:.{_SHORT_DIGITS}g}".replace("inf", "∞")


def name_place(plan: Plan, place: int, groups: Grid | GroupedCheck) -> tuple[str, ...]:
    """Return the index of a tensor's value in words, and the name of its group: ("n=0 c=3", "group n=0").

    `place` is the flat index of the value. For sliding windows, the tuple has only the index.
    """
    index = np.unravel_index(np.asarray(place), plan.grid.shape)
    at = format_index([*map(int, index)], plan.grid.layout) or "the only value"
    if plan.groups_overlap:
        return (at,)
    return at, f"group {groups.group_name(int(groups.locate_groups(index)))}"


def build_worst(name: str, place: tuple[str, ...], comparison: Comparison, view: View) -> Facts:
    """Return lines on the worst value of an array: its index, exact and given value, and distance in ulp.

    If it was judged by a bound, or by rtol and atol, the line also has the distance in multiples of these.

    Parameters
    ----------
    name : str
        The name of the array.
    place : tuple of str
        The index of the value in words, and its group.
    comparison : Comparison
        A comparison whose `worst` is not None.
    view : View
    """
    worst, short = comparison.worst, comparison.tolerance.dtype.itemsize <= 4
    assert worst is not None
    digits = view.digits or (_SHORT_DIGITS if short else _LONG_DIGITS)
    measures = [tell_ulp(worst.ulp)]
    if comparison.tolerance.max_ulp is None and math.isfinite(worst.excess):  # by which it is the worst
        measures.append(f"{format_ulp(worst.excess)} times what is tolerated")
    actual = f"{worst.actual:.{digits}g}", *measures
    lines = [("at", place), ("expected", (f"{worst.expected:.{digits}g}",)), ("actual", actual)]
    if comparison.tolerance.derived and math.isfinite(worst.ulp):
        lines.append(("bound", (f"{format_ulp(worst.ulp / worst.excess)} ulp",)))
    return Facts(f"worst value of {name}", tuple(lines))


def list_compared(
    comparisons: Mapping[str, Comparison], sources: Mapping[str, str]
) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Yield a line of a header for each compared array: a label, and a tuple of file, dtype and tolerance."""
    for name, comparison in comparisons.items():
        label = "actual" if name == NORMALIZED else f"actual {name}"
        yield label, (make_printable(sources[name]), *list_tolerance(comparison.tolerance))


def describe_tolerance(limits: Tolerance) -> dict[str, Any]:
    """Return a tolerance as members of a JSON object: `max_ulp_allowed`, or `rtol` and `atol`."""
    if limits.max_ulp is None:
        return describe_members(limits, "rtol", "atol")
    return {"max_ulp_allowed": limits.max_ulp}


def describe_comparison(comparison: Comparison) -> dict[str, Any]:
    """Return a comparison as members of a JSON object: `ok`, distances, tolerance, and the histogram.

    `smallest` has the tolerances that pass, None if there are none; each bin of `histogram` is from, to, count.
    """
    return {
        "ok": comparison.ok,
        "dtype": comparison.tolerance.dtype.name,
        **describe_members(comparison, "compared", "mismatches", "max_ulp", "max_ulp_expected", "max_abs"),
        **describe_tolerance(comparison.tolerance),
        "smallest": None if comparison.smallest is None else describe_value(comparison.smallest),
        "histogram": [
            dict(zip(("from", "to", "count"), describe_value(tuple(part)), strict=True))
            for part in comparison.histogram
        ],
    }


OF_WORST = ("expected", "actual", "ulp")
OF_COMPARISON = ("ok", "max_ulp", "max_abs", "compared", "mismatches")
"""The members of JSON of a worst value, and of an array with few members."""


def build_histogram(comparison: Comparison, view: View, name: str | None = None) -> Table:
    """Return a table of how many values lie at each distance in ulp, a row for each bin.

    The rows from 1,024 ulp on are joined unless the view is full. With a `name`, the array's, the table has a
    title with the name and the tolerance.
    """
    total = comparison.compared
    bins = comparison.histogram if view.full else _coarsen(comparison.histogram)
    rows = [
        TableRow((_format_bin(part), f"{part.value_count:,}", format_ratio(part.value_count, total)))
        for part in bins
    ]
    columns = (f"ulp of {comparison.tolerance.dtype.name}", "values", "share")
    _, tolerated = list_tolerance(comparison.tolerance)
    title = None if name is None else f"distances of {name}, tolerated: {tolerated}"
    return Table(title, columns, (False, True, True), rows)


def _coarsen(bins: Sequence[Bin]) -> Iterator[Bin]:
    """Yield the bins of a histogram, those from 1,024 ulp on joined into one for each factor of 2¹⁰."""
    for lower, joined in itertools.groupby(bins, _find_coarse_bound):
        parts = list(joined)
        upper = parts[0].upper if lower < _FINE_BOUND else lower * 2.0**_COARSE_STEP
        yield Bin(lower, upper, sum(part.value_count for part in parts))


def _find_coarse_bound(part: Bin) -> float:
    """Return the lower bound of the joined bin in which a bin lies; its own if it is not joined."""
    if part.lower < _FINE_BOUND or math.isinf(part.lower):
        return part.lower
    return 2.0 ** ((math.frexp(part.lower)[1] - 1) // _COARSE_STEP * _COARSE_STEP)


def format_ratio(count: int, total: int) -> str:
    """Return a count as a percentage of a total; `> 99.9 %` if it would be rounded up to 100 %."""
    percent = f"{100 * count / total:.3g}"
    return f"{'> 99.9' if percent == '100' and count < total else percent} %"


def _format_bin(part: Bin) -> str:
    finite = f"{_format_bound(part.lower)} – {_format_bound(part.upper)}"
    return "not finite" if math.isinf(part.lower) else finite


def _format_bound(bound: float) -> str:
    small = bound < _FINE_BOUND or math.isinf(bound)
    return f"{bound:g}" if small else f"2^{math.frexp(bound)[1] - 1}"


def list_tolerance(limits: Tolerance) -> tuple[str, str]:
    """Return the name of the dtype in whose ulp distances are counted, and the tolerance in words."""
    if limits.derived:
        return limits.dtype.name, f"bounds of {limits.derived}"
    relative = f"rtol {limits.rtol:g}, atol {limits.atol:g}"
    return limits.dtype.name, relative if limits.max_ulp is None else f"up to {limits.max_ulp:g} ulp"


def format_ulp(value: float) -> str:
    """Return a distance in ulp with four digits, without its unit: `12.5`, or `∞`."""
    return "∞" if value == math.inf else f"{value:.{_ULP_DIGITS}g}"


def tell_ulp(value: float) -> str:
    """Return a distance in ulp in words: `12.5 ulp`, or `infinitely far` from or to NaN or an infinity."""
    return "infinitely far" if value == math.inf else f"{format_ulp(value)} ulp"
