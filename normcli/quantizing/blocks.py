"""Codes of a large tensor, block by block in threads: what a block needs stays in the cache."""

from __future__ import annotations

import concurrent.futures
import math
import threading
from typing import TYPE_CHECKING, Any

import numpy as np

from normcli.engine.walk import count_processors
from normcli.numerics.workspace import Workspace
from normcli.quantizing.codes import encode, round_quotients
from normcli.tuples import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from normcli.dtypes import Floats
    from normcli.quantizing.formats import NumberGrid

_BLOCK = 1 << 16
"""Values of a block."""


class Rounding(NamedTuple):
    """Codes, and what they lose.

    Parameters
    ----------
    codes : ndarray of int8 or uint8
    midpoints : ndarray of int
        Where values lie halfway between two codes, counted in C order.
    error : float
        The largest |code · scale − y|.
    saturated, flushed : int
        How many values are beyond the largest code, and how many other than 0 have the code 0.
    signal_to_noise : float
        In dB.
    """

    codes: NDArray[Any]
    midpoints: NDArray[np.intp]
    error: float
    saturated: int
    flushed: int
    signal_to_noise: float


def find_largest(parts: Floats) -> Floats:
    """Return the largest magnitude of each group of a view, as `find_view` has it; NaN where one is NaN."""
    high, low = (find(parts, axis=(1, 3), keepdims=True) for find in (np.max, np.min))
    largest: Floats = np.maximum(high, -low)
    return largest


def round_parts(parts: Floats, factors: Floats, grid: NumberGrid, threads: int | None) -> Rounding:
    """Return the codes of values with given scales.

    Parameters
    ----------
    parts : ndarray of float64, of four axes, as `find_view` has them
    factors : ndarray of float64
        Of the same axes, 1 along the second and the last.
    grid : NumberGrid
    threads : int or None
        At most so many; None means one for each processor.
    """
    codes = np.empty(parts.shape, np.int8 if grid.is_integer else np.uint8)
    unit = float(factors.max()) * grid.largest or 1.0  # so that no square overflows
    divisors = np.where(factors == 0.0, np.inf, factors)  # all codes of a scale 0 are 0
    threaded = threading.local()

    def work(block: tuple[slice, ...]) -> tuple[NDArray[np.intp], float, int, int, float, float]:
        y, own = parts[block], (block[0], slice(None), block[2], slice(None))
        memory = threaded.__dict__.setdefault("memory", Workspace())
        found = round_quotients(y, divisors[own], grid, memory)
        codes[block] = encode(found.values, grid, memory)
        lost = np.multiply(found.values, factors[own], out=memory.get("sizes", y.shape))
        lost -= y
        np.abs(lost, out=lost)
        error = float(lost.max())
        midpoints = _locate(found.is_midpoint, block, parts.shape)
        flushed = int(np.count_nonzero(y)) - int(np.count_nonzero(found.values))
        noise = _sum_squares(lost, unit)
        np.copyto(lost, y)
        signal = _sum_squares(lost, unit)
        return midpoints, error, int(np.count_nonzero(found.is_saturated)), flushed, noise, signal

    with concurrent.futures.ThreadPoolExecutor(threads or count_processors()) as pool:
        found = list(pool.map(work, _list_blocks(parts.shape)))
    midpoints, error, saturated, flushed, noise, signal = zip(*found, strict=True)
    total, lost = math.fsum(signal), math.fsum(noise)
    ratio = 10.0 * math.log10(total / lost) if lost and total else math.inf
    places = np.concatenate(midpoints)
    return Rounding(codes, places, max(error), sum(saturated), sum(flushed), ratio)


def _sum_squares(values: Floats, unit: float) -> float:
    """Return the sum of squares of values, which it overwrites, in a unit."""
    values /= unit
    values *= values
    return float(values.sum())


def _list_blocks(shape: tuple[int, ...]) -> Iterator[tuple[slice, ...]]:
    """Yield the parts of a view's second and third axis that make blocks: of long axes some places."""
    _, middle, groups, last = shape
    rows = max(1, _BLOCK // max(1, last))
    for start in range(0, groups, rows):
        height = max(1, _BLOCK // max(1, last * min(rows, groups)))
        for first in range(0, middle, height):
            yield slice(None), slice(first, first + height), slice(start, start + rows), slice(None)


def _locate(chosen: NDArray[np.bool_], block: tuple[slice, ...], shape: tuple[int, ...]) -> NDArray[np.intp]:
    """Return the places in C order of a whole array of values that are chosen in a block."""
    if not chosen.any():
        return np.arange(0)
    index = [axis + (part.start or 0) for axis, part in zip(np.nonzero(chosen), block, strict=True)]
    return np.ravel_multi_index(index, shape)
