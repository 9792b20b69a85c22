"""`normcli check`: somebody's tensor, or a folder of golden files, compared with the exact results."""

from __future__ import annotations

import functools
import inspect
import os
from typing import TYPE_CHECKING, Any

import click
from click import option

from normcli.cli.files.destination import leave_with_verdict, print_document
from normcli.cli.files.sources import load_actual, require_one_stream
from normcli.cli.parameters import answer_options, options
from normcli.cli.problem import Problem, load_problem, warn_of_input
from normcli.cli.verb_commands import AROUND, BOUNDS, NamedNorm, Verb, make_command
from normcli.cli.verbs.calculating import grouped, quantized
from normcli.cli.verbs.judging import check_backward, check_running
from normcli.dtypes import OUTPUT_DTYPES
from normcli.errors import UsageError, name_subject
from normcli.norms.table import find_norm
from normcli.printable import make_printable

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    import numpy as np

    from normcli.algorithms.row_computation import Computation
    from normcli.answers.judging.gradients_verdict import GradientsVerdict
    from normcli.checking.check import Checked
    from normcli.checking.ulp import Tolerance
    from normcli.cli.parameters.settings import AnswerOptions, Settings
    from normcli.documents.document import Document
    from normcli.dtypes import Floats
    from normcli.engine.walk import Effort
    from normcli.identifying.question import Diagnosis
    from normcli.norms.norm import Norm
    from normcli.norms.plan import Plan
    from normcli.tensors.tensor import Tensor

_COUNTED_IN = option(
    "--dtype",
    type=click.Choice(OUTPUT_DTYPES),
    help="In whose last place to count. [default: the actual's] Also of a generated tensor.",
)

TOLERANCES = (
    option("--rtol", type=float, help="Tolerated part of the expected value. [default: by dtype]"),
    option("--atol", type=float, help="Tolerated difference beside that. [default: by dtype]"),
    option("--max-ulp", type=float, metavar="ULP", help="Tolerate so many ulp instead of both."),
)

_ANSWER = (answer_options.ANY_FORMAT, *answer_options.LOOK, *answer_options.RUN)


def _list_options(named: NamedNorm) -> Sequence[options.Option]:
    return [
        option("--actual", metavar="FILE", help="The normalized tensor to check; as --input."),
        *(
            option(f"--actual-{name}", metavar="FILE", help=f"The {name} of each group to check.")
            for name in named.norm.statistics
        ),
        *TOLERANCES,
        option(
            "--accumulate",
            type=click.Choice(OUTPUT_DTYPES),
            help="Tolerate what the roundings of a kernel that adds in this dtype come to.",
        ),
        option("--algorithm", metavar="NAME", help="How that kernel finds the variance. [default: two-pass]"),
        option("--cast", metavar="NAME", help="When it rounds. [default: once]"),
        _COUNTED_IN,
        options.AROUND["clip"],
        *options.GATE,
        options.AROUND["clip_output"],
        *quantized.OPTIONS,
        *check_backward.OPTIONS,
        *(check_running.OPTIONS if named.norm.tracks else ()),
        *options.of_problem(named, but="dtype"),
        *options.of_columns(named.norm),
        *options.COUNTING,
        *_ANSWER,
        *answer_options.CLUSTER,
    ]


