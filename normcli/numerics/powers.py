"""Powers and roots of pairs, within 2⁻⁹⁵ of themselves; of single numbers, to any number of digits.

Only +, −, ×, ÷, frexp, ldexp and rint are used, so that the bits are the same on every processor; NumPy's own
powers, logarithms and exponentials differ from one to the next.

log₂(a/b) is log₂ c + 2 · artanh((a − c·b) / (a + c·b)) / ln 2 for a c of 8 bits near a/b (Tang 1990); 2ᶻ is a
table's 2^(k/2048) times a short series. An error of 2⁻¹⁰⁰ of the logarithm is |z| · 2⁻¹⁰⁰ of the power.
"""

from __future__ import annotations

import functools
import math
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np

from normcli.numerics.pairs import (
    Pair,
    pair_add,
    pair_divide,
    pair_multiply,
    pair_root,
    quick_two_sum,
    two_diff,
    two_prod,
    two_square,
    two_sum,
)
from normcli.numerics.rational import sum_pieces
from normcli.numerics.rounding import Scaled, find_magnitudes

if TYPE_CHECKING:
    from collections.abc import Iterable
    from contextlib import AbstractContextManager
    from decimal import Decimal

    from numpy.typing import NDArray


_MOST_ROOTS, _MOST_FACTORS = 2, 16
"""Quarters of whole numbers up to 16 are exponents of products of roots, which take a third of the time."""

_LOG_STEPS, _FIRST_LOG, _LAST_LOG = 128, 90, 182
"""c is a multiple of 1/128 from √½ to √2."""

_EXP_BITS = 11
_EXP_STEPS = 1 << _EXP_BITS

_LARGEST_Z = 2.0**30
"""Exponents of 2 beyond that make a power 0 or infinite, whatever it is multiplied by."""

_LARGEST_LOGARITHM_FACTOR = 2.0**200

FIXED = 240
"""Bits behind the point of the whole numbers that tables are made from."""


def round_fixed(number: int) -> Pair:
    """Return number · 2^−240 as a pair."""
    hi = math.ldexp(float(number), -FIXED)
    return Pair(hi, math.ldexp(float(number - int(math.ldexp(hi, FIXED))), -FIXED))


def _take_fixed_logarithm(ratio: Fraction) -> int:
    """Return ln(ratio) · 2^240, but for a few units: 2 · artanh((ratio − 1) / (ratio + 1))."""
    s = (ratio - 1) / (ratio + 1)
    power, square, total, k = (s.numerator << FIXED) // s.denominator, s * s, 0, 1
    while power not in (0, -1):
        total += power // k
        power, k = power * square.numerator // square.denominator, k + 2
    return 2 * total


