"""The groups of a tensor's values that share a scale."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from normcli.errors import DataError, UsageError
from normcli.norms.axes import list_divisors
from normcli.tuples import NamedTuple

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from normcli.dtypes import Floats


def find_view(shape: tuple[int, ...], per: str, channel: int | None) -> tuple[int, int, int, int]:
    """Return the lengths of four axes to which a tensor can be reshaped so that groups lie along the third.

    A group is the values that share a scale; they lie along the second and the fourth axis, and the first axis
    has length 1. For (8, 64) with `block:32` the lengths are (1, 1, 16, 32).

    Parameters
    ----------
    shape : tuple of int
        The shape of the tensor.
    per : str
        The values that share a scale: `tensor`, `token`, `channel` or `block:N`.
    channel : int or None
        The channel axis; None if there is none.

    Raises
    ------
    DataError
        If `per` is `channel` and there is no channel axis.
    UsageError
        If the last axis does not divide into blocks of N.
    """
    size, last = math.prod(shape), shape[-1] if shape else 1
    if per == "tensor":
        return 1, size // max(1, last), 1, last
    if per == "channel":
        if channel is None:
            raise DataError("--per channel: the tensor has no channel axis")
        return 1, math.prod(shape[:channel]), shape[channel], math.prod(shape[channel + 1 :])
    block = last if per == "token" else int(per.partition(":")[2])
    if last % block:
        raise UsageError(
            f"--per {per}: the last axis has {last} values, which do not divide into blocks of {block}; "
            f"try {list_divisors(last)}"
        )
    return 1, 1, size // block, block


class RowSharing(NamedTuple):
    """The groups of values that share a scale, where a group has several rows, or is a column.

    Parameters
    ----------
    length : int
        The number of values in a row: along the tensor's last axis.
    groups : int
        The number of groups.
    stride : int
        The number of neighbouring rows in one group: row i, in C order, is in group i // stride % groups. 0 if
        each column is a group.
    """

    length: int
    groups: int
    stride: int

    @classmethod
    def of(cls, shape: tuple[int, ...], per: str, channel: int | None) -> RowSharing | None:
        """Return how rows share quantization scales: one scale for the tensor, or one for each channel.

        None if each group of values with one scale lies in one row (a line of the last axis): for `token` and
        `block:N`; and for `channel` if `channel`, the index of the channel axis, is None. If that axis is the
        last, each column is a group.
        """
        if per == "tensor":
            return cls(shape[-1], 1, 1)
        if per != "channel" or channel is None:
            return None
        stride = 0 if channel == len(shape) - 1 else math.prod(shape[channel + 1 : -1])
        return cls(shape[-1], shape[channel], stride)

    def spread(self, outer: list[int], last: int) -> NDArray[Any] | None:
        """Return the index of the group that each row of the tensor belongs to; None if each column is a group.

        A row is `length` values along the tensor's last axis. The groups of a tile's rows are found by indexing
        the result with the tile's slices without the last.

        Parameters
        ----------
        outer : list of int
            The lengths of the axes of the whole tensor's tiling, without the last.
        last : int
            The length of the tiling's last axis, in values: a multiple of `length`.

        Returns
        -------
        ndarray of int or None
            The shape is (*outer, last // length): one index for each row.
        """
        if not self.stride:
            return None
        rows = (*outer, last // self.length)
        return (np.arange(math.prod(rows)) // self.stride % self.groups).reshape(rows)


def shape_scales(
    shape: tuple[int, ...], view: tuple[int, ...], per: str, channel: int | None
) -> tuple[int, ...]:
    """Return the shape of scales: the tensor's, with 1 along axes whose values share a scale.

    For tokens or blocks, the length of the last axis is the number of them in a row. `view` is the result of
    `find_view` for the tensor.
    """
    if per == "tensor" or not shape:
        return (1,) * len(shape)
    if per == "channel":
        return tuple(length if axis == channel else 1 for axis, length in enumerate(shape))
    return (*shape[:-1], shape[-1] // view[3])


def spread_scales(scales: Floats, shape: tuple[int, ...]) -> NDArray[Any]:
    """Return scales repeated to a tensor's shape: one for each value.

    Parameters
    ----------
    scales : ndarray
        Scales of the tensor's rank, the length of each axis a divisor of the tensor's; or of the tensor's shape
        without the last axis, one for each token; or a single scale.
    shape : tuple of int
        The shape of the tensor.

    Raises
    ------
    DataError
        If the scales have another shape.
    """
    found: NDArray[Any] = scales.reshape((1,) * len(shape)) if scales.size == 1 else scales
    if shape and scales.shape == shape[:-1]:
        found = scales[..., np.newaxis]
    if found.ndim != len(shape) or any(not n or full % n for n, full in zip(found.shape, shape, strict=True)):
        raise DataError(f"scales have the shape {scales.shape}, which does not go with {shape}")
    for axis, full in enumerate(shape):
        if found.shape[axis] not in (1, full):
            found = np.repeat(found, full // found.shape[axis], axis=axis)
    return np.broadcast_to(found, shape)
