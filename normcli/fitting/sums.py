"""The sums that statistics are made of: kept without any rounding, so that they add up in any order."""

from __future__ import annotations

import math
from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from normcli.errors import DataError
from normcli.norms.divisors import Measurement
from normcli.numerics.deciding import is_double_decided
from normcli.numerics.pairs import (
    Pair,
    find_largest,
    lower_at,
    pair_divide,
    pair_negate,
    pair_root,
    raise_at,
    two_prod,
)
from normcli.numerics.rational import ExactSums, find_root, round_once
from normcli.numerics.statistics.lengths import Lengths
from normcli.numerics.statistics.moments import find_moments
from normcli.numerics.statistics.order_statistics import make_extremes
from normcli.numerics.sums.fixed_point import ALL, Fixed
from normcli.numerics.sums.leaf_records import make_leaves
from normcli.printable import agree

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from normcli.dtypes import Floats, Integers
    from normcli.norms.plan import Plan
    from normcli.numerics.statistics.moments import Moments
    from normcli.numerics.statistics.order_statistics import Extremes


_SMALL, _LARGE = 2.0**-400, 2.0**400
"""The bounds between which deviations are rounded from pairs of doubles; outside, from exact integers."""

_DIGITS, _SQUARED_DIGITS = range(-480, 449), range(-960, 865)
"""Exponents of digits, of sums and of sums of squares, for which all products stay within float64."""


_EXACT, _COUNTED = ("total", "square", "deviation"), ("count", "nan", "above", "below", "images")
"""The fields that are exact sums, and those that are counts."""


@dataclass(slots=True)
class Sums:
    """The exact sums of groups, one number for each group.

    Parameters
    ----------
    total, square : Fixed
        Σx and Σx² of the finite values.
    count : ndarray of int64
        The number of finite values.
    nan, above, below : ndarray of int64
        The numbers of values that are NaN, inf and -inf.
    low, high : Pair of ndarray
        The least and the largest value that is not NaN. Without one, `low` is inf and `high` -inf.
    deviation : Fixed
        The sum of the samples' standard deviations (ddof 0), each over the sample's own values of the group; 0
        if these are not measured.
    images : ndarray of int64
        The number of samples in `deviation`.
    """

    total: Fixed
    square: Fixed
    count: Integers
    nan: Integers
    above: Integers
    below: Integers
    low: Pair
    high: Pair
    deviation: Fixed
    images: Integers

    @classmethod
    def zeros(cls, groups: int) -> Sums:
        """Return the sums of a number of groups without any values."""
        count, nan, above, below, images = (np.zeros(groups, dtype=np.int64) for _ in range(5))
        total, square, deviation = (Fixed.zeros(groups) for _ in range(3))
        low, high = (Pair(np.full(groups, end), np.zeros(groups)) for end in (np.inf, -np.inf))
        return cls(total, square, count, nan, above, below, low, high, deviation, images)

    def copy(self) -> Sums:
        """Return a copy of the sums, in arrays of its own."""
        return self.take(np.arange(len(self.count)))

    def take(self, groups: NDArray[np.intp]) -> Sums:
        """Return the sums of some groups in the order of `groups`, in arrays of their own."""
        held: Iterator[Any] = (getattr(self, member.name) for member in fields(self))
        parts: Iterator[Any] = (
            each.map(lambda a: a[groups]) if isinstance(each, Pair) else each.take(groups) for each in held
        )
        return Sums(*parts)

    @property
    def size(self) -> Integers:
        """The number of all values of each group."""
        return self.count + self.nan + self.above + self.below

    def add_deviations(self, groups: Integers, deviations: Floats, count: NDArray[Any]) -> None:
        """Add the standard deviations of samples to the sums (`deviation`) of their groups, in place.

        Samples with a count of 0 are left out; every other sample adds 1 to the `images` of its group.

        Parameters
        ----------
        groups : ndarray of int
            The index of the group that each sample is added to; several samples may have one group.
        deviations : ndarray
            The standard deviation of each sample over its own values of the group.
        count : ndarray
            The number of finite values of each sample.
        """
        some = count > 0
        self.deviation.add(groups[some], deviations[some, None])
        np.add.at(self.images, groups[some], 1)

    def merge(self, other: Sums, groups: NDArray[np.intp] | slice = ALL) -> None:
        """Add group i of other sums to group `groups[i]` of these, in place; by default, to group i.

        `groups` must not name a group twice. Sums are exact, so that neither order nor grouping changes a bit.
        """
        for name in _EXACT:
            getattr(self, name).merge(getattr(other, name), groups)
        for name in _COUNTED:
            getattr(self, name)[groups] += getattr(other, name)
        lower_at(self.low, groups, other.low)
        raise_at(self.high, groups, other.high)

    def fold(self, shape: tuple[int, ...], axis: int) -> Sums:
        """Return new sums, added up along an axis of `shape`, which then has the length 1.

        The groups are numbered in C order of `shape`, before and after.
        """
        kept = tuple(1 if at == axis else length for at, length in enumerate(shape))
        sums = {name: getattr(self, name).fold(shape, axis) for name in _EXACT}
        counts = {name: np.add.reduce(getattr(self, name).reshape(shape), axis=axis) for name in _COUNTED}
        parts = sums | {name: count.reshape(-1) for name, count in counts.items()}
        folded = replace(Sums.zeros(math.prod(kept)), **parts)
        owners = np.broadcast_to(np.arange(math.prod(kept)).reshape(kept), shape).reshape(-1)
        lower_at(folded.low, owners, self.low)
        raise_at(folded.high, owners, self.high)
        return folded


