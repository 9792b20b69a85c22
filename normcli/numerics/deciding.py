"""Decide or ask: the exact value, rounded once, from values that are known to within an error.

A fast path gives a value and a bound of its error. Where all numbers within the bound are rounded to one float,
the result is decided (Ziv 1991). Elsewhere a slower path is asked, the last of which are fractions: their roots
are taken to as many bits as the rounding needs.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from normcli.numerics.rational import divide_once, find_exponent, make_fraction, scale
from normcli.tuples import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from fractions import Fraction

    from normcli.dtypes import Integers, Selected
    from normcli.numerics.pairs import Pair


class Precision(NamedTuple):
    """A float dtype: the bits of its significand, and the exponent of its least normal number."""

    bits: int
    least: int


PRECISIONS = {
    "float16": Precision(11, -14),
    "bfloat16": Precision(8, -126),
    "float32": Precision(24, -126),
    "float64": Precision(53, -1022),
}

_OWN_ROUNDINGS = 2.0**-48
"""The error of the test itself, in units of a float's last place."""


def is_decided(value: Pair, exponent: Integers, error: Any, precision: Precision) -> Selected:
    """Return a bool array, True where all numbers within the error of value · 2^exponent round to one float.

    Parameters
    ----------
    value : Pair
        Normalized, finite pairs of about 1.
    exponent : ndarray of int
        The power of two that each value is multiplied by before it is rounded.
    error : float or ndarray
        An upper bound of the error of `value`, before it is multiplied; where it is 0, the result is True.
    precision : Precision
        The precision of the dtype that values are rounded to.
    """
    hi, lo = value
    highest = np.maximum(np.frexp(hi)[1] - 1, np.minimum(precision.least - exponent, _FURTHEST))
    to_units = precision.bits - 1 - highest
    whole = np.ldexp(hi, to_units)
    part = np.ldexp(lo, to_units) + (whole - np.floor(whole))
    off = np.ldexp(error, to_units) + _OWN_ROUNDINGS
    decided = np.abs(part - np.floor(part) - 0.5) > off
    below = np.abs(np.frexp(hi)[0]) == 0.5  # below a power of two, floats are twice as dense
    decided &= (~below | (np.abs(np.abs(part) - 0.25) > off)) & (hi != 0.0)
    return np.asarray(decided | np.equal(error, 0.0))


_FURTHEST = 600
"""Exponents that are lower than the least normal one by more than this belong to values that round to 0."""


def is_double_decided(value: Pair, error: Any) -> Selected:
    """Return an array that is True where `value.hi` is the double nearest to the exact value.

    It is True where `value.hi` is infinite. `error` is an upper bound of the relative error of `value`.
    """
    hi, lo = value
    if np.max(error, initial=0.0) <= _SMALL_ERROR:
        decided = np.asarray(hi + lo * _NEARLY == hi)
        return decided if decided.all() else decided | np.equal(error, 0.0) | np.isinf(hi)
    step = np.where(np.equal(error, 0.0), 0.0, error * np.abs(hi) + np.abs(lo) * (_NEARLY - 1.0))
    return np.asarray(((hi + (lo - step) == hi) & (hi + (lo + step) == hi)) | np.isinf(hi))


_SMALL_ERROR, _NEARLY = 2.0**-75, 1.0 + 2.0**-20
"""If an error below the first can carry a sum over the middle of two doubles, so does `lo` times the second."""


FIRST_BITS, MOST_BITS = 300, 4800
"""Bits that roots are taken to at first, and at most; a value that is undecided then is taken for a tie."""


class Enclosed(NamedTuple):
    """The number value / unit, which is known to within error / unit: three integers.

    The quotients are not reduced to lowest terms: a common divisor of so long integers takes longer to find
    than all else.
    """

    value: int
    error: int
    unit: int


def enclose(value: Fraction, error: Fraction) -> Enclosed:
    """Return a number and a bound of its error, which is 0 for an exact number, as integers over one unit."""
    (up, unit), (off, by) = value.as_integer_ratio(), error.as_integer_ratio()
    return Enclosed(up * by, off * unit, unit * by)


def round_real(
    evaluate: Callable[[int], tuple[Fraction, Fraction]], rounding: Callable[[int, int], float] = divide_once
) -> float:
    """Return a real number, rounded once: it is evaluated to as many bits as decide the rounding.

    Parameters
    ----------
    evaluate : callable
        Takes the number of bits to which irrational parts are to be calculated; returns a value and a bound of
        its error, which is 0 for an exact value.
    rounding : callable
        Takes two integers, and returns their quotient, rounded; it has to be monotonic.

    Examples
    --------
    >>> from normcli.numerics.rational import find_root, make_fraction
    >>> two = make_fraction(2)
    >>> round_real(lambda bits: (find_root(two, bits), scale(two, -bits)))
    1.4142135623730951
    """
    return round_reals(lambda _, bits: [enclose(*evaluate(bits))], [0], rounding)[0]


Bounded: TypeAlias = "tuple[Fraction, Fraction] | None"
"""A value and a bound of its error, which is 0 of an exact value; None for NaN."""


def multiply_bounded(a: tuple[Fraction, Fraction], b: tuple[Fraction, Fraction]) -> tuple[Fraction, Fraction]:
    """Return the product of two values, and a bound of its error."""
    return a[0] * b[0], abs(a[0]) * b[1] + abs(b[0]) * a[1] + a[1] * b[1]


