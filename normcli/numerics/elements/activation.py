"""The activations of a gate, act(z): in pairs of doubles with a bound, and to any number of bits.

With σ(t) = 1/(1 + e⁻ᵗ), `sigmoid` is σ(z), `silu` z · σ(z), `gelu-tanh` z · σ(√(8/π) (z + 0.044715 z³)),
`tanh` (1 − e⁻²ᶻ)/(1 + e⁻²ᶻ), `relu` max(z, 0), `none` z itself, and `gelu` z · Φ(z) with the distribution
function of the normal law, Φ(z) = ½ + φ(z) · (z + z³/3 + z⁵/15 + …) (Marsaglia 2004).

References
----------
Dauphin et al. 2017, arXiv:1612.08083, have sigmoid(z); Shazeer 2020, arXiv:2002.05202, gelu(z) and silu(z);
Hendrycks & Gimpel 2016, arXiv:1606.08415, have both forms of gelu.
"""

from __future__ import annotations

import enum
import itertools
import math
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np

from normcli.numerics.pairs import (
    Pair,
    pair_add,
    pair_divide,
    pair_multiply,
    pair_negate,
    take_exponents,
    two_square,
)
from normcli.numerics.powers import INVERSE_LN2, count_digits, raise_two, use_digits
from normcli.tuples import NamedTuple

if TYPE_CHECKING:
    from decimal import Decimal

    from normcli.dtypes import Floats

_PAIR_ERROR, _FAR_ERROR, _ERFC_ERROR = 2.0**-85, 2.0**-50, 2.0**-40
"""The relative errors of activations: in pairs, far from 0, and by the C library's erfc."""

_FAR, _FAR_LEFT = 1000.0, -64.0
"""Beyond the first, e⁻ᶻ loses digits; left of the second, z · Φ(z) times any double is rounded to 0."""

_SERIES_LEFT, _SERIES_RIGHT = -8.0, 12.0
"""Between these, Φ(z) is added up; left of them digits cancel, right of them it is 1 but for 2⁻¹⁰⁸."""

_DENSITY = Pair(0.3989422804014327, -2.49232720227773e-17)
"""1/√(2π)."""

_CUBIC = Fraction(44715, 10**6)

_complement = np.vectorize(math.erfc, otypes=[np.float64])


class Factor(NamedTuple):
    """What results are multiplied by: value · 2^exponent.

    Parameters
    ----------
    value : Pair
        Of about 1.
    exponent : ndarray of int
    error : float or ndarray
        How far off the value may be, as a part of it.
    limits : ndarray or None
        The factor where what it is made of is not finite.
    """

    value: Pair
    exponent: Any
    error: Any
    limits: Any = None


