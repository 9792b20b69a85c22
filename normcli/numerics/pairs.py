"""Arithmetic on pairs: unevaluated sums of two doubles, a rounded result and its rounding error.

A `Pair` (hi, lo) stands for hi + lo with |lo| ≤ ulp(hi)/2, some 107 bits. The algorithms are those of Knuth
(TwoSum), Dekker 1971 (TwoProd without a fused instruction, which NumPy lacks), and Hida, Li & Bailey 2001
(sums, products, quotients and roots of pairs). They hold for values whose products neither over- nor underflow;
where that is in doubt, the caller scales by a power of two first.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from normcli.tuples import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence


_SPLITTER = 2.0**27 + 1.0
"""Veltkamp's constant: it splits 53 bits into two halves of 26 bits and a sign."""

_SHORT = 1 << 26
"""Counts below it, times such a half, are exact."""


class Triple(NamedTuple):
    """A number hi + mid + lo of some 160 bits: three doubles, each at most half an ulp of the one before.

    The parts are arrays of one shape, or numbers.
    """

    hi: Any
    mid: Any
    lo: Any

    def map(self, function: Any) -> Triple:
        """Return the triple with a function (an index, a reshape) applied to each part."""
        return Triple(*map(function, self))


class Pair(NamedTuple):
    """A number hi + lo of some 107 bits: two doubles, a rounded number and its rounding error.

    Both are arrays of one shape, or numbers.
    """

    hi: Any
    lo: Any

    def map(self, function: Any) -> Pair:
        """Return the pair with a function (an index, a reshape) applied to both parts."""
        return Pair(function(self.hi), function(self.lo))

    def keep(self, chosen: Any, otherwise: Any = 0.0) -> Pair:
        """Return the pair where `chosen` is True, and elsewhere the double `otherwise`."""
        return Pair(np.where(chosen, self.hi, otherwise), np.where(chosen, self.lo, 0.0))


Record = TypeVar("Record")


def map_arrays(held: Record, function: Callable[[Any], Any]) -> Record:
    """Return a named tuple with a function (an index, a reshape) applied to each array in it, however deep.

    Anything but an array is returned unchanged, and so is an array without axes.
    """
    if isinstance(held, np.ndarray):
        return function(held) if held.ndim else held
    if isinstance(held, tuple) and hasattr(held, "_make"):
        return type(held)(*(map_arrays(each, function) for each in held))
    return held


def two_sum(a: Any, b: Any) -> Pair:
    """Return a + b and its rounding error, exactly.

    Examples
    --------
    >>> two_sum(1.0, 2.0**-60) == (1.0, 2.0**-60)
    True
    """
    total = a + b
    rest = total - a
    return Pair(total, (a - (total - rest)) + (b - rest))


def quick_two_sum(a: Any, b: Any) -> Pair:
    """Return a + b and its rounding error, exactly where |a| ≥ |b| or a = 0."""
    total = a + b
    return Pair(total, b - (total - a))


def two_diff(a: Any, b: Any) -> Pair:
    """Return a − b and its rounding error, exactly."""
    difference = a - b
    rest = difference - a
    return Pair(difference, (a - (difference - rest)) - (b + rest))


def two_prod(a: Any, b: Any) -> Pair:
    """Return a · b and its rounding error, exactly for |a|, |b| < 2⁹⁹⁶ whose product is above 2⁻⁹⁶⁸."""
    product = a * b
    a_hi, a_lo = split(a)
    b_hi, b_lo = split(b)
    return Pair(product, ((a_hi * b_hi - product) + a_hi * b_lo + a_lo * b_hi) + a_lo * b_lo)


def two_square(a: Any) -> Pair:
    """Return a² and its rounding error: `two_prod`, but a is split once."""
    square = a * a
    hi, lo = split(a)
    return Pair(square, ((hi * hi - square) + (hi + hi) * lo) + lo * lo)


def multiply_by_count(a: Any, n: Any) -> Pair:
    """Return a · n and its rounding error, which is 0 for a power of two; n is one count, or one for each."""
    product = a * n
    if isinstance(n, int) and n & (n - 1) == 0:
        return Pair(product, np.zeros_like(product))
    if np.max(n, initial=0) >= _SHORT:
        return two_prod(a, np.asarray(n, dtype=np.float64))
    hi, lo = split(a)
    return Pair(product, (hi * n - product) + lo * n)


def split(a: Any) -> Pair:
    """Return two halves of 26 bits whose sum is a."""
    shifted = _SPLITTER * a
    hi = shifted - (shifted - a)
    return Pair(hi, a - hi)


