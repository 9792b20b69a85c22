"""A normalization of single elements undone: in pairs, and in exact arithmetic where these do not decide."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from normcli.numerics.deciding import PRECISIONS, is_decided
from normcli.numerics.elements.in_fractions import ExactLine, find_exactly
from normcli.numerics.elements.in_pairs import Elements, multiply_back, round_pair
from normcli.numerics.pairs import take_exponents, two_prod, two_sum

if TYPE_CHECKING:
    from fractions import Fraction

    from normcli.dtypes import Floats, Selected
    from normcli.numerics.deciding import Precision
    from normcli.numerics.statistics.divisor import Solution


_RARE = 64
"""If more than 1 / `_RARE` of the values are not decided at once, all are calculated at any magnitude."""

_USUAL = 2.0**400
"""Products of this size and of its inverse have exact second parts."""

_ROUNDINGS = 2.0**-100
"""An upper bound of the roundings of second parts, as a part of |product| + |mean|."""


def invert(elements: Elements, solution: Solution, precision: Precision) -> Floats:
    """Return (x − beta) / gamma · divisor + mean: the exact values, rounded once.

    Parameters
    ----------
    elements : Elements
        The normalized values as x, with the divisor of the solution, and its mean where it centres.
    solution : Solution
        Its arrays have as many axes as x.
    precision : Precision
        The precision of the dtype that the values are then rounded to.

    Returns
    -------
    ndarray of float64
        For float64, the rounded values. For shorter dtypes, doubles rounded to odd: rounding these to the dtype
        gives the exact values, rounded once.
    """
    error = 0.0 if solution.ask is None else solution.error
    elements = elements._replace(error=error)
    usual = None
    if solution.ask is not None and precision == PRECISIONS["float64"]:
        usual = _invert_usual(elements)
    with np.errstate(all="ignore"):
        values, decided = usual or _invert_any(elements, precision)
        finite = _find_finite(elements)
        if not finite.all():
            values = np.where(finite, values, _invert_plainly(elements))
    places = np.flatnonzero(finite & ~decided)
    if places.size:
        values.reshape(-1)[places] = find_exactly(_find_line, elements, places, solution, precision)
    return values


def _invert_any(elements: Elements, precision: Precision) -> tuple[Floats, Selected]:
    """Return results of any magnitude, rounded for a precision, and an array that is True where decided."""
    total, error, exponent = multiply_back(elements)
    total, own = take_exponents(total)
    decided = is_decided(total, own + exponent, np.ldexp(error, -own), precision)
    return round_pair(total, own + exponent, precision), decided


def _invert_usual(elements: Elements) -> tuple[Floats, Selected] | None:
    """Return x · divisor + mean rounded to doubles, and an array that is True where the rounding is decided.

    None if more than one value in 64 is undecided, or there are gamma, beta or integers of more than 53 bits. A
    value whose product is 0, not finite, or near the ends of float64's range is never decided.
    """
    x, mean, divisor, *others = elements[:6]
    if divisor is None or any(part is not None for part in others):
        return None
    with np.errstate(all="ignore"):
        total, low = two_prod(x, divisor.hi)
        sizes = np.abs(total)
        decided = (sizes > 1.0 / _USUAL) & (sizes < _USUAL)
        low += x * divisor.lo
        if mean is not None:
            total, rest = two_sum(total, mean.hi)
            low += rest + mean.mid
            sizes += np.abs(mean.hi)
        values, low = two_sum(total, low)
        sizes *= elements.error + _ROUNDINGS
        decided &= (values + (low - sizes) == values) & (values + (low + sizes) == values)
    is_rare = np.count_nonzero(~decided) * _RARE <= values.size
    return (values, decided) if is_rare else None


def _find_line(mean: Fraction, divisor: Fraction, gamma: Fraction, beta: Fraction) -> ExactLine:
    return ExactLine(divisor / gamma, beta, mean)


def _find_finite(elements: Elements) -> Selected:
    """Return an array that is True where x, mean, divisor, gamma and beta are all finite."""
    x, mean, divisor, gamma, beta = elements[:5]
    finite: Selected = np.isfinite(x)
    for part in (None if mean is None else mean.hi, None if divisor is None else divisor.hi, gamma, beta):
        if part is not None:
            finite = finite & np.isfinite(part)
    return finite


def _invert_plainly(elements: Elements) -> Floats:
    """Return (x − beta) / gamma · divisor + mean in doubles: the result where a number is not finite."""
    x, mean, divisor, gamma, beta = elements[:5]
    assert divisor is not None  # by the contract
    y = x if beta is None else x - beta
    y = y if gamma is None else y / gamma
    y = y * divisor.hi
    return np.asarray(y if mean is None else y + mean.hi)
