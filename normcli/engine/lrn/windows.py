"""The sliding window of local response normalization: the one computation that no group can express."""

from __future__ import annotations

import functools
import itertools
import math
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np

from normcli.numerics.bounds import LOGARITHM, POWER
from normcli.numerics.deciding import PRECISIONS, is_decided, round_real, round_to
from normcli.numerics.elements.in_pairs import KNOWN, round_pair, take_exponents
from normcli.numerics.integers import widen_exactly
from normcli.numerics.pairs import (
    Pair,
    divide_by_count,
    pair_add,
    pair_add_any,
    quick_two_sum,
    two_prod,
    two_square,
    two_sum,
)
from normcli.numerics.powers import (
    SPLIT_BITS,
    raise_exactly,
    raise_to_power,
    split_exactly,
)
from normcli.numerics.rounding import Scaled, round_scaled
from normcli.numerics.statistics.divisor import choose_scale
from normcli.tuples import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from normcli.dtypes import Floats, Integers, Selected
    from normcli.norms.plan import Plan
    from normcli.norms.spec import Window
    from normcli.numerics.deciding import Precision

    Places = tuple[NDArray[np.intp], ...]


_LARGEST, _SMALLEST = 2.0**400, 2.0**-400
"""Where a value is not between these, each window is scaled by a power of two, so that no square is lost."""

_OUT_OF_REACH = 2000
"""Of two numbers whose exponents differ by more, the smaller one changes no bit of what is known."""

_SHORT = 64
"""Members of a window that are gone through one by one where it is summed exactly."""

_UNIT = 1074
"""A finite double times 2 to this power is a whole number."""

_LARGEST_EXPONENT = 5000
"""A value times a larger power of two than that, or divided by it, is infinite or 0 in any case."""


class _Sums(NamedTuple):
    """The sum of squares of each window, of values times 2^scale, and the windows' members.

    `padded` has zeros before and behind the values; the window of value i begins at its place i. `running` has
    the exact sums of squares up to each place of one line along the windows' axis, times 2^(2 · `_UNIT`).
    """

    squares: Pair
    scale: Any
    padded: NDArray[Any]
    length: int
    running: dict[tuple[Any, ...], list[int]]

    @property
    def error(self) -> float:
        """An upper bound of the sums' errors, as a part of them: that of an addition is 2⁻¹⁰⁴."""
        return 2.0**-100 + self.length * 2.0**-103

    def sum_exactly(self, place: tuple[Any, ...]) -> Fraction:
        """Return the sum of squares of one window: quickly, if the one asked for before lies in its line."""
        first, *others = place
        if self.length <= _SHORT:
            members = self.padded[(slice(first, first + self.length), *others)]
            return sum((Fraction(v) ** 2 for v in members.tolist() if v), Fraction(0))
        line = tuple(others)
        if line not in self.running:
            self.running.clear()
            squares = map(_square, self.padded[(slice(None), *others)].tolist())
            self.running[line] = [*itertools.accumulate(squares, initial=0)]
        sums = self.running[line]
        return Fraction(sums[first + self.length] - sums[first], 1 << 2 * _UNIT)


def _square(value: float) -> int:
    """Return the square of a value times 2^(2 · `_UNIT`); 0 of what is not finite, whose windows need none."""
    if not math.isfinite(value):
        return 0
    numerator, denominator = value.as_integer_ratio()
    return (numerator << _UNIT + 1 - denominator.bit_length()) ** 2


class _Factors(NamedTuple):
    """What values are multiplied by.

    Parameters
    ----------
    known : Scaled
        1/divisor, within `KNOWN` of itself.
    plain : ndarray
        1/divisor where it is not a positive or negative number, but 0, infinite or NaN.
    ordinary : ndarray of bool
        Which of the two holds.
    """

    known: Scaled
    plain: Floats
    ordinary: Selected


