"""Faults of a mask, or of lengths: which values mean and variance are of, and by how many sums are divided."""

from __future__ import annotations

import itertools
import math
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from normcli.checking.fault import Row
from normcli.identifying.faults.tables.counting import add_zeros, divide_sums
from normcli.identifying.faults.tables.dividing import list_moments
from normcli.identifying.faults.variant import MOST_SHIFTS, Variant, is_near, label
from normcli.numerics.statistics.divisor import find_freedom

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from normcli.dtypes import Floats, Selected
    from normcli.identifying.faults.case import Case


def _count(case: Case, counted: Selected) -> Iterator[Variant]:
    """Yield variants with statistics of the values `counted`: both, the mean alone, or the variance alone.

    With one of them alone, squares are about the mean that is subtracted, or the mean of their own values.
    """
    assert case.unmasked is not None  # of every row that needs a mask
    x, counts = case.unmasked.x, counted.sum(case.axes, keepdims=True)
    freedom = find_freedom(case.plan, counts)

    def measure_square(mean: Floats) -> Floats:
        return np.asarray(np.sum((x - mean) ** 2, case.axes, keepdims=True, where=counted) / freedom)

    mean = np.sum(x, case.axes, keepdims=True, where=counted) / counts if case.centres else case.centre
    both, of_mean, of_square = list_moments(case, mean, measure_square, case.square)
    yield from label(both[:1], what="values count")
    if case.centres:
        yield from label(of_mean, what="values count in the mean")
        yield from label(of_square, what="values count in the variance")


def _count_all(case: Case) -> Iterator[Variant]:
    """Yield variants in which values count that should not: all of them.

    Nothing for the mean and variance of a slice, whose faults are those of another slice.
    """
    if "mask" in case.parts and case.has_moments:
        every = np.ones_like(case.judged)
        yield from label(_count(case, every), which="masked")
        ddof = 1.0 - case.ddof
        other = replace(case, plan=case.plan.change_spec(ddof=ddof))
        for one in _count(other, every) if case.centres else ():
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
        name, lengths = case.name_axis(axis), counted.sum(axis, keepdims=True)
        for along in (along for along in case.axes if along != axis and counted.shape[along] > 1):
            order = np.broadcast_to(np.argsort(-lengths, along, kind="stable"), counted.shape)
            words = f"is of another {case.name_axis(along)}, in the order of lengths"
            moved[words] = np.take_along_axis(counted, order, along)
        for what, other in moved.items():
            yield from label(_count(case, other), name=name, what=what)
        index = np.arange(length).reshape([-1 if other == axis else 1 for other in range(counted.ndim)])
        for end in range(1, min(length, MOST_SHIFTS)):
            both = next(_count(case, counted & (index < end)))
            if is_near(case.used.divisor, case.find_divisor(both)):
                yield from label([both], 1, name=name, what=f"ends before {name}={end}")


def _count_masked(case: Case) -> Floats:
    return np.asarray(math.prod(case.x.shape[axis] for axis in case.axes) - case.counts)


def _divide_by_all(case: Case) -> Iterator[Variant]:
    """Yield variants whose sums of values that count are divided by the number of all values of the group."""
    masked = _count_masked(case)
    both, of_mean, of_square = divide_sums(case, case.counts + masked, case.freedom + masked)
    yield from label(of_square, what="squares")
    if case.centres:
        yield from itertools.chain(label(of_mean, what="values"), label(both, what="values and squares"))


def _count_zeros(case: Case) -> Iterator[Variant]:
    forms = add_zeros(case, _count_masked(case))
    yield from label(forms["variance"], what="the variance")
    yield from label(forms["both"][::3], what="mean and variance")


MASKING: Sequence[Row] = (
    Row("stats-masked", _count_all),
    Row("stats-mask-inverted", lambda c: next(_count(c, ~c.counted)), "mask moments"),
    Row("stats-mask-divisor", _divide_by_all, "mask moments"),
    Row("stats-mask-zeros", _count_zeros, "mask mean moments"),
    Row("stats-mask-end", _move_ends, "mask moments"),
)  # fmt: skip
"""In the order of likelihood: of rows that explain equally much, the first is named."""
