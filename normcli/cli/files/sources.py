"""Tensors and parameters that options name: from a file, from JSON in place, or generated."""

from __future__ import annotations

import contextlib
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

_NUMBERS = r"[-+.\deE\s]+(,[-+.\deE\s]+)+"
"""Two or more numbers with commas between them: a list without its brackets."""


def load_input(settings: Settings) -> Tensor:
    """Return the tensor that the options name, with its residual added.

    Remarks on how it was read go to standard error once the command has succeeded.

    Raises
    ------
    UsageError
        If the options name no tensor or several; if an option of generated tensors, tables or residuals is
        given without one.
    DataError
        If the tensor cannot be read, or the residual does not fit it.
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


def require_one_source(settings: Settings) -> None:
    """Raise `UsageError` unless the options name exactly one tensor, and all others apply to its source.

    The sources are `--input`, `--data` and `--shape`.
    """
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
    if not source.inputs:
        settings.table.refuse("a generated tensor" if source.data is None else "--data")
    if source.shape is not None:
        return
    draws = settings.parameters.affine_seed is not None
    for name in _OF_RECIPES:
        if getattr(source, name) is not None and not (name == "rng" and draws):
            raise UsageError(f"--{name} is of a generated tensor: it goes with --shape, not with {named[0]}")


def _load_input(settings: Settings) -> Tensor:
    """Return the tensor that the options name, without its residual.

    Raises
    ------
    UsageError
        If the options name no tensor or several, or an option does not apply to its source.
    DataError
        If the tensor cannot be read.
    """
    require_one_source(settings)
    source = settings.source
    if source.shape is not None:
        from normcli.tensors.random.generate import generate

        return generate(make_recipe(source))
    if source.data is not None:
        from normcli.tensors.tensor import Tensor

        parsed = _parse_values(source.data, "--data")
        return _note_remarks(Tensor(parsed.values, "--data", note=parsed.note), settings)
    return load_file(source.inputs[0], settings)


def require_one_stream(settings: Settings, *others: str | None) -> None:
    """Raise `UsageError` if standard input (`-`) is named twice, among the inputs and some other files."""
    if [*settings.source.inputs, *others].count(STANDARD_STREAM) > 1:
        raise UsageError("standard input holds one of the tensors; the other needs a file")


def load_actual(name: str, settings: Settings, columns: tuple[str, ...] | None) -> Tensor:
    """Return a tensor to compare with the input; `columns` are the input's, None if they have no names.

    A table's columns are brought into the order of `columns`. The file is read with the input's options for
    tables; `FILE:COLUMN` names its own columns. If the options do not apply to the file (it is no table, or has
    no such columns), all of it is read.

    Raises
    ------
    UsageError
        If the file's suffix or key is unknown.
    DataError
        If the file cannot be read, or lacks some of the named columns.
    """
    from normcli.tensors.files import load, split_key

    table = settings.table
    try:
        if split_key(name)[1] is not None:
            table = table._replace(columns=None, exclude=None)
        tensor = _note_remarks(load(name, table), settings)
    except UsageError:
        tensor = load(name)
    return tensor._replace(values=tensor.arrange(columns))


def load_file(name: str, settings: Settings) -> Tensor:
    """Return the tensor of a file; remarks on reading go to stderr once the command has succeeded."""
    from normcli.tensors.files import load

    return _note_remarks(load(name, settings.table), settings)


def _note_remarks(tensor: Tensor, settings: Settings) -> Tensor:
    """Return the tensor itself, after its remarks on reading are noted for stderr."""
    keep_names(tensor.columns or ())
    for remark in tensor.remarks:
        settings.run.note(tensor.source, remark)
    return tensor


def make_recipe(source: SourceOptions) -> Recipe:
    """Return the recipe of a generated tensor; options that are None have the defaults of `Recipe`."""
    from normcli.tensors.random.recipe import Recipe

    return Recipe(**{name: value for name in Recipe._fields if (value := getattr(source, name)) is not None})


def load_parameters(plan: Plan, settings: Settings) -> Mapping[str, NDArray[Any] | None]:
    """Return gamma and beta by name: the given arrays (None if not given), or with `--affine-seed` drawn ones.

    Raises
    ------
    UsageError
        If `--affine-seed` is given together with a gamma or beta, or an option of parameters without any.
    DataError
        If a file cannot be read.
    """
    given, seed = load_affine(settings.parameters, plan.grid.columns), settings.parameters.affine_seed
    named = [name for name, values in given.items() if values is not None]
    if seed is None:
        for option, needed in _OF_PARAMETERS.items():
            if option in settings.given and not {*named, *settings.given} & {*needed}:
                known = [name for name in needed if name in _AFFINE]
                wanted = " or ".join(f"--{name}" for name in known)
                raise UsageError(
                    f"{option} says nothing without {' or '.join(known)}: give {wanted}, or leave it out"
                )
        return given
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
    """Return gamma, beta, a running statistic or a mask as an array: one number, JSON in place, or a file.

    For gamma and beta, a table with one column is an array of one axis.

    Parameters
    ----------
    name : str
        The option's name without dashes.
    text : str
        The option's value.
    columns : tuple of str or None
        The names of the tensor's columns, into whose order a table's columns are brought; None leaves their
        order.

    Raises
    ------
    DataError
        If the JSON or the file cannot be read, or a table has other columns.
    """
    import numpy as np

    with contextlib.suppress(ValueError):
        return np.asarray(float(text))
    if _is_typed(text):
        return _parse_values(text, f"--{name}").values
    from normcli.tensors.files import load

    with name_subject(f"--{name}"):
        tensor = load(text)
        values = tensor.arrange(columns)
    is_column = tensor.table is not None and name in _AFFINE and values.shape[1:] == (1,)
    return values[:, 0] if is_column else values


_AFFINE = ("gamma", "beta")
"""The parameters whose values may be the rows of a table with one column."""

_OF_PARAMETERS = {"--gamma-offset": ("gamma",), "--feature-axes": (*_AFFINE, "--dy", "--dy-seed")}
"""The options that only act on parameters: these, and the options that ask for their gradients."""


def load_typed(option: str, text: str, settings: Settings, columns: tuple[str, ...] | None) -> Tensor:
    """Return the tensor that an option names: JSON or a number in place, or a file.

    A file is read by `load_actual`, with its exceptions; a table's columns come in the order of `columns`.
    """
    if _is_typed(text) or (_is_number(text) and not os.path.exists(text)):  # noqa: PTH110
        from normcli.tensors.tensor import Tensor

        return Tensor(_parse_values(text, option).values, option)
    with name_subject(option):
        return load_actual(text, settings, columns)


def _is_typed(text: str) -> bool:
    """Whether a text is a list of numbers, not the name of a file."""
    return text.lstrip().startswith("[") or re.fullmatch(_NUMBERS, text) is not None


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _parse_values(text: str, option: str) -> Parsed:
    """Return the array that a text holds: as JSON, as numbers with commas, or as NumPy or PyTorch print it.

    Raises
    ------
    DataError
        If the text is none of these.
    """
    from normcli.tensors.formats.json_lists import parse_json

    try:
        return parse_json(f"[{text}]" if re.fullmatch(_NUMBERS, text) else text, option)
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
    """Return the given gamma and beta by name; None for one that is not given."""
    return {name: load_optional(name, getattr(parameters, name), columns) for name in _AFFINE}


def load_optional(name: str, text: str | None, columns: tuple[str, ...] | None = None) -> NDArray[Any] | None:
    """Return a parameter as `load_parameter` reads it, or None if `text` is None: the option was not given."""
    return None if text is None else load_parameter(name, text, columns)
