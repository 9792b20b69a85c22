"""What groups are differentiated with: from their sums, by their plan's rules for what is 0 or counts as it."""

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
from normcli.numerics.integers import widen_to_pair
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
    """What some groups are differentiated with, and what returns that for one of them, to so many bits."""

    coefficients: Coefficients
    recall: Callable[[int, int], ExactCoefficients]

    def take(self, rows: Integers) -> SolvedGroups:
        """Return that of some of the groups."""
        coefficients, recall = self
        return SolvedGroups(coefficients.map(lambda a: a[rows]), lambda row, bits: recall(int(rows[row]), bits))


class CoefficientSolver:
    """Makes what groups are differentiated with.

    Parameters
    ----------
    plan : Plan
    inputs : Inputs
    values : ndarray
        The tensor: it is measured where groups of a small divisor count as constant.
    effort : Effort
    varies : bool
        Whether gamma varies within groups, so that it is a part of gradients.
    """

    def __init__(
        self, plan: Plan, inputs: Inputs, values: NDArray[Any], effort: Effort, *, varies: bool = False
    ) -> None:
        self.plan, self.values, self.selection = plan, values, inputs.selection
        self.gate, self.gamma = inputs.gate, inputs.gamma if varies else None
        fill = None if inputs.selection is None else inputs.selection.fill
        self.leaves_empty = fill not in (None, Fill.NORMALIZE)
        self.flat: Selected | None = None
        if plan.spec.flat_rule is not None and inputs.given is None:
            statistics = measure(plan, values, Inputs(selection=inputs.selection), effort)
            count = statistics.pop(COUNT, np.float64(plan.grid.group_size))
            self.flat = find_flat(plan, statistics, count).reshape(-1)

    def solve(self, sums: GradientSums, numbers: Integers) -> SolvedGroups:
        """Return it from the sums of the groups of some numbers."""
        coefficients, empty = solve_coefficients(self.plan, sums), np.zeros(sums.count.shape, np.bool_)
        flat = empty if self.flat is None else self.flat[numbers]
        decimals = needs_decimals(sums.p)
        if flat.any():
            coefficients = flatten(self.plan, coefficients, flat)
        if self.leaves_empty:
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
        """Return Σ|x|ᵖ of the values of a group that count, to so many bits."""
        grid, selection = self.plan.grid, self.selection
        values = fetch(grid.take_group(self.values, group)).reshape(-1)
        if selection is not None:
            every = np.ix_(*map(np.arange, grid.shape))
            values = values[grid.take_group(selection.select(self.values, every), group).reshape(-1)]
        pairs = zip(*(part.tolist() for part in widen_to_pair(values)), strict=True)
        return sum_powers([abs(Fraction(hi) + Fraction(lo)) for hi, lo in pairs], find_p(self.plan), bits)

    def _sum_gated(self, gate: Gated, group: int, bits: int) -> GatedSums:
        """Return the sums of a group's gradients, which a gate multiplies, to so many bits."""
        grid, parameters = self.plan.grid, self.plan.parameters

        def take(values: NDArray[Any]) -> NDArray[Any]:
            return fetch(grid.take_group(values, group)).reshape(-1)

        pairs = zip(*(part.tolist() for part in widen_to_pair(take(self.values))), strict=True)
        x = [Fraction(hi) + Fraction(lo) for hi, lo in pairs]
        gamma = np.ones((1,) * len(grid.view_shape))
        if self.gamma is not None:
            gamma = self.gamma.astype(np.float64).reshape(parameters.view_shape) + self.plan.spec.gamma_offset
        spread = np.broadcast_to(gamma, grid.view_shape)[grid.select_group(group)].reshape(-1)
        factors = zip(gate.map(take).list_exactly(bits), map(Fraction, spread.tolist()), strict=True)
        known = [(g * by, off * abs(by)) for (g, off), by in factors]
        centred = self.plan.norm.centre is Centre.MEAN
        centre = sum(x, Fraction(0)) / len(x) if centred else Fraction(0)
        terms = [
            (g * (each - centre), off * abs(each - centre)) for each, (g, off) in zip(x, known, strict=True)
        ]
        sums = ([sum(part, Fraction(0)) for part in zip(*column, strict=True)] for column in (known, terms))
        (total, off), (product, lost) = sums
        mean, off = (total / len(x), off / len(x)) if centred else (Fraction(0), Fraction(0))
        return GatedSums(mean, product, off, lost)

    def solve_given(self, var: Floats, centre: Floats) -> SolvedGroups:
        """Return it of groups of given variances, whose means are as far from the shift as the centre is."""

        def recall(row: int, bits: int) -> ExactCoefficients:
            return solve_given_exactly(self.plan, float(var[row]), float(centre[row]), bits)

        return SolvedGroups(solve_given(self.plan, var, centre), recall)
