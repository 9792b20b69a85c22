"""How far a float is from a real number, in units of its last place; and the float that is nearest."""

from __future__ import annotations

import math
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from tests.reference.real import MOST_BITS, Bounds, Real

if TYPE_CHECKING:
    from collections.abc import Mapping
    from fractions import Fraction


class Format(NamedTuple):
    """A format of binary floats.

    Parameters
    ----------
    precision : int
        Significant bits.
    least : int
        The smallest subnormal number is 2^least.
    limit : int
        All numbers are below 2^limit.
    """

    precision: int
    least: int
    limit: int

    @property
    def highest(self) -> int:
        """The exponent of the last bit of the largest numbers."""
        return self.limit - self.precision


FORMATS: Mapping[str, Format] = MappingProxyType(
    {
        "float16": Format(11, -24, 16),
        "bfloat16": Format(8, -133, 128),
        "float32": Format(24, -149, 128),
        "float64": Format(53, -1074, 1024),
    }
)


def find_format(dtype: Any) -> Format:
    """Return the format of a dtype, or of its name."""
    return FORMATS[np.dtype(dtype).name if not isinstance(dtype, str) else dtype]


class Floats(NamedTuple):
    """Floats as integers times powers of two; infinity is the first number that does not fit, NaN is None."""

    digits: list[int | None]
    exponents: list[int]


def split_floats(values: Any, form: Format) -> Floats:
    """Return finite floats (or infinities and NaN) exactly."""
    wide = np.asarray(values).astype(np.float64).reshape(-1).tolist()
    parts = [_split(value, form) for value in wide]
    return Floats([digits for digits, _ in parts], [power for _, power in parts])


def _split(value: float, form: Format) -> tuple[int | None, int]:
    if not math.isfinite(value):
        return None if math.isnan(value) else int(math.copysign(1, value)), form.limit
    part, exponent = math.frexp(value)
    return int(part * 2.0**53), exponent - 53


_SLACK = 32
"""Errors are known to 2⁻³² ulp."""


def find_error(digits: int | None, power: int, bounds: Bounds, form: Format) -> float | None:
    """Return how far digits · 2^power is from a number, in ulp at the number; None if bounds are too wide."""
    if digits is None:
        return math.inf
    low, high, exponent = bounds
    size = max(abs(low), abs(high)).bit_length() + exponent
    if size > form.limit + 2 and (low > 0 or high < 0):
        low = high = 4 if low > 0 else -4
        exponent = form.limit
        size = form.limit + 3
    elif size < form.least - 64 or not (low or high):
        low = high = exponent = 0
        size = form.least
    place = min(max(size - form.precision, form.least), form.highest)
    base = min(power, exponent, place - _SLACK - 2)
    got, low, high = digits << (power - base), low << (exponent - base), high << (exponent - base)
    if (high - low) << _SLACK > 1 << (place - base):
        return None
    if power == form.limit and (low >= got > 0 or high <= got < 0):  # infinity is right
        return 0.0
    try:
        return max(abs(got - low), abs(got - high)) / (1 << (place - base))
    except OverflowError:
        return math.inf


def measure_ulp(value: Any, exact: Real | Fraction | float, dtype: Any) -> float:
    """Return the distance of a result from the exact one in units of the last place of its dtype there."""
    form, number = find_format(dtype), Real.of(exact)
    (digits,), (power,) = split_floats(value, form)
    bits = 2 * form.precision + 64
    while bits <= MOST_BITS:
        error = find_error(digits, power, number.enclose(bits), form)
        if error is not None:
            return error
        bits *= 2
    raise ArithmeticError(f"{value} cannot be compared with a number that 0 cannot be told from")


def round_once(exact: Real | Fraction | float, dtype: Any) -> float:
    """Return the nearest number of a dtype, of two as near the even one; infinity beyond the largest."""
    form, number = find_format(dtype), Real.of(exact)
    bits, found = 2 * form.precision + 64, (0.0, 1.0)
    while bits <= MOST_BITS:
        low, high, exponent = number.enclose(bits)
        found = _round(low, exponent, form), _round(high, exponent, form)
        if found[0] == found[1]:
            return found[0]
        bits *= 2
    return min(found, key=lambda value: _count_units(value, form) % 2)  # as near as is known


def _count_units(value: float, form: Format) -> float:
    """Return a finite number in units of its last place."""
    return math.ldexp(value, -max(math.frexp(value)[1] - form.precision, form.least))


def _round(digits: int, exponent: int, form: Format) -> float:
    size = abs(digits).bit_length() + exponent
    if digits == 0 or size < form.least - 1:
        return 0.0
    if size > form.limit:
        return math.inf if digits > 0 else -math.inf
    place = max(size - form.precision, form.least)
    drop = place - exponent
    if drop > 0:
        kept, rest = divmod(abs(digits), 1 << drop)
        half = 1 << (drop - 1)
        kept += rest > half or (rest == half and kept & 1)
    else:
        kept = abs(digits) << -drop
    if kept.bit_length() + place > form.limit:
        return math.inf if digits > 0 else -math.inf
    return math.ldexp(kept if digits > 0 else -kept, place)
