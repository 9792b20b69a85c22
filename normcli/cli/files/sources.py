"""From the options that name a tensor or a parameter to its values: a file, JSON in place, or a recipe."""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING, Any

from normcli.errors import DataError, UsageError, name_subject
from normcli.language import keep_names
from normcli.tensors.tensor import STANDARD_STREAM

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    from normcli.cli.parameters.settings import ParameterOptions, Settings, SourceOptions
    from normcli.norms.plan import Plan
    from normcli.tensors.formats.json_lists import Parsed
    from normcli.tensors.random.recipe import Recipe
    from normcli.tensors.tensor import Tensor

_OF_RECIPES = ("dist", "low", "high", "skip", "seed", "rng")

_NUMBERS = re.compile(r"[-+.\deE\s]+(,[-+.\deE\s]+)+")
"""Numbers with commas between them, as a list without its brackets."""


def load_input(settings: Settings) -> Tensor:
    """Return the tensor that the options name, with its residual added; remarks on reading go to stderr.

    Raises
    ------
    UsageError
        If they name none, several, or a recipe without its shape.
    DataError
        If the residual is of another shape.
    """
    residual = settings.source.residual
    require_one_stream(settings, residual)
    tensor = _load_input(settings)
    if residual is None:
        if settings.source.residual_sum is not None:
            raise UsageError("--residual-sum says how --residual is added; give that too")
        return tensor
    from normcli.tensors.residual import Addends, ResidualSum

    other = load_typed("--residual", residual, settings, tensor.columns)
    addends = Addends(tensor.values, other.values, ResidualSum(settings.source.residual_sum or "rounded"))
    values = addends.add()
    for added in (tensor, other):  # all of them has been read
        if added.opened is not None:
            added.opened.require_unchanged()
    source = f"{tensor.source} + {other.source}"
    return tensor._replace(values=values, source=source, opened=None, stored=None, addends=addends)


def _load_input(settings: Settings) -> Tensor:
    """Return the tensor that the options name."""
    source = settings.source
    given = {"--input": source.inputs or None, "--data": source.data, "--shape": source.shape}
    named = [name for name, value in given.items() if value is not None]
    if not named:
        raise UsageError("there is no tensor: give --input FILE, --data JSON or --shape N,N,…")
    if len(named) > 1:
        raise UsageError(f"{' and '.join(named)} each name a tensor; give one of them")
    if len(source.inputs) > 1:
        raise UsageError(
            f"{len(source.inputs)} files are given ({', '.join(source.inputs)}); one tensor is taken"
        )
    if not source.inputs and source.describes_table:
        source.table().refuse("a generated tensor" if source.data is None else "--data")
    if source.shape is not None:
        from normcli.tensors.random.generate import generate

        return generate(make_recipe(source))
    draws = settings.parameters.affine_seed is not None
    for name in _OF_RECIPES:
        if getattr(source, name) is not None and not (name == "rng" and draws):
            raise UsageError(f"--{name} is of a generated tensor: it goes with --shape, not with {named[0]}")
    if source.data is not None:
        from normcli.tensors.tensor import Tensor

        parsed = _parse_values(source.data, "--data")
        return _note_remarks(Tensor(parsed.values, "--data", note=parsed.note), settings)
    return load_file(source.inputs[0], settings)


def require_one_stream(settings: Settings, *others: str | None) -> None:
    """Raise `UsageError` if standard input would have to hold several tensors: the input and others."""
    if [*settings.source.inputs, *others].count(STANDARD_STREAM) > 1:
        raise UsageError("standard input holds one of the tensors; the other needs a file")


def load_actual(name: str, settings: Settings, columns: tuple[str, ...] | None) -> Tensor:
    """Return a tensor that is held against the input, its columns in the order of the input's names.

    The options of tables are the input's; all of a file that has no such columns, or is no table, is taken.
    """
    from normcli.tensors.files import load

    try:
        tensor = load_file(name, settings)
    except UsageError:
        tensor = load(name)
    return tensor._replace(values=tensor.arrange(columns))


def load_file(name: str, settings: Settings) -> Tensor:
    """Return the tensor of a file; what there is to know of how it was read goes to stderr."""
    from normcli.tensors.files import load

    return _note_remarks(load(name, settings.source.table()), settings)