def pair_add(a: Pair, b: Pair) -> Pair:
    """Return a + b with an error of about 2⁻¹⁰⁴ of it, also where the two cancel."""
    total, error = two_sum(a.hi, b.hi)
    low, low_error = two_sum(a.lo, b.lo)
    total, error = quick_two_sum(total, error + low)
    return quick_two_sum(total, error + low_error)


def pair_add_any(a: Pair, b: Pair) -> Pair:
    """Return a + b with an error of about 2⁻¹⁰⁴ of it; where a.hi + b.hi is infinite or NaN, that sum."""
    plain = a.hi + b.hi
    return pair_add(a, b).keep(np.isfinite(plain), plain)


def pair_negate(a: Pair) -> Pair:
    """Return −a."""
    return Pair(-a.hi, -a.lo)


def pair_multiply(a: Pair, b: Pair) -> Pair:
    """Return a · b with an error of about 2⁻¹⁰² of it."""
    product, error = two_prod(a.hi, b.hi)
    return quick_two_sum(product, error + (a.hi * b.lo + a.lo * b.hi))


def pair_divide(a: Pair, b: Pair) -> Pair:
    """Return a / b with an error of about 2⁻¹⁰¹ of it."""
    quotient = a.hi / b.hi
    product, error = two_prod(quotient, b.hi)
    rest = ((a.hi - product) - error) + (a.lo - quotient * b.lo)
    return quick_two_sum(quotient, rest / b.hi)


def invert_pair(a: Pair) -> Pair:
    """Return 1/a, with a second double of 0 where 1/a is infinite, NaN or 0."""
    plain = 1.0 / a.hi
    return pair_divide(Pair(1.0, 0.0), a).keep(np.isfinite(plain) & (plain != 0.0), plain)


def keep_endless(square: Pair, value: Pair) -> Pair:
    """Return a root (with eps or without), with ∞ in place of NaN where `square` is infinite."""
    return value.keep(~np.isinf(square.hi), np.inf)


def take_exponents(pair: Pair, exponent: Any = 0) -> tuple[Pair, Any]:
    """Return a pair scaled to between 1/2 and 1, and the exponent of the power of two that was taken out."""
    hi, k = np.frexp(pair.hi)
    return Pair(hi, np.ldexp(pair.lo, -k)), exponent + k


def pair_root(a: Pair) -> Pair:
    """Return √a of a ≥ 0 with an error of about 2⁻¹⁰¹ of it."""
    root = np.sqrt(a.hi)
    product, error = two_square(root)
    rest = ((a.hi - product) - error) + a.lo
    with np.errstate(all="ignore"):
        return quick_two_sum(root, np.where(root > 0.0, rest / (2.0 * root), 0.0))


def normalize(triple: Triple) -> Triple:
    """Return an equal sum of doubles of which each is at most half an ulp of the one before."""
    hi, mid, lo = triple
    for _ in range(2):
        mid, lo = two_sum(mid, lo)
        hi, mid = two_sum(hi, mid)
    return Triple(hi, *two_sum(mid, lo))


FAINT = 2.0**-800
"""Numbers below lose bits of their second and third doubles at the end of float64's range."""


def is_faint(triple: Triple) -> Any:
    """Return True for numbers so close to 0 that doubles may not hold all their bits."""
    return np.asarray((triple.mid != 0.0) & (np.abs(triple.hi) < FAINT))


class Distilled(NamedTuple):
    """Numbers as sums of few doubles, and an array that is True where these do not hold all of the number."""

    terms: tuple[Any, ...]
    left: Any


def distill(terms: Sequence[Any], size: int) -> Distilled:
    """Add doubles without rounding; return the sum as `size` doubles, each some 53 bits below the one before.

    Parameters
    ----------
    terms : sequence of ndarray
        Arrays of one shape, the largest values first if the order is known.
    size : int
        The number of doubles in the sum. If the exact sum needs more, it is rounded.
    """
    kept, lost = distill_within(terms, size)
    return Distilled(kept, lost != 0.0)


def distill_within(terms: Sequence[Any], size: int) -> tuple[tuple[Any, ...], Any]:
    """Return the sum of doubles as `size` doubles, largest first, and a bound of its rounding error.

    The bound is 0 where the sum is exact.
    """
    values = [term for term in terms if np.any(term)] or [terms[0]]
    for _ in range(min(size, len(values))):
        for i in range(len(values) - 1, 0, -1):
            values[i - 1], values[i] = two_sum(values[i - 1], values[i])
    lost = np.zeros(np.shape(values[0]))
    for rest in values[size:]:
        lost += 2.0 * np.abs(rest)
    kept = values[:size]
    for i in range(len(kept) - 1):
        kept[i], kept[i + 1] = two_sum(kept[i], kept[i + 1])
    kept += [np.zeros(np.shape(values[0])) for _ in range(size - len(kept))]
    return tuple(kept), lost


