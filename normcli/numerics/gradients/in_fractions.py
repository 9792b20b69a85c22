"""Gradients in rational arithmetic, value by value: where pairs do not decide, or leave the range of doubles.

Roots, and powers of other exponents than 0, 1, 2 and ±∞, are taken to a number of bits that the caller chooses.
Results come with a bound of their error, which is about 2^−bits of their terms.
"""

from __future__ import annotations

import functools
import math
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np

from normcli.norms.rules import Centre, EpsMode, ZeroRule
from normcli.numerics.deciding import PRECISIONS, enclose, round_quotient, round_reals, round_to
from normcli.numerics.gradients.sums import needs_decimals
from normcli.numerics.powers import raise_exactly
from normcli.numerics.rational import ROOT_BITS, find_root, scale
from normcli.numerics.rounding import store
from normcli.numerics.statistics.divisor import find_exact_divisor, find_freedom
from normcli.tuples import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

    from normcli.dtypes import Floats, Integers
    from normcli.norms.plan import Plan
    from normcli.numerics.deciding import Bounded, Enclosed
    from normcli.numerics.gradients.rows import ExactGradient, GradientRows
    from normcli.numerics.gradients.sums import GradientSums


class ExactCoefficients(NamedTuple):
    """The coefficients of dx = (g − A − w · B) / D of one group, with g, w and D as in `Coefficients`.

    Parameters
    ----------
    p : float
        The exponent of the divisor's powers; 2 for variances and mean squares.
    centre : Fraction or None
        The mean μ minus the shift that was subtracted from the values; None for a given mean that is not
        finite, of which dx is independent.
    mean : Fraction
        A, the mean of g.
    steepness : Fraction or None
        B; None where a group of equal values has no derivative.
    inverse : Fraction or None
        1/D; None where normalized values are NaN.
    product : Fraction
        Σ g · (x − μ).
    peak : Fraction or None
        For p = ±∞, the |x| that is the length; None for other p.
    bits : int or None
        The bits that roots and powers were taken to; None if all numbers here are exact.
    mean_error, steepness_error, product_error : Fraction
        Upper bounds of errors that come from a gate's factors of dy.
    """

    p: float
    centre: Fraction | None
    mean: Fraction
    steepness: Fraction | None
    inverse: Fraction | None
    product: Fraction = Fraction(0)
    peak: Fraction | None = None
    bits: int | None = None
    mean_error: Fraction = Fraction(0)
    steepness_error: Fraction = Fraction(0)
    product_error: Fraction = Fraction(0)

    def weigh(self, deviation: Fraction) -> Fraction:
        """Return w of a value in dx = (g − A − w · B) / D; `deviation` is x minus the shift of the group."""
        if self.p == 2.0:
            return deviation - (self.centre or 0)
        sign = Fraction((deviation > 0) - (deviation < 0))
        if self.peak is not None:
            return sign if abs(deviation) == self.peak else Fraction(0)
        if needs_decimals(self.p) and deviation:
            sign *= raise_exactly(abs(deviation), Fraction(self.p) - 1, self.bits or ROOT_BITS)
        return sign

    def flatten(self, plan: Plan) -> ExactCoefficients:
        """Return the coefficients as of a group with a divisor of 0."""
        return _solve_nothing(plan, self)

    @property
    def share(self) -> Bounded:
        """Σ g · x̂ of the group, and a bound of its error; None for NaN."""
        if self.inverse is None:
            return None
        return self._bound(self.inverse * self.product, off=self.inverse * self.product_error)

    def differentiate(self, rows: GradientRows, gamma: Fraction, bits: int = ROOT_BITS) -> list[Bounded]:
        """Return dx of some values of the group, each with a bound of its error, or None for NaN.

        `gamma` is one for the whole group; a gate's factors are taken to `bits` bits.
        """
        return [self._differentiate(value, gamma) for value in rows.take_exactly(bits)]

    def _differentiate(self, value: ExactGradient, gamma: Fraction) -> Bounded:
        d, g, off, counts = value
        if self.inverse is None or (counts and self.steepness is None):
            return None
        factor = gamma * self.inverse
        if not counts:
            return self._bound(factor * g, off=factor * off)
        w, rest = self.weigh(d), g - self.mean
        term = w * (self.steepness or 0)
        off = off + self.mean_error + abs(w) * self.steepness_error
        return self._bound(factor * (rest - term), abs(factor) * (abs(rest) + abs(term)), factor * off)

    def find_shares(self, rows: GradientRows, bits: int = ROOT_BITS) -> list[Bounded]:
        """Return dy · x̂ of some values of the group, each with a bound of its error; None for NaN."""
        if self.inverse is None or self.centre is None:
            return [None] * rows.dy.size
        found: list[Bounded] = []
        for d, dy, off, _ in rows._replace(gamma=None).take_exactly(bits):
            x_hat = self.inverse * (d - self.centre)
            found.append(self._bound(x_hat * dy, off=x_hat * off))
        return found

    def _bound(
        self, value: Fraction, size: Fraction | None = None, off: Fraction = Fraction(0)
    ) -> tuple[Fraction, Fraction]:
        """Return a value with a bound of its error.

        The error comes from roots and powers to `self.bits` bits, relative to `size`, the sum of |terms| (None:
        |value|), and from gates: `off` is that part.
        """
        if self.bits is None:
            return value, abs(off)
        return value, scale(abs(value) if size is None else size, _LOST_BITS - self.bits) + 2 * abs(off)


