"""The evidence for a match, in bits: the numbers that a norm predicts, less the numbers fitted to y.

Each group that was centred and divided shows two numbers, its mean and its divisor. A norm predicts both from
the input; another map y = a · x + b would agree with them only by chance. A predicted number counts the bits
to which y shows it; a fitted number (an unusual eps, p, a gamma) costs as many bits.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from normcli.tuples import NamedTuple

if TYPE_CHECKING:
    from normcli.dtypes import Floats
    from normcli.norms.plan import Plan


CERTAIN = 20.0
"""The fewest bits of a certain match: a chance of one in a million, for each of about 1,000 hypotheses."""

_COMMON = 4.0
"""The bits that the choice of a usual eps costs: there are about 2⁴."""

_MOST = 50.0
"""The most bits of one number: a float64 has 53."""

_LEAST_OF_SCALE = 10.0
"""The fewest bits of the divisors alone, as evidence for the means says nothing of the divisor."""

_HALF_BIT = 0.5

_SMALL_EPS = 0.2
"""An unusual eps is odd if it is larger than this part of the median variance."""


class FittedPlan(NamedTuple):
    """A plan whose result is y within rounding.

    Parameters
    ----------
    plan : Plan
        With the options that were fitted to y.
    exact : ndarray of float64
        The plan's result: exact if there are at least 20 bits of evidence, else perhaps to a few roundings.
    bits : float
        The evidence in bits.
    steps : Steps or None
        The power iterations that estimate σ; None for any other divisor.
    """

    plan: Plan
    exact: Floats
    bits: float
    steps: Any = None


class Seen(NamedTuple):
    """The bounds that y sets to the factor r of each group, with y = r · x̂, and the groups' statistics.

    Parameters
    ----------
    least, largest : ndarray, shape (groups,)
        The bounds of each group's factor; `largest` is finite and positive.
    size : ndarray, shape (groups,)
        The divisor of each group, without eps.
    offset : ndarray, shape (groups,)
        |mean| / size.
    group_size : int
        The number of values in a group.
    centred : bool
        True if the norm subtracts a centre.
    """

    least: Floats
    largest: Floats
    size: Floats
    offset: Floats
    group_size: int
    centred: bool

    def count_shift(self) -> float:
        """Return the bits of the groups' means that y shows; 0 for a norm without mean."""
        bits = self._count_each()
        return _add(bits, self.offset * self.size, self._width) if self.centred else 0.0

    def count_scale(self, fitted: int) -> float:
        """Return the evidence, in bits, of the groups' divisors as y shows them.

        `fitted` is the number of fitted numbers: as many groups, those with the most bits, are left out. If it
        is 0, groups with equal divisors count once; if it is above 0, and all divisors are equal, the evidence
        is 0.
        """
        bits = self._count_each()
        if not fitted:
            return _add(bits, self.size, self._width)
        if _agree(self.size, self._width):
            return 0.0
        return float(np.sort(bits)[: max(0, len(bits) - fitted)].sum())

    @property
    def _width(self) -> float:
        """The largest relative width of a group's bounds, (largest − least) / largest."""
        return float(((self.largest - self.least) / self.largest).max(initial=0.0))

    def _count_each(self) -> Floats:
        """Return the bits to which y determines each group's factor: −log2 of the relative width of its bounds.

        At most ½ for centred groups of two values (x̂ is −1 and 1), if one factor fits all groups.
        """
        bits = measure_bits(1.0, (self.largest - self.least) / self.largest)
        pairs_alike = self.group_size == 2 and self.centred and self.least.max() <= self.largest.min()
        return np.minimum(bits, _HALF_BIT) if pairs_alike else bits  # −1 and 1 are an order: one bit in both


def is_odd_eps(eps: float, unit: Floats) -> bool:
    """Whether an eps is larger than 0.2 of the median of `unit`.

    `unit` is the variance of each group, or the deviation if eps is added outside the root.
    """
    return eps > _SMALL_EPS * float(np.median(unit))


