"""Seeded streams of random numbers: NumPy's two and torch's, behind one face."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from normcli.dtypes import find_type
from normcli.errors import UsageError
from normcli.tensors.recipe import RNGS
from normcli.tensors.torch_stream import TorchStream

if TYPE_CHECKING:
    from numpy.typing import NDArray

LARGEST_LEGACY_SEED = 2**32 - 1


class Stream(Protocol):
    """What each stream can draw; each draw takes up where the one before stopped."""

    def integers(self, low: int, high: int, count: int) -> NDArray[np.int64]:
        """Draw integers from low to high − 1."""
        ...

    def normal(self, count: int, dtype: str | None) -> NDArray[Any]:
        """Draw standard normal values, in the stream's own dtype if `dtype` is None."""
        ...

    def uniform(self, low: float, high: float, count: int, dtype: str | None) -> NDArray[Any]:
        """Draw from low (included) to high (not included)."""
        ...


class NumpyStream:
    """`numpy.random.default_rng(seed)` or `numpy.random.RandomState(seed)`: float64, then rounded to `dtype`.

    bfloat16 is reached by way of float32, as `ml_dtypes` does.

    Parameters
    ----------
    seed : int
    legacy : bool
        Whether the stream is that of `RandomState` (and of `numpy.random.seed`).

    Raises
    ------
    UsageError
        If NumPy takes no such seed.
    """

    def __init__(self, seed: int, *, legacy: bool) -> None:
        if seed < 0 or (legacy and seed > LARGEST_LEGACY_SEED):
            limit = f"0 to {LARGEST_LEGACY_SEED}" if legacy else "0 or more"
            raise UsageError(f"seed {seed}: NumPy takes {limit}")
        self._generator = np.random.RandomState(seed) if legacy else np.random.default_rng(seed)

    def integers(self, low: int, high: int, count: int) -> NDArray[np.int64]:
        """Draw integers, as `randint` and `integers` do."""
        if isinstance(self._generator, np.random.Generator):
            return self._generator.integers(low, high, count)
        return self._generator.randint(low, high, count, dtype=np.int64)

    def normal(self, count: int, dtype: str | None) -> NDArray[Any]:
        """Draw standard normal values."""
        return self._generator.standard_normal(count).astype(find_type(dtype or "float64"), copy=False)

    def uniform(self, low: float, high: float, count: int, dtype: str | None) -> NDArray[Any]:
        """Draw from the interval [low, high)."""
        return self._generator.uniform(low, high, count).astype(find_type(dtype or "float64"), copy=False)


def make_stream(rng: str, seed: int) -> Stream:
    """Return the stream of that name at its start.

    Raises
    ------
    UsageError
        If there is no such stream, or it takes no such seed.
    """
    if rng not in RNGS:
        raise UsageError(f"rng {rng!r} is none of {', '.join(RNGS)}")
    if rng == "torch":
        return TorchStream(seed)
    return NumpyStream(seed, legacy=rng == "numpy-legacy")
