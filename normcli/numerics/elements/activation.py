"""The activations of a gate, act(z): in pairs of doubles with a bound, and to any number of bits.

sigmoid(z) is 1/(1 + e⁻ᶻ), silu(z) = z · sigmoid(z), gelu(z) = z · Φ(z) with the normal distribution function
Φ(z) = ½ + φ(z) · (z + z³/3 + z⁵/15 + …) (Marsaglia 2004), `none` is z itself.

References
----------
Dauphin et al. 2017, arXiv:1612.08083, have sigmoid(z); Shazeer 2020, arXiv:2002.05202, gelu(z) and silu(z).
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
    quick_two_sum,
    take_exponents,
    two_prod,
)
from normcli.numerics.powers import INVERSE_LN2, count_digits, raise_two, use_digits
from normcli.tuples import NamedTuple

if TYPE_CHECKING:
    from decimal import Decimal

    from normcli.dtypes import Floats

_PAIR_ERROR, _FAR_ERROR, _GELU_ERROR = 2.0**-85, 2.0**-50, 2.0**-40
"""The relative errors of activations: in pairs, far from 0, and by the C library's erfc."""

_FAR, _FAR_LEFT = 1000.0, -64.0
"""Beyond the first, e⁻ᶻ loses digits; left of the second, z · Φ(z) times any double is rounded to 0."""

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
    NONE = "none"

    def evaluate(self, z: Floats) -> Factor:
        """Return act(z) of doubles in pairs."""
        finite = np.where(np.isfinite(z), z, 0.0)
        itself = Pair(finite, np.zeros_like(finite))
        match self:
            case Activation.NONE:
                known = Factor(*take_exponents(itself), 0.0)
            case Activation.GELU:
                share = _complement(finite * -math.sqrt(0.5)) / 2.0
                lost = np.where(share < 1e-290, np.inf, _GELU_ERROR)
                error = np.where((finite == 0.0) | (finite < _FAR_LEFT), 0.0, lost)
                known = Factor(*take_exponents(Pair(finite * share, itself.lo)), error)
            case Activation.SIGMOID:
                known = _find_sigmoid(finite)
            case _:
                known, (own, k) = _find_sigmoid(finite), take_exponents(itself)
                known = Factor(pair_multiply(own, known.value), known.exponent + k, known.error)
        low = {Activation.NONE: -np.inf, Activation.SIGMOID: 0.0}.get(self, -0.0)
        limits = np.where(z > 0.0, 1.0 if self is Activation.SIGMOID else z, np.where(np.isnan(z), z, low))
        return known._replace(limits=limits)

    def evaluate_exactly(self, z: Fraction, bits: int) -> tuple[Fraction, Fraction]:
        """Return act(z) to so many bits, and a bound of its error, which is 0 where it is exact."""
        if self is Activation.NONE or not z:
            return (Fraction(1, 2) if self is Activation.SIGMOID else z), Fraction(0)
        if self is Activation.GELU:
            found = z * _find_normal_share(z, bits)
        else:
            with use_digits(count_digits(bits, z)):
                small = (-_to_decimal(abs(z))).exp()
                share = Fraction((1 if z > 0 else small) / (1 + small))
            found = z * share if self is Activation.SILU else share
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
    activation: Activation


def _find_sigmoid(z: Floats) -> Factor:
    """Return 1/(1 + e⁻ᶻ), of negative numbers eᶻ/(1 + eᶻ): nothing cancels."""
    size = -np.abs(z)
    product = two_prod(size, INVERSE_LN2.hi)
    small = raise_two(quick_two_sum(product.hi, product.lo + size * INVERSE_LN2.lo))
    here = np.maximum(small.exponent, -2000)
    below = pair_add(Pair(np.ones_like(z), np.zeros_like(z)), small.value.map(lambda a: np.ldexp(a, here)))
    above = Pair(np.where(z < 0.0, small.value.hi, 1.0), np.where(z < 0.0, small.value.lo, 0.0))
    exponent = np.where(z < 0.0, small.exponent, 0)
    share, exponent = take_exponents(pair_divide(above, below), exponent)
    error = np.where(size > -_FAR, _PAIR_ERROR, _FAR_ERROR)
    return Factor(share, exponent, np.where(z == 0.0, 0.0, error))


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