_FIXED_LN2 = _take_fixed_logarithm(Fraction(2))
_LN2, INVERSE_LN2 = round_fixed(_FIXED_LN2), round_fixed((1 << 2 * FIXED) // _FIXED_LN2)
_SIXTH = round_fixed((1 << FIXED) // 6)
_ARTANH = tuple(round_fixed((2 << (2 * FIXED)) // ((2 * k + 1) * _FIXED_LN2)) for k in range(8))


@functools.cache
def _tabulate_logarithms() -> Pair:
    """Return log₂ of every c."""
    ratios = (Fraction(step, _LOG_STEPS) for step in range(_FIRST_LOG, _LAST_LOG + 1))
    pairs = [round_fixed((_take_fixed_logarithm(ratio) << FIXED) // _FIXED_LN2) for ratio in ratios]
    return Pair(*np.array(pairs).T)


@functools.cache
def _tabulate_powers() -> Pair:
    """Return 2^(k/2048) for k from 0 to 2047, as pairs: the multiples of the 2048th root of 2."""
    root = 2 << FIXED
    for _ in range(_EXP_BITS):
        root = math.isqrt(root << FIXED)
    powers = [1 << FIXED]
    while len(powers) < _EXP_STEPS:
        powers.append((powers[-1] * root) >> FIXED)
    return Pair(*np.array([round_fixed(power) for power in powers]).T)


def raise_to_power(a: Pair, p: float, unit: Any = 1.0) -> Scaled:
    """Return (a / unit)ᵖ, as a pair times a power of two.

    Parameters
    ----------
    a : Pair of ndarray
        Normalized, positive and finite.
    p : float
        Any finite number.
    unit : float or ndarray
        Positive and finite. Where the quotient is near 1, no digit of the logarithm is lost.
    """
    for roots in range(_MOST_ROOTS + 1):
        if (whole := float(p) * 2**roots).is_integer() and abs(whole) <= _MOST_FACTORS:
            return _multiply_roots(_divide(a, unit), int(whole), roots)
    log = take_log2(a, unit)
    factor = math.copysign(min(abs(p), _LARGEST_LOGARITHM_FACTOR), p)  # 0 for any larger |p|, too, or 1
    product = two_prod(log.hi, factor)
    return raise_two(quick_two_sum(product.hi, product.lo + log.lo * factor))


def raise_pair(a: Pair, p: float) -> Pair:
    """Return aᵖ as a pair, of a normalized, positive pair whose power is far from the ends of the range."""
    power = raise_to_power(a, p)
    return power.value.map(lambda part: np.ldexp(part, power.exponent))


def _divide(a: Pair, unit: Any) -> Scaled:
    """Return a / unit, the value between ½ and 2."""
    hi, exponent = np.frexp(a.hi)
    lo = np.ldexp(a.lo, -exponent)
    base, base_exponent = np.frexp(unit)
    value = Pair(hi, lo)
    if np.any(base != 0.5):  # a power of two divides without any rounding
        value = pair_divide(value, Pair(base, 0.0))
    else:
        base_exponent = base_exponent - 1
    return Scaled(value, exponent - base_exponent)


def _multiply_roots(a: Scaled, factors: int, roots: int) -> Scaled:
    """Return a^(factors / 2^roots): a product of square roots of square roots."""
    exponent = np.asarray(a.exponent) >> roots
    value = a.value
    if roots:
        rest = np.asarray(a.exponent) - (exponent << roots)
        value = value.map(lambda part: np.ldexp(part, rest))
    for _ in range(roots):
        value = pair_root(value)
    power: Pair | None = None
    for bit in bin(abs(factors))[2:]:
        if power is not None:
            power = _square(power)
        if bit == "1":
            power = value if power is None else pair_multiply(power, value)
    if power is None:  # of 0 factors
        power = Pair(np.ones_like(value.hi), np.zeros_like(value.hi))
    if factors < 0:
        power = pair_divide(Pair(1.0, 0.0), power)
    return Scaled(power, exponent * factors)


def take_root(a: Pair, p: float) -> Scaled:
    """Return a^(1/p) of a normalized, positive and finite pair, for any finite p other than 0."""
    mantissa, exponent = math.frexp(p)
    quotient = pair_divide(take_log2(a), Pair(mantissa, 0.0))
    return raise_two(quotient.map(lambda part: np.ldexp(part, -exponent)))


def take_log2(a: Pair, unit: Any = 1.0) -> Pair:
    """Return log₂(a / unit), within `LOGARITHM` of itself, also where it is near 0."""
    hi, exponent = np.frexp(a.hi)
    base, base_exponent = np.frexp(unit)
    ratio = hi / base
    step = (ratio < math.sqrt(0.5)).astype(np.int64) - (ratio > math.sqrt(2.0))
    hi, ratio = np.ldexp(hi, step), np.ldexp(ratio, step)
    lo = np.ldexp(a.lo, step - exponent)
    whole = exponent - base_exponent - step
    index = np.rint(ratio * _LOG_STEPS)
    product = two_prod(base, index / _LOG_STEPS)
    table = _tabulate_logarithms().map(lambda part: part[index.astype(np.intp) - _FIRST_LOG])
    below = two_diff(lo, product.lo)
    difference = two_sum(hi - product.hi, below.hi)
    total = two_sum(hi, product.hi)
    s = pair_divide(
        quick_two_sum(difference.hi, difference.lo + below.lo),
        quick_two_sum(total.hi, total.lo + (lo + product.lo)),
    )
    series = pair_multiply(s, _sum_artanh(_square(s)))
    fraction = pair_add(table, series)
    sums = two_sum(whole.astype(np.float64), fraction.hi)
    return quick_two_sum(sums.hi, sums.lo + fraction.lo)


def _sum_artanh(square: Pair) -> Pair:
    """Return 2/ln 2 · (1 + s²/3 + s⁴/5 + …), given s² < 2⁻¹⁶; the first three coefficients are pairs."""
    k0, k1, k2, *others = _ARTANH
    tail: Any = 0.0
    for coefficient in reversed(others):
        tail = coefficient.hi + square.hi * tail
    sums = two_sum(k2.hi, square.hi * tail)
    series = Pair(sums.hi, sums.lo + k2.lo)
    for coefficient in (k1, k0):
        series = pair_add(coefficient, pair_multiply(square, series))
    return series


def raise_two(z: Pair) -> Scaled:
    """Return 2ᶻ as a pair from 1 to 2, times a power of two."""
    inside = np.abs(z.hi) < _LARGEST_Z
    hi = np.clip(z.hi, -_LARGEST_Z, _LARGEST_Z)
    steps = np.rint(hi * _EXP_STEPS)
    rest = two_sum(hi - steps / _EXP_STEPS, np.where(inside, z.lo, 0.0))
    places = steps.astype(np.int64)
    h = pair_multiply(rest, _LN2)
    tail = h.hi * (1.0 / 24.0 + h.hi * (1.0 / 120.0 + h.hi * (1.0 / 720.0 + h.hi / 5040.0)))
    sums = two_sum(_SIXTH.hi, tail)
    series = Pair(sums.hi, sums.lo + _SIXTH.lo)
    for coefficient in (0.5, 1.0, 1.0):
        product = pair_multiply(h, series)
        sums = quick_two_sum(coefficient, product.hi)
        series = quick_two_sum(sums.hi, sums.lo + product.lo)
    table = _tabulate_powers().map(lambda part: part[places & (_EXP_STEPS - 1)])
    return Scaled(pair_multiply(table, series), places >> _EXP_BITS)


def _square(a: Pair) -> Pair:
    square = two_square(a.hi)
    return quick_two_sum(square.hi, square.lo + 2.0 * a.hi * a.lo)


def raise_decimal(value: Fraction, p: float | Fraction) -> Decimal:
    """Return valueᵖ of a positive fraction, as a decimal, to the precision of the current decimal context."""
    from decimal import Decimal

    base, exponent = (Decimal(a.numerator) / Decimal(a.denominator) for a in (value, Fraction(p)))
    return (base.ln() * exponent).exp()


_BITS_OF_DIGIT = 3.32
_SPARE_DIGITS = 20
"""More digits than a power loses: its logarithm is below 10⁴, and it may be raised to 1/p again."""


def raise_exactly(size: Fraction, p: float | Fraction, bits: int) -> Fraction:
    """Return sizeᵖ of a positive number, right to `bits` bits."""
    with use_digits(count_digits(bits, p)):
        return Fraction(raise_decimal(size, p))


def count_digits(bits: int, p: float | Fraction) -> int:
    """Return the number of decimal digits needed to raise a number to the power p with `bits` right bits."""
    far = abs(math.log10(abs(float(p)))) if p else 0.0
    return math.ceil(bits / _BITS_OF_DIGIT + 2.0 * far) + _SPARE_DIGITS


def use_digits(digits: int) -> AbstractContextManager[Any]:
    """Return a context manager: in it, decimals have `digits` digits, and exponents no limit."""
    import decimal  # on use, likewise

    return decimal.localcontext(decimal.Context(digits, Emin=decimal.MIN_EMIN, Emax=decimal.MAX_EMAX))


def find_to_bits(pieces: Iterable[NDArray[Any]], p: float, bits: int) -> Fraction:
    """Return the ℓp length of the finite values of a group, to `bits` bits; 0 without such values.

    It is exact for p = 1 and if at most one value is not 0. In all other cases it is made to differ from the
    true length in a bit behind the last one asked for. Results for different `bits` are therefore different
    numbers, by which callers see that they are not exact, even if one value alone makes up nearly the whole
    length.

    Parameters
    ----------
    pieces : iterable of ndarray
        The values of the group, in any number of arrays.
    p : float
    bits : int
    """
    from decimal import Decimal  # on use: few numbers come here

    sizes = map(find_magnitudes, pieces)
    if p == 1.0:
        return sum_pieces(sizes).total
    with use_digits(count_digits(bits, p)):
        total, count, unit = Decimal(0), 0, Fraction(1)  # of powers of sizes over the unit, about 1 at most
        for size in (Fraction(size) for piece in sizes for size in piece.tolist() if 0.0 < size < math.inf):
            if not count:
                unit = size
            elif size != unit and (size > unit) == (p > 0.0):
                total, unit = total * raise_decimal(unit / size, p), size
            total, count = total + raise_decimal(size / unit, p), count + 1
        if count <= 1:
            return unit if count else Fraction(0)
        root = Fraction((total.ln() / Decimal(p)).exp())
        return unit * root * (1 + Fraction(1, 2 ** (bits + _MARK)))


_MARK = 8
"""The number of bits behind the wanted ones at which an inexact length is marked."""
