"""`normcli draw`: the picture of the groups."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import click

from normcli.cli import options
from normcli.cli.problem import list_options, load_problem
from normcli.cli.progress import show_progress
from normcli.cli.verbs import NormVerb
from normcli.errors import DegenerateError, UsageError
from normcli.norms.table import find_norm
from normcli.pictures import PLOTS, VALUES, VIEWS
from normcli.writers import PICTURES, SUFFIXES

if TYPE_CHECKING:
    from collections.abc import Mapping

    from normcli.norms.table import Norm
    from normcli.results.result import Result

_PICTURE = (
    options.make("-o", "--output", metavar="FILE", help="Where the picture goes: FILE.svg or FILE.png."),
    options.make(
        "--view", type=click.Choice(VIEWS),
        help="Blocks of cubes, matrices laid flat, both of these, or drawers within drawers. [default: both]",
    ),
    options.make("--values", type=click.Choice(VALUES), help="What stands in the cells. [default: input]"),
    options.make("--plot", type=click.Choice(PLOTS), help="Groups, or a histogram of each. [default: groups]"),
    options.make(
        "--scale", type=click.FloatRange(min=0, min_open=True), help="Pixels to a unit, in PNG. [default: 2]"
    ),
)  # fmt: skip


def make_command(name: str) -> click.Command:
    """Return the command that draws the norm of that name, alias or preset."""
    norm, preset = find_norm(name)

    @click.command(name=name, help=_write_help(norm, name), short_help=norm.summary)
    @options.apply(
        [
            *_PICTURE,
            *list_options(norm, preset),
            options.DIGITS,
            options.FULL,
            options.COLOUR,
            options.THREADS,
            *options.RUN,
        ]
    )
    def command(**settings: Any) -> None:
        _draw(name, settings)

    return command


def _write_help(norm: Norm, name: str) -> str:
    groups = " --groups 2" if "groups" in norm.options else ""
    return (
        f"Draw what {norm.title} does: {norm.summary}.\n\n"
        "Values of one colour share their statistics. A file shows the tensor as blocks of cubes and laid "
        "flat, with a legend; of a large one both ends of each axis. Without -o, matrices in the terminal."
        "\n\n\b\n"
        f"  normcli draw {name}{groups} --shape 2,4,4,4 -o {name}.svg\n"
        f"  normcli draw {name}{groups} -i x.npy --values normalized -o {name}.png\n"
        f"  normcli draw {name}{groups} --shape 2,4,4,4 --plot histogram -o {name}.svg"
    )


@click.group(cls=NormVerb, make_command=make_command)
def command() -> None:
    """Draw a tensor, each value in the colour of the group it is normalized in.

    As in the figure of the GroupNorm paper, but with this tensor and these axes: blocks of cubes, and
    the values laid flat as matrices or as drawers within drawers. SVG needs nothing else, PNG the
    extra normcli[png]. Without -o, the matrices are printed.

    \b
      normcli draw bn --shape 2,3,4,4 -o bn.svg
      normcli draw ln --layout NLC --shape 2,3,4 --view drawers -o words.svg
      normcli draw gn --groups 2 --shape 4,6,8,8 --values none

    normcli draw NORM --help lists the options.
    """


def _draw(name: str, settings: dict[str, Any]) -> None:
    from normcli.cli.output import choose_destination

    destination = choose_destination(settings["output"], None, PICTURES)
    _check_options(settings)
    from normcli.answers.drawing import Drawing
    from normcli.cli.view import make_view
    from normcli.engine.walk import Effort
    from normcli.pictures import Options
    from normcli.results.result import calculate

    problem = load_problem(name, settings)
    with show_progress(quiet=settings["quiet"]) as observer:
        result = calculate(
            problem.plan,
            problem.tensor.values,
            problem.inputs,
            effort=Effort(settings["threads"], observer),
            statistics_alone=True,
        )
        warnings = _find_warnings(result, settings)
        chosen = {key: settings[key] for key in Options._fields if settings[key] is not None}
        drawing = Drawing(result, problem.tensor, Options(**chosen))
        destination.write(drawing, make_view(settings["colour"], settings["digits"], full=settings["full"]))
    if not settings["quiet"]:
        for warning in warnings:
            click.echo(f"normcli: {name}: {warning}", err=True)


def _find_warnings(result: Result, settings: Mapping[str, Any]) -> list[str]:
    """Return what there is to warn of, as far as the input tells: all of the output is not calculated for it.

    Raises
    ------
    DegenerateError
        If there is anything, and `strict` is asked for.
    """
    from normcli.results.degenerate import find_degeneracies

    plan = result.plan
    warnings = [str(kind) for kind in find_degeneracies(plan, result.input, result.statistics, None)]
    if settings["strict"] and warnings:
        raise DegenerateError(f"{plan.norm.name}: {'; '.join(warnings)}")
    return warnings


def _check_options(settings: dict[str, Any]) -> None:
    """Refuse, before any work is done, what no picture or no terminal has."""
    output = settings["output"]
    paints = output is not None and SUFFIXES[os.path.splitext(output)[1].lower()] == "png"  # noqa: PTH122
    if output is None:
        for option, default in (("view", VIEWS[0]), ("plot", PLOTS[0])):
            if settings[option] not in (None, default):
                raise UsageError(f"--{option} {settings[option]} needs a file: give -o FILE.svg or FILE.png")
    elif settings["plot"] == "histogram" and (settings["view"] or settings["values"]):
        raise UsageError("--view and --values are of groups; --plot histogram has bars of both values")
    elif settings["full"]:
        raise UsageError("--full is for the terminal; a picture shows what can be read")
    if settings["scale"] is not None and not paints:
        raise UsageError("--scale is the number of pixels to a unit of a PNG: give -o FILE.png")
    if paints:
        from normcli.pictures.png import require_painter

        require_painter()