def _run(
    settings: Settings,
    rtol: float | None,
    atol: float | None,
    max_ulp: float | None,
    accumulate: str | None,
    algorithm: str | None,
    cast: str | None,
    **actual: str | None,
) -> None:
    """Check a tensor against the exact result of a norm.

    Says which value is the worst and where it lies, how far all are off in units of the last place (ulp), and
    which groups differ; then what the tensor has otherwise than the norm that was asked for, and what to
    try. Exit code: 0 if all agree, 1 if any differs. Of a folder that normcli golden wrote, all files.

    With --backward, gradients are checked: those of a loss whose derivative by the normalized tensor is --dy;
    with --gate that of the gate too. Of wrong ones it says how: a term that is missing or taken twice, a sign,
    other axes, part of a batch.

    Unless --rtol, --atol or --max-ulp say otherwise, what torch's assert_close tolerates for the dtype of FILE
    is no difference: 1.3e-6 · |expected| + 1e-5 for float32. --max-ulp is stricter: exact values, rounded once,
    are within 0.5. With --quantize it says how far a value may be off before it is quantized.

    With --accumulate float32, each value may be off by what the roundings of a kernel that adds in float32 come
    to at most on these data. The names of --algorithm are those of normcli doctor.

    With --actual-running-mean or -var, running statistics are checked: those after the batches of -i, in their
    order, if --running-mean and --running-var are those before.

    With --quantize, --actual are codes and --actual-scale their scales: whether they are those of the exact
    result, and which rule made them where they are not.

    With --by each row should be normalized by the statistics of its own group. Of a table that differs, the
    group with most differences is looked into.

    With --residual, FILE should be the norm of x + residual; with --gate, the norm times the activation of the
    gate: norm(x) · silu(z), or under --gate-order before norm(x · silu(z)). Where it is
    not, the residual or the gate may be missing, doubled or elsewhere.

    \b
      normcli check ln -i x.npy --actual y.npy
      normcli check bn -i x.npy --gamma g.npy --beta b.npy --actual y.npy --max-ulp 1
      normcli check ln -i x.npy --actual y.npy --accumulate float32 --algorithm welford
      normcli check bn -i x.npy --actual-mean mean.npy --actual-rstd rstd.npy
      normcli check zscore -i rewards.csv --by prompt --like trl --actual advantages.csv:advantage
      normcli check rms -i x.npy --gamma g.npy --residual r.npy --gate z.npy --actual y.npy
      normcli check ln -i x.npy --backward --dy dy.npy --actual-dx dx.npy --actual-dgamma dgamma.npy
      normcli check rms -i x.npy --gate z.npy --backward --dy dy.npy --actual-dgate dz.npy
      normcli check bn -i x.zarr:x --actual y.zarr:y --workers 4
      normcli check bn -i batch.npy --running-mean m.npy --running-var v.npy --actual-running-var after.npy
      normcli check rms -i x.npy --quantize fp8-e4m3 --actual q.npz:codes --actual-scale q.npz:scales
      normcli check golden
    """
    other = any(settings.quantizing) or accumulate is not None or check_backward.take_options(dict(actual))
    if settings.source.by is not None and other:
        raise UsageError(grouped.ALONE)
    if any(settings.quantizing) or actual.get("actual_scale") or actual.get("actual_tensor_scale"):
        limits = {"rtol": rtol, "atol": atol, "max_ulp": max_ulp, "accumulate": accumulate}
        codes = quantized.check_codes(settings, actual | limits)
        print_verdict(codes, settings.answer, ok=codes.ok)
        return
    if settings.around.clip_output is not None:
        raise UsageError("--clip-output is checked of codes: give --quantize, or check the norm without bounds")
    actual = {name: path for name, path in actual.items() if name not in quantized.OWN}
    stored = check_running.take_paths(actual)
    if stored:
        limits = {"rtol": rtol, "atol": atol, "max_ulp": max_ulp}
        others = {
            "accumulate": accumulate,
            "gate": settings.around.gate,
            **{k: v or None for k, v in actual.items()},
        }
        told_of = check_running.check_running_statistics(settings, stored, others, limits)
        print_verdict(told_of, settings.answer, ok=told_of.ok)
        return
    gradients = check_backward.take_options(actual)
    if gradients is not None:
        settings.refuse("is of the forward pass; check it without --backward and --actual-dx", *BOUNDS)
        if settings.run.is_clustered:
            raise UsageError("--backward is of one machine; --scheduler and --workers check normalized stores")
        if accumulate is not None or algorithm is not None or cast is not None:
            raise UsageError("--accumulate is of the forward pass; check gradients by --rtol and --atol")
        limits = {"rtol": rtol, "atol": atol, "max_ulp": max_ulp}
        check_backward.check_backward(settings, gradients, actual, limits)
        return
    paths = _find_actual(find_norm(settings.request.norm)[0], actual)
    require_one_stream(settings, settings.source.residual, settings.around.gate, *paths.values())
    from normcli.checking.check import NORMALIZED, check
    from normcli.checking.ulp import choose_tolerance
    from normcli.testing.declared_algorithm import read_declared, tolerate_derived

    tolerate: Callable[[np.dtype[Any]], Tolerance]
    tolerate = functools.partial(choose_tolerance, rtol=rtol, atol=atol, max_ulp=max_ulp)
    declared = read_declared(accumulate, algorithm, cast, (rtol, atol, max_ulp))
    if declared is not None:
        if settings.around.gate is not None or settings.run.is_clustered or list(paths) != [NORMALIZED]:
            raise UsageError("--accumulate is of --actual alone, without --gate, on one machine")
        tolerate = functools.partial(tolerate_derived, declared.name)
    if settings.run.is_clustered:
        from normcli.cli.verbs.calculating.on_cluster import check_on_cluster

        settings.refuse("is of one machine; --scheduler and --workers check without it", *AROUND)
        found = check_on_cluster(settings, paths, tolerate)
        print_verdict(found, settings.answer, ok=found.ok)
        return
    if settings.source.by is not None:
        verdict = grouped.check_rows_by(settings, paths, _load_actual, tolerate)
        print_verdict(verdict, settings.answer, ok=verdict.ok)
        return
    problem = load_problem(settings)
    plan, values = problem.plan, problem.tensor.values
    tensors = {name: _load_actual(name, path, plan, settings) for name, path in paths.items()}
    with settings.run.open_effort() as effort:
        arrays = {name: tensor.values for name, tensor in tensors.items()}
        addends = problem.tensor.addends
        allowed = None if declared is None else _derive_bounds(declared, problem, effort)
        checked = check(plan, values, arrays, problem.inputs, tolerate, effort, allowed, addends)
    sources = {name: tensor.source for name, tensor in tensors.items()}
    told = None
    if NORMALIZED in tensors:
        from normcli.identifying.faults.case_sampling import AskedNorm
        from normcli.identifying.words.request_phrasing import diagnose_actual

        subject = AskedNorm(plan, problem.inputs, problem.tensor.addends)
        theirs = tensors[NORMALIZED].values
        told = diagnose_actual(subject, values, theirs, checked)
    _report(settings, problem, checked, sources, told)


