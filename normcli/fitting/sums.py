"""The sums that statistics are made of: kept without any rounding, so that they add up in any order."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from normcli.errors import DataError
from normcli.norms.divisors import Measurement
from normcli.norms.table import Centre
from normcli.numerics.divisor import choose_scale_where
from normcli.numerics.fixed import Fixed
from normcli.numerics.lengths import Lengths
from normcli.numerics.moments import Moments
from normcli.numerics.order_statistics import Extremes
from normcli.numerics.pairs import Pair, pair_root

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from normcli.dtypes import Floats, Integers
    from normcli.norms.plan import Plan


_SMALL, _LARGE = 2.0**-400, 2.0**400
"""Groups whose magnitudes lie outside are scaled, so that no square over- or underflows."""


@dataclass(slots=True)
class Sums:
    """The exact sums of groups, one number for each group.

    Parameters
    ----------
    total, square : Fixed
        Σx and Σx² of the finite values.
    count : ndarray of int64
        How many are finite.
    nan, above, below : ndarray of int64
        How many are NaN, inf and -inf.
    low, high : ndarray of float64
        The extremes of what is not NaN; inf and -inf where nothing is.
    deviation : Fixed
        The sum of the deviations (ddof 0) of each sample's values; 0 where samples have none of their own.
    images : ndarray of int64
        Of how many samples.
    """

    total: Fixed
    square: Fixed
    count: Integers
    nan: Integers
    above: Integers
    below: Integers
    low: Floats
    high: Floats
    deviation: Fixed
    images: Integers

    @classmethod
    def zeros(cls, groups: int) -> Sums:
        """Return the sums of nothing."""
        count, nan, above, below, images = (np.zeros(groups, dtype=np.int64) for _ in range(5))
        total, square, deviation = (Fixed.zeros(groups) for _ in range(3))
        low, high = np.full(groups, np.inf), np.full(groups, -np.inf)
        return cls(total, square, count, nan, above, below, low, high, deviation, images)

    def take(self, groups: NDArray[np.intp]) -> Sums:
        """Return the sums of some groups, in an order."""
        taken = Sums(**{member.name: getattr(self, member.name) for member in fields(self)})
        for member in fields(self):
            held = getattr(self, member.name)
            part = Fixed(held.digits[:, groups], held.low) if isinstance(held, Fixed) else held[groups]
            setattr(taken, member.name, part)
        return taken

    def merge(self, other: Sums) -> None:
        """Add the sums of other values: exact, so that neither order nor grouping changes a bit."""
        for name in ("total", "square", "deviation"):
            getattr(self, name).merge(getattr(other, name))
        for name in ("count", "nan", "above", "below", "images"):
            getattr(self, name).__iadd__(getattr(other, name))
        np.minimum(self.low, other.low, out=self.low)
        np.maximum(self.high, other.high, out=self.high)


class Solved(NamedTuple):
    """The moments and extremes that sums amount to, one number for each group.

    Parameters
    ----------
    moments : Moments, Lengths or Extremes
        As `solve` takes them; their count is that of the values that the statistics are of.
    low, high : ndarray
        NaN where there is no value, or NaN has spread.
    image_std : ndarray or None
        The mean of the samples' own deviations.
    """

    moments: Moments | Lengths | Extremes
    low: Floats
    high: Floats
    image_std: Floats | None


def solve_sums(plan: Plan, sums: Sums, *, omits_nan: bool, images: bool) -> Solved:
    """Round sums, once, to the moments that divisors and statistics are made of.

    Parameters
    ----------
    plan : Plan
    sums : Sums
    omits_nan : bool
        Whether NaN does not count; it spreads otherwise.
    images : bool
        Whether samples have deviations of their own.
    """
    infinite = sums.above + sums.below
    count = (sums.count + infinite + (0 if omits_nan else sums.nan)).astype(np.float64)
    has_nan = np.zeros(len(count), bool) if omits_nan else sums.nan > 0
    nothing = count == 0
    low = np.where(has_nan | nothing, np.nan, sums.low)
    high = np.where(has_nan | nothing, np.nan, sums.high)
    moments: Moments | Lengths | Extremes
    if plan.norm.divisor.measurement is Measurement.EXTREMES:
        moments = Extremes(low, high, np.zeros(len(low), np.bool_), count)
    elif plan.spec.p is not None and np.isinf(plan.spec.p):
        largest = np.maximum(np.abs(low), np.abs(high))
        scale = choose_scale_where(largest, _SMALL, _LARGE)
        length = largest if scale is None else np.ldexp(largest, scale)
        moments = Lengths(count, Pair(length, np.zeros_like(length)), scale)
    else:
        moments = _make_moments(plan, sums, count)
        _set_not_finite(plan, moments, sums, has_nan | nothing)
    image_std = None
    if images:
        integers, exponent = sums.deviation.integers()
        quotients = [
            _divide(a, max(1, n), exponent)[0] for a, n in zip(integers, sums.images.tolist(), strict=True)
        ]
        image_std = np.where(has_nan | (infinite > 0) | (sums.images == 0), np.nan, np.array(quotients))
    return Solved(moments, low, high, image_std)


def solve_deviations(total: Fixed, square: Fixed, count: Floats) -> Floats:
    """Return √(m2 / n) of each group, and 0 where there is no value."""
    totals, t = total.integers()
    squares, s = square.integers()
    base = min(s, 2 * t)
    roots = []
    for a, b, n in zip(totals, squares, count.astype(np.int64).tolist(), strict=True):
        m2 = max(0, ((n * b) << (s - base)) - ((a * a) << (2 * t - base)))
        k = -((m2.bit_length() + base) // 2)  # neither the quotient nor its root leaves a double's range
        quotient = _divide(m2, max(1, n * n), base + 2 * k)
        roots.append(float(np.ldexp(pair_root(Pair(*map(np.float64, quotient))).hi, -k)))
    return np.array(roots)


def require_no_nan(sums: Sums, name: str) -> None:
    """Raise `DataError` if any value was NaN."""
    count = int(sums.nan.sum())
    if count:
        raise DataError(
            f"{name}: {count} value{'s are' if count > 1 else ' is'} NaN; --nan omit leaves such out"
        )


def _set_not_finite(plan: Plan, moments: Moments, sums: Sums, unknown: NDArray[np.bool_]) -> None:
    """Set the moments of groups that hold NaN or infinities."""
    above, below = sums.above > 0, sums.below > 0
    infinite = (above | below) & ~unknown
    if not (infinite | unknown).any():
        return
    centred = plan.norm.centre is Centre.MEAN
    if centred:
        moments.mean.hi[infinite] = np.where(above & below, np.nan, np.where(above, np.inf, -np.inf))[infinite]
        moments.mean.hi[unknown] = np.nan
    moments.m2.hi[infinite] = np.nan if centred else np.inf
    moments.m2.hi[unknown] = np.nan
    for pair in (moments.mean, moments.m2):
        pair.lo[infinite | unknown] = 0.0


def _make_moments(plan: Plan, sums: Sums, count: Floats) -> Moments:
    """Return count, mean and m2 of each group, as pairs rounded from the exact sums."""
    largest = np.maximum(np.abs(sums.low), np.abs(sums.high))
    scale = choose_scale_where(largest, _SMALL, _LARGE)
    shifts = [0] * len(count) if scale is None else scale.tolist()
    centred = plan.norm.centre is Centre.MEAN
    totals, t = sums.total.integers()
    squares, s = sums.square.integers()
    base = min(s, 2 * t)
    rows = []
    for total, square, n, k in zip(totals, squares, sums.count.tolist(), shifts, strict=True):
        if n == 0:
            rows.append((0.0, 0.0, 0.0, 0.0))
        elif not centred:
            rows.append((0.0, 0.0, *_divide(square, 1, s + 2 * k)))
        else:
            scatter = ((n * square) << (s - base)) - ((total * total) << (2 * t - base))
            rows.append((*_divide(total, n, t + k), *_divide(max(0, scatter), n, base + 2 * k)))
    mean, mean_rest, m2, m2_rest = np.array(rows, dtype=np.float64).reshape(-1, 4).T.copy()
    return Moments(count, Pair(mean, mean_rest), Pair(m2, m2_rest), scale)


def _divide(numerator: int, denominator: int, exponent: int) -> tuple[float, float]:
    """Return numerator · 2^exponent / denominator as a pair: the nearest double, and what it is short of."""
    if exponent >= 0:
        numerator <<= exponent
    else:
        denominator <<= -exponent
    try:
        high = numerator / denominator
    except OverflowError:
        return (np.inf if numerator > 0 else -np.inf), 0.0
    over, under = high.as_integer_ratio()
    return high, (numerator * under - over * denominator) / (denominator * under)
