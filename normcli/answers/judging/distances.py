"""Distances from exact values: an array's verdict, its worst value, and how many values are how far off."""

from __future__ import annotations

import itertools
import math
from typing import TYPE_CHECKING, Any

from normcli.checking.tally import Bin
from normcli.documents.document import Line, Table, TableRow, describe_members, describe_value
from normcli.printable import format_count, format_up

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from normcli.checking.tally import Comparison
    from normcli.checking.ulp import Tolerance
    from normcli.documents.document import View

_ULP_DIGITS = 4

_SHORT_DIGITS, _LONG_DIGITS = 10, 17
"""Significant digits that tell neighbours apart: of floats of up to 4 bytes, and of float64."""

_FINE_BOUND, _COARSE_STEP = 1024.0, 10
"""Above the first number of ulp, a table's histogram has one bin for each factor of 2¹⁰."""


def list_verdict_lines(name: str, found: Comparison) -> Iterator[Line]:
    """Yield an array's verdict, and the smallest tolerances that pass."""
    yield build_line(name, found)
    smallest = build_smallest(found)
    if smallest is not None:
        yield smallest


def build_line(name: str, found: Comparison) -> Line:
    """Return how many values agree, and how far they are off."""
    values = format_count(found.compared, "value")
    if not found.compared:
        return Line((f"{name}: there are no values to compare",), mark=True)
    where = f", at an exact value of {found.max_ulp_expected:.2g}" if found.is_near_zero else ""
    furthest = (
        f"furthest {format_ulp(found.max_ulp)} ulp{where}",
        f"largest difference {found.max_abs:.3g}",
    )
    text = f"{values} agree{'s' if found.compared == 1 else ''}"
    if not found.ok:
        text = f"{found.mismatches:,} of {values} differ{'s' if found.mismatches == 1 else ''}"
    return Line((f"{name}: {text}", *furthest), found.ok)


def build_smallest(found: Comparison) -> Line | None:
    """Return the smallest tolerances that pass, each rounded up; None where each value has its own bound."""
    smallest, limits, worst = found.smallest, found.tolerance, found.worst
    if smallest is None or worst is None:
        return None
    if found.max_abs == math.inf:
        actual, expected = (_format_odd(value) for value in (worst.actual, worst.expected))
        return Line((f"no tolerance passes: {actual} where {expected} is expected",))
    return Line(
        (
            "passes with",
            f"{_format_limit('rtol', smallest.rtol)} (at atol {limits.atol:g})",
            f"{_format_limit('atol', smallest.atol)} (at rtol {limits.rtol:g})",
            f"{format_up(smallest.max_ulp)} ulp",
        )
    )


def _format_limit(name: str, value: float) -> str:
    return f"no {name}" if math.isinf(value) else f"{name} {format_up(value)}"


def _format_odd(value: float) -> str:
    """Return a value that may not be finite."""
    return "NaN" if math.isnan(value) else f"{value:.{_SHORT_DIGITS}g}".replace("inf", "∞")


def format_element(comparison: Comparison, view: View) -> tuple[tuple[str, tuple[str, ...]], ...]:
    """Return the lines on a worst value: expected, actual, difference."""
    worst, short = comparison.worst, comparison.tolerance.dtype.itemsize <= 4
    assert worst is not None
    digits = view.digits or (_SHORT_DIGITS if short else _LONG_DIGITS)
    measures = [f"{format_ulp(worst.ulp)} ulp"]
    if comparison.tolerance.max_ulp is None and math.isfinite(worst.excess):  # by which it is the worst
        measures.append(f"{format_ulp(worst.excess)} times what is tolerated")
    actual = f"{worst.actual:.{digits}g}", *measures
    lines = ("expected", (f"{worst.expected:.{digits}g}",)), ("actual", actual)
    if not comparison.tolerance.derived or not math.isfinite(worst.ulp):
        return lines
    return *lines, ("bound", (f"{format_ulp(worst.ulp / worst.excess)} ulp",))


def describe_comparison(comparison: Comparison) -> dict[str, Any]:
    """Return the members of JSON that every comparison has."""
    limits = comparison.tolerance
    allowed = {"max_ulp_allowed": limits.max_ulp}
    if limits.max_ulp is None:
        allowed = describe_members(limits, "rtol", "atol")
    return {
        "ok": comparison.ok,
        "dtype": limits.dtype.name,
        **describe_members(comparison, "compared", "mismatches", "max_ulp", "max_ulp_expected", "max_abs"),
        **allowed,
        "smallest": None if comparison.smallest is None else describe_value(comparison.smallest),
        "histogram": [
            dict(zip(("from", "to", "count"), describe_value(tuple(part)), strict=True))
            for part in comparison.histogram
        ],
    }


def build_histogram(comparison: Comparison, view: View, name: str | None = None) -> Table:
    """Return how many values are how far off; with a name, whose values they are and what is tolerated."""
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
    """Yield bins, those beyond `_FINE_BOUND` joined ten at a time."""
    for lower, joined in itertools.groupby(bins, _find_coarse_bound):
        parts = list(joined)
        upper = parts[0].upper if lower < _FINE_BOUND else lower * 2.0**_COARSE_STEP
        yield Bin(lower, upper, sum(part.value_count for part in parts))


def _find_coarse_bound(part: Bin) -> float:
    """Return the lower bound of the bin that one is joined to; its own where it stays as it is."""
    if part.lower < _FINE_BOUND or math.isinf(part.lower):
        return part.lower
    return 2.0 ** ((math.frexp(part.lower)[1] - 1) // _COARSE_STEP * _COARSE_STEP)


def format_ratio(count: int, total: int) -> str:
    """Return a share in percent: `> 99.9 %` if it is nearly all."""
    percent = f"{100 * count / total:.3g}"
    return f"{'> 99.9' if percent == '100' and count < total else percent} %"


def _format_bin(part: Bin) -> str:
    finite = f"{_format_bound(part.lower)} – {_format_bound(part.upper)}"
    return "not finite" if math.isinf(part.lower) else finite


def _format_bound(bound: float) -> str:
    small = bound < _FINE_BOUND or math.isinf(bound)
    return f"{bound:g}" if small else f"2^{math.frexp(bound)[1] - 1}"


def list_tolerance(limits: Tolerance) -> tuple[str, str]:
    """Return the dtype in whose ulp distances are counted, and the tolerance."""
    if limits.derived:
        return limits.dtype.name, f"bounds of {limits.derived}"
    relative = f"rtol {limits.rtol:g}, atol {limits.atol:g}"
    return limits.dtype.name, relative if limits.max_ulp is None else f"up to {limits.max_ulp:g} ulp"


def format_ulp(value: float) -> str:
    """Return a distance, without its unit."""
    return f"{value:.{_ULP_DIGITS}g}"
