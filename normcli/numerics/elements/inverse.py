"""A normalization of single elements undone: in pairs, and in exact arithmetic where these do not decide."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from normcli.numerics.deciding import is_decided
from normcli.numerics.elements.in_fractions import find_exactly
from normcli.numerics.elements.in_pairs import Elements, multiply_back, round_pair, take_exponents

if TYPE_CHECKING:
    from fractions import Fraction

    from normcli.dtypes import Floats, Selected
    from normcli.numerics.deciding import Precision
    from normcli.numerics.statistics.divisor import Solution


def invert(elements: Elements, solution: Solution, precision: Precision) -> Floats:
    """Return (x − beta) / gamma · divisor + mean: the exact values, rounded once.

    Parameters
    ----------
    elements : Elements
        With the divisor of the solution, and its mean where it centres.
    solution : Solution
        Of as many axes as x.
    precision : Precision
        Of the dtype that the values are then rounded to.

    Returns
    -------
    ndarray
        Of float64, nothing is left to round; for shorter floats, the values are rounded to odd.
    """
    error = 0.0 if solution.ask is None else solution.error
    elements = elements._replace(error=error)
    with np.errstate(all="ignore"):
        total, error, exponent = multiply_back(elements)
        total, own = take_exponents(total)
        values = round_pair(total, own + exponent, precision)
        decided = is_decided(total, own + exponent, np.ldexp(error, -own), precision)
        finite = _find_finite(elements)
        if not finite.all():
            values = np.where(finite, values, _invert_plainly(elements))
    places = np.flatnonzero(finite & ~decided)
    if places.size:
        x, gamma, beta, low = elements.x, elements.gamma, elements.beta, elements.low
        columns = (x, 0.0), (low, 0.0), (gamma, 1.0), (beta, 0.0)
        values.reshape(-1)[places] = find_exactly(_invert_one, columns, places, x.shape, solution, precision)
    return values


def _invert_one(
    mean: Fraction, divisor: Fraction, x: Fraction, low: Fraction, gamma: Fraction, beta: Fraction
) -> tuple[Fraction, Fraction]:
    return (x + low - beta) / gamma * divisor, mean


def _find_finite(elements: Elements) -> Selected:
    """Return where all numbers are finite."""
    x, mean, divisor, gamma, beta = elements[:5]
    finite: Selected = np.isfinite(x)
    for part in (None if mean is None else mean.hi, None if divisor is None else divisor.hi, gamma, beta):
        if part is not None:
            finite = finite & np.isfinite(part)
    return finite


def _invert_plainly(elements: Elements) -> Floats:
    """Return what doubles give: the result where a number is not finite."""
    x, mean, divisor, gamma, beta = elements[:5]
    assert divisor is not None  # by the contract
    y = x if beta is None else x - beta
    y = y if gamma is None else y / gamma
    y = y * divisor.hi
    return np.asarray(y if mean is None else y + mean.hi)
