"""The coefficients of the gradients of groups, from their sums and the plan's rules for divisors of 0."""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np

from normcli.engine.inputs import COUNT, Inputs
from normcli.engine.run import measure
from normcli.norms.request import Fill
from normcli.norms.rules import Centre
from normcli.numerics.gradients.coefficients import clear, find_p, flatten, solve_coefficients, solve_given
from normcli.numerics.gradients.in_fractions import (
    NO_COEFFICIENTS,
    GatedSums,
    solve_exactly,
    solve_given_exactly,
    sum_powers,
)
from normcli.numerics.gradients.sums import needs_decimals
from normcli.numerics.rounding import widen_to_pair
from normcli.numerics.statistics.divisor import find_flat
from normcli.tensors.mapped import fetch
from normcli.tuples import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from normcli.dtypes import Floats, Integers, Selected
    from normcli.engine.walk import Effort
    from normcli.norms.plan import Plan
    from normcli.numerics.elements.gate import Gated
    from normcli.numerics.gradients.coefficients import Coefficients
    from normcli.numerics.gradients.in_fractions import ExactCoefficients
    from normcli.numerics.gradients.sums import GradientSums


class SolvedGroups(NamedTuple):
    """The coefficients of the gradients of some groups, in pairs and exactly.

    `recall` takes the index of one of these groups and a number of bits; it returns the group's coefficients in
    rationals, with roots and powers to that number of bits.
    """

    coefficients: Coefficients
    recall: Callable[[int, int], ExactCoefficients]

    def take(self, rows: Integers) -> SolvedGroups:
        """Return the coefficients of some of these groups, given by their indices among them."""
        coefficients, recall = self
        return SolvedGroups(coefficients.map(lambda a: a[rows]), lambda row, bits: recall(int(rows[row]), bits))


class CoefficientSolver:
    """Calculates the coefficients of the gradients of groups.

    Parameters
    ----------
    plan : Plan
    inputs : Inputs
    values : ndarray
        The tensor. It is measured first if the plan has a rule by which groups count as constant.
    effort : Effort
    varies : bool
        Whether gamma varies within groups, so that it is a factor of the derivatives with respect to x̂.
    """

    def __init__(
        self, plan: Plan, inputs: Inputs, values: NDArray[Any], effort: Effort, *, varies: bool = False
    ) -> None:
        self.plan, self.values, self.selection = plan, values, inputs.selection
        self.gate, self.gamma = inputs.gate, inputs.gamma if varies else None
        fill = None if inputs.selection is None else inputs.selection.fill
        self.leaves_unselected = fill not in (None, Fill.NORMALIZE)
        self.flat: Selected | None = None
        if plan.spec.flat_rule is not None and inputs.given is None:
            statistics = measure(plan, values, Inputs(selection=inputs.selection), effort)
            count = statistics.pop(COUNT, np.float64(plan.grid.group_size))
            self.flat = find_flat(plan, statistics, count).reshape(-1)

    def solve(self, sums: GradientSums, numbers: Integers) -> SolvedGroups:
        """Return the coefficients of some groups from their sums; `numbers` are the groups' indices."""
        coefficients, empty = solve_coefficients(self.plan, sums), np.zeros(sums.count.shape, np.bool_)
        flat = empty if self.flat is None else self.flat[numbers]
        decimals = needs_decimals(sums.p)
        if flat.any():
            coefficients = flatten(self.plan, coefficients, flat)
        if self.leaves_unselected:
            empty = sums.count == 0
            coefficients = clear(coefficients, empty)

        def recall(row: int, bits: int) -> ExactCoefficients:
            if empty[row]:
                return NO_COEFFICIENTS
            powers = self._sum_powers(int(numbers[row]), bits) if decimals else None
            gated = None if self.gate is None else self._sum_gated(self.gate, int(numbers[row]), bits)
            exact = solve_exactly(self.plan, sums, row, powers, bits, gated)
            return exact.flatten(self.plan) if flat[row] else exact

        return SolvedGroups(coefficients, recall)

    def _sum_powers(self, group: int, bits: int) -> Fraction | None:
        """Return Σ|x|ᵖ of the values of a group that count, to `bits` bits; None if it is infinite."""
        chosen = self._select(group)
        values = [abs(x) for x in self._list_values(group, chosen if chosen is not None else slice(None))]
        return sum_powers(values, find_p(self.plan), bits)

    def _select(self, group: int) -> Selected | None:
        """Return an array that is True where a value of a group counts; None if there is no selection."""
        grid, selection = self.plan.grid, self.selection
        if selection is None:
            return None
        every = np.ix_(*map(np.arange, grid.shape))
        return np.asarray(grid.take_group(selection.select(self.values, every), group).reshape(-1))

    def _take(self, values: NDArray[Any], group: int) -> NDArray[Any]:
        """Return a group's values along one axis, of the tensor or of an array that broadcasts against it."""
        spread = (
            values if values.shape == self.plan.grid.shape else np.broadcast_to(values, self.plan.grid.shape)
        )
        return fetch(self.plan.grid.take_group(spread, group)).reshape(-1)

    def _list_values(self, group: int, chosen: Any) -> list[Fraction]:
        """Return the chosen values of a group, exactly."""
        pairs = widen_to_pair(self._take(self.values, group)[chosen])
        return [Fraction(hi) + Fraction(lo) for hi, lo in zip(*(part.tolist() for part in pairs), strict=True)]

    def _sum_gated(self, gate: Gated, group: int, bits: int) -> GatedSums:
        """Return sums of g = gamma · act(z) · dy over a group, where the gate z multiplies dy, to `bits` bits.

        The sums are the mean of g (0 for a norm without mean) and Σ g · (x − μ), with bounds of their errors.
        gamma is 1 here unless it varies within groups.
        """
        grid, parameters, counted = self.plan.grid, self.plan.parameters, self._select(group)
        used: Any = slice(None)
        if counted is not None:
            used = counted if self.leaves_unselected else counted | ~np.isnan(self._take(self.values, group))
        x = self._list_values(group, used)
        among = x if counted is None else self._list_values(group, counted)
        gamma = np.ones((1,) * len(grid.view_shape))
        if self.gamma is not None:
            gamma = self.gamma.astype(np.float64).reshape(parameters.view_shape) + self.plan.spec.gamma_offset
        spread = np.broadcast_to(gamma, grid.view_shape)[grid.select_group(group)].reshape(-1)[used]
        chosen = gate.map(lambda values: self._take(values, group)[used])
        factors = zip(chosen.list_exactly(bits), map(Fraction, spread.tolist()), strict=True)
        known = [(g * by, off * abs(by)) for (g, off), by in factors]
        centred = self.plan.norm.centre is Centre.MEAN
        centre = sum(among, Fraction(0)) / len(among) if centred else Fraction(0)
        terms = [
            (g * (each - centre), off * abs(each - centre)) for each, (g, off) in zip(x, known, strict=True)
        ]
        sums = ([sum(part, Fraction(0)) for part in zip(*column, strict=True)] for column in (known, terms))
        (total, off), (product, lost) = sums
        mean, off = (total / len(among), off / len(among)) if centred else (Fraction(0), Fraction(0))
        return GatedSums(mean, product, off, lost)

    def solve_given(self, var: Floats, centre: Floats) -> SolvedGroups:
        """Return the coefficients of groups whose statistics are given: their variances, and mean − shift."""

        def recall(row: int, bits: int) -> ExactCoefficients:
            return solve_given_exactly(self.plan, float(var[row]), float(centre[row]), bits)

        return SolvedGroups(solve_given(self.plan, var, centre), recall)
