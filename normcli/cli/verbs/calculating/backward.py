"""`normcli backward NORM`: the derivatives of a loss with respect to the tensor, gamma and beta."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from click import option

from normcli.cli.files.conflicting_files import require_unread
from normcli.cli.files.destination import ARCHIVES, WholeFiles, collect_fields
from normcli.cli.files.outputs import choose_outputs
from normcli.cli.files.sources import load_typed, require_one_stream
from normcli.cli.parameters import answer_options, options
from normcli.cli.problem import load_problem, warn_of_input
from normcli.cli.verb_commands import NamedNorm, Verb
from normcli.errors import UsageError
from normcli.writers import FORMATS, GRADIENT_PARTS, GRADIENTS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from normcli.cli.parameters.settings import Settings
    from normcli.results.arguments import Problem


DY_OPTIONS = (
    option(
        "--dy",
        metavar="VALUE",
        help="The derivative of the loss by the normalized tensor, of the input's shape: a file, or JSON. "
        "[default: drawn, standard normal]",
    ),
    option("--dy-seed", type=int, metavar="SEED", help="Of a drawn dy. [default: one above --seed]"),
)
"""The options for the source of dy."""


def ask_for_backward(text: str) -> tuple[options.Option, ...]:
    """Return the options `--backward` (with `text` as its help), `--dy` and `--dy-seed` for another verb."""
    return (option("--backward", is_flag=True, help=text), *DY_OPTIONS)


def _list_options(named: NamedNorm) -> Sequence[options.Option]:
    return [
        *DY_OPTIONS,
        *options.of_problem(named),
        *options.COUNTING,
        *options.GATE,
        answer_options.output("Save dx; - is standard output. As .npz, .safetensors: the other gradients too."),
        answer_options.OVERWRITE,
        answer_options.ANSWER_OR_TENSOR_FORMAT,
        answer_options.print_fields(GRADIENTS),
        answer_options.show(GRADIENT_PARTS),
        *answer_options.LOOK,
        *answer_options.RUN,
    ]


def _run(settings: Settings, dy: str | None, dy_seed: int | None) -> None:
    """Differentiate a loss by the tensor, gamma, beta and a gate: the backward pass, exact.

    From dy, the derivative of a loss by the normalized tensor, follow dx, dgamma = Σ dy · x̂ and dbeta = Σ dy.
    Each number is the exact one, rounded once to its dtype, whatever the conditioning: a kernel's gradients can
    be held against it to the ulp.

    With --gate z there is dgate too: dy · act(z) takes the place of dy, and dgate is dy · norm(x) · act'(z);
    under --gate-order before, dx and dgate are act(z) and x · act'(z) times the derivative by x · act(z).
    Of a gate that is broadcast, dgate is the sum over the values that each of its numbers multiplies.

    Without --dy one is drawn, and never all ones, where two of the three terms of dx cancel. -o saves dx; .npz,
    .safetensors, --print and -f json have the others too. From .npy to .npy the memory is the same for any
    size.

    \b
      normcli backward ln -i x.npy --dy dy.npy --gamma g.npy -o dx.npy
      normcli backward bn --shape 2,3,4,4 --print dgamma,dbeta
      normcli backward rms -i x.npy --dy dy.npy --gate z.npy -o gradients.npz
    """
    outputs = choose_outputs(settings)
    require_unread("--output", settings.answer.output, settings.source.inputs)
    if outputs.document is not None and outputs.document.format_name not in FORMATS:
        raise UsageError(
            "-o saves dx as .npy, .json, .csv and the like; "
            "explain --backward has a page, draw --backward a picture"
        )
    require_one_stream(settings, dy, settings.around.gate)
    from normcli.answers.calculating.gradients import GradientsAnswer
    from normcli.results.backward import calculate_backward
    from normcli.tensors.formats.file_formats import Saved

    problem = load_gradient(settings, load_problem(settings), dy, dy_seed)
    with WholeFiles() as files, settings.run.open_effort() as effort:
        problem = problem._replace(effort=effort)
        warn_of_input(settings.run, problem, problem.calculate(statistics_alone=True))
        is_archive = outputs.tensor is not None and f".{outputs.tensor.format_name}" in ARCHIVES
        out = None if is_archive else outputs.start(files, problem)
        found = calculate_backward(problem, out=out)
        assert problem.dy is not None
        answer = GradientsAnswer(found, problem.tensor, problem.dy)
        fields = collect_fields(answer, settings.answer.fields)
        warnings = answer.warnings
        if outputs.tensor is not None and is_archive:
            outputs.tensor.write_arrays(files, found.collect())
        elif outputs.tensor is not None and out is None:
            outputs.tensor.write_tensor(files, Saved.like(problem.tensor, found.dx))
    settings.run.warn(problem.plan.norm.name, *warnings)
    if fields:
        from normcli.writers.structured import write_fields

        write_fields(fields, sys.stdout)
    elif outputs.document is not None:
        outputs.document.write(answer, settings.answer.view())


def load_gradient(settings: Settings, problem: Problem, path: str | None, seed: int | None) -> Problem:
    """Return a problem with dy: the tensor that `--dy` names, or a drawn one.

    Parameters
    ----------
    settings : Settings
    problem : Problem
    path : str or None
        The value of `--dy`; None: dy is drawn.
    seed : int or None
        The seed of a drawn dy; None: one more than the input's, so that dy is not drawn from the same stream.

    Raises
    ------
    UsageError
        If the norm has no derivative, or both `--dy` and `--dy-seed` are given.
    """
    from normcli.results.backward import draw_gradient, require_derivative

    require_derivative(problem.plan)
    if path is not None:
        if seed is not None:
            raise UsageError("--dy-seed is of a dy that is drawn; leave out --dy or --dy-seed")
        return problem._replace(dy=load_typed("--dy", path, settings, problem.plan.grid.columns))
    return problem._replace(dy=draw_gradient(problem.plan, choose_seed(settings, seed)))


def choose_seed(settings: Settings, seed: int | None) -> int:
    """Return the seed with which dy is drawn: `seed`, or if that is None the input's seed plus 1."""
    from normcli.tensors.random.recipe import Recipe

    of_input = Recipe(()).seed if settings.source.seed is None else settings.source.seed
    return of_input + 1 if seed is None else seed


BACKWARD = Verb(
    "backward",
    _run,
    options=_list_options,
    examples=("{tensor}", "-i x.npy --dy dy.npy -o dx.npy"),
)
