"""Sums along an axis with weights: of a part of the values alone, without a part, or with a part twice."""

from __future__ import annotations

import functools
import itertools
from collections import Counter
from typing import TYPE_CHECKING, Any

import numpy as np

from normcli.identifying.faults.variant import NEAR, Variant, label
from normcli.identifying.sampling import spread_indices
from normcli.tuples import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from numpy.typing import NDArray

    from normcli.dtypes import Floats
    from normcli.identifying.faults.case import Case

_VARIANCE = "the variance is"


WHOLE = "a group"
"""The name of all values of a group, in place of an axis, if several reduced axes are longer than 1."""


def list_lines(case: Case) -> Iterator[tuple[str, Floats, Floats, Floats]]:
    """Yield the axes of which a kernel may take only a part: all values of a group, then each reduced axis.

    An axis is its name; at each index, the sum of x − mean and of its squares, of shape (groups, length); and
    the number of values at each index, of shape (1, length).
    """
    rows = case.lay_rows(case.deviations)
    kept = rows.ndim - len(case.axes)
    wide = [place for place, axis in enumerate(case.axes) if case.x.shape[axis] > 1]
    name = case.name_axis(case.axes[wide[0]]) if len(wide) == 1 else WHOLE
    every = [(name, rows.reshape(*rows.shape[:kept], 1, -1))]
    if len(wide) > 1:
        every += [(case.name_axis(case.axes[place]), np.moveaxis(rows, kept + place, -1)) for place in wide]
    for one, values in every:
        lines = values.reshape(case.centre.size, -1, values.shape[-1])
        counts = np.full((1, lines.shape[2]), float(lines.shape[1]))
        yield one, lines.sum(1), np.square(lines).sum(1), counts


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
        """Return the words for sums with these weights along an axis, given its name and length.

        Such as `count l=8 … 15 twice`, `leave out …`, or `are of … alone`.
        """
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


def choose_step(length: int, most: int) -> int:
    """Return the least power of two of which at most `most` multiples are up to a length."""
    return 1 << max(0, -(-length // most) - 1).bit_length()


def _list_ends(period: int) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Return the first indices of the runs to try in a period, and the indices behind their last ones."""
    step = choose_step(period, _MOST_ENDS)
    ends = sorted({*range(0, period, step), 1, period - 1, period})
    first, end = np.array([pair for pair in itertools.combinations(ends, 2) if pair != (0, period)]).T
    return first, end


def fold(values: Floats, period: int) -> Floats:
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
    own = [values.reshape(-1, 1) for values in (case.centre, case.square)]
    for name, *lines in list_lines(case):
        length, every = lines[0].shape[1], [*lines, *own]
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
        folded = [fold(values, period) for values in summed]
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


def find_weighted(kind: str) -> Callable[[Case], list[Variant]]:
    """Return a function that lists the variants of a case of one kind of `_list_weighted`."""
    return lambda case: [variant for one, variant in _list_weighted(case) if one == kind]
