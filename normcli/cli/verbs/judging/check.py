"""`normcli check`: somebody's tensor, or a folder of golden files, compared with the exact results."""

from __future__ import annotations

import functools
import inspect
import os
from typing import TYPE_CHECKING, Any

import click
from click import option

from normcli.cli.files.destination import print_verdict
from normcli.cli.parameters import answer_options, options
from normcli.cli.verb_commands import AROUND, CLUSTER, NamedNorm, Verb, make_command
from normcli.cli.verbs.calculating.backward import ask_for_backward
from normcli.cli.verbs.calculating.quantized import OPTIONS as CODES_OPTIONS
from normcli.cli.verbs.judging import check_kinds
from normcli.dtypes import OUTPUT_DTYPES
from normcli.errors import UsageError
from normcli.norms.table import NORMS
from normcli.printable import make_printable
from normcli.tuples import NamedTuple
from normcli.writers import GRADIENTS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from normcli.cli.parameters.settings import Settings
    from normcli.library.judgement import Judgement

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


def _ask_for(names: Iterable[str], text: str) -> list[options.Option]:
    """Return an option for the file of each of some arrays, whose name stands for `{0}` in its help."""
    pairs = ((name.replace("_", "-"), text.format(name.replace("_", " "))) for name in names)
    return [option(f"--actual-{name}", metavar="FILE", help=words) for name, words in pairs]


_RUNNING = _ask_for(check_kinds.RUNNING, "The {0} after the batches of -i, to check.")

_ANSWER = (answer_options.ANY_FORMAT, *answer_options.LOOK, *answer_options.RUN)


def _list_options(named: NamedNorm) -> Sequence[options.Option]:
    return [
        option("--actual", metavar="FILE", help="The normalized tensor to check; as --input."),
        *_ask_for(named.norm.statistics, "The {0} of each group to check."),
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
        *CODES_OPTIONS,
        *ask_for_backward("Check the gradients that a backward pass makes of --dy."),
        *_ask_for(GRADIENTS, "The {0} to check."),
        *((*_RUNNING, *options.TRACKING[:3]) if named.norm.tracks else ()),
        *options.of_problem(named, but="dtype"),
        *options.of_columns(named.norm),
        *options.COUNTING,
        *_ANSWER,
        *answer_options.CLUSTER,
    ]


def _refuse(message: str, *names: str) -> dict[str, str]:
    """Return the error's message for each of some options, whose name stands for `{}` in it."""
    return {name: message.format(name) for name in names}


class _Kind(NamedTuple):
    """A kind of check, such as of tensors, gradients or codes.

    Parameters
    ----------
    shown_by : tuple of str
        Options any one of which selects this kind; empty for the kind that is selected without them.
    judge : callable
        Takes the settings and the own options of `check` by name, and returns the judgement.
    refused : mapping of str to str
        The options that this kind refuses, in the order in which they are looked for, and why.
    """

    shown_by: tuple[str, ...]
    judge: Callable[[Settings, dict[str, Any]], Judgement[Any]]
    refused: Mapping[str, str]


_FORWARD = (
    "--actual",
    *dict.fromkeys(f"--actual-{name}" for norm in NORMS.values() for name in norm.statistics),
)
_BACKWARD = ("--backward", "--dy", "--dy-seed", *(f"--actual-{name}" for name in GRADIENTS))
_OF_RUNNING = ("--actual-running-mean", "--actual-running-var")
_DECLARED = ("--accumulate", "--algorithm", "--cast")

_ALONE = _refuse(check_kinds.ONLY_ROWS, "--by")
_NO_BOUNDS = _refuse(
    "--clip-output is checked of codes: give --quantize, or check the norm without bounds", "--clip-output"
)

_KINDS = (
    _Kind(
        ("--quantize", "--per", "--scale-rounding", "--actual-scale", "--actual-tensor-scale"),
        check_kinds.check_codes,
        _ALONE
        | _refuse("{} is of a result that is not quantized", *_FORWARD[1:], *_BACKWARD, *_OF_RUNNING)
        | _refuse("{} is of a result that is not quantized", "--rtol", "--atol", "--accumulate")
        | _refuse("--quantize is of one machine; --scheduler and --workers check normalized stores", *CLUSTER),
    ),
    _Kind(
        _OF_RUNNING,
        check_kinds.check_running,
        _NO_BOUNDS
        | _refuse(
            "{} is of one batch; check it without --actual-running-mean and -var",
            *("--accumulate", "--gate", *_FORWARD, *_BACKWARD),
        )
        | _refuse(
            "the state before is --running-mean and --running-var; leave --eval and --state out",
            *("--eval", "--state"),
        ),
    ),
    _Kind(
        _BACKWARD,
        check_kinds.check_gradients,
        _ALONE
        | _NO_BOUNDS
        | _refuse("with --backward, name the gradient: --actual-dx, -dgamma, -dbeta or -dgate", "--actual")
        | _refuse(
            "{} is of the forward pass; check it without --backward and --actual-dx", "--clip", *_FORWARD[1:]
        )
        | _refuse("--backward is of one machine; --scheduler and --workers check normalized stores", *CLUSTER)
        | _refuse("--accumulate is of the forward pass; check gradients by --rtol and --atol", *_DECLARED),
    ),
    _Kind(
        CLUSTER,
        check_kinds.check_blocks,
        _NO_BOUNDS
        | _refuse(check_kinds.OF_ONE_TENSOR, *_DECLARED)
        | _refuse("{} is of one machine; --scheduler and --workers check without it", *AROUND),
    ),
    _Kind(("--by",), check_kinds.check_rows, _NO_BOUNDS | _refuse(check_kinds.ONLY_ROWS, *_DECLARED)),
    _Kind((), check_kinds.check_tensor, _NO_BOUNDS),
)
"""The kinds of checks, by their options: the first that is wanted is done."""


def _run(settings: Settings, **own: Any) -> None:
    """Check a tensor against the exact result of a norm.

    Says which value is the worst and where it lies, how far all are off in units of the last place (ulp), and
    which groups differ; then what the tensor has otherwise than the norm that was asked for, and what
    to fix. Exit code: 0 if all agree, 1 if any differs. Of a folder that normcli golden wrote, all files.

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
    kind = next(kind for kind in _KINDS if not kind.shown_by or settings.given.intersection(kind.shown_by))
    for name, message in kind.refused.items():
        if name in settings.given:
            raise UsageError(message)
    print_verdict(kind.judge(settings, own), settings.answer)


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
    from normcli.library.judgement import judge_golden

    with settings.run.open_effort() as effort:
        golden = verify_golden(Path(folder), effort)
    if golden.note is not None:
        settings.run.warn(folder, golden.note)
    told = judge_golden(golden, folder)
    print_verdict(check_kinds.warn(settings, golden.problem, told), settings.answer)


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
