"""Groups that a convention counts as constant, though they are not quite."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from normcli.dtypes import get_eps, is_float
from normcli.norms.divisors import ORDER_STATISTICS
from normcli.norms.rules import FlatRule, ZeroRule
from normcli.numerics.pairs import Pair

if TYPE_CHECKING:
    from collections.abc import Mapping
    from fractions import Fraction

    from normcli.dtypes import Floats, Selected
    from normcli.norms.plan import Plan
    from normcli.numerics.statistics.divisor import Solution

_MANY = 10
"""Machine epsilons up to which scikit-learn counts a scale as 0 (`_handle_zeros_in_scale`)."""

_DOUBLE = np.dtype(np.float64)


def find_flat(plan: Plan, statistics: Mapping[str, Floats], count: Any) -> Selected:
    """Return which groups count as constant though their divisor is not 0.

    Parameters
    ----------
    plan : Plan
    statistics : mapping of str to ndarray
    count : int or ndarray
        How many values of a group count: of every group, or of each.

    Notes
    -----
    The rules are those of scikit-learn 1.9 (`_handle_zeros_in_scale`, `_is_constant_feature`) and of SciPy 1.17
    (`zscore`), here of the exact statistics, rounded once.
    """
    rule, spread = plan.spec.flat_rule, statistics[plan.norm.divisor.spread or ""]
    dtype = plan.tensor_dtype if is_float(plan.tensor_dtype) else _DOUBLE
    eps = get_eps(_DOUBLE if rule in _IN_FLOAT64 or dtype.itemsize > _DOUBLE.itemsize else dtype)
    with np.errstate(all="ignore"):
        match rule:
            case FlatRule.SMALL:
                flat = spread < _MANY * eps
            case FlatRule.SMALL_OF_ROUNDED:
                combination = ORDER_STATISTICS[plan.norm.divisor.spread or ""].combination
                assert combination is not None  # of a range
                flat = statistics[combination.left] - statistics[combination.right] < _MANY * eps
            case FlatRule.TWO_PASSES:
                var, mean = statistics["var"], statistics["mean"]
                flat = var <= count * eps * var + (count * mean * eps) ** 2
            case FlatRule.BESIDE_MEAN:
                flat = spread <= np.abs(eps * statistics["mean"])
            case None:
                flat = np.zeros(spread.shape, np.bool_)
        return np.asarray(flat & (spread > 0.0))


_IN_FLOAT64 = (FlatRule.SMALL_OF_ROUNDED, FlatRule.TWO_PASSES)
"""The rules whose machine epsilon is float64's for every input."""


def replace_flat(plan: Plan, solution: Solution, count: Any) -> Solution:
    """Return a solution by which groups that count as constant are normalized as constant ones are."""
    flat = find_flat(plan, solution.statistics, count)
    if not flat.any():
        return solution
    is_one, ask = plan.spec.zero_rule is not ZeroRule.NAN, solution.ask
    hi = np.where(flat, 1.0 if is_one else np.nan, solution.divisor.hi)
    statistics = dict(solution.statistics)
    if is_one and "rstd" in statistics:
        statistics["rstd"] = np.where(flat, 1.0, statistics["rstd"])

    def ask_again(group: int, bits: int) -> tuple[Fraction, Fraction | None]:
        from fractions import Fraction

        assert ask is not None
        mean, divisor = ask(group, bits)
        return mean, (Fraction(1) if is_one else None) if flat[group] else divisor

    divisor = Pair(hi, np.where(flat, 0.0, solution.divisor.lo))
    return replace(solution, divisor=divisor, statistics=statistics, ask=None if ask is None else ask_again)
