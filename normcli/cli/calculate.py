"""`normcli NORM`: one command for each row of the table, built from the row."""

from __future__ import annotations

import contextlib
import sys
from typing import TYPE_CHECKING, Any

import click

from normcli.cli import options
from normcli.cli.problem import list_options, load_problem
from normcli.cli.progress import show_progress
from normcli.errors import UsageError
from normcli.norms.table import find_norm
from normcli.tensors.tensor import STANDARD_STREAM
from normcli.writers import PAGE, PAGE_SUFFIXES, PARTS

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    from normcli.answers.calculation import Answer
    from normcli.cli.output import Destination
    from normcli.norms.plan import Plan
    from normcli.norms.table import Norm


def make_command(name: str) -> click.Command:
    """Return the command of the norm of that name, alias or preset."""
    norm, preset = find_norm(name)

    @click.command(name=name, help=_write_help(norm, name, preset), short_help=norm.summary)
    @options.apply(
        [
            *list_options(norm, preset, source=options.SOURCES if norm.tracks else options.SOURCE),
            *options.running(norm),
            *options.tracking(norm),
            *options.COUNTING,
            *options.SAVE,
            options.ANY_FORMAT,
            options.PRINT,
            options.show(PARTS),
            options.DIGITS,
            options.FULL,
            options.COLOUR,
            options.THREADS,
            *options.RUN,
        ]
    )
    def command(**settings: Any) -> None:
        if not norm.tracks:
            _calculate(name, settings)
            return
        from normcli.cli.track import asks_for_tracking, track

        inputs = settings.pop("input_")
        if asks_for_tracking(settings, inputs):
            track(name, settings, inputs)
        else:
            _calculate(name, {**settings, "input_": inputs[0] if inputs else None})

    return command


def _write_help(norm: Norm, name: str, preset: Mapping[str, float]) -> str:
    capital = norm.title[0].upper() + norm.title[1:]
    special = "".join(f" with {option} = {value:g}" for option, value in preset.items())
    groups = " --groups 2" if "groups" in norm.options else ""
    parameters = ", ".join(norm.parameter_names) or "gamma, beta"
    return (
        f"{capital}{special}: {norm.summary}.\n\n\b\n"
        f"  y = {norm.formula()}\n"
        f"  axes reduced: {norm.axes.value}\n"
        f"  {f'{parameters}:':<13} {norm.parameters.value}\n"
        f"  source:       {norm.source}\n"
        f"  also called:  {', '.join(other for other in norm.names if other != name)}\n\n\b\n"
        f"  normcli {name}{groups} --shape 2,4,4,4\n"
        f"  normcli {name}{groups} -i x.npy -o y.npy"
    )


def _calculate(name: str, settings: dict[str, Any]) -> None:
    page = _choose_page(settings)
    if page is not None:
        settings = {**settings, "output": None}
    _check_outputs(settings)
    from normcli.answers.calculation import Answer
    from normcli.cli.large import open_large_output
    from normcli.documents.document import View
    from normcli.engine.walk import Effort
    from normcli.results.result import calculate

    problem = load_problem(name, settings)
    tensor, plan = problem.tensor, problem.plan
    _check_output_dtype(settings["output"], plan, tensor.values)
    with contextlib.ExitStack() as files, show_progress(quiet=settings["quiet"]) as observer:
        out = open_large_output(files, settings["output"], plan, tensor.values)
        result = calculate(
            plan,
            tensor.values,
            problem.inputs,
            out=out,
            effort=Effort(settings["threads"], observer),
            statistics_alone=_asks_for_statistics_alone(settings),
        )
        if settings["strict"]:
            result.require_sound()
        answer = Answer(result, tensor)
        if page is not None:
            answer.page()  # refused before anything is said or saved
        field = None if settings["print_"] is None else answer.field(settings["print_"])
        _save(answer, None if out is not None else settings["output"], settings["stats_output"])
        show = settings["show"] or _choose_parts(saved=settings["output"] is not None, large=out is not None)
        if out is not None:
            result.settle(check=settings["format_"] == "json" or show is None or "check" in show)
    if not settings["quiet"]:
        for warning in result.warnings:
            click.echo(f"normcli: {plan.norm.name}: {warning}", err=True)
    if page is not None:
        page.write(answer, View(digits=settings["digits"]))
    else:
        _print(answer, field, show, settings)


def _choose_page(settings: dict[str, Any]) -> Destination | None:
    """Return where a page goes if the answer is one: `--output` then takes the page, not the tensor."""
    output = settings["output"]
    if settings["format_"] != PAGE and (output is None or not output.lower().endswith(PAGE_SUFFIXES)):
        return None
    if settings["print_"]:
        raise UsageError("--print prints bare numbers; a page has none")
    from normcli.cli.output import choose_destination

    if output == STANDARD_STREAM:
        raise UsageError("-o - puts the tensor on standard output; --format html alone puts a page there")
    return choose_destination(output, settings["format_"], (PAGE,))


def _choose_parts(*, saved: bool, large: bool) -> frozenset[str] | None:
    """Return what is shown unless asked: of what is saved no values, and of a large file no check."""
    if not saved:
        return None
    return frozenset(("stats",) if large else ("stats", "check"))


def _asks_for_statistics_alone(settings: dict[str, Any]) -> bool:
    """Whether the answer has no use for the normalized tensor: a file of any size then costs no memory."""
    if settings["output"] is not None:
        return False
    if settings["print_"] is not None:
        return str(settings["print_"]) != "normalized"
    shown: frozenset[str] | None = settings["show"]
    if shown is None or settings["format_"] not in (None, "table", "markdown"):
        return False
    return shown.isdisjoint(("normalized", "check"))


def _check_outputs(settings: dict[str, Any]) -> None:
    """Refuse contradictions and unwritable outputs before any work is done."""
    if settings["output"] == STANDARD_STREAM and (settings["format_"] or settings["print_"]):
        raise UsageError("-o - puts the tensor on standard output, where --format or --print would go too")
    if settings["format_"] and settings["print_"]:
        raise UsageError("--print prints bare numbers and has no --format")
    if settings["output"] is not None or settings["stats_output"] is not None:
        from normcli.cli.saving import require_saveable_answer

        require_saveable_answer(settings["output"], settings["stats_output"])


def _check_output_dtype(output: str | None, plan: Plan, values: NDArray[Any]) -> None:
    if output is not None:
        from normcli.cli.saving import require_holdable_answer

        require_holdable_answer(output, plan, values)


def _save(answer: Answer, output: str | None, stats_output: str | None) -> None:
    if output is not None or stats_output is not None:
        from normcli.cli.saving import save_answer

        save_answer(answer, output, stats_output)


def _print(
    answer: Answer, field: NDArray[Any] | None, show: frozenset[str] | None, settings: dict[str, Any]
) -> None:
    if field is not None:
        from normcli.writers.structured import write_field

        write_field(field, sys.stdout)
    elif settings["output"] != STANDARD_STREAM:
        from normcli.cli.view import make_view
        from normcli.writers import write

        view = make_view(settings["colour"], settings["digits"], full=settings["full"], show=show)
        write(answer, settings["format_"] or "table", sys.stdout, view)
