"""`normcli bn --state bn.npz`: running statistics updated with batches."""

from __future__ import annotations

import contextlib
import functools
import math
import os
import sys
from typing import TYPE_CHECKING

from normcli.cli.files.choose_destination import choose_files_for, choose_values_file
from normcli.cli.files.conflicting_files import require_distinct
from normcli.cli.files.destination import WholeFiles, collect_fields, print_document
from normcli.cli.files.outputs import Outputs, choose_outputs
from normcli.cli.problem import adopt_eps, load_training
from normcli.errors import DataError, UsageError, name_subject
from normcli.norms.table import find_norm
from normcli.tensors.tensor import STANDARD_STREAM
from normcli.tuples import NamedTuple
from normcli.writers import FORMATS
from normcli.writers.structured import write_fields

if TYPE_CHECKING:
    from collections.abc import Callable

    from normcli.answers.batches.running_statistics import TrackedBatch, Tracking
    from normcli.answers.calculating.calculation import Answer
    from normcli.cli.parameters.settings import AnswerOptions, Settings
    from normcli.norms.conventions import RunningRule
    from normcli.results.arguments import Problem
    from normcli.running.average import State


class _Batch(NamedTuple):
    """A batch that has updated the running statistics.

    Parameters
    ----------
    entry : TrackedBatch
        The batch, with the statistics before and after it.
    answer : Answer
        The answer of its normalization.
    save : callable
        Takes nothing, and writes its outputs.
    """

    entry: TrackedBatch
    answer: Answer
    save: Callable[[], None]


def track(settings: Settings) -> None:
    """Update running statistics with each input, write the results, and save the new state to `--state`.

    The state file changes only if all inputs could be read and all outputs were written: after a failure the
    same command can be run again without counting a batch twice. The new state is written to a temporary file
    first, then the outputs are written, and then the file is renamed. If a reader closes the pipe early, the
    outputs count as written.

    Raises
    ------
    UsageError
        If options contradict each other.
    DataError
        If a file cannot be read or written, or the state file stays locked longer than `--lock-timeout`.
    """
    from normcli.answers.batches.running_statistics import Tracking
    from normcli.running.average import begin, choose_rule
    from normcli.running.state_file import hold, read_state

    path, request, timeout = settings.running.state, settings.request, settings.training.lock_timeout
    norm = find_norm(request.norm)[0].name
    if settings.source.residual is not None and len(settings.source.inputs) > 1:
        raise UsageError("--residual is of one tensor; give one --input")
    choose_values_file(path, "--state", (".npz",))
    if path is None and timeout is not None:
        raise UsageError("--lock-timeout is for a file that other processes write too: --state FILE.npz")
    if timeout is not None and math.isnan(timeout):
        raise UsageError("--lock-timeout nan is no number of seconds")
    outputs = _choose_outputs(settings)
    entries: list[TrackedBatch] = []

    def say_waiting() -> None:
        settings.run.warn(norm, f"waiting for the state {path}, which another process holds")

    with (
        WholeFiles() as files,
        contextlib.nullcontext() if path is None else hold(path, timeout, say_waiting),
    ):
        kept = None if path is None else read_state(path, norm)
        settings = settings._replace(request=adopt_eps(request, kept))
        rule = choose_rule(norm, request.like, *settings.training[:3])
        for file, goes in zip(settings.source.inputs or [None], outputs, strict=True):
            source = settings.source._replace(inputs=() if file is None else (file,))
            before = entries[-1].step.after if entries else kept
            wanted = None if before is None else before.columns
            problem, given = load_training(settings._replace(source=source).want(wanted))
            if kept is not None and given is not None:
                raise UsageError("--state holds running statistics; leave out --running-mean and --running-var")
            state = begin(problem.plan, given) if before is None else before
            batch = _enter(state, problem, rule, settings, goes, files)
            if not goes.is_stream:
                batch.save()
            goes.warn(settings.run, problem)
            entries.append(batch.entry)
        _finish(Tracking(entries, rule, path), batch, goes, settings.answer, files)


