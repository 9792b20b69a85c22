"""A norm among those that are compared."""

from __future__ import annotations

from typing import TYPE_CHECKING

from normcli.teach.formula import find_formula, is_same
from normcli.tuples import NamedTuple

if TYPE_CHECKING:
    from normcli.norms.plan import Plan
    from normcli.results.result import Result


class Member(NamedTuple):
    """A norm among those that are compared: what a command line calls it, and its result."""

    name: str
    result: Result

    @property
    def plan(self) -> Plan:
        """The result's."""
        return self.result.plan

    @property
    def evaluates(self) -> bool:
        """Whether it is normalized with running statistics, and nothing is measured."""
        return self.result.running is not None

    def is_same(self, other: Member) -> bool:
        """Whether both give equal x̂ for every tensor, with the same running statistics where they have any."""
        if self.evaluates or other.evaluates:
            return self.evaluates is other.evaluates and find_formula(self.plan) == find_formula(other.plan)
        return self._omits_nan is other._omits_nan and is_same(self.plan, other.plan)

    @property
    def _omits_nan(self) -> bool:
        return self.result.selection is not None and self.result.selection.omits_nan

    def has_same_groups(self, other: Member) -> bool:
        """Whether both take the same values together."""
        return self.plan.grid.canonical == other.plan.grid.canonical

    def has_same_quotient(self, other: Member) -> bool:
        """Whether both centre by and divide by the same, whatever eps and ddof."""
        return find_formula(self.plan).quotient == find_formula(other.plan).quotient
