"""Faults in the set of values that the statistics of a group are computed from, and in their count."""

from __future__ import annotations

import functools
import itertools
import math
from collections import Counter
from typing import TYPE_CHECKING, Any

import numpy as np

from normcli.checking.fault import Row, list_padded_counts, list_padded_moments
from normcli.identifying.faults.case import average
from normcli.identifying.faults.tables.dividing import replace_mean
from normcli.identifying.faults.variant import NEAR, Variant, is_near, label
from normcli.identifying.sampling import spread_indices
from normcli.norms.options import find_option
from normcli.tuples import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from numpy.typing import NDArray

    from normcli.dtypes import Floats
    from normcli.identifying.faults.case import Case

_MOST_PARTS = 64
"""The most equal parts into which an axis is split, and the most indices that are tried one by one."""

_VARIANCE = "the variance is"

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
        def add_squares(centre: Floats) -> Floats:
            return case.measure_square(centre) * case.freedom

        for zeros in _list_paddings(case):
            every = list_padded_moments(case.centre, add_squares, case.count, case.freedom, zeros)[what]
            variants = (Variant(mean, square=square) for mean, square in every)
            yield from label(variants, 1, count=zeros)

    return vary


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
        if count != case.freedom and not (case.centres and count in (n - 1, n)):  # which ddof says
            square = Variant(square=case.square * case.freedom / count)
            yield from label([square], 1, what="the squares", count=count, n=f"{case.freedom:g}")
        if case.centres and count != n:
            moved = replace_mean(case, case.own_mean * (n / count))
            yield from label(moved, 1, what="the values", count=count, n=n)
            mean, factor = case.own_mean * (n / count), case.freedom / count
            squares = case.measure_square(mean), case.own_square
            both = (Variant(mean, square=square * factor) for square in squares)
            yield from label(both, 1, what="values, and of squares,", count=count, n=n)


def _list_lines(case: Case) -> Iterator[tuple[str, Floats]]:
    """Yield pairs (name, x − mean in another shape), with values along which a kernel may take only a part.

    First, all values of a group are the last axis: shape (*kept axes, 1, values of a group). If several reduced
    axes are longer than 1, then each is the last axis: shape (*kept axes, other values of a group, length).
    """
    rows = case.lay_rows(case.deviations)
    shape = rows.shape[: rows.ndim - len(case.axes)]
    wide = [place for place, axis in enumerate(case.axes) if case.x.shape[axis] > 1]
    name = case.name_axis(case.axes[wide[0]]) if len(wide) == 1 else "a group"
    yield name, rows.reshape(*shape, 1, -1)
    if len(wide) > 1:
        for place in wide:
            moved = np.moveaxis(rows, len(shape) + place, -1)
            yield case.name_axis(case.axes[place]), moved.reshape(*shape, -1, moved.shape[-1])


class Run(NamedTuple):
    """The weights of values in sums along an axis: of a run of indices in each period, and of all others.

    Parameters
    ----------
    period : int
        The number of indices after which the run is repeated; the length of the axis for a single run.
    first, end : int
        The first index of the run in a period, and the index behind its last one.
    inside, outside : int
        The weights 0, 1 or 2 of values in the run, and of others.
    """

    period: int
    first: int
    end: int
    inside: int
    outside: int

    def weigh(self, length: int) -> Floats:
        """Return the weight of each index of an axis."""
        place = np.arange(length) % self.period
        return np.where((self.first <= place) & (place < self.end), self.inside, self.outside).astype(
            np.float64
        )

    def describe(self, name: str, length: int) -> str:
        """Return what sums do with values along an axis, as `count l=8 … 15 twice`."""
        last = "" if self.end == self.first + 1 else f" … {self.end - 1}"
        where = f"{name}={self.first}{last}"
        if self.period < length:
            where = f"{name} % {self.period} = {self.first}{last}"
        if self.inside == 0:
            return f"leave out {where}"
        return f"count {where} twice" if self.inside == 2 else f"are of {where} alone"


_PERIODS = tuple(2**power for power in range(1, 9))
"""The periods of weights: the lengths of vectors, warps and blocks of threads."""

_MOST_ENDS = 64
"""The most ends of runs in a period: in longer ones, they are multiples of a step."""

_WEIGHTS = ((1, 0), (0, 1), (2, 1))
"""The weights in a run and outside of it: alone, left out, and counted twice."""

_FEW_GROUPS = 8
"""The groups in which runs are sought."""


