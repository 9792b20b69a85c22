"""The activations of a gate, act(z), and their slopes: in pairs with a bound, and to any number of bits.

With σ(t) = 1/(1 + e⁻ᵗ), `sigmoid` is σ(z), `silu` z · σ(z), `gelu-tanh` z · σ(√(8/π) (z + 0.044715 z³)),
`tanh` (1 − e⁻²ᶻ)/(1 + e⁻²ᶻ), `relu` max(z, 0), `none` z itself, and `gelu` z · Φ(z) with the distribution
function of the normal law (`normal_law`).

References
----------
Dauphin et al. 2017, arXiv:1612.08083, have sigmoid(z); Shazeer 2020, arXiv:2002.05202, gelu(z) and silu(z);
Hendrycks & Gimpel 2016, arXiv:1606.08415, have both forms of gelu.
"""

from __future__ import annotations

import enum
import math
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np

from normcli.numerics.deciding import NORMAL, PAIR
from normcli.numerics.elements.normal_law import (
    LARGEST,
    LEAST,
    add_normal,
    find_density_exactly,
    find_normal_share,
    find_pi,
    to_decimal,
)
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
    from normcli.dtypes import Floats

_PAIR_ERROR, _FAR_ERROR, _ERFC_ERROR = 2.0**-85, 2.0**-50, 2.0**-50
"""The relative errors of activations: in pairs, far from 0, and by the C library's erfc, 4 + z² times that."""

_FAR, _FURTHEST = 1000.0, 1e6
"""For z beyond the first, e⁻ᶻ loses digits; z beyond the second is taken as the second."""

_FAR_LEFT, _NOTHING = -64.0, Fraction(1, 2**2900)
"""Left of the first, z · Φ(z) and its slope are below the second: times any double, they are rounded to 0."""

_DENSITY = Pair(0.3989422804014327, -2.49232720227773e-17)
"""1/√(2π)."""

_CUBIC = Pair(0.044715, float(Fraction(44715, 10**6) - Fraction(0.044715)))

QUICK = 24
"""The most bits of results for which GELU is taken from the C library's erfc, not from pairs."""

find_complement = np.vectorize(math.erfc, otypes=[np.float64])


class Factor(NamedTuple):
    """The numbers that results are multiplied by: value · 2^exponent.

    Parameters
    ----------
    value : Pair
        Numbers of about 1.
    exponent : ndarray of int
    error : float or ndarray
        An upper bound of the relative error of the value; 0 where it is exact.
    """

    value: Pair
    exponent: Any
    error: Any

    @property
    def pair(self) -> Pair:
        """The factor as doubles; 0 where it is too small."""
        return self.value.map(lambda a: np.ldexp(a, self.exponent))

    def multiply(self, other: Factor) -> Factor:
        """Return the product of two factors; its error is 0 where both are exact doubles."""
        exact = (self.value.lo == 0.0) & (other.value.lo == 0.0)
        error = self.error + other.error
        error = np.where((error == 0.0) & exact, 0.0, error + PAIR.error)
        return Factor(
            *take_exponents(pair_multiply(self.value, other.value), self.exponent + other.exponent), error
        )


