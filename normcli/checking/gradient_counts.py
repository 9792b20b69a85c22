"""Faults of backward passes in the values that are summed, and in their count: padding, parts, shards."""

from __future__ import annotations

import itertools
import math
from typing import TYPE_CHECKING

import numpy as np

from normcli.checking.fault import list_padded_counts, list_padded_moments
from normcli.checking.gradient_bounds import CLEARLY
from normcli.norms.grid import Split
from normcli.norms.rules import GroupOrder
from normcli.numerics.statistics.divisor import find_freedom

if TYPE_CHECKING:
    from collections.abc import Iterator

    from normcli.checking.gradient_terms import GradientTerms
    from normcli.checking.wrong_gradient import Detailed, WrongGradient
    from normcli.dtypes import Floats

_SHARDS = (2, 3, 4, 8)


def change_ddof(c: WrongGradient) -> Iterator[Detailed]:
    """Yield the terms for ddof 0, or for ddof 1 if the norm's own is 0: exact, and as kernels write them."""
    own = c.plan.spec.ddof
    terms = c.change(ddof=0 if own else 1)
    if terms is not None:
        yield from ((("n", "n − 1") if own else ("n − 1", "n"), one) for one in (terms, terms.plain))


def count_means(c: WrongGradient) -> Iterator[Detailed]:
    """Yield dx's terms with both means of the backward pass divided by another count than n, the group's size.

    Counts are the one that the given dx shows, if it is near n or the length of some axes, and lengths to which
    kernels pad; n − 1 is left out. Nothing is yielded for running statistics.
    """
    t, none = c.t, c.t.differentiate(a=0.0, b=0.0)
    if c.exact.inputs.given is not None:
        return
    own, off = none - t.differentiate(), none - c.actual.reshape(none.shape)
    usable = np.isfinite(own) & np.isfinite(off)
    share = np.vdot(own[usable], off[usable]) / np.vdot(own[usable], own[usable])
    count = round(t.size / share) if np.isfinite(share) and share > 0.0 else 0
    shown = {count} if 0.5 < 1.0 / share < 4.0 or count in _list_lengths(t.dy.shape) else set()
    for count in sorted(shown.union(_list_counts(t.size)) - {t.size - 1, t.size}):
        yield (str(count), str(t.size)), t._replace(share=t.size / count)


def _list_lengths(shape: tuple[int, ...]) -> set[int]:
    """Return the numbers of values along each set of axes of a shape, but for 1: then means are sums."""
    sets = (itertools.combinations(shape, some) for some in range(1, len(shape) + 1))
    return {math.prod(lengths) for lengths in itertools.chain.from_iterable(sets)} - {1}


def _list_counts(size: int) -> list[int]:
    """Return the padded counts of a group, at most twice its size: four times would be a factor of 2 on dx."""
    return [count for count in list_padded_counts(size) if count <= 2 * size]


def pad(c: WrongGradient, what: str) -> Iterator[Detailed]:
    """Yield the terms for statistics with a padded count, with means of the backward pass over n or over it.

    Counts are usual ones up to twice n, and for each form the one that the gradient shows. Nothing for running
    statistics, for tensors above 2²⁰ values, and if `make_terms` returns None for the norm.

    Parameters
    ----------
    c : WrongGradient
    what : {"count", "variance", "mean", "both"}
        What the padding makes wrong. "count": the sum of squares is divided by the padded length. "variance":
        the sum of squares includes the zeros' deviations from the mean. "mean": the sum is divided by the
        padded length. "both": mean and variance.
    """
    n = c.t.size
    if c.exact.inputs.given is not None or c.vary() is None:
        return
    forms = [*itertools.product(range(len(_list_moments(c, what, n))), (False, True))]
    tried = [(count, *form) for count in _list_counts(n) for form in forms]
    tried += [(count, *form) for form in forms if (count := _find_count(c, what, *form)) is not None]
    for count, form, is_shared in tried:
        words = (str(count), str(n)) if what == "count" else (str(count - n),)
        yield words, _take_padded(c, what, count, form, is_shared)


def _list_moments(c: WrongGradient, what: str, count: float) -> list[tuple[Floats, Floats]]:
    """Return the mean and variance of each form of statistics with a padded count."""
    t, x = c.t, c.t.w + c.t.mean

    def add_squares(centre: Floats) -> Floats:
        return np.asarray(np.square(x - centre).sum(t.axes, keepdims=True))

    return list_padded_moments(t.mean, add_squares, t.size, find_freedom(c.plan, t.size), count - t.size)[what]


def _take_padded(c: WrongGradient, what: str, count: float, form: int, is_shared: bool) -> GradientTerms:
    """Return the terms of one form of a padded count, which divides the backward means too if `is_shared`."""
    terms = c.vary(moments=_list_moments(c, what, count)[form])
    assert terms is not None  # as of the norm itself
    return terms._replace(share=c.t.size / count if is_shared else 1.0)


_STEPS = 12
"""The steps of a fixed point to the count that a gradient shows."""