class Activation(enum.StrEnum):
    """What a gate goes through before it multiplies; the first is the usual one."""

    SILU = "silu"
    SIGMOID = "sigmoid"
    GELU = "gelu"
    GELU_TANH = "gelu-tanh"
    RELU = "relu"
    TANH = "tanh"
    NONE = "none"

    def evaluate(self, z: Floats) -> Factor:
        """Return act(z) of doubles in pairs."""
        finite = np.where(np.isfinite(z), z, 0.0)
        zero = np.zeros_like(finite)
        match self:
            case Activation.NONE | Activation.RELU:
                itself = finite if self is Activation.NONE else np.maximum(finite, 0.0)
                known = Factor(*take_exponents(Pair(itself, zero)), 0.0)
            case Activation.SIGMOID:
                known = _find_sigmoid(Pair(finite, zero))
            case Activation.TANH:
                known = _find_tanh(finite)
            case _:
                own, k = take_exponents(Pair(finite, zero))
                share = self._find_share(finite)
                error = np.where(finite == 0.0, 0.0, share.error)
                known = Factor(pair_multiply(own, share.value), share.exponent + k, error)
        low = {Activation.NONE: -np.inf, Activation.TANH: -1.0, Activation.SIGMOID: 0.0, Activation.RELU: 0.0}
        high = 1.0 if self in (Activation.SIGMOID, Activation.TANH) else z
        limits = np.where(z > 0.0, high, np.where(np.isnan(z), z, low.get(self, -0.0)))
        return known._replace(limits=limits)

    def _find_share(self, z: Floats) -> Factor:
        """Return what z is multiplied by."""
        if self is Activation.GELU:
            return _find_normal(z)
        return _find_sigmoid(_bend(z) if self is Activation.GELU_TANH else Pair(z, np.zeros_like(z)))

    def apply(self, z: Floats) -> Floats:
        """Return act(z) in doubles, within two units in the last place of most."""
        with np.errstate(all="ignore"):
            known = self.evaluate(z)
            return np.asarray(np.where(np.isfinite(z), np.ldexp(known.value.hi, known.exponent), known.limits))

    def evaluate_exactly(self, z: Fraction, bits: int) -> tuple[Fraction, Fraction]:
        """Return act(z) to so many bits, and a bound of its error, which is 0 where it is exact."""
        if self in (Activation.NONE, Activation.RELU) or not z:
            known = {Activation.SIGMOID: Fraction(1, 2), Activation.RELU: max(z, Fraction(0))}
            return known.get(self, z), Fraction(0)
        if self is Activation.GELU:
            found = z * _find_normal_share(z, bits)
        else:
            with use_digits(count_digits(bits, z)):
                t = _to_decimal(z)
                if self is Activation.GELU_TANH:
                    t = (8 / _find_pi()).sqrt() * (t + _to_decimal(_CUBIC) * t**3)
                small = (-abs(t if self is not Activation.TANH else 2 * t)).exp()
                if self is Activation.TANH:
                    found = Fraction((1 - small) / (1 + small)) * (1 if z > 0 else -1)
                else:
                    share = Fraction((1 if z > 0 else small) / (1 + small))
                    found = share if self is Activation.SIGMOID else z * share
        return found, abs(found) / 2**bits


class Gated(NamedTuple):
    """A gate that multiplies results behind an activation.

    Parameters
    ----------
    values : ndarray
        float64, which broadcasts against the results.
    activation : Activation
    """

    values: Any
    activation: Activation = Activation.SILU

    def activate(self) -> Floats:
        """Return act(z) in doubles."""
        return self.activation.apply(self.values)


def _exponentiate(t: Pair) -> Factor:
    """Return eᵗ of t ≤ 0; no exponent is so small that it leaves the range of integers."""
    small = raise_two(pair_multiply(t, INVERSE_LN2))
    return Factor(
        small.value, np.maximum(small.exponent, -2000), np.where(t.hi > -_FAR, _PAIR_ERROR, _FAR_ERROR)
    )


def _find_sigmoid(t: Pair) -> Factor:
    """Return 1/(1 + e⁻ᵗ), of negative numbers eᵗ/(1 + eᵗ): nothing cancels."""
    is_negative = t.hi < 0.0
    small = _exponentiate(Pair(-np.abs(t.hi), np.where(is_negative, t.lo, -t.lo)))
    one = Pair(np.ones_like(t.hi), np.zeros_like(t.hi))
    below = pair_add(one, small.value.map(lambda a: np.ldexp(a, small.exponent)))
    above = Pair(*(np.where(is_negative, *parts) for parts in zip(small.value, one, strict=True)))
    share, exponent = take_exponents(pair_divide(above, below), np.where(is_negative, small.exponent, 0))
    return Factor(share, exponent, np.where(t.hi == 0.0, 0.0, small.error))


def _find_tanh(z: Floats) -> Factor:
    """Return (1 − e⁻²ᶻ)/(1 + e⁻²ᶻ), whose numerator cancels near 0."""
    small = _exponentiate(Pair(-2.0 * np.abs(z), np.zeros_like(z)))
    part = small.value.map(lambda a: np.ldexp(a, small.exponent))
    one = Pair(np.ones_like(z), np.zeros_like(z))
    found = pair_divide(pair_add(one, pair_negate(part)), pair_add(one, part))
    share, exponent = take_exponents(found.map(lambda a: np.copysign(1.0, z) * a))
    error = np.where(np.abs(z) < 2.0**-40, np.inf, _PAIR_ERROR / np.minimum(np.abs(z), 1.0))
    return Factor(share, exponent, np.where(z == 0.0, 0.0, error))


