"""`--quantize FORMAT` of a norm, `check` and `identify`: the exact result as scales and codes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from click import option

from normcli.cli.files.choose_destination import choose_values_file
from normcli.cli.files.destination import Destination, WholeFiles
from normcli.cli.files.sources import load_actual
from normcli.cli.parameters import options
from normcli.cli.problem import load_problem
from normcli.cli.verb_commands import CLUSTER
from normcli.errors import DataError, UsageError, name_subject
from normcli.writers import FORMATS

if TYPE_CHECKING:
    from collections.abc import Mapping

    from normcli.answers.judging.quantized_verdict import QuantizedVerdict
    from normcli.cli.parameters.settings import Settings
    from normcli.dtypes import Floats
    from normcli.identifying.question import Question
    from normcli.quantizing.quantize import Quantized
    from normcli.tensors.tensor import Tensor


_SUFFIXES = (".npz", ".safetensors", ".json")


def quantize_norm(settings: Settings) -> None:
    """Quantize the result of a norm; save scales and codes, or print them with the rounding errors.

    Raises
    ------
    NormError
        If the format does not fit the tensor, or an option does not go with `--quantize`; under `--strict`, if
        a group is degenerate.
    """
    from normcli.answers.calculating.quantization import QuantizedAnswer
    from normcli.quantizing.formats import read_quantization
    from normcli.quantizing.quantize import quantize_plan

    asked = read_quantization(*settings.quantizing)
    answer = settings.answer
    settings.refuse(
        "is of a result that is not quantized: leave it out beside --quantize",
        *("--emit", "--by", "--print", "--stats-output", "--state", *CLUSTER),
        *(() if settings.source.shape else ("--dtype",)),
    )
    if answer.format_name not in (None, *FORMATS):
        raise UsageError(f"--quantize has no --format {answer.format_name}: it has {', '.join(FORMATS)}")
    destination = choose_values_file(answer.output, suffixes=_SUFFIXES)
    problem = load_problem(settings._replace(request=settings.request._replace(dtype="float64")))
    with WholeFiles() as files, settings.run.open_effort() as effort:
        found = quantize_plan(problem.plan, problem.tensor.values, problem.inputs, asked, effort)
        if settings.run.strict:
            found.exact.require_sound()
        if destination is not None:
            destination.write_arrays(files, found.arrays)
    settings.run.warn(found.exact.plan.norm.name, *found.exact.warnings)
    if destination is None or answer.format_name or answer.show:
        document = Destination(None, answer.format_name or "table")
        document.write(QuantizedAnswer(found, problem.tensor), answer.view())


OPTIONS = (
    *options.QUANTIZING,
    option("--actual-scale", metavar="FILE", help="The scales of codes in --actual: numbers, or their bits."),
    option("--actual-tensor-scale", metavar="FILE", help="Of nvfp4: the scale of the whole tensor."),
)

OWN = ("actual_scale", "actual_tensor_scale")
"""The options of files that only codes have: their scales."""


def check_codes(settings: Settings, given: Mapping[str, Any]) -> QuantizedVerdict:
    """Return the verdict on codes and scales that somebody made of a norm's result.

    Parameters
    ----------
    settings : Settings
    given : mapping of str to value
        The own options of `check` by name: `actual`, `actual_scale`, `actual_tensor_scale`, `max_ulp` and
        others, which must not be given.

    Raises
    ------
    NormError
        If there is no format or nothing to check, an option does not go with `--quantize`, or the files do not
        fit the tensor.
    """
    from normcli.answers.judging.quantized_verdict import QuantizedVerdict
    from normcli.identifying.quantized_norm import blame_request
    from normcli.quantizing.formats import read_quantization
    from normcli.quantizing.judging import judge_quantized
    from normcli.quantizing.quantize import quantize_plan

    require_format(settings)
    asked = read_quantization(*settings.quantizing)
    names = ("actual", *OWN)
    taken = (*names, "max_ulp")
    others = (name for name, value in given.items() if not (value is None or value is False or name in taken))
    refused = next(others, None)
    if refused is not None:
        raise UsageError(f"--{refused.replace('_', '-')} is of a result that is not quantized")
    if settings.run.is_clustered:
        raise UsageError("--quantize is of one machine; --scheduler and --workers check normalized stores")
    if given["actual"] is None and given["actual_scale"] is None:
        raise UsageError("there is nothing to check: give --actual FILE with codes, or --actual-scale FILE")
    problem = load_problem(settings._replace(request=settings.request._replace(dtype="float64")))
    files = {name: _load(given[name], name, settings) for name in names if given[name] is not None}
    arrays: dict[str, Any] = dict.fromkeys(names) | {name: file.values for name, file in files.items()}
    with settings.run.open_effort() as effort:
        found = quantize_plan(problem.plan, problem.tensor.values, problem.inputs, asked, effort)
        unit, max_ulp = _measure_ulp(found), given["max_ulp"]
        compared = [arrays[name] for name in names]
        parts = judge_quantized(found, *compared, unit=unit, max_ulp=max_ulp)
        parts = blame_request(found, compared, parts)
    settings.run.warn(problem.plan.norm.name, *found.exact.warnings)
    return QuantizedVerdict(found, problem.tensor, tuple(file.source for file in files.values()), parts)


def _measure_ulp(found: Quantized) -> Floats:
    """Return the size of an ulp at each value of the exact result, in the dtype it has without quantizing."""
    from normcli.checking.ulp import measure_unit

    plan = found.exact.plan.change_spec(dtype=None)
    return measure_unit(found.exact.normalized, plan.choose_output_dtype(plan.tensor_dtype))


def require_format(settings: Settings) -> None:
    """Raise `UsageError` unless an option of quantizing, such as `--quantize`, is given."""
    if not any(settings.quantizing):
        raise UsageError("--actual-scale is of codes: --quantize says of which format")


def _load(path: str, name: str, settings: Settings) -> Tensor:
    with name_subject(f"--{name.replace('_', '-')}"):
        return load_actual(path, settings, None)


def identify_codes(
    settings: Settings,
    question: Question,
    tensors: tuple[Tensor, Tensor],
    norm: str | None,
    actual_scale: str | None,
    actual_tensor_scale: str | None,
) -> QuantizedVerdict:
    """Return the verdict on the norm whose codes and scales are nearest to the given ones.

    Parameters
    ----------
    settings : Settings
    question : Question
        The question with the codes as its y.
    tensors : pair of Tensor
        The input and the codes.
    norm : str or None
        The only norm to try; None: all of them.
    actual_scale, actual_tensor_scale : str or None
        The paths of the scales; the second is of nvfp4.

    Raises
    ------
    NormError
        If no format or no scales are given, the files do not fit the tensor, or no norm can be tried.
    """
    from normcli.answers.judging.quantized_verdict import QuantizedVerdict
    from normcli.identifying.quantized_norm import guess_sharing, identify_quantized
    from normcli.quantizing.formats import read_quantization

    require_format(settings)
    if actual_scale is None:
        raise UsageError("codes say nothing without their scales: give --actual-scale FILE")
    scales = _load(actual_scale, OWN[0], settings)
    whole = None if actual_tensor_scale is None else _load(actual_tensor_scale, OWN[1], settings)
    name, per, rounding = settings.quantizing
    asked = read_quantization(name, per, rounding)
    if per is None and asked.row.block is None and question.x.ndim:
        asked = read_quantization(name, guess_sharing(question.x.shape, scales.values), rounding)
    with settings.run.open_effort() as effort:
        of_tensor = None if whole is None else whole.values
        found = identify_quantized(question, scales.values, of_tensor, asked, norm, effort)
    if found is None:
        raise DataError("no norm is there to try: no axis of the input has several values")
    sources = tuple(file.source for file in (tensors[1], scales, whole) if file is not None)
    return QuantizedVerdict(found.found, tensors[0], sources, found.parts, found.also, found.is_near)
