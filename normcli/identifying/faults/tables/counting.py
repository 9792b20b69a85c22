"""Faults in the set of values that the statistics of a group are computed from, and in their count."""

from __future__ import annotations

import itertools
import math
from typing import TYPE_CHECKING

import numpy as np

from normcli.checking.fault import Row, list_padded_counts, list_padded_moments
from normcli.identifying.faults.case import average
from normcli.identifying.faults.tables.dividing import list_moments
from normcli.identifying.faults.tables.weighting import WHOLE, choose_step, find_weighted, fold, list_lines
from normcli.identifying.faults.variant import Variant, is_near, label
from normcli.norms.options import find_option

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from normcli.dtypes import Floats
    from normcli.identifying.faults.case import Case

_MOST_PARTS = 64
"""The most equal parts into which an axis is split, and the most indices that are tried one by one."""

_MOST_NAMED = 8
"""With more parts than this, statistics of a single part are not tried."""


def _list_paddings(case: Case) -> list[int]:
    """Return the numbers of zeros with which a kernel may have padded each group, in increasing order.

    They include the number that the divisors recovered from y show, as each zero adds the square of the mean.
    """
    n = case.count
    found = {end - n for end in list_padded_counts(n)}
    excess = (case.unroot(case.used.divisor, case.square) - case.eps) * case.freedom / case.own_mean**2
    solved = float(np.median(excess))
    return sorted(found | ({round(solved)} if 0.5 < solved < 4 * n else set()))


def _pad(what: str) -> Callable[[Case], Iterator[Variant]]:
    """Return a function from a case to its variants with padding, for each likely count of zeros.

    `what` is a key of `list_padded_moments`.
    """

    def vary(case: Case) -> Iterator[Variant]:
        for zeros in _list_paddings(case):
            yield from label(add_zeros(case, zeros)[what], 1, count=zeros)

    return vary


def add_zeros(case: Case, zeros: float | Floats) -> Mapping[str, list[Variant]]:
    """Return the variants of `list_padded_moments`, with `zeros` values of 0 in each group."""

    def add_squares(centre: Floats) -> Floats:
        return case.measure_square(centre) * case.freedom

    every = list_padded_moments(case.centre, add_squares, case.counts, case.freedom, zeros)
    return {what: [Variant(mean, square=square) for mean, square in forms] for what, forms in every.items()}


def _miscount(case: Case) -> Iterator[Variant]:
    """Yield variants whose sum of squares, or sum of values, is divided by another number than the norm's.

    The numbers are n − 1 and n + 1 for groups of n values, and the numbers that the divisors and means
    recovered from y show, if they are between n / 2 and 2 n, padded lengths, products of lengths of axes, 1,
    or n as an integer of 8 bits holds it. For the squares of a norm with a mean, n and n − 1 are left out: they
    are another ddof, which has a fault of its own. Nothing with running statistics, or groups of several n.
    """
    if "stored" in case.parts or case.counts.ndim:
        return
    n, counts = case.count, {case.count - 1, case.count + 1}
    solved = float(np.median(case.square * case.freedom / (case.used.divisor**2 - case.eps)))
    of_mean = float(np.median(n * case.own_mean / case.used.mean)) if case.centres else math.nan
    lengths = [length for length in case.plan.grid.shape if length > 1]
    known = {
        math.prod(some)
        for count in range(1, len(lengths) + 1)
        for some in itertools.combinations(lengths, count)
    }
    known |= {1, n % 256, *list_padded_counts(n)}
    near = {round(value) for value in (solved, of_mean) if math.isfinite(value)}
    counts |= {count for count in near if n / 2 < count < 2 * n or count in known}
    for count in sorted(counts - {0}):
        both, of_values, of_squares = divide_sums(case, count, count)
        if count != case.freedom and not (case.centres and count in (n - 1, n)):  # which ddof says
            yield from label(of_squares, 1, what="the squares", count=count, n=f"{case.freedom:g}")
        if case.centres and count != n:
            yield from label(of_values, 1, what="the values", count=count, n=n)
            yield from label(both, 1, what="values, and of squares,", count=count, n=n)


def divide_sums(case: Case, count: float | Floats, freedom: float | Floats) -> tuple[list[Variant], ...]:
    """Return variants with sums of values and squares divided by other numbers: of both, or one of them."""
    mean, factor = case.centre * (case.counts / count), case.freedom / freedom
    both, of_mean, of_square = list_moments(case, mean, lambda centre: case.measure_square(centre) * factor)
    return both, of_mean, of_square[:1]


