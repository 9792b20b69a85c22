"""The answer of `normcli check NORM`: what was compared with the exact result, and how far off it is."""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from normcli.documents.document import (
    Facts,
    Line,
    LongList,
    Row,
    Table,
    describe_members,
    describe_value,
    flatten_records,
)
from normcli.documents.excerpt import MOST_GROUPS, format_hidden
from normcli.documents.plans import (
    build_header,
    describe_plan,
    describe_selection,
    describe_tensor,
    list_facts,
    list_selection,
)
from normcli.printable import format_count, make_printable
from normcli.teach.place import format_index
from normcli.verify.check import NORMALIZED
from normcli.verify.tally import Bin

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from numpy.typing import NDArray

    from normcli.answers.gradients_verdict import GradientsVerdict
    from normcli.documents.document import Section, View
    from normcli.norms.plan import Plan
    from normcli.tensors.tensor import Tensor
    from normcli.verify.check import Checked
    from normcli.verify.tally import Comparison, Element, GroupDifference
    from normcli.verify.ulp import Tolerance

_ULP_DIGITS = 4

_SHORT_DIGITS, _LONG_DIGITS = 10, 17
"""Significant digits that tell neighbours apart: of floats of up to 4 bytes, and of float64."""

_FINE_BOUND, _COARSE_STEP = 1024.0, 10
"""Beyond so many ulp a table's histogram goes on in steps of this power of two."""


