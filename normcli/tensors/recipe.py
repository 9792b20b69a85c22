"""How to make a tensor, as data: the distributions, the streams, their bounds and every check of them."""

from __future__ import annotations

import math
import os
from typing import NamedTuple

from normcli.errors import DataError, UsageError

DISTRIBUTIONS = ("randint", "normal", "uniform", "arange")
RNGS = ("numpy", "numpy-legacy", "torch")
"""The streams: `default_rng(seed)`, `RandomState(seed)` and `torch.manual_seed(seed)` on the CPU."""

DEFAULT_SEED = 42
DEFAULT_RNG = "numpy-legacy"
DEFAULT_DISTRIBUTION = "randint"

MOST_AXES = 64
"""NumPy's limit."""

_BOUNDS: dict[str, tuple[float | None, float | None]] = {
    "randint": (0, 10),
    "uniform": (0.0, 1.0),
    "arange": (0, None),
    "normal": (None, None),
}
"""Default low and high by distribution; None where it has no such bound."""

_ITEM_BYTES = 8


class Recipe(NamedTuple):
    """How to make a tensor.

    Parameters
    ----------
    shape : tuple of int
    dist : {"randint", "normal", "uniform", "arange"}
    low, high : float or None
        Bounds of `randint` and `uniform`, low included and high not; `low` is where `arange` starts. None
        means the distribution's own.
    seed : int
    rng : {"numpy", "numpy-legacy", "torch"}
    skip : int
        How many values of the stream to pass over first, as one earlier draw.
    dtype : str or None
        Of the tensor. Default: int64 for integers, else what the stream makes (float32 for torch).
    """

    shape: tuple[int, ...]
    dist: str = DEFAULT_DISTRIBUTION
    low: float | None = None
    high: float | None = None
    seed: int = DEFAULT_SEED
    rng: str = DEFAULT_RNG
    skip: int = 0
    dtype: str | None = None

    @property
    def bounds(self) -> tuple[float | None, float | None]:
        """`low` and `high` with the distribution's defaults."""
        low, high = _BOUNDS[self.dist]
        return low if self.low is None else self.low, high if self.high is None else self.high

    def __str__(self) -> str:
        low, high = self.bounds
        skipped = f", {self.skip} skipped" if self.skip else ""
        if self.dist == "arange":
            return f"arange from {low}{skipped}"
        interval = "" if low is None else f" [{low}, {high})"
        return f"{self.dist}{interval}, seed {self.seed}, {self.rng}{skipped}"


def check_recipe(recipe: Recipe) -> None:
    """Check that a recipe can be followed on this machine.

    Raises
    ------
    UsageError
        If it contradicts itself.
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
    _check_memory(math.prod(recipe.shape), f"shape {','.join(map(str, recipe.shape))}")
    _check_memory(recipe.skip if recipe.rng == "torch" else 0, f"skip {recipe.skip}")


def _check_bounds(recipe: Recipe) -> None:
    for name, given, default in zip(
        ("low", "high"), (recipe.low, recipe.high), _BOUNDS[recipe.dist], strict=True
    ):
        if given is None:
            continue
        if default is None:
            raise UsageError(f"{recipe.dist} has no {name}")
        if not math.isfinite(given):
            raise UsageError(f"{name} {given} is not a finite number")
    low, high = (bound or 0 for bound in recipe.bounds)
    if recipe.dist == "randint":
        if low != int(low) or high != int(high):
            raise UsageError(f"randint draws integers: low {low} and high {high} must be whole numbers")
        if not -(2**63) <= low < high <= 2**63 - 1:
            raise UsageError(f"randint needs low < high within 64 bits; they are {low} and {high}")
    elif recipe.dist == "uniform" and low > high:
        raise UsageError(f"uniform needs low ≤ high; they are {low} and {high}")


def _check_memory(count: int, what: str) -> None:
    needed = count * _ITEM_BYTES
    present = _measure_memory()
    if present is not None and needed > present:
        raise DataError(
            f"{what} needs {needed / 2**30:.3g} GiB of memory; this machine has {present / 2**30:.3g} GiB"
        )


def _measure_memory() -> int | None:
    """Return the machine's memory in bytes, or None where the system does not say."""
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, ValueError, OSError):
        return None
