"""Faults of groups that use the statistics of another group, or statistics over other axes."""

from __future__ import annotations

import functools
import itertools
import math
import operator
from typing import TYPE_CHECKING

import numpy as np

from normcli.checking.fault import Row
from normcli.identifying.faults.tables.dividing import replace_statistics
from normcli.identifying.faults.variant import Variant, is_near, label, list_shifts

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from numpy.typing import NDArray

    from normcli.dtypes import Floats
    from normcli.identifying.faults.case import Case


def _take_other_row(case: Case) -> Iterator[Variant]:
    """Yield variants in which groups use the statistics of another index of a kept axis, or of one group.

    Either each group uses those of an index up to 64 before or after its own, or all groups those of one of the
    first 64 indices. With several kept axes, all groups are also tried with those of one group, for the 4
    groups whose divisors are nearest to the ones recovered from y. A variant is yielded only if, in at least
    half of the groups, its divisors (or means, if only these differ) are within 2 % of the recovered ones.
    """
    of_square = f"the {case.square_name} is taken"
    names = ("statistics are taken", "the mean is taken", of_square) if case.centres else (of_square,)
    shape = np.broadcast_shapes(case.centre.shape, case.square.shape)
    centre, squares = (np.broadcast_to(values, shape) for values in (case.centre, case.square))
    root = np.broadcast_to(case.root(squares), shape)
    for which, choose, numbers in _list_choices(case, root):
        shows_square = is_near(case.used.divisor, choose(root))
        shows_mean = case.centres and is_near(case.used.mean, choose(centre))
        if shows_square or shows_mean:
            every = replace_statistics(case, choose(centre), choose(squares), names)
            shown = (one for one in every if (shows_mean if one.square is None else shows_square))
            yield from label(shown, numbers, which=which)


def _list_choices(case: Case, root: Floats) -> Iterator[tuple[str, Callable[[Floats], Floats], int]]:
    """Yield (words, take, numbers): other groups whose statistics a kernel may use, and how to take theirs.

    `take` is given an array with a number for each group, and `numbers` is the count of fitted numbers that the
    choice costs. `root` has the divisor of each group.
    """
    for axis in case.kept:
        for which, places in _list_places(case, axis):
            yield which, functools.partial(np.take, indices=places, axis=axis), 1
    if len(case.kept) > 1:
        yield "the transposed index", _take_transposed, 1
        off = np.abs(root / np.median(case.used.divisor) - 1.0)
        for group in np.argsort(off, axis=None)[:_MOST_NEAREST]:
            place = np.unravel_index(group, off.shape)
            take = operator.itemgetter(tuple(slice(n, n + 1) for n in place))
            which = ", ".join(f"{case.name_axis(axis)}={place[axis]}" for axis in case.kept)
            yield f"{which} in every group", take, 1
    if root.size <= _MOST_MATCHED:
        yield from _match_groups(case, root)


def _match_groups(case: Case, root: Floats) -> Iterator[tuple[str, Callable[[Floats], Floats], int]]:
    """Yield choices, for each wrong group, of the group whose statistics are nearest to those that y shows.

    Nearest are both mean and divisor, or only one of them. A choice of one in n groups costs log2 n bits. Left
    out are several groups that are shifted alike along the one kept axis: these are named with their region.
    """
    used, centre = case.used, np.broadcast_to(case.centre, root.shape)
    means, roots = (
        np.subtract.outer(theirs.ravel(), ours.ravel()) / np.abs(root.ravel())
        for theirs, ours in ((used.mean, centre), (used.divisor, root))
    )
    wrong = np.flatnonzero(case.differs.any(case.axes))
    numbers = math.ceil(wrong.size * math.log2(max(2, root.size)) / _BITS_OF_A_NUMBER)
    for off in ((means**2 + roots**2), means**2, roots**2) if case.centres else (roots**2,):
        order = np.arange(root.size)
        order[wrong] = off.argmin(1)[wrong]
        moved = np.flatnonzero(order != np.arange(root.size))
        is_shift = len(case.kept) == 1 and moved.size > 1 and np.ptp(moved - order[moved]) == 0
        if moved.size and not is_shift:
            there, here = (_name_group(case, int(group)) for group in (order[moved[0]], moved[0]))
            which = f"{there}, used for {here}" if moved.size == 1 else f"{there}, used for {here} and others"
            yield which, functools.partial(_take_flat, order=order), 1 + numbers


def _take_flat(values: Floats, order: NDArray[np.intp]) -> Floats:
    return values.ravel()[order].reshape(values.shape)


def _name_group(case: Case, group: int) -> str:
    """Return the indices of a group along the kept axes, such as `n×c=0,2`."""
    place = np.unravel_index(group, case.divisor.shape)
    indices = ",".join(str(place[axis]) for axis in case.kept)
    return f"{'×'.join(map(case.name_axis, case.kept))}={indices}"


_MOST_MATCHED, _BITS_OF_A_NUMBER = 1024, 12.0
"""The most groups among which the source of each group's statistics is sought; the bits of a fitted number."""


def _take_transposed(values: Floats) -> Floats:
    """Return the number for each group that stands where a flat index with the axes in reverse order leads."""
    return values.reshape(values.shape[::-1]).transpose()


_MOST_INDICES = 64
"""The most indices of an axis whose statistics are tried one by one."""

_MOST_NEAREST = 4
"""The most single groups whose statistics are tried for all groups."""


def _list_places(case: Case, axis: int) -> Iterator[tuple[str, NDArray[np.intp]]]:
    """Yield words and, for each index of an axis, the index used instead: shifted, or one for all.

    Where all wrong values are shifted around one end of the axis, the words name the index within it.
    """
    name, own = case.name_axis(axis), np.arange(case.x.shape[axis])
    wrong = np.flatnonzero(case.differs.any(tuple(other for other in range(case.x.ndim) if other != axis)))
    for shift in list_shifts(own.size):
        around = np.unique((wrong - shift) // own.size)
        by = shift + own.size * int(around[0]) if around.size == 1 else shift
        yield f"index {name} − {by}" if by > 0 else f"index {name} + {-by}", (own - shift) % own.size
    for index in own[:_MOST_INDICES]:
        yield f"{name}={index} in every group", own[[index]]


def _take_other_axes(case: Case) -> Iterator[Variant]:
    """Yield variants whose mean, variance or both are over any other axes of the view than the norm's."""
    wide = [axis for axis, n in enumerate(case.x.shape) if n > 1]
    own = [axis for axis in wide if axis in case.axes]
    names = "statistics are", "the mean is", "the variance is"
    choices = (itertools.combinations(wide, count) for count in range(1, len(wide) + 1))
    for axes in itertools.chain.from_iterable(choices):
        if axes != tuple(own):
            mean = case.average(case.x, axes) if case.centres else np.zeros([1] * case.x.ndim)
            square = case.average((case.x - mean) ** 2, axes)
            over = "×".join(case.name_axis(axis) for axis in axes)
            yield from label(replace_statistics(case, mean, square, names), over=over)


BORROWING: Sequence[Row] = (
    Row("stats-other-row", _take_other_row),
    Row("stats-other-axes", _take_other_axes),
)  # fmt: skip
"""In the order of likelihood: of rows that explain equally much, the first is named."""
