"""Groups of values that are hard on a norm, from whole numbers alone: the same in any version of NumPy."""

from __future__ import annotations

import zlib
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from normcli.dtypes import is_float
from tests.reference.rounding import Format, find_format

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

    Shape = tuple[int, int]


class Stream:
    """Whole numbers that a seed decides: splitmix64 (Steele, Lea & Flood 2014).

    Parameters
    ----------
    seed : int or str
        Any number of them.
    """

    def __init__(self, *seed: int | str) -> None:
        text = "/".join(map(str, seed)).encode()
        self._state = zlib.crc32(text) << 32 | zlib.crc32(text[::-1], 1)

    def draw(self, shape: Sequence[int] | int) -> NDArray[np.uint64]:
        """Return numbers of 64 bits."""
        count = int(np.prod(shape))
        start = np.full(count, self._state, np.uint64)
        z = start + np.arange(1, count + 1, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)
        self._state = (self._state + count * 0x9E3779B97F4A7C15) % 2**64
        z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        return np.asarray(z ^ (z >> np.uint64(31))).reshape(shape)

    def below(self, limit: int, shape: Sequence[int] | int) -> NDArray[np.int64]:
        """Return numbers from 0 to limit − 1; limit is at most 2⁶²."""
        return (self.draw(shape) >> np.uint64(1)).astype(np.int64) % np.int64(limit)

    def one(self, limit: int) -> int:
        """Return one number from 0 to limit − 1: that of `below`, without an array."""
        self._state = z = (self._state + 0x9E3779B97F4A7C15) % 2**64
        z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9 % 2**64
        z = (z ^ (z >> 27)) * 0x94D049BB133111EB % 2**64
        return ((z ^ (z >> 31)) >> 1) % limit

    def pick(self, choices: Sequence[Any]) -> Any:
        """Return one of a few."""
        return choices[self.one(len(choices))]

    def shuffle(self, values: NDArray[Any]) -> NDArray[Any]:
        """Return rows with the values of each in another order."""
        return np.take_along_axis(values, np.argsort(self.draw(values.shape), axis=-1, kind="stable"), axis=-1)


class Parts(NamedTuple):
    """Numbers as digits · 2^exponent."""

    digits: NDArray[np.int64]
    exponent: NDArray[np.int64] | int

    def map(self, function: Callable[[Any], Any]) -> Parts:
        """Return both arrays after a function."""
        return Parts(function(self.digits), function(np.broadcast_to(self.exponent, self.digits.shape)))


def _sign(stream: Stream, digits: NDArray[np.int64]) -> NDArray[np.int64]:
    return np.where(stream.below(2, digits.shape) == 1, digits, -digits)


def _draw_digits(stream: Stream, shape: Shape, bits: int) -> NDArray[np.int64]:
    return _sign(stream, stream.below(1 << bits, shape))


def _moderate(stream: Stream, shape: Shape, form: Format) -> Parts:
    bits = form.precision - 2
    return Parts(sum(stream.below(1 << bits, shape) for _ in range(4)) - (2 << bits), -bits)


def _offset(stream: Stream, shape: Shape, form: Format) -> Parts:
    """Mean beside deviation: 2, 4, 8 … and up to where one unit in the last place is left."""
    bits = form.precision
    noise = np.maximum(1, bits - 2 - stream.below(bits, (shape[0], 1)))
    base = (1 << (bits - 1)) + stream.below(1 << (bits - 2), (shape[0], 1))
    return Parts(_sign(stream, base) + stream.below(1 << 61, shape) % (np.int64(1) << noise), 1 - bits)


def _wide(stream: Stream, shape: Shape, form: Format) -> Parts:
    exponents = form.least + stream.below(form.highest - form.least + 1, shape)
    return Parts(_draw_digits(stream, shape, form.precision), exponents)


