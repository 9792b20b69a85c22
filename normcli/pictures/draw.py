"""Pictures of groups: a scene of shapes, and a writer for each kind of file."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from normcli.documents.axes_words import format_reduction, list_assumed
from normcli.documents.excerpt import choose_drawn, make_index
from normcli.documents.number_format import format_cells, format_shape
from normcli.documents.plan_header import format_formula, name_inputs, name_output
from normcli.documents.scene import Panel, Scene, draw_lines, flow, stack, wrap
from normcli.errors import UsageError
from normcli.pictures import Options
from normcli.pictures.cubes import Cubes
from normcli.pictures.legend import Owners, choose_owners, draw_legend
from normcli.pictures.matrix_drawing import MOST_WIDTH, MatrixDrawing
from normcli.pictures.plots import MOST_LINES, draw_histograms
from normcli.printable import make_printable
from normcli.results.normalized_part import normalize_part
from normcli.tensors.formats.json_lists import describe_number

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from normcli.documents.excerpt import Positions
    from normcli.documents.scene import Data, Fill
    from normcli.norms.plan import Plan
    from normcli.pictures.legend import Describe
    from normcli.results.result import Result
    from normcli.tensors.tensor import Tensor

MOST_RESULTS = 12
"""The most norms that stand side by side in one picture."""

_MARGIN, _BETWEEN = 22.0, 44.0

_APART = 32.0

_TITLE = 18.0

_FACTS = 12.0

_NARROWEST = 440.0

_SLIDE = 16 / 9
"""The ratio of a slide's sides: of two arrangements of several results, the one nearer to it is taken."""

_CAPTIONS = {"input": "the input", "xhat": "x̂"}
"""The numbers in the cells, if they are not y → the caption."""

_REACHED = "dx of that dy"


def draw(
    results: Sequence[Result],
    tensor: Tensor,
    options: Options | None = None,
    names: Sequence[str] | None = None,
) -> Scene:
    """Return the picture of results of one tensor, side by side.

    Parameters
    ----------
    results : sequence of Result
        One or more results of `tensor`.
    tensor : Tensor
    options : Options, optional
        The options; by default both views for one result, and cubes for several.
    names : sequence of str, optional
        The names of the results; by default those of their norms.

    Raises
    ------
    UsageError
        If the tensor has too many axes for a picture, or there are more than 12 results.
    """
    if len(results) > MOST_RESULTS:
        raise UsageError(f"a picture holds at most {MOST_RESULTS} norms side by side, not {len(results)}")
    alone = len(results) == 1
    chosen = options or Options(view="both" if alone else "cubes")
    called = names or [result.plan.norm.name for result in results]
    plans = [result.plan for result in results]
    panels = [
        _draw_panel(result, tensor, chosen, name, plans) for result, name in zip(results, called, strict=True)
    ]
    if alone:
        body = _stack_parts(*panels[0][:2])
    else:
        heading = draw_lines(
            ["   ".join(_name_tensor(results[0], tensor)), *_list_assumed(plans)], _FACTS, "muted"
        )
        bodies = [
            _set_in_lines([arrange(head, parts) for head, parts, _ in panels], heading)
            for arrange in (_stack_parts, _set_parts_beside)
        ]
        body = min(bodies, key=lambda body: abs(body.width / body.height - _SLIDE))
    shape = format_shape(results[0].plan.grid.shape)
    norms = " and ".join(dict.fromkeys(result.plan.norm.title for result in results))
    title = f"{norms[0].upper()}{norms[1:]} of a tensor of shape {shape}"
    description = " ".join(f"{name}: {words}" for name, (*_, words) in zip(called, panels, strict=True))
    width, height = body.width + 2 * _MARGIN, body.height + 2 * _MARGIN
    return Scene(width, height, title, description, (body.at(_MARGIN, _MARGIN),), chosen.scale)


def _stack_parts(heading: Panel, parts: list[Panel]) -> Panel:
    return stack([heading, *parts], 18)


