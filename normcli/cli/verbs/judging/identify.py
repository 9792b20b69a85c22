"""`normcli identify`: the norm and the convention that reproduce a tensor."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click
from click import option

from normcli.cli.files.destination import leave_with_verdict, print_verdict
from normcli.cli.files.sources import load_actual, load_affine, load_input, load_typed, require_one_stream
from normcli.cli.parameters import answer_options, options
from normcli.cli.parameters.types import NormName
from normcli.cli.verb_commands import EVALUATION, SELECTION, Verb
from normcli.cli.verbs.calculating.quantized import OPTIONS, load_codes, require_format
from normcli.errors import UsageError
from normcli.norms.table import find_norm
from normcli.printable import format_count

if TYPE_CHECKING:
    from normcli.cli.parameters.settings import Settings
    from normcli.identifying.question import Identification as Found
    from normcli.identifying.question import Question
    from normcli.library.judgement import Judgement
    from normcli.tensors.tensor import Tensor


def _run(
    settings: Settings, actual: str | None, name: str | None, suggests: bool, **scales: str | None
) -> None:
    """Find what made a tensor: norm, axes, eps, ddof, gamma and beta.

    Exit code 0 if a norm reproduces it, 1 if only a norm with a fault does, or a map, or nothing. Without
    gamma and beta, ones that fit are looked for, channel by channel. Where several norms or algorithms fit,
    --suggest prints the command that writes the tensor on which they differ most: what the kernel makes of it
    tells them apart.

    With --gate, a norm times the activation of z is looked for, and the norm of x times that.

    The last lines are the cause, the evidence, what fits as well, a command that gives y (reproduce) or passes
    it (accept), or what to change in the kernel (fix), and what would tell more. JSON has them as cause,
    evidence, alternatives, remedy and next_step, beside verdict (norm, fault, affine, undecided or none) and
    the fault's id; that of check has them as diagnosis.

    \b
      normcli identify -i x.npy --actual y.npy
      normcli identify -i x.npy --actual y.npy --gamma g.npy --beta b.npy -f json
      normcli identify -i x.npy --actual y.npy --suggest
      normcli identify -i x.npy --actual y.npy --gamma g.npy --gate z.npy
      normcli identify -i x.npy --actual q.npz:codes --actual-scale q.npz:scales --quantize fp8-e4m3
    """
    _say_where_check_asks(settings)
    if actual is None:
        raise UsageError("identify needs --actual FILE: the tensor that somebody's norm made of the input")
    wanted = None if name is None else find_norm(name)[0].name
    from normcli.identifying.identify import identify
    from normcli.library.judgement import ask, judge_tensor

    source = load_input(settings)
    tensors = source, load_actual(actual, settings, source.columns)
    question = ask(tensors, load_affine(settings.parameters, source.columns), settings.request)
    is_quantized = any(settings.quantizing) or any(scales.values())
    gate, z = settings.around.gate, None
    if suggests and (is_quantized or gate is not None):
        raise UsageError(
            f"--suggest is of a result {'that is not quantized' if is_quantized else 'without a gate'}"
        )
    if is_quantized:
        print_verdict(_identify_codes(settings, question, tensors, wanted, **scales), settings.answer)
        return
    if suggests:
        _print_suggestion(settings, identify(question, wanted))
        return
    if gate is not None:
        require_one_stream(settings, gate, actual)
        z = load_typed("--gate", gate, settings, source.columns).values
    print_verdict(judge_tensor(question, tensors, wanted, z), settings.answer)


def _identify_codes(
    settings: Settings,
    question: Question,
    tensors: tuple[Tensor, Tensor],
    norm: str | None,
    actual_scale: str | None,
    actual_tensor_scale: str | None,
) -> Judgement[Any]:
    """Judge which norm's codes and scales are nearest to the given ones.

    `norm` is the only norm to try, or None for all. `actual_scale` and `actual_tensor_scale` are the files of
    the scales; `UsageError` is raised without the former.
    """
    from normcli.library.judging_codes import CODES, identify_codes

    require_format(settings)
    if actual_scale is None:
        raise UsageError("codes say nothing without their scales: give --actual-scale FILE")
    each = load_codes(actual_scale, CODES[1], settings)
    whole = None if actual_tensor_scale is None else load_codes(actual_tensor_scale, CODES[2], settings)
    with settings.run.open_effort() as effort:
        return identify_codes(question, tensors, (each, whole), settings.quantizing, norm, effort)


def _say_where_check_asks(settings: Settings) -> None:
    """If the command is `normcli check` without a norm, note for standard error that the norm is looked for."""
    context = click.get_current_context()
    if context.parent is not None and context.parent.info_name == "check":
        settings.run.note("check", "no norm is named, so this looks for one, as normcli identify does")


def _print_suggestion(settings: Settings, found: Found) -> None:
    """Print the command that generates a tensor on which the norms that fit differ.

    If there is none, because fewer than two norms fit or all are equal, say so and raise click's `Exit`.
    """
    from normcli.identifying.words.suggestion import suggest

    suggestion = suggest(found)
    if suggestion is None:
        is_found = found.matches or found.doubtful
        why = "one answer fits, or all are alike" if is_found else "nothing fits"
        settings.run.warn("identify", f"there is nothing to tell apart: {why}")
        leave_with_verdict(ok=False)
        return
    pairs = f"{suggestion.told} of {format_count(suggestion.pairs, 'pair')}"
    most = f"{100.0 * suggestion.share:.3g} % of its values at most"
    settings.run.warn("identify", f"tells apart {pairs}, by {most}: {'; '.join(suggestion.names)}")
    click.echo(suggestion.command)


IDENTIFY = Verb(
    "identify",
    _run,
    options=(
        *options.TENSOR,
        option("--actual", metavar="FILE", help="The tensor that is judged, in any format of --input."),
        option("--norm", "name", metavar="NORM", type=NormName(), help="Look for this norm alone."),
        option(
            "--suggest",
            "suggests",
            is_flag=True,
            help="Print the command that generates the tensor which tells apart what fits, and nothing else.",
        ),
        options.LAYOUT,
        *options.declare_affine(),
        options.AROUND["gate"],
        *options.STARTS,
        *OPTIONS,
        answer_options.ANY_FORMAT,
        *answer_options.LOOK,
        answer_options.QUIET,
    ),
    refused={
        SELECTION: "every value is evidence of what was done; try normcli check NORM with a mask",
        EVALUATION: "given statistics name no axes to find; try normcli check NORM --eval with yours",
    },
)
