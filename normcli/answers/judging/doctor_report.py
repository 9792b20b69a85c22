"""The answer of `normcli doctor`: the error of each algorithm on a tensor, and the safe algorithms."""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from normcli.algorithms.row_computation import parse_computation
from normcli.algorithms.table import list_practices
from normcli.answers.judging.distances import describe_tolerance, format_ulp, list_tolerance
from normcli.doctor.examination import SHORT
from normcli.documents.document import Line, Table, TableRow, describe_members, describe_value
from normcli.documents.plan_header import (
    build_header,
    describe_plan,
    describe_selection,
    describe_tensor,
    list_facts,
    list_selection,
    name_inputs,
)
from normcli.dtypes import get_largest
from normcli.printable import format_count

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from normcli.algorithms.row_computation import Computation
    from normcli.doctor.examination import Distribution, Examination, Finding, Lost
    from normcli.documents.document import Section, View
    from normcli.engine.inputs import Inputs
    from normcli.quantizing.quantize import FormatCost
    from normcli.tensors.tensor import Tensor

_COLUMNS = ("worst ulp", "median", "var < 0", "var = 0", "overflow")


@dataclass(frozen=True)
class ExaminationAnswer:
    """The document of `normcli doctor`: the error of every algorithm on a tensor.

    Parameters
    ----------
    found : Examination
    tensor : Tensor
        The input.
    inputs : Inputs
        Gamma, beta and the selection of values that count.
    required : Computation or None
        The algorithm that has to be safe; None if none has to.
    costs : sequence of FormatCost
        The errors of the exact result in formats of few bits.
    """

    found: Examination
    tensor: Tensor
    inputs: Inputs
    required: Computation | None = None
    costs: Sequence[FormatCost] = ()

    @property
    def ok(self) -> bool:
        """Whether the required algorithm is safe; True without one."""
        finding = self._find_required()
        return self.required is None or (finding is not None and finding.is_safe and not self.found.beyond)

    def _find_required(self) -> Finding | None:
        return None if self.required is None else self.found.find(self.required)

    def sections(self, view: View) -> Iterator[Section]:
        """Yield a header, tables of conditioning, algorithms, frameworks and formats, and the verdict."""
        plan = self.found.plan
        title = f"doctor {plan.norm.name} · {plan.norm.title}"
        source = list_facts(self.tensor, self.found.tolerance.dtype)
        dtype, limit = list_tolerance(self.found.tolerance)
        safe = (("safe", (f"in {dtype}", "within " + limit.removeprefix("up to "))),)
        selection = list_selection(plan, self.tensor.values, self.inputs.selection, None)
        counting = [(label, facts[:-1]) for label, facts in selection]  # nothing takes the place of the others
        yield build_header(title, plan, source, view, name_inputs(self.inputs), (*counting, *safe))
        yield self._list_conditions()
        yield from self._list_findings(view)
        if list_practices(plan.norm.name):
            yield self._list_practices()
        if self.costs:
            yield self._list_costs()
        yield Line((self.sentence,), self.ok if self.required is not None else None)

    def _list_costs(self) -> Table:
        columns = ("exact, stored as", "scale per", "signal to noise", "error", "saturated", "flushed")
        rows = [
            TableRow((
                cost.format, cost.per, f"{cost.signal_to_noise:.3g} dB", f"{cost.error:.3g}",
                f"{cost.saturated:.2%}", f"{cost.flushed:.2%}",
            ))
            for cost in self.costs
        ]  # fmt: skip
        return Table(None, columns, (False, False, *(True,) * 4), rows)

    def data(self) -> Mapping[str, Any]:
        """Return the examination as a JSON object: `conditioning`, `algorithms`, `formats`, `frameworks`."""
        found, grid = self.found, self.found.plan.grid
        cheapest = found.cheapest
        return {
            **describe_plan(found.plan, {"input": describe_tensor(self.tensor)}),
            **describe_selection(self.inputs.selection),
            "dtype": found.tolerance.dtype.name,
            **describe_tolerance(found.tolerance),
            "ok": self.ok,
            "required": None if self.required is None else self.required.name,
            "cheapest": None if cheapest is None else cheapest.computation.name,
            "sentence": self.sentence,
            "groups_judged": found.judged,
            "values_beyond_dtype": found.beyond,
            "groups_with_var_up_to_eps": found.faint,
            **({} if found.headroom is None else {f"{SHORT}_headroom": describe_value(found.headroom)}),
            "conditioning": {
                name: {
                    "median": describe_value(one.median),
                    "largest": describe_value(one.largest),
                    "group": grid.group_index(one.place),
                }
                for name, one in found.conditions.items()
                if one.place >= 0
            },
            "algorithms": list(self.records()),
            "formats": [describe_members(cost, *cost._fields) for cost in self.costs],
            "frameworks": [
                describe_members(row, "framework", "computation", "held", "source")
                for row in list_practices(found.plan.norm.name)
            ],
        }

    def records(self) -> Iterator[Mapping[str, Any]]:
        """Return an iterator over a JSON object for each algorithm, dtype of sums and order of casts."""
        return map(self._describe, self.found.findings)

    def rows(self) -> Iterator[Sequence[Any]]:
        """Yield the rows of a CSV table, one per algorithm, dtype of sums and order of casts; names first."""
        yield tuple(next(self.records()))
        for record in self.records():
            yield tuple(_name_index(value) if isinstance(value, dict) else value for value in record.values())

    def _describe(self, finding: Finding) -> Mapping[str, Any]:
        grid, overflow = self.found.plan.grid, finding.overflow
        accumulation, cast = finding.computation

        def name_group(number: int | None) -> Any:
            return None if number is None or number < 0 else grid.group_index(number)

        return {
            "name": finding.computation.name,
            "algorithm": accumulation.algorithm.name,
            "sums": accumulation.dtype,
            "cast": cast.name,
            "safe": finding.is_safe,
            "mismatches": finding.distances.mismatches,
            "max_ulp": describe_value(max(0.0, finding.distances.ulp.largest)),
            "median_ulp": describe_value(finding.distances.ulp.median),
            "worst_group": name_group(finding.distances.excess.place),
            "negative_variances": finding.negative.count,
            "first_negative": name_group(finding.negative.first),
            "zero_variances": finding.zero.count,
            "first_zero": name_group(finding.zero.first),
            "overflow": overflow and {"group": name_group(overflow.group), "place": overflow.place},
        }

    # -- for a reader

    def _list_conditions(self) -> Table:
        """Return the table of the groups' conditioning: the median and the largest of each measure."""
        found, grid = self.found, self.found.plan.grid
        largest = get_largest(found.tolerance.dtype.name)
        rows = []
        for name, one in found.conditions.items():
            if one.place < 0:
                continue
            over = f"beyond {largest:.6g}" if name != "mean²/var" and one.largest > largest else ""
            numbers = (f"{one.median:.3g}", f"{one.largest:.4g}")
            rows.append(TableRow((name, *numbers, grid.group_name(one.place), over), one.place))
        square, judged = found.plan.norm.divisor.square, format_count(found.judged, "group")
        notes = [f"{found.faint:,} of {judged} with {square} ≤ eps"] if found.plan.spec.eps else []
        if found.beyond:
            notes.append(f"{format_count(found.beyond, 'value')} beyond {found.tolerance.dtype.name}")
        if found.headroom is not None:
            notes.append(f"{SHORT} sums hold {found.headroom:.3g} × the largest Σx²")
        columns = ("of each group", "median", "largest", "in group", "")
        return Table("conditioning", columns, (False, True, True, False, False), rows, "; ".join(notes) or None)

    def _list_findings(self, view: View) -> Iterator[Section]:
        """Yield a table of algorithms for each dtype of sums; a line counts those that the view hides."""
        every = self.found.findings if view.full else self.found.usual
        hidden = len(self.found.findings) - len(every)
        for dtype, group in itertools.groupby(every, lambda finding: finding.computation.accumulation.dtype):
            columns = (f"{dtype} sums", *_COLUMNS)
            rows = [TableRow(self._to_cells(finding)) for finding in group]
            yield Table(None, columns, (False, *(True,) * 4, False), rows)
        if hidden:
            yield Line((f"rounded once at the end; --full shows {hidden} other cast orders",))

    def _list_practices(self) -> Table:
        """Return a table of frameworks: each one's algorithm, if it is safe here, and how it is known."""
        rows = []
        for row in list_practices(self.found.plan.norm.name):
            finding = self.found.find(parse_computation(row.computation))
            mark = "" if finding is None else "✓ " if finding.is_safe else "✗ "
            rows.append(TableRow((row.framework, f"{mark}{row.computation}", row.held.value)))
        return Table(None, ("framework", "calculates", "held against it"), (False,) * 3, rows)

    def _to_cells(self, finding: Finding) -> tuple[str, ...]:
        overflow, grid = finding.overflow, self.found.plan.grid
        accumulation = finding.computation.accumulation
        where = ""
        if overflow is not None:
            at = "" if overflow.place is None else f" at {overflow.place}"
            where = f"{grid.group_name(overflow.group)}{at}"
        name = finding.computation.name.replace(f":{accumulation.dtype}", "")
        return (
            f"{'✓' if finding.is_safe else '✗'} {name}",
            _format(finding.distances.ulp),
            f"{finding.distances.ulp.median:.2g}",
            _format_lost(finding.negative),
            _format_lost(finding.zero),
            where,
        )

    @property
    def sentence(self) -> str:
        """The verdict on one line."""
        return " ".join((*self._judge_required(), self._judge_cheapest()))

    def _judge_required(self) -> Iterator[str]:
        finding = self._find_required()
        if self.required is None:
            return
        if finding is None:
            yield f"{self.required.name} could not be tried here."
        elif self.ok:
            yield f"{self.required.name} is safe: {_format(finding.distances.ulp)} ulp at most."
        else:
            group = self.found.plan.grid.group_name(finding.distances.excess.place)
            count = format_count(finding.distances.mismatches, "value")
            off = f"{count} up to {_format(finding.distances.ulp)} ulp off"
            if finding.distances.ulp.largest == math.inf:
                off = f"{count} off, some infinitely far"
            yield f"{self.required.name} is not safe: {off}, the worst in group {group}."

    def _judge_cheapest(self) -> str:
        """Return a sentence: the cheapest safe algorithm, and the group worst under most of the unsafe ones.

        If none is safe, if all are, or if no group could be examined, the sentence says this.
        """
        found, dtype = self.found, self.found.tolerance.dtype.name
        if not found.judged:
            return f"No group is finite in {dtype}: there is nothing to judge."
        if found.beyond:
            return f"{format_count(found.beyond, 'value')} of the input is beyond {dtype}."
        cheapest, worst = found.cheapest, found.worst_group
        said = f"None is safe in {dtype}"
        if cheapest is not None:
            said = f"The cheapest that is safe in {dtype} is {cheapest.computation.name}"
        if worst is None:
            return f"{said}; all are."
        group, count = worst
        unsafe = sum(not finding.is_safe for finding in found.usual)
        name = found.plan.grid.group_name(group)
        return f"{said}; group {name} is the worst under {count} of the {unsafe} unsafe ones."


def _format(distances: Distribution) -> str:
    return format_ulp(max(0.0, distances.largest))


def _name_index(index: Mapping[str, int]) -> str:
    return " ".join(f"{name}={place}" for name, place in index.items())


def _format_lost(lost: Lost) -> str:
    return f"{lost.count:,}" if lost.count else "–"
