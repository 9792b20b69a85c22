"""The region in which a claim holds, and the step of a kernel that may have made NaN, ∞ or 0 elsewhere."""

from __future__ import annotations

import itertools
import math
from typing import TYPE_CHECKING

import numpy as np

from normcli.dtypes import get_eps, is_half
from normcli.identifying.faults.variant import IndexRegion
from normcli.tuples import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable

    from normcli.dtypes import Floats, Selected
    from normcli.identifying.faults.case import Case

_MOSTLY = 0.9
"""The part of a region's values that are off, at least: a few are right by chance."""

_MOST_LISTED = 3
"""Single indices that are named."""


def find_region(case: Case, wrong: Selected) -> IndexRegion | None:
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
        return IndexRegion(f"for {', '.join(words)}", box.reshape(wrong.shape), kind, bits, slices)
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
    """Return the words of some indices of an axis: a run, regular ones, or the first few."""
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
    """Return the words of single values: how many they are, and the index of the first."""
    place = ", ".join(map(str, first))
    return f"at ({place})" if count == 1 else f"for {count:,} values, the first at ({place})"


def _find_ragged(case: Case, wrong: Selected, shape_of_view: tuple[int, ...]) -> IndexRegion | None:
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
            return IndexRegion(
                words, np.ascontiguousarray(spread).reshape(shape_of_view), "region", bits, wrong.shape[along]
            )
    return None


# -- what is not finite, or 0

_ROUNDINGS = 2.0
"""Ulp by which E[x²] − E[x]² may be off, beside the errors of its sums."""


class ValueSource(NamedTuple):
    """A possible source of a value that is not finite, or 0, and its remedy."""

    words: str
    remedy: str


def find_source(case: Case, where: Selected) -> ValueSource | None:
    """Return what may have made NaN, infinity or 0 of some values; None where nothing is seen of it.

    Parameters
    ----------
    case : Case
    where : ndarray of bool
        Of the view's shape.
    """
    for name, values in (("gamma", case.gamma), ("beta", case.beta), ("x", case.x)):
        odd = np.broadcast_to(~np.isfinite(values), where.shape)
        of_groups = odd.any(case.axes, keepdims=True) if name == "x" else odd
        if np.broadcast_to(of_groups, where.shape)[where].all():
            return ValueSource(f"{name} is not finite", f"find what made {name}")
    if not case.has_moments or case.stored is not None:
        return None
    if not (~np.isfinite(case.y) | (case.y == case.beta))[where].all():
        return None
    groups = np.asarray(where.any(case.axes, keepdims=True))
    if (np.ptp(case.x, case.axes, keepdims=True) == 0.0)[groups].all():
        return ValueSource("x is constant", "add eps to the variance")
    if np.isnan(case.y[where]).all() and _may_cancel(case)[groups].all():
        return ValueSource("E[x²] − E[x]² may be negative", "take squares of x − mean")
    return None


def _may_cancel(case: Case) -> Selected:
    """Return in which groups rounding may make a difference of squares negative, eps and all."""
    last_place = get_eps(case.dtype) if is_half(case.dtype) else case.arithmetic
    most: Floats = last_place * (_ROUNDINGS + math.sqrt(case.count)) * case.average(case.x**2)
    return np.asarray(case.centres & (case.own_square + case.eps < most))
