"""The answer of `normcli simulate batch-size`: how far one sample moves with the batch around it."""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from normcli.answers.batches.simulation_parts import (
    MIDDLE,
    build_facts,
    build_page,
    draw_scene,
    format_change,
    format_quartiles,
    name_samples,
)
from normcli.documents.document import SCHEMA, Line, Table, TableRow, describe_value
from normcli.documents.plan_header import describe_tensor, format_reduction
from normcli.pictures.curves import Curve, draw_curves
from normcli.simulate.batches import NO_CHANGE

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from normcli.documents.document import Facts, Page, Section, View
    from normcli.documents.scene import Scene
    from normcli.simulate.batch_size import BatchSizes, MovedNorm
    from normcli.simulate.batches import Quartiles
    from normcli.tensors.tensor import Tensor

_TITLE = "simulate batch-size · one sample, and the batch around it"


@dataclass(frozen=True)
class BatchSizeAnswer:
    """The movement of one sample with the batch around it, as an answer.

    Parameters
    ----------
    found : BatchSizes
    tensor : Tensor
        The population.
    """

    found: BatchSizes
    tensor: Tensor

    def sections(self, view: View) -> Iterator[Section]:
        """Yield the header, a table for each norm that moves, and a line on why the rest stay."""
        yield self._build_header()
        for norm in self._moving:
            yield _list_movements(norm)
        for norm in self._moving:
            yield Line((_tell_movement(norm),))
        if self._still:
            yield Line((self._tell_why_not(),))

    def data(self) -> Mapping[str, Any]:
        """Return the object of JSON."""
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
        """Return one object for each norm and size."""
        for norm in self.found.norms:
            for one in norm.movements:
                yield {"norm": norm.name, "moves": norm.moves, **describe_value(one)}

    def rows(self) -> Iterator[Sequence[Any]]:
        """Return one line for each norm and size."""
        measured = ("output", "centre", "spread")
        ends = ("low", "median", "high")
        yield ("norm", "size", *(f"{name}_{end}" for name in measured for end in ends))
        for record in self.records():
            numbers = ((record[name] or {}).get(end, "") for name in measured for end in ends)
            yield (record["norm"], record["size"], *numbers)

    def scene(self) -> Scene:
        """Return |Δy| over batch sizes: a curve for each norm that moves, and one for all that stay."""
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
        return draw_scene("How far one sample moves with its batch", self._build_header(), panel, note)

    def page(self) -> Page:
        """Return the page."""
        plans = [(norm.name, norm.plan) for norm in self.found.norms]
        population = self.found.population
        return build_page(_TITLE, population, self.tensor, plans, self.sections, self.scene())

    @functools.cached_property
    def _moving(self) -> tuple[MovedNorm, ...]:
        return tuple(norm for norm in self.found.norms if norm.moves)

    @functools.cached_property
    def _still(self) -> tuple[MovedNorm, ...]:
        return tuple(norm for norm in self.found.norms if not norm.moves)

    def _build_header(self) -> Facts:
        found = self.found
        more: list[tuple[str, tuple[str, ...]]] = [
            ("batches", (f"{found.draws} of each size", f"drawn with seed {found.seed}"))
        ]
        if found.change != NO_CHANGE:
            more.append(("others", (f"x becomes {format_change(found.change)}",)))
        return build_facts(_TITLE, found.population, self.tensor, found.norms[0].plan, more)

    def _tell_why_not(self) -> str:
        """Return why some norms do not move, from their plans."""
        names, plan = ", ".join(norm.name for norm in self._still), self._still[0].plan
        samples = name_samples(plan)
        does = "does" if len(self._still) == 1 else "do"
        return (
            f"{names} {does} not move, in no batch: {samples} is not reduced, so that each group lies within "
            "one sample, and no other sample is in its statistics."
        )


def _list_movements(norm: MovedNorm) -> Table:
    centre, spread = norm.plan.norm.centre.statistic, norm.plan.norm.divisor.spread
    of = f", of the {spread}" if spread else ""
    every: dict[str, list[Quartiles | None]] = {
        f"{centre} off{of}": [one.centre for one in norm.movements],
        f"{spread} off, of itself": [one.spread for one in norm.movements],
        "|Δy|": [one.output for one in norm.movements],
    }
    columns = {name: found for name, column in every.items() if len(found := [*filter(None, column)])}
    rows = [
        TableRow((str(one.size), *map(format_quartiles, found)))
        for one, *found in zip(norm.movements, *columns.values(), strict=True)
    ]
    reduced = format_reduction(norm.plan)[0].partition(" = ")[0]
    title = f"{norm.name} · {norm.plan.norm.title}: {reduced}"
    return Table(title, ("batch", *columns), (True,) * (1 + len(columns)), rows, MIDDLE)


def _tell_movement(norm: MovedNorm) -> str:
    """Return how far a norm moves, and why, from its plan."""
    ends = dict.fromkeys((norm.movements[0], norm.movements[-1]))
    told = " and ".join(f"by {one.output.median:.3g} in batches of {one.size}" for one in ends)
    return (
        f"{norm.name}: y of the sample moves {told}: {name_samples(norm.plan)} is reduced, so that the other "
        "samples are in its statistics."
    )
