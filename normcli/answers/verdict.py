"""The answer of `normcli check NORM`: what was compared with the exact result, and how far off it is."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, NamedTuple

from normcli.documents.document import Facts, Line, Row, Table
from normcli.documents.excerpt import MOST_GROUPS
from normcli.documents.plans import describe_asked, describe_problem, describe_selection, tell_selection
from normcli.printable import make_printable
from normcli.verify.check import NORMALIZED
from normcli.writers.structured import format_json

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from numpy.typing import NDArray

    from normcli.documents.document import Section, View
    from normcli.norms.plan import Plan
    from normcli.tensors.tensor import Tensor
    from normcli.verify.check import Checked, Comparison
    from normcli.verify.tally import Bin, GroupDifference

_ULP_DIGITS = 4

_SHORT_DIGITS, _LONG_DIGITS = 10, 17
"""Significant digits that tell neighbours apart: of floats of up to 4 bytes, and of float64."""

_FINE_BOUND, _COARSE_STEP = 1024.0, 10
"""Beyond so many ulp a table's histogram goes on in steps of this power of two."""


class Verdict:
    """What was compared, and what came out.

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
        What explains a difference, where somebody found out.
    """

    def __init__(
        self,
        plan: Plan,
        tensor: Tensor,
        parameters: Mapping[str, NDArray[Any] | None],
        sources: Mapping[str, str],
        checked: Checked,
        warnings: Sequence[str] = (),
        sentence: str | None = None,
    ) -> None:
        self.plan, self.tensor, self.parameters = plan, tensor, parameters
        self.sources, self.checked, self.warnings, self.sentence = sources, checked, warnings, sentence

    def sections(self, view: View) -> Iterator[Section]:
        """Return the header, and of each thing compared the verdict, distances, and what differs most."""
        yield self._header(view)
        for name, comparison in self.checked.comparisons.items():
            yield self._judge(name, comparison)
            if not comparison.ok:
                yield self._describe_worst(name, comparison, view)
            if name == NORMALIZED and comparison.tally.compared:
                yield _draw_histogram(comparison, view)
            if comparison.groups is not None and not comparison.ok and self.plan.grid.group_count > 1:
                yield self._draw_groups(comparison, view)
        if self.sentence is not None:
            yield Line((self.sentence,))

    def data(self) -> Mapping[str, Any]:
        """Return the verdicts as one object; `groups` are those with mismatches, in order."""
        plan = self.plan
        comparisons = {name: self._describe(name, found) for name, found in self.checked.comparisons.items()}
        return {
            **describe_asked(plan, self.tensor),
            **describe_selection(self.checked.selection),
            "ok": self.checked.ok,
            "check": comparisons.pop(NORMALIZED, None),
            "statistics": comparisons,
            "sentence": self.sentence,
            "warnings": list(self.warnings),
        }

    def records(self) -> Iterator[Mapping[str, Any]]:
        """Return one object for each group with a mismatch, of each thing compared."""
        for name, comparison in self.checked.comparisons.items():
            for group in comparison.groups or ():
                yield {"compared": name, **self._describe_group(group)}

    def rows(self) -> Iterator[Sequence[Any]]:
        """Return one line for each group with a mismatch: what was compared, its index, how many, how far."""
        yield ["compared", *self.plan.grid.kept_names, "mismatches", "max_ulp"]
        for record in self.records():
            yield [record["compared"], *record["group"].values(), record["mismatches"], record["max_ulp"]]

    # -- for a reader

    def _header(self, view: View) -> Facts:
        lines = list(
            describe_problem(self.plan, self.tensor, self.tensor.values.dtype.name, self.parameters, view)
        )
        lines += tell_selection(self.plan, self.tensor.values, self.checked.selection, self.checked.counts)
        for name, comparison in self.checked.comparisons.items():
            label = "actual" if name == NORMALIZED else f"actual {name}"
            facts = (make_printable(self.sources[name]), comparison.dtype.name, _phrase_tolerance(comparison))
            lines.append((label, facts))
        return Facts(f"check {self.plan.norm.name} · {self.plan.norm.title}", tuple(lines))

    def _judge(self, name: str, comparison: Comparison) -> Line:
        tally = comparison.tally
        values = f"{tally.compared:,} value{'' if tally.compared == 1 else 's'}"
        if not tally.compared:
            return Line((f"{name}: there are no values to compare",), mark=True)
        furthest = f"furthest {_format_ulp(tally.max_ulp)} ulp", f"largest difference {tally.max_abs:.3g}"
        if comparison.ok:
            return Line((f"{name}: {values} agree", *furthest), mark=True)
        return Line((f"{name}: {tally.mismatches:,} of {values} differ", *furthest), mark=False)

    def _describe_worst(self, name: str, comparison: Comparison, view: View) -> Facts:
        worst = comparison.tally.worst
        assert worst is not None
        group = self._find_group(name, worst.place)
        index = "" if name != NORMALIZED else _join(self._find_index(worst.place))
        digits = view.digits or (_SHORT_DIGITS if comparison.dtype.itemsize <= 4 else _LONG_DIGITS)
        place = (
            (index, f"group {self.plan.grid.group_name(group)}")
            if index
            else (self.plan.grid.group_name(group),)
        )
        return Facts(
            "worst value",
            (
                ("at", place if self.plan.spec.window is None else place[:1]),
                ("expected", (f"{worst.expected:.{digits}g}",)),
                ("actual", (f"{worst.actual:.{digits}g}", f"{_format_ulp(worst.ulp)} ulp")),
            ),
        )

    def _draw_groups(self, comparison: Comparison, view: View) -> Table:
        assert comparison.groups is not None
        count, size = comparison.count_groups(), self.plan.grid.group_size
        most = count if view.full else MOST_GROUPS // 3
        rows = [
            Row(
                (
                    self.plan.grid.group_name(group.group),
                    f"{group.mismatches:,}",
                    _phrase_share(group.mismatches, size),
                    _format_ulp(group.max_ulp),
                ),
                group.group,
            )
            for group in comparison.groups.find_worst(most)
        ]
        hidden = f"; {count - most:,} of them hidden, --full shows all" if count > most else ""
        note = f"{count:,} of {self.plan.grid.group_count:,} groups differ{hidden}"
        columns = ("group", "mismatches", "of its values", "worst ulp")
        if comparison.tally.compared == self.plan.grid.group_count:  # one value a group
            return Table(None, ("group", "worst ulp"), (False, True), [_pick(row, 0, 3) for row in rows], note)
        return Table(None, columns, (False, True, True, True), rows, note)

    # -- for a program

    def _describe(self, name: str, comparison: Comparison) -> Mapping[str, Any]:
        tally, limits = comparison.tally, comparison.tolerance
        allowed = (
            {"rtol": limits.rtol, "atol": limits.atol}
            if limits.max_ulp is None
            else {"max_ulp_allowed": limits.max_ulp}
        )
        worst = tally.worst
        return {
            "ok": comparison.ok,
            "source": self.sources[name],
            "dtype": comparison.dtype.name,
            "compared": tally.compared,
            "mismatches": tally.mismatches,
            "max_ulp": _spell(tally.max_ulp),
            "max_abs": _spell(tally.max_abs),
            **allowed,
            "worst": None
            if worst is None
            else {
                **({"index": self._find_index(worst.place)} if name == NORMALIZED else {}),
                "group": self.plan.grid.group_index(self._find_group(name, worst.place)),
                "expected": _spell(worst.expected),
                "actual": _spell(worst.actual),
                "ulp": _spell(worst.ulp),
            },
            "histogram": [
                {"from": _spell(part.lower), "to": _spell(part.upper), "count": part.value_count}
                for part in tally.histogram
            ],
            "groups_with_mismatches": comparison.count_groups(),
            "groups": _Groups(self, comparison),
        }

    def _describe_group(self, group: GroupDifference) -> Mapping[str, Any]:
        return {
            "group": self.plan.grid.group_index(group.group),
            "mismatches": group.mismatches,
            "max_ulp": _spell(group.max_ulp),
        }

    def _find_index(self, place: int) -> dict[str, int]:
        names = [self.plan.grid.layout.name(axis) for axis in range(len(self.plan.grid.shape))]
        return dict(zip(names, _unravel(place, self.plan.grid.shape), strict=True))

    def _find_group(self, name: str, place: int) -> int:
        if name != NORMALIZED:
            return place
        import numpy as np

        index = [np.asarray(i, dtype=np.intp) for i in _unravel(place, self.plan.grid.shape)]
        return int(self.plan.grid.locate_groups(index))