def _set_parts_beside(heading: Panel, parts: list[Panel]) -> Panel:
    """Return a panel with the first part on the right, and on the left the heading above the others."""
    return flow([stack([heading, *parts[1:]], 18), parts[0]], _APART, math.inf)


def _set_in_lines(panels: list[Panel], heading: Panel) -> Panel:
    """Return the panels of several results, at most four in a line, below a shared heading."""
    per_line = math.ceil(len(panels) / math.ceil(len(panels) / 4))
    lines = [flow(panels[i : i + per_line], _BETWEEN, math.inf) for i in range(0, len(panels), per_line)]
    return stack([heading, *lines], _BETWEEN if len(lines) > 1 else 20)


def _name_tensor(result: Result, tensor: Tensor) -> tuple[str, str]:
    return make_printable(tensor.source), format_shape(result.plan.grid.shape)


def _list_assumed(plans: Sequence[Plan]) -> list[str]:
    return ["   ".join((label, *facts)) for label, facts in list_assumed(plans)]


def _draw_panel(
    result: Result, tensor: Tensor, options: Options, name: str, plans: Sequence[Plan]
) -> tuple[Panel, list[Panel], str]:
    """Return the heading of one result's picture, the panels below it, and its description in words.

    The panels are blocks, legend and matrices, or a histogram; for a tensor without values, one sentence.
    `plans` are those of all results in the picture, this one's included: the same cells are shown of all.
    """
    plan, alone = result.plan, len(plans) == 1
    facts = list(format_reduction(plan))
    if not result.input.size:
        body = [draw_lines(["This tensor has no values: there is nothing to draw."], 12.5)]
        words = "The tensor has no values."
    elif options.plot == "histogram":
        body, words = _plot(result, options)
    else:
        body, words = _draw_groups(result, options, plans)
    called = [f"{name} · {plan.norm.title}"] if alone else [name, plan.norm.title]
    title = draw_lines(called, _TITLE, bold=True)
    given = [name for name, values in name_inputs(result.inputs).items() if values is not None]
    width = max(_NARROWEST if alone else 0, title.width, *(part.width for part in body))
    if alone:
        facts = [*wrap([*_name_tensor(result, tensor), *facts], _FACTS, width), *_list_assumed(plans)]
    heading = stack(
        [title, draw_lines([f"y = {format_formula(plan, given)}", *facts], _FACTS, "muted")],
        4,
    )
    return heading, body, f"{', '.join(format_reduction(plan))}. {words}"


def _draw_groups(result: Result, options: Options, plans: Sequence[Plan]) -> tuple[list[Panel], str]:
    """Return the blocks, legend and matrices of a result as panels, and their description in words.

    `plans` are those of all results in the picture, this one's included: the same cells are shown of all.
    """
    plan, alone = result.plan, len(plans) == 1
    shown = choose_drawn(*plans)
    owners = choose_owners(result, options.digits, shown, options.reach)
    cubes = Cubes(plan, shown, plans) if options.view in ("both", "cubes") else None
    flat = options.view != "cubes"
    seen = set(np.unique(owners.locate(make_index(shown))).tolist()) if flat else set()
    if cubes is not None:
        seen |= {owners.locate_cell(index) for index in cubes.cells}
    owners.colour(seen)
    words = [owners.format_description()]
    parts: list[Panel] = []
    if cubes is not None:
        parts.append(_draw_cubes(cubes, result, owners, options))
        words.append(f"Blocks of cubes: {', '.join(cubes.captions)}.")
    parts.append(draw_legend(owners, MOST_WIDTH if alone else parts[0].width))
    if flat:
        drawn, caption = _draw_flat(result, shown, owners, options)
        parts.append(drawn)
        words.append(caption)
    return _arrange(parts, alone=alone), " ".join(words)


def _arrange(parts: list[Panel], *, alone: bool) -> list[Panel]:
    """Return panels to be set below each other: blocks, legend and matrices, side by side if there is room.

    `alone` says whether there is no other result in the picture.
    """
    if len(parts) == 3:
        blocks, legend, matrices = parts
        beside = stack([legend, matrices], _APART)
        if blocks.width + beside.width < MOST_WIDTH and beside.height < 1.6 * blocks.height:
            return [flow([blocks, beside], _APART, math.inf)]
    if alone and parts[0].width + parts[1].width < MOST_WIDTH:
        return [flow(parts[:2], _APART, math.inf), *parts[2:]]
    return parts


