"""The evidence for a match, in bits: the numbers that a norm predicted, less the numbers fitted to y.

Groups that were centred and divided show two numbers each: the factor, and where 0 lies. A norm predicts both
from the input; a map y = a · x + b would have them by chance. A predicted number counts as many bits as y shows
of it; a fitted number (an eps that nobody uses, p, a gamma) takes as many bits away.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from normcli.tuples import NamedTuple

if TYPE_CHECKING:
    from normcli.dtypes import Floats


CERTAIN = 20.0
"""Bits that a match has to have: chance has one in a million, and some thousand hypotheses are tried."""

_COMMON = 4.0
"""Bits of the choice of an eps: about 2⁴ are in use."""

_MOST = 50.0
"""No number is seen with more bits: a float64 has 53."""

_LEAST_OF_SCALE = 10.0
"""Bits of what divides that a match has to have: any factor would do after a mean that is seen."""

_HALF_BIT = 0.5

_SMALL_EPS = 0.2
"""An eps that nobody uses is taken for one up to this part of the variances."""


class Seen(NamedTuple):
    """The factors of groups, as y shows them.

    Parameters
    ----------
    least, largest : ndarray, shape (groups,)
        The bounds of each group's factor; the largest are finite and positive.
    size : ndarray, shape (groups,)
        The divisor of each group, without eps.
    offset : ndarray, shape (groups,)
        |mean| / size.
    group_size : int
    centred : bool
    """

    least: Floats
    largest: Floats
    size: Floats
    offset: Floats
    group_size: int
    centred: bool

    def count_shift(self) -> float:
        """Return how many bits of the groups' centres the values show."""
        bits = self._count_each()
        return _add(bits, self.offset * self.size, self._width) if self.centred else 0.0

    def count_scale(self, fitted: int) -> float:
        """Return how many bits of the groups' factors the values show beyond the numbers that were fitted."""
        bits = self._count_each()
        if not fitted:
            return _add(bits, self.size, self._width)
        if _agree(self.size, self._width):
            return 0.0
        return float(np.sort(bits)[: max(0, len(bits) - fitted)].sum())

    @property
    def _width(self) -> float:
        """The relative uncertainty of the best group's factor."""
        return float(((self.largest - self.least) / self.largest).max(initial=0.0))

    def _count_each(self) -> Floats:
        """Return how many bits each group's factor is seen with."""
        width = np.clip((self.largest - self.least) / self.largest, 2.0**-_MOST, 1.0)
        bits: Floats = -np.log2(width)
        pairs_alike = self.group_size == 2 and self.centred and self.least.max() <= self.largest.min()
        return np.minimum(bits, _HALF_BIT) if pairs_alike else bits  # −1 and 1 are an order: one bit in both


def is_odd_eps(eps: float, unit: Floats) -> bool:
    """Whether an eps that is none in use is too large beside variances (or deviations) to be taken for one."""
    return eps > _SMALL_EPS * float(np.median(unit))


def weigh(seen: Seen, *, eps: float, is_fitted: bool, is_odd: bool, numbers: int = 0) -> float:
    """Return the bits of evidence for a divisor.

    Parameters
    ----------
    seen : Seen
    eps : float
        The simplest eps that fits; 0 if it is too small to show.
    is_fitted : bool
        Whether that eps is not in use anywhere.
    is_odd : bool
        Whether it is too large for an eps: then the factors are no evidence.
    numbers : int
        Other numbers that were fitted, p among them.

    Examples
    --------
    One group whose factor is known to 2⁻²⁴ says nothing once an eps was fitted to it; two say something.

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
    """Return the bits by which groups of half precision show that their statistics were not rounded to it.

    Parameters
    ----------
    least, largest, size : ndarray, shape (groups,)
        As in `Seen`; groups of one size have one rounding.
    eps : float
        Of half precision.

    Notes
    -----
    A mean square that is rounded once is off by up to eps / 4 of itself either way at least (just below a power
    of two), and its root by half of that: so likely it is that a factor lies in its bounds by chance.
    """
    with np.errstate(all="ignore"):
        bits = np.log2(eps * _RANGE_OF_ROOT / ((largest - least) / largest))
    bits = np.clip(np.nan_to_num(bits, nan=0.0), 0.0, _MOST)
    order = np.lexsort((-bits, size))
    _, first = np.unique(size[order], return_index=True)
    return float(bits[order][first].sum())


_RANGE_OF_ROOT = 0.25
"""From end to end, in units of eps."""


def _add(bits: Floats, statistic: Floats, width: float) -> float:
    """Return the bits of all groups; of one, where their statistics are the same and show one number only."""
    return float(bits.max(initial=0.0)) if _agree(statistic, width) else float(bits.sum())


def _agree(statistic: Floats, width: float) -> bool:
    largest = float(statistic.max(initial=0.0))
    return math.isfinite(largest) and float(np.ptp(statistic)) <= 2.0 * width * largest


def choose_bits(length: int, count: int) -> float:
    """Return how many bits tell which values of all are meant."""
    return math.log2(length) + (
        math.lgamma(length + 1) - math.lgamma(count + 1) - math.lgamma(length - count + 1)
    ) / math.log(2.0)