class Activation(enum.StrEnum):
    """The function act through which a gate z goes before it multiplies; SILU is the default."""

    SILU = "silu"
    SIGMOID = "sigmoid"
    GELU = "gelu"
    GELU_TANH = "gelu-tanh"
    RELU = "relu"
    TANH = "tanh"
    NONE = "none"

    def evaluate(self, z: Floats, bits: int) -> Factor:
        """Return act(z) of finite doubles in pairs, with a bound of the relative error.

        `bits` is the precision of the results that are multiplied by act(z).
        """
        match self:
            case Activation.NONE:
                return split_doubles(z)
            case Activation.RELU:
                return split_doubles(np.maximum(z, 0.0))
            case Activation.SIGMOID:
                return _find_sigmoid(_widen(z))
            case Activation.TANH:
                return _find_tanh(z)
            case Activation.GELU:
                share = _find_normal(z, bits)
            case _:
                share = _find_sigmoid(self._bend(z)[0])
        known = split_doubles(z).multiply(share)
        return known._replace(error=np.where(z == 0.0, 0.0, known.error))

    def find_slope(self, z: Floats, bits: int) -> Factor:
        """Return the derivative act′(z) of finite doubles, as pairs with bounds of their errors.

        They are precise enough for results of `bits` bits. The derivative of relu is 0 at 0.
        """
        match self:
            case Activation.NONE | Activation.RELU:
                return split_doubles(np.where((z > 0.0) | (self is Activation.NONE), 1.0, 0.0))
            case Activation.GELU:
                share, density = _find_normal(z, bits), split_doubles(z).multiply(_find_density(z))
                slope = _add(share.pair, density.pair, share.error)
            case _:
                t, by = self._bend(z)
                share, rest = _find_sigmoid(t), _find_sigmoid(pair_negate(t))
                if self in (Activation.SIGMOID, Activation.TANH):  # tanh z is 2σ(2z) − 1
                    slope = share.multiply(rest)
                    slope = slope._replace(exponent=slope.exponent + (2 if self is Activation.TANH else 0))
                else:
                    inner = pair_multiply(
                        pair_multiply(_widen(np.clip(z, -_FURTHEST, _FURTHEST)), by), rest.pair
                    )
                    slope = share.multiply(_add(_widen(np.ones_like(z)), inner, rest.error))
        return slope._replace(error=np.where(z == 0.0, 0.0, slope.error))

    def _bend(self, z: Floats) -> tuple[Pair, Pair]:
        """Return t(z) and t′(z), where the activation is made of the logistic function σ(t).

        t is z for silu and sigmoid, 2z for tanh, and √(8/π) · (z + 0.044715 z³) for gelu-tanh (z clipped to
        ±10⁴).
        """
        one = _widen(np.ones_like(z))
        if self is not Activation.GELU_TANH:
            scale = 2.0 if self is Activation.TANH else 1.0
            return _widen(scale * z), _widen(scale * one.hi)
        near = np.clip(z, -1e4, 1e4)
        bent = pair_multiply(_CUBIC, two_square(near))
        root = _DENSITY.map(lambda a: 4.0 * a)
        t = pair_multiply(root, pair_multiply(_widen(near), pair_add(one, bent)))
        return t, pair_multiply(root, pair_add(one, pair_multiply(Pair(3.0, 0.0), bent)))

    def find_limits(self, z: Floats, *, slope: bool) -> Floats:
        """Return act(z), or its derivative, for numbers that are infinite or NaN, which stays NaN."""
        ends = _ENDS[self]
        low, high = ends.slopes if slope else (ends.low, ends.high)
        return np.asarray(np.where(np.isnan(z), z, np.where(z > 0.0, high, low)))

    def evaluate_exactly(self, z: Fraction, bits: int, *, slope: bool = False) -> tuple[Fraction, Fraction]:
        """Return act(z), or its derivative, to `bits` bits, and a bound of its error: 0 if it is exact."""
        ends, size, ulp = _ENDS[self], max(abs(z), Fraction(1)), Fraction(1, 2**bits)
        if not z:
            return Fraction(ends.slope_at_zero if slope else ends.at_zero), Fraction(0)
        if abs(z) > ends.near:
            end = (ends.slopes if slope else (ends.low, ends.high))[z > 0]
            return (Fraction(end) if math.isfinite(end) else z), size * _NOTHING if ends.near else Fraction(0)
        if self is Activation.GELU:
            share = find_normal_share(z, bits)
            if not slope:
                return z * share, abs(z * share) * ulp
            with use_digits(count_digits(bits, size)):
                term = z * Fraction(find_density_exactly(to_decimal(z)))
            return share + term, (abs(share) + abs(term)) * ulp
        with use_digits(count_digits(bits, z)):
            t, by = to_decimal(z), to_decimal(Fraction(1))
            if self is Activation.GELU_TANH:
                root, cubic = (8 / find_pi()).sqrt(), t * t * 44715 / 10**6
                t, by = root * t * (1 + cubic), root * (1 + 3 * cubic)
            elif self is Activation.TANH:
                t, by = 2 * t, 2 * by
            small = (-abs(t)).exp()
            shares = Fraction(1 / (1 + small)), Fraction(small / (1 + small))
            factor, tanh = Fraction(by), Fraction((1 - small) / (1 + small)) * (1 if z > 0 else -1)
        share, rest = shares if z > 0 else shares[::-1]
        if not slope:
            value = {Activation.SIGMOID: share, Activation.TANH: tanh}.get(self, z * share)
            return value, abs(value) * ulp
        if self in (Activation.SIGMOID, Activation.TANH):
            value = share * rest * factor**2
            return value, abs(value) * ulp
        term = z * factor * rest
        return share * (1 + term), share * (1 + abs(term)) * ulp


class _Ends(NamedTuple):
    """The limits of an activation far from 0, and its values at 0; an infinite limit stands for z itself.

    Parameters
    ----------
    low, high : float
        The limits of the activation for z to −∞ and to +∞.
    slopes : tuple of float
        The two limits of its derivative.
    at_zero, slope_at_zero : float
        The activation and its derivative at 0.
    near : int
        For |z| above it, activation and derivative differ from the limits by at most `_NOTHING` times |z|; 0 if
        they equal the limits exactly at any z.
    """

    low: float
    high: float
    slopes: tuple[float, float]
    at_zero: float
    slope_at_zero: float
    near: int