def _derive_bounds(declared: Computation, problem: Problem, effort: Effort) -> Floats:
    """Return the largest possible error of each value of a declared kernel, from its roundings on these data.

    Raises
    ------
    UsageError
        If no bound follows for some value.
    """
    from normcli.results.arguments import Arguments
    from normcli.testing.declared_algorithm import derive_bounds, describe_void

    asked = Arguments(problem.plan, problem.tensor.values, problem.inputs, effort)
    allowed, void = derive_bounds(declared, asked)
    if void.size:
        raise UsageError(f"{describe_void(declared, asked, void)}; give --max-ulp, or --rtol and --atol")
    return allowed


def _find_actual(norm: Norm, actual: Mapping[str, str | None]) -> dict[str, str]:
    """Return the paths of the files to check by content: `normalized` or a statistic's name.

    Raises
    ------
    UsageError
        If there are none.
    """
    names = {"normalized": "actual", **{name: f"actual_{name}" for name in norm.statistics}}
    paths = {name: path for name, option in names.items() if (path := actual[option]) is not None}
    if not paths:
        raise UsageError(
            f"there is nothing to check: give --actual FILE, or --actual-{norm.statistics[-1]} FILE"
        )
    return paths


def _load_actual(name: str, path: str, plan: Plan, settings: Settings) -> Tensor:
    from normcli.checking.check import NORMALIZED, fit_actual, require_shape

    option = "--actual" if name == NORMALIZED else f"--actual-{name}"
    with name_subject(option):
        tensor = load_actual(path, settings, plan.grid.columns)
    if name == NORMALIZED:
        tensor = tensor._replace(values=fit_actual(plan, tensor.values))
    with name_subject(f"{option} {path}"):
        require_shape(plan, name, tensor.values)
    return tensor


