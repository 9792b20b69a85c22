"""The sum of a tensor and its residual, as in a residual block of a network, before or after a norm.

References
----------
Vaswani et al. 2017, arXiv:1706.03762, section 3.1: LayerNorm(x + Sublayer(x)).
"""

from __future__ import annotations

import enum
from typing import TYPE_CHECKING, Any

import numpy as np

from normcli.dtypes import is_float, is_half, is_short_float
from normcli.errors import DataError
from normcli.tensors.pieces import forget, iterate_pieces
from normcli.tensors.spool import make_scratch
from normcli.tuples import NamedTuple

if TYPE_CHECKING:
    from numpy.typing import NDArray

_MOST_INTEGER = np.iinfo(np.int64)


class ResidualSum(enum.StrEnum):
    """The ways to add a residual: each sum rounded to the dtype of x + residual in frameworks, or exact."""

    ROUNDED = "rounded"
    EXACT = "exact"


class Addends(NamedTuple):
    """The two addends of a tensor that is a sum.

    Parameters
    ----------
    values, residual : ndarray
        Two arrays of the same shape.
    kind : ResidualSum
        The way in which they are added.
    """

    values: NDArray[Any]
    residual: NDArray[Any]
    kind: ResidualSum = ResidualSum.ROUNDED

    @property
    def output_dtype(self) -> str | None:
        """The default dtype of results for exact sums: that of rounded ones, if below float64; else None."""
        dtype = find_sum_dtype(self.values.dtype, self.residual.dtype)
        return dtype.name if self.kind is ResidualSum.EXACT and is_short_float(dtype) else None

    def add(self) -> NDArray[Any]:
        """Return x + residual: each sum rounded once to the dtype that frameworks give it, or exact.

        If either lies in a file, a sum of 8 MiB or more lies in a temporary file.

        Returns
        -------
        ndarray
            The sum. Its dtype is the wider float dtype of the two (float32 if one is float16 and the other
            bfloat16, as in torch and JAX), or the only float dtype, or int64 without floats; float64 for exact
            sums of floats.

        Raises
        ------
        DataError
            If the shapes differ, a sum of integers is beyond int64, or float64 does not hold a sum that is to
            be exact; or the temporary folder has no room.

        Examples
        --------
        >>> Addends(np.array([1.0, 2048.0], "f2"), np.array([2.0, 1.0], "f2")).add().tolist()
        [3.0, 2048.0]
        >>> Addends(np.array([1.0, 2048.0], "f2"), np.array([2.0, 1.0], "f2"), ResidualSum.EXACT).add().tolist()
        [3.0, 2049.0]
        """
        values, residual, kind = self
        if values.shape != residual.shape:
            raise DataError(f"the residual has the shape {residual.shape}, and not that of x, {values.shape}")
        dtype, add = find_sum_dtype(values.dtype, residual.dtype), _add
        if kind is ResidualSum.EXACT and is_float(dtype):
            dtype, add = np.dtype(np.float64), _add_exactly
        in_file = any(isinstance(array, np.memmap) for array in (values, residual))
        total = make_scratch(values.shape, dtype) if in_file else np.empty(values.shape, dtype)
        flat, start = total.reshape(-1), 0
        for x, other in zip(iterate_pieces(values), iterate_pieces(residual), strict=True):
            flat[start : start + x.size] = add(x, other, dtype)
            start += x.size
            forget(total)
        return total


def find_sum_dtype(first: np.dtype[Any], second: np.dtype[Any]) -> np.dtype[Any]:
    """Return the dtype of rounded sums: the only or the wider float dtype of the two, or int64 without floats.

    It is float32 if one is float16 and the other bfloat16.
    """
    floats = [dtype.newbyteorder("=") for dtype in (first, second) if is_float(dtype)]
    if not floats:
        return np.dtype(np.int64)
    if len(set(floats)) == 2 and all(map(is_half, floats)):
        return np.dtype(np.float32)
    return max(floats, key=lambda dtype: dtype.itemsize)


def _add(x: NDArray[Any], other: NDArray[Any], dtype: np.dtype[Any]) -> NDArray[Any]:
    """Return x + other, rounded to `dtype`, or as int64 for integers; floats may overflow to infinities.

    Raises
    ------
    DataError
        If a sum of integers is beyond int64.
    """
    if dtype.kind != "i":
        with np.errstate(over="ignore", invalid="ignore"):  # infinities, as in frameworks
            return np.asarray(x.astype(dtype) + other.astype(dtype))
    if not _may_overflow(x, other):
        return np.asarray(x.astype(np.int64) + other.astype(np.int64))
    exact = x.astype(object) + other.astype(object)
    if max(exact) > _MOST_INTEGER.max or min(exact) < _MOST_INTEGER.min:
        raise DataError("x + residual holds a sum that is beyond int64")
    return np.asarray(exact.astype(np.int64))


def _add_exactly(x: NDArray[Any], other: NDArray[Any], dtype: np.dtype[Any]) -> NDArray[Any]:
    """Return x + other in a dtype; raise `DataError` unless every sum of finite numbers is exact.

    Knuth's two-sum algorithm finds the inexact ones. NaN and infinities are added without a check.
    """
    with np.errstate(over="ignore", invalid="ignore"):
        first, second = x.astype(dtype), other.astype(dtype)
        total = np.asarray(first + second)
        of_second = total - first
        left = (first - (total - of_second)) + (second - of_second)
        is_whole = (first.astype(x.dtype) == x) & (second.astype(other.dtype) == other) & (left == 0)
    if not np.all(is_whole | ~np.isfinite(first) | ~np.isfinite(second)):
        raise DataError(
            "x + residual has a sum that float64 does not hold; leave out --residual-sum exact to round it"
        )
    return total


def _may_overflow(x: NDArray[Any], other: NDArray[Any]) -> bool:
    """Whether a sum of integers may be beyond int64, judged by the largest absolute values."""
    largest = sum(max(abs(int(array.max())), abs(int(array.min()))) for array in (x, other))
    return largest > _MOST_INTEGER.max
