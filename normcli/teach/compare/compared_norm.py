"""A norm among those that are compared, and its formula: whether two norms give equal x̂ for every tensor."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from normcli.norms.rules import EpsMode, ZeroRule
from normcli.tuples import NamedTuple

if TYPE_CHECKING:
    from normcli.norms.plan import Plan
    from normcli.results.result import Result


class Member(NamedTuple):
    """A norm that is compared with others: its name on the command line, and its result."""

    name: str
    result: Result

    @property
    def plan(self) -> Plan:
        """The plan of the result."""
        return self.result.plan

    @property
    def evaluates(self) -> bool:
        """Whether the tensor is normalized with running statistics, not with its own."""
        return self.result.running is not None

    def is_same(self, other: Member) -> bool:
        """Whether both norms give equal x̂ for every tensor, and with equal running statistics."""
        if self.evaluates or other.evaluates:
            return self.evaluates is other.evaluates and find_formula(self.plan) == find_formula(other.plan)
        return self._omits_nan is other._omits_nan and is_same(self.plan, other.plan)

    @property
    def _omits_nan(self) -> bool:
        return self.result.selection is not None and self.result.selection.omits_nan

    def has_same_groups(self, other: Member) -> bool:
        """Whether both norms have equal groups."""
        return self.plan.grid.canonical == other.plan.grid.canonical

    def has_same_quotient(self, other: Member) -> bool:
        """Whether both norms centre and divide by equal statistics; eps and ddof may differ."""
        return find_formula(self.plan).quotient == find_formula(other.plan).quotient


class Formula(NamedTuple):
    """The formula of a plan; equal for two plans that give equal x̂ for every group.

    Parameters
    ----------
    quotient : tuple
        Centre and divisor, without eps and ddof.
    eps : float
    eps_mode : EpsMode or None
        Where eps stands; None if eps is 0.
    ddof : int
    makes_nan : bool
        Whether a group whose divisor is 0 becomes NaN. The other rules for such a group agree: its centred
        values are 0.
    window : tuple of float or None
        k, alpha and the exponent of a window; None for norms without windows.
    """

    quotient: tuple[Any, ...]
    eps: float
    eps_mode: EpsMode | None
    ddof: int
    makes_nan: bool
    window: tuple[float, ...] | None


def find_formula(plan: Plan) -> Formula:
    """Return the formula of a plan, without the options that change no result."""
    norm, spec = plan.norm, plan.spec
    eps, mode = spec.eps or 0.0, spec.eps_mode
    if mode is EpsMode.SQUARE_FLOOR:
        eps, mode = math.sqrt(eps), EpsMode.FLOOR
    return Formula(
        quotient=(norm.centre, norm.divisor, spec.p, spec.quantiles, _find_matrix(plan)),
        eps=eps,
        eps_mode=mode if eps else None,
        ddof=spec.ddof,
        makes_nan=not eps and spec.zero_rule is ZeroRule.NAN,
        window=None if spec.window is None else spec.window[3:],
    )


def is_same(a: Plan, b: Plan) -> bool:
    """Whether two plans of one shape give equal x̂ for every tensor."""
    return a.grid.canonical == b.grid.canonical and find_formula(a) == find_formula(b)


def _find_matrix(plan: Plan) -> frozenset[tuple[int, ...]] | None:
    """Return the axes of rows and of columns, in no order; None for groups that are no matrices."""
    if plan.spec.rows is None:
        return None
    long = [axis for axis in plan.grid.axes if plan.grid.shape[axis] != 1]
    rows = tuple(axis for axis in long if axis in plan.spec.rows)
    return frozenset({rows, tuple(axis for axis in long if axis not in rows)})
