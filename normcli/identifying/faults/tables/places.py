"""Faults of places: rows of y in another order, parts of y with x, 0 or NaN, and faults that no row names."""

from __future__ import annotations

import functools
import itertools
import math
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from normcli.checking.fault import Row
from normcli.identifying.faults.variant import Variant

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from numpy.typing import NDArray

    from normcli.dtypes import Floats
    from normcli.identifying.faults.case import Case


_MOST_SLICES = 1 << 13
"""No order is looked for along an axis with more slices than this."""

_COLUMNS = 48
"""The most values of a slice that are compared."""

_AT_ONCE = 512
"""The slices of y whose nearest ones are found at once: of unlike slices, two of so many have the same."""

_FEW, _NEAR, _LEAST = 16, 2.0**-6, 0.1
"""Sixteen slices of y are tried first: 10 % of their values have to be within 2⁻⁶ of the nearest slice of the
right result, relative to |y| + the deviation of y."""


def _find_order(right: Floats, y: Floats) -> NDArray[np.intp] | None:
    """Return, for each slice of y, the index of the nearest slice of the right result; None if not one to one.

    None if two slices of y are equal or have one nearest slice, or if, of about 16 slices, too few are near any
    slice. At most 48 values of each slice are compared.

    Parameters
    ----------
    right, y : ndarray, shape (slices, values)
    """
    chosen = np.linspace(0, right.shape[1] - 1, min(_COLUMNS, right.shape[1])).astype(np.intp)
    ours, theirs = (np.nan_to_num(values[:, chosen]) for values in (right, y))
    if len(np.unique(theirs, axis=0)) < len(theirs):  # two would be nearest to one
        return None
    sizes = (ours**2).sum(1)

    def find_nearest(some: Floats) -> NDArray[np.intp]:
        return np.asarray((sizes - 2.0 * some @ ours.T).argmin(1))

    few = theirs[:: -(-len(theirs) // _FEW)]
    if np.mean(np.abs(few - ours[find_nearest(few)]) <= _NEAR * (np.abs(few) + few.std())) < _LEAST:
        return None
    found = np.empty(0, np.intp)
    while len(found) < len(theirs):
        found = np.concatenate([found, find_nearest(theirs[len(found) : len(found) + _AT_ONCE])])
        if len(np.unique(found)) < len(found):
            return None
    return found if len(found) == len(right) else None


@functools.lru_cache(maxsize=2)  # of one case, each row of the table asks
def _list_orders(case: Case) -> list[tuple[str, Variant]]:
    """Return pairs (kind, variant): the norm's result with its slices in the order that y shows.

    Orders are looked for along each axis, and along all kept axes taken as one, if there are at most 8,192
    slices. A kind is `exchanged`, `rolled`, `reversed` or `permuted`; one order may have several. Empty if the
    slices are in order, or if y does not have the norm's slices in any order.
    """
    grid = case.plan.grid
    found: list[tuple[str, Variant]] = []
    results: list[Floats] = []
    shape = grid.merge_shape(case.y.shape)
    right, y = (np.broadcast_to(values, case.y.shape).reshape(shape) for values in (case.right.values, case.y))
    kept = tuple(axis for axis in grid.kept if shape[axis] > 1)
    every = [(axis,) for axis, n in enumerate(shape) if n > 1] + ([kept] if len(kept) > 1 else [])
    for axes in every:
        front = (*axes, *(axis for axis in range(len(shape)) if axis not in axes))
        lengths = [shape[axis] for axis in front]
        count = math.prod(lengths[: len(axes)])
        if count > _MOST_SLICES:
            continue
        ours, theirs = (values.transpose(front).reshape(count, -1) for values in (right, y))
        order = _find_order(ours, theirs)
        if order is not None and np.any(order != np.arange(count)):
            back = ours[order].reshape(lengths).transpose(np.argsort(front)).reshape(case.y.shape)
            if any(np.array_equal(back, one, equal_nan=True) for one in results):  # along one axis
                continue
            results.append(back)
            for kind, numbers, values in name_order("×".join(map(grid.layout.name, axes)), order):
                found.append((kind, Variant(result=back, values=values, numbers=numbers)))
    return found


def name_order(name: str, order: NDArray[np.intp]) -> Iterator[tuple[str, int, dict[str, Any]]]:
    """Yield each kind of an order: its name, its count of fitted numbers, values for the fault's words.

    The kinds are `exchanged` (two slices), `rolled` and `reversed`; `permuted` only if it is none of these.

    Parameters
    ----------
    name : str
        The name of the axis.
    order : ndarray of int
        order[i] is the index, in the right result, of the slice that is at index i of y.
    """
    moved, shift = np.flatnonzero(order != np.arange(len(order))), find_shift(order)
    is_exchanged, is_reversed = len(moved) == 2, is_reverse(order)
    if is_exchanged:
        yield "exchanged", 2, {"which": f"{name}={moved[0]} and {name}={moved[1]}"}
    if shift:
        yield "rolled", 1, {"name": name, "by": shift}
    if is_reversed:
        yield "reversed", 0, {"name": name}
    if not (is_exchanged or shift or is_reversed):
        yield "permuted", len(order), {"name": name, "moved": len(moved), "count": len(order)}


def find_shift(order: NDArray[np.intp]) -> int:
    """Return the shift by which slices are rolled, negative for backwards; 0 if they are not.

    `order[i]` is the index, in the right result, of the slice that is at index i of y. The shift is 0 for one
    or two slices, too.
    """
    count = len(order)
    shifts = (np.arange(count) - order) % count
    if count <= 2 or len(np.unique(shifts)) > 1:
        return 0
    shift = int(shifts[0])
    return shift if 2 * shift <= count else shift - count


def is_reverse(order: NDArray[np.intp]) -> bool:
    """Whether order[i], the index of the right slice that is at index i of y, falls from the last to 0.

    False for 1 or 2 slices.
    """
    return len(order) > 2 and np.array_equal(order, np.arange(len(order))[::-1])


def _find(kind: str) -> Callable[[Case], list[Variant]]:
    """Return a function that lists the variants of a case with y's slices in another order of one kind.

    The kinds are `exchanged`, `rolled`, `reversed` and `permuted`.
    """
    return lambda case: [variant for one, variant in _list_orders(case) if one == kind]


def _transpose(case: Case) -> Iterator[Variant]:
    right = np.broadcast_to(case.right.values, case.y.shape)
    for one, other in itertools.combinations(range(case.y.ndim), 2):
        if case.y.shape[one] == case.y.shape[other] > 1:
            names = f"{case.name_axis(one)} and {case.name_axis(other)}"
            yield Variant(result=right.swapaxes(one, other), values={"names": names})


def _read_memory(case: Case) -> Iterator[Variant]:
    """Yield variants in which memory with channels first is read as channels last, or the reverse.

    It may be misread before the norm, behind it, or on both sides; gamma and beta are those of the channels as
    they are misread, or as they are. Nothing for fewer than three axes.
    """
    shape = case.plan.grid.merge_shape(case.x.shape)
    rank = len(shape)
    if rank < 3:
        return
    first, last = (0, *range(2, rank), 1), (0, rank - 1, *range(1, rank - 1))
    taken = "channels first is read as channels last", "channels last is read as channels first"
    one = np.ones([1] * case.x.ndim)
    bare = replace(case, gamma=one, beta=0.0 * one)
    ways = [
        (case, one, 0.0 * one),
        *([(bare, case.gamma, case.beta)] if case.has_gamma or case.has_beta else []),
    ]
    orders = zip((first, last), taken, taken[::-1], strict=True)
    for (order, words, stored), (norm, gamma, beta) in itertools.product(orders, ways):
        lengths = [shape[axis] for axis in order]
        back = np.argsort(order)
        right = np.broadcast_to(norm.right.values, case.x.shape).reshape(shape)
        result = _normalize(norm, case.x.reshape(lengths).transpose(back)).reshape(shape)  # as it is taken for
        laid = _normalize(norm, case.x.reshape(shape).transpose(order)).reshape(lengths)  # as it lies
        every = (
            (words, result.transpose(order)),
            (words, right.reshape(lengths).transpose(back)),
            (stored, right.transpose(order)),
            (stored, laid.transpose(back)),
        )
        for read, made in every:
            yield Variant(result=made.reshape(case.x.shape) * gamma + beta, values={"words": read})


def _normalize(case: Case, values: Floats) -> Floats:
    """Return the norm's result for other values of x, of the shape of the view."""
    return replace(case, x=values.reshape(case.x.shape), stored=None, gate=None).right.values


ORDER: Sequence[Row] = (
    Row("order-exchanged", _find("exchanged")),
    Row("order-rolled", _find("rolled")),
    Row("order-reversed", _find("reversed")),
    Row("order-transposed", _transpose),
    Row("order-memory", _read_memory, "moments whole"),
    Row("order-permuted", _find("permuted")),
)  # fmt: skip
"""The faults of slices of y in another order, the likeliest first."""


def _take_zeros(case: Case) -> Iterator[Variant]:
    """Yield the variant in which the result is 0 everywhere, and if beta was given, the variant y = beta."""
    yield Variant(result=np.zeros_like(case.x), values={"what": "0"})
    if case.has_beta:
        yield Variant(result=np.broadcast_to(case.beta, case.x.shape), values={"what": "beta"})


def _take_infinite(case: Case) -> Variant | None:
    """Return the variant that is y where y is infinite or NaN, and NaN elsewhere; None if y has no infinity."""
    what = "infinite or NaN" if np.isnan(case.y).any() else "infinite"
    result = np.where(np.isfinite(case.y), np.nan, case.y)
    return Variant(result=result, values={"what": what}) if np.isinf(case.y).any() else None


OF_COPIES = (
    Row("where-input", lambda c: Variant(result=c.x)),
    Row("where-zeros", _take_zeros),
    Row("where-nan", lambda c: Variant(result=np.full_like(c.x, np.nan))),
    Row("where-infinite", _take_infinite),
)  # fmt: skip
"""The faults of x, 0, NaN or infinity in a part of y, in place of the result."""

NOT_FINITE = OF_COPIES[2:]

OF_REGIONS = {name: Row(f"where-{name}") for name in ("index", "region", "values")}
"""The faults of a wrong part of y whose content no other fault names, by the part's kind."""

UNKNOWN = {
    "gamma": Row("affine-unknown-gamma"),
    **{name: Row(f"stats-unknown-{name}") for name in ("divisor", "mean", "both")},
}
"""The faults of wrong statistics or parameters that no other fault explains, by the wrong number."""

CAST = Row("after-cast")
"""The fault of a right result in half precision that was saved in another dtype."""

MASKED = Row("after-masked")
"""The fault of values that do not count and have another result than was asked for, beside a right norm."""
