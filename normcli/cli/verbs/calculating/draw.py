"""`normcli draw`: the picture of the groups."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click
from click import option

from normcli.cli.files.choose_destination import choose_document_file
from normcli.cli.parameters import answer_options, options
from normcli.cli.parameters.types import Word
from normcli.cli.problem import load_problem, warn_of_input
from normcli.cli.verb_commands import Verb
from normcli.errors import UsageError
from normcli.pictures import PLOTS, VALUES, VIEWS
from normcli.writers import PAINTED, PICTURES

if TYPE_CHECKING:
    from collections.abc import Mapping

    from normcli.cli.files.destination import Destination
    from normcli.cli.parameters.settings import Settings

_PICTURE = (
    answer_options.output("Where the picture goes: FILE.svg or FILE.png."),
    option(
        "--view", type=click.Choice(VIEWS),
        help="Blocks of cubes, matrices laid flat, both of these, or drawers within drawers. [default: both]",
    ),
    option("--values", type=Word(VALUES), help="What stands in the cells. [default: input]"),
    option("--plot", type=click.Choice(PLOTS), help="Groups, or a histogram of each. [default: groups]"),
    option("--bins", type=click.IntRange(1, 1000), metavar="N",
           help="Bars of a histogram. [default: by values]"),
    option("--log", is_flag=True, default=None, help="Bars are as high as the logarithms of their counts."),
    option("--backward", is_flag=True, help="Which values one dy reaches through its group, and dx of each."),
    option(
        "--at", metavar="I,J,…", help="Where that dy is 1: 0,1,-1 or n=0,c=1,l=-1. [default: the first value]"
    ),
    option(
        "--scale", type=click.FloatRange(min=0, min_open=True), help="Pixels to a unit, in PNG. [default: 2]"
    ),
)  # fmt: skip


def _run(settings: Settings, backward: bool, at: str | None, **picture: Any) -> None:
    """Draw a tensor, each value in the colour of its group: SVG, PNG, terminal.

    Values of one colour share their statistics. As in the figure of the GroupNorm paper, but with this tensor
    and these axes: blocks of cubes, and the values laid flat as matrices or as drawers within drawers, with a
    legend; of a large tensor both ends of each axis. SVG needs nothing else, PNG the extra normcli[png].
    Without -o, the matrices (or the histograms) are printed.

    With --backward, not the groups: the values whose dx changes with the dy of one value, and by how much.

    \b
      normcli draw bn --shape 2,3,4,4 -o bn.svg
      normcli draw ln --layout NLC --shape 2,3,4 --view drawers -o words.svg
      normcli draw gn --groups 2 --shape 4,6,8,8 --values none
      normcli draw bn --shape 2,3,4,4 --backward --at 0,1,2,3 -o reach.svg
    """
    destination = choose_document_file(settings, PICTURES)
    chosen = {name: value for name, value in picture.items() if value is not None}
    _check_options(destination, chosen, full=settings.answer.full)
    if at is not None and not backward:
        raise UsageError("--at is where a dy is 1; add --backward")
    if backward and (chosen.get("plot") == "histogram" or chosen.get("values", "none") != "none"):
        raise UsageError("--backward shows dx; leave out --plot, and --values but for none")
    from normcli.answers.calculating.drawing import Drawing
    from normcli.pictures import Options

    problem = load_problem(settings)
    if problem.plan.groups_overlap and problem.inputs.selection is not None:
        raise UsageError("windows show all values; leave out --mask, --lengths and --nan omit")
    if backward:
        from normcli.results.gradient_reach import find_reach
        from normcli.teach.value_index import parse_index

        grid = problem.plan.grid
        chosen["reach"] = find_reach(problem, None if at is None else parse_index(at, grid.shape, grid.layout))
    with settings.run.open_effort() as effort:
        result = problem.calculate(effort, statistics_alone=True)
        warn_of_input(settings.run, problem, result)
        destination.write(Drawing(result, problem.tensor, Options(**chosen)), settings.answer.view())


def _check_options(destination: Destination, chosen: Mapping[str, Any], *, full: bool) -> None:
    """Raise `UsageError` if options contradict each other or do not apply to this destination.

    `chosen` has the options of the picture that are given, by name. A PNG also needs its packages.
    """
    if destination.path is None and chosen.get("view", VIEWS[0]) != VIEWS[0]:
        raise UsageError(f"--view {chosen['view']} needs a file: give -o FILE.svg or FILE.png")
    if chosen.get("plot") == "histogram" and chosen.keys() & {"view", "values"}:
        raise UsageError("--view and --values are of groups; --plot histogram has bars of both values")
    if chosen.get("plot") != "histogram" and chosen.keys() & {"bins", "log"}:
        raise UsageError("--bins and --log are of histograms; add --plot histogram")
    if full and destination.path is not None:
        raise UsageError("--full is for the terminal; a picture shows what can be read")
    paints = destination.format_name == PAINTED
    if "scale" in chosen and not paints:
        raise UsageError("--scale is the number of pixels to a unit of a PNG: give -o FILE.png")
    if paints:
        from normcli.pictures.svg import require_painter

        require_painter()


DRAW = Verb(
    "draw",
    _run,
    options=lambda named: [
        *_PICTURE,
        *options.of_problem(named),
        *options.COUNTING,
        *answer_options.LOOK,
        *answer_options.RUN,
    ],
    examples=(
        "{tensor} -o picture.svg",
        "-i x.npy --values y -o picture.png",
        "{tensor} --plot histogram -o picture.svg",
    ),
)