class _Groups(NamedTuple):
    """The groups with mismatches as JSON, one after the other: there may be more than fit into memory."""

    verdict: Verdict
    comparison: Comparison

    def format_json(self) -> Iterator[str]:
        """Yield the text of a list."""
        yield "["
        for number, group in enumerate(self.comparison.groups or ()):
            yield ", " if number else ""
            yield from format_json(self.verdict._describe_group(group))
        yield "]"


def _draw_histogram(comparison: Comparison, view: View) -> Table:
    total = comparison.tally.compared
    bins = comparison.tally.histogram if view.full else _coarsen(comparison.tally.histogram)
    rows = [
        Row((_phrase_bin(part), f"{part.value_count:,}", _phrase_share(part.value_count, total)))
        for part in bins
    ]
    return Table(None, (f"ulp of {comparison.dtype.name}", "values", "share"), (False, True, True), rows)


def _coarsen(bins: Sequence[Bin]) -> list[Bin]:
    """Put bins that lie far out together, ten to one."""
    coarse: list[Bin] = []
    for part in bins:
        if not _FINE_BOUND <= part.lower < math.inf:
            coarse.append(part)
            continue
        step = (math.frexp(part.lower)[1] - 1) // _COARSE_STEP
        lower = 2.0 ** (step * _COARSE_STEP)
        if coarse and coarse[-1].lower == lower:
            part = part._replace(value_count=part.value_count + coarse.pop().value_count)
        upper = lower * 2.0**_COARSE_STEP if step < 102 else math.inf
        coarse.append(part._replace(lower=lower, upper=upper))
    return coarse


