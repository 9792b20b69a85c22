"""The errors of every algorithm on a tensor as distributions, and the condition numbers of the groups."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from normcli.algorithms.table import CASTS
from normcli.dtypes import get_largest
from normcli.tuples import NamedTuple

if TYPE_CHECKING:
    from normcli.algorithms.row_computation import Accumulation, Computation
    from normcli.checking.ulp import Tolerance
    from normcli.dtypes import Floats, Integers
    from normcli.norms.plan import Plan

_SHIFT = 47
"""The number of low bits of a float64 that its bin leaves out: 5 bits of the fraction remain, steps of 3 %."""

_LEAST, _MOST = 2.0**-64, 2.0**128
"""The range of the bins; numbers outside of it are counted in the first and the last bin."""

_FIRST, _LAST = (int(np.float64(bound).view(np.int64)) >> _SHIFT for bound in (_LEAST, _MOST))


class Distribution:
    """A histogram of numbers ≥ 0, with bins at most 3 % wide, and the largest number with its `place`.

    A place is an integer that the caller gives with each number, such as the number of a group. NaN counts as
    ∞. Without numbers, `largest` and `place` are −1.

    Examples
    --------
    >>> found = Distribution()
    >>> found.add(np.array([0.0, 1.0, 1.0, 5.0, np.inf]), np.arange(5))
    >>> found.largest, found.place, found.median
    (inf, 4, 1.0)
    """

    def __init__(self) -> None:
        self.largest, self.place = -1.0, -1
        self._bins = np.zeros(_LAST - _FIRST + 2, np.int64)

    def add(self, numbers: Floats, places: Integers) -> None:
        """Count numbers, and remember the largest with its place; `places` has an integer for each number.

        Of equally large numbers, the place of the first in a call is remembered, and over several calls the
        least place.
        """
        if not numbers.size:
            return
        numbers = np.where(np.isnan(numbers), np.inf, numbers)
        chosen = np.clip((numbers.view(np.int64) >> _SHIFT) - _FIRST, 0, len(self._bins) - 1)
        self._bins += np.bincount(chosen.reshape(-1), minlength=len(self._bins))
        at = int(numbers.argmax())
        self._keep(float(numbers.flat[at]), int(places.flat[at]))

    def merge(self, other: Distribution) -> None:
        """Add the counts of another distribution to this one, and its largest number if that is larger."""
        self._bins += other._bins
        if other.place >= 0:
            self._keep(other.largest, other.place)

    def _keep(self, number: float, place: int) -> None:
        if number > self.largest or (number == self.largest and place < self.place):
            self.largest, self.place = number, place

    @property
    def median(self) -> float:
        """The lower edge of the median's bin: 0 for the first bin, ∞ for the last; NaN without numbers."""
        count = int(self._bins.sum())
        if not count:
            return float("nan")
        chosen = int(np.searchsorted(np.cumsum(self._bins), (count + 1) // 2))
        if chosen in (0, len(self._bins) - 1):
            return 0.0 if chosen == 0 else float("inf")
        return float(np.int64(chosen + _FIRST << _SHIFT).view(np.float64))


CONDITIONS = ("mean²/var", "max |x|", "Σx²")
"""The names of the condition numbers of a group."""

SHORT = "float16"
"""The dtype whose sums soon overflow."""


class Overflow(NamedTuple):
    """The first group whose statistics, as an algorithm computes them, are infinite or NaN.

    Parameters
    ----------
    group : int
        The index of the group.
    place : int or None
        The index in the group of the value at which a sum overflows, or of the first term that is not finite;
        None if no single value is at fault.
    """

    group: int
    place: int | None


@dataclass
class Lost:
    """The number of groups whose variance an algorithm lost: it came out below 0, or as 0 though values differ.

    `first` is the index of the first such group; None without one.
    """

    count: int = 0
    first: int | None = None

    def add(self, groups: Integers) -> None:
        """Count the groups with these numbers, in ascending order."""
        if groups.size:
            self.count += len(groups)
            self.first = int(groups[0]) if self.first is None else min(self.first, int(groups[0]))


@dataclass
class Distances:
    """The distances of an algorithm's values from the exact ones, over all groups that were compared.

    Each distribution keeps its largest distance, and as its `place` the index of the group that has it.

    Parameters
    ----------
    ulp : Distribution
        Distances in units in the last place.
    excess : Distribution
        Distances as multiples of the tolerance.
    mismatches : int
        The number of values beyond the tolerance.
    """

    ulp: Distribution = field(default_factory=Distribution)
    excess: Distribution = field(default_factory=Distribution)
    mismatches: int = 0

    def merge(self, other: Distances) -> None:
        """Add the distances of other values."""
        self.mismatches += other.mismatches
        self.ulp.merge(other.ulp)
        self.excess.merge(other.excess)


@dataclass
class Finding:
    """The outcome of one computation (an algorithm, the dtype of its sums and its casts) on a tensor.

    Parameters
    ----------
    computation : Computation
    distances : Distances
        How far its values are from the exact ones.
    negative, zero : Lost
        The groups whose calculated variance is below 0, and the groups where it is 0 although values differ.
    overflow : Overflow or None
        The first group whose statistics are not finite; None without one.
    """

    computation: Computation
    distances: Distances = field(default_factory=Distances)
    negative: Lost = field(default_factory=Lost)
    zero: Lost = field(default_factory=Lost)
    overflow: Overflow | None = None

    @property
    def is_safe(self) -> bool:
        """Whether every value is within the tolerance of the exact one."""
        return self.distances.mismatches == 0

    def lose(self, negative: Integers, zero: Integers, overflow: Overflow | None) -> None:
        """Add the groups whose variance is lost, and the first whose statistics overflow, of some groups."""
        self.negative.add(negative)
        self.zero.add(zero)
        self.overflow = min((o for o in (self.overflow, overflow) if o is not None), default=None)


@dataclass
class Examination:
    """The findings of `examine`: the outcome of each computation on a tensor, and condition numbers.

    Parameters
    ----------
    plan : Plan
        The plan of the tensor, with the examined dtype as its own.
    tolerance : Tolerance
        The largest error that counts as safe, and the dtype in whose ulp it is counted.
    findings : list of Finding
        One for each computation, the cheapest first.
    conditions : mapping of str to Distribution
        The condition numbers of the groups by the names in `CONDITIONS`; the `place` of the largest is the
        number of its group. Norms without mean have no "mean²/var".
    judged : int
        The number of groups that were examined: those whose values are all finite in the dtype.
    faint : int
        The number of groups whose variance is at most eps.
    beyond : int
        The number of finite values that become infinite in the dtype.
    """

    plan: Plan
    tolerance: Tolerance
    findings: list[Finding]
    conditions: dict[str, Distribution]
    judged: int = 0
    faint: int = 0
    beyond: int = 0

    @property
    def headroom(self) -> float | None:
        """The largest float16 / the largest Σx² of a group: below 1, Σx² overflows; None if all Σx² are 0."""
        squares = self.conditions[CONDITIONS[-1]]
        return get_largest(SHORT) / squares.largest if squares.largest > 0 else None

    @property
    def usual(self) -> list[Finding]:
        """The findings of computations with the usual order of casts, `once`."""
        return [finding for finding in self.findings if finding.computation.cast.name == next(iter(CASTS))]

    @property
    def cheapest(self) -> Finding | None:
        """The first safe finding with the usual order of casts; None without one, or with `beyond` above 0."""
        if self.beyond:
            return None
        return next((finding for finding in self.usual if finding.is_safe), None)

    @property
    def worst_group(self) -> tuple[int, int] | None:
        """The group with the largest error in most of the unsafe computations, as (its index, their number).

        None if all computations are safe. Only those with the usual order of casts count.
        """
        groups = Counter(finding.distances.excess.place for finding in self.usual if not finding.is_safe)
        return min(groups.items(), key=lambda pair: (-pair[1], pair[0])) if groups else None

    def list_of(self, accumulation: Accumulation) -> list[Finding]:
        """Return the findings of an accumulation (algorithm and dtype of sums), one for each order of casts."""
        return [finding for finding in self.findings if finding.computation.accumulation == accumulation]

    def find(self, computation: Computation) -> Finding | None:
        """Return the finding of a computation; None if it was not tried.

        If the computation's sums have the examined dtype, all orders of casts give the same result. The finding
        of the usual order is then returned for an order that was not tried.
        """
        same = self.list_of(computation.accumulation)
        return next((f for f in same if f.computation.cast == computation.cast), None) or next(
            (f for f in same if computation.accumulation.dtype == self.tolerance.dtype.name), None
        )