_ENDS = {
    Activation.SILU: _Ends(-0.0, math.inf, (0.0, 1.0), 0.0, 0.5, 2048),
    Activation.SIGMOID: _Ends(0.0, 1.0, (0.0, 0.0), 0.5, 0.25, 2048),
    Activation.GELU: _Ends(-0.0, math.inf, (0.0, 1.0), 0.0, 0.5, 64),
    Activation.GELU_TANH: _Ends(-0.0, math.inf, (0.0, 1.0), 0.0, 0.5, 31),
    Activation.RELU: _Ends(0.0, math.inf, (0.0, 1.0), 0.0, 0.0, 0),
    Activation.TANH: _Ends(-1.0, 1.0, (0.0, 0.0), 0.0, 1.0, 1024),
    Activation.NONE: _Ends(-math.inf, math.inf, (1.0, 1.0), 0.0, 1.0, 0),
}


def _widen(z: Floats) -> Pair:
    return Pair(z, np.zeros_like(z))


def split_doubles(z: Floats) -> Factor:
    """Return doubles as factors without error."""
    return Factor(*take_exponents(_widen(z)), np.zeros(()))


def _add(a: Pair, b: Pair, error: Any) -> Factor:
    """Return a + b, which may cancel, with a bound of its error; a and b have relative errors of `error`."""
    total = pair_add(a, b)
    sizes = (np.abs(a.hi) + np.abs(b.hi)) * (error + _PAIR_ERROR)
    return Factor(*take_exponents(total), np.where(total.hi == 0.0, np.inf, sizes / np.abs(total.hi)))


def _exponentiate(t: Pair) -> Factor:
    """Return eᵗ for t ≤ 0, with a bound of its error."""
    small = raise_two(pair_multiply(t.keep(~(t.hi < -_FURTHEST), -_FURTHEST), INVERSE_LN2))
    return Factor(*small, np.where(t.hi > -_FAR, _PAIR_ERROR, _FAR_ERROR))


def _find_sigmoid(t: Pair) -> Factor:
    """Return 1/(1 + e⁻ᵗ), for negative t as eᵗ/(1 + eᵗ): nothing cancels."""
    is_negative, one = t.hi < 0.0, _widen(np.ones_like(t.hi))
    small = _exponentiate(t.map(lambda a: np.where(is_negative, a, -a)))
    above = Pair(*(np.where(is_negative, *parts) for parts in zip(small.value, one, strict=True)))
    share = pair_divide(above, pair_add(one, small.pair))
    error = np.where(t.hi == 0.0, 0.0, small.error)
    return Factor(*take_exponents(share, np.where(is_negative, small.exponent, 0)), error)


def _find_tanh(z: Floats) -> Factor:
    """Return (1 − e⁻²ᶻ)/(1 + e⁻²ᶻ), whose numerator cancels near 0; nearer to 0 than 2⁻⁴² it is z."""
    one, small = _widen(np.ones_like(z)), _exponentiate(_widen(-2.0 * np.abs(z))).pair
    found = pair_divide(pair_add(one, pair_negate(small)), pair_add(one, small))
    near = np.abs(z) < 2.0**-42
    found = Pair(
        np.where(near, z, np.copysign(found.hi, z)), np.where(near, 0.0, np.copysign(1.0, z) * found.lo)
    )
    error = np.where(near, _PAIR_ERROR, 4.0 * _PAIR_ERROR / np.minimum(np.abs(z), 1.0))
    return Factor(*take_exponents(found), np.where(z == 0.0, 0.0, error))


def _find_normal(z: Floats, bits: int) -> Factor:
    """Return the normal distribution function Φ(z) of doubles, in pairs with a bound of the relative error.

    If results need few `bits`, and for z far from 0, it is calculated by the C library's erfc, with a larger
    bound.
    """
    share = find_complement(z * -math.sqrt(0.5)) / 2.0
    error = np.where(share < 1e-290, np.inf, _ERFC_ERROR * (4.0 + z * z))
    error = np.where(z < _FAR_LEFT, 0.0, error)
    known = _widen(share)
    inside = (z >= LEAST) & (z <= LARGEST) & (bits > QUICK)
    if inside.any():
        total = add_normal(z[inside])
        for part, one in zip(known, total, strict=True):
            part[inside] = one
        error[inside] = NORMAL.error
    return Factor(*take_exponents(known), error)


def _find_density(z: Floats) -> Factor:
    """Return φ(z) of doubles, with a bound of its error."""
    square = two_square(np.clip(z, -_FAR, _FAR))
    return _exponentiate(square.map(lambda a: a / -2.0)).multiply(Factor(_DENSITY, 0, _PAIR_ERROR))
