"""From what was measured of groups to what their values are divided by, and to their statistics."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

import numpy as np

from normcli.norms.divisors import Measurement
from normcli.norms.rules import EpsMode, ZeroRule
from normcli.numerics.deciding import PRECISIONS, is_decided, is_double_decided, round_real
from normcli.numerics.divisor import FAINT, Solution, add_eps, find_freedom, replace_zero, replace_zeros
from normcli.numerics.elements import KNOWN, SOLVED, take_exponents
from normcli.numerics.moments import Moments
from normcli.numerics.pairs import Pair, Triple, distill, pair_divide, pair_root, two_prod, two_square
from normcli.numerics.rational import ROOT_BITS, make_fraction, scale
from normcli.numerics.rounding import Scaled, round_scaled
from normcli.tuples import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable
    from fractions import Fraction
    from typing import TypeAlias

    from normcli.dtypes import Floats, Integers, Selected
    from normcli.norms.plan import Plan
    from normcli.numerics.lengths import Lengths
    from normcli.numerics.order_statistics import Extremes, Quantiles
    from normcli.numerics.singular import SingularValues

    Measured: TypeAlias = Moments | Lengths | Extremes | Quantiles | SingularValues


class Given(NamedTuple):
    """Statistics that are known beforehand, as training has left them: one for each group of `Grid.running`."""

    mean: Floats
    var: Floats


def solve(plan: Plan, measured: Measured) -> Solution:
    """Return the centre, the divisor and the statistics of groups, from what was measured of them.

    Parameters
    ----------
    plan : Plan
    measured : Moments, Lengths, Extremes, Quantiles or SingularValues
        As `Divisor.measurement` says; a length of p = 2 comes as moments about 0.
    """
    solution = _solve(plan, measured)
    if plan.spec.flat_rule is not None:
        from normcli.numerics.flat import replace_flat  # of few conventions

        solution = replace_flat(plan, solution, measured.count)
    if plan.norm.is_partial:
        from normcli.numerics.partial import leave_out  # of few requests

        solution = leave_out(plan, solution)
    return solution


def _solve(plan: Plan, measured: Measured) -> Solution:
    """Return what `solve` does, if no group counts as constant that is not."""
    match plan.norm.divisor.measurement:
        case Measurement.EXTREMES | Measurement.QUANTILES:
            # Imported on use, to keep the start of small calculations fast.
            from normcli.numerics.order_statistics import solve_by_order

            return solve_by_order(plan, cast("Extremes | Quantiles", measured))
        case Measurement.SINGULAR_VALUE:
            from normcli.numerics.singular import solve_singular

            return solve_singular(plan, cast("SingularValues", measured))
        case Measurement.LENGTH if not isinstance(measured, Moments):
            return _solve_length(plan, cast("Lengths", measured))
        case _:
            return _solve_moments(plan, cast("Moments", measured))


class _Groups(NamedTuple):
    """What groups are normalized by, as far as it is known.

    Parameters
    ----------
    mean : Triple
        A double, and two of what it leaves.
    square : Pair
        The variance, mean square or squared length.
    error : float or ndarray
        How far `square` may be off, as a part of it.
    undecided : ndarray of bool
        Where nothing else here holds.
    ask : callable
        Returns the mean and the square of a group, by its number, exactly; None for a square of NaN.
    """

    mean: Triple
    square: Pair
    error: Any
    undecided: Selected
    ask: Callable[[int], tuple[Fraction, Fraction | None]]


def _solve_moments(plan: Plan, moments: Moments) -> Solution:
    freedom = np.asarray(find_freedom(plan, moments.count), dtype=np.float64)
    freedom = np.where(freedom > 0.0, freedom, np.nan)
    parts = two_prod(np.asarray(moments.times, dtype=np.float64), freedom)
    square = _divide(moments.square, parts)
    error = moments.error + np.where(_divides(moments.square, square, parts), 0.0, _QUOTIENT)
    finite = np.isfinite(square.hi)
    if not finite.all():
        plain = moments.square.hi / moments.times / freedom
        square = Pair(np.where(finite, square.hi, plain), np.where(finite, square.lo, 0.0))

    def ask(group: int) -> tuple[Fraction, Fraction | None]:
        from fractions import Fraction

        sums = moments.recall(group)
        freedom = Fraction(find_freedom(plan, sums.count))
        if freedom <= 0:
            return sums.mean(), None
        if plan.norm.divisor.about_mean:
            return sums.mean(), sums.scatter() / freedom
        return Fraction(0), sums.sum_squares() / freedom

    faint = (np.abs(moments.mean.hi) < FAINT) & (moments.mean.hi != 0.0) & np.isfinite(square.hi)
    groups = _Groups(moments.mean, square, error, moments.undecided | faint, ask)
    return _resolve(plan, groups, plan.spec.zero_rule)


def _divide(number: Pair, divisor: Pair) -> Pair:
    """Return a quotient of pairs; NumPy divides by a power of two without any rounding."""
    if _is_power_of_two(divisor):
        return number.map(lambda a: a / divisor.hi)
    return pair_divide(number, divisor)


def _is_power_of_two(divisor: Pair) -> bool:
    """Return whether all divisors are powers of two."""
    return not divisor.lo.any() and bool((np.frexp(divisor.hi)[0] == 0.5).all())


def _divides(number: Pair, quotient: Pair, divisor: Pair) -> Selected:
    """Return where a quotient is exact."""
    if _is_power_of_two(divisor):
        return np.ones(quotient.hi.shape, np.bool_)
    exact = np.zeros(quotient.hi.shape, np.bool_)
    short = np.flatnonzero(
        quotient.lo == quotient.lo.astype(np.float32)
    )  # others have too many bits to be ties
    if short.size and not divisor.lo.any():
        n, q, d = (
            part.map(lambda a: np.broadcast_to(a, exact.shape)[short]) for part in (number, quotient, divisor)
        )
        products = (*two_prod(q.hi, d.hi), *two_prod(q.lo, d.hi))
        exact[short] = ~np.any(distill([*n, *(-a for a in products)], 1).terms, axis=0)
    return exact


def solve_given(plan: Plan, given: Given) -> Solution:
    """Return what values are normalized with if their mean and variance are known beforehand.

    All arrays are of `Grid.stats_shape`. A divisor of 0 stays 0: the values divided by it need not be 0.
    """
    from fractions import Fraction

    mean, var = map(plan.grid.spread_running, given)
    shape, nothing = var.shape, np.zeros(var.size)
    means = mean.reshape(-1)

    def ask(group: int) -> tuple[Fraction, Fraction]:
        return Fraction(float(means[group])), Fraction(float(var.reshape(-1)[group]))

    far = np.isfinite(means) & (np.abs(means) > _LARGEST)
    groups = _Groups(Triple(means, nothing, nothing), Pair(var.reshape(-1), nothing), 0.0, far, ask)
    return _resolve(plan, groups, None).reshape(shape)


_QUOTIENT = 2.0**-99
_ARITHMETIC = 2.0**-98
"""Upper bounds of the relative error of a quotient of pairs, and of that of a root and its inverse together."""

_LEAST, _LARGEST = 2.0**-450, 2.0**450
"""Divisors that are not between these, or whose squares are not between theirs, are calculated exactly."""


def _resolve(plan: Plan, groups: _Groups, zero_rule: ZeroRule | None) -> Solution:
    """Return the divisors and statistics of groups, exactly where the pairs do not decide them."""
    row, centred = plan.norm.divisor, plan.norm.divisor.about_mean
    assert row.spread is not None  # of every divisor that is a root of squares
    square, error = groups.square, groups.error + _ARITHMETIC
    root = _keep_endless(square, pair_root(square))
    divisor = _keep_endless(square, add_eps(square, root, plan.spec.eps, plan.spec.eps_mode, None))
    usable = divisor if zero_rule is None else replace_zeros(divisor, zero_rule)
    shown = usable if zero_rule is ZeroRule.ONE else divisor
    values = {row.square: square, row.spread: root, "rstd": _invert(shown)}
    values = {name: value for name, value in values.items() if name in row.statistics}
    undecided = np.broadcast_to(error > SOLVED, usable.hi.shape).copy()
    undecided |= ~is_double_decided(square, groups.error) if row.square in values else False
    is_root = _is_root(square, root) & (groups.error == 0.0)
    errors = dict.fromkeys(values.keys() - {row.square}, error)
    errors[row.spread] = np.where(is_root, 0.0, error)
    for name in values.keys() - {row.square}:
        undecided |= ~is_double_decided(values[name], errors[name])
    undecided |= _is_beyond(square.hi, _LEAST**2, _LARGEST**2) | _is_beyond(divisor.hi, _LEAST, _LARGEST)
    undecided &= np.isfinite(square.hi) & np.isfinite(groups.mean.hi)
    undecided |= groups.undecided
    statistics = {name: value.hi for name, value in values.items()}
    if centred:
        statistics = {"mean": groups.mean.hi, **statistics}
    kept_divisor = Pair(usable.hi, np.where(np.isfinite(usable.hi), usable.lo, 0.0))
    solution = Solution(groups.mean, kept_divisor, None, centred, statistics, error=SOLVED)

    def ask(group: int, bits: int) -> tuple[Fraction, Fraction | None]:
        mean, square = groups.ask(group)
        if square is None:
            return mean, None
        divisor = _find_divisor(plan, square, bits)
        return mean, divisor if zero_rule is None else replace_zero(divisor, zero_rule)

    solution.ask = ask
    if not plan.spec.eps:
        solution.exact = is_root & ~undecided & (groups.mean.mid == 0.0)
    if undecided.any():  # arrays may be one and the same until here
        mean, kept_divisor = solution.mean.map(np.copy), solution.divisor.map(np.copy)
        solution = Solution(mean, kept_divisor, None, centred, ask=ask, exact=solution.exact, error=SOLVED)
        solution.statistics = {name: values.copy() for name, values in statistics.items()}
    for group in np.flatnonzero(undecided).tolist():
        found = _solve_exactly(plan, *groups.ask(group), zero_rule)
        for name, shown_values in solution.statistics.items():
            shown_values[group] = found.statistics[name]
        solution.settle(group, found.mean, found.divisor)
    return solution


def _is_root(square: Pair, root: Pair) -> Selected:
    """Return where a root is exact."""
    exact = np.zeros(root.hi.shape, np.bool_)
    short = np.flatnonzero(root.lo == root.lo.astype(np.float32))  # others have too many bits to be ties
    if short.size:
        s, r = (part.map(lambda a: a[short]) for part in (square, root))
        products = (*two_square(r.hi), *two_prod(2.0 * r.hi, r.lo), *two_square(r.lo))
        exact[short] = ~np.any(distill([*s, *(-a for a in products)], 1).terms, axis=0)
    return exact


def _is_beyond(values: Floats, least: float, most: float) -> Selected:
    """Return which values are not between two, nor 0."""
    if np.min(values, initial=most) > least and np.max(values, initial=least) < most:
        return np.zeros(values.shape, np.bool_)
    return np.asarray(~((values < most) & ((values > least) | (values == 0.0))))


def _keep_endless(square: Pair, value: Pair) -> Pair:
    """Return a root, or a sum of one, infinite where the square is: pairs give NaN there."""
    endless = np.isinf(square.hi)
    if not endless.any():
        return value
    return Pair(np.where(endless, np.inf, value.hi), np.where(endless, 0.0, value.lo))


def _invert(divisor: Pair) -> Pair:
    """Return 1/divisor, infinite where that is 0, and 0 where it is infinite."""
    inverse = pair_divide(Pair(1.0, 0.0), divisor)
    if np.isfinite(inverse.hi).all():
        return inverse
    plain = 1.0 / divisor.hi
    ends = np.isinf(divisor.hi) | np.isinf(plain)
    return Pair(np.where(ends, plain, inverse.hi), np.where(ends, 0.0, inverse.lo))


class _Exact(NamedTuple):
    """One group's mean, divisor and statistics, exactly or to more bits than are kept; None for NaN."""

    mean: Fraction
    divisor: Fraction | None
    statistics: dict[str, float]


