"""From what was measured of groups to what their values are divided by, and to their statistics."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, cast

import numpy as np

from normcli.norms.divisors import Measurement
from normcli.norms.table import Centre, ZeroRule
from normcli.numerics.divisor import Solution, add_eps, replace_zeros
from normcli.numerics.moments import Moments
from normcli.numerics.pairs import Pair, Triple, divide_by_count, extend, pair_divide, pair_root
from normcli.numerics.rounding import Scaled, round_scaled

if TYPE_CHECKING:
    from normcli.dtypes import Floats, Integers
    from normcli.norms.plan import Plan
    from normcli.numerics.lengths import Lengths
    from normcli.numerics.order_statistics import Extremes, Quartiles

    Measured = Moments | Lengths | Extremes | Quartiles


class Given(NamedTuple):
    """Statistics that are known beforehand, as training has left them: one for each group of `Grid.running`."""

    mean: Floats
    var: Floats


def solve(plan: Plan, measured: Measured, *, exact: bool) -> Solution:
    """Return the centre, the divisor and the statistics of groups, from what was measured of them.

    Parameters
    ----------
    plan : Plan
    measured : Moments, Lengths, Extremes or Quartiles
        As `Divisor.measurement` says; a length of p = 2 comes as moments about 0.
    exact : bool
        Whether squares and roots are calculated as pairs: each result is then within 1/2 + 2⁻⁴⁰ ulp. For
        results of 24 bits, doubles are enough.
    """
    match plan.norm.divisor.measurement:
        case Measurement.EXTREMES | Measurement.QUARTILES:
            # Imported on use, to keep the start of small calculations fast.
            from normcli.numerics.order_statistics import solve_by_order

            return solve_by_order(plan, cast("Extremes | Quartiles", measured))
        case Measurement.LENGTH:
            return _solve_length(plan, cast("Moments | Lengths", measured))
        case _:
            return _solve_moments(plan, cast("Moments", measured), exact=exact)


def _solve_moments(plan: Plan, moments: Moments, *, exact: bool) -> Solution:
    n, k = moments.count, moments.scale
    centred = plan.norm.centre is Centre.MEAN
    freedom = n - plan.spec.ddof
    if np.less_equal(freedom, 0.0).any():
        freedom = np.where(freedom > 0.0, freedom, np.nan)
    m2 = moments.m2
    square = divide_by_count(m2, freedom) if exact else Pair(m2.hi / freedom, np.zeros_like(m2.hi))
    divisor, statistics = _divide_by(plan, square, k, exact=exact)
    usable = replace_zeros(divisor, plan.spec.zero_rule)
    shown = usable if plan.spec.zero_rule is ZeroRule.ONE else divisor
    statistics["rstd"] = _invert(shown) if exact else 1.0 / shown.hi
    if centred:
        statistics = {"mean": moments.mean.hi, **statistics}
    if k is not None:
        powers = {plan.norm.divisor.square: -2 * k, "rstd": k}
        statistics = {name: np.ldexp(value, powers.get(name, -k)) for name, value in statistics.items()}
    return Solution(extend(moments.mean), usable, k, centred, statistics)


def solve_given(plan: Plan, given: Given, *, exact: bool) -> Solution:
    """Return what values are normalized with if their mean and variance are known beforehand.

    All arrays are of `Grid.stats_shape`. A divisor of 0 stays 0: the values divided by it need not be 0.
    """
    mean, var = map(plan.grid.spread_running, given)
    nothing = np.zeros_like(var)
    divisor, statistics = _divide_by(plan, Pair(var, nothing), None, exact=exact)
    endless = np.isinf(var)
    if endless.any():  # there the second doubles of pairs are NaN
        divisor = Pair(np.where(endless, np.inf, divisor.hi), np.where(endless, 0.0, divisor.lo))
        statistics["std"] = np.where(endless, np.inf, statistics["std"])
    statistics = {"mean": mean, **statistics, "rstd": np.where(endless, 0.0, _invert(divisor))}
    return Solution(Triple(mean, nothing, nothing), divisor, None, centred=True, statistics=statistics)


def _invert(divisor: Pair) -> Floats:
    """Return 1/divisor, infinite where that is 0."""
    return np.where(divisor.hi == 0.0, np.inf, pair_divide(Pair(1.0, 0.0), divisor).hi)


def _divide_by(plan: Plan, square: Pair, k: Integers | None, *, exact: bool) -> tuple[Pair, dict[str, Floats]]:
    """Return the divisor that follows from a variance or mean square; that square and its root, by name."""
    root = pair_root(square) if exact else Pair(np.sqrt(square.hi), np.zeros_like(square.hi))
    divisor = add_eps(square, root, plan.spec.eps, plan.spec.eps_mode, k, exact=exact)
    row = plan.norm.divisor
    assert row.spread is not None  # of every divisor that is a root of mean squares
    return divisor, {row.square: square.hi, row.spread: root.hi}


def _solve_length(plan: Plan, measured: Moments | Lengths) -> Solution:
    k = measured.scale
    if isinstance(measured, Moments):
        square, length = measured.m2, pair_root(measured.m2)
    else:
        square = length = measured.length  # eps is added to squares of p = 2 alone
    unit = None if plan.spec.p == 0 else k  # a count has no unit
    divisor = add_eps(square, length, plan.spec.eps, plan.spec.eps_mode, unit, exact=True)
    divisor = replace_zeros(divisor, plan.spec.zero_rule)
    if k is not None and unit is None:  # the values are scaled all the same
        divisor = Pair(np.ldexp(divisor.hi, k), divisor.lo)
    zero = np.zeros_like(length.hi)
    mean = Triple(zero, zero, zero)
    norm = length.hi if unit is None else round_scaled(Scaled(length, -unit))
    return Solution(mean, divisor, k, centred=False, statistics={"norm": norm})