def normalize_windows(
    plan: Plan, x: NDArray[Any], axes: tuple[int, ...], precision: Precision
) -> tuple[Floats, dict[str, Floats]]:
    """Divide each value by (k + α · Σx²/divisor)^exponent; outside the tensor x counts as 0.

    Parameters
    ----------
    plan : Plan
        With a window.
    x : ndarray
        Whole along the window's axis.
    axes : tuple of int
        That axis.
    precision : Precision
        Of the dtype that the result is then rounded to.

    Returns
    -------
    tuple of (ndarray, dict)
        The result, of float64, or so that it is rounded to a shorter dtype as if exact; `ms`, the mean
        square Σx²/size, and `rstd`, one over the divisor: all of the shape of x.

    Notes
    -----
    Each value is multiplied by one over the divisor, a pair; where that does not decide how the product is
    rounded, by the power to as many bits as it takes.
    """
    assert plan.spec.window is not None  # by the plan: every row that divides by a window has one
    window = plan.spec.window
    values = np.moveaxis(x, axes[0], 0)
    high, low = widen_exactly(values)
    with np.errstate(all="ignore"):
        sums = _sum_squares(high if low is None else values, window)
        mean_square = _divide_by_size(sums, window)
        known, plain, ordinary = _find_factors(sums, window)
        factors = _round(known, PRECISIONS["float64"], sums, window, ordinary)
        rstd = np.where(ordinary, factors, plain)
        usual = ordinary & np.isfinite(high)
        products = _round(_multiply(high, low, known), precision, sums, window, usual, (high, low))
        result = np.where(usual, np.where(high == 0.0, high, products), high * rstd)
    y, ms, r = (np.moveaxis(array, 0, axes[0]) for array in (result, mean_square, rstd))
    return y, {"ms": ms, "rstd": r}


def count_in_windows(selected: Selected, window: Window, axis: int) -> Floats:
    """Return how many selected values each window along an axis holds."""
    along = np.moveaxis(selected, axis, 0)
    counts = np.add.accumulate(_pad(along, window), axis=0, dtype=np.float64)
    length = len(counts) - len(along) + 1
    before = np.concatenate([np.zeros_like(counts[:1]), counts])[: len(along)]
    return np.moveaxis(counts[length - 1 :] - before, 0, axis)


def _pad(x: NDArray[Any], window: Window) -> NDArray[Any]:
    """Return values with zeros before and behind the first axis, as far as the windows reach."""
    before, after = min(window.before, len(x)), min(window.after, len(x))
    return np.pad(x, ((before, after), *[(0, 0)] * (x.ndim - 1)))


def _sum_squares(x: NDArray[Any], window: Window) -> _Sums:
    """Return the sum of squares of each window along the first axis, of float64 or of integers of 64 bits."""
    padded = _pad(x, window)
    n, length = len(x), len(padded) - len(x) + 1
    high, low = widen_exactly(padded)
    size = np.abs(high)
    scale: Any = 0
    if ((size == 0.0) | ((size > _SMALLEST) & (size < _LARGEST)) | ~np.isfinite(size)).all():
        return _Sums(_add_neighbours(_square_pairs(high, low), length), scale, padded, length, {})
    finite = np.where(np.isfinite(size), size, 0.0)
    scale = choose_scale(functools.reduce(np.maximum, (finite[start : start + n] for start in range(length))))
    total = Pair(np.zeros(x.shape), np.zeros(x.shape))
    for start in range(length):
        total = pair_add_any(total, _square_pairs(np.ldexp(high[start : start + n], scale), None))
    return _Sums(total, scale, padded, length, {})


def _add_neighbours(parts: Pair, length: int) -> Pair:
    """Return the sums of so many neighbours along the first axis, each of sums of 1, 2, 4 and so on of them."""
    n = len(parts.hi) - length + 1
    total, start, width = parts.map(lambda part: np.zeros_like(part[:n])), 0, 1
    while True:
        if length & width:
            total = pair_add_any(total, Pair(parts.hi[start : start + n], parts.lo[start : start + n]))
            start += width
        if 2 * width > length:
            return total
        firsts, seconds = Pair(parts.hi[:-width], parts.lo[:-width]), Pair(parts.hi[width:], parts.lo[width:])
        parts, width = pair_add_any(firsts, seconds), 2 * width


def _list_lines(chosen: Selected) -> Iterator[tuple[Any, ...]]:
    """Yield the indices of what is chosen, one line along the first axis behind the other."""
    *others, first = np.nonzero(np.moveaxis(chosen, 0, -1))
    return zip(first.tolist(), *(index.tolist() for index in others), strict=True)


def _square_pairs(high: Floats, low: Floats | None) -> Pair:
    """Return squares of values, and of what doubles leave of integers."""
    squares = two_square(high)
    if low is not None:
        product = two_prod(2.0 * high, low)
        squares = pair_add(squares, Pair(product.hi, product.lo + low * low))
    return Pair(squares.hi, np.where(np.isfinite(squares.lo), squares.lo, 0.0))