def _solve_exactly(plan: Plan, mean: Fraction, square: Fraction | None, zero_rule: ZeroRule | None) -> _Exact:
    """Solve for one group by exact arithmetic: as `_resolve`."""
    from normcli.numerics import rational

    row = plan.norm.divisor
    if square is None:
        nothing = dict.fromkeys(row.statistics, np.nan)
        return _Exact(mean, None, {**nothing, "mean": rational.round_once(mean)})
    root = rational.find_root(square)
    divisor = _find_divisor(plan, square)
    usable = divisor if zero_rule is None else replace_zero(divisor, zero_rule)
    shown = usable if zero_rule is ZeroRule.ONE else divisor
    statistics = {"mean": rational.round_once(mean), row.square: rational.round_once(square)}
    statistics[row.spread or ""] = rational.round_once(root)
    statistics["rstd"] = rational.round_once(1 / shown) if shown else np.inf
    return _Exact(mean, usable, statistics)


def _find_divisor(plan: Plan, square: Fraction, bits: int = 0) -> Fraction:
    """Return the root with eps that a group is divided by if it is not 0, to so many bits at least."""
    from normcli.numerics import rational

    return rational.add_eps(square, plan.spec.eps, plan.spec.eps_mode, max(bits, rational.ROOT_BITS))


