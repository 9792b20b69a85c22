"""Single elements, calculated in pairs at any magnitude and rounded once, where the kernel cannot reach.

Every factor is scaled to about 1 first, and the powers of two are added up by themselves, so that nothing over-
or underflows but the result itself.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from normcli.numerics.deciding import PAIR, PRECISIONS, is_decided
from normcli.numerics.pairs import (
    Pair,
    Triple,
    map_arrays,
    pair_divide,
    pair_multiply,
    quick_two_sum,
    take_exponents,
    two_sum,
)
from normcli.tuples import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable

    from normcli.dtypes import Floats, Integers, Selected
    from normcli.numerics.deciding import Precision
    from normcli.numerics.elements.gate import Gated


SOLVED = 2.0**-90
"""The largest relative error of moments' divisors: beyond it, a group is solved by fractions."""

KNOWN = 2.0**-77
"""The largest relative error of a solution's divisors."""


class Elements(NamedTuple):
    """Values x, with the numbers that normalize each: arrays that broadcast against each other, or None.

    Parameters
    ----------
    x : ndarray of float64
    mean : Triple or None
        None for norms that do not centre.
    divisor : Pair or None
        None for no division: γ · x + β is then exact before it is rounded.
    gamma, beta : ndarray or None
        None for 1 and 0.
    low : ndarray or None
        The number added to x where an integer has more bits than a double; None for 0.
    error : float or ndarray
        An upper bound of the relative error of the divisor.
    gate : Gated or None
        The gate that multiplies the result; None without one.
    """

    x: Any
    mean: Triple | None
    divisor: Pair | None
    gamma: Any
    beta: Any
    low: Any = None
    error: Any = KNOWN
    gate: Gated | None = None

    def map(self, function: Callable[[Any], Any]) -> Elements:
        """Return the elements with a function (an index, a reshape) applied to each array."""
        return map_arrays(self, function)


class Results(NamedTuple):
    """Results as float64, to be rounded to a dtype, and where they are undecided; None if all are decided."""

    values: Floats
    undecided: Selected | None


_MEAN_KNOWN, _LEAST = 2.0**-88, 2.0**-1074
"""The error of a mean: the first times its second double, at least the second; 0 if that double is 0."""


def calculate(elements: Elements, precision: Precision) -> Results:
    """Return γ · (x − mean) / divisor + β, times the factors of a gate if the elements have one.

    Parameters
    ----------
    elements : Elements
    precision : Precision
        The precision of the dtype that the values are then rounded to.

    Returns
    -------
    Results
        For float64, the rounded values. For shorter dtypes, doubles rounded to odd: rounding these to the dtype
        gives the exact values, rounded once. A result is undecided if the errors of mean and divisor allow two
        roundings.
    """
    with np.errstate(all="ignore"):
        total, error, exponent = _multiply_and_divide(elements)
        if elements.beta is not None:
            total, error, exponent = _add(total, error, exponent, _make_triple(elements.beta))
        plain, chosen = _calculate_plainly(elements)
        if elements.gate is not None:
            factor, special, of_doubles, _ = elements.gate.evaluate(precision.bits)
            is_beta = chosen & np.isfinite(plain)  # exactly, as x − mean or its quotient is 0
            total = total.keep(~is_beta, plain)
            error, exponent = np.where(is_beta, 0.0, error), np.where(is_beta, 0, exponent)
            before = np.where(chosen, plain, round_pair(total, exponent, precision))
            chosen = special | (chosen & ~(is_beta & (plain != 0.0)))
            plain = before * np.where(special, of_doubles, factor.pair.hi)
            z, k = take_exponents(total)
            part = np.ldexp(error, -k) / np.abs(z.hi)
            z, error = _multiply(z, np.where(error == 0.0, 0.0, part), factor.value, factor.error)
            total, error, exponent = z, error * np.abs(z.hi), exponent + k + factor.exponent
            if elements.gate.less is not None:
                plain = plain - elements.gate.less
                total, error, exponent = _add(total, error, exponent, _make_triple(-elements.gate.less))
        values = np.where(chosen, plain, round_pair(total, exponent, precision))
        undecided = ~(is_decided(total, exponent, error, precision) | chosen)
        return Results(values, undecided if undecided.any() else None)


