"""Statistics of order: extremes, quartiles, their sums and differences."""

from __future__ import annotations

from dataclasses import dataclass
from functools import reduce
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from normcli.norms.divisors import ORDER_STATISTICS
from normcli.numerics.divisor import Solution, choose_scale_where, replace_zeros, unscale
from normcli.numerics.leaves import Records, count_values
from normcli.numerics.moments import choose_scale
from normcli.numerics.pairs import Pair, extend, pair_add, pair_add_any, pair_negate, two_prod

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from normcli.dtypes import Floats, Integers, Selected
    from normcli.norms.plan import Plan
    from normcli.numerics.workspace import Workspace


@dataclass(slots=True)
class Extremes(Records):
    """The least and the largest value of leaves or groups: all arrays of one shape.

    Parameters
    ----------
    low, high : ndarray
        ∞ and −∞ where there are no values.
    extreme : ndarray of bool
        False, as comparisons neither over- nor underflow.
    count : ndarray
        How many values they are of.
    """

    low: Floats
    high: Floats
    extreme: Selected
    count: Any

    def read(self) -> dict[str, tuple[Pair, Integers | int]]:
        """Return the statistics by name: each a pair, and the k by whose 2ᵏ it is scaled."""
        low, high = (np.where(np.equal(self.count, 0), np.nan, values) for values in (self.low, self.high))
        zero = np.zeros_like(low)
        return {"min": (Pair(low, zero), 0), "max": (Pair(high, zero), 0)}


def measure_extremes(x: NDArray[Any], work: Workspace, selected: Selected | None = None) -> Extremes:
    """Return the least and the largest value of each leaf.

    Parameters
    ----------
    x : ndarray, shape (leaves, n)
    work : Workspace
        Not used; every function that measures leaves is given one.
    selected : ndarray of bool or None
        Which values count, of the shape of x.
    """
    low, high = (
        extreme.reduce(x if selected is None else np.where(selected, x, x.dtype.type(nothing)), axis=-1)
        for extreme, nothing in ((np.minimum, np.inf), (np.maximum, -np.inf))
    )
    # Adding 0 turns −0 into 0: which of the two is the least would depend on the order.
    low, high = low.astype(np.float64) + 0.0, high.astype(np.float64) + 0.0
    return Extremes(low, high, np.zeros(low.shape, np.bool_), count_values(x, selected))


def fold_extremes(leaves: Extremes) -> Extremes:
    """Make one record of all leaves along the last axis."""
    low, high = np.minimum.reduce(leaves.low, axis=-1), np.maximum.reduce(leaves.high, axis=-1)
    return Extremes(low, high, np.zeros(low.shape, np.bool_), np.add.reduce(leaves.count, axis=-1))


class Quartiles(NamedTuple):
    """The values between which the quartiles of groups lie.

    Parameters
    ----------
    count : int or ndarray
        How many values are selected: in every group, or in each.
    values : ndarray, shape (groups, 6)
        a and b of each quartile in turn: the value below, and that above.
    quarters : ndarray of int, shape (groups, 3)
        Each quartile is a + quarters/4 · (b − a).
    """

    count: Any
    values: Floats
    quarters: Integers

    def read(self) -> dict[str, tuple[Pair, Integers | int]]:
        """Return the statistics by name: each a pair, and the k by whose 2ᵏ it is scaled."""
        exact, scale = interpolate(self)
        names = ("q1", "median", "q3")
        return {name: (exact.map(lambda a, i=i: a[:, i]), scale[:, i]) for i, name in enumerate(names)}


def interpolate(quartiles: Quartiles) -> tuple[Pair, Integers]:
    """Return the quartiles as pairs, good to 2⁻¹⁰⁴, and the k of each, by whose 2ᵏ it is scaled."""
    quarters = quartiles.quarters
    a, b = quartiles.values[:, ::2], quartiles.values[:, 1::2]
    b = np.where(quarters == 0, a, b)
    k = choose_scale(np.maximum(np.abs(a), np.abs(b)))
    a, b = np.ldexp(a, k), np.ldexp(b, k)
    once, twice = (two_prod(side, part / 4.0) for side, part in ((a, 4 - quarters), (b, quarters)))
    plain = np.where(a == b, a, once.hi + twice.hi)  # also of infinities
    total = pair_add(once, twice)
    finite = np.isfinite(total.hi) & np.isfinite(total.lo)
    return Pair(np.where(finite, total.hi, plain), np.where(finite, total.lo, 0.0)), k


_EXTREMES_RANGE = 2.0**-900, 2.0**1022
"""Groups outside are scaled: quotients below are not exact in pairs, and differences above overflow."""

_QUARTILES_RANGE = 2.0**-902, 2.0**960
"""Groups outside are scaled.

Up to the second, no difference to a value overflows. Beyond it, a value that overflows as it is scaled
does so anyway, divided by the interquartile range.
"""


def solve_by_order(plan: Plan, measured: Extremes | Quartiles) -> Solution:
    """Return the centre, the divisor and the statistics of groups, from their extremes or quartiles."""
    divisor = plan.norm.divisor
    assert divisor.spread is not None  # of every divisor that goes by order
    read = measured.read()
    statistics = {name: unscale(pair.hi, own) for name, (pair, own) in read.items()}
    sizes = reduce(np.maximum, map(np.abs, statistics.values()))
    k = choose_scale_where(sizes, *(_QUARTILES_RANGE if isinstance(measured, Quartiles) else _EXTREMES_RANGE))
    shift = 0 if k is None else k
    scaled = {name: Pair(*(np.ldexp(a, shift - own) for a in pair)) for name, (pair, own) in read.items()}
    for name in divisor.statistics:
        made_of = ORDER_STATISTICS[name].combination
        if made_of is not None:
            left, right = scaled[made_of.left], scaled[made_of.right]
            total = pair_add_any(left, right if made_of.sign == "+" else pair_negate(right))
            scaled[name] = total.map(lambda a: a * 0.5) if made_of.half else total
            statistics[name] = unscale(scaled[name].hi, k)
    usable = replace_zeros(scaled[divisor.spread], plan.spec.zero_rule, k)
    shown = {name: statistics[name] for name in divisor.statistics}
    return Solution(extend(scaled[plan.norm.centre.value]), usable, k, centred=True, statistics=shown)
