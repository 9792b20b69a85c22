"""`normcli bn --state bn.npz`: batches enter the running statistics."""

from __future__ import annotations

import contextlib
import sys
from typing import TYPE_CHECKING, Any

import click

from normcli.cli.problem import adopt_eps, load_problem
from normcli.errors import DataError, UsageError
from normcli.norms.table import find_norm
from normcli.writers import FORMATS

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from normcli.answers.tracking import TrackedBatch
    from normcli.cli.problem import Problem
    from normcli.results.result import Result
    from normcli.running.average import Rule, State


_OF_ONE_ANSWER = {"output": "-o", "stats_output": "--stats-output", "print_": "--print", "show": "--show"}


def asks_for_tracking(settings: Mapping[str, Any], inputs: Sequence[str]) -> bool:
    """Whether running statistics are to be updated: there is a place for them, and nothing is evaluated."""
    if settings["evaluation"]:
        if len(inputs) > 1:
            raise UsageError("--eval normalizes one tensor; give one --input")
        _refuse(settings, "momentum", "momentum_of", "running_ddof")
        return False
    if settings["state"] is not None or len(inputs) > 1:
        return True
    if settings["running_mean"] is not None or settings["running_var"] is not None:
        return True
    _refuse(settings, "momentum", "momentum_of", "running_ddof")
    return False


def _refuse(settings: Mapping[str, Any], *names: str) -> None:
    for name in names:
        if settings[name] is not None:
            option = f"--{name.replace('_', '-')}"
            raise UsageError(f"{option} is for running statistics in training: --state FILE.npz keeps them")


def track(name: str, settings: dict[str, Any], inputs: Sequence[str]) -> None:
    """Let each input enter the running statistics, print what became of them, and keep them.

    Nothing is kept unless all inputs could be read and the answer was written: whoever has seen it fail may
    call again, and nothing enters twice. So the new state is written out in full first, then the answer, and
    only then does the one take the place of the old state. A reader who stops early has had the answer.
    """
    from normcli.running.average import choose_rule
    from normcli.running.state_file import hold, read_state, require_state_path

    _require_alone(settings)
    path = settings["state"]
    if path is not None:
        from normcli.tensors.whole import require_writable

        require_state_path(path)
        require_writable(path, "--state")
    entries: list[TrackedBatch] = []
    with contextlib.nullcontext() if path is None else hold(path):
        kept = None if path is None else read_state(path, find_norm(name)[0].name)
        if kept is not None:
            settings = {**adopt_eps(settings, kept)}
        state = None
        for source in inputs or (None,):
            problem = load_problem(name, {**settings, "input_": source})
            plan = problem.plan
            if state is None:
                said = (settings[name] for name in ("like", "momentum", "momentum_of", "running_ddof"))
                rule = choose_rule(plan.norm.name, *said)
                state = _begin(problem, kept)
            entries.append(_enter(state, problem, rule, settings))
            state = entries[-1].step.after
        _finish(entries, rule, path, settings)


def _finish(entries: Sequence[TrackedBatch], rule: Rule, path: str | None, settings: Mapping[str, Any]) -> None:
    """Print the run, and let the state behind it take its place."""
    from normcli.answers.tracking import Tracking
    from normcli.cli.view import make_view
    from normcli.running.state_file import replace_state
    from normcli.writers import write

    view = make_view(settings["colour"], settings["digits"], full=settings["full"])
    stopped = None
    with contextlib.nullcontext() if path is None else replace_state(path, entries[-1].step.after):
        try:
            write(Tracking(entries, rule, path), settings["format_"] or "table", sys.stdout, view)
            sys.stdout.flush()
        except BrokenPipeError as error:
            stopped = error
        except OSError as error:
            left = "" if path is None else f"; {path} is as it was"
            told = error.strerror or "I/O error"
            raise DataError(f"the answer cannot be written: {told}{left}") from error
    if stopped is not None:
        raise stopped


def _require_alone(settings: Mapping[str, Any]) -> None:
    """Refuse what is asked of a single answer."""
    for name, option in _OF_ONE_ANSWER.items():
        if settings[name] is not None:
            raise UsageError(f"{option} is of one tensor's answer; of running statistics the run is printed")
    if settings["format_"] not in (None, *FORMATS):
        raise UsageError(
            f"--format {settings['format_']} is of one tensor's answer; a run has {', '.join(FORMATS)}"
        )


def _begin(problem: Problem, kept: State | None) -> State:
    """Return the state before the first batch: the file's, that of the options, or the beginning."""
    from normcli.running.average import begin

    given = problem.before
    if kept is not None:
        if given is not None:
            raise UsageError("--state holds running statistics; leave out --running-mean and --running-var")
        return kept
    return begin(problem.plan, given)


def _enter(state: State, problem: Problem, rule: Rule, settings: Mapping[str, Any]) -> TrackedBatch:
    from normcli.answers.tracking import TrackedBatch
    from normcli.cli.progress import show_progress
    from normcli.engine.walk import Effort
    from normcli.results.result import calculate
    from normcli.running.average import measure_gap, update

    with show_progress(quiet=settings["quiet"]) as observer:
        effort = Effort(settings["threads"], observer)
        result = calculate(problem.plan, problem.tensor.values, problem.inputs, effort=effort)
        if settings["strict"]:
            result.require_sound()
        try:
            step = update(state, result, rule)
        except DataError as error:
            raise DataError(f"{problem.tensor.source}: {error}") from error
        gap = measure_gap(result, step.after)
    _warn(result, problem, settings)
    return TrackedBatch(problem.tensor.source, problem.plan, step, gap)


def _warn(result: Result, problem: Problem, settings: Mapping[str, Any]) -> None:
    if not settings["quiet"]:
        for warning in result.warnings:
            click.echo(f"normcli: {problem.plan.norm.name}: {problem.tensor.source}: {warning}", err=True)
