"""The answers of `normcli simulate`: changes of one sample's output with its batch, or step after step."""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from normcli.documents.axes_words import format_reduction
from normcli.documents.document import (
    SCHEMA,
    Drawable,
    Facts,
    Line,
    Page,
    Table,
    TableRow,
    describe_value,
)
from normcli.documents.excerpt import build_excerpt
from normcli.documents.plan_header import describe_plan, describe_tensor, list_facts
from normcli.documents.scene import Panel, Scene, draw_lines, stack, wrap
from normcli.pictures.plots import Curve, draw_curves
from normcli.printable import make_printable
from normcli.simulate.batch_size import calculate_batch
from normcli.simulate.batches import NO_CHANGE, Quartiles
from normcli.tensors.tensor import Tensor

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from normcli.documents.document import Section, View
    from normcli.norms.plan import Plan
    from normcli.simulate.batch_size import BatchSizes, MovedNorm
    from normcli.simulate.batches import Change
    from normcli.simulate.training import Training

    _Lines = list[tuple[str, tuple[str, ...]]]
    _Told = tuple[str, Mapping[str, Plan], _Lines]


_MARGIN, _TITLE, _FACTS = 28.0, 30.0, 20.0

_ON_A_PAGE = 3
"""The number of samples that a page shows normalized: the watched sample, and the next ones."""


_MIDDLE = "median (the middle half)"
"""The note on how to read the cells of quartiles."""


def _format_quartiles(quartiles: Quartiles) -> str:
    """Return the median with the ends of the middle half: `0.3 (0.2–0.4)`."""
    low, median, high = quartiles
    return f"{median:.3g} ({low:.3g}–{high:.3g})"


def _format_change(change: Change) -> str:
    """Return a change of x as a formula: `0.5 · x + 2`."""
    shift, scale = change
    scaled = "x" if scale == 1.0 else f"{scale:g} · x"
    return scaled if not shift else f"{scaled} {'−' if shift < 0 else '+'} {abs(shift):g}"


def _name_samples(plan: Plan) -> str:
    """Return the name of the batch axis, along which the samples lie: `N`."""
    grid = plan.grid
    name = grid.layout.name(grid.layout.batch or 0)
    return name.upper() if grid.layout.letters else name


@dataclass(frozen=True)
class _SimulationAnswer(Drawable):
    """The base of a simulation's document: one watched sample of a population, in batches drawn by chance.

    Parameters
    ----------
    found : BatchSizes or Training
    tensor : Tensor
        The population.
    """

    found: BatchSizes | Training
    tensor: Tensor

    def _tell(self) -> _Told:
        """Return the title, the plans of the norms by their names, and lines on how batches are drawn."""
        raise NotImplementedError

    def _build_header(self) -> Facts:
        """Return the header: the population, the watched sample, the batches."""
        population, (title, plans, drawn) = self.found.population, self._tell()
        along = f"{population.sample_count:,} along {_name_samples(next(iter(plans.values())))}"
        watched = (along, f"number {population.sample} is watched")
        own = (("population", list_facts(self.tensor)), ("samples", watched))
        return Facts(title, (*own, *drawn))

    def page(self) -> Page:
        """Return an HTML page: the watched sample and the next two, normalized together, and the simulation."""
        population, (title, plans, _) = self.found.population, self._tell()
        numbers = [(population.sample + step) % population.sample_count for step in range(_ON_A_PAGE)]
        batch = population.take(list(dict.fromkeys(numbers)))
        results = [calculate_batch(plan, batch) for plan in plans.values()]
        shown = Tensor(batch, f"samples {', '.join(map(str, dict.fromkeys(numbers)))} of {self.tensor.source}")
        return Page(title, results, shown, names=[*plans], further=self.sections, picture=self.scene())

    def _draw(self, title: str, curves: Panel, note: str) -> Scene:
        """Return a picture: a title, the lines of the header, curves, and a note on how to read them."""
        facts = [f"{label}: {'; '.join(told)}" for label, told in self._build_header().lines]
        lines = [line for fact in facts for line in wrap([make_printable(fact)], _FACTS, curves.width)]
        heading = stack([draw_lines([title], _TITLE, bold=True), draw_lines(lines, _FACTS, "muted")], 6)
        body = stack([heading, curves, draw_lines(wrap([note], _FACTS, curves.width), _FACTS, "muted")], 22)
        width, height = body.width + 2 * _MARGIN, body.height + 2 * _MARGIN
        return Scene(width, height, title, f"{'. '.join(facts)}. {note}", (body.at(_MARGIN, _MARGIN),))