def _divide_by_size(sums: _Sums, window: Window) -> Floats:
    """Return the mean square of each window, rounded once."""
    quotient = divide_by_count(sums.squares, window.size)
    finite = np.isfinite(sums.squares.hi)
    total, own = take_exponents(quotient)
    off = np.abs(total.hi) * sums.error
    decided = is_decided(total, own - 2 * sums.scale, off, PRECISIONS["float64"])
    result = np.where(finite, round_scaled(Scaled(quotient, -2 * sums.scale)), sums.squares.hi)
    undecided = finite & ~decided & (total.hi != 0.0)
    places = np.nonzero(undecided)
    if sums.length > _SHORT:
        for place in _list_lines(undecided):
            result[place] = _divide_one(sums, place, window)
    elif len(places[0]):
        result[places] = _divide_exactly(sums, places, quotient.map(lambda part: part[places]), window)
    return result


def _divide_exactly(sums: _Sums, places: Places, quotient: Pair, window: Window) -> Floats:
    """Return the mean square of some windows, rounded once: quotients tell between which two doubles it is.

    Squares of short floats make many a mean that lies in the middle of the two, so this is not done one by one.
    """
    first, *others = places
    members = sums.padded[(first[:, None] + np.arange(sums.length), *(index[:, None] for index in others))]
    scale = np.broadcast_to(sums.scale, sums.squares.hi.shape)[places]
    members, rest = widen_exactly(members)
    scaled = np.ldexp(members, scale[:, None])
    size = np.abs(scaled)
    inexact = (rest is not None) | ((members != 0.0) & ~((size > _SMALLEST) & (size < _LARGEST))).any(axis=1)
    hi, lo = quotient
    ulp = np.spacing(np.where(lo < 0.0, np.nextafter(hi, 0.0), hi))
    half = np.copysign(0.5 * ulp, lo)
    parts: list[Floats] = [a for column in scaled.T for a in two_square(column)]
    parts += [-a for a in (*two_prod(hi, float(window.size)), half * window.size)]
    total = [np.zeros_like(hi)] * 3
    for part in parts:
        for number in range(3):
            total[number], part = two_sum(total[number], part)
        inexact |= part != 0.0
    for left in (0, 1, 0, 1):
        total[left], total[left + 1] = two_sum(total[left], total[left + 1])
    beyond = np.sign(total[0]) * np.sign(half)
    odd = np.ldexp(np.frexp(hi)[0], 53) % 2.0 == 1.0
    rounded = np.where((beyond > 0) | ((beyond == 0) & odd), hi + 2.0 * half, hi)
    result: Floats = np.ldexp(rounded, -2 * scale)
    inexact |= result < _SMALLEST**2  # between subnormal doubles it would be rounded twice
    for number in np.flatnonzero(inexact).tolist():
        result[number] = _divide_one(sums, tuple(index[number] for index in places), window)
    return result


def _divide_one(sums: _Sums, place: tuple[Any, ...], window: Window) -> float:
    """Return the mean square of one window, rounded once."""
    square = sums.sum_exactly(place)
    try:
        return square.numerator / (square.denominator * window.size)
    except OverflowError:
        return math.inf


def _find_factors(sums: _Sums, window: Window) -> _Factors:
    """Return (k + α · Σx²/divisor)^−exponent."""
    squares = sums.squares
    alpha, alpha_exponent = math.frexp(window.alpha)
    product = two_prod(squares.hi, alpha)
    term = divide_by_count(quick_two_sum(product.hi, product.lo + squares.lo * alpha), window.divisor)
    base, top = _add(Scaled(term, alpha_exponent - 2 * sums.scale), window.k)
    size = np.abs(base.hi)
    plain = np.power(window.k + window.alpha * squares.hi, -window.exponent)  # of 0, infinities and NaN
    ordinary = np.isfinite(squares.hi) & ((term.hi != 0.0) | (window.k != 0.0))
    usable = ordinary & (size > 0.0)
    sign = np.where(base.hi < 0.0, _find_sign_of_negative(window.exponent), 1.0)
    magnitude = Pair(
        np.where(usable, size, 1.0), np.where(usable, np.where(base.hi < 0, -base.lo, base.lo), 0.0)
    )
    power = raise_to_power(magnitude, -window.exponent, exponent=top)
    cancelled = np.ldexp(np.abs(term.hi), alpha_exponent - 2 * sums.scale - top) / size
    error = abs(window.exponent) * cancelled * sums.error
    error += (np.abs(power.exponent) + 1) * LOGARITHM.error + POWER.error
    undecided = ~(error <= KNOWN) & ordinary & (np.abs(power.exponent) < _LARGEST_EXPONENT)
    value = power.value.map(lambda part: part * sign)
    ordinary &= ~np.isnan(sign)
    plain = np.where(np.isnan(sign), np.nan, plain)
    factors = _Factors(Scaled(value, power.exponent), plain, ordinary)
    for place in _list_lines(undecided):
        _replace(factors, place, sums, window)
    return factors


