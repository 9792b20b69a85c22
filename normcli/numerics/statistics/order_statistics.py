"""Statistics of order: extremes, quantiles, their sums and differences."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from normcli.norms.divisors import ORDER_STATISTICS
from normcli.numerics.deciding import is_double_decided
from normcli.numerics.elements.in_pairs import KNOWN
from normcli.numerics.pairs import (
    Pair,
    Triple,
    distill,
    divide_triple,
    find_largest,
    find_least,
    two_prod,
)
from normcli.numerics.rounding import find_limits, widen_to_pair
from normcli.numerics.statistics.divisor import Solution, replace_zero, replace_zeros
from normcli.numerics.sums.leaf_records import LeafRecords, count_values
from normcli.tuples import NamedTuple

if TYPE_CHECKING:
    from fractions import Fraction

    from numpy.typing import NDArray

    from normcli.dtypes import Floats, Integers, Selected
    from normcli.norms.plan import Plan
    from normcli.numerics.workspace import Workspace


class Total(NamedTuple):
    """A statistic of groups, exactly: Σ times · values / of.

    Parameters
    ----------
    times : ndarray of int, shape (terms, groups)
    values : ndarray, shape (terms, groups)
    of : int
        The divisor of the sum.
    """

    times: Integers
    values: Floats
    of: int

    def add(self, other: Total, sign: str, *, half: bool) -> Total:
        """Return the sum or the difference (by `sign`) of totals with the same `of`; half of it if `half`."""
        values = np.concatenate((self.values, other.values if sign == "+" else -other.values))
        return Total(np.concatenate((self.times, other.times)), values, self.of * (1 + half))

    def find(self, group: int) -> Fraction:
        """Return the statistic of a group, by its number, exactly; its values are finite."""
        from fractions import Fraction

        terms = zip(self.times[:, group].tolist(), self.values[:, group].tolist(), strict=True)
        return sum((times * Fraction(value) for times, value in terms if times), Fraction(0)) / self.of


@dataclass(eq=False, repr=False)
class Extremes(LeafRecords):
    """The least and the largest value of leaves or groups: all arrays of one shape.

    Parameters
    ----------
    low, high : ndarray
        The least and the largest value as doubles; ∞ and −∞ where there are no values.
    low_rest, high_rest : ndarray
        The numbers added to these where integers have more bits than a double.
    extreme : ndarray of bool
        False everywhere, as comparisons neither over- nor underflow.
    count : ndarray
        The number of values that count.
    """

    low: Floats
    low_rest: Floats
    high: Floats
    high_rest: Floats
    extreme: Selected
    count: Any

    def read(self) -> dict[str, Total]:
        """Return the exact totals of `min` and `max`, by name; their values are NaN where no value counts."""
        low, high = (np.where(np.equal(self.count, 0), np.nan, values) for values in (self.low, self.high))
        once = np.ones((1, low.size), np.int64)
        return {
            "min": _make_total(once, Pair(low, self.low_rest), 1),
            "max": _make_total(once, Pair(high, self.high_rest), 1),
        }

    def solve(self, plan: Plan) -> Solution:
        """Return the centre, the divisor and the statistics of groups."""
        return _solve(plan, self.read())


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
        True for values that count, of the shape of x; None if all count.
    """
    count = count_values(x, selected)
    least, largest = find_limits(x.dtype)
    # Pairs are of 0, never −0: which of the two is the least would depend on the order.
    low, high = (
        widen_to_pair(extreme.reduce(x if selected is None else np.where(selected, x, nothing), axis=-1))
        for extreme, nothing in ((np.minimum, largest), (np.maximum, least))
    )
    if selected is not None:
        low, high = low.keep(count > 0.0, np.inf), high.keep(count > 0.0, -np.inf)
    return make_extremes(low, high, count)


def fold_extremes(leaves: Extremes) -> Extremes:
    """Return one record for each group, made of the records of its leaves, which lie along the last axis."""
    low = find_least(Pair(leaves.low, leaves.low_rest))
    high = find_largest(Pair(leaves.high, leaves.high_rest))
    return make_extremes(low, high, np.add.reduce(leaves.count, axis=-1))


class Shares(NamedTuple):
    """The quantiles that a norm needs, as shares of the values in order.

    Parameters
    ----------
    names : tuple of str
        The names of the statistics, from the lowest share to the highest.
    parts : tuple of int
        The numerator of each share: quantile i of n values lies at rank parts[i] / of · (n − 1), counted from
        0.
    of : int
        The common denominator of the shares.
    """

    names: tuple[str, ...]
    parts: tuple[int, ...]
    of: int


QUARTILES = Shares(("q1", "median", "q3"), (1, 2, 3), 4)


class Quantiles(NamedTuple):
    """The values between which the quantiles of groups lie.

    Parameters
    ----------
    count : int or ndarray
        The number of values that count: one number for all groups, or one for each.
    values : Pair of ndarray, shape (groups, 6)
        a and b of each quantile in turn: the value below, and that above.
    parts : ndarray of int, shape (groups, 3)
        Each quantile is a + parts/of · (b − a).
    shares : Shares
        The names of the quantiles, and the `of`.
    """

    count: Any
    values: Pair
    parts: Integers
    shares: Shares

    def read(self) -> dict[str, Total]:
        """Return the exact total of each quantile, (a · (of − parts) + b · parts) / of, by its name."""
        of = self.shares.of
        times = np.stack((of - self.parts.T, self.parts.T), axis=1)
        values = self.values.map(lambda part: part.T.reshape(times.shape))
        return {
            name: _make_total(times[i], values.map(lambda part, i=i: part[i]), of)
            for i, name in enumerate(self.shares.names)
        }

    def solve(self, plan: Plan) -> Solution:
        """Return the centre, the divisor and the statistics of groups."""
        return _solve(plan, self.read())