@dataclass(frozen=True)
class BatchSizeAnswer(_SimulationAnswer):
    """The document of `simulate batch-size`: how one sample's output changes with the batch around it."""

    found: BatchSizes

    def sections(self, view: View) -> Iterator[Section]:
        """Yield a header; for each norm whose y changes, a table and a sentence; a sentence on the others."""
        yield self._build_header()
        for norm in self._moving:
            yield _list_movements(norm)
        for norm in self._moving:
            yield Line((_tell_movement(norm),))
        if self._still:
            yield Line((self._tell_why_not(),))

    def data(self) -> Mapping[str, Any]:
        """Return the simulation as a JSON object: how batches were drawn, and `norms` with their `batches`."""
        found = self.found
        return {
            "schema": SCHEMA,
            "simulation": "batch-size",
            "input": describe_tensor(self.tensor),
            "sample": found.population.sample,
            "draws": found.draws,
            "batch_seed": found.seed,
            **found.change._asdict(),
            "norms": [
                {
                    "norm": norm.name,
                    "formula": norm.plan.formula,
                    "axes": list(norm.plan.grid.axes),
                    "moves": norm.moves,
                    "batches": [describe_value(one) for one in norm.movements],
                }
                for norm in found.norms
            ],
            "sentences": [*map(_tell_movement, self._moving), *([self._tell_why_not()] if self._still else [])],
        }

    def records(self) -> Iterator[Mapping[str, Any]]:
        """Yield a JSON object for each norm and batch size: whether y `moves`, and quartiles of the changes."""
        for norm in self.found.norms:
            for one in norm.movements:
                yield {"norm": norm.name, "moves": norm.moves, **describe_value(one)}

    def rows(self) -> Iterator[Sequence[Any]]:
        """Yield the rows of a CSV table, one per norm and batch size; the names of the columns come first."""
        measured = ("output", "centre", "spread")
        ends = Quartiles._fields
        yield ("norm", "size", *(f"{name}_{end}" for name in measured for end in ends))
        for record in self.records():
            numbers = ((record[name] or {}).get(end, "") for name in measured for end in ends)
            yield (record["norm"], record["size"], *numbers)

    def scene(self) -> Scene:
        """Return a picture of |Δy|, the distance of y from the whole population's, by batch size and norm.

        Norms whose y does not change with the batch share one curve.
        """
        found = self.found
        curves = [
            Curve(norm.name, look, [one.output for one in norm.movements])
            for look, norm in enumerate(self._moving)
        ]
        if self._still:
            names = ", ".join(norm.name for norm in self._still)
            curves.append(Curve(names, len(curves), [one.output for one in self._still[0].movements]))
        labels = [str(size) for size in found.sizes]
        panel = draw_curves(curves, labels, ("samples in a batch", "|y − y of the whole population|"))
        note = f"Curve: the median of {found.draws} batches drawn around the sample; band: their middle half."
        return self._draw("How far one sample moves with its batch", panel, note)

    @functools.cached_property
    def _moving(self) -> tuple[MovedNorm, ...]:
        return tuple(norm for norm in self.found.norms if norm.moves)

    @functools.cached_property
    def _still(self) -> tuple[MovedNorm, ...]:
        return tuple(norm for norm in self.found.norms if not norm.moves)

    def _tell(self) -> _Told:
        found = self.found
        drawn: _Lines = [("batches", (f"{found.draws} of each size", f"drawn with seed {found.seed}"))]
        if found.change != NO_CHANGE:
            drawn.append(("others", (f"x becomes {_format_change(found.change)}",)))
        title = "simulate batch-size · one sample, and the batch around it"
        return title, {norm.name: norm.plan for norm in found.norms}, drawn

    def _tell_why_not(self) -> str:
        """Return a sentence on why the output of some norms does not change with the batch."""
        names, plan = ", ".join(norm.name for norm in self._still), self._still[0].plan
        samples = _name_samples(plan)
        does = "does" if len(self._still) == 1 else "do"
        return (
            f"{names} {does} not move, whatever the batch: {samples} is not reduced, so that each group lies "
            "within one sample, and no other sample is in its statistics."
        )


