"""The backward pass of every norm of groups: the derivatives of a loss with respect to the values.

For a group with centre μ and divisor D, x̂ = (x − μ)/D, and a loss whose derivative with respect to x̂ is g,

    dx = (g − A − w · B) / D,

where A is the mean of g (0 where nothing is subtracted, and where the statistics are given), w is x − μ, and

    B = Σ g · (x − μ) / (m · D · R),

m is what the sum of squares is divided by (n − ddof; 1 for a length), and R the root alone if eps is added to
it, else D. This is the chain rule through μ and D: Ioffe & Szegedy 2015, section 3, have it for eps inside
the root and ddof 0. B is 0 where eps rules as a floor, and where the statistics are given.

For an ℓ1 length, w is the sign of x; for ℓ∞, it is the sign of x where |x| is the largest, else 0, and B is
divided by the number of such values; for both, B = Σ g · x / D. For other p, w is sign(x) · |x|^(p − 1), and B
is divided by length^(p − 1), too. Where |x|ᵖ has a corner, at 0, w is 0, as torch has it.

The sums are exact (`sums`). What follows from them is calculated in pairs, within known bounds; what
these do not decide, or what leaves the range of doubles, is calculated in rationals (`in_fractions`). So every
result is the exact one, rounded once.
"""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from normcli.norms.rules import Centre, EpsMode, ZeroRule
from normcli.numerics.deciding import GRADIENT_POWER, PAIR
from normcli.numerics.gradients.sums import is_moderate, needs_decimals
from normcli.numerics.pairs import (
    Pair,
    invert_pair,
    keep_endless,
    map_arrays,
    pair_divide,
    pair_multiply,
    pair_root,
    two_prod,
)
from normcli.numerics.powers import take_root
from normcli.numerics.statistics.divisor import add_eps, find_freedom
from normcli.numerics.sums.scaled_integers import ScaledIntegers
from normcli.tuples import NamedTuple

if TYPE_CHECKING:
    from normcli.dtypes import Floats, Selected
    from normcli.norms.plan import Plan
    from normcli.numerics.gradients.sums import GradientSums
    from normcli.numerics.sums.scaled_integers import RoundedNumbers

_LEAST, _LARGEST = 2.0**-400, 2.0**400
"""Groups with a coefficient that is not between these, nor 0, are calculated exactly."""

LEAST_VALUE, LARGEST_VALUE = 2.0**-250, 2.0**250
"""Values and gradients not between these, nor 0, are calculated exactly: products of others stay in range."""

_ROOM = 1.25
"""The factor by which bounds are multiplied, for the roundings of their sums."""

_NEAR = 2.0**-40
"""A root this near to a floor is compared with it exactly."""


@dataclass(slots=True)
class Coefficients:
    """The coefficients of dx = (g − A − w · B) / D, one number for each group.

    g is the derivative of the loss with respect to x̂, D the divisor, and w is x − μ unless D is an ℓp length.

    Parameters
    ----------
    centre : Pair
        The mean μ minus the shift that was subtracted from the values.
    centre_error : ndarray
        An upper bound of the error of the centre; 0 where it is exact.
    mean : Pair
        A, the mean of g.
    mean_error : ndarray
        An upper bound of the error of A.
    steepness : Pair
        B, with a relative error of `PAIRS`; NaN where a group of equal values has no derivative.
    inverse : Pair
        1/D, with a relative error of `PAIRS`; NaN where normalized values are NaN.
    share : Pair
        Σ g · (x − μ), with a relative error of `PAIRS`.
    peak : Pair or None
        For p = ±∞, the |x| that is the length; None for other p.
    extreme : ndarray of bool
        True for groups that have to be calculated exactly; their numbers here do not hold.
    further : float
        A bound of relative errors of steepness and inverse in addition to `PAIRS`, which come from powers.
    steepness_error, share_error : ndarray or float
        Upper bounds of the additional errors of steepness and share that a gate's rounded factors cause.
    """

    centre: Pair
    centre_error: Floats
    mean: Pair
    mean_error: Floats
    steepness: Pair
    inverse: Pair
    share: Pair
    peak: Pair | None
    extreme: Selected
    further: float = 0.0
    steepness_error: Any = 0.0
    share_error: Any = 0.0

    def map(self, function: Any) -> Coefficients:
        """Return the coefficients with a function (an index, a reshape) applied to each array."""
        return Coefficients(*(map_arrays(getattr(self, name), function) for name in self.__slots__))


def clear(coefficients: Coefficients, empty: Selected) -> Coefficients:
    """Return coefficients with 0 where `empty` is True: no value of these groups is normalized."""
    cleared = coefficients.map(lambda a: np.where(empty, np.zeros((), a.dtype), a))
    return dataclasses.replace(cleared, peak=coefficients.peak)


