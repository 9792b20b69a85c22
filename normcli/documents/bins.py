"""Histograms before they are drawn: bins, counts, round ticks, and marks on the scale."""

from __future__ import annotations

import functools
import math
from typing import TYPE_CHECKING, Any

import numpy as np

from normcli.numerics.rounding import widen
from normcli.results.normalized_part import normalize_one_group
from normcli.tuples import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from normcli.dtypes import Selected
    from normcli.results.result import Result

FEWEST_BINS, MOST_BINS = 5, 48

_SPARE, _MOST_SPARE = 4.0, 10.0
"""Input and output share a scale if it is up to 4 times as long as the range of either; groups, up to 10."""

_MOST_STEPS = 6


class BinCounts(NamedTuple):
    """A histogram: counts in bins, and the mean and deviation of the values.

    Parameters
    ----------
    counts : ndarray of int, shape (bins,)
        The number of values in each bin.
    edges : ndarray of float64, shape (bins + 1,)
        The edges of the bins, ascending; the last bin includes its upper edge.
    others : int
        The number of values that are not finite, which are in no bin.
    mean, std : float
        Mean and deviation of the values, in doubles; NaN without values, and if one is not finite.
    """

    counts: NDArray[np.intp]
    edges: NDArray[np.float64]
    others: int
    mean: float = math.nan
    std: float = math.nan

    @property
    def ends(self) -> tuple[float, float]:
        """The lower edge of the first bin and the upper edge of the last."""
        return float(self.edges[0]), float(self.edges[-1])

    def locate(self, value: float) -> float:
        """Return a value's position between the ends of the bins: 0 at the lower end, 1 at the upper."""
        low, high = (end / 2 for end in self.ends)  # the difference could overflow
        return (value / 2 - low) / (high - low)

    def measure_bars(self, *, log: bool) -> list[float]:
        """Return the heights of the bars: the counts, or with `log` the logarithms of 1 + count."""
        counted = np.log1p(self.counts) if log else self.counts.astype(np.float64)
        return list(counted.tolist())

    @property
    def marks(self) -> dict[str, float]:
        """The values at which marks are drawn, by name: `0`, `mean`, `−σ` and `+σ` (mean ∓ deviation).

        Only marks within the bins are there.
        """
        found = {"0": 0.0, "−σ": self.mean - self.std, "+σ": self.mean + self.std, "mean": self.mean}
        return {name: place for name, place in found.items() if self.edges[0] <= place <= self.edges[-1]}


class HistogramPair(NamedTuple):
    """The histograms of a group's input and of its output."""

    input: BinCounts
    output: BinCounts


def collect_pairs(
    result: Result, groups: Sequence[int], bins: int | None = None, most: int = MOST_BINS
) -> list[HistogramPair]:
    """Return the histograms of input and output of each group; without groups, one pair of all values.

    Only values that count enter the histogram of a group. All inputs have the same bins, and so have all
    outputs, unless the shared bins are over ten times as wide as the range of some group: then each group has
    bins of its own. Inputs and outputs share their bins if these are at most four times as wide as either's.

    Parameters
    ----------
    result : Result
    groups : sequence of int
        The numbers of groups, in C order.
    bins : int, optional
        The number of bins; None: `choose_bins` chooses it.
    most : int
        The most bins that are then chosen.
    """
    view = result.input.reshape(result.plan.grid.view_shape)
    raw = []
    for group in groups:
        before = np.asarray(view[result.plan.grid.select_group(group)]).reshape(-1)
        counts = _find_counting(result, group)
        raw.append((before[counts], normalize_one_group(result, group)[counts]))
    raw = raw or [(result.input.reshape(-1), result.normalized.reshape(-1))]
    inputs, outputs = ([widen(part) for part in side] for side in zip(*raw, strict=True))
    choose = functools.partial(choose_bins, bins=bins, most=most)
    scales = [choose(inputs), choose(outputs)]
    both = choose([*inputs, *outputs])
    if _measure(both) <= _SPARE * min(map(_measure, scales)):
        scales = [both, both]
    counted = []
    for side, scale in zip((inputs, outputs), scales, strict=True):
        own = [choose([part]) for part in side]
        shortest = min(
            (_measure(edges) for edges, part in zip(own, side, strict=True) if _varies(part)), default=0
        )
        shares = _measure(scale) <= _MOST_SPARE * shortest or not shortest
        counted.append(
            [count_in_bins(part, scale if shares else edges) for edges, part in zip(own, side, strict=True)]
        )
    return [HistogramPair(before, after) for before, after in zip(*counted, strict=True)]