def _multiply_and_divide(elements: Elements) -> tuple[Pair, Any, Integers]:
    """Return γ · (x − mean) / divisor, which is z · 2^e, as a pair z, a bound of its error, and e.

    The bound has the unit 2^e, too. z is of a size of about 1, so that no product of it overflows.
    """
    z, error, exponent = _centre(elements)
    z, exponent = take_exponents(z, exponent)
    if elements.divisor is not None:
        divisor, k = take_exponents(elements.divisor)
        z, error, exponent = *_divide(z, error, divisor, elements.error), exponent - k
    if elements.gamma is not None:
        gamma, k = take_exponents(_make_pair(elements.gamma))
        z, error, exponent = *_multiply(z, error, gamma), exponent + k
    return z, error * np.abs(z.hi), exponent


def multiply_back(elements: Elements) -> tuple[Pair, Any, Integers]:
    """Return (x − β) / γ · divisor + mean, which is z · 2^e, as a pair z, a bound of its error, and e.

    The bound has the unit 2^e, too.
    """
    beta, gamma, divisor, mean = elements.beta, elements.gamma, elements.divisor, elements.mean
    assert divisor is not None  # of what is normalized
    z, error, exponent = _centre(elements._replace(mean=None if beta is None else _make_triple(beta)))
    z, exponent = take_exponents(z, exponent)
    if gamma is not None:
        scale, k = take_exponents(_make_pair(gamma))
        z, error, exponent = *_divide(z, error, scale, 0.0), exponent - k
    factor, k = take_exponents(divisor)
    z, error = _multiply(z, error, factor, elements.error)
    total, error, exponent = z, error * np.abs(z.hi), exponent + k
    if mean is not None:
        total, error, exponent = _add(total, error, exponent, mean)
    return total, error, exponent


def _make_pair(values: Floats) -> Pair:
    return Pair(values, np.zeros_like(values))


def _make_triple(values: Floats) -> Triple:
    return Triple(values, np.zeros_like(values), np.zeros_like(values))


def _divide(z: Pair, error: Any, divisor: Pair, off: Any) -> tuple[Pair, Any]:
    """Return z / divisor, and its relative error; z has the relative error `error`, the divisor `off`.

    The divisor is scaled to between 1/2 and 1.
    """
    is_power_of_two = np.equal(off, 0.0) & (np.abs(divisor.hi) == 0.5) & (divisor.lo == 0.0)
    return pair_divide(z, divisor), np.where(is_power_of_two, error, error + off + PAIR.error)


def _multiply(z: Pair, error: Any, factor: Pair, off: Any = 0.0) -> tuple[Pair, Any]:
    """Return z · factor, and its relative error; z has the relative error `error`, the factor `off`."""
    inexact = (error > 0.0) | (z.lo != 0.0) | (factor.lo != 0.0)
    return pair_multiply(z, factor), np.where(inexact, error + PAIR.error, 0.0) + off


def _centre(elements: Elements) -> tuple[Pair, Any, Integers]:
    """Return x + low − mean as a pair, its relative error, and the exponent of 2 of the pair."""
    hi, exponent = np.frexp(elements.x)
    low = hi * 0.0 if elements.low is None else np.ldexp(elements.low, -exponent)
    if elements.mean is None:
        return Pair(hi, low), np.zeros(()), exponent
    z, error, exponent = _add(Pair(hi, low), 0.0, exponent, elements.mean.map(np.negative))
    return z, np.where(error > 0.0, error / np.abs(z.hi) + PAIR.error, 0.0), exponent


_FAR = -400
"""Of numbers further apart than 2⁴⁰⁰, the smaller one only tells on which side of the other their sum is."""


