"""What came of every way to calculate a norm of a tensor, and how its groups are conditioned."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from normcli.algorithms.table import CASTS
from normcli.doctor.distribution import Distribution
from normcli.tuples import NamedTuple

if TYPE_CHECKING:
    from normcli.algorithms.computation import Computation
    from normcli.checking.ulp import Tolerance
    from normcli.dtypes import Integers
    from normcli.norms.plan import Plan

CONDITIONS = ("mean²/var", "max |x|", "Σx²")
"""What is measured of each group."""


class Overflow(NamedTuple):
    """The first group whose statistics are not finite.

    Parameters
    ----------
    group : int
        Its number.
    place : int or None
        Which of its values makes a sum overflow, or its own square; None where sums have no order.
    """

    group: int
    place: int | None


@dataclass
class Lost:
    """Groups of which an algorithm lost the variance: how many, and the first."""

    count: int = 0
    first: int | None = None

    def add(self, groups: Integers) -> None:
        """Count the groups with these numbers, in ascending order."""
        if groups.size:
            self.count += len(groups)
            self.first = int(groups[0]) if self.first is None else min(self.first, int(groups[0]))

    def merge(self, other: Lost) -> None:
        """Count what another has counted."""
        if other.first is not None:
            self.count += other.count
            self.first = other.first if self.first is None else min(self.first, other.first)


@dataclass
class Distances:
    """How far values are from the exact ones; the places in distributions are the numbers of their groups.

    Parameters
    ----------
    ulp : Distribution
    excess : Distribution
        As multiples of what is tolerated.
    mismatches : int
        Values that are further away than that.
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
    """What came of a computation.

    Parameters
    ----------
    computation : Computation
    distances : Distances
    negative, zero : Lost
        Groups whose variance came out below 0, and as 0 though their values differ.
    overflow : Overflow or None
    """

    computation: Computation
    distances: Distances = field(default_factory=Distances)
    negative: Lost = field(default_factory=Lost)
    zero: Lost = field(default_factory=Lost)
    overflow: Overflow | None = None

    @property
    def is_safe(self) -> bool:
        """Whether no value is further from the exact one than is tolerated."""
        return self.distances.mismatches == 0

    def merge(self, other: Finding) -> None:
        """Add what was found of other groups."""
        self.distances.merge(other.distances)
        self.negative.merge(other.negative)
        self.zero.merge(other.zero)
        self.overflow = min((o for o in (self.overflow, other.overflow) if o is not None), default=None)


@dataclass
class Examination:
    """What `examine` returns.

    Parameters
    ----------
    plan : Plan
        Of a tensor in the dtype that is asked about.
    tolerance : Tolerance
        What is safe, and the dtype.
    findings : list of Finding
        The cheapest first.
    conditions : mapping of str to Distribution
        By the names of `CONDITIONS`, those that the norm has; the places are the groups' numbers.
    judged : int
        Groups that were: those whose values are finite in the dtype.
    faint : int
        Groups of which eps is no less than the variance.
    beyond : int
        Finite values that are infinite in the dtype.
    """

    plan: Plan
    tolerance: Tolerance
    findings: list[Finding]
    conditions: dict[str, Distribution]
    judged: int = 0
    faint: int = 0
    beyond: int = 0

    @property
    def usual(self) -> list[Finding]:
        """The findings of the usual cast order."""
        return [finding for finding in self.findings if finding.computation.cast.name == next(iter(CASTS))]

    @property
    def cheapest(self) -> Finding | None:
        """The first that is safe, rounded once; None if none is, or values are beyond the dtype."""
        if self.beyond:
            return None
        return next((finding for finding in self.usual if finding.is_safe), None)

    @property
    def worst_group(self) -> tuple[int, int] | None:
        """The group that is furthest off under the most computations, and how many; None if all are safe."""
        groups = Counter(finding.distances.excess.place for finding in self.usual if not finding.is_safe)
        return min(groups.items(), key=lambda pair: (-pair[1], pair[0])) if groups else None

    def find(self, computation: Computation) -> Finding | None:
        """Return the finding of a computation; None if it was not tried.

        Of sums in the tensor's own dtype, every cast order is the usual one.
        """
        same = [f for f in self.findings if f.computation.accumulation == computation.accumulation]
        return next((f for f in same if f.computation.cast == computation.cast), None) or next(
            (f for f in same if computation.accumulation.dtype == self.tolerance.dtype.name), None
        )
