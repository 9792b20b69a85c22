"""Statistics of order: extremes, quartiles, their sums and differences."""

from __future__ import annotations

from dataclasses import dataclass
from functools import reduce
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from normcli.norms.divisors import ORDER_STATISTICS
from normcli.numerics.divisor import Solution, choose_scale_where, replace_zeros, unscale
from normcli.numerics.integers import find_limits, widen_to_pair
from normcli.numerics.leaves import Records, count_values
from normcli.numerics.moments import choose_scale
from normcli.numerics.pairs import Pair, extend, pair_add, pair_add_any, pair_negate, quick_two_sum, two_prod

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
    low, low_rest, high, high_rest : ndarray
        Each of the two is a double, ∞ and −∞ where there are no values, and what that leaves of an integer.
    extreme : ndarray of bool
        False, as comparisons neither over- nor underflow.
    count : ndarray
        How many values they are of.
    """

    low: Floats
    low_rest: Floats
    high: Floats
    high_rest: Floats
    extreme: Selected
    count: Any

    def read(self) -> dict[str, tuple[Pair, Integers | int]]:
        """Return the statistics by name: each a pair, and the k by whose 2ᵏ it is scaled."""
        low, high = (np.where(np.equal(self.count, 0), np.nan, values) for values in (self.low, self.high))
        return {"min": (Pair(low, self.low_rest), 0), "max": (Pair(high, self.high_rest), 0)}


def make_extremes(low: Pair, high: Pair, count: Any) -> Extremes:
    """Return records of the least and the largest values."""
    return Extremes(*low, *high, np.zeros(low.hi.shape, np.bool_), count)


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
    count = count_values(x, selected)
    least, largest = find_limits(x.dtype)
    # Pairs are of 0, never −0: which of the two is the least would depend on the order.
    low, high = (
        widen_to_pair(extreme.reduce(x if selected is None else np.where(selected, x, nothing), axis=-1))
        for extreme, nothing in ((np.minimum, largest), (np.maximum, least))
    )
    if selected is not None:
        low, high = (
            Pair(np.where(count > 0.0, pair.hi, nothing), np.where(count > 0.0, pair.lo, 0.0))
            for pair, nothing in ((low, np.inf), (high, -np.inf))
        )
    return make_extremes(low, high, count)


def fold_extremes(leaves: Extremes) -> Extremes:
    """Make one record of all leaves along the last axis."""
    low = find_least(Pair(leaves.low, leaves.low_rest))
    high = find_largest(Pair(leaves.high, leaves.high_rest))
    return make_extremes(low, high, np.add.reduce(leaves.count, axis=-1))


def find_least(values: Pair) -> Pair:
    """Return the least of pairs along the last axis."""
    hi = np.minimum.reduce(values.hi, axis=-1)
    if not values.lo.any():
        return Pair(hi, np.zeros_like(hi))
    lo = np.minimum.reduce(np.where(values.hi == hi[..., None], values.lo, np.inf), axis=-1)
    return Pair(hi, np.where(np.isfinite(lo), lo, 0.0))


def find_largest(values: Pair) -> Pair:
    """Return the largest of pairs along the last axis."""
    return find_least(values.map(np.negative)).map(lambda a: 0.0 - a)


class Quartiles(NamedTuple):
    """The values between which the quartiles of groups lie.

    Parameters
    ----------
    count : int or ndarray
        How many values are selected: in every group, or in each.
    values : Pair of ndarray, shape (groups, 6)
        a and b of each quartile in turn: the value below, and that above.
    quarters : ndarray of int, shape (groups, 3)
        Each quartile is a + quarters/4 · (b − a).
    """

    count: Any
    values: Pair
    quarters: Integers

    def read(self) -> dict[str, tuple[Pair, Integers | int]]:
        """Return the statistics by name: each a pair, and the k by whose 2ᵏ it is scaled."""
        exact, scale = interpolate(self)
        names = ("q1", "median", "q3")
        return {name: (exact.map(lambda a, i=i: a[:, i]), scale[:, i]) for i, name in enumerate(names)}


def interpolate(quartiles: Quartiles) -> tuple[Pair, Integers]:
    """Return the quartiles as pairs, good to 2⁻¹⁰⁴, and the k of each, by whose 2ᵏ it is scaled."""
    quarters = quartiles.quarters
    a, b = (quartiles.values.map(lambda part, i=i: part[:, i::2]) for i in (0, 1))
    b = Pair(*(np.where(quarters == 0, below, above) for below, above in zip(a, b, strict=True)))
    k = choose_scale(np.maximum(np.abs(a.hi), np.abs(b.hi)))
    a, b = (side.map(lambda part: np.ldexp(part, k)) for side in (a, b))
    once, twice = (_multiply(side, part / 4.0) for side, part in ((a, 4 - quarters), (b, quarters)))
    plain = np.where(a.hi == b.hi, a.hi, once.hi + twice.hi)  # also of infinities
    total = pair_add(once, twice)
    finite = np.isfinite(total.hi) & np.isfinite(total.lo)
    return Pair(np.where(finite, total.hi, plain), np.where(finite, total.lo, 0.0)), k


def _multiply(value: Pair, factor: Floats) -> Pair:
    """Return a float, or an integer of 64 bits, times a factor of two bits: exactly."""
    product = two_prod(value.hi, factor)
    return quick_two_sum(product.hi, product.lo + value.lo * factor)


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
