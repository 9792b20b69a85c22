"""The header, the picture and the page of both answers of `normcli simulate`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from normcli.documents.document import Facts, Page
from normcli.documents.plan_header import list_facts
from normcli.documents.scene import Panel, Scene, draw_lines, stack, wrap
from normcli.printable import make_printable
from normcli.simulate.batch_size import calculate_batch
from normcli.tensors.tensor import Tensor

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from normcli.documents.document import Section, View
    from normcli.norms.plan import Plan
    from normcli.simulate.batches import Change, Population, Quartiles

_MARGIN, _TITLE, _FACTS = 28.0, 30.0, 20.0

_ON_A_PAGE = 3
"""Samples of the batch that a page shows normalized: the watched one, and those behind it."""


MIDDLE = "median (the middle half)"
"""How cells of quartiles are read."""


def format_quartiles(quartiles: Quartiles) -> str:
    """Return the median, and from where to where the middle half lies."""
    low, median, high = quartiles
    return f"{median:.3g} ({low:.2g}–{high:.2g})"


def format_change(change: Change) -> str:
    """Return what becomes of x: `0.5 · x + 2`."""
    shift, scale = change
    scaled = "x" if scale == 1.0 else f"{scale:g} · x"
    return scaled if not shift else f"{scaled} {'−' if shift < 0 else '+'} {abs(shift):g}"


def name_samples(plan: Plan) -> str:
    """Return the name of the axis that the samples lie along."""
    grid = plan.grid
    name = grid.layout.name(grid.layout.batch or 0)
    return name.upper() if grid.layout.letters else name


def build_facts(
    title: str,
    population: Population,
    tensor: Tensor,
    plan: Plan,
    more: Iterable[tuple[str, tuple[str, ...]]],
) -> Facts:
    """Return the header: the population, the watched sample, and further lines."""
    along = f"{population.sample_count:,} along {name_samples(plan)}"
    watched = (along, f"number {population.sample} is watched")
    return Facts(title, (("population", list_facts(tensor)), ("samples", watched), *more))


def draw_scene(title: str, header: Facts, curves: Panel, note: str) -> Scene:
    """Return a picture: a title, the lines of a header, curves, and how to read them."""
    facts = [f"{label}: {', '.join(told)}" for label, told in header.lines]
    lines = [line for fact in facts for line in wrap([make_printable(fact)], _FACTS, curves.width)]
    heading = stack([draw_lines([title], _TITLE, bold=True), draw_lines(lines, _FACTS, "muted")], 6)
    body = stack([heading, curves, draw_lines(wrap([note], _FACTS, curves.width), _FACTS, "muted")], 22)
    width, height = body.width + 2 * _MARGIN, body.height + 2 * _MARGIN
    return Scene(width, height, title, f"{'. '.join(facts)}. {note}", (body.at(_MARGIN, _MARGIN),))


def build_page(
    title: str,
    population: Population,
    tensor: Tensor,
    plans: Sequence[tuple[str, Plan]],
    sections: Callable[[View], Iterable[Section]],
    scene: Scene,
) -> Page:
    """Return a page: a small batch around the watched sample, normalized, and the simulation below it."""
    numbers = [(population.sample + step) % population.sample_count for step in range(_ON_A_PAGE)]
    batch = population.take(list(dict.fromkeys(numbers)))
    results = [calculate_batch(plan, batch) for _, plan in plans]
    shown = Tensor(batch, f"samples {', '.join(map(str, dict.fromkeys(numbers)))} of {tensor.source}")
    names = [name for name, _ in plans]
    return Page(title, results, shown, names=names, further=sections, picture=scene)
