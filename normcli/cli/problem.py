"""What a command is asked to work on: the norm, the tensor, gamma and beta, from its options."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import click

from normcli.cli import options
from normcli.cli.sources import SourceOptions, load_input, load_parameter, load_parameters
from normcli.errors import DataError, UsageError
from normcli.norms.table import find_norm

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from normcli.engine.inputs import Inputs
    from normcli.norms.plan import Plan
    from normcli.norms.table import Norm
    from normcli.numerics.solution import Given
    from normcli.results.inputs import SelectionRequest
    from normcli.running.average import State
    from normcli.tensors.tensor import Tensor


class Problem(NamedTuple):
    """A norm and what it is to be applied to.

    Parameters
    ----------
    tensor : Tensor
    plan : Plan
        What was asked for, resolved against the tensor.
    inputs : Inputs
        What the plan is carried out with, fitted to it.
    parameters : mapping of str to ndarray
        gamma and beta as they were given, of any shape.
    before : Given or None
        The running statistics that training is to begin with.
    """

    tensor: Tensor
    plan: Plan
    inputs: Inputs
    parameters: Mapping[str, NDArray[Any]]
    before: Given | None = None


def list_options(
    norm: Norm,
    fixed: Mapping[str, float],
    dtype: options.Option = options.DTYPE,
    source: Sequence[options.Option] = options.SOURCE,
) -> list[options.Option]:
    """Return the options that state a problem, for a norm and what the name of its preset fixes."""
    return [
        *source,
        *options.RECIPE,
        *options.AXES,
        *options.numeric(norm, fixed),
        dtype,
        options.like(norm),
        *options.parameters(norm),
    ]


def load_problem(name: str, settings: Mapping[str, Any]) -> Problem:
    """Return what the settings of `list_options` state; what there is to say of the input goes to stderr.

    Raises
    ------
    NormError
        As `load_input`, `make_plan` and `load_parameters`.
    """
    from normcli.norms.plan import make_plan
    from normcli.norms.request import Request
    from normcli.results.inputs import fit_inputs

    trains = "momentum" in settings  # a command of `options.TRACKING`
    evaluation = bool(settings.get("evaluation"))
    running = load_running(settings, norm=find_norm(name)[0].name)
    if running is not None and running.state is not None:
        settings = adopt_eps(settings, running.state)
    request = Request.collect(name, settings)
    source = SourceOptions.collect(dict(settings))
    tensor = load_input(source)
    tell_note(tensor, settings)
    plan = make_plan(request, tensor.values.shape, tensor.values.dtype)
    parameters = load_parameters(plan, source, settings.get("gamma"), settings.get("beta"))
    known = None if running is None else running.fit(plan)
    if evaluation and known is None:
        raise UsageError(
            "--eval needs running statistics: give --running-mean and --running-var, or --state FILE.npz"
        )
    if not evaluation and not trains and (known is not None or settings.get("state") is not None):
        raise UsageError("running statistics are what --eval normalizes with; add it")
    used, before = (known, None) if evaluation else (None, known)
    inputs = fit_inputs(plan, tensor.values, parameters, used, _load_selection(settings))
    return Problem(tensor, plan, inputs, parameters, before)


class Running(NamedTuple):
    """Running statistics as they were given.

    Parameters
    ----------
    statistics : Given
    names : tuple of str
        What messages call mean and variance.
    state : State or None
        What else the state file holds, where they are of one.
    """

    statistics: Given
    names: tuple[str, str]
    state: State | None = None

    def fit(self, plan: Plan) -> Given:
        """Return them in the shape that a plan has for them; see `fit_given`."""
        from normcli.results.inputs import fit_given

        return fit_given(plan, self.statistics, self.names)


def adopt_eps(settings: Mapping[str, Any], state: State) -> Mapping[str, Any]:
    """Return settings with the eps that the state file keeps, where neither eps nor a framework is named."""
    if settings.get("like") is not None:
        return settings
    kept = {name: getattr(state, name) for name in ("eps", "eps_mode") if settings.get(name) is None}
    return {**settings, **kept}


def load_running(settings: Mapping[str, Any], norm: str) -> Running | None:
    """Return what `options.RUNNING` give, for commands that have them: the file's statistics, or the options'.

    In training the state file is read by those who keep it.

    Raises
    ------
    UsageError
        If only one of mean and variance is given, or both they and a state file.
    DataError
        If there is no such file, or it is none of a state.
    """
    from normcli.numerics.solution import Given

    given = {name: settings.get(f"running_{name}") for name in ("mean", "var")}
    missing = [f"--running-{name}" for name, text in given.items() if text is None]
    state = settings.get("state")
    if state is not None and settings.get("evaluation"):
        if len(missing) < len(given):
            raise UsageError("--state holds running statistics; leave out --running-mean and --running-var")
        from normcli.running.state_file import read_state

        kept = read_state(state, norm)
        if kept is None:
            raise DataError(f"--state {state}: there is no such file")
        return Running(
            kept.statistics, (f"the running mean of {state}", f"the running variance of {state}"), kept
        )
    if len(missing) == len(given):
        return None
    if missing:
        raise UsageError(f"running statistics are a mean and a variance: give {missing[0]} too")
    loaded = Given(*(load_parameter(f"running-{name}", str(text)) for name, text in given.items()))
    return Running(loaded, ("--running-mean", "--running-var"))


def _load_selection(settings: Mapping[str, Any]) -> SelectionRequest | None:
    """Return what `options.COUNTING` say, for commands that have them."""
    said = {name: settings.get(name) for name in ("mask", "lengths", "nan", "fill")}
    if all(value is None for value in said.values()):
        return None
    from normcli.results.inputs import SelectionRequest

    mask = None if said["mask"] is None else load_parameter("mask", said["mask"])
    return SelectionRequest(mask, said["lengths"], said["nan"], said["fill"])


def tell_note(tensor: Tensor, settings: Mapping[str, Any]) -> None:
    """Say on stderr what there is to say of how a tensor was read, unless quiet is asked for."""
    if tensor.note is not None and not settings["quiet"]:
        click.echo(f"normcli: {tensor.source}: {tensor.note}", err=True)
