"""Faults of a mask, or of lengths: which values mean and variance are of, and by how many sums are divided."""

from __future__ import annotations

import itertools
import math
from typing import TYPE_CHECKING

import numpy as np

from normcli.checking.fault import Row, list_padded_moments
from normcli.identifying.faults.variant import MOST_SHIFTS, Variant, is_near, label
from normcli.numerics.statistics.divisor import find_freedom

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from normcli.dtypes import Floats, Selected
    from normcli.identifying.faults.case import Case


def _count(case: Case, counted: Selected, ddof: float | None = None) -> Iterator[Variant]:
    """Yield variants with statistics of the values `counted`: both, the mean alone, or the variance alone.

    With one of them alone, squares are about the mean that is subtracted, or the mean of their own values. The
    ddof is the norm's if it is None.
    """
    assert case.unmasked is not None  # of every row that needs a mask
    x, counts = case.unmasked.x, counted.sum(case.axes, keepdims=True)
    freedom, own = (
        find_freedom(case.plan, count) if ddof is None else count - ddof for count in (counts, case.counts)
    )

    def measure_square(mean: Floats) -> Floats:
        return np.asarray(np.sum((x - mean) ** 2, case.axes, keepdims=True, where=counted) / freedom)

    mean = np.sum(x, case.axes, keepdims=True, where=counted) / counts if case.centres else case.centre
    every = {
        "values count": [(mean, measure_square(mean))],
        "values count in the mean": [
            (mean, square * case.freedom / own) for square in (case.square, case.measure_square(mean))
        ],
        "values count in the variance": [(case.centre, measure_square(about)) for about in (case.centre, mean)],
    }
    for what in every if case.centres else ("values count",):
        yield from _use(what, every[what])


def _use(what: str, every: Iterable[tuple[Floats, Floats]]) -> Iterator[Variant]:
    """Yield a variant for each mean and variance, with `what` for the fault's words."""
    return (Variant(mean, square=square, values={"what": what}) for mean, square in every)


def _count_all(case: Case) -> Iterator[Variant]:
    """Yield variants in which values count that should not: all of them.

    Nothing for the mean and variance of a slice, whose faults are those of another slice.
    """
    if "mask" in case.parts and case.has_moments:
        every = np.ones_like(case.judged)
        yield from label(_count(case, every), which="masked")
        ddof = 1.0 - case.ddof
        for one in _count(case, every, ddof) if case.centres else ():
            yield from label([one], which="masked", what=f"{one.values['what']} with ddof {ddof:g}")
    elif case.unmasked is not None and not case.has_moments:
        which = "masked" if "mask" in case.parts else "not in the slice"
        yield Variant(result=case.unmasked.right.values, values={"what": "values count", "which": which})


def _move_ends(case: Case) -> Iterator[Variant]:
    """Yield variants in which runs of values that count, along an axis, begin or end elsewhere.

    They are a neighbour longer or shorter, counted from the end, cut at an index, or of other samples: those of
    the samples in the order of their lengths.
    """
    counted = case.counted
    assert counted is not None  # of every row that needs a mask
    for axis, length in enumerate(counted.shape):
        if np.array_equal(counted, np.broadcast_to(counted.take([0], axis), counted.shape)):
            continue
        padded = np.pad(counted, [(int(other == axis),) * 2 for other in range(counted.ndim)])
        before, after = (padded.take(range(first, first + length), axis) for first in (0, 2))
        moved = {
            "ends one later": counted | before, "ends one earlier": counted & after,
            "begins one later": counted & before, "begins one earlier": counted | after,
            "is counted from the end": np.flip(counted, axis),
        }  # fmt: skip
        lengths = counted.sum(axis, keepdims=True)
        for other in (other for other in case.axes if other != axis and counted.shape[other] > 1):
            order = np.argsort(-lengths, other, kind="stable")
            sorted_ = np.take_along_axis(counted, np.broadcast_to(order, counted.shape), other)
            moved[f"is of another {case.name_axis(other)}, in the order of lengths"] = sorted_
        name, index = (
            case.name_axis(axis),
            np.arange(length).reshape([-1 if other == axis else 1 for other in range(counted.ndim)]),
        )
        for what, other in moved.items():
            yield from label(_count(case, other), name=name, what=what)
        for end in range(1, min(length, MOST_SHIFTS)):
            both = next(_count(case, counted & (index < end)))
            if is_near(case.used.divisor, case.find_divisor(both)):
                yield from label([both], 1, name=name, what=f"ends before {name}={end}")


def _pad(case: Case) -> Mapping[str, list[tuple[Floats, Floats]]]:
    """Return the forms of mean and variance in which masked values are zeros of padding, by their fault."""
    zeros = math.prod(case.x.shape[axis] for axis in case.axes) - case.counts

    def add_squares(centre: Floats) -> Floats:
        return case.measure_square(centre) * case.freedom

    return list_padded_moments(case.centre, add_squares, case.counts, case.freedom, zeros)


def _divide_by_all(case: Case) -> Iterator[Variant]:
    """Yield variants whose sums of values that count are divided by the number of all values of the group."""
    forms = _pad(case)
    _, *both, _ = forms["both"]
    yield from _use("squares", forms["count"])
    if case.centres:
        yield from itertools.chain(_use("values", forms["mean"]), _use("values and squares", both))


def _count_zeros(case: Case) -> Iterator[Variant]:
    forms = _pad(case)
    return itertools.chain(
        _use("the variance", forms["variance"]), _use("mean and variance", forms["both"][::3])
    )


MASKING: Sequence[Row] = (
    Row("stats-masked", _count_all),
    Row("stats-mask-inverted", lambda c: next(_count(c, ~c.counted)), "mask moments"),
    Row("stats-mask-divisor", _divide_by_all, "mask moments"),
    Row("stats-mask-zeros", _count_zeros, "mask mean moments"),
    Row("stats-mask-end", _move_ends, "mask moments"),
)  # fmt: skip
"""In the order of likelihood: of rows that explain equally much, the first is named."""
