"""The subject of a verb: tensor, plan of the norm, gamma, beta, running statistics, selection."""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from normcli.cli.files.sources import load_input, load_optional, load_parameters, load_typed, require_one_stream
from normcli.errors import DataError, UsageError
from normcli.norms.table import find_norm
from normcli.tuples import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from normcli.checking.check import Checked
    from normcli.cli.parameters.settings import RunningOptions, RunOptions, Settings
    from normcli.engine.inputs import Inputs
    from normcli.engine.walk import Effort
    from normcli.norms.plan import Plan
    from normcli.norms.request import Request
    from normcli.numerics.statistics.solution import Given
    from normcli.results.degenerate_groups import Degeneracy
    from normcli.results.result import Result
    from normcli.results.surroundings import Surroundings
    from normcli.running.average import State
    from normcli.tensors.tensor import Tensor


class Problem(NamedTuple):
    """A norm and the tensor that it is applied to, with gamma, beta, running statistics and selection.

    Parameters
    ----------
    tensor : Tensor
    plan : Plan
        The norm with its options, resolved against the tensor's shape and dtype.
    inputs : Inputs
        gamma, beta, statistics and selection, in the shapes that the plan needs.
    parameters : mapping of str to ndarray or None
        gamma and beta in the shapes in which they were given; None where not given.
    before : Given or None
        The running statistics before training; None if none are given, and for evaluation.
    """

    tensor: Tensor
    plan: Plan
    inputs: Inputs
    parameters: Mapping[str, NDArray[Any] | None] = MappingProxyType({})
    before: Given | None = None

    def calculate(
        self, effort: Effort, *, out: NDArray[Any] | None = None, statistics_alone: bool = False
    ) -> Result:
        """Apply the norm to the tensor, as `normcli.results.calculate.calculate` does."""
        from normcli.results.calculate import calculate

        values, inputs = self.tensor.values, self.inputs
        return calculate(self.plan, values, inputs, out=out, effort=effort, statistics_alone=statistics_alone)