_MOST_TIMES = 256
"""The largest padded count that a gradient may show, as a multiple of the group's size."""


def _find_count(c: WrongGradient, what: str, form: int, is_shared: bool) -> int | None:
    """Return the padded count that the gradient shows: a fixed point of m · (⟨right, actual⟩ / ⟨right, of m⟩)².

    None for a usual count, and if that leaves over an eighth of the error of the best multiple of the gradient.
    """
    right, actual = (np.nan_to_num(values.reshape(-1)) for values in (c.right, c.actual))
    shown, n = float(np.vdot(right, actual)), c.t.size
    least = np.linalg.norm(actual - shown / np.vdot(right, right) * right) / CLEARLY
    if not least > _NOTHING * np.linalg.norm(actual):
        return None
    count, found = 2.0 * n, 0
    for _ in range(_STEPS):
        if not n < count <= _MOST_TIMES * n or found == round(count):
            break
        found = round(count)
        wrong = c.take(_take_padded(c, what, count, form, is_shared)).reshape(-1)
        count *= (shown / float(np.vdot(right, wrong))) ** 2
    if found in (0, n, *_list_counts(n)):
        return None
    wrong = c.take(_take_padded(c, what, found, form, is_shared)).reshape(-1)
    return found if np.linalg.norm(actual - wrong) <= least else None


_NOTHING = 1e-6
"""The error of a multiple of the right gradient, as a part of the given one, below which it is a factor."""


def sum_part(c: WrongGradient) -> Iterator[Detailed]:
    """Yield dgamma or dbeta summed over only a part of one axis: its first k indices, then its last k.

    There is one of each for each axis of the sum, with the k that makes it nearest to the given gradient.
    """
    actual = c.actual.reshape(-1)
    for axis in c.along:
        word = _name_view_axis(c, axis)
        others = tuple(other for other in c.along if other != axis)
        parts = np.moveaxis(c.shares.sum(others, keepdims=True), axis, 0)
        sums = np.cumsum(parts.reshape(len(parts), -1), axis=0)
        last = len(parts) - 1
        for some, begins in ((sums[:-1], True), (sums[-1] - sums[:-1], False)):
            if len(some):
                stop = int(np.nan_to_num(((some - actual) ** 2).sum(1), nan=np.inf).argmin())
                first, end = (0, stop) if begins else (stop + 1, last)
                where = f"{word}={first}" if first == end else f"{word}={first} … {word}={end}"
                yield (where,), some[stop]


def _name_view_axis(c: WrongGradient, axis: int) -> str:
    """Return the name of an axis of the view; for one of the two that a split axis becomes, its number."""
    grid = c.plan.grid
    if grid.split is not None and axis in (grid.split.axis, grid.split.axis + 1):
        return f"axis {axis}"
    return grid.layout.name(axis - (grid.split is not None and axis > grid.split.axis))


def end_early(c: WrongGradient) -> tuple[tuple[str, ...], Floats] | None:
    """Return dgamma or dbeta with the zeros that the given one begins or ends with; None unless two or more."""
    is_zero = (c.actual == 0.0).reshape(-1)
    others = np.flatnonzero(~is_zero)
    if not len(others):
        return None
    begins, ends = int(others[0]), int(others[-1]) + 1
    first, stop = (0, begins) if begins >= len(is_zero) - ends else (ends, len(is_zero))
    if stop - first <= 1:
        return None
    wrong = c.right.copy()
    wrong.flat[first:stop] = 0.0
    shape = c.right.shape
    words = (",".join(map(str, np.unravel_index(index, shape))) for index in (first, stop - 1))
    name = c.name_axes(axis for axis in c.plan.parameters.axes if c.plan.grid.shape[axis] > 1)
    return (" … ".join(f"{name}={index}" for index in words),), wrong


def shard_means(c: WrongGradient) -> Iterator[Detailed]:
    """Yield dx's terms with means of the backward pass over shards, as of `shard`, and the right statistics."""
    t = c.t
    for words, shards in shard(c):
        if shards is not None:
            axis = next(i for i, n in enumerate(t.w.shape) if shards.w.shape[i] != n)
            mean, divisor = (np.expand_dims(each, axis) for each in (t.mean, t.divisor))
            w, slope = (each.reshape(shards.w.shape) for each in (t.w, t.slope))
            slope = slope * (t.size / shards.size)
            yield words, shards._replace(mean=mean, w=w, divisor=divisor, slope=slope)


def shard(c: WrongGradient) -> Iterator[Detailed]:
    """Yield the terms with a reduced axis cut into 2, 3, 4 or 8 shards, each normalized by its own statistics.

    Shards are blocks of the axis, or interleaved. Nothing is yielded for channel groups or running statistics.
    """
    grid = c.plan.grid
    for axis, count in itertools.product(c.t.axes if c.is_trained else (), _SHARDS):
        if grid.shape[axis] % count == 0 and count < grid.shape[axis]:
            for order in GroupOrder:
                yield (str(count), c.name_axes((axis,))), c.regroup(split=Split(axis, count, order))