def weigh(seen: Seen, *, eps: float, is_fitted: bool, is_odd: bool, numbers: int = 0) -> float:
    """Return the bits of evidence for a norm: of its divisors and, if it has one, its means.

    It is 0 if the divisors alone have fewer than 10 bits, after 4 bits that the choice of a usual eps costs.

    Parameters
    ----------
    seen : Seen
    eps : float
        The simplest eps that fits; 0 if it is too small to show.
    is_fitted : bool
        True if the eps is not a usual one, and so counts as a fitted number.
    is_odd : bool
        True if the eps is implausibly large: then only the means are evidence, however few their bits.
    numbers : int
        The count of other fitted numbers, such as p.

    Examples
    --------
    One group whose factor is known to 2⁻²⁴ is 24 bits of evidence; with a fitted eps, it is none.

    >>> one = Seen(np.array([0.5]), np.array([0.5 + 2.0**-25]), np.array([1.0]), np.zeros(1), 8, False)
    >>> round(weigh(one, eps=0.0, is_fitted=False, is_odd=False))
    24
    >>> weigh(one, eps=3.0, is_fitted=True, is_odd=False)
    0.0
    """
    choice = _COMMON if eps > 0.0 and not is_fitted else 0.0
    scale = seen.count_scale(numbers + is_fitted) - choice
    if is_odd:
        return seen.count_shift()
    return seen.count_shift() + scale if scale >= _LEAST_OF_SCALE else 0.0


def count_fine(least: Floats, largest: Floats, size: Floats, eps: float) -> float:
    """Return the evidence of y, in bits, that statistics were not rounded to half precision.

    Parameters
    ----------
    least, largest : ndarray, shape (groups,)
        The bounds of each group's factor.
    size : ndarray, shape (groups,)
        The divisor of each group; groups with equal divisors count once.
    eps : float
        The machine epsilon of the half precision.

    Notes
    -----
    One rounding of a mean square spreads it over at least ± eps / 4 (just below a power of two), and its root
    over half of that. The narrower a factor's bounds, the less likely a rounded one lies between them by
    chance.
    """
    with np.errstate(all="ignore"):
        bits = np.nan_to_num(measure_bits(eps * _RANGE_OF_ROOT, (largest - least) / largest))
    order = np.lexsort((-bits, size))
    _, first = np.unique(size[order], return_index=True)
    return float(bits[order][first].sum())


_RANGE_OF_ROOT = 0.25
"""The width of the range over which rounding a mean square spreads its root, in machine epsilons."""


def _add(bits: Floats, statistic: Floats, width: float) -> float:
    """Return the sum of the groups' bits, or only the largest if `statistic` is about equal in all groups.

    That is so if its largest difference is at most 2 · `width` of its largest value.
    """
    return float(bits.max(initial=0.0)) if _agree(statistic, width) else float(bits.sum())


def _agree(statistic: Floats, width: float) -> bool:
    largest = float(statistic.max(initial=0.0))
    return math.isfinite(largest) and float(np.ptp(statistic)) <= 2.0 * width * largest


@np.errstate(all="ignore")
def measure_bits(spread: Floats | float, width: Floats | float) -> Floats:
    """Return the bits to which each number is known: log2 of its possible spread, divided by its width.

    They are 0 where it is known no closer than to its spread, and at most 50.
    """
    bits: Floats = np.log2(np.clip(spread / np.maximum(width, _LEAST_WIDTH), 1.0, 2.0**_MOST))
    return bits


_LEAST_WIDTH = 2.0**-1000


def choose_bits(length: int, count: int) -> float:
    """Return the bits of information in a choice of `count` of `length` values: log2(length · binomial)."""
    return math.log2(length) + (
        math.lgamma(length + 1) - math.lgamma(count + 1) - math.lgamma(length - count + 1)
    ) / math.log(2.0)