def find_ends(sums: Sums, *, omits_nan: bool) -> Extremes:
    """Return the least and the largest value of each group, and the number of values that count.

    The values are NaN for a group without values, or with a NaN that is not left out (`omits_nan` False).
    """
    count = (sums.size - (sums.nan if omits_nan else 0)).astype(np.float64)
    known = (count > 0) & (omits_nan | (sums.nan == 0))
    low, high = (pair.keep(known, np.nan) for pair in (sums.low, sums.high))
    return make_extremes(low, high, count)


def solve_sums(plan: Plan, sums: Sums, *, omits_nan: bool) -> Moments | Lengths | Extremes:
    """Return the moments (mean and mean square), ℓp lengths or extremes of each group, as the norm needs them.

    They are NaN for a group without values, or with a NaN that is not left out (`omits_nan` False).
    """
    ends = find_ends(sums, omits_nan=omits_nan)
    if plan.norm.divisor.measurement is Measurement.EXTREMES:
        return ends
    if plan.spec.p is not None and np.isinf(plan.spec.p):
        low, high = Pair(ends.low, ends.low_rest), Pair(ends.high, ends.high_rest)
        sizes = zip(pair_negate(low), high, strict=True)
        return Lengths(ends.count, find_largest(Pair(*(np.stack(both, axis=-1) for both in sizes))))
    moments = _make_moments(sums.total, sums.square, ends.count, centred=plan.norm.divisor.about_mean)
    _set_not_finite(plan, moments, sums, np.isnan(ends.low))
    return moments


def find_image_std(sums: Sums, *, omits_nan: bool) -> Floats:
    """Return the mean of the samples' standard deviations in each group, rounded once.

    It is NaN for a group without samples, with infinities, or with a NaN that is not left out.
    """
    images = sums.images
    moments = _make_moments(sums.deviation, Fixed.zeros(len(images)), images.astype(np.float64), centred=True)
    for group in np.flatnonzero(moments.undecided & (images > 0)).tolist():
        moments.mean.hi[group] = round_once(moments.recall(group).mean())
    known = (images > 0) & (sums.above + sums.below == 0) & (omits_nan | (sums.nan == 0))
    return np.where(known, moments.mean.hi, np.nan)


def find_deviations(total: Fixed, square: Fixed, count: Floats) -> Floats:
    """Return √(Σ(x − mean)² / n) of each group, rounded once; 0 for a group without values."""
    return round_deviations(_make_moments(total, square, np.maximum(count, 1.0), centred=True), count)


def round_deviations(moments: Moments, count: Floats) -> Floats:
    """Return the standard deviation √(Σ(x − mean)² / n) of each group from its moments, rounded once.

    `count` has n, the number of values of each group; where it is 0, the result is 0, and `moments` must have
    been calculated with n = 1, as they are divided by n.
    """
    some, n = count > 0, np.maximum(count, 1.0)
    root = pair_root(pair_divide(moments.square, two_prod(n, n)))
    beyond = (root.hi != 0.0) & ~((root.hi > _SMALL) & (root.hi < _LARGE))
    undecided = moments.undecided | beyond | ~is_double_decided(root, moments.error + _ROOT_ERROR)
    for group in np.flatnonzero(undecided & some).tolist():
        sums = moments.recall(group)
        root.hi[group] = round_once(find_root(sums.scatter() / sums.count))
    return np.where(some, root.hi, 0.0)


_ROOT_ERROR = 2.0**-98
"""An upper bound of the relative error of a quotient of pairs and its root."""


def require_no_nan(sums: Sums, name: str) -> None:
    """Raise `DataError`, with the number of NaN, if any value of the tensor called `name` was NaN."""
    count = int(sums.nan.sum())
    if count:
        raise DataError(
            f"{name}: {count:,} {agree(count, 'value is', 'values are')} NaN; --nan omit leaves such out"
        )


def _set_not_finite(plan: Plan, moments: Moments, sums: Sums, unknown: NDArray[np.bool_]) -> None:
    """Set mean and square of groups without values, or with NaN or infinities, to NaN or ±inf, in place.

    Parameters
    ----------
    plan : Plan
    moments : Moments
        The moments of the finite values, which are changed.
    sums : Sums
        The sums, whose `above` and `below` tell the groups with infinities.
    unknown : ndarray of bool
        True for a group without values, or with a NaN that is not left out: its moments become NaN.
    """
    above, below = sums.above > 0, sums.below > 0
    infinite = (above | below) & ~unknown
    if not (infinite | unknown).any():
        return
    centred = plan.norm.divisor.about_mean
    if centred:
        moments.mean.hi[infinite] = np.where(above & below, np.nan, np.where(above, np.inf, -np.inf))[infinite]
        moments.mean.hi[unknown] = np.nan
    moments.square.hi[infinite] = np.nan if centred else np.inf
    moments.square.hi[unknown] = np.nan
    for part in (*moments.mean[1:], moments.square.lo):
        part[infinite | unknown] = 0.0
    moments.undecided[infinite | unknown] = False


def _make_moments(total: Fixed, square: Fixed, count: Floats, *, centred: bool) -> Moments:
    """Return the moments of each group from Σx, Σx² and the number of values; about the mean if `centred`."""
    sums, squares = total.distill(3, _DIGITS), square.distill(4, _SQUARED_DIGITS)
    leaves = make_leaves(sums.terms, squares.terms, sums.beyond | squares.beyond, count)
    leaves.sum_left, leaves.square_left = sums.left, squares.left

    def recall(group: int) -> ExactSums:
        return ExactSums(int(count[group]), total.recall(group), square.recall(group))

    return find_moments(leaves, count, recall, centred=centred)
