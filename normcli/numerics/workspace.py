"""Memory that a thread uses again and again, so that a long run allocates nothing."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import DTypeLike, NDArray


class Workspace:
    """The buffers of one thread, by name."""

    def __init__(self) -> None:
        self._buffers: dict[str, NDArray[np.uint8]] = {}
        self._latest: dict[str, NDArray[Any]] = {}

    def get(self, name: str, shape: tuple[int, ...], dtype: DTypeLike = np.float64) -> NDArray[Any]:
        """Return an uninitialized array; a later call with the name returns the same memory.

        Parameters
        ----------
        name : str
        shape : tuple of int
        dtype : dtype
        """
        latest = self._latest.get(name)
        if latest is not None and latest.shape == shape and latest.dtype == dtype:
            return latest
        dtype = np.dtype(dtype)
        size = math.prod(shape) * dtype.itemsize
        buffer = self._buffers.get(name)
        if buffer is None or buffer.nbytes < size:
            buffer = self._buffers[name] = np.empty(size, dtype=np.uint8)
        array = buffer[:size].view(dtype).reshape(shape)
        self._latest[name] = array
        return array
