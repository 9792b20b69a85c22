"""Derivatives in rational arithmetic, value by value: where pairs do not decide, or leave the range of doubles.

Roots are taken to 300 bits, and powers of other exponents than 0, 1, 2 and ±∞ to 120 digits: what is made of
them is known to so small a part of its largest term.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np

from normcli.dtypes import is_short_float
from normcli.norms.rules import Centre, EpsMode, ZeroRule
from normcli.numerics.divisor import find_freedom
from normcli.numerics.fixed import Fixed
from normcli.numerics.powers import raise_decimal, use_digits
from normcli.numerics.rational import ROOT_BITS, add_eps, find_exponent, find_root, round_once, scale
from normcli.numerics.rounding import store
from normcli.numerics.settling import round_to_odd
from normcli.numerics.slope_sums import needs_decimals
from normcli.tuples import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from normcli.dtypes import Floats
    from normcli.norms.plan import Plan
    from normcli.numerics.slope_sums import Rows, Sums

_DIGITS = 120


class ExactSlope(NamedTuple):
    """What the derivatives of one group's values are made of; see `slopes`.

    Parameters
    ----------
    p : float
    centre : Fraction
        What is subtracted from values, less the shift.
    mean, steepness : Fraction
        A and B.
    inverse : Fraction or None
        1/D; None where there is no derivative.
    product : Fraction
        Σ g · (x − μ).
    peak : Fraction or None
        Of p = ±∞, the |x| that the length is.
    """

    p: float
    centre: Fraction
    mean: Fraction
    steepness: Fraction
    inverse: Fraction | None
    product: Fraction = Fraction(0)
    peak: Fraction | None = None

    def weigh(self, deviation: Fraction) -> Fraction:
        """Return w of a value, given as its deviation from the shift."""
        if self.p == 2.0:
            return deviation - self.centre
        sign = Fraction((deviation > 0) - (deviation < 0))
        if self.peak is not None:
            return sign if abs(deviation) == self.peak else Fraction(0)
        return (
            sign * raise_exactly(abs(deviation), Fraction(self.p) - 1)
            if needs_decimals(self.p) and deviation
            else sign
        )

    def flatten(self, plan: Plan) -> ExactSlope:
        """Return that of a group whose divisor counts as 0, though it is not."""
        return self._replace(steepness=Fraction(0), inverse=_invert(plan, Fraction(0)))

    @property
    def share(self) -> Fraction | None:
        """Σ g · x̂ of the group."""
        return None if self.inverse is None else self.inverse * self.product

    def differentiate(self, rows: Rows, gamma: Fraction) -> list[Fraction | None]:
        """Return dx of some values of the group; `gamma` is one for all of it."""
        if self.inverse is None:
            return [None] * rows.dy.size
        factor = gamma * self.inverse
        return [
            factor * ((g - self.mean - self.weigh(d) * self.steepness) if counts else g)
            for d, g, counts in rows.take_exactly()
        ]

    def find_shares(self, rows: Rows) -> list[Fraction | None]:
        """Return dy · x̂ of some values of the group."""
        if self.inverse is None:
            return [None] * rows.dy.size
        return [self.inverse * (d - self.centre) * dy for d, dy, _ in rows._replace(gamma=None).take_exactly()]


NO_SLOPE = ExactSlope(2.0, *(Fraction(0),) * 4)
"""Of a group of which nothing is normalized."""


def solve_exactly(plan: Plan, sums: Sums, group: int, powers: Fraction | None = None) -> ExactSlope:
    """Return what the derivatives of one group's values are made of, from its exact sums.

    Parameters
    ----------
    plan : Plan
    sums : Sums
    group : int
    powers : Fraction or None
        Σ|x|ᵖ to 120 digits, where a length needs decimals; None where it is not finite.
    """
    total, power, gradient, product = (
        take_sum(fixed, group) for fixed in (sums.totals, sums.powers, sums.gradients, sums.products)
    )
    count, zero = int(sums.count[group]), Fraction(0)
    if plan.norm.centre is not Centre.MEAN:
        centre = mean = zero
    elif not count:
        return ExactSlope(sums.p, zero, zero, zero, None)
    else:
        centre, mean = total / count, gradient / count
        power, product = power - total * centre, product - centre * gradient
    if sums.p != 2.0:
        return _solve_length(plan, sums, group, powers if needs_decimals(sums.p) else power, product)
    freedom = int(find_freedom(plan, count))
    if freedom <= 0:
        return ExactSlope(sums.p, centre, mean, zero, None)
    square = power / freedom
    by = _multiply_divisor(plan, square)
    inverse = _invert(plan, find_divisor(plan, square))
    return ExactSlope(sums.p, centre, mean, product / (freedom * by) if by else zero, inverse, product)


def solve_given_exactly(plan: Plan, var: float) -> ExactSlope:
    """Return what derivatives are made of where mean and variance are given: the mean is the shift."""
    zero = Fraction(0)
    return ExactSlope(2.0, zero, zero, zero, 1 / find_divisor(plan, Fraction(var)))


def find_divisor(plan: Plan, square: Fraction) -> Fraction:
    """Return the divisor of a variance, mean square or squared length; 0 where it is nothing."""
    return add_eps(square, plan.spec.eps, plan.spec.eps_mode)


def _invert(plan: Plan, divisor: Fraction) -> Fraction | None:
    if not divisor:
        return Fraction(1) if plan.spec.zero_rule is ZeroRule.ONE else None
    return 1 / divisor


def _multiply_divisor(plan: Plan, square: Fraction) -> Fraction | None:
    """Return D · R, as in `slopes`; None where the divisor does not follow the values."""
    eps, mode = Fraction(plan.spec.eps or 0.0), plan.spec.eps_mode
    if (
        not square
        or (mode is EpsMode.FLOOR and square < eps * eps)
        or (mode is EpsMode.SQUARE_FLOOR and square < eps)
    ):
        return None
    if mode is EpsMode.INSIDE:
        return square + eps
    if mode is EpsMode.OUTSIDE and eps:
        # Where dx cancels but for what eps adds, that has to be among the bits of the root.
        further = max(0, find_exponent(square) // 2 - find_exponent(eps))
        root = find_root(square, ROOT_BITS + 2 * further)
        return root * (root + eps)
    return square


def _solve_length(plan: Plan, sums: Sums, group: int, power: Fraction | None, product: Fraction) -> ExactSlope:
    """Solve for an ℓp length other than ℓ2."""
    zero, peak, ties, eps = Fraction(0), None, 1, Fraction(plan.spec.eps or 0.0)
    length = power or zero
    if math.isinf(sums.p):
        hi, lo = (float(part[group]) for part in sums.peak)
        length = peak = Fraction(hi) + Fraction(lo) if sums.count[group] else zero
        ties = max(1, int(sums.ties[group]))
    elif needs_decimals(sums.p):
        length = raise_exactly(power, 1 / Fraction(sums.p)) if power else zero
    floors = plan.spec.eps_mode is EpsMode.FLOOR
    divisor = max(length, eps) if floors else length + eps
    steepness = zero
    if length and sums.p and not (floors and length < eps):
        steepness = product / (divisor * ties)
        if needs_decimals(sums.p):
            steepness *= length / (power or zero)  # length^(p − 1) is Σ|x|ᵖ / length
    return ExactSlope(sums.p, zero, zero, steepness, _invert(plan, divisor), product, peak)


def sum_powers(sizes: Sequence[Fraction], p: float) -> Fraction | None:
    """Return Σ sizeᵖ; None where that is infinite: of a 0 and a negative p."""
    if p < 0.0 and not all(sizes):
        return None
    return sum((raise_exactly(size, p) for size in sizes if size), Fraction(0))


def raise_exactly(size: Fraction, p: float | Fraction) -> Fraction:
    """Return sizeᵖ of a positive number, to 120 digits or so."""
    with use_digits(_DIGITS):
        return Fraction(raise_decimal(size, p))


def take_sum(fixed: Fixed, group: int) -> Fraction:
    """Return the exact sum of one group."""
    (integer,), exponent = Fixed(fixed.digits[:, group : group + 1], fixed.low).integers()
    return scale(Fraction(integer), exponent)


def round_fractions(values: Sequence[Fraction | None], dtype: np.dtype[Any]) -> NDArray[Any]:
    """Return fractions in a dtype, rounded once; None is NaN."""
    rounding = round_to_odd if is_short_float(dtype) else round_once
    return round_values(np.array([np.nan if value is None else rounding(value) for value in values]), dtype)


def round_values(values: Floats, dtype: np.dtype[Any]) -> NDArray[Any]:
    """Return doubles in a dtype, rounded once."""
    result = np.empty(values.shape, dtype)
    store(result, values)
    return result
