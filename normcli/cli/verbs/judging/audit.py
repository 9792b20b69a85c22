"""`normcli audit`: every norm of a recorded model run, and the first that is wrong."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from click import argument, option

from normcli.cli.files.destination import print_verdict
from normcli.cli.parameters import answer_options
from normcli.cli.verb_commands import Verb
from normcli.cli.verbs.judging.check import TOLERANCES

if TYPE_CHECKING:
    from normcli.cli.parameters.settings import Settings


def _run(settings: Settings, **own: Any) -> None:
    """Judge every norm of a recorded model run: a line a layer, the first bad one in full.

    DUMP is what normcli.record writes of a PyTorch, Keras or Flax model; normcli help dumps says how any engine
    writes it. Layers that are wrong in one way are one line. Exit code: 0 if all agree, 1 if any differs or
    could not be judged.

    With --against, a second run of the same model: the first norm whose input agrees and whose output does not,
    which of both is nearer the exact result, and why the other is not. Layers are paired by name, or where both
    runs have no name in common, in their order.

    An ONNX model is run by ONNX Runtime (the extra onnx), and each of its norms judged: nodes that are one, and
    chains of nodes that spell one out. They have the names of PyTorch's modules, where the model tells them.

    With -f html, a page: the layers, their worst ulp as bars, each opening its answer.

    \b
      normcli audit dump.safetensors
      normcli audit eager.safetensors --against compiled.safetensors
      normcli audit model.onnx -i inputs.npz
      normcli audit dump.safetensors -f html > layers.html
      normcli audit dump.safetensors --only 'layers.*' --skip '*.q_norm' -f json
      normcli audit --pairs 'acts.safetensors:*.input=*.output' --weights model.safetensors --norm rms:eps=1e-6
    """
    from normcli.library.auditing import audit

    skip, inputs = own.pop("left_out"), own.pop("onnx_inputs")
    with settings.run.open_effort() as effort:
        told = audit(**own, skip=skip, inputs=inputs, seed=settings.source.seed or 0, effort=effort)
    print_verdict(told, settings.answer)


_PATTERN = "PATTERN"

AUDIT = Verb(
    "audit",
    _run,
    options=(
        argument("dump", required=False, metavar="[DUMP]"),
        option("--against", metavar="FILE", help="A second run of the same model, to hold beside the first."),
        option(
            "--only", multiple=True, metavar=_PATTERN, help="Judge layers of such names alone: layers.*.norm."
        ),
        option("--skip", "left_out", multiple=True, metavar=_PATTERN, help="Leave layers of such names out."),
        option("--pairs", metavar="FILE:*.A=*.B", help="Tensors that go together, where there is no dump."),
        option(
            "--weights", metavar="FILE", help="NAME.weight and NAME.bias of layers that were recorded without."
        ),
        option(
            "--norm",
            metavar="NORM:KEY=VALUE",
            help="The norm of layers without settings; else it is looked for.",
        ),
        option(
            "-i",
            "--inputs",
            "onnx_inputs",
            metavar="FILE",
            help="Inputs of an ONNX model; else they are drawn.",
        ),
        option("--seed", type=int, help="Of inputs that are drawn. [default: 0]"),
        *TOLERANCES,
        answer_options.ANY_FORMAT,
        *answer_options.LOOK,
        answer_options.THREADS,
        answer_options.QUIET,
    ),
)
