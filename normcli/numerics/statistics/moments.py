"""The moments of groups: count, mean, and the sum of squared deviations, from exact sums."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from normcli.numerics.deciding import PAIR, is_double_decided
from normcli.numerics.pairs import (
    FAINT,
    Pair,
    Triple,
    divide_triple,
    multiply_by_count,
    pair_divide,
    quick_two_sum,
    two_prod,
    two_square,
    two_sum,
)
from normcli.numerics.statistics.divisor import find_freedom
from normcli.numerics.statistics.solution import resolve

if TYPE_CHECKING:
    from collections.abc import Callable
    from fractions import Fraction

    from normcli.dtypes import Floats, Selected
    from normcli.norms.plan import Plan
    from normcli.numerics.rational import ExactSums
    from normcli.numerics.statistics.divisor import Solution
    from normcli.numerics.sums.leaf_records import Leaves

    Recall = Callable[[int], ExactSums]


@dataclass(eq=False, repr=False)
class Moments:
    """The moments of groups; `undecided` tells for which groups they are not known.

    Parameters
    ----------
    count : int or ndarray
        The number of values that count: one number for all groups, or one for each.
    mean : Triple
        Zeros for norms that do not centre.
    square : Pair
        Σ(x − mean)² times `times`; Σx² for norms that do not centre.
    times : int or ndarray
        `count` for norms that centre, else 1.
    error : ndarray
        An upper bound of the relative error of `square`; 0 where it is exact.
    undecided : ndarray of bool
        True for groups whose mean and square are not known: `recall` has to be called.
    recall : callable
        Takes the index of a group; returns its exact sums.
    """

    count: Any
    mean: Triple
    square: Pair
    times: Any
    error: Floats
    undecided: Selected
    recall: Recall

    def solve(self, plan: Plan) -> Solution:
        """Return the centre, the divisor and the statistics of groups.

        They follow from the exact sums, by `recall`, where these moments do not decide how a result is rounded.
        """
        freedom = np.asarray(find_freedom(plan, self.count), dtype=np.float64)
        freedom = np.where(freedom > 0.0, freedom, np.nan)
        parts = two_prod(np.asarray(self.times, dtype=np.float64), freedom)
        is_shift = (np.frexp(parts.hi)[0] == 0.5) & (parts.lo == 0.0)  # by a power of two, nothing is rounded
        square, error = pair_divide(self.square, parts), self.error + np.where(is_shift, 0.0, PAIR.error)
        finite = np.isfinite(square.hi)
        if not finite.all():
            square = square.keep(finite, self.square.hi / self.times / freedom)

        def ask(group: int) -> tuple[Fraction, Fraction | None]:
            from fractions import Fraction

            sums = self.recall(group)
            freedom = Fraction(find_freedom(plan, sums.count))
            if freedom <= 0:
                return sums.mean(), None
            if plan.norm.divisor.about_mean:
                return sums.mean(), sums.scatter() / freedom
            return Fraction(0), sums.square / freedom

        faint = (np.abs(self.mean.hi) < FAINT) & (self.mean.hi != 0.0) & np.isfinite(square.hi)
        return resolve(plan, self.mean, square, error, self.undecided | faint, ask, plan.spec.zero_rule)


_MEAN_KNOWN = 2.0**-89
"""The largest relative error of the second double of a mean; beyond it, a mean is undecided."""


def find_moments(leaves: Leaves, count: Any, recall: Recall, *, centred: bool) -> Moments:
    """Return the moments of groups from their sums.

    Parameters
    ----------
    leaves : Leaves
        One record for each group.
    count : int or ndarray
        The number of values that count: one number for all groups, or one for each.
    recall : callable
        Takes the index of a group; returns its exact sums. It is called where the leaves do not decide.
    centred : bool
        True if the mean is subtracted before values are squared.
    """
    zero = np.zeros_like(leaves.sum_0)
    if not centred:
        square = quick_two_sum(leaves.square_0, leaves.square_1)
        left = np.abs(leaves.square_2) + np.abs(leaves.square_3) + leaves.square_left
        error = 2.0 * left / np.where(square.hi > 0.0, square.hi, 1.0)
        return Moments(count, Triple(zero, zero, zero), square, 1, error, leaves.extreme, recall)
    mean, undecided = _find_mean(leaves, count)
    lost = ~np.isfinite(leaves.sum_0 + leaves.square_0)
    if lost.any():
        mean = Triple(
            np.where(lost, leaves.sum_0 / count, mean.hi), *(np.where(lost, 0.0, a) for a in mean[1:])
        )
    square, error = _find_scatter(leaves, count)
    return Moments(count, mean, square, count, error, leaves.extreme | undecided, recall)


def _find_scatter(leaves: Leaves, count: Any) -> tuple[Pair, Floats]:
    """Return n · Σ(x − mean)², as n · Σx² − (Σx)², and a bound of its relative error: 0 if it is exact."""
    first, *squares = (a for i, a in enumerate(leaves.squares) if i == 0 or a.any())
    product, rest = multiply_by_count(first, count)
    terms = [part for square in squares for part in multiply_by_count(square, count)]
    if leaves.sum_0.any():
        total, *sums = (a for i, a in enumerate(leaves.sums) if i == 0 or a.any())
        square, error = two_square(total)
        product, lost = quick_two_sum(product, -square)  # it is no larger, or nearly as large
        terms += [lost, -error]
        for i, a in enumerate(sums):
            terms += [-part for b in (2.0 * total, *(2.0 * b for b in sums[:i]), a) for part in two_prod(a, b)]
    low, left = np.zeros_like(product), np.zeros_like(product)
    for term in (term for term in terms if term.any()):
        rest, lost = two_sum(rest, term)
        low, lost = two_sum(low, lost)
        left += np.abs(lost)
    hi, mid = two_sum(product, rest)
    mid, lost = two_sum(mid, low)
    hi, lo = two_sum(hi, mid)
    left += np.abs(lost)
    if leaves.square_left.any() or leaves.sum_left.any():
        left += count * leaves.square_left + (4.0 * np.abs(leaves.sum_0) + leaves.sum_left) * leaves.sum_left
    positive = np.where(hi > 0.0, hi, np.where(leaves.square_0 > 0.0, _LEAST, 1.0))
    return Pair(hi, lo), 2.0 * left / positive


_LEAST = 2.0**-1000
"""The divisor of the error of a square that came out as 0 or less: the relative error is then huge."""


def _find_mean(leaves: Leaves, count: Any) -> tuple[Triple, Selected]:
    """Return Σx/n as three doubles, and an array that is True where its nearest double is not decided."""
    left = leaves.sum_left
    known = not left.any()
    (hi, mid, lo), endless = divide_triple(Triple(*leaves.sums), count)
    exact = ~endless & (left == 0.0)
    errors = [0.0 if known else _find_part(2.0 * left / count, size) for size in (hi, mid)]
    certain = is_double_decided(Pair(hi, mid), np.where(exact & (lo == 0.0), 0.0, PAIR.error + errors[0]))
    undecided = (~certain | np.greater(errors[1], _MEAN_KNOWN)) & np.isfinite(hi)
    return Triple(hi, mid, lo), undecided


def _find_part(left: Floats, size: Floats) -> Floats:
    """Return left / |size|; 0 where nothing is left, even of 0."""
    part: Floats = np.divide(left, np.abs(size), out=np.zeros_like(size), where=left > 0.0)
    return part