def _choose_outputs(settings: Settings) -> list[Outputs]:
    """Return the destinations of each batch's results: one `Outputs` for each input, or one without inputs.

    With several inputs, `--output` is a folder, and only the normalized tensors are saved.

    Raises
    ------
    UsageError
        If `--show` or a format for a single tensor is given; with several inputs, `--print`, `--stats-output`
        or `-o -`; if two options name the same file, or a file cannot be written.
    """
    answer, inputs = settings.answer, settings.source.inputs
    if answer.show is not None:
        raise UsageError("--show is of one tensor's answer; of running statistics the run is printed")
    if answer.output != STANDARD_STREAM and answer.format_name not in (None, *FORMATS):
        raise UsageError(
            f"--format {answer.format_name} is of one tensor's answer; a run has {', '.join(FORMATS)}"
        )
    require_distinct(
        {"--state": settings.running.state, "--output": answer.output, "--stats-output": answer.stats_output}
    )
    if len(inputs) < 2:
        return [choose_outputs(settings)]
    for option, value in (("--print", answer.fields or None), ("--stats-output", answer.stats_output)):
        if value is not None:
            raise UsageError(f"{option} is of one batch; give one --input, not {len(inputs)}")
    if answer.output is None:
        return [choose_outputs(settings)] * len(inputs)
    if answer.output == STANDARD_STREAM:
        raise UsageError(f"-o - is for one batch; of {len(inputs)} the tensors go to a folder: -o DIR{os.sep}")
    files = choose_files_for(inputs, answer)
    for file in files:
        require_distinct({"--state": settings.running.state, "--output": file.path})
    return [Outputs(file, None, None) for file in files]


def _finish(run: Tracking, batch: _Batch, outputs: Outputs, answer: AnswerOptions, files: WholeFiles) -> None:
    """Write the outputs, print the run or the fields of the last batch, and replace the state file.

    Raises
    ------
    DataError
        If an output cannot be written; the state file is then unchanged.
    BrokenPipeError
        If the reader of standard output has gone; the state file is replaced all the same.
    """
    from normcli.running.state_file import replace_state

    path, stopped = run.path, None
    fields = collect_fields(batch.answer, answer.fields)
    with contextlib.nullcontext() if path is None else replace_state(path, run.entries[-1].step.after):
        try:
            if outputs.is_stream:
                batch.save()
            files.pop_all().close()  # every file takes its place
            if outputs.document is not None and outputs.document.path is not None:
                outputs.document.write(batch.answer, answer.view())
            if fields:
                write_fields(fields, sys.stdout)
            elif not outputs.is_stream:
                print_document(run, answer)
            sys.stdout.flush()
        except BrokenPipeError as error:
            stopped = error
            files.pop_all().close()
        except OSError as error:
            left = "" if path is None else f"; {path} is as it was"
            reason = error.strerror or "I/O error"
            raise DataError(f"the answer cannot be written: {reason}{left}") from error
    if stopped is not None:
        raise stopped


def _enter(
    state: State,
    problem: Problem,
    rule: RunningRule,
    settings: Settings,
    outputs: Outputs,
    files: WholeFiles,
) -> _Batch:
    """Normalize a batch and add it to the running statistics `state`; its outputs are not saved yet.

    `files` are the files of the caller's `with` block. Under `--strict`, a degenerate group raises
    `DegenerateError`.
    """
    from normcli.answers.batches.running_statistics import TrackedBatch
    from normcli.answers.calculating.calculation import Answer
    from normcli.running.average import measure_gap, update

    with settings.run.open_effort() as effort:
        out = outputs.start(files, problem)
        result = problem.calculate(effort, out=out)
        if settings.run.strict:
            result.require_sound()
        with name_subject(problem.tensor.source):
            step = update(state, result, rule)
        gap = measure_gap(result, step.after)
    if not settings.run.quiet:
        settings.run.warn(f"{problem.plan.norm.name}: {problem.tensor.source}", *result.warnings)
    entry = TrackedBatch(problem.tensor.source, problem.plan, step, gap)
    mean, var = step.after.statistics
    updated = {"running_mean": mean, "running_var": var}
    save = functools.partial(outputs.save, files, problem, result, out, updated)
    return _Batch(entry, Answer(result, problem.tensor, updated=updated), save)
