"""The region in which y is wrong, found from the wrong values: indices of axes, a border, or ragged ends."""

from __future__ import annotations

import itertools
import math
from typing import TYPE_CHECKING

import numpy as np

from normcli.identifying.faults.variant import IndexRegion
from normcli.identifying.models.weight import choose_bits

if TYPE_CHECKING:
    from collections.abc import Iterable

    from normcli.dtypes import Selected
    from normcli.identifying.faults.case import Case


_MOSTLY = 0.9
"""The least part of a region's values that are wrong: a few may be right by chance."""

_ENDS = 2
"""The most ends of a run of indices along an axis."""

_MOST_LISTED = 3
"""The most indices of an axis that are listed one by one."""


_FEW = 0.05
"""The largest part of y that scattered wrong values may be."""


def find_any_region(case: Case, wrong: Selected) -> IndexRegion | None:
    """Return the region of all wrong values of y, or of scattered ones, if they are one value or at most 5 %.

    None if there is neither.
    """
    count = int(np.count_nonzero(wrong))
    region = find_region(case, wrong)
    if region is not None or not 0 < count <= max(1.0, _FEW * wrong.size):
        return region
    merged = wrong.reshape(case.plan.grid.merge_shape(wrong.shape))
    where = tell_places(count, [int(place[0]) for place in np.nonzero(merged)])
    return IndexRegion(where, wrong, "values", choose_bits(wrong.size, count))


def find_region(case: Case, wrong: Selected) -> IndexRegion | None:
    """Return the region of all wrong values of y, which are at least 90 % of it; None if there is none.

    A region is one or several indices of each of some axes; or it runs to the end of an axis, from an index
    that differs along a second axis. Up to 10 % of an axis's indices, scattered, are part of the region though
    right: they may be right by chance. None too if no value is wrong, or every one.
    """
    merged = wrong.reshape(case.plan.grid.merge_shape(wrong.shape))
    if not merged.any() or merged.all():
        return None
    every = range(merged.ndim)
    inside = [np.asarray(merged.any(tuple(other for other in every if other != axis))) for axis in every]
    box = np.ones(merged.shape, np.bool_)
    words = []
    some = [axis for axis in every if not inside[axis].all()]
    named = [axis for axis in some if np.diff(inside[axis]).sum() <= _ENDS or inside[axis].mean() < _MOSTLY]
    for axis in named or some:
        words.append(_tell_indices(case.plan.grid.layout.name(axis), inside[axis]))
        box &= inside[axis].reshape([-1 if other == axis else 1 for other in every])
    if words and merged.sum() >= _MOSTLY * box.sum():
        is_index = len(words) == 1 and min(map(np.count_nonzero, inside)) == 1
        kind = "values" if box.sum() == 1 else "index" if is_index else "region"
        bits = sum(_count_bits(inside[axis]) for axis in named or some)
        slices = max(merged.shape[axis] for axis in named or some)
        return IndexRegion(f"for {', '.join(words)}", box.reshape(wrong.shape), kind, bits, slices)
    return _find_border(case, merged, wrong.shape) or _find_ragged(case, merged, wrong.shape)


def _find_border(case: Case, wrong: Selected, shape_of_view: tuple[int, ...]) -> IndexRegion | None:
    """Return the region of all values at some indices of one axis or at some of another; None without one.

    The parameters are as of `_find_ragged`.
    """
    axes, border = [], np.zeros(wrong.shape, np.bool_)
    for axis in range(wrong.ndim):
        others = tuple(other for other in range(wrong.ndim) if other != axis)
        chosen = np.asarray(wrong.mean(others) >= _MOSTLY)
        if chosen.any():
            axes.append((case.plan.grid.layout.name(axis), chosen))
            border |= np.expand_dims(chosen, others)
    if len(axes) < 2 or border.all() or np.any(wrong & ~border):
        return None
    words = " or ".join(_tell_indices(name, chosen) for name, chosen in axes)
    bits, slices = sum(_count_bits(chosen) for _, chosen in axes), max(len(chosen) for _, chosen in axes)
    return IndexRegion(f"for {words}", border.reshape(shape_of_view), "region", bits, slices)


def _count_bits(chosen: Selected) -> float:
    """Return the bits that it takes to say which indices of an axis are chosen.

    If they are neighbours, the bits name the first and the last, otherwise a set among all of this size.
    `chosen` is True for the indices.
    """
    length, count = len(chosen), int(np.count_nonzero(chosen))
    is_run = np.flatnonzero(chosen)[-1] - np.flatnonzero(chosen)[0] + 1 == count
    return math.log2(length * (length + 1) / 2) if is_run else choose_bits(length, count)


def _tell_indices(name: str, chosen: Selected) -> str:
    """Return the indices of an axis that are True in `chosen`, in words.

    These are `d ≥ 3`, `d < 3`, `d=2 … 5`, `d=0, 2 … 8` or `d=1, 2, 5 and 4 more`.
    """
    places, length = np.flatnonzero(chosen), len(chosen)
    first, last = int(places[0]), int(places[-1])
    steps = np.unique(np.diff(places))
    if len(steps) == 1 and steps[0] == 1:
        if last == length - 1:
            return f"{name} ≥ {first}"
        return f"{name} < {last + 1}" if first == 0 else f"{name}={first} … {last}"
    if len(steps) == 1 and len(places) > _MOST_LISTED:
        return f"{name}={first}, {places[1]} … {last}"
    listed, more = ", ".join(map(str, places[:_MOST_LISTED])), len(places) - _MOST_LISTED
    return f"{name}={listed}" if more <= 0 else f"{name}={listed} and {more} more"


def tell_places(count: int, first: Iterable[int]) -> str:
    """Return the words for where some values are, given their number and the index of the first.

    Examples
    --------
    >>> tell_places(1, (0, 3)), tell_places(1200, (0, 3))
    ('at (0, 3)', 'for 1,200 values, the first at (0, 3)')
    """
    place = ", ".join(map(str, first))
    return f"at ({place})" if count == 1 else f"for {count:,} values, the first at ({place})"


def _find_ragged(case: Case, wrong: Selected, shape_of_view: tuple[int, ...]) -> IndexRegion | None:
    """Return the region that runs to the end of an axis from an index that differs along a second axis.

    Wrong padding of a batch of sequences is of this kind. None if there is no such region.

    Parameters
    ----------
    wrong : ndarray of bool
        The wrong values, of the tensor's shape.
    shape_of_view : tuple of int
        The shape of the region's mask, in which a channel axis that is split into groups is two axes.
    """
    for along, axis in itertools.permutations(range(wrong.ndim), 2):
        others = tuple(other for other in range(wrong.ndim) if other not in (along, axis))
        plane: Selected = np.asarray(wrong.any(others))
        plane = plane if along < axis else plane.T
        mask = np.maximum.accumulate(plane, axis=1)
        is_box = bool(plane.all(axis=1).any()) and not plane.any(axis=1).all()
        if is_box or not np.array_equal(mask, plane) or plane.all():
            continue
        shape = [n if other in (along, axis) else 1 for other, n in enumerate(wrong.shape)]
        spread = np.broadcast_to((mask if along < axis else mask.T).reshape(shape), wrong.shape)
        if wrong.sum() >= _MOSTLY * spread.sum():
            layout = case.plan.grid.layout
            words = f"from an index of {layout.name(axis)} on that differs by {layout.name(along)}"
            bits = math.log2(wrong.shape[axis] + 1) * wrong.shape[along]
            return IndexRegion(
                words, np.ascontiguousarray(spread).reshape(shape_of_view), "region", bits, wrong.shape[along]
            )
    return None
