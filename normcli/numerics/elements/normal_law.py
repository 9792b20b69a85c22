"""The distribution function of the normal law, Φ(z), in pairs and to any number of bits; and its density φ(z).

In pairs Φ is a Taylor series about c, the multiple of 1/32 nearest to z, whose coefficients stand in a table:
with b₀ = φ(c), (k + 1) · bₖ₊₁ = −c · bₖ − bₖ₋₁, they are Φ(c), b₀, b₁/2, b₂/3 and so on. To any number of bits
it is ½ + φ(z) · (z + z³/3 + z⁵/15 + …) (Marsaglia 2004, Evaluating the normal distribution).
"""

from __future__ import annotations

import functools
import itertools
import math
from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np

from normcli.numerics.pairs import Pair, pair_add, pair_multiply
from normcli.numerics.powers import FIXED, count_digits, round_fixed, use_digits

if TYPE_CHECKING:
    from decimal import Decimal

    from normcli.dtypes import Floats

LEAST, LARGEST = -8.0, 12.0
"""Between these, `add_normal` has a table."""

_STEPS = 32
"""The table's numbers c are multiples of 1/32: z is no further than 1/64 from one."""

_PAIRS, _TERMS = 8, 17
"""Coefficients that are pairs, and all: at c = −8 term k is 8⁻ᵏ/k! of Φ(z), below 2⁻³⁹ from the eighth on."""


def add_normal(z: Floats) -> Pair:
    """Return Φ(z) of doubles from `LEAST` to `LARGEST`, with a relative error of `NORMAL`."""
    steps = np.rint(z * _STEPS)
    h = z - steps / _STEPS
    rows = _tabulate()[:, :, steps.astype(np.intp) - int(LEAST * _STEPS)]
    tail = rows[-1, 0]
    for hi in rows[_PAIRS:-1, 0][::-1]:
        tail = hi + h * tail
    total, by = Pair(tail, np.zeros_like(tail)), Pair(h, np.zeros_like(h))
    for hi, lo in rows[:_PAIRS][::-1]:
        total = pair_add(Pair(hi, lo), pair_multiply(total, by))
    return total


@functools.cache
def _tabulate() -> Floats:
    """Return the Taylor coefficients of Φ about each c = step/32, as pairs, shape (terms, 2, numbers c).

    The second axis has the larger double of each pair first.
    """
    with use_digits(count_digits(FIXED, 1.0)):
        density = int(find_density_exactly(to_decimal(Fraction(0))) * (1 << FIXED))
    found = {}
    for sign, last in ((-1, int(-LEAST * _STEPS)), (1, int(LARGEST * _STEPS))):
        share, b = 1 << FIXED - 1, density
        for step in range(last + 1):
            terms = _expand(share, b, sign * step)
            found[sign * step] = [round_fixed(term) for term in terms[:_TERMS]]
            share = sum(term * sign**k // _STEPS**k for k, term in enumerate(terms))
            b = sum(k * term * sign ** (k - 1) // _STEPS ** (k - 1) for k, term in enumerate(terms) if k)
    return np.array([found[step] for step in sorted(found)]).transpose(1, 2, 0)


def _expand(share: int, density: int, step: int) -> list[int]:
    """Return the Taylor coefficients of Φ about c = step/32, given Φ(c) and φ(c), in units of 2^−240."""
    before, b, terms = 0, density, [share]
    for k in range(FIXED // 4):  # each of the next c is at 2⁻⁵, where term k is below 2^(−5k) · 12ᵏ/k!
        terms.append(b // (k + 1))
        before, b = b, (-step * b // _STEPS - before) // (k + 1)
    return terms


def find_normal_share(z: Fraction, bits: int) -> Fraction:
    """Return Φ(z) with a relative error of 2^−bits.

    For large z it is 1, as 1 − Φ(z) is below exp(−z²/2). For negative z, where the terms of the sum cancel, it
    is calculated with more digits.
    """
    if z > 0 and 0.72 * float(z) ** 2 > bits:  # log₂ e / 2 is above 0.72
        return Fraction(1)
    lost = max(0.0, -float(z)) ** 2
    with use_digits(count_digits(bits + math.ceil(lost), max(abs(z), Fraction(1)))):
        power = total = to_decimal(z)
        square, least = power * power, abs(power).scaleb(-count_digits(bits + math.ceil(lost), 1.0))
        for odd in itertools.count(3, 2):
            power *= square / odd
            if abs(power) < least:
                break
            total += power
        return Fraction(1, 2) + Fraction(find_density_exactly(to_decimal(z)) * total)


def find_density_exactly(z: Decimal) -> Decimal:
    """Return φ(z) = exp(−z²/2) / √(2π) to the precision of the current decimal context."""
    return (-z * z / 2).exp() / (2 * find_pi()).sqrt()


def find_pi() -> Decimal:
    """Return π to the precision of the current decimal context, as 16 arctan(1/5) − 4 arctan(1/239)."""
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


def to_decimal(value: Fraction) -> Decimal:
    """Return a fraction as a decimal, to the precision of the current decimal context."""
    from decimal import Decimal  # on use: few values come here

    return Decimal(value.numerator) / Decimal(value.denominator)