@dataclass(frozen=True)
class Verdict:
    """The comparison of arrays with the exact ones.

    Parameters
    ----------
    plan : Plan
    tensor : Tensor
        The input.
    parameters : mapping of str to ndarray or None
        gamma and beta, of the plan's shape.
    sources : mapping of str to str
        Where each compared array came from.
    checked : Checked
    warnings : sequence of str
        Of degenerate groups.
    sentence : str or None
        Which norm the actual tensor is instead, or what else its bits show, where that was found.
    gradients : GradientsVerdict or None
        Of the backward pass beside it, where golden files have one.
    """

    plan: Plan
    tensor: Tensor
    parameters: Mapping[str, NDArray[Any] | None]
    sources: Mapping[str, str]
    checked: Checked
    warnings: Sequence[str] = ()
    sentence: str | None = None
    gradients: GradientsVerdict | None = None

    @property
    def ok(self) -> bool:
        """Whether everything agrees."""
        return self.checked.ok and (self.gradients is None or self.gradients.checked.ok)

    def sections(self, view: View) -> Iterator[Section]:
        """Return the header, of each array the worst value, distances and worst groups, then the verdicts."""
        yield self._build_header(view)
        for name, comparison in self.checked.comparisons.items():
            if not comparison.ok:
                yield self._build_worst(name, comparison, view)
            if name == NORMALIZED and comparison.compared:
                yield build_histogram(comparison, view)
            if comparison.groups is not None and not comparison.ok and self.plan.grid.group_count > 1:
                yield self._build_groups(comparison, view)
        if self.gradients is not None:
            yield from self.gradients.detail(view)
        for name, comparison in self.checked.comparisons.items():
            yield build_line(name, comparison)
        if self.sentence is not None:
            yield Line((self.sentence,))
        if self.gradients is not None:
            yield from self.gradients.judge()

    def data(self) -> Mapping[str, Any]:
        """Return the verdicts as one object; `groups` are those with mismatches, in order."""
        comparisons = {name: self._describe(name, found) for name, found in self.checked.comparisons.items()}
        return {
            **describe_plan(self.plan, {"input": describe_tensor(self.tensor)}),
            **describe_selection(self.checked.selection),
            "ok": self.ok,
            "check": comparisons.pop(NORMALIZED, None),
            "statistics": comparisons,
            **({} if self.gradients is None else {"gradients": self.gradients.describe()}),
            "sentence": self.sentence,
            "warnings": list(self.warnings),
        }

    def records(self) -> Iterator[Mapping[str, Any]]:
        """Return one object for each group with a mismatch, of each thing compared; one for each gradient."""
        for name, comparison in self.checked.comparisons.items():
            for group in comparison.groups or ():
                yield {"compared": name, **self._describe_group(group)}
        for name, comparison in self._find_wrong_gradients():
            nowhere = dict.fromkeys(self.plan.grid.kept_names)
            yield {"compared": name, "group": nowhere, **describe_members(comparison, "mismatches", "max_ulp")}

    def rows(self) -> Iterator[Sequence[Any]]:
        """Return one line for each group with a mismatch: what was compared, its index, how many, how far."""
        return flatten_records(
            self.records(), ("compared", *self.plan.grid.kept_names, "mismatches", "max_ulp")
        )

    def _find_wrong_gradients(self) -> list[tuple[str, Comparison]]:
        found = {} if self.gradients is None else self.gradients.checked.comparisons
        return [(name, comparison) for name, comparison in found.items() if not comparison.ok]

    # -- for a reader

    def _build_header(self, view: View) -> Facts:
        more = list(list_selection(self.plan, self.tensor.values, self.checked.selection, self.checked.counts))
        for name, comparison in self.checked.comparisons.items():
            label = "actual" if name == NORMALIZED else f"actual {name}"
            facts = (make_printable(self.sources[name]), *list_tolerance(comparison.tolerance))
            more.append((label, facts))
        if self.gradients is not None:
            more += self.gradients.list_facts()
        title = f"check {self.plan.norm.name} · {self.plan.norm.title}"
        return build_header(title, self.plan, list_facts(self.tensor), view, self.parameters, more)

    def _build_worst(self, name: str, comparison: Comparison, view: View) -> Facts:
        worst, grid = comparison.worst, self.plan.grid
        assert worst is not None
        index, number = self._locate(name, worst.place)
        group = grid.group_name(number)
        place: tuple[str, ...] = (group,)
        if name == NORMALIZED:
            at = format_index(index, grid.layout) or "the only value"
            place = (at, f"group {group}") if self.plan.spec.window is None else (at,)
        return Facts(f"worst value of {name}", (("at", place), *format_element(comparison, view)))

    def _build_groups(self, comparison: Comparison, view: View) -> Table:
        assert comparison.groups is not None
        grid, count = self.plan.grid, comparison.count_groups()
        most = count if view.full else min(count, MOST_GROUPS // 3)
        note = f"{count:,} of {format_count(grid.group_count, 'group')} differ{'s' if count == 1 else ''}"
        notes = filter(None, (note, format_hidden(count - most, count, "group")))
        one_each = comparison.compared == grid.group_count
        columns = ("group", *(() if one_each else ("mismatches", "of its values")), "worst ulp")
        rows = []
        for group in comparison.groups.find_worst(most):
            share = f"{group.mismatches:,}", _format_share(group.mismatches, grid.group_size)
            cells = (grid.group_name(group.group), *(() if one_each else share), _format_ulp(group.max_ulp))
            rows.append(Row(cells, group.group))
        return Table(None, columns, (False, *(True,) * (len(columns) - 1)), rows, "; ".join(notes))

    # -- for a program

    def _describe(self, name: str, comparison: Comparison) -> Mapping[str, Any]:
        worst = None if comparison.worst is None else self._describe_worst(name, comparison.worst)
        return {
            "source": self.sources[name],
            **describe_comparison(comparison),
            "worst": worst,
            "groups_with_mismatches": comparison.count_groups(),
            "groups": LongList([self._describe_group(group)] for group in comparison.groups or ()),
        }

    def _describe_worst(self, name: str, worst: Element) -> Mapping[str, Any]:
        index, number = self._locate(name, worst.place)
        names = self.plan.grid.layout.names
        place = {"index": dict(zip(names, index, strict=True))} if name == NORMALIZED else {}
        return {
            **place,
            "group": self.plan.grid.group_index(number),
            **describe_members(worst, "expected", "actual", "ulp"),
        }

    def _describe_group(self, group: GroupDifference) -> Mapping[str, Any]:
        index = self.plan.grid.group_index(group.group)
        return {"group": index, **describe_members(group, "mismatches", "max_ulp")}

    def _locate(self, name: str, place: int) -> tuple[tuple[int, ...], int]:
        """Return the index of a value, empty for a statistic, and the number of its group."""
        if name != NORMALIZED:
            return (), place
        grid = self.plan.grid
        index = np.unravel_index(np.asarray(place), grid.shape)
        return tuple(map(int, index)), int(grid.locate_groups(index))


def build_line(name: str, found: Comparison) -> Line:
    """Return how many values agree, and how far they are off."""
    values = format_count(found.compared, "value")
    if not found.compared:
        return Line((f"{name}: there are no values to compare",), mark=True)
    where = f", where only {found.max_ulp_expected:.2g} is expected" if found.is_near_zero else ""
    furthest = (
        f"furthest {_format_ulp(found.max_ulp)} ulp{where}",
        f"largest difference {found.max_abs:.3g}",
    )
    text = f"{values} agree{'s' if found.compared == 1 else ''}"
    if not found.ok:
        text = f"{found.mismatches:,} of {values} differ{'s' if found.mismatches == 1 else ''}"
    return Line((f"{name}: {text}", *furthest), found.ok)


def format_element(comparison: Comparison, view: View) -> tuple[tuple[str, tuple[str, ...]], ...]:
    """Return the lines of a worst value: what is expected, what it is, and how far off."""
    worst, short = comparison.worst, comparison.tolerance.dtype.itemsize <= 4
    assert worst is not None
    digits = view.digits or (_SHORT_DIGITS if short else _LONG_DIGITS)
    actual = f"{worst.actual:.{digits}g}", f"{_format_ulp(worst.ulp)} ulp"
    lines = ("expected", (f"{worst.expected:.{digits}g}",)), ("actual", actual)
    if not comparison.tolerance.derived or not math.isfinite(worst.ulp):
        return lines
    return *lines, ("bound", (f"{_format_ulp(worst.ulp / worst.excess)} ulp",))


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
        "histogram": [
            dict(zip(("from", "to", "count"), describe_value(tuple(part)), strict=True))
            for part in comparison.histogram
        ],
    }