_LOST_BITS = 6
"""Bits that errors grow by: a term has three factors at most, each off by at most 2⁴ units of its last bit."""


class GatedSums(NamedTuple):
    """The sums of a group where a gate multiplies dy: mean(g) and Σ g · (x − μ), with bounds of the errors.

    g is the derivative of the loss with respect to x̂.
    """

    mean: Fraction
    product: Fraction
    mean_error: Fraction = Fraction(0)
    product_error: Fraction = Fraction(0)


NO_COEFFICIENTS = ExactCoefficients(2.0, *(Fraction(0),) * 4)
"""The coefficients of a group of which nothing is normalized."""


def solve_exactly(
    plan: Plan,
    sums: GradientSums,
    group: int,
    powers: Fraction | None = None,
    bits: int = ROOT_BITS,
    gated: GatedSums | None = None,
) -> ExactCoefficients:
    """Return the coefficients of one group, from its exact sums.

    Parameters
    ----------
    plan : Plan
    sums : GradientSums
    group : int
        The index of the group in the sums.
    powers : Fraction or None
        Σ|x|ᵖ to `bits` bits, for a p other than 0, 1, 2 and ±∞; None if it is infinite, or for these p.
    bits : int
        The bits that roots and powers are taken to.
    gated : GatedSums or None
        If a gate multiplies dy, the sums with gradients, which are used in place of those in `sums`; else None.
    """
    if gated is not None and (gated.mean_error or gated.product_error):
        worst = solve_exactly(plan, sums, group, powers, bits, GatedSums(Fraction(0), gated.product_error))
        exact = solve_exactly(plan, sums, group, powers, bits, GatedSums(gated.mean, gated.product))
        steep = abs(worst.steepness or Fraction(0)) * 2
        return exact._replace(
            mean_error=gated.mean_error, product_error=gated.product_error, steepness_error=steep
        )
    total, power, gradient, product = (
        fixed.recall(group) for fixed in (sums.totals, sums.powers, sums.gradients, sums.products)
    )
    count, zero = int(sums.count[group]), Fraction(0)
    if plan.norm.centre is not Centre.MEAN:
        centre = mean = zero
    elif not count:
        return ExactCoefficients(sums.p, zero, zero, zero, None)
    else:
        centre, mean = total / count, gradient / count
        power, product = power - total * centre, product - centre * gradient
    if gated is not None:
        mean, product = gated.mean, gated.product
    if sums.p != 2.0:
        return _solve_length(plan, sums, group, powers if needs_decimals(sums.p) else power, product, bits)
    freedom = int(find_freedom(plan, count))
    if freedom <= 0:
        return ExactCoefficients(sums.p, centre, mean, zero, None)
    square = power / freedom
    by = _multiply_divisor(plan, square, bits)
    steepness = product / (freedom * by) if by else zero
    known = ExactCoefficients(sums.p, centre, mean, steepness, None, product)
    return _divide(
        plan, known, find_exact_divisor(plan, square, bits), find_exact_divisor(plan, square, 2 * bits), bits
    )


def solve_given_exactly(
    plan: Plan, var: float, centre: float = 0.0, bits: int = ROOT_BITS
) -> ExactCoefficients:
    """Return the coefficients of a group whose variance and mean (the values' shift + `centre`) are given."""
    zero, square = Fraction(0), Fraction(var)
    mean = Fraction(centre) if math.isfinite(centre) else None
    known = ExactCoefficients(2.0, mean, zero, zero, None)
    return _divide(
        plan, known, find_exact_divisor(plan, square, bits), find_exact_divisor(plan, square, 2 * bits), bits
    )


