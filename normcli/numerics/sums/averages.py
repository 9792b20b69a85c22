"""Averages of statistics, each the exact one, rounded once: of many, and of two with weights."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from normcli.numerics.deciding import PRECISIONS, is_decided
from normcli.numerics.elements.in_pairs import take_exponents
from normcli.numerics.pairs import Pair, Triple, distill, normalize, two_prod
from normcli.numerics.rational import divide_once, make_fraction, round_once
from normcli.numerics.rounding import Scaled, round_scaled
from normcli.numerics.sums.fixed_point import Fixed

if TYPE_CHECKING:
    from collections.abc import Sequence

    from normcli.dtypes import Floats


def average(values: Sequence[Floats]) -> Floats:
    """Return the average of arrays: where it is not finite, as doubles do.

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
    """Return exact totals: of so many values that have these averages, in C order."""
    total = Fixed.zeros(values.size)
    for place, value in enumerate(values.reshape(-1).tolist()):
        up, down = value.as_integer_ratio()
        total.add_integer(place, up * count, 1 - down.bit_length())
    return total


def add_to(total: Fixed, values: Floats) -> None:
    """Add finite values to their totals."""
    total.add(np.arange(values.size), values.reshape(-1, 1))


def divide_total(total: Fixed, count: int) -> Floats:
    """Return totals over a count, rounded once."""
    integers, exponent = total.integers()
    return np.array([divide_once(integer, count, exponent) for integer in integers], np.float64)


def mix(kept: Floats, new: Floats, weight: float) -> Floats:
    """Return (1 − weight) · kept + weight · new, of a weight from 0 to 1; what is not finite, as doubles do."""
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
