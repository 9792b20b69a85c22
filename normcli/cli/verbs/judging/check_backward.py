"""`normcli check NORM --backward`: somebody's gradients, compared with the exact ones."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

from click import option

from normcli.cli.files.destination import leave_with_verdict, print_document
from normcli.cli.files.sources import load_actual, require_one_stream
from normcli.cli.problem import load_problem, warn_of_input
from normcli.cli.verbs.calculating.backward import ask_for_backward, load_gradient
from normcli.errors import UsageError, name_subject
from normcli.writers import GRADIENTS

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from normcli.cli.parameters import options
    from normcli.cli.parameters.settings import Settings
    from normcli.tensors.tensor import Tensor

OPTIONS: Sequence[options.Option] = (
    *ask_for_backward("Check the gradients that a backward pass makes of --dy."),
    *(option(f"--actual-{name}", metavar="FILE", help=f"The {name} to check.") for name in GRADIENTS),
)

_NAMES = ("backward", "dy", "dy_seed", *(f"actual_{name}" for name in GRADIENTS))


def take_options(own: dict[str, Any]) -> dict[str, Any] | None:
    """Remove the options of gradients from `check`'s own options and return them; None if none is given."""
    taken = {name: own.pop(name, None) for name in _NAMES}
    return taken if any(value not in (None, False) for value in taken.values()) else None


def check_backward(
    settings: Settings,
    asked: dict[str, Any],
    others: dict[str, Any],
    limits: Mapping[str, Any],
) -> None:
    """Compare gradients with the exact ones, print the verdict, and leave with its exit code.

    Parameters
    ----------
    settings : Settings
    asked : dict
        The options of gradients, as `take_options` returns them.
    others : dict
        The other own options of `check`, of the forward pass, none of which may be given.
    limits : mapping of str to float or None
        `rtol`, `atol` and `max_ulp`.

    Raises
    ------
    UsageError
        If an option of the forward pass is given, or there are no gradients to check.
    """
    paths = {name: path for name in GRADIENTS if (path := asked[f"actual_{name}"]) is not None}
    wrong = [f"--{name.replace('_', '-')}" for name, path in others.items() if path is not None]
    if wrong:
        raise UsageError(f"{wrong[0]} is of the forward pass; check it without --backward and --actual-dx")
    if not paths:
        raise UsageError("there is nothing to check: give --actual-dx FILE, --actual-dgamma or --actual-dbeta")
    require_one_stream(settings, asked["dy"], settings.around.gate, *paths.values())
    from normcli.answers.judging.gradients_verdict import GradientsVerdict
    from normcli.checking.gradient_check import check_gradients
    from normcli.checking.ulp import choose_tolerance
    from normcli.results.backward import BackwardProblem

    problem = load_problem(settings)
    plan = problem.plan
    dy = load_gradient(settings, problem, asked["dy"], asked["dy_seed"])
    tensors: dict[str, Tensor] = {}
    for name, path in paths.items():
        with name_subject(f"--actual-{name}"):
            tensors[name] = load_actual(path, settings, plan.grid.columns if name in ("dx", "dgate") else None)
    with settings.run.open_effort() as effort:
        warnings = warn_of_input(settings.run, problem, problem.calculate(effort, statistics_alone=True))
        arrays = {name: tensor.values for name, tensor in tensors.items()}
        tolerate = functools.partial(choose_tolerance, **limits)
        subject = BackwardProblem(plan, problem.tensor.values, dy.values, problem.inputs)
        checked = check_gradients(subject, arrays, tolerate, effort)
    sources = {name: tensor.source for name, tensor in tensors.items()}
    print_document(GradientsVerdict(checked, problem.tensor, dy, sources, warnings), settings.answer)
    leave_with_verdict(ok=checked.ok)
