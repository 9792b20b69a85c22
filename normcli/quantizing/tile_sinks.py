"""Sinks, to which the engine writes a norm's tiles: they keep only largest magnitudes, or scales and codes."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any

import numpy as np

from normcli.compiled import find_kernel
from normcli.engine.tiling.geometry import find_lengths
from normcli.quantizing.blocks import BLOCK, Rounder, find_largest, make_codes
from normcli.quantizing.scales import find_scales

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from normcli.dtypes import Floats
    from normcli.engine.tiling.geometry import Geometry, Slices
    from normcli.numerics.workspace import Workspace
    from normcli.quantizing.formats import QuantizedFormat
    from normcli.quantizing.sharing import RowSharing


TILE = 1 << 18
"""The number of values in a tile of the norm."""


def _find_largest(y: Floats) -> Floats:
    """Return the largest magnitude along the last axis, which has length 1 in the result."""
    kernel = find_kernel()
    largest: Floats = np.empty((*y.shape[:-1], 1))
    if kernel is None:
        np.maximum(y.max(axis=-1, keepdims=True), -y.min(axis=-1, keepdims=True), out=largest)
    else:
        kernel.module.find_largest(kernel.variant, y, largest)
    return largest


class UndecidedError(Exception):
    """The error for a tile whose scales or codes do not follow from its float64 values alone."""


class _RowSink:
    """The base of sinks: receivers of a norm's results, tile by tile; each tile must hold whole rows.

    Parameters
    ----------
    geometry : Geometry
        The tiling of the norm; the last of its axes holds whole rows of the tensor.
    dtype : dtype
        The dtype of the norm's result.
    """

    def __init__(self, geometry: Geometry, dtype: np.dtype[Any]) -> None:
        self.dtype, self._lock = dtype, threading.Lock()
        *self._outer, self._last = geometry.dims

    def open(self, tile: Slices, work: Workspace) -> NDArray[Any]:
        """Return the array into which the values of a tile are written."""
        return work.get("quantized", find_lengths(tile), self.dtype)

    def _take(self, values: NDArray[Any], length: int) -> Floats:
        """Return the values of a tile as float64, cut into pieces of `length` along a new last axis.

        Raises
        ------
        UndecidedError
            If the tile holds parts of the tensor's rows.
        """
        if values.shape[-1] != self._last:
            raise UndecidedError
        return np.ascontiguousarray(values, np.float64).reshape(*values.shape[:-1], -1, length)


class LargestSink(_RowSink):
    """A sink that keeps, in `largest`, the largest magnitude of each group of values that share a scale.

    It is NaN for a group with a NaN, and 0 for a group of which no values came.

    Parameters
    ----------
    geometry : Geometry
        The tiling of the norm; the last of its axes holds whole rows.
    dtype : dtype
        The dtype of the norm's result.
    sharing : RowSharing
        The groups.
    """

    def __init__(self, geometry: Geometry, dtype: np.dtype[Any], sharing: RowSharing) -> None:
        super().__init__(geometry, dtype)
        self._length, self._numbers = sharing.length, sharing.spread(self._outer, self._last)
        self.largest: Floats = np.zeros(sharing.groups)

    def put(self, tile: Slices, values: NDArray[Any], work: Workspace) -> None:
        """Update `largest`, in place, with a tile's values: each group has the largest magnitude seen so far.

        Raises
        ------
        UndecidedError
            If the tile holds parts of the tensor's rows.
        """
        y = self._take(values, self._length)
        if self._numbers is None:
            largest = find_largest(y.reshape(1, -1, self._length, 1)).reshape(-1)
            with self._lock:
                np.maximum(self.largest, largest, out=self.largest)
            return
        largest, numbers = _find_largest(y), self._numbers[tile[:-1]]
        with self._lock:
            np.maximum.at(self.largest, numbers.reshape(-1), largest.reshape(-1))


class QuantizingSink(_RowSink):
    """A sink that keeps the scales and codes of tiles in `scales` and `codes`, and their losses in `rounder`.

    Parameters
    ----------
    geometry : Geometry
        The tiling of the norm; the last of its axes holds whole rows.
    dtype : dtype
        The dtype of the norm's result.
    row : QuantizedFormat
    rounding : str or None
        The name of a `ScaleRounding`; None: the format's own.
    tensor_scale : float
        The scale of the whole tensor; 1 in formats without one.
    length, shared : int
        The number of values along the tensor's last axis, and of consecutive values along it that share a
        scale.
    known : tuple of (RowSharing, ndarray) or None
        The groups of rows or columns that share a scale, and their scales; None to find scales from each tile.
    """

    def __init__(
        self,
        geometry: Geometry,
        dtype: np.dtype[Any],
        row: QuantizedFormat,
        rounding: str | None,
        tensor_scale: float,
        length: int,
        shared: int,
        known: tuple[RowSharing, Floats] | None = None,
    ) -> None:
        super().__init__(geometry, dtype)
        self._asked, self._is_known = (row, rounding, tensor_scale), known is not None
        outer = (*self._outer, self._last // shared)
        self.scales: Floats = np.empty((*outer, 1))
        if known is not None:
            numbers, values = known[0].spread(self._outer, self._last), known[1]
            own = values if numbers is None else values[numbers][..., np.newaxis]
            self.scales = np.broadcast_to(own, (*outer, own.shape[-1]))
        self.codes = make_codes((*outer, shared), row.grid)
        self.rounder = Rounder(row.grid, length)

    def put(self, tile: Slices, values: NDArray[Any], work: Workspace) -> None:
        """Write the scales and the codes of a tile into `scales` and `codes`, and add its losses.

        Raises
        ------
        UndecidedError
            If the tile holds parts of rows, a value is not finite, or one lies on a boundary between two codes
            or two scales.
        """
        codes = self.codes[tile[:-1]]
        y = self._take(values, codes.shape[-1])
        factors = self._find_factors(y, tile)
        step = max(1, BLOCK // y[0].size)
        for start in range(0, len(y), step):
            part = slice(start, start + step)
            if self.rounder.round(y[part], factors[part], codes[part], work) is not None:
                raise UndecidedError

    def _find_factors(self, y: Floats, tile: Slices) -> Floats:
        """Return the numbers by which a tile's codes are multiplied, scale times tensor scale.

        Unless scales were known from the start, they are calculated, and written to `scales`.

        Raises
        ------
        UndecidedError
            If a value is not finite, or a largest magnitude lies on a boundary between two scales.
        """
        if self._is_known:
            return self.scales[tile[:-1]]
        largest = _find_largest(y)
        found = find_scales(largest, *self._asked)
        if not np.isfinite(largest).all() or found.is_boundary.any():
            raise UndecidedError
        self.scales[tile[:-1]] = found.values
        factors: Floats = found.values * self._asked[-1]
        return factors