def _solve_length(plan: Plan, measured: Lengths) -> Solution:
    from normcli.numerics.lengths import leave_to_eps  # for lengths alone

    spec, find_length, is_zero = plan.spec, measured.find, measured.length.hi == 0.0
    own, exact = 0 if measured.scale is None else measured.scale, measured.recall is None
    norm = round_scaled(Scaled(measured.length, -own))
    if not exact:
        _settle_lengths(norm, measured.length, own, find_length)

    def ask(group: int, bits: int) -> tuple[Fraction, Fraction | None]:
        length, eps = make_fraction(0.0), make_fraction(spec.eps or 0.0)
        if not is_zero.reshape(-1)[group]:  # of p below 0, one 0 among the values makes it 0
            length = find_length(group, max(bits, ROOT_BITS))
        divisor = max(length, eps) if spec.eps_mode is EpsMode.FLOOR else length + eps
        return make_fraction(0), replace_zero(divisor, spec.zero_rule)

    measured = leave_to_eps(measured, spec.eps)
    k = measured.scale
    square = length = measured.length  # eps is added to squares of p = 2 alone
    divisor = replace_zeros(add_eps(square, length, spec.eps, spec.eps_mode, k), spec.zero_rule)
    zero = np.zeros_like(length.hi)
    mean = Triple(zero, zero, zero)
    solution = Solution(mean, divisor, k, centred=False, statistics={"norm": norm}, ask=ask)
    solution.exact = np.full(norm.shape, exact and not spec.eps)
    return solution


def _settle_lengths(
    shown: Floats, length: Pair, k: Integers | int, find_length: Callable[[int, int], Fraction]
) -> None:
    """Put lengths in place that what is known of them does not decide between two doubles."""
    value, own = take_exponents(length)
    decided = is_decided(value, own - k, KNOWN, PRECISIONS["float64"]) | ~np.isfinite(shown)
    for group in np.flatnonzero(~decided & (length.hi != 0.0)).tolist():

        def evaluate(bits: int, group: int = group) -> tuple[Fraction, Fraction]:
            found = find_length(group, bits)
            return found, scale(found, -bits)

        shown[group] = round_real(evaluate)