def share_no_scale(pairs: Sequence[HistogramPair]) -> bool:
    """Whether some histograms of inputs, or of outputs, have other bins than those of the first group."""
    return any(
        part.edges is not first.edges for pair in pairs for part, first in zip(pair, pairs[0], strict=True)
    )


def _varies(values: NDArray[Any]) -> bool:
    finite = values[np.isfinite(values)]
    return bool(finite.size) and bool((finite != finite[0]).any())


def _find_counting(result: Result, group: int) -> Selected | slice:
    """Return a mask, or a full slice for all, of the values of a group that count in its statistics."""
    if result.selection is None:
        return slice(None)
    grid = result.plan.grid
    return result.selection.select(result.input, grid.locate_values(group, np.arange(grid.group_size)))


def _measure(edges: NDArray[np.float64]) -> float:
    return float(edges[-1] / 2 - edges[0] / 2)  # the whole could overflow


def choose_bins(
    values: Sequence[NDArray[Any]], bins: int | None = None, most: int = MOST_BINS
) -> NDArray[np.float64]:
    """Return the edges of bins of one width that hold all finite values, shape (bins + 1,), in float64.

    The default width is the median over the groups of NumPy's `auto`: the smaller of 2 · IQR / ∛n (Freedman &
    Diaconis 1981) and range / (log₂ n + 1) (Sturges 1926). Equal values lie in the middle of the bins; without
    values they reach from 0 to 1.

    Parameters
    ----------
    values : sequence of ndarray
        The values of each group.
    bins : int, optional
        The number of bins; None: range / width, at least `FEWEST_BINS` and at most `most`.
    most : int
        The most bins that are then chosen.
    """
    finite = [part[np.isfinite(part)] for part in values]
    low = min((float(part.min()) for part in finite if part.size), default=0.0)
    high = max((float(part.max()) for part in finite if part.size), default=1.0)
    widths = [width for part in finite if (width := _find_width(part))]
    wanted = (high / 2 - low / 2) / float(np.median(widths)) if widths else 0.0
    count = bins or max(FEWEST_BINS, min(most, math.ceil(min(wanted, most))))
    if not low < high:
        room = abs(low) / 2 or 0.5
        low, high = low - room, high + room
    steps = np.arange(count + 1) / count
    edges = low * (1 - steps) + high * steps  # a difference could overflow
    return np.clip(np.maximum.accumulate(edges), low, high)  # between neighbours, rounding exchanges some


def _find_width(values: NDArray[Any]) -> float:
    """Return half a bin's width for finite values (the width itself may overflow); 0 if all are equal."""
    if not values.size:
        return 0.0
    low, first, third, high = np.quantile(values / 2, (0, 0.25, 0.75, 1)).tolist()
    widths = (2 * (third - first) / values.size ** (1 / 3), (high - low) / (math.log2(values.size) + 1))
    return min((width for width in widths if width > 0), default=0.0)


def count_in_bins(values: NDArray[Any], edges: NDArray[np.float64]) -> BinCounts:
    """Return the histogram of values in bins with these edges; values that are not finite are counted apart.

    Examples
    --------
    >>> count_in_bins(np.array([0.0, 0.4, 1.0, np.nan]), np.array([0.0, 0.5, 1.0])).counts
    array([2, 1])
    """
    finite = values[np.isfinite(values)].astype(np.float64)
    counts = np.histogram(finite, edges)[0]
    if finite.size < max(1, values.size):
        return BinCounts(counts, edges, values.size - finite.size)
    scale = float(np.abs(finite).max()) or 1.0  # squares could leave the range of doubles
    mean, std = float((finite / scale).mean()) * scale, float((finite / scale).std()) * scale
    return BinCounts(counts, edges, values.size - finite.size, mean, std)


def choose_ticks(low: float, high: float) -> list[float]:
    """Return round numbers from `low` to `high`, up to seven: multiples of 1, 2 or 5 times a power of ten.

    If the two are equal, or one is not finite, the result is [low].

    Examples
    --------
    >>> choose_ticks(-1.6, 9.0), choose_ticks(0.0, 0.25)
    ([0.0, 2.0, 4.0, 6.0, 8.0], [0.0, 0.05, 0.1, 0.15, 0.2, 0.25])
    """
    rough = high / _MOST_STEPS - low / _MOST_STEPS
    if not 0 < rough < math.inf:
        return [low]
    exponent = math.floor(math.log10(rough))
    steps = (float(f"{digit}e{exponent}") for digit in (1, 2, 5, 10))
    step = next(step for step in steps if step >= rough * (1 - 1e-9))
    first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
    return [float(f"{number * step:.12g}") for number in range(first, last + 1)]
