"""`normcli restore NORM`: whether gamma and beta can undo a norm."""

from __future__ import annotations

from typing import Any

import click

from normcli.cli import options
from normcli.cli.problem import load_problem
from normcli.cli.progress import show_progress
from normcli.cli.verbs import NormVerb
from normcli.norms.table import Norm, find_norm
from normcli.writers import FORMATS

_TOLERANCE = (
    options.make("--rtol", type=float, help="Tolerated part of the input's value. [default: 1e-4]"),
    options.make(
        "--atol",
        type=float,
        help="Tolerated difference beside that. [default: 1e-4, or 1e-4 of the largest |x| if less]",
    ),
)


def make_command(name: str) -> click.Command:
    """Return the command that tries to undo the norm of that name, alias or preset."""
    norm, preset = find_norm(name)

    @click.command(name=name, help=_write_help(norm, name), short_help=norm.summary)
    @options.apply(
        [
            *options.SOURCE,
            *options.RECIPE,
            *options.AXES,
            *options.numeric(norm, preset),
            options.DTYPE,
            options.like(norm),
            *_TOLERANCE,
            options.ANSWER_FILE,
            options.FORMAT,
            options.DIGITS,
            options.FULL,
            options.COLOUR,
            options.THREADS,
            *options.RUN,
        ]
    )
    def command(**settings: Any) -> None:
        _restore(name, settings)

    return command


def _write_help(norm: Norm, name: str) -> str:
    groups = " --groups 2" if "groups" in norm.options else ""
    example = f"\n\n\b\n  normcli restore {name}{groups} --shape 3,4 --dist normal"
    if not norm.parameter_names:
        return f"Can gamma and beta undo {norm.title}? It has none, so this is refused.{example}"
    centre = norm.centre.statistic if norm.takes_beta else None
    beta = "" if centre is None else f" and beta = {centre}"
    gamma = norm.divisor.spread
    return (
        f"Can gamma and beta undo {norm.title}?\n\n"
        f"The norm is applied with gamma = {gamma}{beta}, measured along the axes that its parameters "
        f"vary along, and what comes out is held against the input. Exit code 0 either way.{example}"
    )


@click.group(cls=NormVerb, make_command=make_command)
def command() -> None:
    """See whether gamma and beta can undo a norm.

    Gamma is set to what the norm divides by and beta to what it subtracts (in BatchNorm the deviation and the
    mean), measured along the axes that they vary along. Where
    these are the axes of the statistics, as in BatchNorm, the input comes back; where they are not, as in
    LayerNorm, it cannot. The answer says which, by how much, and why.

    \b
      normcli restore bn --shape 3,4 --rng torch --dist normal --seed 0
      normcli restore ln -i x.npy --format json

    normcli restore NORM --help lists the options.
    """


def _restore(name: str, settings: dict[str, Any]) -> None:
    from normcli.cli.output import choose_destination

    destination = choose_destination(settings["output"], settings["format_"], FORMATS)
    from normcli.answers.restoration import RestorationAnswer
    from normcli.cli.view import make_view
    from normcli.engine.walk import Effort
    from normcli.teach.restore import RTOL, plan_parameters, restore

    problem = load_problem(name, settings)
    plan_parameters(problem.plan)
    rtol = RTOL if settings["rtol"] is None else settings["rtol"]
    with show_progress(quiet=settings["quiet"]) as observer:
        effort = Effort(settings["threads"], observer)
        attempt = restore(problem.plan, problem.tensor.values, rtol=rtol, atol=settings["atol"], effort=effort)
    if settings["strict"]:
        attempt.result.require_sound()
    if not settings["quiet"]:
        for warning in attempt.result.warnings:
            click.echo(f"normcli: {problem.plan.norm.name}: {warning}", err=True)
    view = make_view(settings["colour"], settings["digits"], full=settings["full"])
    destination.write(RestorationAnswer(attempt, problem.tensor), view)