def round_reals(
    evaluate: Callable[[list[Any], int], Sequence[Enclosed | None]],
    places: list[Any],
    rounding: Callable[[int, int], float] = divide_once,
) -> list[float]:
    """Return several exact values, each rounded once.

    They are evaluated to 300 bits, and those that are undecided to twice as many, until all are decided. A
    value that is still undecided at 4,800 bits is taken for a tie of two floats.

    Parameters
    ----------
    evaluate : callable
        Takes the keys of values that are not decided yet, and the number of bits to which irrational parts
        are to be calculated; returns each value with a bound of its error, or None for NaN.
    places : list
        The keys of the values, such as indices: any hashable objects.
    rounding : callable
        Takes two integers, and returns their quotient, rounded; it has to be monotonic.

    Returns
    -------
    list of float
        The rounded value of each key, in order.
    """
    found: dict[Any, float] = {}
    left, bits = places, FIRST_BITS
    while left:
        for place, known in zip(left, evaluate(left, bits), strict=True):
            if known is None:
                found[place] = math.nan
                continue
            value, error, unit = known
            if not error or rounding(value - error, unit) == rounding(value + error, unit):
                found[place] = rounding(value, unit)
            elif bits >= MOST_BITS:
                found[place] = rounding(*_shorten(value, unit, bits // 2))
        left, bits = [place for place in left if place not in found], 2 * bits
    return [found[place] for place in places]


def _shorten(up: int, down: int, bits: int) -> tuple[int, int]:
    """Return a quotient up / down, rounded to `bits` bits, as numerator and denominator."""
    value = make_fraction(up) / down
    unit = find_exponent(value) - bits
    return scale(make_fraction(round(scale(value, -unit))), unit).as_integer_ratio()


def round_to(value: Fraction, precision: Precision) -> float:
    """Return the float of a precision nearest to a value, ties to even, as a double.

    It is infinite if the value is beyond the largest such float.
    """
    return round_quotient(*value.as_integer_ratio(), precision)


def round_quotient(up: int, down: int, precision: Precision) -> float:
    """Return the float of a precision nearest to up / down, ties to even, as a double.

    It is infinite if the quotient is beyond the largest such float.
    """
    if not up or precision.bits == PRECISIONS["float64"].bits:
        return divide_once(up, down)
    value = make_fraction(up) / down
    highest = max(find_exponent(value), precision.least)
    unit = highest - precision.bits + 1
    rounded = math.ldexp(round(scale(value, -unit)), unit) if highest < _ENDLESS else math.inf
    largest = math.ldexp(2.0 - 2.0 ** (1 - precision.bits), 1 - precision.least)
    return math.copysign(rounded if abs(rounded) <= largest else math.inf, -1 if up < 0 else 1)


_ENDLESS = 1024


class Bound(NamedTuple):
    """An upper bound of a relative error, and its reason.

    Parameters
    ----------
    bits : int
        The error is below 2^−bits.
    because : str
        Why it holds; u is 2⁻⁵³.
    source : str
        Where the reason is proved: a paper, or the name of a test that measures it.
    """

    bits: int
    because: str
    source: str

    @property
    def error(self) -> float:
        """2^−bits."""
        return 2.0**-self.bits


U = 2.0**-53
"""An upper bound of the relative error of a rounding to float64."""

PAIR = Bound(
    99,
    "a sum is within 3 u², a product 7 u², a quotient 15 u², a root 4 u² of itself where pairs do not overlap; "
    "three bits are left for pairs that overlap by one",
    "Joldes, Muller & Popescu 2017, Error bounds for double-word arithmetic; test_deciding_bounds",
)
PAIRS = Bound(95, "sixteen operations on pairs, one after the other", "PAIR; test_deciding_bounds")

LOGARITHM = Bound(
    100,
    "the table and first three coefficients of artanh s are pairs; the others are rounded at 2⁻¹⁰⁴ of s "
    "for |s| < 2⁻⁸; and s is a quotient of pairs",
    "Tang 1990, Table-driven implementation of the logarithm; test_powers",
)
POWER = Bound(
    97,
    "beside four products of pairs, the last terms of the series of 2ᶻ are rounded at 2⁻¹⁰⁷ for |z| < 2⁻¹²; "
    "the error of z comes on top",
    "Tang 1989, Table-driven implementation of the exponential function; test_powers",
)
SUM_OF_POWERS = Bound(
    88,
    "a power of 2⁻ᶻ is off by z · 2⁻¹⁰⁰ of itself; of n powers of which one is 1, the mean of z, each weighted "
    "with its power, is below log₂ n + 1; and each of up to 2¹² foldings adds an operation on pairs",
    "LOGARITHM; test_lengths",
)
GRADIENT_POWER = Bound(
    80,
    "2⁻¹⁰⁰ of a logarithm below 2⁹ beside 2⁻⁹⁷ of the power, sixteen times that for a root, ten operations",
    "LOGARITHM, POWER; test_gradients",
)
NORMAL = Bound(
    85,
    "the sizes of the terms add up to at most 2 of their sum; eight operations on pairs follow, and terms from "
    "the eighth on, below 2⁻³⁹ of the sum, are rounded to doubles",
    "PAIR; test_normal_law",
)
ACTIVATION = Bound(
    49,
    "exp, tanh and erfc of the C library and of NumPy are within 4 u, and ten roundings follow at most; the "
    "error of t is 8 u · |t|, which e⁻ᵗ has as a part of itself; with an exp within u, a factor of 4 is left",
    "glibc's manual, Known Maximum Errors in Math Functions; test_activation_in_doubles",
)