def build_histogram(comparison: Comparison, view: View) -> Table:
    """Return how many values are how far off."""
    total = comparison.compared
    bins = comparison.histogram if view.full else _coarsen(comparison.histogram)
    rows = [
        Row((_format_bin(part), f"{part.value_count:,}", _format_share(part.value_count, total)))
        for part in bins
    ]
    columns = (f"ulp of {comparison.tolerance.dtype.name}", "values", "share")
    return Table(None, columns, (False, True, True), rows)


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


def _format_share(count: int, total: int) -> str:
    percent = f"{100 * count / total:.3g}"
    return f"{'> 99.9' if percent == '100' and count < total else percent} %"


def _format_bin(part: Bin) -> str:
    finite = f"{_format_bound(part.lower)} – {_format_bound(part.upper)}"
    return "not finite" if math.isinf(part.lower) else finite


def _format_bound(bound: float) -> str:
    small = bound < _FINE_BOUND or math.isinf(bound)
    return f"{bound:g}" if small else f"2^{math.frexp(bound)[1] - 1}"


def list_tolerance(limits: Tolerance) -> tuple[str, str]:
    """Return the dtype that distances are counted in, and what is tolerated."""
    if limits.derived:
        return limits.dtype.name, f"bounds of {limits.derived}"
    relative = f"rtol {limits.rtol:g}, atol {limits.atol:g}"
    return limits.dtype.name, relative if limits.max_ulp is None else f"up to {limits.max_ulp:g} ulp"


def _format_ulp(value: float) -> str:
    return f"{value:.{_ULP_DIGITS}g}"