def find_least(values: Pair) -> Pair:
    """Return the least of pairs along the last axis."""
    hi = np.minimum.reduce(values.hi, axis=-1)
    if not values.lo.any():
        return Pair(hi, np.zeros_like(hi))
    lo = np.minimum.reduce(np.where(values.hi == hi[..., None], values.lo, np.inf), axis=-1)
    return Pair(hi, np.where(np.isfinite(lo), lo, 0.0))


def find_largest(values: Pair) -> Pair:
    """Return the largest of pairs along the last axis."""
    return find_least(values.map(np.negative)).map(lambda a: 0.0 - a)


def lower_at(target: Pair, places: Any, values: Pair) -> None:
    """Write each value to its index in `target`, in place, if it is below that pair; indices may repeat."""
    before = target.hi.copy()
    np.minimum.at(target.hi, places, values.hi)
    if not target.lo.any() and not values.lo.any():
        return
    lo = np.where(target.hi == before, target.lo, np.inf)
    np.minimum.at(lo, places, np.where(values.hi == target.hi[places], values.lo, np.inf))
    target.lo[...] = np.where(np.isfinite(lo), lo, 0.0)


def raise_at(target: Pair, places: Any, values: Pair) -> None:
    """Write each value to its index in `target`, in place, if it is above that pair; indices may repeat."""
    turned = target.map(np.negative)
    lower_at(turned, places, values.map(np.negative))
    for part, negative in zip(target, turned, strict=True):
        np.subtract(0.0, negative, out=part)


def divide_by_count(total: Pair, n: Any) -> Pair:
    """Return total / n, where n is one count, or one for each; a power of two divides without any rounding."""
    if isinstance(n, int) and n & (n - 1) == 0:
        return Pair(total.hi / n, total.lo / n)
    quotient = total.hi / n
    product, error = multiply_by_count(quotient, n)
    return quick_two_sum(quotient, (((total.hi - product) - error) + total.lo) / n)


def divide_triple(number: Triple, n: Any) -> tuple[Triple, Any]:
    """Return a triple divided by n, one count or one for each, and a bool array.

    It is True where three doubles do not hold all of the quotient.
    """
    quotients, rest, endless = [], tuple(number), np.zeros(np.shape(number.hi), np.bool_)
    if np.all(np.frexp(n)[0] == 0.5):  # by powers of two, nothing is rounded
        return normalize(number.map(lambda part: part / n)), endless
    for _ in range(3):
        quotients.append(rest[0] / n)
        product, error = multiply_by_count(quotients[-1], n)
        rest, left = distill([rest[0] - product, -error, *rest[1:]], 3)
        endless |= left
    return normalize(Triple(*quotients)), np.logical_or.reduce([endless, *(part != 0.0 for part in rest)])


def is_exact_quotient(number: Pair, quotient: Pair, divisor: Any) -> Any:
    """Return True where quotient · divisor is exactly the number; the divisor is a double."""
    products = (-part for each in quotient for part in two_prod(each, np.asarray(divisor, np.float64)))
    return is_zero([*number, *products])


def is_zero(terms: Sequence[Any]) -> Any:
    """Return True where doubles add up to exactly 0; False also where two doubles are too few to tell."""
    (hi, lo), left = distill_within(terms, 2)
    return (hi == 0.0) & (lo == 0.0) & (left == 0.0)


def sum_pairs(values: Pair) -> Pair:
    """Add pairs along the last axis by halving it: the tree depends on that axis' length alone.

    Parameters
    ----------
    values : Pair of ndarray, shape (..., n), n ≥ 1

    Returns
    -------
    Pair of ndarray, shape (...)
    """
    hi, lo = values
    while (n := hi.shape[-1]) > 1:
        half = n // 2
        left, right = (Pair(hi[..., part], lo[..., part]) for part in (slice(0, half), slice(half, 2 * half)))
        total = pair_add(left, right)
        if n % 2:
            total = Pair(np.append(total.hi, hi[..., -1:], axis=-1), np.append(total.lo, lo[..., -1:], axis=-1))
        hi, lo = total
    return Pair(hi[..., 0], lo[..., 0])