def _divide(
    plan: Plan, known: ExactCoefficients, divisor: Fraction, finer: Fraction, bits: int
) -> ExactCoefficients:
    """Return coefficients with 1 / divisor as their inverse, or by the zero rule if the divisor is 0.

    They are marked as exact (`bits` None) if `finer`, the divisor calculated with more bits, is equal to it.
    """
    if not divisor:
        return _solve_nothing(plan, known)
    return known._replace(inverse=1 / divisor, bits=None if divisor == finer else bits)


def _solve_nothing(plan: Plan, known: ExactCoefficients) -> ExactCoefficients:
    """Return coefficients as of a group with a divisor of 0: B and 1/D are those that the zero rule says."""
    rule = plan.spec.zero_rule
    steepness = None if rule is ZeroRule.ZERO else Fraction(0)
    inverse = None if rule is ZeroRule.NAN else Fraction(1)
    return known._replace(steepness=steepness, inverse=inverse, bits=None, steepness_error=Fraction(0))


def _multiply_divisor(plan: Plan, square: Fraction, bits: int) -> Fraction | None:
    """Return D · R of a group with a variance or mean square, with roots to `bits` bits.

    D is the divisor, and R the root alone if eps is added to it, else D. None where the divisor does not depend
    on the values.
    """
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
        root = find_root(square, bits)
        return root * (root + eps)
    return square


def _solve_length(
    plan: Plan, sums: GradientSums, group: int, power: Fraction | None, product: Fraction, bits: int
) -> ExactCoefficients:
    """Return the coefficients of a group divided by an ℓp length other than ℓ2.

    Parameters
    ----------
    plan : Plan
    sums : GradientSums
    group : int
        The index of the group in the sums.
    power : Fraction or None
        Σ|x|ᵖ; None if it is infinite. It is not used for p = ±∞.
    product : Fraction
        Σ g · x.
    bits : int
        The bits that roots and powers are taken to.
    """
    zero, peak, ties, eps = Fraction(0), None, 1, Fraction(plan.spec.eps or 0.0)
    length = power or zero
    if math.isinf(sums.p):
        hi, lo = (float(part[group]) for part in sums.peak)
        length = peak = Fraction(hi) + Fraction(lo) if sums.count[group] else zero
        ties = max(1, int(sums.ties[group]))
    elif needs_decimals(sums.p):
        length = raise_exactly(power, 1 / Fraction(sums.p), bits) if power else zero
    floors = plan.spec.eps_mode is EpsMode.FLOOR
    divisor = max(length, eps) if floors else length + eps
    steepness = zero
    if length and sums.p and not (floors and length < eps):
        steepness = product / (divisor * ties)
        if needs_decimals(sums.p):
            steepness *= length / (power or zero)  # length^(p − 1) is Σ|x|ᵖ / length
    known = ExactCoefficients(sums.p, zero, zero, steepness, None, product, peak)
    return _divide(plan, known, divisor, zero if needs_decimals(sums.p) else divisor, bits)


def sum_powers(sizes: Sequence[Fraction], p: float, bits: int = ROOT_BITS) -> Fraction | None:
    """Return Σ sizeᵖ to `bits` bits; None if the sum is infinite: with a 0 and a negative p."""
    if p < 0.0 and not all(sizes):
        return None
    return sum((raise_exactly(size, p, bits) for size in sizes if size), Fraction(0))


def round_fractions(values: Sequence[Fraction | None], dtype: np.dtype[Any]) -> NDArray[Any]:
    """Return fractions in a dtype, rounded once; None is NaN."""
    rounded = [np.nan if value is None else round_to(value, PRECISIONS[dtype.name]) for value in values]
    return round_values(np.array(rounded), dtype)


def round_exactly(
    evaluate: Callable[[list[int], int], Sequence[Bounded]], places: Integers, dtype: np.dtype[Any]
) -> NDArray[Any]:
    """Return the exact values at some indices in a dtype, rounded once.

    `evaluate` takes indices and a number of bits; it returns, for each index, a value and a bound of its error,
    or None for NaN. It is called with more bits, at most 4,800, until the roundings are decided.
    """
    rounding = functools.partial(round_quotient, precision=PRECISIONS[dtype.name])

    def enclose_all(places: list[int], bits: int) -> list[Enclosed | None]:
        return [known and enclose(*known) for known in evaluate(places, bits)]

    return round_values(np.array(round_reals(enclose_all, places.tolist(), rounding)), dtype)


def round_values(values: Floats, dtype: np.dtype[Any]) -> NDArray[Any]:
    """Return doubles in a dtype, rounded once."""
    result = np.empty(values.shape, dtype)
    store(result, values)
    return result
