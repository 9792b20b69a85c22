"""Faults of backward passes in the values that are summed, and in their count: padding, parts, shards."""

from __future__ import annotations

import functools
import itertools
import math
from typing import TYPE_CHECKING

import numpy as np

from normcli.checking.fault import list_padded_counts, list_padded_moments
from normcli.checking.gradient_bounds import CLEARLY
from normcli.checking.wrong_gradient import MOST_VARIED
from normcli.norms.grid import Split
from normcli.norms.rules import GroupOrder
from normcli.numerics.statistics.divisor import find_freedom

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from normcli.checking.gradient_terms import GradientTerms
    from normcli.checking.wrong_gradient import Detailed, WrongGradient
    from normcli.dtypes import Floats

_SHARDS = (2, 3, 4, 8)

_LEAST_SHARE = 0.25
"""The least n / m for means that are divided by m, not n, that a gradient shows."""

_STRIDES = (2, 3, 4, 8)
"""The steps at which kernels may leave out rows, or take them twice."""

_LEAST_VALUES = 4
"""The fewest values of a sum that can show which block or stride of its rows is wrong."""

_MOST_INDICES = 1 << 14
"""The most indices of an axis of which parts are tried."""


def change_ddof(c: WrongGradient) -> Iterator[Detailed]:
    """Yield the terms for ddof 0, or for ddof 1 if the norm's own is 0: exact, and as kernels write them."""
    own = c.plan.spec.ddof
    terms = c.change(ddof=0 if own else 1)
    if terms is not None:
        yield from ((("n", "n − 1") if own else ("n − 1", "n"), one) for one in (terms, terms.plain))


def count_means(c: WrongGradient) -> Iterator[Detailed]:
    """Yield dx's terms with both means of the backward pass divided by another count than n, the group's size.

    Counts are the one that the given dx shows, and lengths to which kernels pad; n − 1 and 1 are left out.
    """
    t, share = c.t, _find_factor(c, a=0.0, b=0.0)
    shown = {round(t.size / share)} if share > _LEAST_SHARE else set()
    for count in sorted(shown.union(_list_counts(t.size)) - {0, 1, t.size - 1, t.size}):
        yield (str(count), str(t.size)), t._replace(share=t.size / count)


def fit_factor(c: WrongGradient, **none: float) -> Detailed | None:
    """Return dx's terms with the factor that fits best on the term that `none` leaves out: `a` or `b` is 0.

    None if no factor fits, if it is 1 in 3 digits, or if it is above n: a sum in place of a mean is n means.
    """
    factor = _find_factor(c, **none)
    words = f"{factor:.3g}"
    if words == "1" or not abs(factor) < c.t.size + 0.5:
        return None
    return (words,), c.t.scale(**dict.fromkeys(none, factor))


def _find_factor(c: WrongGradient, **none: float) -> float:
    """Return the factor of least squares on what dx lacks if factors on its terms, `a` and `b`, are 0."""
    bare = c.t.scale(**none).differentiate()
    term, off = ((dx - bare) * c.t.divisor for dx in (c.t.differentiate(), c.actual.reshape(bare.shape)))
    return find_multiple(off, term)


def find_multiple(values: Floats, known: Floats) -> float:
    """Return the factor of least squares by which `known` gives `values`, where both are finite."""
    usable = np.isfinite(values) & np.isfinite(known)
    return float(np.vdot(known[usable], values[usable]) / np.vdot(known[usable], known[usable]))


def _list_counts(size: int) -> list[int]:
    """Return the padded counts of a group, at most twice its size: four times would be a factor of 2 on dx."""
    return [count for count in list_padded_counts(size) if count <= 2 * size]


def pad(c: WrongGradient, what: str) -> Iterator[Detailed]:
    """Yield the terms for statistics with a padded count, with means of the backward pass over n or over it.

    Counts are usual ones up to twice n, and for each form the one that the gradient shows. Nothing for tensors
    above 2²⁰ values, and if `make_terms` returns None for the norm.

    Parameters
    ----------
    c : WrongGradient
    what : {"count", "variance", "mean", "both"}
        What the padding makes wrong. "count": the sum of squares is divided by the padded length. "variance":
        the sum of squares includes the zeros' deviations from the mean. "mean": the sum is divided by the
        padded length. "both": mean and variance.
    """
    n = c.t.size
    if c.vary() is None:
        return
    for form in itertools.product(range(len(_list_moments(c, what, n))), (False, True)):
        take = functools.partial(_take_padded, c, what, *form)
        for count in sorted({*_list_counts(n), *_find_count(c, take)}):
            yield (str(count), str(n)) if what == "count" else (str(count - n),), take(count)


def _list_moments(c: WrongGradient, what: str, count: float) -> list[tuple[Floats, Floats]]:
    """Return the mean and variance of each form of statistics with a padded count."""
    t, x = c.t, c.t.w + c.t.mean

    def add_squares(centre: Floats) -> Floats:
        return np.asarray(np.square(x - centre).sum(t.axes, keepdims=True))

    return list_padded_moments(t.mean, add_squares, t.size, find_freedom(c.plan, t.size), count - t.size)[what]


def _take_padded(c: WrongGradient, what: str, form: int, is_shared: bool, count: float) -> GradientTerms:
    """Return the terms of one form of a padded count, which divides the backward means too if `is_shared`."""
    terms = c.vary(moments=_list_moments(c, what, count)[form])
    assert terms is not None  # as of the norm itself
    return terms._replace(share=c.t.size / count if is_shared else 1.0)


_STEPS = 12
"""The steps of a fixed point to the count that a gradient shows."""

_MOST_TIMES = 256
"""The largest padded count that a gradient may show, as a multiple of the group's size."""


