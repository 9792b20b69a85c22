"""From the options that name a tensor to the tensor: a file, JSON in place, or a recipe."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, NamedTuple

from normcli.errors import NormError, UsageError

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from normcli.norms.plan import Plan
    from normcli.tensors.recipe import Recipe
    from normcli.tensors.tensor import Tensor


_NUMBERS = re.compile(r"[-+.\deE\s]+(,[-+.\deE\s]+)+")
"""Numbers with commas between them, as a list without its brackets."""


class SourceOptions(NamedTuple):
    """What the command line says of the input; None where it says nothing."""

    input_: str | None = None
    data: str | None = None
    shape: tuple[int, ...] | None = None
    dist: str | None = None
    low: float | None = None
    high: float | None = None
    seed: int | None = None
    rng: str | None = None
    skip: int | None = None
    dtype: str | None = None
    affine_seed: int | None = None

    @classmethod
    def collect(cls, options: dict[str, Any]) -> SourceOptions:
        """Take what is of the input out of a command's options."""
        return cls(**{name: options[name] for name in cls._fields if name in options})


def load_input(options: SourceOptions) -> Tensor:
    """Return the tensor that the options name.

    Raises
    ------
    UsageError
        If they name none, several, or a recipe without its shape.
    """
    given = {"--input": options.input_, "--data": options.data, "--shape": options.shape}
    named = [name for name, value in given.items() if value is not None]
    if not named:
        raise UsageError("there is no tensor: give --input FILE, --data JSON or --shape N,N,…")
    if len(named) > 1:
        raise UsageError(f"{' and '.join(named)} each name a tensor; give one of them")
    if options.shape is not None:
        from normcli.tensors.generate import generate

        return generate(make_recipe(options))
    for name in (
        "dist",
        "low",
        "high",
        "skip",
        "seed",
        *(() if options.affine_seed is not None else ("rng",)),
    ):
        if getattr(options, name) is not None:
            raise UsageError(f"--{name} is of a generated tensor: it goes with --shape, not with {named[0]}")
    if options.data is not None:
        from normcli.tensors.nested import parse_json
        from normcli.tensors.tensor import Tensor

        return Tensor(parse_json(options.data, "--data"), "--data")
    from normcli.tensors.files import load

    return load(options.input_ or "")


def make_recipe(options: SourceOptions) -> Recipe:
    """Return the recipe of a generated tensor, with the defaults of what the options leave open."""
    from normcli.tensors.recipe import Recipe

    names = ("shape", "dist", "low", "high", "seed", "rng", "skip", "dtype")
    return Recipe(**{name: value for name in names if (value := getattr(options, name)) is not None})


def load_parameters(
    plan: Plan, options: SourceOptions, gamma: str | None, beta: str | None
) -> dict[str, NDArray[Any]]:
    """Return gamma and beta as far as the options give them.

    Raises
    ------
    UsageError
        If they are given both directly and by a seed.
    """
    texts = {name: text for name, text in (("gamma", gamma), ("beta", beta)) if text is not None}
    if options.affine_seed is None:
        return {name: load_parameter(name, text) for name, text in texts.items()}
    if texts:
        raise UsageError(
            f"--affine-seed draws {' and '.join(plan.norm.parameter_names)}; give it or --{min(texts)}"
        )
    from normcli.tensors.generate import draw_affine
    from normcli.tensors.recipe import DEFAULT_RNG

    names = plan.norm.parameter_names
    # --dtype is the output's: of the streams' own dtypes it chooses the wide one alone.
    dtype = "float64" if options.dtype == "float64" else None
    return draw_affine(options.rng or DEFAULT_RNG, options.affine_seed, plan.parameters.shape, names, dtype)


def load_parameter(name: str, text: str) -> NDArray[Any]:
    """Read gamma, beta, a running statistic or a mask: one number, JSON in place, or a file."""
    import numpy as np

    try:
        return np.asarray(float(text))
    except ValueError:
        pass
    if text.lstrip().startswith("[") or _NUMBERS.fullmatch(text):
        from normcli.tensors.nested import parse_json

        return parse_json(text if text.lstrip().startswith("[") else f"[{text}]", f"--{name}")
    from normcli.tensors.files import load

    try:
        return load(text).values
    except NormError as error:
        raise type(error)(f"--{name}: {error}") from error