def flatten(plan: Plan, coefficients: Coefficients, flat: Selected) -> Coefficients:
    """Return coefficients in which groups where `flat` is True are treated as with a divisor of 0."""
    inverse, steepness = _replace_nothing(plan, flat, coefficients.inverse, coefficients.steepness)
    return dataclasses.replace(coefficients, steepness=steepness, inverse=inverse)


def find_p(plan: Plan) -> float:
    """Return the p of a plan's powers: 2 for variances and mean squares."""
    return 2.0 if plan.spec.p is None else plan.spec.p


def solve_coefficients(plan: Plan, sums: GradientSums) -> Coefficients:
    """Return the coefficients of groups (A, B, 1/D and their bounds) from their exact sums."""
    zero = np.zeros(sums.count.shape)
    every = sums.totals, sums.powers, sums.gradients, sums.products
    totals, powers, gradients, products = (fixed.integers() for fixed in every)
    times = np.ones_like(sums.count)
    centre, centre_error, mean, mean_error = Pair(zero, zero), zero, Pair(zero.copy(), zero), zero
    extreme = np.zeros(zero.shape, np.bool_)
    if plan.norm.centre is Centre.MEAN:
        times, quotients = sums.count, (totals.divide(sums.count), gradients.divide(sums.count))
        (centre, centre_error), (mean, mean_error) = map(_bound, quotients)
        extreme = quotients[0].lost | quotients[1].lost
        count = ScaledIntegers(sums.count.astype(object), 0)
        powers = powers.multiply(count).subtract(totals.multiply(totals))
        products = products.multiply(count).subtract(totals.multiply(gradients))
    power, product, parts = powers.round(), products.round(), products.divide(times)
    extreme = extreme | power.lost | product.lost | parts.lost | (sums.beyond & ~sums.endless)
    found, share = _solve(plan, sums, power.value, product.value, times.astype(np.float64)), parts.value
    inverse = invert_pair(found.divisor)
    peak = sums.peak if math.isinf(sums.p) else None
    further = GRADIENT_POWER.error if needs_decimals(sums.p) else 0.0
    coefficients = Coefficients(
        centre, centre_error, mean, mean_error, found.steepness, inverse, share, peak, extreme, further
    )
    if sums.errors.any():
        off = _ROOM * (sums.product_errors + np.abs(centre.hi) * sums.errors)
        steep = _solve(plan, sums, power.value, Pair(off * times, zero), times.astype(np.float64)).steepness
        coefficients.steepness_error, coefficients.share_error = np.abs(steep.hi), off
        if plan.norm.centre is Centre.MEAN:
            coefficients.mean_error = mean_error + _ROOM * sums.errors / sums.count
    unknown = sums.unknown | (sums.endless & (coefficients.extreme | found.unclear))
    marked = _mark(coefficients, found.divisor, found.unclear, unknown)
    for known in (marked.mean, marked.share):  # which Σdy enters; dy · x̂ of the other values is known
        known.hi[sums.endless] = np.nan
    return marked


def solve_given(plan: Plan, var: Floats, centre: Floats) -> Coefficients:
    """Return the coefficients of groups whose statistics are given, such as running statistics.

    `var` are their variances, `centre` is mean − shift: the shift was subtracted from the values.
    """
    zero = np.zeros_like(var)
    square = Pair(var, zero)
    divisor = add_eps(square, pair_root(square), plan.spec.eps, plan.spec.eps_mode)
    divisor = keep_endless(square, divisor)
    nothing, never = Pair(zero, zero), np.zeros(var.shape, np.bool_)
    coefficients = Coefficients(
        Pair(centre, zero), zero, nothing, zero, nothing, invert_pair(divisor), nothing, None, never.copy()
    )
    unclear = (var != 0.0) & ~is_within(var, _LEAST, _LARGEST) & np.isfinite(var)
    return _mark(coefficients, divisor, unclear, never)


def _mark(coefficients: Coefficients, divisor: Pair, unclear: Selected, unknown: Selected) -> Coefficients:
    """Mark groups that pairs do not decide as `extreme`; return the coefficients, which are changed in place.

    Groups whose numbers are very large or very small are marked too. 1/D of unknown groups becomes NaN.

    Parameters
    ----------
    coefficients : Coefficients
    divisor : Pair
        The divisor D of each group.
    unclear, unknown : ndarray of bool
        True for groups whose numbers pairs do not decide, and for groups whose gradients are NaN.
    """
    for known in (coefficients.centre, coefficients.mean, coefficients.steepness, divisor, coefficients.share):
        unclear = unclear | (~is_within(known.hi, _LEAST, _LARGEST) & np.isfinite(known.hi))
    inverse = coefficients.inverse
    inverse.hi[unknown], inverse.lo[unknown] = np.nan, 0.0
    coefficients.extreme = (coefficients.extreme | unclear) & ~unknown
    return coefficients


def is_within(values: Floats, least: float, largest: float) -> Selected:
    """Return an array that is True where the magnitude of a value lies between two numbers, or is 0."""
    sizes = np.abs(values)
    return np.asarray(((sizes > least) & (sizes < largest)) | (sizes == 0.0))