def _list_movements(norm: MovedNorm) -> Table:
    """Return a table of quartiles per batch size: errors of centre and spread, over the spread; mean |Δy|."""
    centre, spread = norm.plan.norm.centre.statistic, norm.plan.norm.divisor.spread
    over = f" / {spread}" if spread else ""
    every: dict[str, list[Quartiles | None]] = {
        f"{centre} off{over}": [one.centre for one in norm.movements],
        f"{spread} off{over}": [one.spread for one in norm.movements],
        "mean |Δy|": [one.output for one in norm.movements],
    }
    columns = {name: found for name, column in every.items() if len(found := [*filter(None, column)])}
    rows = [
        TableRow((str(one.size), *map(_format_quartiles, found)))
        for one, *found in zip(norm.movements, *columns.values(), strict=True)
    ]
    reduced = format_reduction(norm.plan)[0].partition(" = ")[0]
    title = f"{norm.name} · {norm.plan.norm.title}: {reduced}"
    return Table(title, ("batch", *columns), (True,) * (1 + len(columns)), rows, _MIDDLE)


def _tell_movement(norm: MovedNorm) -> str:
    """Return a sentence on the change of y in the smallest and in the largest batches, and its cause."""
    ends = dict.fromkeys((norm.movements[0], norm.movements[-1]))
    told = " and ".join(f"by {one.output.median:.3g} in batches of {one.size}" for one in ends)
    return (
        f"{norm.name}: y of the sample moves {told}: {_name_samples(norm.plan)} is reduced, so that the other "
        "samples are in its statistics."
    )


_MEASURED = ("training", "evaluation", "mean", "var")


@dataclass(frozen=True)
class TrainingAnswer(_SimulationAnswer):
    """The document of `simulate training`: one sample's output in training and evaluation, by steps."""

    found: Training

    def sections(self, view: View) -> Iterator[Section]:
        """Yield the header, a table of steps, and a sentence on training and evaluation at the end."""
        yield self._build_header()
        yield self._list_steps(view)
        yield Line((self._sentence,))

    def data(self) -> Mapping[str, Any]:
        """Return the simulation as a JSON object: plan, batches, and `steps` (the objects of `records`)."""
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
        """Yield a JSON object per step: quartiles of |Δy| in training and evaluation, errors of mean, var."""
        for step in self.found.steps:
            yield {"step": step.number, **{name: describe_value(getattr(step, name)) for name in _MEASURED}}

    def rows(self) -> Iterator[Sequence[Any]]:
        """Yield the rows of a CSV table, one for each step; the names of the columns come first."""
        yield ("step", *(f"{name}_{end}" for name in _MEASURED for end in Quartiles._fields))
        for record in self.records():
            yield (record["step"], *(number for name in _MEASURED for number in record[name].values()))

    def scene(self) -> Scene:
        """Return a picture of |Δy|, the distance of y from the population's, in training and evaluation."""
        found = self.found
        curves = [
            Curve(name, look, [getattr(step, name) for step in found.steps])
            for look, name in enumerate(_MEASURED[:2])
        ]
        changed = found.since - 1 if found.change != NO_CHANGE else None
        labels = [str(step.number) for step in found.steps]
        panel = draw_curves(curves, labels, ("step", "|y − y of the whole population|"), changed)
        note = f"Curve: the median of {found.runs} runs; band: their middle half."
        return self._draw(f"{found.plan.norm.name}: one sample in training and evaluation", panel, note)

    def _tell(self) -> _Told:
        found = self.found
        drawn: _Lines = [
            ("batches", (f"of {found.batch}", f"{found.runs} runs", f"drawn with seed {found.seed}")),
            ("running", (f"momentum {found.rule}", "begins with mean 0 and var 1")),
        ]
        if found.change != NO_CHANGE:
            drawn.append(("data", (f"x becomes {_format_change(found.change)} from step {found.since} on",)))
        norm = found.plan.norm
        return f"simulate training · {norm.name} · {norm.title}", {norm.name: found.plan}, drawn

    def _list_steps(self, view: View) -> Table:
        steps = self.found.steps

        def make_row(number: int) -> TableRow:
            measured = (_format_quartiles(getattr(steps[number], name)) for name in _MEASURED[:3])
            return TableRow((str(steps[number].number), *measured))

        columns = ("step", "mean |Δy|, training", "mean |Δy|, evaluation", "running mean off")
        table = Table(None, columns, (True,) * len(columns), note=_MIDDLE)
        return build_excerpt(table, make_row, len(steps), "step", view)

    @property
    def _sentence(self) -> str:
        """A sentence on the errors of y in training and evaluation after the last step, and their causes."""
        last = self.found.steps[-1]
        return (
            f"At step {last.number}, y of the sample is off by {last.training.median:.3g} with its batch's "
            f"statistics, and by {last.evaluation.median:.3g} with the running ones: those of "
            f"{self.found.batch} samples scatter, averages over steps do less, but follow late."
        )
