"""The sum of a tensor and its residual, as a block of layers has it before or behind a norm.

References
----------
Vaswani et al. 2017, arXiv:1706.03762, section 3.1: LayerNorm(x + Sublayer(x)).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from normcli.dtypes import is_float, is_half
from normcli.errors import DataError
from normcli.tensors.pieces import forget, iterate_pieces
from normcli.tensors.spool import make_scratch

if TYPE_CHECKING:
    from numpy.typing import NDArray

_MOST_INTEGER = np.iinfo(np.int64)


def add_residual(values: NDArray[Any], residual: NDArray[Any]) -> NDArray[Any]:
    """Return x + residual, each sum rounded once to the dtype that frameworks give it.

    Parameters
    ----------
    values, residual : ndarray
        Of one shape. Either may lie in a file: a long sum then lies in a temporary one, and is made piece by
        piece.

    Returns
    -------
    ndarray
        Of the wider float dtype of the two (of float16 and bfloat16 float32, as in torch and JAX), that of the
        one that is a float, or int64.

    Raises
    ------
    DataError
        If the shapes differ, or a sum of integers is beyond int64.

    Examples
    --------
    >>> add_residual(np.array([1.0, 2048.0], "f2"), np.array([2.0, 1.0], "f2")).tolist()
    [3.0, 2048.0]
    """
    if values.shape != residual.shape:
        raise DataError(f"the residual has the shape {residual.shape}, and not that of x, {values.shape}")
    dtype = find_sum_dtype(values.dtype, residual.dtype)
    in_file = any(isinstance(array, np.memmap) for array in (values, residual))
    total = make_scratch(values.shape, dtype) if in_file else np.empty(values.shape, dtype)
    flat, start = total.reshape(-1), 0
    for x, other in zip(iterate_pieces(values), iterate_pieces(residual), strict=True):
        flat[start : start + x.size] = _add(x, other, dtype)
        start += x.size
        forget(total)
    return total


def find_sum_dtype(first: np.dtype[Any], second: np.dtype[Any]) -> np.dtype[Any]:
    """Return the dtype of a sum: integers and booleans leave a float as it is."""
    floats = [dtype.newbyteorder("=") for dtype in (first, second) if is_float(dtype)]
    if not floats:
        return np.dtype(np.int64)
    if len(set(floats)) == 2 and all(map(is_half, floats)):
        return np.dtype(np.float32)
    return max(floats, key=lambda dtype: dtype.itemsize)


def _add(x: NDArray[Any], other: NDArray[Any], dtype: np.dtype[Any]) -> NDArray[Any]:
    if dtype.kind != "i":
        with np.errstate(over="ignore", invalid="ignore"):  # infinities, as in frameworks
            return np.asarray(x.astype(dtype) + other.astype(dtype))
    exact = x.astype(object) + other.astype(object) if _may_overflow(x, other) else None
    if exact is None:
        return np.asarray(x.astype(np.int64) + other.astype(np.int64))
    if max(exact) > _MOST_INTEGER.max or min(exact) < _MOST_INTEGER.min:
        raise DataError("x + residual holds a sum that is beyond int64")
    return np.asarray(exact.astype(np.int64))


def _may_overflow(x: NDArray[Any], other: NDArray[Any]) -> bool:
    """Whether a sum of integers may need more than 64 bits."""
    largest = sum(max(abs(int(array.max())), abs(int(array.min()))) for array in (x, other))
    return largest > _MOST_INTEGER.max
