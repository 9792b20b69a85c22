"""A row of the tables of wrong kernels: which fault it is, and on which layers it is tried."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from tests.plants.faults.kernel import COARSE, FINE, Array, Kernel, Layer, Way


class Row(NamedTuple):
    """A wrong kernel.

    Parameters
    ----------
    ids : tuple of str
        The faults that it may be named by.
    words : str
        What it does.
    run : callable
        Returns y, of the tensor's shape, or what is reshaped to it.
    layers : tuple of Layer
    ways : tuple of Way
        The layers take them in turn.
    times : int
        How many plants there are of each layer.
    scale : float
        The spread of the data: small where eps is to be seen.
    really : mapping
        The options of the request that this is, where it is one.
    other : str or None
        What the kernel is given besides: `residual`, `gate`, or `gate before` the norm.
    """

    ids: tuple[str, ...]
    words: str
    run: Callable[[Kernel], Array]
    layers: tuple[Layer, ...]
    ways: tuple[Way, ...] = COARSE
    times: int = 1
    scale: float = 1.0
    really: Mapping[str, Any] = {}
    other: str | None = None


def coarse(ids: str, words: str, run: Callable[[Kernel], Array], *layers: Layer, **options: Any) -> Row:
    """Return a row of a kernel that is far off, in any dtype; ids are separated by blanks."""
    return Row(tuple(ids.split()), words, run, layers, **options)


def fine(ids: str, words: str, run: Callable[[Kernel], Array], *layers: Layer, **options: Any) -> Row:
    """Return a row of a kernel that half precision hides."""
    return Row(tuple(ids.split()), words, run, layers, **{"ways": FINE, **options})
