"""Tensors made on the spot: a seeded distribution of a shape, and gamma and beta from a seed of their own."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from normcli.dtypes import find_type
from normcli.errors import DataError
from normcli.tensors.recipe import Recipe, check_recipe
from normcli.tensors.streams import make_stream
from normcli.tensors.tensor import Tensor

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from normcli.tensors.streams import Stream

_SKIPPED_AT_ONCE = 1 << 20


def generate(recipe: Recipe) -> Tensor:
    """Make the tensor of a recipe.

    Raises
    ------
    UsageError
        If the recipe contradicts itself.
    DataError
        If the tensor does not fit into this machine's memory.

    Examples
    --------
    >>> generate(Recipe((2, 3))).values
    array([[6, 3, 7],
           [4, 6, 9]])
    """
    check_recipe(recipe)
    count = math.prod(recipe.shape)
    try:
        values = _draw(recipe, count)
    except MemoryError as error:
        raise DataError(f"shape {recipe.shape} does not fit into memory") from error
    if recipe.dtype is not None:
        with np.errstate(over="ignore"):
            values = values.astype(find_type(recipe.dtype), copy=False)
    return Tensor(values.reshape(recipe.shape), str(recipe))


def draw_affine(
    rng: str, seed: int, shape: tuple[int, ...], names: Sequence[str], dtype: str | None
) -> dict[str, NDArray[Any]]:
    """Draw gamma, then beta, standard normal, from one stream.

    Parameters
    ----------
    rng, seed
        The stream.
    shape : tuple of int
        Of each parameter.
    names : sequence of str
        What to draw, in this order.
    dtype : str or None
        Default: what the stream makes.
    """
    stream = make_stream(rng, seed)
    count = math.prod(shape)
    return {name: stream.normal(count, dtype).reshape(shape) for name in names}


def _draw(recipe: Recipe, count: int) -> NDArray[Any]:
    if recipe.dist == "arange":
        return np.arange(count) + ((recipe.bounds[0] or 0) + recipe.skip)
    stream = make_stream(recipe.rng, recipe.seed)
    _skip(stream, recipe)
    return _draw_from(stream, recipe, count)


def _draw_from(stream: Stream, recipe: Recipe, count: int) -> NDArray[Any]:
    low, high = recipe.bounds
    if low is None or high is None:
        return stream.normal(count, recipe.dtype)
    if recipe.dist == "uniform":
        return stream.uniform(low, high, count, recipe.dtype)
    return stream.integers(int(low), int(high), count)


def _skip(stream: Stream, recipe: Recipe) -> None:
    if recipe.rng == "torch":  # how many normal values are drawn at a time decides what torch draws
        _draw_from(stream, recipe, recipe.skip)
        return
    for start in range(0, recipe.skip, _SKIPPED_AT_ONCE):
        _draw_from(stream, recipe, min(_SKIPPED_AT_ONCE, recipe.skip - start))