def _draw_cubes(cubes: Cubes, result: Result, owners: Owners, options: Options) -> Panel:
    places = [sorted(set(along)) for along in zip(*cubes.cells, strict=True)]
    describe = _make_describe(owners, places, _pick(result, places, options))
    return stack([draw_lines(cubes.captions, 11.5, "muted"), cubes.draw(describe)], 8)


def _draw_flat(result: Result, shown: list[Positions], owners: Owners, options: Options) -> tuple[Panel, str]:
    """Return a result laid flat as matrices or drawers, with a caption; and a sentence for the description."""
    places = [positions.shown for positions in shown]
    values = _pick(result, places, options)
    texts = None
    if options.values != "none":
        texts = np.array(format_cells(values, options.digits), dtype=object).reshape(values.shape)
    describe = _make_describe(owners, places, values)
    flat = MatrixDrawing(result.plan, shown, texts, describe, drawers=options.view == "drawers")
    caption = flat.caption
    if texts is not None:
        output = name_output(result.inputs.parameters)
        shown_values = _CAPTIONS.get(options.values, output) if options.reach is None else _REACHED
        caption = f"{shown_values}: {caption}"
    if values.size < result.input.size:
        caption += f"; {values.size:,} of {result.input.size:,} values"
    return stack([draw_lines([caption], 11.5, "muted"), flat.draw()], 8), f"Laid flat, {caption}."


def _make_describe(owners: Owners, places: Sequence[Sequence[int]], values: NDArray[Any]) -> Describe:
    """Return a function that takes a cell's index in the tensor, and returns the cell's fill and data.

    The data are pairs of text: index, group and exact value, as attributes in an SVG.

    Parameters
    ----------
    owners : Owners
    places : sequence of sequences of int
        The positions that are shown along each axis.
    values : ndarray
        The numbers of the cells at these positions.
    """
    numbers = owners.locate(np.ix_(*places))

    def describe(index: tuple[int, ...]) -> tuple[Fill, Data]:
        place = tuple(along.index(i) for along, i in zip(places, index, strict=True))
        entry = owners.entries[int(numbers[place])]
        data = (("index", ",".join(map(str, index))), *entry.data, ("value", _format_exactly(values[place])))
        return entry.fill, data

    return describe


def _plot(result: Result, options: Options) -> tuple[list[Panel], str]:
    """Return a panel of a result's histograms, with a legend unless it has windows, and a text on them."""
    owners = Owners(result, options.digits)
    words = "Histograms of the input and of y, a pair for each group, with marks at 0, mean and deviation."
    legend = []
    if not result.plan.groups_overlap:
        owners.colour(set(range(min(result.plan.grid.group_count, MOST_LINES))))
        words = f"{owners.format_description()} {words}"
        legend.append(draw_legend(owners, MOST_WIDTH))
    return [flow([draw_histograms(result, owners.entries, options), *legend], 48, MOST_WIDTH)], words


def _pick(result: Result, places: Sequence[Sequence[int]], options: Options) -> NDArray[Any]:
    """Return the numbers that are written into cells, for the cells at some positions along each axis.

    They are dx if `options.reach` is set; otherwise y, x̂ or the input, as `options.values` says.

    Returns
    -------
    ndarray, shape (len(places[0]), len(places[1]), …)
    """
    if options.reach is not None:
        return options.reach.pick(np.ix_(*places))
    if options.values == "y":
        return normalize_part(result, places)
    values = result.standardized if options.values == "xhat" else result.input
    return np.asarray(values[np.ix_(*places)])


def _format_exactly(value: Any) -> str:
    """Return a number as JSON writes it; a boolean as 0 or 1."""
    number = value.item() if isinstance(value, np.generic) else value
    return str(int(number)) if isinstance(number, int) else str(describe_number(number))
