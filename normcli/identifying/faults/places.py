"""Where a claim holds, and where it does not: which indices of which axes."""

from __future__ import annotations

import itertools
import math
from typing import TYPE_CHECKING

import numpy as np

from normcli.tuples import NamedTuple

if TYPE_CHECKING:
    from normcli.dtypes import Selected
    from normcli.identifying.faults.case import Case

_MOSTLY = 0.9
"""The part of a region's values that are off, at least: a few are right by chance."""

_MOST_LISTED = 3
"""Single indices that are named."""


class Region(NamedTuple):
    """Values that are told by their indices.

    Parameters
    ----------
    words : str
        `for l ≥ 10`, `for n=5`.
    mask : ndarray of bool
        Of the view's shape.
    kind : str
        `index` where it is one index of one axis, `region`, or `values` here and there.
    bits : float
        What it takes to say which region it is.
    slices : float
        How many slices the tensor has along the axis that the region is of.
    """

    words: str
    mask: Selected
    kind: str = "region"
    bits: float = 0.0
    slices: float = 1.0


def find_region(case: Case, wrong: Selected) -> Region | None:
    """Return the region that wrong values fill; None where they lie in no such order, or everywhere."""
    merged = wrong.reshape(case.plan.grid.merge_shape(wrong.shape))
    if not merged.any() or merged.all():
        return None
    every = range(merged.ndim)
    inside = [np.asarray(merged.any(tuple(other for other in every if other != axis))) for axis in every]
    box = np.ones(merged.shape, np.bool_)
    words = []
    for axis, chosen in enumerate(inside):
        if not chosen.all():
            words.append(_tell_indices(case.plan.grid.layout.name(axis), chosen))
            box &= chosen.reshape([-1 if other == axis else 1 for other in range(merged.ndim)])
    if words and merged.sum() >= _MOSTLY * box.sum():
        is_index = len(words) == 1 and min(map(np.count_nonzero, inside)) == 1
        kind = "values" if box.sum() == 1 else "index" if is_index else "region"
        bits = sum(_count_bits(chosen) for chosen in inside if not chosen.all())
        slices = max(len(chosen) for chosen in inside if not chosen.all())
        return Region(f"for {', '.join(words)}", box.reshape(wrong.shape), kind, bits, slices)
    return _find_ragged(case, merged, wrong.shape)


def _count_bits(chosen: Selected) -> float:
    """Return how many bits tell some indices of an axis: the two ends of a run, or which of all they are."""
    length, count = len(chosen), int(np.count_nonzero(chosen))
    is_run = np.flatnonzero(chosen)[-1] - np.flatnonzero(chosen)[0] + 1 == count
    return math.log2(length * (length + 1) / 2) if is_run else choose_bits(length, count)


def choose_bits(length: int, count: int) -> float:
    """Return how many bits tell which values of all are meant."""
    return math.log2(length) + (
        math.lgamma(length + 1) - math.lgamma(count + 1) - math.lgamma(length - count + 1)
    ) / math.log(2.0)


def _tell_indices(name: str, chosen: Selected) -> str:
    """Return the words of some indices of an axis: a run of them, every other one, or a few."""
    places, length = np.flatnonzero(chosen), len(chosen)
    first, last = int(places[0]), int(places[-1])
    steps = np.unique(np.diff(places))
    if len(places) == 1:
        return f"{name}={first}"
    if len(steps) == 1 and steps[0] == 1:
        if last == length - 1:
            return f"{name} ≥ {first}"
        return f"{name} < {last + 1}" if first == 0 else f"{name}={first} … {last}"
    if len(steps) == 1 and len(places) > _MOST_LISTED:
        return f"every {steps[0]}th {name} from {first} to {last}"
    if len(places) <= _MOST_LISTED:
        return f"{name}={', '.join(map(str, places))}"
    return f"{len(places)} of {length} indices of {name}, the first {first}"


def _find_ragged(case: Case, wrong: Selected, shape_of_view: tuple[int, ...]) -> Region | None:
    """Return the region that begins, for each index of one axis, at another index of a second: a mask's."""
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
            return Region(
                words, np.ascontiguousarray(spread).reshape(shape_of_view), "region", bits, wrong.shape[along]
            )
    return None