def _bound(quotient: RoundedNumbers) -> tuple[Pair, Floats]:
    """Return a pair, and an upper bound of its error."""
    return quotient.value, np.where(quotient.inexact, np.abs(quotient.value.hi) * PAIR.error, 0.0)


class _DivisorAndSteepness(NamedTuple):
    """The divisor D of groups and the coefficient B of dx = (g − A − w · B) / D, as in `Coefficients`.

    `unclear` is True where both have to be calculated exactly.
    """

    divisor: Pair
    steepness: Pair
    unclear: Selected


def _solve(plan: Plan, sums: GradientSums, power: Pair, product: Pair, times: Floats) -> _DivisorAndSteepness:
    """Return the divisor D and the coefficient B of groups, for dx = (g − A − w · B) / D.

    Parameters
    ----------
    plan : Plan
    sums : GradientSums
    power, product : Pair
        Σ|x − μ|ᵖ and Σ g · (x − μ), times `times`, of groups with the mean μ.
    times : ndarray
        The number of values of each group for a norm with a mean; else 1.
    """
    if sums.p != 2.0:
        return _solve_length(plan, sums, power, product)
    freedom = np.broadcast_to(np.asarray(find_freedom(plan, sums.count), np.float64), times.shape)
    parts = two_prod(times, np.where(freedom > 0.0, freedom, np.nan))
    square = pair_divide(power, parts)
    root = pair_root(square)
    divisor = add_eps(square, root, plan.spec.eps, plan.spec.eps_mode)
    beside = root if plan.spec.eps_mode is EpsMode.OUTSIDE else divisor
    steepness = pair_divide(product, pair_multiply(parts, pair_multiply(divisor, beside)))
    flat, unclear = _find_flat(plan, root)
    replaced = _replace_nothing(plan, divisor.hi == 0.0, divisor, steepness.keep(~flat))
    return _DivisorAndSteepness(*replaced, unclear)


def _solve_length(plan: Plan, sums: GradientSums, power: Pair, product: Pair) -> _DivisorAndSteepness:
    """Return the divisor D and the coefficient B of groups divided by an ℓp length other than ℓ2.

    Parameters
    ----------
    plan : Plan
    sums : GradientSums
    power, product : Pair
        Σ|x|ᵖ, for p = 0 and 1 (not used for other p), and Σ g · x.
    """
    zero, decimals = np.zeros_like(power.hi), needs_decimals(sums.p)
    rough = np.zeros(power.hi.shape, np.bool_)
    length, ties = (power, zero + 1.0)
    if math.isinf(sums.p):
        length = sums.peak.map(lambda a: np.where(sums.count == 0, 0.0, a))
        ties = np.maximum(sums.ties, 1).astype(np.float64)
    total = length
    if decimals:
        rough = sums.rough | ~is_within(sums.lengths.hi, LEAST_VALUE, LARGEST_VALUE)
        total = sums.lengths.keep(~rough, 1.0)
        root = take_root(total, sums.p)
        length = root.value.map(lambda part: np.ldexp(part, root.exponent))
        rough |= ~is_moderate(length.hi)
    divisor = add_eps(Pair(zero, zero), length, plan.spec.eps, plan.spec.eps_mode)
    steepness = pair_divide(product, pair_multiply(divisor, Pair(ties, zero)))
    if decimals:
        steepness = pair_divide(pair_multiply(steepness, length), total)  # length^(p − 1) is Σ|x|ᵖ / length
    flat, unclear = _find_flat(plan, length)
    flat |= sums.p == 0.0
    replaced = _replace_nothing(plan, divisor.hi == 0.0, divisor, steepness.keep(~flat))
    return _DivisorAndSteepness(*replaced, unclear | rough)


def _find_flat(plan: Plan, root: Pair) -> tuple[Selected, Selected]:
    """Return two bool arrays: where the divisor is constant in the values, and where pairs do not decide that.

    It is constant where the root is 0, or below an eps that is a floor.
    """
    flat, eps = root.hi == 0.0, plan.spec.eps
    if not eps or plan.spec.eps_mode not in (EpsMode.FLOOR, EpsMode.SQUARE_FLOOR):
        return flat, np.zeros(flat.shape, np.bool_)
    floor = eps if plan.spec.eps_mode is EpsMode.FLOOR else math.sqrt(eps)
    return flat | (root.hi < floor), np.abs(root.hi - floor) <= _NEAR * floor


def _replace_nothing(plan: Plan, nothing: Selected, divisor: Pair, steepness: Pair) -> tuple[Pair, Pair]:
    """Return the divisor D (or 1/D) and the coefficient B, set by the zero rule where `nothing` is True."""
    rule = plan.spec.zero_rule
    divisor = divisor.keep(~nothing, math.nan if rule is ZeroRule.NAN else 1.0)
    return divisor, steepness.keep(~nothing, math.nan if rule is ZeroRule.ZERO else 0.0)
