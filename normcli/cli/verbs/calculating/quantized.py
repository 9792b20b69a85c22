"""`--quantize FORMAT` of a norm, `check` and `identify`: the exact result as scales and codes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from click import option

from normcli.cli.files.choose_destination import choose_values_file
from normcli.cli.files.destination import WholeFiles, print_document
from normcli.cli.files.sources import load_actual
from normcli.cli.parameters import options
from normcli.cli.problem import load_problem
from normcli.cli.verb_commands import CLUSTER
from normcli.errors import UsageError, name_subject
from normcli.writers import FORMATS

if TYPE_CHECKING:
    from normcli.cli.parameters.settings import Settings
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
    from normcli.quantizing.quantize import quantize_problem

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
        found = quantize_problem(problem._replace(effort=effort), asked)
        if settings.run.strict:
            found.exact.require_sound()
        if destination is not None:
            destination.write_arrays(files, found.arrays)
    settings.run.warn(found.exact.plan.norm.name, *found.exact.warnings)
    if destination is None or answer.format_name or answer.show:
        print_document(QuantizedAnswer(found, problem.tensor), answer)


OPTIONS = (
    *options.QUANTIZING,
    option("--actual-scale", metavar="FILE", help="The scales of codes in --actual: numbers, or their bits."),
    option("--actual-tensor-scale", metavar="FILE", help="Of nvfp4: the scale of the whole tensor."),
)


def require_format(settings: Settings) -> None:
    """Raise `UsageError` if no option of quantizing is given, as scales and codes are of a format."""
    if not any(settings.quantizing):
        raise UsageError("--actual-scale is of codes: --quantize says of which format")


def load_codes(path: str, name: str, settings: Settings) -> Tensor:
    """Return the codes or scales of a file; `name` is the option that names the file, with underscores."""
    with name_subject(f"--{name.replace('_', '-')}"):
        return load_actual(path, settings, None)
