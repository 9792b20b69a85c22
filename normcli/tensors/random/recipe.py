"""Recipes of generated tensors (distribution, random stream, bounds, dtype), and their checks."""

from __future__ import annotations

import math
import os

from normcli.dtypes import MOST_AXES, get_largest
from normcli.errors import DataError, UsageError
from normcli.tuples import NamedTuple

RNGS = ("numpy", "numpy-legacy", "torch")
"""The streams: `default_rng(seed)`, `RandomState(seed)` and `torch.manual_seed(seed)` on the CPU."""

DEFAULT_RNG = "numpy-legacy"

_BOUNDS: dict[str, tuple[float | None, float | None]] = {
    "randint": (0, 10),
    "normal": (None, None),
    "uniform": (0.0, 1.0),
    "arange": (0, None),
}
"""Distribution → default (low, high); None for a bound that it does not have."""

DISTRIBUTIONS = tuple(_BOUNDS)

ITEM_BYTES = 8

_MOST_SKIPPED = 10**10
"""The most values that are skipped by drawing and dropping them, which takes minutes."""

_LARGEST_BOUND = 1e38
"""The largest absolute value of a bound; float32 holds it."""


class Recipe(NamedTuple):
    """A recipe of a generated tensor: shape, distribution, stream, seed.

    Parameters
    ----------
    shape : tuple of int
    dist : {"randint", "normal", "uniform", "arange"}
    low, high : float or None
        The bounds of `randint` and `uniform`, low included and high not; `low` is the first value of `arange`.
        None means the distribution's default.
    seed : int
    rng : {"numpy", "numpy-legacy", "torch"}
    skip : int
        The number of values to skip first, as if one call had drawn them; for `arange`, added to `low`.
    dtype : str or None
        The tensor's dtype. None: int64 for integers, else the stream's own (float64, from torch float32).
    """

    shape: tuple[int, ...]
    dist: str = "randint"
    low: float | None = None
    high: float | None = None
    seed: int = 42
    rng: str = DEFAULT_RNG
    skip: int = 0
    dtype: str | None = None

    @property
    def bounds(self) -> tuple[float | None, float | None]:
        """`low` and `high`, with the distribution's defaults for None."""
        low, high = _BOUNDS[self.dist]
        return low if self.low is None else self.low, high if self.high is None else self.high

    @property
    def advances(self) -> bool:
        """Whether this recipe's stream can skip any number of values at once, without drawing them."""
        return self.dist == "arange" or self.rng == "torch" or (self.dist, self.rng) == ("uniform", "numpy")

    def __str__(self) -> str:
        low, high = self.bounds
        skipped = f", {self.skip} skipped" if self.skip else ""
        if self.dist == "arange":
            return f"arange from {low}{skipped}"
        interval = "" if low is None else f" [{low}, {high})"
        return f"{self.dist}{interval}, seed {self.seed}, {self.rng}{skipped}"


def check_recipe(recipe: Recipe) -> None:
    """Check that a recipe is valid, and that its tensor fits into this machine's memory.

    The stream's name and the seed are checked by `make_stream`.

    Raises
    ------
    UsageError
        If the distribution is unknown, or shape, skip or bounds are out of range, or beyond those of the dtype.
    DataError
        If the tensor does not fit into memory.
    """
    if recipe.dist not in DISTRIBUTIONS:
        raise UsageError(f"dist {recipe.dist!r} is none of {', '.join(DISTRIBUTIONS)}")
    if any(length < 0 for length in recipe.shape) or len(recipe.shape) > MOST_AXES:
        raise UsageError(f"a shape has up to {MOST_AXES} lengths, none of them negative")
    if recipe.skip < 0:
        raise UsageError(f"skip {recipe.skip} is negative")
    _check_bounds(recipe)
    _check_range(recipe)
    if recipe.skip > _MOST_SKIPPED and not recipe.advances:
        raise UsageError(
            f"skip passes over {_MOST_SKIPPED:.0e} values at most, as {recipe.dist} of {recipe.rng} draws them "
            "all; torch, uniform of numpy and arange pass over any number"
        )
    # An axis of length 0 leaves no values, but the statistics over the other axes still need room.
    check_memory(math.prod(max(1, length) for length in recipe.shape), "a tensor of this shape")


def _check_bounds(recipe: Recipe) -> None:
    """Raise `UsageError` if a bound is not of this distribution, not finite, too large, or not in order."""
    for name, given, default in zip(
        ("low", "high"), (recipe.low, recipe.high), _BOUNDS[recipe.dist], strict=True
    ):
        if given is None:
            continue
        if default is None:
            raise UsageError(f"{recipe.dist} has no {name}")
        if not abs(given) <= _LARGEST_BOUND:
            raise UsageError(f"{name} is not a finite number of at most {_LARGEST_BOUND:.3g}")
    low, high = (bound or 0 for bound in recipe.bounds)
    if recipe.dist == "randint":
        if low != int(low) or high != int(high):
            raise UsageError(f"randint draws integers: low {low} and high {high} must be whole numbers")
        if not -(2**63) <= low < high <= 2**63 - 1:
            raise UsageError(f"randint needs low < high within 64 bits; they are {low} and {high}")
    elif recipe.dist == "uniform" and low > high:
        raise UsageError(f"uniform needs low ≤ high; they are {low} and {high}")
    elif recipe.dist == "arange" and abs(low) + recipe.skip + math.prod(recipe.shape) >= 2**63:
        raise UsageError("arange counts within 64 bits; its start, skip and size go beyond")


def _check_range(recipe: Recipe) -> None:
    """Raise `UsageError` if the recipe has a dtype, and its bounds go beyond the dtype's largest number."""
    low, high = recipe.bounds
    if recipe.dtype is None or low is None:
        return
    if recipe.dist == "arange":
        low, high = low + recipe.skip, low + recipe.skip + math.prod(recipe.shape)
    assert high is not None
    last = high if recipe.dist == "uniform" else high - 1
    largest = get_largest(recipe.dtype)
    if max(abs(low), abs(last)) > largest:
        drawn = f"{recipe.dist} goes from {low:.15g} to {last:.15g}"
        raise UsageError(f"{recipe.dtype} holds numbers up to {largest:.6g}; {drawn}")


def check_memory(count: int, what: str) -> None:
    """Raise `DataError` if `count` float64 values take more memory than this machine has.

    The message begins with `what`. Nothing is raised if the system does not say how much it has.
    """
    needed = count * ITEM_BYTES
    present = _measure_memory()
    if present is not None and needed > present:
        gib = f"{needed / 2**30:.3g}" if needed < 2**1000 else "far too many"
        raise DataError(f"{what} needs {gib} GiB of memory; this machine has {present / 2**30:.3g} GiB")


def _measure_memory() -> int | None:
    """Return the machine's memory in bytes, or None if the system does not say."""
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, ValueError, OSError):
        return None