def _report(
    settings: Settings,
    problem: Problem,
    checked: Checked,
    sources: Mapping[str, str],
    told: Diagnosis | None = None,
    gradients: GradientsVerdict | None = None,
) -> None:
    """Warn of the input's degenerate groups, print the verdict, and leave with its exit code.

    Parameters
    ----------
    settings : Settings
    problem : Problem
    checked : Checked
    sources : mapping of str to str
        The file of each compared array by content.
    told : Diagnosis or None
        What made the tensor; None if nothing is said of it.
    gradients : GradientsVerdict or None
        The verdict on gradients, of golden files that have some.
    """
    from normcli.answers.judging.check_verdict import Verdict
    from normcli.documents.plan_header import name_inputs

    warnings = warn_of_input(settings.run, problem, checked)
    given = name_inputs(problem.inputs)
    verdict = Verdict(problem.plan, problem.tensor, given, sources, checked, warnings, told, gradients)
    print_verdict(verdict, settings.answer, ok=verdict.ok)


def print_verdict(document: Document, answer: AnswerOptions, *, ok: bool) -> None:
    """Print a document on standard output; unless `ok`, raise click's `Exit` with `ExitCode.DIFFERENT`."""
    print_document(document, answer)
    leave_with_verdict(ok=ok)


def _find_folder(name: str) -> click.Command | None:
    """Return the command that verifies a folder of golden files; None if there is no folder of that name."""
    if not os.path.isdir(name):  # noqa: PTH112
        return None
    text = inspect.cleandoc(_verify.__doc__ or "").replace("DIR", make_printable(name))
    return make_command(name, functools.partial(_verify, name), text, _ANSWER)


def _verify(folder: str, settings: Settings) -> None:
    """Verify a folder of golden files.

    Its files must be those that were written, what is calculated anew from them the same, and all that the
    manifest says true: convention, shapes, recipe. Exit code: 0 if so, 1 if a value differs, 3 if a file is
    missing or damaged, or the manifest was changed.

    \b
      normcli check DIR
      normcli check DIR -f json
    """
    from pathlib import Path

    from normcli.golden.golden import verify_golden

    with settings.run.open_effort() as effort:
        (plan, tensor, inputs, dy), checked, gradients, note = verify_golden(Path(folder), effort)
    if note is not None:
        settings.run.warn(folder, note)
    verdict = None
    if dy is not None and gradients is not None:
        from normcli.answers.judging.gradients_verdict import GradientsVerdict

        verdict = GradientsVerdict(gradients, tensor, dy, _locate(folder, gradients.comparisons))
    problem = Problem(tensor, plan, inputs)
    _report(settings, problem, checked, _locate(folder, checked.comparisons), gradients=verdict)


def _locate(folder: str, names: Iterable[str]) -> dict[str, str]:
    """Return the path of the golden file of each array by name."""
    return {name: os.path.join(folder, f"{name}.npy") for name in names}  # noqa: PTH118


CHECK = Verb(
    "check",
    _run,
    options=_list_options,
    examples=(
        "-i x.npy --actual y.npy",
        "-i x.npy --actual y.npy --max-ulp 1",
        "-i x.npy --actual y.npy -f json",
    ),
    find_folder=_find_folder,
    without_norm="identify",
)