def _phrase_share(count: int, total: int) -> str:
    percent = f"{100 * count / total:.3g}"
    return f"{'> 99.9' if percent == '100' and count < total else percent} %"


def _phrase_bin(part: Bin) -> str:
    if math.isinf(part.lower):
        return "not finite"
    return f"{_phrase_bound(part.lower)} – {_phrase_bound(part.upper)}"


def _phrase_bound(bound: float) -> str:
    if bound < _FINE_BOUND or math.isinf(bound):
        return f"{bound:g}"
    return f"2^{math.frexp(bound)[1] - 1}"


def _phrase_tolerance(comparison: Comparison) -> str:
    limits = comparison.tolerance
    if limits.max_ulp is not None:
        return f"up to {limits.max_ulp:g} ulp"
    return f"rtol {limits.rtol:g}, atol {limits.atol:g}"


def _format_ulp(value: float) -> str:
    return f"{value:.{_ULP_DIGITS}g}"


def _join(index: Mapping[str, int]) -> str:
    return " ".join(f"{name}={i}" for name, i in index.items()) or "the only value"


def _pick(row: Row, *cells: int) -> Row:
    return row._replace(cells=tuple(row.cells[i] for i in cells))


def _unravel(place: int, shape: tuple[int, ...]) -> tuple[int, ...]:
    import numpy as np

    return tuple(int(i) for i in np.unravel_index(place, shape)) if shape else ()


def _spell(value: float) -> float | str:
    if math.isfinite(value):
        return value
    return "nan" if math.isnan(value) else "inf" if value > 0 else "-inf"