def _choose_step(length: int, most: int) -> int:
    """Return the least power of two of which at most `most` multiples are up to a length."""
    return 1 << max(0, -(-length // most) - 1).bit_length()


def _list_ends(period: int) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Return the first indices of the runs to try in a period, and the indices behind their last ones."""
    step = _choose_step(period, _MOST_ENDS)
    ends = sorted({*range(0, period, step), 1, period - 1, period})
    first, end = np.array([pair for pair in itertools.combinations(ends, 2) if pair != (0, period)]).T
    return first, end


def _fold(values: Floats, period: int) -> Floats:
    """Return sums over the periods of the last axis, cumulated over the indices of a period, with 0 first."""
    short = -values.shape[-1] % period
    padded = np.pad(values, [*[(0, 0)] * (values.ndim - 1), (0, short)])
    folded = padded.reshape(*values.shape[:-1], -1, period).sum(-2)
    return np.concatenate([np.zeros_like(folded[..., :1]), np.cumsum(folded, -1)], -1)


class Summed(NamedTuple):
    """Weighted sums of each group, and the right mean and variance; arrays broadcast to (groups, weights).

    Parameters
    ----------
    sums, squares : ndarray
        The sums of x − mean and of its squares, of the right mean (0 for a norm without).
    counts, divided : ndarray or int
        The sum of the weights, and the number by which sums are divided.
    own, square : ndarray
        The norm's mean and variance (or mean square).
    """

    sums: Floats
    squares: Floats
    counts: Any
    divided: Any
    own: Floats
    square: Floats

    def combine(self, *, centres: bool) -> list[tuple[str, Floats, Floats]]:
        """Return (words, mean, variance) of each way to make statistics of the sums: wrong are both, or one.

        The last three are the variance of all values about the wrong mean, E[x²] − E[x]², and the variance of a
        part, divided by the whole count.
        """
        alone = self.squares / self.divided
        own, square = (np.broadcast_to(values, alone.shape) for values in (self.own, self.square))
        if not centres:
            return [("statistics are", own, alone)]
        mean, part = (self.sums + own * self.counts) / self.divided, self.sums / self.counts
        moved = mean - own
        about = (self.squares - 2.0 * moved * self.sums + self.counts * moved**2) / self.divided
        raw = self.squares + 2.0 * own * self.sums + self.counts * own**2
        return [
            ("statistics are", mean, about),
            (_VARIANCE, own, alone),
            (_VARIANCE, own, about),
            ("the mean is", mean, square),
            ("the mean is", mean, square + moved**2),
            ("statistics are", mean, raw / self.divided - mean**2),
            ("statistics are", own + part, (self.squares - self.sums * part) / self.divided),
        ]


@functools.lru_cache(maxsize=2)  # of one case, each row of the table asks
def _list_weighted(case: Case) -> list[tuple[str, Variant]]:
    """Return pairs (kind, variant): statistics whose sums leave out or count twice some indices of an axis.

    A kind is `partial` (sums of the first indices, divided by their number), `tail-skipped` (the same, divided
    by the group size) or `weighted`. Of each way to combine such sums, the two are tried that lead nearest to
    the statistics recovered from y, if within 2 %.
    """
    found: list[tuple[str, Variant]] = []
    shape = [1 if axis in case.axes else n for axis, n in enumerate(case.x.shape)]
    for name, lines in _list_lines(case):
        length, across = lines.shape[-1], lines.shape[-2]
        rows = lines.reshape(-1, across, length)
        own = [values.reshape(-1, 1) for values in (case.centre, case.square)]
        every = [rows.sum(1), np.square(rows).sum(1), np.full((1, length), float(across)), *own]
        nearest = {each[1:]: None for each in sorted(_seek_runs(case, every))}
        seen: Counter[tuple[int, bool, bool]] = Counter()
        for way, keeps_count, run in nearest:
            is_head = run.period == length and run.first == 0 and run.inside == 1
            seen[way, keeps_count, is_head] += 1
            if seen[way, keeps_count, is_head] > _MOST_OF_A_WAY:
                continue
            sums, squares, counts = (values @ run.weigh(length)[:, None] for values in every[:3])
            summed = Summed(sums, squares, counts, case.count if keeps_count else counts, *own)
            what, mean, square = summed.combine(centres=case.centres)[way]
            one = Variant(mean.reshape(shape), square=square.reshape(shape))
            kind = ("tail-skipped" if keeps_count else "partial") if is_head else "weighted"
            values: dict[str, Any] = {
                "part": run.end,
                "skipped": length - run.end,
                "what": what,
                "how": run.describe(name, length),
            }
            found += (
                (kind, each) for each in label([one], 1 + (not is_head), name=name, length=length, **values)
            )
    return found


_MOST_OF_A_WAY = 2
"""The most runs that are tried of each way to combine sums."""


def _seek_runs(case: Case, every: Sequence[Floats]) -> Iterator[tuple[float, int, bool, Run]]:
    """Yield runs whose statistics are within 2 % of those recovered from y: distance, way, count, run.

    Parameters
    ----------
    case : Case
    every : sequence of ndarray
        Along the axis, sums of x − mean and of its squares for each group, and counts of values; and the norm's
        means and variances.
    """
    few = spread_indices(len(every[0]), _FEW_GROUPS)
    length = every[0].shape[1]
    *summed, own, square = (values[few] if len(values) > 1 else values for values in every)
    used, divisor = (values.reshape(-1, 1)[few] for values in case.used)
    periods = (length, *(period for period in _PERIODS if period < length))
    tried = [(length, np.zeros(length - 1, np.intp), np.arange(1, length), 1)]
    tried += [(period, *_list_ends(period), len(_WEIGHTS)) for period in periods if period > 1]
    for period, first, end, count in tried:
        folded = [_fold(values, period) for values in summed]
        for (inside, outside), keeps_count in itertools.product(_WEIGHTS[:count], (False, True)):
            sums, squares, counts = (
                outside * values[:, -1:] + (inside - outside) * (values[:, end] - values[:, first])
                for values in folded
            )
            trial = Summed(sums, squares, counts, case.count if keeps_count else counts, own, square)
            for way, (_, mean, variance) in enumerate(trial.combine(centres=case.centres)):
                off = np.abs(case.root(variance) / divisor - 1.0)
                off += np.abs(mean - used) / np.abs(divisor) if case.centres else 0.0
                off = np.median(off, 0)
                for best in (int(best) for best in np.argsort(off)[:_MOST_OF_A_WAY] if off[best] < NEAR):
                    run = Run(period, int(first[best]), int(end[best]), inside, outside)
                    is_tail = run.end == length == period and not inside
                    yield (
                        float(off[best]),
                        way,
                        keeps_count,
                        Run(length, 0, run.first, 1, 0) if is_tail else run,
                    )


def _find(kind: str) -> Callable[[Case], list[Variant]]:
    """Return a function that lists the variants of a case of one kind of `_list_weighted`."""
    return lambda case: [variant for one, variant in _list_weighted(case) if one == kind]


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
        step = _choose_step(length, _MOST_PARTS)
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
    axis, (start, stop) = case.axes[-1], places
    name, length = case.name_axis(axis), case.x.shape[axis]
    others = tuple(other for other in case.axes if other != axis)
    moved = case.deviations
    sums, squares = (
        np.insert(np.cumsum(one.sum(others, keepdims=True), axis), 0, 0.0, axis) for one in (moved, moved**2)
    )
    asked = option.format(places)
    for first, end in _list_slices(start, stop, length):
        count = case.count // (stop - start) * (end - first)
        total, square = (one.take([end], axis) - one.take([first], axis) for one in (sums, squares))
        moved_mean = total / count if case.centres else np.zeros_like(total)
        square = (square - count * moved_mean**2) / max(1.0, count - case.ddof)
        if (first, end) != places and is_near(case.used.divisor, case.root(square)):
            there = f"all of {name}" if end - first == length else f"{option.format((first, end))} of {name}"
            found = Variant(case.centre + moved_mean, square=square, values={"there": there})
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
    y. With a mask, parts are those of which another number of values counts, as each sample.
    """
    if case.counted is not None:
        yield from _count_masked_alike(case)
        return
    for axis in case.axes if case.centres else ():
        length, others = case.x.shape[axis], tuple(other for other in range(case.x.ndim) if other != axis)
        if length <= 2:
            continue
        means, squares = (_average_ends(case, values, axis) for values in (case.deviations, case.deviations**2))
        mean = means.mean(0)
        for square in (squares.mean(0) - mean**2, (squares - means**2).mean(0)):
            square = square * case.unbiasing
            off = np.median(np.abs(case.root(square) / case.used.divisor - 1.0), others)
            first = int(np.nan_to_num(off, nan=math.inf).argmin()) + 1
            if 2 * first != length:
                moved, square = (values.take([first - 1], axis) for values in (mean, square))
                one = Variant(case.own_mean + moved, square=square)
                yield from label([one], 1, name=case.name_axis(axis), first=first, rest=length - first)


def _count_masked_alike(case: Case) -> Iterator[Variant]:
    """Yield variants with the mean of the means of equal parts of an axis, in which unequal numbers count.

    The variance is the mean of the parts' variances, or of their squares about that mean.
    """
    assert case.counted is not None
    first = case.lay_rows(case.counted)[(0,) * (case.x.ndim - len(case.axes))]
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


def _average_ends(case: Case, values: Floats, axis: int) -> Floats:
    """Return means over the first k indices of a reduced axis, and over the rest, for each k below its length.

    The shape is that of a mean, with a first axis of 2, and with `length - 1` indices along the reduced axis.
    """
    length, others = case.x.shape[axis], tuple(other for other in case.axes if other != axis)
    sums = np.cumsum(values.mean(others, keepdims=True), axis)
    head, total = sums.take(range(length - 1), axis), sums.take([length - 1], axis)
    counts = np.arange(1.0, length).reshape([-1 if other == axis else 1 for other in range(case.x.ndim)])
    return np.stack((head / counts, (total - head) / (length - counts)))


COUNTING: Sequence[Row] = (
    Row("stats-slice", _take_other_slice, "slice"),
    Row("stats-padded-variance", _pad("variance"), "mean whole"),
    Row("stats-padded-mean", _pad("mean"), "mean whole"),
    Row("stats-padded", _pad("both"), "mean whole"),
    Row("stats-count", _miscount),
    Row("stats-partial", _find("partial"), "whole"),
    Row("stats-tail-skipped", _find("tail-skipped"), "whole"),
    Row("stats-shard", _shard),
    Row("stats-alike", _count_alike),
    Row("stats-weighted", _find("weighted"), "whole"),
    Row("stats-averaged", _average_parts),
)  # fmt: skip
"""In the order of likelihood: of rows that explain equally much, the first is named."""
