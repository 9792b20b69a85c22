"""The problem of a command line, loaded: tensor, plan, gamma, beta, running statistics, selection."""

from __future__ import annotations

from typing import TYPE_CHECKING

from normcli.cli.files.sources import load_input, load_optional, load_parameters, load_typed, require_one_stream
from normcli.errors import DataError, UsageError
from normcli.norms.table import find_norm
from normcli.tuples import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Sequence

    from normcli.cli.parameters.settings import RunningOptions, RunOptions, Settings
    from normcli.engine.inputs import Inputs
    from normcli.norms.plan import Plan
    from normcli.norms.request import Request
    from normcli.numerics.statistics.solution import Given
    from normcli.results.arguments import GivenInputs, Problem
    from normcli.results.degenerate_groups import Degeneracy
    from normcli.results.result import Result
    from normcli.results.surroundings import Surroundings
    from normcli.running.average import State
    from normcli.tensors.tensor import Tensor


def load_problem(settings: Settings) -> Problem:
    """Load the tensor and everything else that the options name, and plan the norm for the tensor.

    The values of the problem are clipped, and multiplied by the gate, where the options ask for that first.

    Raises
    ------
    UsageError
        If options contradict each other or do not fit the norm.
    DataError
        If a file cannot be read, or an array does not fit the tensor.
    """
    norm, running = find_norm(settings.request.norm)[0].name, None
    if settings.running.evaluation and settings.running.state is not None:
        running = load_running(settings.running, norm)
        settings = settings.want(None if running is None or running.state is None else running.state.columns)
    require_one_stream(settings, settings.source.residual, settings.around.gate)
    tensor = load_input(settings)
    if not any(value is not None for value in settings.around):
        return plan_tensor(settings, tensor, running)
    around = load_surroundings(settings, tensor)
    problem = plan_tensor(settings, tensor, running, around)
    if problem.values is tensor.values:
        return problem
    made = " and ".join(f"--{name}" for name in ("clip", "gate") if getattr(around, name) is not None)
    source = f"{tensor.source} behind {made}"
    return problem._replace(tensor=problem.tensor._replace(source=source, opened=None, stored=None))


def load_surroundings(settings: Settings, tensor: Tensor) -> Surroundings:
    """Load the gate, and read the bounds before and after the norm (`--clip`, `--clip-output`).

    Each is None if its option is not given. Raises `UsageError` for bounds that are none, and `DataError` for a
    gate that cannot be read.
    """
    from normcli.results.surroundings import Surroundings, read_bounds

    given = settings.around
    clip = None if given.clip is None else read_bounds("--clip", given.clip, takes_percent=True)
    text = given.clip_output
    output = None if text is None else read_bounds("--clip-output", text, takes_percent=False)
    gate = None if given.gate is None else load_typed("--gate", given.gate, settings, tensor.columns).values
    return Surroundings(clip, gate, given.gate_act, given.gate_order, output)


def plan_tensor(
    settings: Settings, tensor: Tensor, running: Running | None = None, around: Surroundings | None = None
) -> Problem:
    """Plan the norm for a loaded tensor, and load gamma, beta, running statistics and mask.

    Parameters
    ----------
    settings : Settings
    tensor : Tensor
    running : Running or None
        The running statistics, if they are loaded already. None: they are loaded here if the options name them.
    around : Surroundings or None
        The gate and the bounds before and after the norm; None without any.

    Raises
    ------
    UsageError
        If options contradict each other or do not fit the norm.
    DataError
        If a file cannot be read, or an array does not fit the tensor.
    """
    from normcli.norms.layout import find_layout
    from normcli.results.arguments import make_problem
    from normcli.results.given_inputs import SelectionRequest

    evaluation, request = settings.running.evaluation, settings.request
    running = running or load_running(settings.running, find_norm(request.norm)[0].name, tensor.columns)
    request = adopt_eps(request, None if running is None else running.state)

    def read_inputs(plan: Plan) -> GivenInputs:
        parameters = load_parameters(plan, settings)
        known = None if running is None else running.fit(plan)
        if evaluation and known is None:
            raise UsageError(
                "--eval needs running statistics: give --running-mean and --running-var, or --state FILE.npz"
            )
        if not evaluation and (known is not None or settings.running.state is not None):
            raise UsageError("running statistics are what --eval normalizes with; add it")
        mask = load_optional("mask", settings.selection.mask, tensor.columns)
        return parameters, known, SelectionRequest(mask, *settings.selection[1:])

    return make_problem(request.adopt_layout(find_layout(tensor.dimensions)), tensor, read_inputs, around)