def _add(term: Scaled, constant: float) -> tuple[Pair, Integers]:
    """Return the sum of a pair and a double, and the exponent of 2 that it is multiplied by."""
    mantissa, own_exponent = math.frexp(constant)
    _, exponent = np.frexp(term.value.hi)
    top = np.asarray(exponent + term.exponent)
    if mantissa:
        top = np.where(term.value.hi == 0.0, own_exponent, np.maximum(top, own_exponent))
    shift = np.maximum(term.exponent - top, -_OUT_OF_REACH)
    scaled = term.value.map(lambda part: np.ldexp(part, shift))
    total = two_sum(np.ldexp(mantissa, np.maximum(own_exponent - top, -_OUT_OF_REACH)), scaled.hi)
    return quick_two_sum(total.hi, total.lo + scaled.lo), top


def _find_sign_of_negative(exponent: float) -> float:
    """Return the sign of a negative number's power; NaN where it has none."""
    return math.nan if exponent % 1.0 else 1.0 - 2.0 * (exponent % 2.0)


def _find_base(sums: _Sums, place: tuple[Any, ...], window: Window) -> Fraction:
    """Return k + α · Σx²/divisor of one window."""
    return Fraction(window.k) + Fraction(window.alpha) * sums.sum_exactly(place) / window.divisor


def _replace(factors: _Factors, place: tuple[Any, ...], sums: _Sums, window: Window) -> None:
    """Put the factor of one window in its place, from its exact sum of squares."""
    base = _find_base(sums, place, window)
    sign = _find_sign_of_negative(window.exponent) if base < 0 else 1.0
    factors.ordinary[place] = base != 0 and not math.isnan(sign)
    if not factors.ordinary[place]:
        factors.plain[place] = math.nan if base else np.power(0.0, -window.exponent)
        return
    exact = split_exactly(raise_exactly(abs(base), -window.exponent, SPLIT_BITS))
    (hi, lo), exponent = factors.known
    hi[place], lo[place], exponent[place] = sign * exact.hi, sign * exact.lo, exact.exponent


def _multiply(x: Floats, low: Floats | None, factor: Scaled) -> Scaled:
    """Return products; `low` is what x leaves of integers."""
    mantissa, exponent = np.frexp(x)
    product = two_prod(mantissa, factor.value.hi)
    rest = mantissa * factor.value.lo
    if low is not None:
        rest += np.ldexp(low, -exponent) * factor.value.hi
    total = quick_two_sum(product.hi, product.lo + rest)
    return Scaled(total, factor.exponent + exponent)


_PRODUCT_ERROR = 2.0**-76
"""An upper bound of the error of a product with what is known of a factor, as a part of it."""


def _round(
    number: Scaled,
    precision: Precision,
    sums: _Sums,
    window: Window,
    chosen: Selected,
    x: tuple[Floats, Floats | None] | None = None,
) -> Floats:
    """Return chosen products of values with one over the divisors of their windows, or the latter alone.

    Parameters
    ----------
    number : Scaled
        The products within `_PRODUCT_ERROR`.
    precision : Precision
        Of the dtype that they are then rounded to.
    sums : _Sums
    window : Window
    chosen : ndarray of bool
    x : tuple of (ndarray, ndarray or None), or None
        The values, and what doubles leave of them; None for 1.
    """
    total, own = take_exponents(number.value)
    exponent = np.clip(own + number.exponent, -_LARGEST_EXPONENT, _LARGEST_EXPONENT)
    decided = is_decided(total, exponent, np.abs(total.hi) * _PRODUCT_ERROR, precision)
    rounded, rounding = round_pair(total, exponent, precision), functools.partial(round_to, precision=precision)
    for place in _list_lines(chosen & ~decided & (total.hi != 0.0)):
        parts = [1.0] if x is None else [part[place] for part in x if part is not None]
        value, base = sum(map(Fraction, parts), Fraction(0)), _find_base(sums, place, window)
        rounded[place] = round_real(functools.partial(_multiply_exactly, value, base, window), rounding)
    return rounded


def _multiply_exactly(value: Fraction, base: Fraction, window: Window, bits: int) -> tuple[Fraction, Fraction]:
    """Return value · base^−exponent, its power to so many bits, and a bound of its error."""
    if window.exponent.is_integer() and abs(window.exponent) <= _LARGEST_WHOLE:
        return value * base ** -int(window.exponent), Fraction(0)
    sign = Fraction(_find_sign_of_negative(window.exponent) if base < 0 else 1)
    product = sign * value * raise_exactly(abs(base), -window.exponent, bits)
    return product, abs(product) / 2**bits


_LARGEST_WHOLE = 64
"""Larger whole exponents make fractions too long."""
