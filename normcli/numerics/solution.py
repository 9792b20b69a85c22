"""From the moments of groups to what their values are divided by, and to their statistics."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from normcli.norms.divisors import Measurement
from normcli.norms.table import Centre, EpsMode, ZeroRule
from normcli.numerics.divisor import Solution, replace_zeros
from normcli.numerics.moments import Moments
from normcli.numerics.pairs import Pair, divide_by_count, pair_divide, pair_root, quick_two_sum, two_sum

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from normcli.norms.plan import Plan
    from normcli.numerics.quartiles import Quartiles

    Floats = NDArray[np.float64]


class Given(NamedTuple):
    """Statistics that are known beforehand: those that training has left, of `Grid.running_shape`."""

    mean: Floats
    var: Floats


def solve(plan: Plan, moments: Moments | Quartiles, *, exact: bool) -> Solution:
    """Turn moments into the divisor and the statistics of each group.

    With `exact`, squares and roots are formed as pairs, so that the double that leaves is the nearest one but
    for some 2**-40 of an ulp. Of a norm that divides by a range, the moments are its extremes, as
    `hold_extremes` returns them, or its quartiles.
    """
    if plan.norm.divisor.is_by_order:
        return _solve_by_order(plan, moments)
    assert isinstance(moments, Moments)  # by the divisor
    n, k = moments.count, moments.scale
    centred = plan.norm.centre is Centre.MEAN
    if plan.norm.divisor.measurement is Measurement.LENGTH:
        return _solve_length(plan, moments.m2, k)
    freedom = n - plan.spec.ddof
    if np.less_equal(freedom, 0.0).any():
        freedom = np.where(freedom > 0.0, freedom, np.nan)
    if exact:
        square = divide_by_count(moments.m2, freedom)
    else:
        square = Pair(moments.m2.hi / freedom, np.zeros_like(moments.m2.hi))
    divisor, statistics = _divide_by(plan, square, k, exact)
    usable = replace_zeros(divisor, plan.spec.zero_rule)
    told = usable if plan.spec.zero_rule is ZeroRule.ONE else divisor
    statistics["rstd"] = pair_divide(Pair(1.0, 0.0), told).hi if exact else 1.0 / told.hi
    if exact and plan.spec.zero_rule is not ZeroRule.ONE:
        statistics["rstd"] = np.where(divisor.hi == 0.0, np.inf, statistics["rstd"])
    if centred:
        statistics = {"mean": moments.mean.hi, **statistics}
    if k is not None:
        powers = {"mean": -k, "var": -2 * k, "ms": -2 * k, "std": -k, "rms": -k, "rstd": k}
        statistics = {name: np.ldexp(value, powers[name]) for name, value in statistics.items()}
    return Solution(moments.mean, usable, k, centred, statistics)


def solve_given(plan: Plan, given: Given, *, exact: bool) -> Solution:
    """Turn known statistics into the divisor of each group; one of 0 stays 0, as the values are not its own.

    All is of `Grid.stats_shape`; the mean and the variance are told as they were given.
    """
    mean, var = map(plan.grid.spread_running, given)
    nothing = np.zeros_like(var)
    divisor, statistics = _divide_by(plan, Pair(var, nothing), None, exact)
    endless = np.isinf(var)
    if endless.any():  # of which the pairs' errors are NaN
        divisor = Pair(np.where(endless, np.inf, divisor.hi), np.where(endless, 0.0, divisor.lo))
        statistics["std"] = np.where(endless, np.inf, statistics["std"])
    inverse = np.where(divisor.hi == 0.0, np.inf, pair_divide(Pair(1.0, 0.0), divisor).hi)
    inverse = np.where(endless, 0.0, inverse)
    statistics = {"mean": mean, **statistics, "rstd": inverse}
    return Solution(Pair(mean, nothing), divisor, None, centred=True, statistics=statistics)


def _divide_by(
    plan: Plan, square: Pair, k: NDArray[np.int64] | None, exact: bool
) -> tuple[Pair, dict[str, Floats]]:
    """Return the divisor that a variance or mean square makes, and what of it is told."""
    root = pair_root(square) if exact else Pair(np.sqrt(square.hi), np.zeros_like(square.hi))
    eps = 0.0 if plan.spec.eps is None else plan.spec.eps
    if eps == 0.0:
        divisor = root
    elif plan.spec.eps_mode is EpsMode.INSIDE:
        divisor = _root_of_sum(square, eps, k, exact)
    elif plan.spec.eps_mode is EpsMode.FLOOR:
        divisor = _raise_to_floor(root, eps, k)
    else:
        shifted = np.full_like(root.hi, eps) if k is None else np.ldexp(eps, k)
        divisor = two_sum(root.hi, shifted)
        divisor = quick_two_sum(divisor.hi, divisor.lo + root.lo)
    row = plan.norm.divisor
    assert row.spread is not None  # of every divisor that is a root of mean squares
    return divisor, {row.square: square.hi, row.spread: root.hi}


def _root_of_sum(square: Pair, eps: float, k: NDArray[np.int64] | None, exact: bool) -> Pair:
    """Return √(square + eps) in the unit of the scaled values."""
    if k is None:
        if not exact:
            return Pair(np.sqrt(square.hi + eps), np.zeros_like(square.hi))
        s, e = two_sum(square.hi, eps)
        return pair_root(quick_two_sum(s, e + square.lo))
    inner = np.ldexp(eps, 2 * k)
    s, e = two_sum(square.hi, inner)
    scaled = pair_root(quick_two_sum(s, e + square.lo))
    fits = np.isfinite(scaled.hi) | ~np.isinf(inner)
    outer = pair_root(two_sum(np.ldexp(square.hi, -2 * k), eps))  # the square is nothing beside eps here
    return Pair(
        np.where(fits, scaled.hi, np.ldexp(outer.hi, k)), np.where(fits, scaled.lo, np.ldexp(outer.lo, k))
    )


def _raise_to_floor(size: Pair, floor: float, k: NDArray[np.int64] | None) -> Pair:
    """Return max(size, floor), where size is in the unit of the scaled values."""
    lowest = np.full_like(size.hi, floor) if k is None else np.ldexp(floor, k)
    under = size.hi < lowest
    return Pair(np.where(under, lowest, size.hi), np.where(under, 0.0, size.lo))


def _solve_by_order(plan: Plan, measured: Any) -> Solution:
    # Imported on use: a small calculation of another norm would pay for it.
    if plan.norm.divisor.measurement is Measurement.EXTREMES:
        from normcli.numerics.extremes import solve_range

        return solve_range(plan, measured)
    from normcli.numerics.quartiles import solve_quartiles

    return solve_quartiles(plan, measured)


def _solve_length(plan: Plan, total: Pair, k: NDArray[np.int64] | None) -> Solution:
    """Solve for a length: of p = 2, `total` is its square."""
    size = pair_root(total) if plan.spec.p == 2.0 else total
    unit = None if plan.spec.p == 0 else k  # a count has no unit
    divisor = size
    if plan.spec.eps is not None and plan.spec.eps_mode is EpsMode.INSIDE:
        divisor = _root_of_sum(total, plan.spec.eps, unit, exact=True)
    elif plan.spec.eps is not None:
        floor = math.sqrt(plan.spec.eps) if plan.spec.eps_mode is EpsMode.SQUARE_FLOOR else plan.spec.eps
        divisor = _raise_to_floor(size, floor, unit)
    divisor = replace_zeros(divisor, plan.spec.zero_rule)
    told = size.hi if unit is None else np.ldexp(size.hi, -unit)
    if k is not None and unit is None:  # so the values alone carry the scale
        divisor = Pair(np.ldexp(divisor.hi, k), divisor.lo)
    zero = np.zeros_like(size.hi)
    return Solution(Pair(zero, zero), divisor, k, centred=False, statistics={"norm": told})