def _mixed(stream: Stream, shape: Shape, form: Format) -> Parts:
    exponents = np.clip(stream.below(40, shape) - 20 - form.precision, form.least, form.highest)
    return Parts(_draw_digits(stream, shape, form.precision), exponents)


def _antisymmetric(stream: Stream, shape: Shape, form: Format) -> Parts:
    source = _wide if stream.one(2) else _mixed
    half = source(stream, (shape[0], shape[1] // 2), form)
    rest = np.zeros((shape[0], shape[1] % 2), np.int64)
    digits = np.concatenate([half.digits, -half.digits, rest], axis=1)
    exponents = np.concatenate([half.exponent, half.exponent, rest], axis=1)
    order = np.argsort(stream.draw(shape), axis=-1, kind="stable")
    return Parts(digits, exponents).map(lambda a: np.take_along_axis(a, order, axis=-1))


def _cancelling(stream: Stream, shape: Shape, form: Format) -> Parts:
    """What is antisymmetric, but for an eighth of the values, which are far smaller than the largest."""
    digits, exponents = _antisymmetric(stream, shape, form)
    few = stream.below(8, shape) == 0
    small = np.maximum(
        form.least, np.max(exponents, axis=-1, keepdims=True) - stream.below(4 * form.precision, shape)
    )
    return Parts(np.where(few, _draw_digits(stream, shape, 3), digits), np.where(few, small, exponents))


def _ties(stream: Stream, shape: Shape, form: Format) -> Parts:
    """From 0 to 2^k − 1: quotients are few bits, and those again k places on."""
    bits = form.precision
    top = (np.int64(1) << (1 + stream.below(bits, (shape[0], 1)))) - 1
    digits = stream.below(1 << bits, shape) >> stream.below(bits, shape)
    digits[:, :1], digits[:, 1:2] = 0, top[:, : digits.shape[1] - 1]
    return Parts(digits, 1 - bits)


def _subnormal(stream: Stream, shape: Shape, form: Format) -> Parts:
    return Parts(_draw_digits(stream, shape, form.precision) >> stream.below(form.precision, shape), form.least)


def _overflow(stream: Stream, shape: Shape, form: Format) -> Parts:
    half = 1 << (form.precision - 1)
    return Parts(_sign(stream, half + stream.below(half, shape)), form.highest)


def _ends(stream: Stream, shape: Shape, form: Format) -> Parts:
    """Largest and smallest numbers, and zeros."""
    exponents = np.where(stream.below(2, shape) == 1, form.least, form.highest)
    digits = _draw_digits(stream, shape, form.precision)
    return Parts(np.where(stream.below(4, shape) == 0, 0, digits), exponents)


def _near_constant(stream: Stream, shape: Shape, form: Format) -> Parts:
    half = 1 << (form.precision - 1)
    digits = np.broadcast_to(half + stream.below(half - 1, (shape[0], 1)), shape).copy()
    digits[np.arange(shape[0]), stream.below(shape[1], shape[0])] += 1
    exponent = np.clip(stream.below(80, (shape[0], 1)) - 40 - form.precision, form.least, form.highest)
    return Parts(digits * np.where(stream.below(2, (shape[0], 1)) == 1, 1, -1), exponent)


def _tails(stream: Stream, shape: Shape, form: Format) -> Parts:
    doublings = sum((stream.below(1 << step, shape) == 0).astype(np.int64) for step in range(1, 12))
    exponents = np.clip(4 * doublings - form.precision, form.least, form.highest)
    return Parts(_draw_digits(stream, shape, form.precision), exponents)


def _integers(stream: Stream, shape: Shape, form: Format) -> Parts:
    return Parts(stream.below(17, shape) - 8, 0)


def _decimals(stream: Stream, shape: Shape, form: Format) -> Parts:
    """Readings with two decimals, such as 293.15."""
    hundredths = 28000 + stream.below(3000, shape)
    shift = form.precision + 6 - 15  # 15 bits of them
    return Parts(((hundredths << shift) + 50) // 100, -shift)


def _clumps(stream: Stream, shape: Shape, form: Format) -> Parts:
    """Two heaps of values, each much narrower than they are apart."""
    bits = form.precision
    heaps = _draw_digits(stream, (shape[0], 2), bits - 1)
    chosen = np.take_along_axis(heaps, stream.below(2, shape), axis=1)
    return Parts(chosen + stream.below(1 << (bits // 3), shape), 1 - bits)


def _powers(stream: Stream, shape: Shape, form: Format) -> Parts:
    exponents = np.clip(stream.below(6, shape) - 3, form.least, form.highest)
    return Parts(_sign(stream, np.ones(shape, np.int64)) * (stream.below(5, shape) != 0), exponents)


FAMILIES: dict[str, Callable[[Stream, Shape, Format], Parts]] = {
    "moderate": _moderate,
    "offset": _offset,
    "wide": _wide,
    "mixed": _mixed,
    "antisymmetric": _antisymmetric,
    "cancelling": _cancelling,
    "ties": _ties,
    "subnormal": _subnormal,
    "overflow": _overflow,
    "ends": _ends,
    "near-constant": _near_constant,
    "tails": _tails,
    "integers": _integers,
    "decimals": _decimals,
    "clumps": _clumps,
    "powers": _powers,
}
"""Families of floats."""


def _take_whole(stream: Stream, shape: Shape, info: Any) -> NDArray[np.uint64]:
    return stream.draw(shape)


def _take_short(stream: Stream, shape: Shape, info: Any) -> NDArray[np.uint64]:
    return stream.draw(shape) >> (np.uint64(1) + stream.below(60, shape).astype(np.uint64))


def _take_few(stream: Stream, shape: Shape, info: Any) -> NDArray[np.uint64]:
    return stream.below(17, shape).astype(np.uint64)


def _take_near_top(stream: Stream, shape: Shape, info: Any) -> NDArray[np.uint64]:
    few = np.uint64(1) << stream.below(info.bits - 2, (shape[0], 1)).astype(np.uint64)
    return np.uint64(info.max) - stream.draw(shape) % few


def _take_ends(stream: Stream, shape: Shape, info: Any) -> NDArray[np.uint64]:
    return np.where(stream.below(2, shape) == 1, np.uint64(info.max), np.uint64(info.min % 2**64))


def _take_one_apart(stream: Stream, shape: Shape, info: Any) -> NDArray[np.uint64]:
    base = np.broadcast_to(_take_near_top(stream, (shape[0], 1), info) - np.uint64(1), shape).copy()
    base[np.arange(shape[0]), stream.below(shape[1], shape[0])] += np.uint64(1)
    return base


INTEGER_FAMILIES: dict[str, Callable[[Stream, Shape, Any], NDArray[np.uint64]]] = {
    "whole": _take_whole,
    "short": _take_short,
    "few": _take_few,
    "near the top": _take_near_top,
    "ends": _take_ends,
    "one apart": _take_one_apart,
}
"""Families of integers, as bits of 64 of which a dtype takes the last."""


def list_families(dtype: Any) -> tuple[str, ...]:
    """Return the names of the families that a dtype has."""
    return tuple(FAMILIES if is_float(np.dtype(dtype)) else INTEGER_FAMILIES)


def make(family: str, stream: Stream, shape: Shape, dtype: Any) -> NDArray[Any]:
    """Return groups of a family as the rows of a matrix; floats are exact in their dtype.

    Parameters
    ----------
    family : str
        One of `list_families(dtype)`.
    stream : Stream
    shape : tuple of int
        How many groups, of how many values.
    dtype : dtype
    """
    if not is_float(np.dtype(dtype)):
        return INTEGER_FAMILIES[family](stream, shape, np.iinfo(dtype)).astype(dtype)
    digits, exponent = FAMILIES[family](stream, shape, find_format(dtype))
    return np.ldexp(digits.astype(np.float64), exponent).astype(dtype)
