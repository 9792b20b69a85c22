"""Jumps of the Mersenne Twister MT19937 over any number of words, by polynomials modulo 2.

The words of MT19937 before tempering obey a linear recurrence with a polynomial p (Matsumoto & Nishimura 1998,
appendix A). If x^J mod p is the sum of x^i over some i, then word n + J is the sum (XOR) of the words n + i
(Haramoto, Matsumoto, Nishimura, Panneton & L'Ecuyer 2008). A polynomial is an integer: bit i is the
coefficient of x^i.
"""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

_STATE, _MIDDLE, _REST = 624, 397, 31
"""The words of a state (n), the recurrence's middle word (m), and the bit at which it splits words (r)."""

_TWIST = 0x9908B0DF

_DEGREE = 19937

_WORTH_IT = 1 << 21
"""The number of words from which a jump is faster than drawing them."""

_SPREAD = [sum((byte >> bit & 1) << 2 * bit for bit in range(8)) for byte in range(256)]
_LOW = bytes(spread & 255 for spread in _SPREAD)
_HIGH = bytes(spread >> 8 for spread in _SPREAD)
"""The low and the high byte of the square of each byte, as a polynomial modulo 2."""


def advance(engine: np.random.RandomState, count: int) -> None:
    """Skip `count` 32-bit words of a Mersenne Twister's stream, in place, without drawing them one by one.

    Examples
    --------
    >>> jumped, drawn = np.random.RandomState(7), np.random.RandomState(7)
    >>> advance(jumped, 5_000_000)
    >>> _ = drawn.bytes(4 * 5_000_000)
    >>> jumped.randint(1000) == drawn.randint(1000)
    True
    """
    if count < _WORTH_IT:
        _drop(engine, count)
        return
    _drop(engine, 2 * _STATE)  # 31 bits of the first state do not obey the recurrence
    state: Any = engine.get_state(legacy=False)
    power = _find_power(count - 2 * _STATE)
    chosen = [place for place in range(_DEGREE) if power >> place & 1]
    words = _list_words(engine, state["state"]["key"])
    moved = np.zeros(_STATE, np.uint32)
    for place in chosen:
        moved ^= words[place : place + _STATE]
    state["state"]["key"] = moved
    engine.set_state(state)


def _drop(engine: np.random.RandomState, count: int) -> None:
    if count:  # for 0 bytes, NumPy would still draw a word
        engine.bytes(4 * count)


def _list_words(engine: np.random.RandomState, key: Any) -> Any:
    """Return the next 32-bit words of a Mersenne Twister's internal sequence, at least 20561, untempered.

    The first 624 are `key`, the present state of the engine; the others are read from it, by advancing it in
    place.
    """
    states = [key.copy()]
    while len(states) * _STATE < _DEGREE + _STATE:
        _drop(engine, _STATE)
        state: Any = engine.get_state(legacy=False)
        states.append(state["state"]["key"].copy())
    return np.concatenate(states)


@functools.cache
def _find_polynomial() -> tuple[int, tuple[int, ...]]:
    """Return the characteristic polynomial p of the Mersenne Twister's recurrence, as bits of an integer.

    Bit i is the coefficient (0 or 1) of xⁱ. The second result lists the powers of x in p, except the highest.
    """
    whole, rest = (1 << _STATE) | (1 << _MIDDLE), (1 << _STATE - 1) | (1 << _MIDDLE - 1)
    total = 1  # the value of Horner's rule so far
    for bit in range(_REST):
        total = _multiply(total, rest) ^ (_TWIST >> bit & 1)
    polynomial = _multiply(total, whole) ^ (_TWIST >> _REST)
    return polynomial, tuple(power for power in range(_DEGREE) if polynomial >> power & 1)


def _multiply(long: int, short: int) -> int:
    """Return the product of two polynomials over GF(2): bit i of an integer is the coefficient of xⁱ.

    The fewer bits of `short` are 1, the faster this is.
    """
    product = 0
    for power in range(short.bit_length()):
        if short >> power & 1:
            product ^= long << power
    return product


def _find_power(exponent: int) -> int:
    """Return x^exponent modulo the recurrence's polynomial p, as bits: bit i is the coefficient of xⁱ."""
    polynomial, powers = _find_polynomial()
    power = 1
    for bit in bin(exponent)[2:]:
        power = _reduce(_square(power), powers)
        if bit == "1":
            power <<= 1
            power ^= polynomial if power >> _DEGREE else 0
    return power


def _square(value: int) -> int:
    """Return the square of a polynomial."""
    data = value.to_bytes(value.bit_length() // 8 + 1, "little")
    spread = bytearray(2 * len(data))
    spread[::2], spread[1::2] = data.translate(_LOW), data.translate(_HIGH)
    return int.from_bytes(spread, "little")


def _reduce(value: int, powers: tuple[int, ...]) -> int:
    """Return the remainder of a polynomial divided by p, given the powers of p except the highest."""
    while high := value >> _DEGREE:
        value ^= functools.reduce(int.__xor__, (high << power for power in powers), high << _DEGREE)
    return value
