"""Sums in fixed point, in which neither order nor grouping changes a bit, and averages, each rounded once."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any

import numpy as np

from normcli.numerics.deciding import PRECISIONS, is_decided
from normcli.numerics.pairs import Pair, Triple, distill, distill_within, normalize, take_exponents, two_prod
from normcli.numerics.rational import make_fraction, round_once
from normcli.numerics.rounding import Scaled, round_scaled
from normcli.numerics.sums.scaled_integers import ScaledIntegers
from normcli.tuples import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Sequence
    from fractions import Fraction

    from numpy.typing import NDArray

    from normcli.dtypes import Floats, Integers, Selected

DIGIT = 32
"""Bits of a digit: an int64 then has room for the carries of 2³⁰ additions."""

MOST_PLACES = 80
"""A bound of the places of digits, on either side of 0.

Sums of doubles and of their squares have digits from -68 (2⁻²¹⁴⁸) to 66 (2²⁰⁴⁸ times their number)."""

ALL = slice(None)
"""All groups."""

_MASK = np.int64((1 << DIGIT) - 1)

_DOUBLE = 52
"""Sums that stay under 2⁵² units are exact in a double, in any order."""

_ENDLESS = 1024
"""The least power of 2 that is beyond the range of doubles."""

_FEW = 8
"""Rows of at most this length are added column by column: NumPy takes longer to begin a row than to add it."""

_MOST = 1 << 19
"""The number of values that are added at once: their sum is exact in each digit."""


class FewDoubles(NamedTuple):
    """Numbers, each as a sum of a few doubles.

    Parameters
    ----------
    terms : tuple of ndarray
        The doubles, one array for each term of the sums.
    left : ndarray
        Upper bounds of the rounding errors of these sums; 0 where they are exact.
    beyond : ndarray of bool
        True for numbers with nonzero digits outside the range of exponents; these are not in the sum.
    """

    terms: tuple[Floats, ...]
    left: Floats
    beyond: Selected


class Fixed:
    """Exact numbers, one for each group: the sum of digits[i] · 2^(32 · (low + i)); the last digit is signed.

    Parameters
    ----------
    digits : ndarray of int64, shape (places, groups)
        The digits to the base 2³², the lowest first.
    low : int
        The power of 2³² that the first digit counts: 0 for units, −1 for multiples of 2⁻³².
    """

    def __init__(self, digits: Integers, low: int = 0) -> None:
        self.digits, self.low = digits, low

    @classmethod
    def zeros(cls, groups: int) -> Fixed:
        """Return a 0 for each group."""
        return cls(np.zeros((1, groups), dtype=np.int64))

    def add(self, groups: NDArray[np.intp], values: Floats) -> None:
        """Add finite doubles exactly.

        Parameters
        ----------
        groups : ndarray of int, shape (rows,)
            The group that each row is added to; a group may come several times.
        values : ndarray, shape (rows, n)

        Notes
        -----
        Values are rounded to multiples of the unit of a digit, the highest digit first. These multiples add up
        without rounding (fewer than 2⁵² units in all); what is left is exact, and goes to the next digit.
        """
        if not values.size:
            return
        if values.size > _MOST:
            step, size = max(1, _MOST // values.shape[1]), values.shape[1]
            for start, column in itertools.product(range(0, len(values), step), range(0, size, _MOST)):
                rows = slice(start, start + step)
                self.add(groups[rows], values[rows, column : column + _MOST])
            return
        first = int(groups.min())
        places, width = groups - first, int(groups.max()) - first + 1
        rest = values
        room = max(2, values.size.bit_length())
        while (top := float(np.maximum.reduce(np.abs(rest), axis=None))) > 0.0:
            digit = -((_DOUBLE - room - int(np.frexp(top)[1])) // DIGIT)
            if _DOUBLE + DIGIT * digit < _ENDLESS:
                sigma = np.ldexp(1.5, _DOUBLE + DIGIT * digit)
                cut = (rest + sigma) - sigma
            else:
                cut = np.ldexp(np.trunc(np.ldexp(rest, -DIGIT * digit)), DIGIT * digit)
            rest = rest - cut
            parts = np.ldexp(cut, -DIGIT * digit)
            added: Floats = (
                sum(parts.T[1:], parts.T[0]) if parts.shape[1] <= _FEW else np.add.reduce(parts, axis=-1)
            )
            units = np.bincount(places, added, width).astype(np.int64)
            self._reach(digit, digit + 2)
            here = self.digits[digit - self.low :, first : first + width]
            here[0] += units & _MASK
            here[1] += units >> DIGIT

    def add_fraction(self, group: int, value: Fraction) -> None:
        """Add a fraction, whose denominator is a power of two, to the number of one group."""
        integer, unit = value.as_integer_ratio()
        exponent = 1 - unit.bit_length()
        shift = exponent % DIGIT
        integer, place = integer << shift, (exponent - shift) // DIGIT
        digits = -(-(integer.bit_length() + 1) // DIGIT)
        self._reach(place, place + digits)
        for at in range(place - self.low, place - self.low + digits):
            self.digits[at, group] += integer & int(_MASK) if at < place - self.low + digits - 1 else integer
            integer >>= DIGIT

    def _reach(self, start: int, stop: int) -> None:
        """Add digits of 0 so that there is one for each power 2^(32 · i) with start ≤ i < stop."""
        below, above = max(0, self.low - start), max(0, stop - self.low - len(self.digits))
        if below or above:
            digits = np.zeros((below + len(self.digits) + above, self.digits.shape[1]), np.int64)
            digits[below : below + len(self.digits)] = self.digits
            self.digits, self.low = digits, self.low - below

    def merge(self, other: Fixed, groups: NDArray[np.intp] | slice = ALL) -> None:
        """Add the numbers of `other`, in order, to the numbers of `groups`; no group may come twice."""
        other._normalize()
        self._normalize()
        self._reach(other.low, other.low + len(other.digits) + 1)
        at = other.low - self.low
        self.digits[at : at + len(other.digits), groups] += other.digits

    def take(self, groups: NDArray[np.intp] | slice) -> Fixed:
        """Return the numbers of some groups, in the order of `groups`."""
        return Fixed(self.digits[:, groups], self.low)

    def fold(self, shape: tuple[int, ...], axis: int) -> Fixed:
        """Return the sums of groups along one axis, if groups are numbered in C order of `shape`."""
        self._normalize()
        digits = np.add.reduce(self.digits.reshape(-1, *shape), axis=axis + 1)
        return Fixed(digits.reshape(len(self.digits), -1), self.low)

    def _normalize(self) -> None:
        """Carry, so that the highest digit is below 2³¹ in magnitude, and every other from 0 to 2³² − 1.

        Digits are appended where the highest would be larger. `self.digits` is replaced, not written in place.
        """
        digits = self.digits
        if not (digits[:-1] >> DIGIT).any() and not (np.abs(digits[-1]) > _MASK >> 1).any():
            return
        digits = digits.copy()  # others may hold the array
        for place in range(len(digits) - 1):
            digits[place + 1] += digits[place] >> DIGIT
            digits[place] &= _MASK
        while (np.abs(digits[-1]) > _MASK >> 1).any():
            digits = np.concatenate([digits, (digits[-1] >> DIGIT)[None]])
            digits[-2] &= _MASK
        self.digits = digits

    def settle(self) -> Fixed:
        """Return equal numbers in as few digits as hold them, so that equal numbers have equal digits."""
        self._normalize()
        used = self.digits.any(axis=1)
        if not used.any():
            return Fixed.zeros(self.digits.shape[1])
        start = int(np.argmax(used))
        digits = self.digits[start:].copy()
        # A highest digit that only repeats the sign of the one below is not needed.
        while len(digits) > 1:
            signed = np.where(digits[-2] > _MASK >> 1, digits[-2] - (_MASK + 1), digits[-2])
            if (np.where(signed < 0, -1, 0) != digits[-1]).any():
                break
            digits = np.concatenate([digits[:-2], signed[None]])
        return Fixed(digits, self.low + start)

    def describe(self, name: str, shape: tuple[int, ...]) -> dict[str, NDArray[Any]]:
        """Return the members of a file that hold the numbers: digits in a shape, and the place of the first."""
        settled = self.settle()
        return {name: settled.digits.reshape(-1, *shape), f"{name}_low": np.array(settled.low)}

    def _split_sign(self) -> tuple[Selected, Fixed]:
        """Return the signs (True for a negative number), and the absolute values.

        All digits of the absolute values are at least 0, so that none cancels another in a sum.
        """
        self._normalize()
        negative = self.digits[-1] < 0
        size = Fixed(np.where(negative, -self.digits, self.digits), self.low)
        size._normalize()
        return negative, size

    def round(self) -> Floats:
        """Return the number of each group in doubles, off by a few roundings; infinite beyond their range."""
        negative, size = self._split_sign()
        with np.errstate(all="ignore"):
            about = np.zeros(size.digits.shape[1])
            for place in reversed(range(len(size.digits))):
                about += np.ldexp(size.digits[place].astype(np.float64), DIGIT * (self.low + place))
        return np.where(negative, -about, about)

    def distill(self, size: int, exponents: range) -> FewDoubles:
        """Return the number of each group as a sum of a few doubles.

        Parameters
        ----------
        size : int
            The number of doubles in each sum.
        exponents : range
            A digit is added if the power of two that it counts is in this range; others are left out, and noted
            in `beyond`.
        """
        negative, sizes = self._split_sign()
        sign = np.where(negative, -1.0, 1.0)
        terms, beyond = [0.0 * sign], np.zeros(sign.shape, np.bool_)
        for place in reversed(range(len(sizes.digits))):
            exponent, digits = DIGIT * (sizes.low + place), sizes.digits[place]
            if exponent in exponents:
                terms.append(np.ldexp(sign * digits, exponent))
            else:
                beyond |= digits != 0
        return FewDoubles(*distill_within(terms, size), beyond)

    def integers(self) -> ScaledIntegers:
        """Return the numbers along one axis, exactly."""
        settled = self.settle()
        rows = enumerate(settled.digits)
        integers: Any = sum(row.astype(object) << (DIGIT * place) for place, row in rows)
        return ScaledIntegers(integers, DIGIT * settled.low)

    def recall(self, group: int) -> Fraction:
        """Return the number of one group, exactly."""
        (number,) = self.take(slice(group, group + 1)).integers().list_fractions()
        return number


def average(values: Sequence[Floats]) -> Floats:
    """Return the average of arrays, element by element, rounded once; infinite or NaN as in doubles.

    Examples
    --------
    >>> average([np.array([1e16]), np.array([1.0]), np.array([-1e16])]).tolist()
    [0.3333333333333333]
    """
    finite = np.logical_and.reduce([np.isfinite(each) for each in values])
    total = Fixed.zeros(finite.size)
    for each in values:
        add_to(total, np.where(finite, each, 0.0))
    return np.where(finite, divide_total(total, len(values)).reshape(finite.shape), sum(values))


def multiply_by_count(values: Floats, count: int) -> Fixed:
    """Return values · count, exactly: one total for each value, in C order."""
    total = Fixed.zeros(values.size)
    for place, value in enumerate(values.reshape(-1).tolist()):
        total.add_fraction(place, make_fraction(value) * count)
    return total


def add_to(total: Fixed, values: Floats) -> None:
    """Add finite values, in C order, to one total each."""
    total.add(np.arange(values.size), values.reshape(-1, 1))


def divide_total(total: Fixed, count: int) -> Floats:
    """Return totals over a count, rounded once."""
    return np.array([round_once(each / count) for each in total.integers().list_fractions()], np.float64)


def mix(kept: Floats, new: Floats, weight: float) -> Floats:
    """Return (1 − weight) · kept + weight · new, rounded once; kept + new where one of these is not finite.

    The weight is from 0 to 1.
    """
    finite = np.isfinite(kept) & np.isfinite(new)
    k = -np.frexp(np.maximum(np.abs(kept), np.abs(new)))[1].astype(np.int64)
    one, other = (np.ldexp(np.where(finite, each, 0.0), k) for each in (kept, new))
    terms, left = distill([one, *(-part for part in two_prod(weight, one)), *two_prod(weight, other)], 3)
    hi, mid, lo = normalize(Triple(*terms))
    total, own = take_exponents(Pair(hi, mid))
    error = np.ldexp(np.where(left, 1.0, np.abs(lo)), -own)
    decided = is_decided(total, own - k, error, PRECISIONS["float64"])
    mixed = np.where(finite, round_scaled(Scaled(total, own - k)), kept + new)
    by, flat = make_fraction(weight), mixed.reshape(-1)
    for place in np.flatnonzero(finite & ~decided).tolist():
        a, b = (make_fraction(each.item(place)) for each in (kept, new))
        flat[place] = round_once((1 - by) * a + by * b)
    return mixed
