"""`normcli check bn --actual-running-mean`: running statistics, compared with those that batches lead to."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

from click import option

from normcli.cli.files.sources import load_actual
from normcli.cli.parameters import options
from normcli.cli.problem import load_problem
from normcli.errors import DataError, UsageError, name_subject
from normcli.norms.table import find_norm

if TYPE_CHECKING:
    from collections.abc import Mapping

    from normcli.answers.judging.check_verdict import RunningVerdict
    from normcli.cli.parameters.settings import Settings

NAMES = ("running_mean", "running_var")

OPTIONS = (
    *(
        option(
            f"--actual-{name.replace('_', '-')}",
            metavar="FILE",
            help=f"The {name.replace('_', ' ')} after the batches of -i, to check.",
        )
        for name in NAMES
    ),
    *options.TRACKING[:3],
)


def take_paths(own: dict[str, Any]) -> dict[str, str]:
    """Remove the files of running statistics from `check`'s own options; return the given ones by name."""
    taken = {name: own.pop(f"actual_{name}", None) for name in NAMES}
    return {name: path for name, path in taken.items() if path is not None}


def check_running_statistics(
    settings: Settings, paths: Mapping[str, str], others: Mapping[str, Any], limits: Mapping[str, Any]
) -> RunningVerdict:
    """Return the verdict on running statistics after batches, which the inputs are, in their order.

    Parameters
    ----------
    settings : Settings
        The options; running statistics in them are those before the first batch.
    paths : mapping of str to str
        The files to check, by name: `running_mean`, `running_var`.
    others : mapping of str to value
        Options that must not be given.
    limits : mapping of str to float or None
        `rtol`, `atol` and `max_ulp`.

    Raises
    ------
    UsageError
        If one of `others`, `--state` or `--eval` is given.
    DataError
        If running statistics do not have one value for each channel.
    """
    other = next((f"--{name.replace('_', '-')}" for name, value in others.items() if value is not None), None)
    if other is not None:
        raise UsageError(f"{other} is of one batch; check it without --actual-running-mean and -var")
    if settings.running.evaluation or settings.running.state is not None:
        raise UsageError("the state before is --running-mean and --running-var; leave --eval and --state out")
    from normcli.answers.judging.check_verdict import RunningVerdict
    from normcli.auditing.running_check import check_running
    from normcli.checking.ulp import choose_tolerance
    from normcli.results.calculate import calculate
    from normcli.running.average import begin, choose_rule

    norm, request = find_norm(settings.request.norm)[0].name, settings.request
    rule = choose_rule(norm, request.like, *settings.training[:3])
    batches, sources, state = [], [], None
    with settings.run.open_effort() as effort:
        for file in settings.source.inputs or [None]:
            source = settings.source._replace(inputs=() if file is None else (file,))
            problem = load_problem(settings._replace(source=source), trains=True)
            state = begin(problem.plan, problem.before) if state is None else state
            batches.append(calculate(problem.plan, problem.tensor.values, effort=effort, statistics_alone=True))
            sources.append(problem.tensor.source)
    assert state is not None
    stored = {}
    for name, path in paths.items():
        with name_subject(f"--actual-{name.replace('_', '-')} {path}"):
            stored[name] = load_actual(path, settings, None).values
            if stored[name].size != state.statistics[0].size:
                raise DataError(f"it has {stored[name].size:,} values, not {state.statistics[0].size:,}")
    tolerate = functools.partial(choose_tolerance, **limits)
    return RunningVerdict(norm, tuple(sources), [*check_running(state, batches, rule, stored, tolerate)])
