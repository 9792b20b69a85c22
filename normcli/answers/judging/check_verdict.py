"""The answers of `normcli check NORM`: how far arrays, grouped rows, or running statistics are off."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from normcli.answers.judging.distances import (
    OF_COMPARISON,
    OF_WORST,
    build_histogram,
    build_short_line,
    build_worst,
    describe_comparison,
    format_ratio,
    format_ulp,
    list_compared,
    list_verdict_lines,
    name_place,
    tell_difference,
)
from normcli.answers.judging.identification import build_verdict, describe_diagnosis
from normcli.checking.check import NORMALIZED
from normcli.documents.document import (
    SCHEMA,
    Facts,
    Line,
    LongList,
    RecordDocument,
    Table,
    TableRow,
    describe_members,
)
from normcli.documents.excerpt import MOST_GROUPS, format_hidden
from normcli.documents.plan_header import (
    build_header,
    describe_plan,
    describe_selection,
    describe_tensor,
    list_facts,
    list_selection,
)
from normcli.language import keep_names
from normcli.printable import format_count, make_printable

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from numpy.typing import NDArray

    from normcli.answers.judging.gradients_verdict import GradientsVerdict
    from normcli.checking.check import Checked
    from normcli.checking.tally import Comparison, Element, GroupDifference
    from normcli.documents.document import Section, View
    from normcli.identifying.grouped_check import GroupedCheck
    from normcli.identifying.question import Diagnosis
    from normcli.norms.grid import Grid
    from normcli.norms.plan import Plan
    from normcli.tensors.tensor import Tensor


_OF_GROUP = ("mismatches", "max_ulp")


@dataclass(frozen=True)
class Verdict(RecordDocument):
    """The document of `normcli check NORM`: the comparison of arrays with the exact ones.

    Parameters
    ----------
    plan : Plan
    tensor : Tensor
        The input.
    parameters : mapping of str to ndarray or None
        Gamma and beta by name, of the plan's shape; None for one that was not given.
    sources : mapping of str to str
        The file of each compared array, by the array's name.
    checked : Checked
        The comparisons.
    warnings : sequence of str
        Warnings on degenerate groups.
    diagnosis : Diagnosis or None
        The diagnosis of a tensor that differs, or whose bits show another algorithm; None without findings.
    gradients : GradientsVerdict or None
        The verdict on the backward pass of golden files; None if they have none.
    """

    plan: Plan
    tensor: Tensor
    parameters: Mapping[str, NDArray[Any] | None]
    sources: Mapping[str, str]
    checked: Checked
    warnings: Sequence[str] = ()
    diagnosis: Diagnosis | None = None
    gradients: GradientsVerdict | None = None

    @property
    def ok(self) -> bool:
        """Whether all arrays, and all gradients if there are any, agree."""
        return self.checked.ok and (self.gradients is None or self.gradients.checked.ok)

    def sections(self, view: View) -> Iterator[Section]:
        """Yield a header, details of the arrays, details of the gradients, and the verdicts.

        Details are the worst value and the worst groups of each array that differs, and a histogram of
        distances for the normalized tensor alone, whether it differs or not.
        """
        yield self._build_header(view)
        for name, comparison in self.checked.comparisons.items():
            if comparison.worst is not None and not comparison.ok:
                yield build_worst(name, self._name_place(name, comparison.worst.place), comparison, view)
            if name == NORMALIZED and comparison.compared:
                yield build_histogram(comparison, view)
            if comparison.groups is not None and not comparison.ok and self._groups.group_count > 1:
                yield self._build_groups(comparison, view)
        if self.gradients is not None:
            yield from self.gradients.detail(view)
        for name, comparison in self.checked.comparisons.items():
            yield from list_verdict_lines(name, comparison)
        if self.diagnosis is not None:
            yield build_verdict(self.diagnosis, None if self.checked.ok else False)
        if self.gradients is not None:
            yield from self.gradients.judge()

    def data(self) -> Mapping[str, Any]:
        """Return the verdicts as a JSON object: `check` of the tensor, `statistics` by name, `diagnosis`.

        `check` and each statistic have the groups with mismatches in `groups`, in order of their indices.
        """
        comparisons = {name: self._describe(name, found) for name, found in self.checked.comparisons.items()}
        return {
            **describe_plan(self.plan, {"input": describe_tensor(self.tensor)}),
            **describe_selection(self.checked.selection),
            "ok": self.ok,
            "check": comparisons.pop(NORMALIZED, None),
            "statistics": comparisons,
            **({} if self.gradients is None else {"gradients": self.gradients.describe()}),
            "diagnosis": None if self.diagnosis is None else describe_diagnosis(self.diagnosis),
            "sentence": None if self.diagnosis is None else self.diagnosis.sentence,
            "warnings": list(self.warnings),
        }

    def records(self) -> Iterator[Mapping[str, Any]]:
        """Yield a JSON object for each group with a mismatch of each array, and for each wrong gradient."""
        for name, comparison in self.checked.comparisons.items():
            for group in comparison.groups or ():
                yield {"compared": name, **self._describe_group(group)}
        gradients = {} if self.gradients is None else self.gradients.checked.comparisons
        for name, comparison in gradients.items():
            if not comparison.ok:
                nowhere = dict.fromkeys(self._groups.kept_names)
                yield {"compared": name, "group": nowhere, **describe_members(comparison, *_OF_GROUP)}

    @property
    def row_names(self) -> Sequence[str]:
        """The columns of a group with a mismatch: array, index, mismatches, largest distance in ulp."""
        return ("compared", *self._groups.kept_names, *_OF_GROUP)

    @property
    def _groups(self) -> Grid | GroupedCheck:
        """The groups that mismatches are counted in."""
        return self.plan.grid

    def _measure_group(self, number: int) -> int:
        """Return the number of values in a group."""
        return self.plan.grid.group_size

    def _name_place(self, name: str, place: int) -> tuple[str, ...]:
        if name != NORMALIZED:
            return (self._groups.group_name(place),)
        return name_place(self.plan, place, self._groups)

    # -- for a reader

    def _build_header(self, view: View) -> Facts:
        more = list(list_selection(self.plan, self.tensor.values, self.checked.selection, self.checked.counts))
        more += list_compared(self.checked.comparisons, self.sources)
        if self.gradients is not None:
            more += self.gradients.list_facts()
        title = f"check {self.plan.norm.name} · {self.plan.norm.title}"
        return build_header(title, self.plan, list_facts(self.tensor), view, self.parameters, more)

    def _build_groups(self, comparison: Comparison, view: View) -> Table:
        """Return a table of the groups with mismatches, those with most first, then by largest distance.

        A full view has all of them; others have the first few.
        """
        assert comparison.groups is not None
        every, count = self._groups.group_count, comparison.count_groups()
        most = count if view.full else min(count, MOST_GROUPS // 3)
        note = tell_difference(count, format_count(every, "group"))
        notes = filter(None, (note, format_hidden(count - most, count, "group")))
        one_each = comparison.compared == every
        columns = ("group", *(() if one_each else ("mismatches", "of its values")), "worst ulp")
        rows = []
        for group in comparison.groups.find_worst(most):
            share = f"{group.mismatches:,}", format_ratio(group.mismatches, self._measure_group(group.group))
            name, shown = self._groups.group_name(group.group), () if one_each else share
            rows.append(TableRow((name, *shown, format_ulp(group.max_ulp)), group.group))
        return Table(None, columns, (False, *(True,) * (len(columns) - 1)), rows, "; ".join(notes))

    # -- for a program

    def _describe(self, name: str, comparison: Comparison) -> Mapping[str, Any]:
        return {
            "source": self.sources[name],
            **describe_comparison(comparison),
            "worst": comparison.worst and self._describe_worst(name, comparison.worst),
            "groups_with_mismatches": comparison.count_groups(),
            "groups": LongList([self._describe_group(group)] for group in comparison.groups or ()),
        }

    def _describe_worst(self, name: str, worst: Element) -> Mapping[str, Any]:
        place, number = {}, worst.place
        if name == NORMALIZED:
            index = np.unravel_index(np.asarray(worst.place), self.plan.grid.shape)
            place = {"index": dict(zip(self.plan.grid.layout.names, map(int, index), strict=True))}
            number = int(self._groups.locate_groups(index))
        return {**place, "group": self._groups.group_index(number), **describe_members(worst, *OF_WORST)}

    def _describe_group(self, group: GroupDifference) -> Mapping[str, Any]:
        return {"group": self._groups.group_index(group.group), **describe_members(group, *_OF_GROUP)}


@dataclass(frozen=True)
class RunningVerdict(RecordDocument):
    """The document of `check` on running statistics: their comparison with the exact ones of some batches.

    Parameters
    ----------
    norm : str
    batches : tuple of str
        The files of the batches.
    found : sequence of tuple
        The name of each statistic, its comparison, and the cause if it differs (None if unknown).
    """

    norm: str
    batches: tuple[str, ...]
    found: Sequence[tuple[str, Comparison, str | None]]

    @property
    def ok(self) -> bool:
        """Whether all statistics agree."""
        return all(one.ok for _, one, _ in self.found)

    def sections(self, view: View) -> Iterator[Section]:
        """Yield the batches, and a line for each statistic."""
        lines = (("batches", tuple(map(make_printable, self.batches))),)
        yield Facts(f"check {self.norm} · running statistics", lines)
        for name, one, cause in self.found:
            yield build_short_line(name, one)
            if cause is not None:
                yield Line((f"{cause}.",), mark=False)

    def data(self) -> Mapping[str, Any]:
        """Return the verdicts as a JSON object: `ok`, and in `checked` the objects of `records`."""
        return {"schema": SCHEMA, "norm": self.norm, "ok": self.ok, "checked": list(self.records())}

    def records(self) -> Iterator[Mapping[str, Any]]:
        """Yield a JSON object for each statistic: its name, distances, and the cause if it differs."""
        for name, one, cause in self.found:
            yield {"name": name, **describe_members(one, *OF_COMPARISON), "cause": cause}


@dataclass(frozen=True, kw_only=True)
class GroupedVerdict(Verdict):
    """The document of `check --by` on a table; a column's values in the rows of one key are a group.

    Parameters
    ----------
    found : GroupedCheck
        The comparison, and the labels of the groups.
    """

    found: GroupedCheck

    @property
    def _groups(self) -> GroupedCheck:
        return self.found

    def _build_header(self, view: View) -> Facts:
        labels = self.found.groups.labels
        keep_names(cell for label in labels for cell in label if cell)
        by = make_printable(", ".join(self._groups.kept_names[:-1]))
        groups = ("groups", (f"rows by {by}", format_count(len(labels), "group")))
        header, (few, values) = super()._build_header(view), self.found.unjudged
        lines = [groups if line[0] == "groups" else line for line in header.lines]
        if values:
            why = f"{format_count(few, 'group')} of no more values than ddof"
            lines.append(("not judged", (format_count(values, "value"), why)))
        return header._replace(lines=tuple(lines))

    def data(self) -> Mapping[str, Any]:
        """Return the verdicts as a JSON object, with `by`, `group_count` and `not_judged` added.

        `by` has the names of the key columns; `not_judged` the numbers of groups, and of values, that are too
        few for ddof.
        """
        return {
            **super().data(),
            "by": list(self._groups.kept_names[:-1]),
            "group_count": self._groups.group_count,
            "not_judged": dict(zip(("groups", "values"), self.found.unjudged, strict=True)),
        }

    def _measure_group(self, number: int) -> int:
        return int(np.count_nonzero(self.found.places == number // self.tensor.values.shape[1]))
