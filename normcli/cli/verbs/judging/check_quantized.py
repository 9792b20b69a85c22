"""`normcli check NORM --quantize FORMAT`: codes and scales, held against those of the exact result."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from click import option

from normcli.cli.files.sources import load_actual
from normcli.cli.parameters import options
from normcli.cli.problem import load_problem
from normcli.errors import UsageError, name_subject

if TYPE_CHECKING:
    from collections.abc import Mapping

    from normcli.answers.judging.quantized_verdict import QuantizedVerdict
    from normcli.cli.parameters.settings import Settings

OPTIONS = (
    *options.QUANTIZING,
    option("--actual-scale", metavar="FILE", help="The scales of codes in --actual: numbers, or their bits."),
    option("--actual-tensor-scale", metavar="FILE", help="Of nvfp4: the scale of the whole tensor."),
)

OWN = ("actual_scale", "actual_tensor_scale")
"""The names of files that are of codes alone."""


def check_codes(settings: Settings, given: Mapping[str, Any]) -> QuantizedVerdict:
    """Return the verdict on codes and scales.

    Raises
    ------
    NormError
        As `normcli.quantizing.quantize.quantize` and `judge_quantized`; if anything else is to be checked.
    """
    from normcli.answers.judging.quantized_verdict import QuantizedVerdict
    from normcli.quantizing.judging import judge_quantized
    from normcli.quantizing.quantize import quantize_plan, read_quantization

    if settings.quantizing.quantize is None and not any(settings.quantizing):
        raise UsageError("--actual-scale is of codes: --quantize says of which format")
    asked = read_quantization(*settings.quantizing)
    names = ("actual", *OWN)
    others = (name for name, value in given.items() if not (value is None or value is False or name in names))
    refused = next(others, None)
    if refused is not None:
        raise UsageError(f"--{refused.replace('_', '-')} is of a result that is not quantized")
    settings.around.refuse("is of a result that is not quantized")
    if settings.run.is_clustered:
        raise UsageError("--quantize is of one machine; --scheduler and --workers check normalized stores")
    if given["actual"] is None and given["actual_scale"] is None:
        raise UsageError("there is nothing to check: give --actual FILE with codes, or --actual-scale FILE")
    problem = load_problem(settings._replace(request=settings.request._replace(dtype="float64")))
    arrays: dict[str, Any] = dict.fromkeys(names)
    sources: dict[str, str] = {}
    for name in names:
        if given[name] is not None:
            with name_subject(f"--{name.replace('_', '-')}"):
                tensor = load_actual(given[name], settings, None)
            arrays[name], sources[name] = tensor.values, tensor.source
    with settings.run.open_effort() as effort:
        found = quantize_plan(problem.plan, problem.tensor.values, problem.inputs, asked, effort)
        parts = judge_quantized(found, *(arrays[name] for name in names))
    settings.run.warn(problem.plan.norm.name, *found.exact.warnings)
    return QuantizedVerdict(found, problem.tensor, tuple(sources.values()), parts)
