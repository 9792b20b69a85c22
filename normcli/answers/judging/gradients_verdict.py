"""The answer of `normcli check NORM --backward`: the distances of gradients from the exact ones, and faults."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from normcli.answers.judging.distances import (
    OF_WORST,
    build_histogram,
    build_line,
    build_worst,
    describe_comparison,
    list_compared,
    list_smallest,
    list_verdict_lines,
    name_place,
)
from normcli.documents.document import Facts, Line, RecordDocument, describe_members
from normcli.documents.excerpt import locate_last
from normcli.documents.plan_header import build_header, describe_plan, describe_tensor, list_facts, name_inputs

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from normcli.checking.gradient_check import CheckedGradients
    from normcli.documents.document import Section, View
    from normcli.tensors.tensor import Tensor


_OF_PARAMETERS = ("dgamma", "dbeta")


@dataclass(frozen=True)
class GradientsVerdict(RecordDocument):
    """The document of `normcli check NORM --backward`: the comparison of gradients with the exact ones.

    Parameters
    ----------
    checked : CheckedGradients
        The comparisons.
    tensor, dy : Tensor
        The input, and the derivative of the loss with respect to y.
    sources : mapping of str to str
        The file of each compared array, by the array's name.
    warnings : sequence of str
        Warnings on degenerate groups.
    """

    checked: CheckedGradients
    tensor: Tensor
    dy: Tensor
    sources: Mapping[str, str]
    warnings: Sequence[str] = ()
    row_names = ("gradient", "compared", "mismatches", "max_ulp", "max_abs")

    def sections(self, view: View) -> Iterator[Section]:
        """Yield the header, worst values and distances, and the verdict of each array."""
        exact, plan = self.checked.gradients, self.checked.gradients.plan
        title = f"check backward {plan.norm.name} · {plan.norm.title}"
        given = name_inputs(exact.inputs)
        yield build_header(title, plan, list_facts(self.tensor), view, given, self.list_facts())
        yield from self.detail(view)
        yield from self.judge()

    def list_facts(self) -> list[tuple[str, tuple[str, ...]]]:
        """Return the header's lines on dy and on the compared gradients."""
        return [("dy", list_facts(self.dy)), *list_compared(self.checked.comparisons, self.sources)]

    def detail(self, view: View) -> Iterator[Section]:
        """Yield the worst value of each gradient that differs, and the histogram of distances of dx."""
        for name, comparison in self.checked.comparisons.items():
            if comparison.worst is not None and not comparison.ok:
                yield build_worst(name, self._name_place(name, comparison.worst.place), comparison, view)
            if name == "dx" and comparison.compared:
                yield build_histogram(comparison, view, name)

    def judge(self) -> Iterator[Section]:
        """Yield the verdict on each gradient; for a known fault, with its evidence and the remedy."""
        for name, comparison in self.checked.comparisons.items():
            finding, saved = self.checked.causes.get(name), self.checked.saved.get(name, ())
            if finding is None:
                yield from list_verdict_lines(name, comparison)
                yield from [Line(saved)] if saved else ()
                continue
            verdict = build_line(name, comparison)
            others = tuple(fault.words for fault in finding.alternatives)
            off = verdict.facts[0].removeprefix(f"{name}: "), *verdict.facts[1:]
            lines = (
                ("or", others),
                ("evidence", (*saved, *finding.evidence)),
                ("fix", (finding.fault.remedy,)),
                ("off", off),
            )
            yield Facts(f"✗ {name}: {finding.fault.words}.", tuple(entry for entry in lines if any(entry[1])))
            yield from () if finding.fault.id else list_smallest(comparison)

    def data(self) -> Mapping[str, Any]:
        """Return the verdicts as a JSON object: plan, `ok`, `warnings`, and `gradients`, a verdict on each."""
        subject = {"input": describe_tensor(self.tensor), "dy": describe_tensor(self.dy)}
        return {
            **describe_plan(self.checked.gradients.plan, subject),
            "ok": self.checked.ok,
            "gradients": self.describe(),
            "warnings": list(self.warnings),
        }

    def describe(self) -> Mapping[str, Any]:
        """Return the verdict of each compared gradient as a JSON object, by name, such as `dx`."""
        return {name: self._describe(name) for name in self.checked.comparisons}

    def records(self) -> Iterator[Mapping[str, Any]]:
        """Yield one object for each compared gradient."""
        for name in self.checked.comparisons:
            yield {"gradient": name, **self._describe(name)}

    def _describe(self, name: str) -> Mapping[str, Any]:
        comparison = self.checked.comparisons[name]
        worst = comparison.worst
        return {
            "source": self.sources[name],
            **describe_comparison(comparison),
            "worst": worst and {"index": self._locate(name, worst.place), **describe_members(worst, *OF_WORST)},
            **self._describe_fault(name),
        }

    def _describe_fault(self, name: str) -> Mapping[str, Any]:
        """Return the cause of a gradient's difference as JSON members, which are None if no cause is known.

        The members are `sentence`, `fault` (its id), `cause`, `evidence`, `alternatives` and `remedy`.
        """
        finding = self.checked.causes.get(name)
        shown = "; ".join((*self.checked.saved.get(name, ()), *(finding.evidence if finding else ()))) or None
        if finding is None:
            members = ("sentence", "fault", "cause", "evidence", "alternatives", "remedy")
            return dict.fromkeys(members) | {"evidence": shown}
        fault, others = finding.fault, finding.alternatives
        return {
            "sentence": finding.sentence,
            "fault": fault.id or None,
            "cause": fault.words,
            "evidence": shown,
            "alternatives": [{"fault": other.id or None, "cause": other.words} for other in others],
            "remedy": fault.remedy or None,
        }

    def _name_place(self, name: str, place: int) -> tuple[str, ...]:
        """Return the index of a gradient's value in words; for one of the input's shape, also its group.

        `place` is the flat index of the value in the gradient `name`.
        """
        found = self.checked.gradients
        if name not in _OF_PARAMETERS and getattr(found, name).shape == found.plan.grid.shape:
            return name_place(found.plan, place, found.plan.grid)
        index = self._locate(name, place)
        return (" ".join(f"{axis}={i}" for axis, i in index.items()) or "the only value",)

    def _locate(self, name: str, place: int) -> dict[str, int]:
        """Return the index of a gradient's value, given its flat index, by the names of the axes."""
        plan = self.checked.gradients.plan
        if name in _OF_PARAMETERS:
            return {plan.grid.layout.name(axis): i for axis, i in plan.parameters.locate(place).items()}
        return locate_last(plan.grid.layout.names, getattr(self.checked.gradients, name).shape, place)
