"""`normcli explain`: the arithmetic of one value, or of one group, step by step."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from normcli.cli import options
from normcli.cli.output import choose_destination
from normcli.cli.problem import list_options, load_problem
from normcli.cli.verbs import NormVerb
from normcli.errors import DegenerateError
from normcli.norms.table import find_norm
from normcli.writers import WRITERS

if TYPE_CHECKING:
    from normcli.norms.table import Norm
    from normcli.teach.story import Story

AT = options.make(
    "--at", metavar="I,J,…", help="Which value: 0,1,-1 or n=0,c=1,l=-1. [default: the first group, whole]"
)


def make_command(name: str) -> click.Command:
    """Return the command that explains the norm of that name, alias or preset."""
    norm, preset = find_norm(name)

    @click.command(name=name, help=_write_help(norm, name), short_help=norm.summary)
    @options.apply(
        [
            AT,
            *list_options(norm, preset),
            *options.running(norm),
            options.ANSWER_FILE,
            options.ANY_FORMAT,
            options.DIGITS,
            options.FULL,
            options.COLOUR,
            options.THREADS,
            *options.RUN,
        ]
    )
    def command(**settings: Any) -> None:
        _explain(name, settings)

    return command


def _write_help(norm: Norm, name: str) -> str:
    groups = " --groups 2" if "groups" in norm.options else ""
    return (
        f"How {norm.title} makes its values, step by step.\n\n"
        "Which values are in the group, what they add up to, what is divided by what, and how it is rounded. "
        "Of a long group the first and the last values are shown, and how many are not.\n\n\b\n"
        f"  normcli explain {name}{groups} --shape 2,4,3 --at 0,1,2\n"
        f"  normcli explain {name}{groups} -i x.npy --at n=0,c=1,h=2,w=3 -f markdown"
    )


@click.group(cls=NormVerb, make_command=make_command)
def command() -> None:
    """Show the arithmetic of one value, step by step, as on paper.

    Without --at, that of the first group: what its values share, then each of them. Formulas of -f markdown
    show on GitHub; -f json has every number in full.

    \b
      normcli explain ln --data '[[1,2,3,4]]' --at 0,0
      normcli explain bn --shape 2,3,4,4 --at 0,1,2,3
      normcli explain gn --groups 2 -i x.npy -o story.md

    normcli explain NORM --help lists the options.
    """


def _explain(name: str, settings: dict[str, Any]) -> None:
    destination = choose_destination(settings["output"], settings["format_"], WRITERS)
    from normcli.answers.explanation import Explanation
    from normcli.cli.view import make_view
    from normcli.documents.plans import name_inputs
    from normcli.engine.walk import Effort
    from normcli.results.result import calculate
    from normcli.teach.explain import explain
    from normcli.teach.place import parse_index

    problem = load_problem(name, settings)
    plan, values = problem.plan, problem.tensor.values
    at = None if settings["at"] is None else parse_index(settings["at"], plan.grid.shape, plan.grid.layout)
    effort = Effort(settings["threads"])
    story = explain(plan, values, problem.inputs, at=at, every=settings["full"], effort=effort)
    _tell_warnings(story, settings)
    document = Explanation(
        story,
        problem.tensor,
        name_inputs(problem.inputs),
        lambda: calculate(plan, values, problem.inputs, effort=effort),
        settings["digits"],
    )
    destination.write(document, make_view(settings["colour"], settings["digits"], full=settings["full"]))


def _tell_warnings(story: Story, settings: dict[str, Any]) -> None:
    """Say what is degenerate of the group on stderr, unless quiet is asked for.

    Raises
    ------
    DegenerateError
        If there is anything, and `strict` is asked for.
    """
    name = story.plan.norm.name
    if story.group is None:
        warnings = [f"t{step.sentence.removeprefix('T').rstrip('.')}" for step in story.steps]
    else:
        warnings = [str(kind) for kind in story.group.degeneracies]
    if settings["strict"] and warnings:
        raise DegenerateError(f"{name}: {'; '.join(warnings)}")
    if not settings["quiet"]:
        for warning in warnings:
            click.echo(f"normcli: {name}: {warning}", err=True)
