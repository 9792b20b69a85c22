"""Codes of a large tensor, block by block in threads: the memory for a block stays in the cache."""

from __future__ import annotations

import concurrent.futures
import math
import threading
from typing import TYPE_CHECKING, Any

import numpy as np

from normcli.compiled import find_kernel
from normcli.engine.walk import count_processors
from normcli.numerics.workspace import Workspace
from normcli.quantizing.codes import encode, round_quotients
from normcli.tuples import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from normcli.dtypes import Floats, Selected
    from normcli.quantizing.formats import NumberGrid

BLOCK = 1 << 16
"""The number of values in a block."""


class Losses(NamedTuple):
    """The losses by rounding to codes.

    Parameters
    ----------
    error : float
        The largest |code · scale − y|.
    saturated, flushed : float
        The shares, from 0 to 1, of values that round beyond the largest code, and of values other than 0 whose
        code is 0.
    signal_to_noise : float
        10 · log₁₀(Σy² / Σ(code · scale − y)²), in dB; inf if nothing is lost.
    """

    error: float
    saturated: float
    flushed: float
    signal_to_noise: float


class Rounder:
    """A rounder of blocks of values to codes, which collects the losses of all blocks; threads may share it.

    Parameters
    ----------
    grid : NumberGrid
        The numbers of the codes.
    row : int
        The number of consecutive values whose squares are summed first; these sums are then added exactly, so
        that the total does not depend on the division into blocks.
    """

    def __init__(self, grid: NumberGrid, row: int) -> None:
        self._grid, self._row = grid, row
        self._rule = (grid.digits, 2.0**grid.least, grid.largest, grid.is_integer, grid.sign_place)
        self._lock = threading.Lock()
        self._blocks: list[tuple[Floats, int, float, int, int]] = []

    def round(self, y: Floats, factors: Floats, codes: NDArray[Any], work: Workspace) -> Selected | None:
        """Write the codes of a block to `codes`; return which values / scales lie halfway between two codes.

        The block's losses are added to `losses`, also if values lie halfway. A value halfway is rounded to the
        even code here; the caller decides whether its exact value lies above or below.

        Parameters
        ----------
        y : ndarray of float64
            The values, finite; their number is a multiple of `row`.
        factors : ndarray of float64
            The scales, which broadcast against the values. With a scale of 0, all codes are 0.
        codes : ndarray of int8 or uint8, of the shape of y
            The array into which codes are written.
        work : Workspace

        Returns
        -------
        ndarray of bool or None
            True for values halfway, of the shape of y; None if there is none.
        """
        sums = np.empty((2, y.size // self._row))
        found = self._round_compiled(y, factors, codes, sums, work)
        if found is None:
            found = self._round(y, factors, codes, sums, work)
        error, saturated, flushed, is_midpoint = found
        with self._lock:
            self._blocks.append((sums, y.size, error, saturated, flushed))
        return is_midpoint

    def _round_compiled(
        self, y: Floats, factors: Floats, codes: NDArray[Any], sums: Floats, work: Workspace
    ) -> tuple[float, int, int, Selected | None] | None:
        """Do what `_round` does by the compiled kernel; return its results, or None if the kernel cannot.

        That is so if there is no kernel, values that share a scale are not consecutive, or some value lies
        halfway between two codes. `codes` and `sums` are then not valid, and have to be written by `_round`.
        """
        kernel = find_kernel()
        are_neighbours = factors.size == 1 or factors.shape == (*y.shape[:-1], 1)
        if kernel is None or not (are_neighbours and y.flags.c_contiguous and codes.flags.c_contiguous):
            return None
        given = y, np.ascontiguousarray(factors), work.get("lost", y.shape), sums, codes
        error, saturated, flushed, has_midpoints = kernel.module.round_codes(kernel.variant, self._rule, *given)
        return None if has_midpoints else (error, saturated, flushed, None)

    def _round(
        self, y: Floats, factors: Floats, codes: NDArray[Any], sums: Floats, work: Workspace
    ) -> tuple[float, int, int, Selected | None]:
        """Write the codes of values y / scales to `codes`, by NumPy; return what `round` adds to the losses.

        `factors` has the scales. The first row of `sums` gets Σ(code · scale − y)², the second Σy², each for
        pieces of `row` values.

        Returns
        -------
        float
            The largest |code · scale − y|.
        int, int
            The numbers of saturated values, and of values flushed to 0.
        ndarray of bool or None
            True for values halfway between two codes; None if there is none.
        """
        found = round_quotients(y, np.where(factors == 0.0, np.inf, factors), self._grid, work)
        codes[...] = encode(found.values, self._grid, work)
        lost = np.multiply(found.values, factors, out=work.get("lost", y.shape))
        lost -= y
        error = max(float(lost.max()), -float(lost.min()))
        flushed = int(np.count_nonzero(y)) - int(np.count_nonzero(found.values))
        for values, place in zip((lost, y), sums, strict=True):
            # squares are doubles: scales are at most float32's largest
            squares = np.multiply(values, values, out=lost)
            np.sum(squares.reshape(len(place), -1), axis=-1, out=place)
        is_midpoint = found.is_midpoint if found.is_midpoint.any() else None
        return error, int(np.count_nonzero(found.is_saturated)), flushed, is_midpoint

    @property
    def losses(self) -> Losses:
        """The losses of all blocks rounded so far; there must have been a block."""
        sums, sizes, errors, saturated, flushed = zip(*self._blocks, strict=True)
        lost, total = map(math.fsum, np.concatenate(sums, axis=1))
        ratio = 10.0 * math.log10(total / lost) if lost and total else math.inf
        return Losses(max(errors), sum(saturated) / sum(sizes), sum(flushed) / sum(sizes), ratio)


def find_largest(parts: Floats) -> Floats:
    """Return the largest magnitude of each group of values that share a scale.

    `parts` has four axes (`find_view`); a group lies along the second and the last of them. The result has the
    length 1 along these; it is NaN for a group with a NaN.
    """
    high, low = (find(parts, axis=(1, 3), keepdims=True) for find in (np.max, np.min))
    largest: Floats = np.maximum(high, -low)
    return largest


def make_codes(shape: tuple[int, ...], grid: NumberGrid) -> NDArray[Any]:
    """Return an array for codes of this shape, its values not set: int8 for integers, otherwise uint8."""
    return np.empty(shape, np.int8 if grid.is_integer else np.uint8)


def round_parts(
    parts: Floats, factors: Floats, grid: NumberGrid, row: int, threads: int | None
) -> tuple[NDArray[Any], NDArray[np.intp], Losses]:
    """Return the codes of values with given scales, the indices of values between two codes, and the losses.

    Parameters
    ----------
    parts : ndarray of float64
        The values, reshaped to the four axes that `find_view` returns; groups that share a scale lie along
        the second and the last.
    factors : ndarray of float64
        The scales, with the axes of `parts`, of length 1 along the second and the last.
    grid : NumberGrid
        The numbers of the codes.
    row : int
        The length of the tensor's last axis.
    threads : int or None
        The most threads; None: one for each processor.

    Returns
    -------
    codes : ndarray of int8 or uint8
        An array of the shape of `parts`.
    places : ndarray of int
        The flat indices of values halfway between two codes.
    losses : Losses
    """
    codes, threaded = make_codes(parts.shape, grid), threading.local()
    rounder = Rounder(grid, row)

    def work(block: tuple[slice, ...]) -> NDArray[np.intp]:
        own = (block[0], slice(None), block[2], slice(None))
        memory = threaded.__dict__.setdefault("memory", Workspace())
        is_midpoint = rounder.round(parts[block], factors[own], codes[block], memory)
        return _locate(is_midpoint, block, parts.shape)

    with concurrent.futures.ThreadPoolExecutor(threads or count_processors()) as pool:
        places = list(pool.map(work, _list_blocks(parts.shape, max(1, row // parts.shape[-1]))))
    return codes, np.concatenate(places), rounder.losses


def _list_blocks(shape: tuple[int, ...], together: int) -> Iterator[tuple[slice, ...]]:
    """Yield blocks of about `BLOCK` values that cover an array of four axes, each block as four slices.

    The first and the last axis are never divided. Along the third, the length of each block but the last is a
    multiple of `together`.
    """
    _, middle, groups, last = shape
    rows = max(1, BLOCK // max(1, last * together)) * together
    for start in range(0, groups, rows):
        height = max(1, BLOCK // max(1, last * min(rows, groups)))
        for first in range(0, middle, height):
            yield slice(None), slice(first, first + height), slice(start, start + rows), slice(None)


def _locate(chosen: Selected | None, block: tuple[slice, ...], shape: tuple[int, ...]) -> NDArray[np.intp]:
    """Return the flat indices, in an array of the given shape, of the values that are chosen in a block.

    `chosen` has the block's shape and `block` is its slices; `chosen` None: an empty array.
    """
    if chosen is None:
        return np.arange(0)
    index = [axis + (part.start or 0) for axis, part in zip(np.nonzero(chosen), block, strict=True)]
    return np.ravel_multi_index(index, shape)