def _note_remarks(tensor: Tensor, settings: Settings) -> Tensor:
    """Return a tensor; what there is to know of how it was read goes to stderr."""
    keep_names(tensor.columns or ())
    for remark in tensor.remarks:
        settings.run.note(tensor.source, remark)
    return tensor


def make_recipe(source: SourceOptions) -> Recipe:
    """Return the recipe of a generated tensor, with the defaults of what the options leave open."""
    from normcli.tensors.random.recipe import Recipe

    return Recipe(**{name: value for name in Recipe._fields if (value := getattr(source, name)) is not None})


def load_parameters(plan: Plan, settings: Settings) -> Mapping[str, NDArray[Any] | None]:
    """Return gamma and beta as they are given, or drawn from a seed.

    Raises
    ------
    UsageError
        If they are given both directly and by a seed.
    """
    given, seed = load_affine(settings.parameters, plan.grid.columns), settings.parameters.affine_seed
    if seed is None:
        return given
    named = [name for name, values in given.items() if values is not None]
    if named:
        raise UsageError(
            f"--affine-seed draws {' and '.join(plan.norm.drawn_names)}; give it or --{min(named)}"
        )
    from normcli.tensors.random.generate import draw_affine
    from normcli.tensors.random.recipe import DEFAULT_RNG

    # --dtype is the output's: of the streams' own dtypes it chooses the wide one alone.
    dtype = "float64" if settings.request.dtype == "float64" else None
    shape, names = plan.parameters.shape, plan.norm.drawn_names
    return draw_affine(settings.source.rng or DEFAULT_RNG, seed, shape, names, dtype)


def load_parameter(name: str, text: str, columns: tuple[str, ...] | None = None) -> NDArray[Any]:
    """Read gamma, beta, a running statistic or a mask: one number, JSON in place, or a file.

    Parameters
    ----------
    name : str
        Of the option.
    text : str
        Its value.
    columns : tuple of str or None
        The names of the tensor's columns, by which those of a table are arranged.
    """
    import numpy as np

    try:
        return np.asarray(float(text))
    except ValueError:
        pass
    if _is_typed(text):
        return _parse_values(text, f"--{name}").values
    from normcli.tensors.files import load

    with name_subject(f"--{name}"):
        tensor = load(text)
        values = tensor.arrange(columns)
    is_column = tensor.table is not None and name in _AFFINE and values.shape[1:] == (1,)
    return values[:, 0] if is_column else values


_AFFINE = ("gamma", "beta")
"""Parameters that a table may hold as its only column."""


def load_typed(option: str, text: str, settings: Settings, columns: tuple[str, ...] | None) -> Tensor:
    """Return a tensor beside the input: JSON in place, or a file as `load_actual` returns it."""
    if _is_typed(text) or (_is_number(text) and not os.path.exists(text)):  # noqa: PTH110
        from normcli.tensors.tensor import Tensor

        return Tensor(_parse_values(text, option).values, option)
    with name_subject(option):
        return load_actual(text, settings, columns)


def _is_typed(text: str) -> bool:
    """Whether a value is numbers typed in place, and no file."""
    return text.lstrip().startswith("[") or _NUMBERS.fullmatch(text) is not None


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _parse_values(text: str, option: str) -> Parsed:
    """Return the numbers of a printed array, or of JSON, which needs no brackets around a single list."""
    from normcli.tensors.formats.json_lists import parse_json

    try:
        return parse_json(f"[{text}]" if _NUMBERS.fullmatch(text) else text, option)
    except DataError:
        from normcli.tensors.formats.json_lists import read_printed

        printed = read_printed(text, option)
        if printed is None:
            raise
    parsed = parse_json(printed.json, option)
    return parsed if printed.dtype is None else parsed._replace(values=parsed.values.astype(printed.dtype))


def load_affine(
    parameters: ParameterOptions, columns: tuple[str, ...] | None = None
) -> dict[str, NDArray[Any] | None]:
    """Return gamma and beta as they are given, by name; None where they are not."""
    return {name: load_optional(name, getattr(parameters, name), columns) for name in _AFFINE}


def load_optional(name: str, text: str | None, columns: tuple[str, ...] | None = None) -> NDArray[Any] | None:
    """Read a parameter as `load_parameter` does; return None where nothing is given."""
    return None if text is None else load_parameter(name, text, columns)
