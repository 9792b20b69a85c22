"""`normcli NORM`: one command for each norm of the table, built from its row."""

from __future__ import annotations

import sys
import time
from typing import TYPE_CHECKING

from normcli.cli.files.destination import WholeFiles, collect_fields
from normcli.cli.files.outputs import choose_outputs
from normcli.cli.parameters import answer_options, options
from normcli.cli.problem import advise, load_problem
from normcli.cli.verb_commands import AROUND, BOUNDS, TRAINING, NamedNorm, Verb
from normcli.errors import UsageError
from normcli.norms.rules import AxesRule
from normcli.norms.table import find_norm
from normcli.writers import PAGE, PARTS, PICTURES

if TYPE_CHECKING:
    from collections.abc import Sequence

    from normcli.cli.parameters.settings import AnswerOptions, Settings


def _list_options(named: NamedNorm) -> Sequence[options.Option]:
    norm = named.norm
    return [
        *options.of_problem(named, several=norm.tracks),
        *(options.TRACKING if norm.tracks else ()),
        *options.COUNTING,
        *options.AROUND.values(),
        *options.QUANTIZING,
        *options.of_columns(norm),
        *answer_options.SAVE,
        answer_options.ANY_OR_TENSOR_FORMAT,
        answer_options.print_of(norm),
        answer_options.EMIT,
        answer_options.show(PARTS),
        *answer_options.LOOK,
        *answer_options.RUN,
        *answer_options.CLUSTER,
    ]


_OF_RUNNING = """

With --state the batch enters the running statistics, and the run is printed. -o, --stats-output and --print are
of the batch, as they are without it. Several --input are a batch each; -o is then a folder."""


_OF_FITTING = """

The statistics are those of this tensor, and are not kept. normcli fit keeps those of one or many files, and
normcli apply normalizes others with them."""

_SHARED = (AxesRule.ALL_BUT_CHANNEL, AxesRule.FIRST)
"""The rules for axes under which samples share statistics."""


def _describe_norm(named: NamedNorm) -> str:
    norm = named.norm
    capital = norm.title[0].upper() + norm.title[1:]
    special = "".join(f" with {option} = {value:g}" for option, value in named.fixed.items())
    parameters = ", ".join(norm.parameter_names) or "gamma, beta"
    return (
        f"{capital}{special}: {norm.summary}.\n\n\b\n"
        f"  y = {norm.formula()}\n"
        f"  axes reduced: {norm.axes.value}\n"
        f"  {f'{parameters}:':<13} {norm.parameters.value}\n"
        f"  source:       {norm.source}\n\n"
        f"Also called {', '.join(other for other in norm.names if other != named.name)}."
        f"{_OF_RUNNING if norm.tracks else ''}{_OF_FITTING if norm.axes in _SHARED else ''}"
    )


def _asks_for_tracking(settings: Settings) -> bool:
    """Whether running statistics are to be updated with this command's input.

    That is so if the norm keeps running statistics, `--eval` is not given, and there are several inputs or any
    of `--state`, `--running-mean`, `--running-var`.

    Raises
    ------
    UsageError
        If there are several inputs under `--eval`, or options of training without training.
    """
    running, several = settings.running, len(settings.source.inputs) > 1
    if not find_norm(settings.request.norm)[0].tracks:
        return False
    if running.evaluation and several:
        raise UsageError("--eval normalizes one tensor; give one --input")
    given = (running.state, running.running_mean, running.running_var)
    if not running.evaluation and (several or any(value is not None for value in given)):
        return True
    settings.refuse("is for running statistics in training: --state FILE.npz keeps them", *TRAINING)
    return False


def _run(settings: Settings, emit: str | None) -> None:
    if any(settings.quantizing):
        from normcli.cli.verbs.calculating.quantized import quantize_norm

        quantize_norm(settings)
        return
    if settings.table.by is not None:
        from normcli.cli.verbs.calculating.grouped import normalize_groups

        normalize_groups(settings)
        return
    if emit is not None:
        from normcli.cli.verbs.calculating.emit import emit_code

        settings.refuse("is left out of --emit, which writes code without it", *BOUNDS)
        emit_code(settings, emit)
        return
    if _asks_for_tracking(settings):
        from normcli.cli.verbs.batches.track import track

        settings.refuse("is of one tensor, and not of running statistics in training", *AROUND)
        track(settings)
        return
    if settings.run.is_clustered:
        from normcli.cli.verbs.calculating.on_cluster import normalize_on_cluster

        settings.refuse("is of one machine; --scheduler and --workers normalize without it", *AROUND)
        normalize_on_cluster(settings)
        return
    outputs = choose_outputs(settings)
    document = outputs.document
    from normcli.answers.calculating.calculation import Answer

    with settings.run.show_progress():
        problem = load_problem(settings)
    started = time.perf_counter()
    with WholeFiles() as files, settings.run.open_effort() as effort:
        out = outputs.start(files, problem)
        statistics_alone = outputs.tensor is None and _asks_for_statistics_alone(settings.answer)
        result = problem.calculate(effort, out=out, statistics_alone=statistics_alone)
        if settings.run.strict:
            result.require_sound()
        answer = Answer(result, problem.tensor, statistics_alone=statistics_alone)
        if document is not None and document.format_name == PAGE:
            settings.refuse("is left out of a page, which shows no bounds", *BOUNDS)
            answer.page()  # refused before anything is said or saved
        fields = collect_fields(answer, settings.answer.fields)
        outputs.save(files, problem, result, out)
        show = settings.answer.show
        if show is None and outputs.tensor is not None:  # of what is saved no values
            show = ("stats", "check")
        if out is not None:
            is_checked = settings.answer.format_name == "json" or show is None or "check" in show
            result.settle(check=document is not None and is_checked)
    outputs.warn(settings.run, problem)
    if not settings.run.quiet:
        settings.run.warn(result.plan.norm.name, *advise(result.degeneracies, problem.inputs))
    if document is None and not fields:
        outputs.report(settings.run, result, time.perf_counter() - started)
    with settings.run.show_progress(beside=sys.stdout):
        if fields:
            from normcli.writers.structured import write_fields

            write_fields(fields, sys.stdout)
        elif document is not None:
            document.write(answer, settings.answer.view()._replace(show=show))


_OF_VALUES = frozenset(("xhat", "y", "check"))
"""The fields and parts of an answer that need every value normalized."""


def _asks_for_statistics_alone(answer: AnswerOptions) -> bool:
    """Whether the answer shows no normalized values, so that they need not be calculated or be in memory."""
    if answer.fields:
        return _OF_VALUES.isdisjoint(answer.fields)
    if answer.show is None or answer.format_name in ("json", *PICTURES, PAGE):
        return False
    return _OF_VALUES.isdisjoint(answer.show)


NORMALIZE = Verb(
    "", _run, options=_list_options, examples=("{tensor}", "-i x.npy -o y.npy"), describe=_describe_norm
)