def _make_total(times: Integers, values: Pair, of: int) -> Total:
    """Return the total (Σ times · value) / `of` of each group, where values are pairs of doubles.

    `times` has the shape (terms, groups); the arrays in `values` have as many numbers, in that order.
    """
    hi, lo = (part.reshape(times.shape) for part in values)
    if not lo.any():
        return Total(times, hi, of)
    return Total(np.concatenate((times, times)), np.concatenate((hi, lo)), of)


class RoundedStatistics(NamedTuple):
    """Statistics as sums of three doubles, each the double nearest to the remainder after those before it.

    Parameters
    ----------
    value : Triple
    error : ndarray
        An upper bound of the relative error of the sum of the first two doubles.
    undecided : ndarray of bool
        True where three doubles may not hold all of a statistic, or the first may not be the double nearest to
        it.
    finite : ndarray of bool
        True where all the values that a statistic is made of are finite.
    """

    value: Triple
    error: Floats
    undecided: Selected
    finite: Selected


_LEAST, _LARGEST = 2.0**-900, 2.0**960
"""Magnitudes between which sums neither over- nor underflow; other values are calculated one by one."""

_THIRD = 2.0**-105
"""A bound of what two doubles leave, as a part of the first."""


def _add_up(totals: list[Total]) -> RoundedStatistics:
    """Return exact totals as rounded statistics, in arrays of shape (totals, groups)."""
    shape = (max(len(total.values) for total in totals), len(totals), totals[0].values.shape[1])
    times, values = np.zeros(shape, np.int64), np.zeros(shape)
    for i, total in enumerate(totals):
        times[: len(total.times), i], values[: len(total.times), i] = total.times, total.values
    divisor = np.array([[float(total.of)] for total in totals])
    values = np.where(times, values, 0.0)
    finite: Selected = np.logical_and.reduce(np.isfinite(values), axis=0)
    large = np.logical_or.reduce(np.abs(values) > _LARGEST, axis=0)
    usable = finite & ~large
    kept = np.where(usable, values, 0.0)
    parts, left = distill(_multiply(kept, times), 3)
    (hi, mid, lo), endless = divide_triple(Triple(*parts), divisor)
    error = np.where((lo == 0.0) & ~endless, 0.0, _THIRD)
    undecided = large | left | ~is_double_decided(Pair(hi, mid), error)
    for part in (hi, mid, lo):
        undecided |= (np.abs(part) < _LEAST) & (part != 0.0)
    undecided |= np.logical_or.reduce((np.abs(kept) < _LEAST) & (kept != 0.0), axis=0)
    if not usable.all():
        plain = sum(values * (times / divisor))
        hi = np.where(usable, hi, plain)
    return RoundedStatistics(Triple(hi, mid, lo), error, undecided & finite, finite)


def _multiply(values: Floats, times: Integers) -> list[Floats]:
    """Return doubles whose exact sum is times · values, the larger ones first."""
    if (times & (times - 1) == 0).all():
        return [*(values * times)]
    products = two_prod(values, times.astype(np.float64))
    return [*products.hi, *products.lo]


def _solve(plan: Plan, totals: dict[str, Total]) -> Solution:
    """Return the centre, the divisor and the statistics of groups, from extremes or quantiles by name."""
    from normcli.numerics.rational import round_once

    row, rule = plan.norm.divisor, plan.spec.zero_rule
    for name in row.statistics:
        made_of = ORDER_STATISTICS[name].combination
        if made_of is not None:
            left, right = totals[made_of.left], totals[made_of.right]
            totals[name] = left.add(right, made_of.sign, half=made_of.half)
    found = _add_up([totals[name] for name in row.statistics])
    assert row.spread is not None  # of every divisor that goes by order
    # Where nothing is subtracted, the centre that is found is left out in the end.
    names = plan.norm.centre.statistic or row.statistics[0], row.spread
    centre, spread = map(totals.__getitem__, names)
    places = map(row.statistics.index, names)
    solution, undecided = _take(found, *places)
    solution.divisor = replace_zeros(solution.divisor, rule)
    solution.statistics = dict(zip(row.statistics, found.value.hi.copy(), strict=True))
    for place, group in np.argwhere(found.undecided).tolist():
        name = row.statistics[place]
        solution.statistics[name][group] = round_once(totals[name].find(group))

    def ask(group: int, _: int = 0) -> tuple[Fraction, Fraction | None]:
        return centre.find(group), replace_zero(spread.find(group), rule)

    solution.ask = ask
    for group in np.flatnonzero(undecided).tolist():
        solution.settle(group, *ask(group))
    return solution


def _take(found: RoundedStatistics, centre: int, spread: int) -> tuple[Solution, Selected]:
    """Return a solution: statistic `centre` (an index) as the mean, and statistic `spread` as the divisor.

    The second result is a bool array, True for groups where these are finite but undecided.
    """
    hi, mid, lo = (part[centre] for part in found.value)
    divisor = Pair(*(part[spread] for part in found.value[:2]))
    undecided = (found.undecided[centre] | found.undecided[spread]) & found.finite[[centre, spread]].all(axis=0)
    exact = (found.error[[centre, spread]] == 0.0).all(axis=0) & ~undecided
    error = np.where(exact, 0.0, KNOWN)
    return Solution(Triple(hi, mid, lo), divisor, centred=True, error=error), undecided