def load_problem(settings: Settings, *, trains: bool = False) -> Problem:
    """Load the tensor and everything else that the options name, and plan the norm for the tensor.

    Parameters
    ----------
    settings : Settings
    trains : bool
        Whether running statistics are to be updated: they may then be given without `--eval`.

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
        return make_problem(settings, tensor, running, trains=trains)
    around, given = load_surroundings(settings, tensor), tensor.values
    request, values = around.prepare(settings.request, given)
    if values is not given:
        made = " and ".join(f"--{name}" for name in ("clip", "gate") if getattr(around, name) is not None)
        settings = settings._replace(request=request)
        tensor = tensor._replace(
            values=values, source=f"{tensor.source} behind {made}", opened=None, stored=None
        )
    problem = make_problem(settings, tensor, running, trains=trains)
    return problem._replace(inputs=around.surround(problem.inputs, problem.plan, given))


def load_surroundings(settings: Settings, tensor: Tensor) -> Surroundings:
    """Load the gate and the bounds that the options name."""
    from normcli.results.surroundings import Surroundings, read_bounds

    given = settings.around
    clip = None if given.clip is None else read_bounds("--clip", given.clip, takes_percent=True)
    text = given.clip_output
    output = None if text is None else read_bounds("--clip-output", text, takes_percent=False)
    gate = None if given.gate is None else load_typed("--gate", given.gate, settings, tensor.columns).values
    return Surroundings(clip, gate, given.gate_act, given.gate_order, output)


def make_problem(
    settings: Settings, tensor: Tensor, running: Running | None = None, *, trains: bool = False
) -> Problem:
    """Plan the norm for a loaded tensor, and load gamma, beta, running statistics and mask.

    Parameters
    ----------
    settings : Settings
    tensor : Tensor
    running : Running or None
        The running statistics, if they are loaded already; None: they are loaded if the options name them.
    trains : bool
        Whether running statistics are to be updated: they may then be given without `--eval`.

    Raises
    ------
    UsageError
        If options contradict each other or do not fit the norm.
    DataError
        If a file cannot be read, or an array does not fit the tensor.
    """
    from normcli.norms.layout import find_layout
    from normcli.norms.plan import make_plan
    from normcli.results.given_inputs import SelectionRequest, fit_given, fit_inputs

    evaluation, request = settings.running.evaluation, settings.request
    running = running or load_running(settings.running, find_norm(request.norm)[0].name, tensor.columns)
    request = adopt_eps(request, None if running is None else running.state)
    request = request.adopt_layout(find_layout(tensor.dimensions)).adopt_dtype(tensor.output_dtype)
    plan = make_plan(request, tensor.values.shape, tensor.values.dtype, tensor.columns)
    parameters = load_parameters(plan, settings)
    plan = plan.adopt_parameters(parameters)
    if running is not None and running.state is not None:
        what = f"{plan.norm.name} of {plan.grid.shape}"
        running.state.require_shape(plan.grid.running.stats_shape, running.names[0], what, plan.advise_layout)
    known = None if running is None else fit_given(plan, running.statistics, running.names)
    if evaluation and known is None:
        raise UsageError(
            "--eval needs running statistics: give --running-mean and --running-var, or --state FILE.npz"
        )
    if not evaluation and not trains and (known is not None or settings.running.state is not None):
        raise UsageError("running statistics are what --eval normalizes with; add it")
    used, before = (known, None) if evaluation else (None, known)
    selection = SelectionRequest(
        load_optional("mask", settings.selection.mask, tensor.columns), *settings.selection[1:]
    )
    inputs = fit_inputs(plan, tensor.values, parameters, used, selection)
    return Problem(tensor, plan, inputs, parameters, before)


class Running(NamedTuple):
    """Running statistics in the shapes in which they were given.

    Parameters
    ----------
    statistics : Given
        The mean and the variance.
    names : tuple of str
        The names of mean and variance in messages.
    state : State or None
        The state file's content; None if the statistics are from options.
    """

    statistics: Given
    names: tuple[str, str]
    state: State | None = None


def adopt_eps(request: Request, state: State | None) -> Request:
    """Return a request with the state's eps and eps mode, each where the request has none of its own.

    The request is returned unchanged if `state` is None or the request names a framework (`like`).
    """
    if state is None or request.like is not None:
        return request
    kept = {name: getattr(state, name) for name in ("eps", "eps_mode") if getattr(request, name) is None}
    return request._replace(**kept)


def load_running(given: RunningOptions, norm: str, columns: tuple[str, ...] | None = None) -> Running | None:
    """Return the running statistics of the state file under `--eval`, else those of the options.

    None if neither is given. Without `--eval`, `--state` is ignored here: `normcli.cli.verbs.batches.track`
    reads and replaces the file.

    Raises
    ------
    UsageError
        If only one of mean and variance is given, or one stands beside a state file under `--eval`.
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


def warn_of_input(run: RunOptions, problem: Problem, measured: Result | Checked) -> list[str]:
    """Write warnings of degenerate groups that input and statistics show, and return them, one line each.

    Raises
    ------
    DegenerateError
        If a group is degenerate, under `--strict`.
    """
    from normcli.results.framework_departures import find_all_degeneracies

    plan, statistics, counts = problem.plan, measured.statistics, measured.counts
    found = find_all_degeneracies(plan, problem.tensor.values, statistics, None, problem.inputs, counts)
    run.warn_of_groups(plan.norm.name, advise(found, problem.inputs))
    return [str(kind) for kind in found]


def advise(found: Sequence[Degeneracy], inputs: Inputs) -> list[str]:
    """Return the warnings of degenerate groups; one of NaN adds advice to use `--nan omit`.

    The advice is left out if statistics are given, as in evaluation.
    """
    spreads = "" if inputs.given is not None else "; --nan omit leaves such values out"
    return [f"{kind}{spreads}" if kind.kind == "nan" else str(kind) for kind in found]
