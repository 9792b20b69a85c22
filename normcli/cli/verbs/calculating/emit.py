"""`normcli NORM --emit FRAMEWORK`: the norm and its tensors as a Python module or as an ONNX model."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from normcli.cli.files.sources import make_recipe
from normcli.cli.problem import load_problem
from normcli.cli.verb_commands import CLUSTER, TRAINING
from normcli.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from normcli.cli.parameters.settings import Settings
    from normcli.codegen.task import NamedTensor
    from normcli.results.arguments import Problem

MODEL = "onnx"
"""The target of `--emit` that is a model's file; all others are Python code."""


def emit_code(settings: Settings, framework: str) -> None:
    """Write code for a framework, to `--output` or else to standard output; for `onnx` a model, to `--output`.

    Raises
    ------
    UsageError
        If an option asks for an answer too, the output has another suffix than `.py` (a model's is `.onnx`), a
        model has no `--output`, or the framework has no code for this norm.
    DataError
        If an input cannot be read, or the output cannot be written.
    """
    _refuse_answers(settings)
    output = settings.answer.output
    suffix = ".onnx" if framework == MODEL else ".py"
    if output is None and framework == MODEL:
        raise UsageError("--emit onnx makes a model, which is no text: -o FILE.onnx")
    if output is not None:
        from normcli.cli.files.choose_destination import require_file

        require_file(output, (suffix,))
    problem = load_problem(settings)
    from normcli.codegen.task import Task

    task = Task(problem.plan, problem.inputs, _list_sources(settings, problem))
    if framework == MODEL:
        from normcli.codegen.model import write_model

        written = write_model(task)
    else:
        from normcli.codegen.module import write_module

        text = write_module(task, framework)
        if output is None:
            sys.stdout.write(text)
            return
        written = text.encode()
    from normcli.tensors.written_whole import open_whole

    with open_whole(str(output)) as file:
        file.write(written)


def _refuse_answers(settings: Settings) -> None:
    """Raise `UsageError` if a residual, or an option of answers, training or clusters, is given too."""
    if settings.source.residual is not None:
        raise UsageError("--emit writes code of x alone, without --residual: save the sum, and give that")
    names = ("--print", "--format", "--show", "--stats-output", "--overwrite", "--strict", *CLUSTER, *TRAINING)
    asked = [name for name in names if name in settings.given]
    if asked:
        raise UsageError(f"--emit writes code, and calculates nothing: leave out {', '.join(asked)}")


def _list_sources(settings: Settings, problem: Problem) -> Sequence[NamedTensor]:
    """Return tensor, gate, gamma and beta (if given), each with the file or recipe that it is from."""
    from normcli.codegen.task import NamedTensor

    source, inputs, values = settings.source, problem.inputs, problem.tensor.values
    recipe = None if source.shape is None else make_recipe(source)
    file = source.inputs[0] if source.inputs else None
    gate = inputs.gate or inputs.gated_input
    if inputs.gated_input is not None:
        values = inputs.gated_input.times.astype(values.dtype)
    return [
        NamedTensor("x", values, file, recipe, problem.tensor.table),
        *([] if gate is None else [NamedTensor("gate", gate.values, settings.around.gate)]),
        *(NamedTensor(name, values) for name, values in problem.inputs.parameters.items()),
    ]