def _bend(z: Floats) -> Pair:
    """Return √(8/π) · (z + 0.044715 z³); numbers beyond ±10⁴ count as these."""
    near = Pair(np.clip(z, -1e4, 1e4), np.zeros_like(z))
    cubic = Pair(float(_CUBIC), float(_CUBIC - Fraction(float(_CUBIC))))
    inner = pair_add(near, pair_multiply(cubic, pair_multiply(near, two_square(near.hi))))
    return pair_multiply(_DENSITY.map(lambda a: 4.0 * a), inner)


def _find_normal(z: Floats) -> Factor:
    """Return Φ(z) of doubles in pairs, or where digits cancel by the C library's erfc."""
    share = _complement(z * -math.sqrt(0.5)) / 2.0
    error = np.where(share < 1e-290, np.inf, _ERFC_ERROR)
    error = np.where(z < _FAR_LEFT, 0.0, error)
    known = Pair(np.where(z > _SERIES_RIGHT, 1.0, share), np.zeros_like(z))
    error = np.where(z > _SERIES_RIGHT, _PAIR_ERROR, error)
    inside = (z >= _SERIES_LEFT) & (z <= _SERIES_RIGHT)
    if inside.any():
        total = _add_normal(z[inside])
        for part, one in zip(known, total, strict=True):
            part[inside] = one
        error[inside] = _PAIR_ERROR / total.hi
    return Factor(*take_exponents(known), error)


def _add_normal(z: Floats) -> Pair:
    """Return ½ + φ(z) · (z + z³/3 + z⁵/15 + …), 2⁻⁸⁵ off at most."""
    zero = np.zeros_like(z)
    power = total = Pair(z, zero)
    square, least = two_square(z), 2.0**-100
    for odd in itertools.count(3, 2):
        power = pair_multiply(power, pair_divide(square, Pair(float(odd), 0.0)))
        total = pair_add(total, power)
        if not (np.abs(power.hi) > least * np.abs(total.hi)).any():
            break
    density = _exponentiate(square.map(lambda a: a / -2.0))
    found = pair_multiply(pair_multiply(density.value, _DENSITY), total)
    return pair_add(Pair(zero + 0.5, zero), found.map(lambda a: np.ldexp(a, density.exponent)))


def _find_normal_share(z: Fraction, bits: int) -> Fraction:
    """Return Φ(z), a part of 2^−bits off at most; its sum cancels left of 0, where it gets more digits."""
    lost = max(0.0, -float(z)) ** 2
    with use_digits(count_digits(bits + math.ceil(lost), max(abs(z), Fraction(1)))):
        power = total = _to_decimal(z)
        square, least = power * power, abs(power).scaleb(-count_digits(bits + math.ceil(lost), 1.0))
        for odd in itertools.count(3, 2):
            power *= square / odd
            if abs(power) < least:
                break
            total += power
        density = (-square / 2).exp() / (2 * _find_pi()).sqrt()
        return Fraction(1, 2) + Fraction(density * total)


def _find_pi() -> Decimal:
    """Return π to the digits of now, by Machin's 16 arctan(1/5) − 4 arctan(1/239)."""
    import decimal

    unit = 10 ** (decimal.getcontext().prec + 5)

    def find_arctan(inverse: int) -> int:
        power, total, odd = unit // inverse, 0, 1
        while power:
            total += power // odd if odd % 4 == 1 else -(power // odd)
            power, odd = power // inverse**2, odd + 2
        return total

    pi: Decimal = decimal.Decimal(16 * find_arctan(5) - 4 * find_arctan(239)) / unit
    return pi


def _to_decimal(value: Fraction) -> Decimal:
    from decimal import Decimal  # on use: few values come here

    return Decimal(value.numerator) / Decimal(value.denominator)
