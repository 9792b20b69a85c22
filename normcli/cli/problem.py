"""What a command is asked to work on: the norm, the tensor, gamma and beta, from its options."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import click

from normcli.cli import options
from normcli.cli.sources import SourceOptions, load_input, load_parameter, load_parameters
from normcli.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    from normcli.norms import Norm
    from normcli.numerics.solution import Given
    from normcli.plan import Plan
    from normcli.request import Request
    from normcli.tensors.tensor import Tensor

_REQUEST_FIELDS = (
    "axes", "keep", "layout", "groups", "group_order", "eps", "eps_mode", "ddof", "dtype", "p",
    "size", "alpha", "exponent", "k", "like",
)  # fmt: skip


class Problem(NamedTuple):
    """A norm and what it is to be applied to.

    Parameters
    ----------
    request : Request
    tensor : Tensor
    plan : Plan
        The request resolved against the tensor's shape.
    gamma, beta : ndarray or None
        As they were given.
    running : Given or None
        The running statistics that are to be used, as they were given.
    """

    request: Request
    tensor: Tensor
    plan: Plan
    gamma: NDArray[Any] | None
    beta: NDArray[Any] | None
    running: Given | None = None


def list_options(
    norm: Norm, fixed: Mapping[str, float], dtype: options.Option = options.DTYPE
) -> list[options.Option]:
    """Return the options that state a problem, for a norm and what the name of its preset fixes."""
    return [
        *options.SOURCE,
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
    from normcli.plan import make_plan
    from normcli.request import Request

    request = Request(norm=name, **{key: settings[key] for key in _REQUEST_FIELDS if key in settings})
    source = SourceOptions.collect(dict(settings))
    tensor = load_input(source)
    tell_note(tensor, settings)
    plan = make_plan(request, tensor.values.shape, tensor.values.dtype)
    parameters = load_parameters(plan, source, settings.get("gamma"), settings.get("beta"))
    running = _load_running(settings)
    return Problem(request, tensor, plan, parameters.get("gamma"), parameters.get("beta"), running)


def _load_running(settings: Mapping[str, Any]) -> Given | None:
    """Return what `options.RUNNING` give, for commands that have them."""
    given = {name: settings.get(f"running_{name}") for name in ("mean", "var")}
    missing = [f"--running-{name}" for name, text in given.items() if text is None]
    if not settings.get("evaluation"):
        if len(missing) < len(given):
            raise UsageError("--running-mean and --running-var are what --eval normalizes with; add it")
        return None
    if missing:
        raise UsageError(f"--eval normalizes with running statistics: give {' and '.join(missing)}")
    from normcli.numerics.solution import Given

    return Given(*(load_parameter(f"running-{name}", str(text)) for name, text in given.items()))


def tell_note(tensor: Tensor, settings: Mapping[str, Any]) -> None:
    """Say on stderr what there is to say of how a tensor was read, unless quiet is asked for."""
    if tensor.note is not None and not settings["quiet"]:
        click.echo(f"normcli: {tensor.source}: {tensor.note}", err=True)
