"""What `normcli fit` and `normcli merge` do with statistics: keep them, print them, spell them as code."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import click

from normcli.cli import options
from normcli.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from normcli.fitting.stats_file import Stats

EMITTED = ("torchvision", "keras", "sklearn", "json")

ANSWER = (
    options.make("-o", "--output", metavar="FILE", help="Keep the statistics: a stats file, .npz."),
    options.make("--emit", type=click.Choice(EMITTED), help="Print them as code to paste."),
    options.FORMAT,
    options.make("--print", "print_", metavar="FIELD", help="Print one field, a number a line."),
    options.DIGITS,
    options.FULL,
    options.COLOUR,
)


_PRINTING = (("emit", "emit"), ("print", "print_"), ("format", "format_"))
"""Options that each say what is printed, and the settings they are."""


def require_answer(settings: Mapping[str, Any]) -> None:
    """Refuse contradictions and unwritable outputs before any work is done."""
    asked = [f"--{name}" for name, key in _PRINTING if settings[key]]
    if len(asked) > 1:
        raise UsageError(f"{' and '.join(asked)} each say what is printed; give one of them")
    output = settings["output"]
    if output is None:
        return
    if not output.lower().endswith(".npz"):
        raise UsageError(f"--output {output}: a stats file is an .npz")
    from normcli.tensors.whole import require_writable

    require_writable(output, "--output")


def show_statistics(stats: Stats, settings: Mapping[str, Any]) -> None:
    """Keep and print statistics as the settings say."""
    from normcli.answers.statistics import StatisticsAnswer, emit
    from normcli.fitting.statistics import round_stats, warn
    from normcli.fitting.stats_file import write_stats

    rounded = round_stats(stats)
    answer = StatisticsAnswer(stats, rounded)
    field = None if settings["print_"] is None else answer.field(settings["print_"])
    code = None if settings["emit"] is None else emit(answer, settings["emit"])
    if settings["output"] is not None:
        write_stats(settings["output"], stats, rounded.fields)
    if not settings["quiet"]:
        for warning in warn(stats, rounded):
            click.echo(f"normcli: {rounded.plan.norm.name}: {warning}", err=True)
    if code is not None:
        click.echo(code)
    elif field is not None:
        from normcli.writers.structured import write_field

        write_field(field, sys.stdout)
    else:
        from normcli.cli.view import make_view
        from normcli.writers import write

        view = make_view(settings["colour"], settings["digits"], full=settings["full"])
        write(answer, settings["format_"] or "table", sys.stdout, view)
