"""The groups of a tensor's values that share a scale."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from normcli.errors import DataError

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from normcli.dtypes import Floats


def find_view(shape: tuple[int, ...], per: str, channel: int | None) -> tuple[int, int, int, int]:
    """Return a tensor's shape as four axes: the values along the first and the last but one tell scales apart.

    Parameters
    ----------
    shape : tuple of int
    per : str
        What shares a scale: `tensor`, `token`, `channel` or `block:N`.
    channel : int or None
        The channel axis; None where there is none.

    Raises
    ------
    DataError
        If there is no such axis, or it does not divide into such blocks.
    """
    size = math.prod(shape)
    if per == "tensor":
        return 1, size, 1, 1
    if per == "channel":
        if channel is None:
            raise DataError("--per channel: the tensor has no channel axis")
        return 1, math.prod(shape[:channel]), shape[channel], math.prod(shape[channel + 1 :])
    last = shape[-1] if shape else 1
    block = last if per == "token" else int(per.partition(":")[2])
    if last % block:
        raise DataError(
            f"--per {per}: the last axis has {last} values, which do not divide into blocks of {block}"
        )
    return 1, 1, size // block, block


def shape_scales(
    shape: tuple[int, ...], view: tuple[int, ...], per: str, channel: int | None
) -> tuple[int, ...]:
    """Return the shape of scales, of the tensor's rank: 1 along axes that share one."""
    if per == "tensor" or not shape:
        return (1,) * len(shape)
    if per == "channel":
        return tuple(length if axis == channel else 1 for axis, length in enumerate(shape))
    return (*shape[:-1], shape[-1] // view[3])


def spread_scales(scales: Floats, shape: tuple[int, ...]) -> NDArray[Any]:
    """Return scales of any grouping as an array of a tensor's shape: one for each value.

    Parameters
    ----------
    scales : ndarray
        Of the tensor's rank, each axis as long as the tensor's or a divisor of that; or without the last axis,
        if each token has one; or a single one.
    shape : tuple of int

    Raises
    ------
    DataError
        If they have another shape.
    """
    found: NDArray[Any] = scales.reshape((1,) * len(shape)) if scales.size == 1 else scales
    if scales.shape == shape[:-1]:
        found = scales[..., np.newaxis]
    if found.ndim != len(shape) or any(not n or full % n for n, full in zip(found.shape, shape, strict=True)):
        raise DataError(f"scales have the shape {scales.shape}, which does not go with {shape}")
    for axis, full in enumerate(shape):
        if found.shape[axis] not in (1, full):
            found = np.repeat(found, full // found.shape[axis], axis=axis)
    return np.broadcast_to(found, shape)
