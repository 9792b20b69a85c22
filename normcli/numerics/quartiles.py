"""From the values between which quartiles lie to the median, the interquartile range, and a division by it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from normcli.numerics.divisor import Solution, choose_scale_where, replace_zeros, unscale
from normcli.numerics.moments import choose_scale
from normcli.numerics.pairs import Pair, pair_add, pair_negate, two_prod

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from normcli.norms.plan import Plan

    Floats = NDArray[np.float64]

TOO_LARGE, TOO_SMALL = 2.0**960, 2.0**-902
"""Groups with quartiles outside are scaled by a power of two first.

Below, no difference to a value overflows. Above, a value that overflows as it is scaled does so anyway, divided
by the interquartile range.
"""


class Quartiles(NamedTuple):
    """What is measured of groups: the values between which their quartiles lie.

    Parameters
    ----------
    count : int or ndarray
        Of the values that count: in any group, or in each.
    values : ndarray, shape (groups, 6)
        a and b of each quartile in turn: the value below, and that above.
    quarters : ndarray of int, shape (groups, 3)
        Each quartile is a + quarters/4 · (b − a).
    """

    count: Any
    values: Floats
    quarters: NDArray[np.int64]


def interpolate(quartiles: Quartiles) -> tuple[Pair, NDArray[np.int64]]:
    """Return the quartiles as pairs, good to 2⁻¹⁰⁴, and the k of each, by whose 2ᵏ it is scaled."""
    quarters = quartiles.quarters
    a, b = quartiles.values[:, ::2], quartiles.values[:, 1::2]
    b = np.where(quarters == 0, a, b)
    k = choose_scale(np.maximum(np.abs(a), np.abs(b)))
    a, b = np.ldexp(a, k), np.ldexp(b, k)
    once, twice = (two_prod(side, part / 4.0) for side, part in ((a, 4 - quarters), (b, quarters)))
    total = pair_add(once, twice)
    plain = np.where(a == b, a, once.hi + twice.hi)  # also of infinities
    finite = np.isfinite(total.hi) & np.isfinite(total.lo)
    return Pair(np.where(finite, total.hi, plain), np.where(finite, total.lo, 0.0)), k


def solve_quartiles(plan: Plan, quartiles: Quartiles) -> Solution:
    """Turn quartiles into the centre, which is the median, and the divisor, which is their range."""
    exact, own = interpolate(quartiles)
    told = np.ldexp(exact.hi, -own)
    k = choose_scale_where(np.maximum.reduce(np.abs(told), axis=-1), TOO_SMALL, TOO_LARGE)
    shift = -own if k is None else k[:, None] - own
    first, median, third = (
        Pair(np.ldexp(exact.hi[:, i], shift[:, i]), np.ldexp(exact.lo[:, i], shift[:, i])) for i in range(3)
    )
    spread = pair_add(third, pair_negate(first))
    plain = third.hi - first.hi
    finite = np.isfinite(plain)
    spread = Pair(np.where(finite, spread.hi, plain), np.where(finite, spread.lo, 0.0))
    statistics = {"median": told[:, 1], "q1": told[:, 0], "q3": told[:, 2], "iqr": unscale(spread.hi, k)}
    divisor = replace_zeros(spread, plan.spec.zero_rule, k)
    return Solution(median, divisor, k, centred=True, statistics=statistics)
