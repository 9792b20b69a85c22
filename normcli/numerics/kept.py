"""What is kept of lengths and of windows' factors: a double, and 24 bits of what that leaves, to nearest.

They follow from the exact value alone. Whoever calculates a value says within which error it is; where the bits
that are kept are not decided by then, it has to be calculated exactly.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from normcli.numerics.pairs import Pair, find_power_of_two
from normcli.tuples import NamedTuple

if TYPE_CHECKING:
    from normcli.dtypes import Floats, Selected

KEPT_BITS = 24
"""Bits that are kept behind those of the double. The fewer, the more rarely they are undecided."""

_PRECISION = 53


class Kept(NamedTuple):
    """What is kept of values, and where it is not decided."""

    value: Pair
    undecided: Selected


def keep(value: Pair, error: Any, bits: int = KEPT_BITS) -> Kept:
    """Round values that are known to within an error to what is kept of them.

    Parameters
    ----------
    value : Pair
        Normalized: |lo| ≤ ulp(hi)/2; finite, and far from the ends of float64's range.
    error : float or ndarray
        An upper bound of how far the exact value may be from the pair, as a part of it; 0 where the pair is it.
    bits : int
        That are kept of the second part.
    """
    hi, lo = value
    size, power = np.abs(hi), find_power_of_two(hi)
    unit, step = power * 2.0 ** (1 - _PRECISION - bits), error * size
    low, other = _round_to(lo + step, unit), _round_to(lo - step, unit)
    # Below a power of two, doubles are twice as dense.
    half = np.where(size == power, 0.25, 0.5) * 2.0 ** (1 - _PRECISION) * power
    between = (np.abs(lo) >= half - unit) & (hi != 0.0) & np.not_equal(error, 0.0)
    return Kept(Pair(hi, low), np.asarray((low != other) | between))


def _round_to(values: Floats, unit: Floats) -> Floats:
    """Round to multiples of a unit, a power of two, ties to even."""
    magic = 1.5 * 2.0**52 * unit
    return (values + magic) - magic
