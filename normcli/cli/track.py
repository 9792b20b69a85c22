"""`normcli bn --state bn.npz`: batches enter the running statistics."""

from __future__ import annotations

import contextlib
import sys
from typing import TYPE_CHECKING

from normcli.cli.destination import choose_values_file, print_document
from normcli.cli.problem import adopt_eps, load_problem
from normcli.errors import DataError, UsageError, name_subject
from normcli.norms.table import find_norm
from normcli.writers import FORMATS

if TYPE_CHECKING:
    from normcli.answers.tracking import TrackedBatch, Tracking
    from normcli.cli.problem import Problem
    from normcli.cli.settings import AnswerOptions, Settings
    from normcli.norms.conventions import RunningRule
    from normcli.running.average import State


def track(settings: Settings) -> None:
    """Update running statistics with each input, print what became of them, and keep them.

    The state file changes only if all inputs could be read and the answer was written: after a failure the same
    command can be run again without counting a batch twice. So the new state is written to a temporary file
    first, then the answer, and then the file is renamed. A reader that closes the pipe early counts as served.
    """
    from normcli.answers.tracking import Tracking
    from normcli.running.average import choose_rule
    from normcli.running.state_file import hold, read_state

    _require_alone(settings.answer)
    path, request, timeout = settings.running.state, settings.request, settings.training.lock_timeout
    norm = find_norm(request.norm)[0].name
    choose_values_file(path, "--state", (".npz",))
    if path is None and timeout is not None:
        raise UsageError("--lock-timeout is for a file that other processes write too: --state FILE.npz")
    entries: list[TrackedBatch] = []

    def say_waiting() -> None:
        settings.run.warn(norm, f"waiting for the state {path}, which another process holds")

    with contextlib.nullcontext() if path is None else hold(path, timeout, say_waiting):
        kept = None if path is None else read_state(path, norm)
        settings = settings._replace(request=adopt_eps(request, kept))
        rule = choose_rule(norm, request.like, *settings.training[:3])
        for file in settings.source.inputs or [None]:
            source = settings.source._replace(inputs=() if file is None else (file,))
            problem = load_problem(settings._replace(source=source), trains=True)
            state = entries[-1].step.after if entries else _begin(problem, kept)
            entries.append(_enter(state, problem, rule, settings))
        _finish(Tracking(entries, rule, path), settings.answer)


def _finish(run: Tracking, answer: AnswerOptions) -> None:
    """Print the run, and replace the state file by the state after the last batch."""
    from normcli.running.state_file import replace_state

    path, stopped = run.path, None
    with contextlib.nullcontext() if path is None else replace_state(path, run.entries[-1].step.after):
        try:
            print_document(run, answer)
            sys.stdout.flush()
        except BrokenPipeError as error:
            stopped = error
        except OSError as error:
            left = "" if path is None else f"; {path} is as it was"
            reason = error.strerror or "I/O error"
            raise DataError(f"the answer cannot be written: {reason}{left}") from error
    if stopped is not None:
        raise stopped


def _require_alone(answer: AnswerOptions) -> None:
    """Raise `UsageError` on options that only the answer of one tensor has."""
    given = {
        "-o": answer.output, "--stats-output": answer.stats_output,
        "--print": answer.field, "--show": answer.show,
    }  # fmt: skip
    for option, value in given.items():
        if value is not None:
            raise UsageError(f"{option} is of one tensor's answer; of running statistics the run is printed")
    if answer.format_name not in (None, *FORMATS):
        raise UsageError(
            f"--format {answer.format_name} is of one tensor's answer; a run has {', '.join(FORMATS)}"
        )


def _begin(problem: Problem, kept: State | None) -> State:
    """Return the state before the first batch: of the file, of the options, or untrained."""
    from normcli.running.average import begin

    given = problem.before
    if kept is not None:
        if given is not None:
            raise UsageError("--state holds running statistics; leave out --running-mean and --running-var")
        return kept
    return begin(problem.plan, given)


def _enter(state: State, problem: Problem, rule: RunningRule, settings: Settings) -> TrackedBatch:
    from normcli.answers.tracking import TrackedBatch
    from normcli.running.average import measure_gap, update

    with settings.run.open_effort() as effort:
        result = problem.calculate(effort)
        if settings.run.strict:
            result.require_sound()
        with name_subject(problem.tensor.source):
            step = update(state, result, rule)
        gap = measure_gap(result, step.after)
    if not settings.run.quiet:
        settings.run.warn(f"{problem.plan.norm.name}: {problem.tensor.source}", *result.warnings)
    return TrackedBatch(problem.tensor.source, problem.plan, step, gap)