def load_training(settings: Settings) -> tuple[Problem, Given | None]:
    """Load a batch to be normalized with its own statistics, and the running statistics before it.

    The running statistics have the plan's shape; they are None if neither `--running-mean` nor `--running-var`
    is given. A state file (`--state`) is not read here. Raises `UsageError` for options that do not fit,
    `DataError` for bad files.
    """
    problem = load_problem(settings._replace(running=type(settings.running)()))
    running = load_running(settings.running, problem.plan.norm.name, problem.tensor.columns)
    return problem, None if running is None else running.fit(problem.plan)


class Running(NamedTuple):
    """Running statistics in the shapes in which they were given.

    Parameters
    ----------
    statistics : Given
        The mean and the variance.
    names : tuple of str
        The names of mean and variance in messages.
    state : State or None
        The content of the state file that the statistics are from; None if they are from options.
    """

    statistics: Given
    names: tuple[str, str]
    state: State | None = None

    def fit(self, plan: Plan) -> Given:
        """Return these running statistics in the plan's shape; raise `NormError` if they do not fit it."""
        from normcli.results.given_inputs import fit_given

        if self.state is not None:
            self.state.require_channels(plan, self.names[0])
        return fit_given(plan, self.statistics, self.names)


def adopt_eps(request: Request, state: State | None) -> Request:
    """Return a request in which eps and its mode, where they are not set, are those of a state file.

    The request is returned unchanged if `state` is None, or the request names a framework (`like`).
    """
    if state is None or request.like is not None:
        return request
    kept = {name: getattr(state, name) for name in ("eps", "eps_mode") if getattr(request, name) is None}
    return request._replace(**kept)


def load_running(given: RunningOptions, norm: str, columns: tuple[str, ...] | None = None) -> Running | None:
    """Return the running statistics of the state file if `--eval` is given, else those of the options.

    Return None if neither is given. Without `--eval` the state file is not read: that is done by
    `normcli.cli.verbs.batches.track`, which also replaces it.

    Raises
    ------
    UsageError
        If only one of mean and variance is given, or one is given together with a state file under `--eval`.
    DataError
        If the state file does not exist, or is no state file of this norm.
    """
    from normcli.numerics.statistics.solution import Given

    mean, var = (load_optional(name, text, columns) for name, text in
                 (("running-mean", given.running_mean), ("running-var", given.running_var)))  # fmt: skip
    if given.state is not None and given.evaluation:
        if mean is not None or var is not None:
            raise UsageError("--state holds running statistics; leave out --running-mean and --running-var")
        from normcli.running.state_file import read_state

        state, path = read_state(given.state, norm), given.state
        if state is None:
            raise DataError(f"--state {path}: there is no such file")
        names = (f"the running mean of {path}", f"the running variance of {path}")
        return Running(state.statistics, names, state)
    if mean is None and var is None:
        return None
    if mean is None or var is None:
        missing = "--running-mean" if mean is None else "--running-var"
        raise UsageError(f"running statistics are a mean and a variance: give {missing} too")
    return Running(Given(mean, var), ("--running-mean", "--running-var"))


def warn_of_input(run: RunOptions, problem: Problem, measured: Result) -> None:
    """Write warnings of degenerate groups to standard error, judged by the input and its statistics alone.

    Raises
    ------
    DegenerateError
        If a group is degenerate, and `--strict` is given.
    """
    from normcli.results.framework_departures import find_all_degeneracies

    plan, statistics, counts = problem.plan, measured.statistics, measured.counts
    found = find_all_degeneracies(plan, problem.tensor.values, statistics, None, problem.inputs, counts)
    run.warn_of_groups(plan.norm.name, advise(found, problem.inputs))


def advise(found: Sequence[Degeneracy | str], inputs: Inputs) -> list[str]:
    """Return the texts of warnings; one of groups with NaN ends with the advice to use `--nan omit`.

    The advice is left out if running statistics are given.
    """
    spreads = "" if inputs.given is not None else "; --nan omit leaves such values out"
    return [f"{kind}{spreads}" if getattr(kind, "kind", "") == "nan" else str(kind) for kind in found]
