"""Tensors, and gamma and beta, drawn from seeded random streams: two of NumPy's, and torch's."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from normcli.dtypes import find_type
from normcli.errors import DataError, UsageError
from normcli.tensors.pieces import expect
from normcli.tensors.random.recipe import ITEM_BYTES, RNGS, Recipe, check_memory, check_recipe
from normcli.tensors.tensor import Tensor

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from normcli.tensors.random.torch_stream import TorchStream

_SKIPPED_AT_ONCE = 1 << 20

_LARGEST_LEGACY_SEED = 2**32 - 1


class NumpyStream:
    """A random stream of NumPy: `numpy.random.default_rng(seed)` or `numpy.random.RandomState(seed)`.

    It draws float64 values, which are then rounded to a dtype; to bfloat16 through float32, as in `ml_dtypes`.

    Parameters
    ----------
    seed : int
    legacy : bool
        Whether the stream is `RandomState`'s (and that of `numpy.random.seed`), not `default_rng`'s.

    Raises
    ------
    UsageError
        If NumPy takes no such seed.
    """

    def __init__(self, seed: int, *, legacy: bool) -> None:
        if seed < 0 or (legacy and seed > _LARGEST_LEGACY_SEED):
            limit = f"0 to {_LARGEST_LEGACY_SEED}" if legacy else "0 or more"
            raise UsageError(f"seed {seed}: NumPy takes {limit}")
        self._generator = np.random.RandomState(seed) if legacy else np.random.default_rng(seed)

    def advance(self, count: int) -> None:
        """Skip a number of uniform values of `default_rng`, each one step of PCG64; not for `RandomState`."""
        self._generator.bit_generator.advance(count)  # type: ignore[union-attr]  # not every one has it

    def integers(self, low: int, high: int, count: int) -> NDArray[np.int64]:
        """Draw integers from low to high − 1, as `randint` and `integers` do."""
        if isinstance(self._generator, np.random.Generator):
            return self._generator.integers(low, high, count)
        return self._generator.randint(low, high, count, dtype=np.int64)

    def normal(self, count: int, dtype: str | None) -> NDArray[Any]:
        """Draw standard normal values; float64 if `dtype` is None."""
        return self._generator.standard_normal(count).astype(find_type(dtype or "float64"), copy=False)

    def uniform(self, low: float, high: float, count: int, dtype: str | None) -> NDArray[Any]:
        """Draw uniform float64 values from low (included) to high (not included).

        `dtype` is not used; `TorchStream.uniform` has the same argument.
        """
        return self._generator.uniform(low, high, count)


def make_stream(rng: str, seed: int) -> NumpyStream | TorchStream:
    """Return a new random stream: `numpy`, `numpy-legacy` or `torch`, started with a seed.

    Raises
    ------
    UsageError
        If the name is unknown, or the seed out of the stream's range.
    """
    if rng not in RNGS:
        raise UsageError(f"rng {rng!r} is none of {', '.join(RNGS)}")
    if rng == "torch":
        from normcli.tensors.random.torch_stream import TorchStream

        return TorchStream(seed)
    return NumpyStream(seed, legacy=rng == "numpy-legacy")


def generate(recipe: Recipe) -> Tensor:
    """Return the tensor of a recipe; its `source` is the recipe as text.

    Raises
    ------
    UsageError
        If the recipe is invalid (see `check_recipe`), the stream does not take its seed or dtype, or its dtype
        has no number between the bounds.
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
        values = _round(values, np.dtype(find_type(recipe.dtype)), *recipe.bounds)
    return Tensor(values.reshape(recipe.shape), str(recipe))


def draw_affine(
    rng: str, seed: int, shape: tuple[int, ...], names: Sequence[str], dtype: str | None
) -> dict[str, NDArray[Any]]:
    """Draw standard normal parameters (gamma, then beta) from one new stream; return name → array.

    Parameters
    ----------
    rng, seed
        The stream's name and seed.
    shape : tuple of int
        The shape of each parameter.
    names : sequence of str
        The names of the parameters, in the order in which they are drawn.
    dtype : str or None
        The dtype of the parameters; None for the stream's own: float64, from torch float32.

    Raises
    ------
    UsageError
        If the stream's name is unknown, or it does not take the seed or dtype.
    DataError
        If the parameters do not fit into this machine's memory.
    """
    count = math.prod(shape)
    check_memory(count * len(names), f"{' and '.join(names)} of the shape {shape}")
    stream = make_stream(rng, seed)
    return {name: stream.normal(count, dtype).reshape(shape) for name in names}


def _draw(recipe: Recipe, count: int) -> NDArray[Any]:
    """Draw `count` values of a recipe, in the stream's dtype, after the values that it skips."""
    if recipe.dist == "arange":
        return np.arange(count) + ((recipe.bounds[0] or 0) + recipe.skip)
    stream = make_stream(recipe.rng, recipe.seed)
    if not isinstance(stream, NumpyStream):
        low, high = recipe.bounds
        stream.pass_over(recipe.skip, recipe.dist, (high or 0) - (low or 0), recipe.dtype)
    elif recipe.advances:
        stream.advance(recipe.skip)
    else:
        advance = expect(recipe.skip * ITEM_BYTES)
        for start in range(0, recipe.skip, _SKIPPED_AT_ONCE):
            skipped = min(_SKIPPED_AT_ONCE, recipe.skip - start)
            _draw_from(stream, recipe, skipped)
            advance(skipped * ITEM_BYTES)
    return _draw_from(stream, recipe, count)


def _draw_from(stream: NumpyStream | TorchStream, recipe: Recipe, count: int) -> NDArray[Any]:
    """Draw the next `count` values of a recipe's distribution from a stream."""
    low, high = recipe.bounds
    if low is None or high is None:
        return stream.normal(count, recipe.dtype)
    if recipe.dist == "uniform":
        return stream.uniform(low, high, count, recipe.dtype)
    return stream.integers(int(low), int(high), count)


def _round(values: NDArray[Any], dtype: np.dtype[Any], low: float | None, high: float | None) -> NDArray[Any]:
    """Return drawn values rounded to a dtype, and put back into `low` ≤ value < `high` where that left it.

    If either bound is None, or both are equal, values are only rounded.

    Raises
    ------
    UsageError
        If the dtype has no number between the bounds.
    """
    with np.errstate(over="ignore"):
        rounded = values.astype(dtype, copy=False)
    if rounded is values or low is None or high is None or low == high:
        return rounded
    first, last = dtype.type(low), dtype.type(high)
    if float(first) < low:
        first = np.nextafter(first, dtype.type(np.inf))
    if float(last) >= high:
        last = np.nextafter(last, dtype.type(-np.inf))
    if first > last:
        raise UsageError(f"{dtype} has no number from low {low:.15g} to below high {high:.15g}")
    np.maximum(rounded, first, out=rounded)
    np.minimum(rounded, last, out=rounded)
    return rounded