def _find_count(c: WrongGradient, take: Callable[[float], GradientTerms]) -> list[int]:
    """Return the padded count that the gradient shows, if one does, for the terms that `take` makes of a count.

    It is a fixed point of m · (⟨right, actual⟩ / ⟨right, of m⟩)², and leaves at most an eighth of the error of
    the best multiple of the gradient.
    """
    right, actual = (np.nan_to_num(values.reshape(-1)) for values in (c.right, c.actual))
    shown, n = find_multiple(actual, right), c.t.size
    least = np.linalg.norm(actual - shown * right) / CLEARLY
    count, found = 2.0 * n, 0
    for _ in range(_STEPS if least > _NOTHING * np.linalg.norm(actual) else 0):
        if not n < count <= _MOST_TIMES * n or found == round(count):
            break
        found = round(count)
        count *= (shown / find_multiple(c.take(take(count)).reshape(-1), right)) ** 2
    is_shown = found and np.linalg.norm(actual - c.take(take(found)).reshape(-1)) <= least
    return [found] if is_shown else []


_NOTHING = 1e-6
"""The error of a multiple of the right gradient, as a part of the given one, below which it is a factor."""


def sum_part(c: WrongGradient, times: int) -> Iterator[Detailed]:
    """Yield dgamma or dbeta with a part of an axis alone (`times` is 0), left out (−1), or taken twice (1).

    It is the part that makes it nearest to the given gradient, of each axis of the sum, and of all as one: the
    first k indices, the last k, a block, or every second to fourth or eighth index. Of few values, which others
    fit by chance, and above 2²⁰ only the first two are tried. Axes of more than 2¹⁴ indices have none.
    """
    shares, actual, found = np.broadcast_to(c.shares, c.plan.grid.view_shape), c.actual.reshape(-1), []
    for axes in (*((axis,) for axis in c.along), c.along):
        others = tuple(other for other in c.along if other not in axes)
        rows = np.moveaxis(shares.sum(others, keepdims=True), axes, range(len(axes)))
        lengths, rows = rows.shape[: len(axes)], rows.reshape(-1, actual.size)
        whole = actual.size < _LEAST_VALUES or rows.size > MOST_VARIED
        parts = _list_parts(len(rows), times, ends_alone=whole) if len(rows) <= _MOST_INDICES else []
        if parts:
            total = np.concatenate([np.zeros_like(rows[:1]), np.cumsum(rows, axis=0)])
            some = (total[p.stop] - total[p.start] if p.step == 1 else rows[p].sum(0) for p in parts)
            sums = np.stack(list(some))
            wrong = sums if not times else c.right.reshape(-1) + times * sums
            off = np.nan_to_num(((wrong - actual) ** 2).sum(1), nan=np.inf)
            best = int(off.argmin())
            name = "×".join(_name_view_axis(c, axis) for axis in axes)
            found.append((off[best] * len(axes), _name_part(name, lengths, parts[best]), wrong[best]))
    yield from (((words,), wrong) for _, words, wrong in sorted(found, key=lambda one: one[0])[:1])


def _list_parts(length: int, times: int, *, ends_alone: bool) -> list[slice]:
    """Return the parts of an axis that kernels take alone (`times` is 0), leave out (−1), or take twice (1)."""
    ends = {part for stop in range(1, length) for part in ((0, stop, 1), (stop, length, 1))}
    sizes = [size for size in range(1, length) if length % size == 0 or not size & (size - 1)]
    blocks = {(start, min(start + size, length), 1) for size in sizes for start in range(0, length, size)}
    strides = [step for step in _STRIDES if 2 + (times < 0) <= step < length]  # half is the other half alone
    blocks |= {(first, length, step) for step in strides for first in range(min(step, length - step))}
    own = set() if ends_alone else blocks
    return [slice(*part) for part in sorted(own | ends if not times else own - ends if times < 0 else own)]


def _name_part(name: str, lengths: tuple[int, ...], part: slice) -> str:
    """Return a part of axes, which count as one, in words: `n=4 … n=7`, or `n=0, n=2 …` for every second."""
    indices = range(math.prod(lengths))[part]
    ends = indices[0], indices[-1 if part.step == 1 else 1]
    first, other = (f"{name}={','.join(map(str, np.unravel_index(i, lengths)))}" for i in ends)
    return first if first == other else f"{first} … {other}" if part.step == 1 else f"{first}, {other} …"


def _name_view_axis(c: WrongGradient, axis: int) -> str:
    """Return the name of an axis of the view; for one of the two that a split axis becomes, its number."""
    grid = c.plan.grid
    if grid.split is not None and axis in (grid.split.axis, grid.split.axis + 1):
        return f"axis {axis}"
    return grid.layout.name(axis - (grid.split is not None and axis > grid.split.axis))


def end_early(c: WrongGradient) -> Detailed | None:
    """Return dgamma or dbeta with the zeros that the given one begins or ends with; None unless two or more."""
    is_zero, wrong = (c.actual == 0.0).reshape(-1), c.right.copy()
    begins, ends = (int(some.argmin()) for some in (is_zero, is_zero[::-1]))
    part = slice(0, begins, 1) if begins >= ends else slice(len(is_zero) - ends, len(is_zero), 1)
    if max(begins, ends) <= 1:
        return None
    wrong.flat[part] = 0.0
    name = c.name_axes(axis for axis in c.plan.parameters.axes if c.plan.grid.shape[axis] > 1)
    return (_name_part(name, wrong.shape, part),), wrong


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
    for axis, count in itertools.product(grid.axes if c.is_trained else (), _SHARDS):
        if grid.shape[axis] % count == 0 and count < grid.shape[axis]:
            for order in GroupOrder:
                yield (str(count), c.name_axes((axis,))), c.regroup(split=Split(axis, count, order))
