"""The answer of `normcli simulate training`: one sample in training and in evaluation, step after step."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from normcli.answers.batches.simulation_parts import (
    MIDDLE,
    build_facts,
    build_page,
    draw_scene,
    format_change,
    format_quartiles,
)
from normcli.documents.document import Line, Table, TableRow, describe_value, flatten_records
from normcli.documents.excerpt import build_excerpt
from normcli.documents.plan_header import describe_plan, describe_tensor
from normcli.pictures.curves import Curve, draw_curves
from normcli.simulate.batches import NO_CHANGE

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from normcli.documents.document import Facts, Page, Section, View
    from normcli.documents.scene import Scene
    from normcli.simulate.training import Training
    from normcli.tensors.tensor import Tensor

_MEASURED = ("training", "evaluation", "mean", "var")


@dataclass(frozen=True)
class TrainingAnswer:
    """One sample in training and in evaluation, step after step.

    Parameters
    ----------
    found : Training
    tensor : Tensor
        The population.
    """

    found: Training
    tensor: Tensor

    def sections(self, view: View) -> Iterator[Section]:
        """Return the header, the steps, and how far either ends from the population."""
        yield self._build_header()
        yield self._list_steps(view)
        yield Line((self._sentence,))

    def data(self) -> Mapping[str, Any]:
        """Return the object of JSON."""
        found = self.found
        return {
            **describe_plan(found.plan, {"input": describe_tensor(self.tensor)}),
            "simulation": "training",
            "sample": found.population.sample,
            "batch": found.batch,
            "runs": found.runs,
            "batch_seed": found.seed,
            "rule": found.rule._asdict(),
            **found.change._asdict(),
            "since": found.since,
            "steps": list(self.records()),
            "sentence": self._sentence,
        }

    def records(self) -> Iterator[Mapping[str, Any]]:
        """Return one object for each step."""
        for step in self.found.steps:
            yield {"step": step.number, **{name: describe_value(getattr(step, name)) for name in _MEASURED}}

    def rows(self) -> Iterator[Sequence[Any]]:
        """Return one line for each step."""
        return flatten_records(
            {
                "step": step.number,
                **{
                    f"{name}_{end}": number
                    for name in _MEASURED
                    for end, number in describe_value(getattr(step, name)).items()
                },
            }
            for step in self.found.steps
        )

    def scene(self) -> Scene:
        """Return the picture: |Δy| over the steps, of training and of evaluation."""
        found = self.found
        curves = [
            Curve(name, look, [getattr(step, name) for step in found.steps])
            for look, name in enumerate(_MEASURED[:2])
        ]
        changed = found.since - 1 if found.change != NO_CHANGE else None
        labels = [str(step.number) for step in found.steps]
        panel = draw_curves(curves, labels, ("step", "|y − y of the whole population|"), changed)
        note = f"Curve: the median of {found.runs} runs; band: their middle half."
        return draw_scene(
            f"{found.name}: one sample in training and evaluation", self._build_header(), panel, note
        )

    def page(self) -> Page:
        """Return the page."""
        found = self.found
        plans = [(found.name, found.plan)]
        return build_page(self._title, found.population, self.tensor, plans, self.sections, self.scene())

    @property
    def _title(self) -> str:
        norm = self.found.plan.norm
        return f"simulate training · {norm.name} · {norm.title}"

    def _build_header(self) -> Facts:
        found = self.found
        runs = (f"of {found.batch}", f"{found.runs} runs", f"drawn with seed {found.seed}")
        more = [("batches", runs), ("running", (f"momentum {found.rule}", "begins with mean 0 and var 1"))]
        if found.change != NO_CHANGE:
            more.append(("data", (f"x becomes {format_change(found.change)} from step {found.since} on",)))
        return build_facts(self._title, found.population, self.tensor, found.plan, more)

    def _list_steps(self, view: View) -> Table:
        steps = self.found.steps

        def make_row(number: int) -> TableRow:
            measured = (format_quartiles(getattr(steps[number], name)) for name in _MEASURED[:3])
            return TableRow((str(steps[number].number), *measured))

        columns = ("step", "|Δy|, training", "|Δy|, evaluation", "running mean off")
        table = Table(None, columns, (True,) * len(columns), note=MIDDLE)
        return build_excerpt(table, make_row, len(steps), "step", view)

    @property
    def _sentence(self) -> str:
        """The distance of y at the end, and why both differ."""
        last = self.found.steps[-1]
        return (
            f"At step {last.number}, y of the sample is off by {last.training.median:.3g} with its batch's "
            f"statistics, and by {last.evaluation.median:.3g} with the running ones: those of "
            f"{self.found.batch} samples scatter, averages over steps do less, but follow late."
        )