def _add(product: Pair, error: Any, exponent: Integers, term: Triple) -> tuple[Pair, Any, Integers]:
    """Return a pair s of about 1, a bound of its error, and an exponent k: product + term is s · 2^k.

    Parameters
    ----------
    product : Pair
    error : float or ndarray
        A bound of the error of `product`.
    exponent : ndarray of int
        The power of two that `product` and its error are multiplied by.
    term : Triple
        The other summand, as it is.
    """
    k = np.frexp(term.hi)[1]
    largest = np.where(term.hi == 0.0, exponent, np.where(product.hi == 0.0, k, np.maximum(exponent, k)))
    of_term, shift = np.maximum(k - largest, _FAR) - k, np.maximum(exponent - largest, _FAR)
    is_far = ((shift == _FAR) & (product.hi != 0.0)) | ((of_term + k == _FAR) & (term.hi != 0.0))
    lost = np.where(is_far, 2.0 ** (_FAR + 1), 0.0) + _find_lost(term, of_term)
    error = np.ldexp(error, shift) + lost
    product, term = product.map(lambda a: np.ldexp(a, shift)), term.map(lambda a: np.ldexp(a, of_term))
    first, rest = two_sum(product.hi, term.hi)
    second, third = two_sum(rest, product.lo)
    second, fourth = two_sum(second, term.mid)
    hi, lo = two_sum(first, second)
    small = third + (fourth + term.lo)
    rest = lo + small
    sizes = np.abs(third) + np.abs(fourth) + np.abs(term.lo)
    return (
        quick_two_sum(hi, rest),
        error + np.where(sizes == 0.0, 0.0, (np.abs(rest) + sizes) * 2.0**-51),
        largest,
    )


def _find_lost(mean: Triple, exponent: Integers) -> Any:
    """Return an upper bound of the error of mean · 2^exponent; 0 where the mean is one double."""
    unit = np.maximum(np.ldexp(_LEAST, exponent), _LEAST)
    return np.where(mean.mid == 0.0, 0.0, np.maximum(np.abs(np.ldexp(mean.mid, exponent)) * _MEAN_KNOWN, unit))


def round_pair(total: Pair, exponent: Integers, precision: Precision) -> Floats:
    """Return total · 2^exponent as doubles: rounded once for float64; for shorter dtypes, rounded to odd.

    Rounding a double that was rounded to odd to a shorter dtype gives the same as rounding the pair once.
    """
    hi, lo = total
    if precision.bits < PRECISIONS["float64"].bits:
        hi = round_to_odd(hi, lo)
    else:
        subnormal = np.frexp(hi)[1] + exponent <= precision.least
        if subnormal.any():
            hi = np.where(subnormal, _round_subnormal(total, exponent), hi)
    result: Floats = np.ldexp(hi, exponent)
    return result


def _round_subnormal(total: Pair, exponent: Integers) -> Floats:
    """Return total, rounded so that total · 2^exponent is a multiple of the least subnormal number."""
    hi, lo = total
    unit = np.ldexp(1.0, np.minimum(_LEAST_SUBNORMAL - exponent, 60))
    magic = np.copysign(2.0**52 * unit, hi)  # |hi| is at most 2^52 units
    nearest: Floats = np.copysign((hi + magic) - magic, hi)
    tie = (np.abs(hi - nearest) == unit / 2.0) & (lo != 0.0)
    return np.where(tie, hi + np.copysign(unit / 2.0, lo), nearest)


_LEAST_SUBNORMAL = -1074


def round_to_odd(hi: Floats, lo: Floats) -> Floats:
    """Return hi + lo, or if that is no double, the neighbour whose last bit is 1 (Boldo & Melquiond 2008)."""
    bits = np.array(hi, dtype=np.float64).view(np.int64)
    bits -= (lo != 0.0) & ((lo < 0.0) != (hi < 0.0))
    bits |= lo != 0.0
    return bits.view(np.float64)


_FINITE = np.finfo(np.float64).max


def _calculate_plainly(elements: Elements) -> tuple[Floats, Selected]:
    """Return γ · (x − mean) / divisor + β in doubles, and an array that is True where this is the final result.

    It is final where x, mean, divisor, gamma or beta is not finite, where the divisor is 0, and where x − mean
    is exactly 0. The gate is left out.
    """
    x, mean, divisor, gamma, beta, low, *_ = elements
    y, chosen = x, ~np.isfinite(x)
    if mean is None:
        chosen = chosen | (x == 0.0)
    else:
        is_mean = (x == mean.hi) & (mean.mid == (0.0 if low is None else low)) & (mean.lo == 0.0)
        chosen = chosen | ~np.isfinite(mean.hi)
        y = np.where(chosen, x - mean.hi, np.clip(x - mean.hi, -_FINITE, _FINITE))
        chosen = chosen | is_mean
    if divisor is not None:
        y = y / divisor.hi
        chosen = chosen | ~np.isfinite(divisor.hi) | (divisor.hi == 0.0)
    for parameter in (gamma, beta):
        if parameter is not None:
            chosen = chosen | ~np.isfinite(parameter)
    if gamma is not None:
        y = y * gamma
    if beta is not None:
        y = y + beta
    return y, chosen