def _share_out(case: Case, *, is_even: bool) -> Iterator[tuple[str, int, int, Floats, Floats]]:
    """Yield the statistics of the parts of each reduced axis, of at most 64 lengths, in two to 64 parts.

    Yields
    ------
    name : str
        The name of the axis.
    axis, size : int
        The axis of x, and the length of a part; the last part is shorter if the axis is no multiple of it. If
        `is_even`, none is shorter.
    mean, square : ndarray
        The mean of each part (0 for norms without one), and its variance or mean square, with the norm's ddof;
        of the shape of a mean, with the parts along the axis.
    """
    for axis in case.axes:
        length = case.x.shape[axis]
        sizes = [length // parts for parts in range(2, min(length, _MOST_PARTS) + 1) if length % parts == 0]
        step = choose_step(length, _MOST_PARTS)
        sizes += () if is_even else [size for size in range(step, length, step) if size > 1 and length % size]
        for size in sizes:
            parts, short = -(-length // size), -length % size
            if parts == case.count:
                continue
            shape = (*case.x.shape[:axis], parts, size, *case.x.shape[axis + 1 :])
            axes = tuple(other + (other >= axis) for other in case.axes)
            ends = [(0, short * (other == axis)) for other in range(case.x.ndim)]
            counted = np.ones(case.x.shape, np.bool_) if case.counted is None and short else case.counted
            counted = None if counted is None else np.pad(counted, ends).reshape(shape)
            counts = case.count / parts if counted is None else counted.sum(axes, keepdims=True)
            x = np.pad(case.x, ends).reshape(shape)
            mean = average(x, axes, counted) if case.centres else np.zeros([1] * x.ndim)
            square = average((x - mean) ** 2, axes, counted) * counts / np.maximum(1.0, counts - case.ddof)
            mean = np.broadcast_to(mean, square.shape)
            yield case.name_axis(axis), axis, size, mean.squeeze(axis + 1), square.squeeze(axis + 1)


def _take_other_slice(case: Case) -> Iterator[Variant]:
    """Yield variants with statistics over the whole axis, or over another slice of it.

    The other slices have the start, the stop or the length of the requested slice, or reach from 0 or to the
    end of the axis. Only those whose divisors fit y within 2 % are yielded.
    """
    option, places = find_option("over"), case.plan.request.over
    assert places is not None  # of every row that needs a slice
    *_, (name, *line) = list_lines(case)
    length, shape, asked = line[0].shape[1], case.centre.shape, option.format(places)
    sums, squares, counts = (fold(values, length) for values in line)
    for first, end in _list_slices(*places, length):
        total, square, count = (values[:, end] - values[:, first] for values in (sums, squares, counts))
        mean = total / count if case.centres else np.zeros_like(total)
        square = ((square - count * mean**2) / np.maximum(1.0, count - case.ddof)).reshape(shape)
        if (first, end) != places and is_near(case.used.divisor, case.root(square)):
            there = f"all of {name}" if end - first == length else f"{option.format((first, end))} of {name}"
            found = Variant(case.centre + mean.reshape(shape), square=square, values={"there": there})
            yield from label([found], int(end - first < length), asked=asked, name=name)


def _list_slices(start: int, stop: int, length: int) -> Iterator[tuple[int, int]]:
    """Yield other slices than start:stop of an axis of `length` indices, as pairs of start and stop.

    First is the whole axis, then slices from 0, from `start`, to the end, to `stop`, and of equal length.
    """
    ends = range(1, length + 1)
    every = [(first, end) for first in (0, start) for end in ends if first < end]
    every += [(first, end) for end in (length, stop) for first in range(end)]
    every += [(end - stop + start, end) for end in range(stop - start, length + 1)]
    yield from dict.fromkeys([(0, length), *every])


def _shard(case: Case) -> Iterator[Variant]:
    """Yield variants with a reduced axis in parts, with statistics of each part, or of one part for all.

    The last part may be shorter. Statistics of one part are tried for up to 8 equal parts, if their divisors
    are within 2 % of those that fit y.
    """
    for name, axis, size, *statistics in _share_out(case, is_even=False):
        length, parts = case.x.shape[axis], statistics[0].shape[axis]
        if size > 1:  # other axes are the fault of other rows
            mean, square = (each.repeat(size, axis).take(range(length), axis) for each in statistics)
            which = f"up to {size} long, each by itself" if length % size else "each by itself"
            yield from label([Variant(mean, square=square)], name=name, parts=parts, which=which)
        for part in range(parts if parts <= _MOST_NAMED and length % size == 0 else 0):
            mean, square = (each.take([part], axis) for each in statistics)
            if is_near(case.used.divisor, case.root(square)):
                one = Variant(mean, square=square)
                yield from label([one], 1, name=name, parts=parts, which=f"part {part} alone")


def _average_parts(case: Case) -> Iterator[Variant]:
    """Yield variants whose variance is the mean of the variances of equal parts, or the mean deviation squared.

    Each part's variance is about its own mean; a norm without mean has only the second, of root mean squares.
    """
    for name, axis, _, _, square in _share_out(case, is_even=True):
        averaged = [square.mean(axis, keepdims=True)] if case.centres else []
        averaged.append(np.sqrt(square).mean(axis, keepdims=True) ** 2)
        variants = (Variant(square=one) for one in averaged)
        yield from label(variants, 1, name=name, parts=square.shape[axis])


def _count_alike(case: Case) -> Iterator[Variant]:
    """Yield variants with a reduced axis in unequal parts, whose statistics are averaged without weights.

    The kernel's variance is the mean of the parts' mean squares about its mean, or of their own variances. Of
    each form with two parts, the length of the first is tried that leads nearest to the divisors recovered from
    y. With a mask, parts are equal, but unequal numbers of their values count.
    """
    if case.counted is not None:
        yield from _count_masked_alike(case)
        return
    shape = case.centre.shape
    unbiasing, divisor = (values.reshape(-1, 1) for values in (case.unbiasing, case.used.divisor))
    for name, *line in list_lines(case) if case.centres else ():
        length = line[0].shape[1]
        if name == WHOLE or length <= 2:
            continue
        sums, squares, counts = map(_split, line)
        means, squares = sums / counts, squares / counts
        mean = means.mean(0)
        for square in (squares.mean(0) - mean**2, (squares - means**2).mean(0)):
            square = square * unbiasing
            off = np.median(np.abs(case.root(square) / divisor - 1.0), 0)
            first = int(np.nan_to_num(off, nan=math.inf).argmin()) + 1
            if 2 * first != length:
                moved, square = (values[:, first - 1].reshape(shape) for values in (mean, square))
                one = Variant(case.own_mean + moved, square=square)
                yield from label([one], 1, name=name, first=first, rest=length - first)


def _count_masked_alike(case: Case) -> Iterator[Variant]:
    """Yield variants with the mean of the means of equal parts of an axis, in which unequal numbers count.

    The variance is the mean of the parts' variances, or of their squares about that mean.
    """
    assert case.counted is not None
    first = case.lay_rows(case.counted.astype(np.float64))[(0,) * (case.x.ndim - len(case.axes))]
    for name, axis, size, means, squares in _share_out(case, is_even=True) if case.centres else ():
        line = np.moveaxis(first, sorted(case.axes).index(axis), 0)
        counts = [str(np.count_nonzero(line[start : start + size])) for start in range(0, len(line), size)]
        mean, head = means.mean(axis, keepdims=True), counts[:-1][:_MOST_NAMED]
        values = {
            "name": name,
            "first": ", ".join(head + ["…"] * (len(counts) > len(head) + 1)),
            "rest": counts[-1],
        }
        for square in (squares, squares + (means - mean) ** 2) if len({*counts}) > 1 else ():
            yield from label([Variant(mean, square=square.mean(axis, keepdims=True))], 1, **values)


def _split(values: Floats) -> Floats:
    """Return sums over the first k values of the last axis, and over the rest, for each k below its length."""
    heads = np.cumsum(values, -1)
    return np.stack((heads[:, :-1], heads[:, -1:] - heads[:, :-1]))


COUNTING: Sequence[Row] = (
    Row("stats-slice", _take_other_slice, "slice"),
    Row("stats-padded-variance", _pad("variance"), "mean whole"),
    Row("stats-padded-mean", _pad("mean"), "mean whole"),
    Row("stats-padded", _pad("both"), "mean whole"),
    Row("stats-count", _miscount),
    Row("stats-partial", find_weighted("partial"), "whole"),
    Row("stats-tail-skipped", find_weighted("tail-skipped"), "whole"),
    Row("stats-shard", _shard),
    Row("stats-alike", _count_alike),
    Row("stats-weighted", find_weighted("weighted"), "whole"),
    Row("stats-averaged", _average_parts),
)  # fmt: skip
"""In the order of likelihood: of rows that explain equally much, the first is named."""
