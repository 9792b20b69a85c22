"""`normcli check`: whether somebody's tensor is what it should be."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import click

from normcli.cli import options
from normcli.cli.problem import list_options, load_problem, tell_note
from normcli.cli.progress import show_progress
from normcli.cli.verbs import NormVerb
from normcli.cli.verdict import show_verdict, tell_warnings
from normcli.dtypes import OUTPUT_DTYPES
from normcli.errors import DataError, NormError, UsageError
from normcli.norms.table import find_norm
from normcli.tensors.tensor import STANDARD_STREAM

if TYPE_CHECKING:
    from collections.abc import Mapping

    from normcli.cli.problem import Problem
    from normcli.norms.plan import Plan
    from normcli.norms.table import Norm
    from normcli.tensors.tensor import Tensor

_COUNTED_IN = options.make(
    "--dtype",
    type=click.Choice(OUTPUT_DTYPES),
    help="In whose last place to count. [default: the actual's] Also of a generated tensor.",
)

_TOLERANCE = (
    options.make("--rtol", type=float, help="Tolerated part of the expected value. [default: by dtype]"),
    options.make("--atol", type=float, help="Tolerated difference beside that. [default: by dtype]"),
    options.make("--max-ulp", type=float, metavar="ULP", help="Tolerate so many ulp instead of both."),
)


def make_command(name: str) -> click.Command:
    """Return the command that checks for the norm of that name, alias or preset."""
    norm, preset = find_norm(name)

    @click.command(name=name, help=_write_help(norm, name), short_help=norm.summary)
    @options.apply(
        [
            *_list_actual(norm),
            *_TOLERANCE,
            *list_options(norm, preset, _COUNTED_IN),
            *options.running(norm),
            *options.COUNTING,
            options.FORMAT,
            options.DIGITS,
            options.FULL,
            options.COLOUR,
            options.THREADS,
            *options.RUN,
        ]
    )
    def command(**settings: Any) -> None:
        _check(name, norm, settings)

    return command


def _list_actual(norm: Norm) -> list[options.Option]:
    tensor = options.make("--actual", metavar="FILE", help="The normalized tensor to check; as --input.")
    return [
        tensor,
        *(
            options.make(f"--actual-{name}", metavar="FILE", help=f"The {name} of each group to check.")
            for name in norm.statistics
        ),
    ]  # fmt: skip


def _write_help(norm: Norm, name: str) -> str:
    groups = " --groups 2" if "groups" in norm.options else ""
    statistic = norm.statistics[-1]
    return (
        f"Is this {norm.title}, to what rounding allows?\n\n"
        "The exact result is calculated and FILE held against it, value by value. Exit code: 0 if all agree, 1 "
        "if any differs.\n\n"
        "Unless --rtol, --atol or --max-ulp say otherwise, what torch's assert_close tolerates for the dtype "
        "of FILE is no difference: 1.3e-6 · |expected| + 1e-5 for float32. --max-ulp is stricter: exact "
        "values, rounded once, are within 0.5.\n\n\b\n"
        f"  normcli check {name}{groups} -i x.npy --actual y.npy\n"
        f"  normcli check {name}{groups} -i x.npy --actual y.npy --max-ulp 1\n"
        f"  normcli check {name}{groups} -i x.npy --actual-{statistic} {statistic}.npy -f json"
    )


class NormsAndFolders(NormVerb):
    """The norms, and a command for what is none of them but a folder."""

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Resolve a norm, or the folder of golden files to verify."""
        name = args[0]
        if not os.path.isdir(name) or self.get_command(ctx, name) is not None:  # noqa: PTH112
            return super().resolve_command(ctx, args)
        from normcli.cli.golden import make_verification

        return name, make_verification(name), args[1:]


@click.group(
    cls=NormsAndFolders, make_command=make_command, subject="norm or folder", subcommand_metavar="NORM|DIR …"
)
def command() -> None:
    """Check a tensor against the exact result of a norm.

    Says which value is the worst and where it lies, how far all are off in units of the last place (ulp), and
    which groups differ. Exit code: 0 if all agree, 1 if any differs.

    \b
      normcli check ln -i x.npy --actual y.npy
      normcli check bn -i x.npy --gamma g.npy --beta b.npy --actual y.npy --max-ulp 1
      normcli check bn -i x.npy --actual-mean mean.npy --actual-rstd rstd.npy
      normcli check golden

    The last verifies a folder that normcli golden wrote. normcli check NORM --help lists the options.
    """


def _check(name: str, norm: Norm, settings: dict[str, Any]) -> None:
    paths = _find_actual(norm, settings)
    if [settings["input_"], *paths.values()].count(STANDARD_STREAM) > 1:
        raise UsageError("standard input holds one of the tensors; the others need files")
    from normcli.answers.verdict import Verdict
    from normcli.documents.plans import name_inputs
    from normcli.engine.walk import Effort
    from normcli.verify.check import NORMALIZED, Limits, check

    problem = load_problem(name, settings)
    plan, values = problem.plan, problem.tensor.values
    actual = {name: _load_actual(name, path, problem.plan, settings) for name, path in paths.items()}
    limits = Limits(settings["rtol"], settings["atol"], settings["max_ulp"])
    with show_progress(quiet=settings["quiet"]) as observer:
        arrays = {name: tensor.values for name, tensor in actual.items()}
        effort = Effort(settings["threads"], observer)
        checked = check(plan, values, arrays, problem.inputs, limits, effort)
    evaluation = problem.inputs.given is not None
    warnings = tell_warnings(plan, problem.tensor, checked, settings, evaluation=evaluation)
    sources = {name: tensor.source for name, tensor in actual.items()}
    sentence = None if checked.ok or NORMALIZED not in actual else _explain(problem, actual[NORMALIZED])
    given = name_inputs(problem.inputs)
    verdict = Verdict(plan, problem.tensor, given, sources, checked, warnings, sentence)
    show_verdict(verdict, settings, ok=checked.ok)


def _explain(problem: Problem, actual: Tensor) -> str:
    """Return what made the actual tensor, as far as that can be told."""
    from normcli.verify.identify import identify
    from normcli.verify.sentence import Question, write_sentence

    x, y, layout = problem.tensor.values, actual.values, problem.plan.grid.layout
    gamma, beta = (problem.parameters.get(name) for name in ("gamma", "beta"))
    found = identify(x, y, gamma, beta, channel=layout.channel if layout.letters else None)
    return write_sentence(Question(x, y, gamma, beta, layout.letters), found)


def _find_actual(norm: Norm, settings: Mapping[str, Any]) -> dict[str, str]:
    """Return the files to check, by what they hold."""
    given = {"normalized": settings["actual"]}
    given |= {name: settings[f"actual_{name}"] for name in norm.statistics}
    paths = {name: path for name, path in given.items() if path is not None}
    if not paths:
        raise UsageError(
            f"there is nothing to check: give --actual FILE, or --actual-{norm.statistics[-1]} FILE"
        )
    return paths


def _load_actual(name: str, path: str, plan: Plan, settings: Mapping[str, Any]) -> Tensor:
    from normcli.tensors.files import load
    from normcli.verify.check import NORMALIZED, require_shape

    option = "--actual" if name == NORMALIZED else f"--actual-{name}"
    try:
        tensor = load(path)
        require_shape(plan, name, tensor.values)
    except NormError as error:
        told = f"{option} {path}" if isinstance(error, DataError) and path not in str(error) else option
        raise type(error)(f"{told}: {error}") from error
    tell_note(tensor, settings)
    return tensor
