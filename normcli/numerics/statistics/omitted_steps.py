"""Solutions of norms one of whose steps a caller leaves out: nothing is subtracted, or nothing divides."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np

from normcli.norms.rules import Centre
from normcli.numerics.pairs import Pair, Triple
from normcli.numerics.statistics.divisor import FAINT

if TYPE_CHECKING:
    from normcli.norms.plan import Plan
    from normcli.numerics.statistics.divisor import Solution


def leave_out(plan: Plan, solution: Solution) -> Solution:
    """Return a solution without the steps that a plan leaves out; its statistics are those of the plan's norm.

    Parameters
    ----------
    plan : Plan
    solution : Solution
        Of the whole norm; of arrays of one axis, the groups.
    """
    centres, divides, ask = plan.norm.centre is not Centre.NOTHING, plan.norm.divisor.divides, solution.ask
    assert ask is not None  # of every norm whose steps can be left out

    def ask_less(group: int, bits: int = 0) -> tuple[Fraction, Fraction | None]:
        mean, divisor = ask(group, bits)
        return mean if centres else Fraction(0), divisor if divides else Fraction(1)

    found = replace(solution, ask=ask_less, statistics={
        name: values for name, values in solution.statistics.items() if name in plan.norm.statistics
    })  # fmt: skip
    if not centres:
        nothing = np.zeros_like(found.divisor.hi)
        found.mean, found.centred, found.faint = Triple(nothing, nothing, nothing), False, None
    return found if divides else _divide_by_1(found)


def _divide_by_1(solution: Solution) -> Solution:
    """Return a solution with the divisor 1, in the unit of the values."""
    one = np.ones_like(solution.divisor.hi)
    mean, scale = solution.mean.map(np.copy), solution.scale
    found = replace(
        solution, mean=mean, divisor=Pair(one, np.zeros_like(one)), scale=None, faint=None, error=0.0
    )
    if not solution.centred:
        return found
    faint = (np.abs(mean.hi) < FAINT) & (mean.hi != 0.0)
    for group in np.flatnonzero(faint if scale is None else faint | (scale != 0)).tolist():
        assert solution.ask is not None
        exactly = solution.ask(group, 0)[0]
        found.settle(group, exactly, Fraction(1))
    return found
