"""The moments of a block's groups: count, mean and the sum of squared deviations."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    FloatArray = NDArray[np.float64]

_EPSILON = float(np.finfo(np.float64).eps)
_ROUNDING_ULPS = 4
"""A group whose deviation is within so many roundings of its mean may be a constant that the sum blurred."""


@dataclass(frozen=True, slots=True)
class Moments:
    """Count, mean and m2 (the sum of squared deviations) of each group.

    Parameters
    ----------
    count : int
        The number of values in each group.
    mean, m2 : ndarray of float64
        With 1 for each reduced axis; NaN for a group of no values.
    """

    count: int
    mean: FloatArray
    m2: FloatArray

    def variance(self, ddof: int) -> FloatArray:
        """Return m2 / (count − ddof); NaN where that divisor is not positive."""
        if self.count - ddof <= 0:
            return np.full_like(self.m2, np.nan)
        return self.m2 / (self.count - ddof)


def gather_moments(block: FloatArray, axes: tuple[int, ...]) -> tuple[Moments, FloatArray]:
    """Return the moments of a block's groups and the centred block.

    Parameters
    ----------
    block : ndarray of float64
    axes : tuple of int
        The axes that are reduced.

    Returns
    -------
    tuple of (Moments, ndarray)
        The second is `block` − mean, in a new array of the same shape.

    Notes
    -----
    Two passes. The mean of what remains after the first subtraction is the rounding error of the first mean;
    taking it away too keeps the centred values right where the mean is large against the spread (Chan, Golub
    & LeVeque 1983, the corrected two-pass algorithm). A constant group has a deviation of exactly 0.
    """
    count = 1
    for axis in axes:
        count *= block.shape[axis]
    if count == 0:
        nothing = np.full(tuple(1 if a in axes else n for a, n in enumerate(block.shape)), np.nan)
        return Moments(0, nothing, nothing.copy()), block.copy()
    mean = np.add.reduce(block, axis=axes, keepdims=True) / count
    centred = block - mean
    correction = np.add.reduce(centred, axis=axes, keepdims=True) / count
    mean = mean + correction
    centred -= correction
    m2 = np.add.reduce(centred * centred, axis=axes, keepdims=True)
    blurred = m2 <= count * (_ROUNDING_ULPS * _EPSILON * mean) ** 2
    if blurred.any():
        lowest = np.minimum.reduce(block, axis=axes, keepdims=True)
        constant = blurred & (lowest == np.maximum.reduce(block, axis=axes, keepdims=True))
        mean = np.where(constant, lowest, mean)
        m2 = np.where(constant, 0.0, m2)
        centred = np.where(constant, 0.0, centred)
    return Moments(count, mean, m2), centred
