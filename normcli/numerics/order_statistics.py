"""Statistics of order: extremes, quartiles, their sums and differences."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from normcli.norms.divisors import ORDER_STATISTICS
from normcli.numerics.divisor import Solution, replace_zero, replace_zeros
from normcli.numerics.integers import find_limits, widen_to_pair
from normcli.numerics.kept import is_decided, keep
from normcli.numerics.pairs import Pair, Triple, distill, find_largest, find_least, normalize
from normcli.numerics.records import Records, count_values

if TYPE_CHECKING:
    from fractions import Fraction

    from numpy.typing import NDArray

    from normcli.dtypes import Floats, Integers, Selected
    from normcli.norms.plan import Plan
    from normcli.numerics.workspace import Workspace


class Total(NamedTuple):
    """A statistic of groups as what it is: the sum of times · values, times 2^exponent.

    Parameters
    ----------
    times : ndarray of int, shape (terms, groups)
        At most 4.
    values : ndarray, shape (terms, groups)
    exponent : int
    """

    times: Integers
    values: Floats
    exponent: int

    def add(self, other: Total, sign: str, *, half: bool) -> Total:
        """Return the sum or the difference of two totals of one exponent, or half of it."""
        values = np.concatenate((self.values, other.values if sign == "+" else -other.values))
        return Total(np.concatenate((self.times, other.times)), values, self.exponent - half)

    def find(self, group: int) -> Fraction:
        """Return the statistic of a group, by its number, exactly; its values are finite."""
        from fractions import Fraction

        terms = zip(self.times[:, group].tolist(), self.values[:, group].tolist(), strict=True)
        return (
            sum((times * Fraction(value) for times, value in terms if times), Fraction(0))
            * Fraction(2) ** self.exponent
        )


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

    def read(self) -> dict[str, Total]:
        """Return the statistics by name."""
        low, high = (np.where(np.equal(self.count, 0), np.nan, values) for values in (self.low, self.high))
        once = np.ones((1, low.size), np.int64)
        return {
            "min": _make_total(once, Pair(low, self.low_rest), 0),
            "max": _make_total(once, Pair(high, self.high_rest), 0),
        }


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

    def read(self) -> dict[str, Total]:
        """Return the statistics by name."""
        times = np.stack((4 - self.quarters.T, self.quarters.T), axis=1)
        values = self.values.map(lambda part: part.T.reshape(times.shape))
        names = ("q1", "median", "q3")
        return {
            name: _make_total(times[i], values.map(lambda part, i=i: part[i]), -2)
            for i, name in enumerate(names)
        }


def _make_total(times: Integers, values: Pair, exponent: int) -> Total:
    """Return a total of values, shape (terms, groups), and of what their first doubles leave."""
    hi, lo = (part.reshape(times.shape) for part in values)
    if not lo.any():
        return Total(times, hi, exponent)
    return Total(np.concatenate((times, times)), np.concatenate((hi, lo)), exponent)


class _Rounded(NamedTuple):
    """Statistics as three doubles, each the nearest to what those before leave.

    Parameters
    ----------
    value : Triple
    error : ndarray
        How far the first two may be off, as a part of the first.
    undecided : ndarray of bool
        Where the three are not all of it, or the first is not the nearest.
    finite : ndarray of bool
        Where all values are.
    """

    value: Triple
    error: Floats
    undecided: Selected
    finite: Selected


_LEAST, _LARGEST = 2.0**-900, 2.0**1000
"""What is not between these may over- or underflow as it is added up, and is calculated by itself."""

_THIRD = 2.0**-105
"""A bound of what two doubles leave, as a part of the first."""


def _add_up(totals: list[Total]) -> _Rounded:
    """Return statistics of shape (totals, groups)."""
    shape = (max(len(total.values) for total in totals), len(totals), totals[0].values.shape[1])
    times, values = np.zeros(shape, np.int64), np.zeros(shape)
    for i, total in enumerate(totals):
        times[: len(total.times), i], values[: len(total.times), i] = total.times, total.values
    exponent = np.array([[total.exponent] for total in totals])
    values = np.where(times, values, 0.0)
    finite: Selected = np.logical_and.reduce(np.isfinite(values), axis=0)
    large = np.logical_or.reduce(np.abs(values) > _LARGEST, axis=0)
    usable = finite & ~large
    kept = np.where(usable, values, 0.0)
    # 3 times a value may be no double; 2 times it, and itself, are.
    parts, left = distill([*(kept * (times & 6)), *(kept * (times & 1))], 3)
    hi, mid, lo = normalize(Triple(*parts))
    error = np.where(lo == 0.0, 0.0, _THIRD)
    undecided = large | left | ~is_decided(Pair(hi, mid), error)
    for part in (hi, mid, lo):
        undecided |= (np.abs(part) < _LEAST) & (part != 0.0)
    hi, mid, lo = (np.ldexp(part, exponent) for part in (hi, mid, lo))
    if not usable.all():
        plain = sum(values * np.ldexp(times, exponent))
        hi = np.where(usable, hi, plain)
    return _Rounded(Triple(hi, mid, lo), error, undecided & finite, finite)


def solve_by_order(plan: Plan, measured: Extremes | Quartiles, *, exact: bool) -> Solution:
    """Return the centre, the divisor and the statistics of groups, from their extremes or quartiles."""
    from normcli.numerics.rational import round_once

    row, rule, totals = plan.norm.divisor, plan.spec.zero_rule, measured.read()
    for name in row.statistics:
        made_of = ORDER_STATISTICS[name].combination
        if made_of is not None:
            left, right = totals[made_of.left], totals[made_of.right]
            totals[name] = left.add(right, made_of.sign, half=made_of.half)
    found = _add_up([totals[name] for name in row.statistics])
    assert row.spread is not None  # of every divisor that goes by order
    centre, spread = totals[plan.norm.centre.value], totals[row.spread]
    places = [row.statistics.index(name) for name in (plan.norm.centre.value, row.spread)]
    solution, undecided = _keep(found, *places, exact=exact)
    solution.divisor = replace_zeros(solution.divisor, rule)
    solution.statistics = dict(zip(row.statistics, found.value.hi.copy(), strict=True))
    for place, group in np.argwhere(found.undecided).tolist():
        name = row.statistics[place]
        solution.statistics[name][group] = round_once(totals[name].find(group))

    def ask(group: int, _: int = 0) -> tuple[Fraction, Fraction | None]:
        return centre.find(group), replace_zero(spread.find(group), rule)

    solution.ask = ask
    for group in np.flatnonzero(undecided).tolist():
        solution.settle(group, *ask(group), float(solution.statistics[row.spread][group]), exact=exact)
    return solution


def _keep(found: _Rounded, centre: int, spread: int, *, exact: bool) -> tuple[Solution, Selected]:
    """Return what is kept of a centre and a spread, and where it is not decided."""
    hi, mid, lo = (part[centre] for part in found.value)
    low = keep(Pair(mid, lo), 0.0).value.lo
    divisor, unsure = keep(Pair(*(part[spread] for part in found.value[:2])), found.error[spread])
    if not exact:
        low, divisor = np.zeros_like(low), Pair(divisor.hi, np.zeros_like(divisor.lo))
    undecided = (unsure | found.undecided[centre] | found.undecided[spread]) & found.finite[
        [centre, spread]
    ].all(axis=0)
    return Solution(Triple(hi, mid, low), divisor, None, centred=True), undecided
