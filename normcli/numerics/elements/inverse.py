"""A normalization of single elements undone: in pairs, and in exact arithmetic where these do not decide."""

from __future__ import annotations

import functools
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np

from normcli.numerics.bounds import PAIRS
from normcli.numerics.deciding import is_decided, round_real, round_to
from normcli.numerics.elements.in_pairs import Elements, round_pair, take_exponents
from normcli.numerics.elements.kernel import SHORTEST_WIDE_LINE
from normcli.numerics.pairs import (
    Pair,
    Triple,
    pair_add,
    pair_divide,
    pair_multiply,
    quick_two_sum,
    two_diff,
    two_sum,
)
from normcli.tuples import NamedTuple

if TYPE_CHECKING:
    from normcli.dtypes import Floats, Integers, Selected
    from normcli.numerics.deciding import Precision
    from normcli.numerics.statistics.divisor import Solution


_CLOSE = 2.0**-700
"""Larger values do not tell the missing bits of a faint mean."""

_LEAST, _LARGEST = 2.0**-400, 2.0**400
"""Of numbers other than 0 that are not between these, some products could leave float64."""


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
    exponent = 0 if solution.scale is None else -solution.scale
    exact = solution.ask is None if solution.exact is None else solution.exact
    with np.errstate(all="ignore"):
        found = _invert_in_pairs(elements, np.where(exact, 0.0, solution.error))
        total, own = take_exponents(found.total)
        power = own + found.exponent + exponent
        values = round_pair(total, power, precision)
        decided = found.usable & is_decided(total, power, np.ldexp(found.error, -own), precision)
        if solution.faint is not None:
            decided &= ~(solution.faint & (np.abs(values) < _CLOSE))
        finite = _find_finite(elements)
        if not finite.all():
            values = np.where(finite, values, _invert_plainly(elements, exponent))
    places = np.flatnonzero(finite & ~decided)
    if places.size:
        values.reshape(-1)[places] = _invert_exactly(elements, solution, places, precision)
    return values


class _InPairs(NamedTuple):
    """What pairs give of values.

    Parameters
    ----------
    total : Pair
        The values, in units of 2^exponent.
    exponent : ndarray of int
    error : ndarray
        A bound of their errors, in the same unit; 0 where they are exact.
    usable : ndarray of bool
        Where all of this holds.
    """

    total: Pair
    exponent: Integers
    error: Floats
    usable: Selected


def _invert_in_pairs(elements: Elements, divisor_error: Floats) -> _InPairs:
    """Return the values: a divisor is off by a part of itself."""
    x, mean, divisor, gamma, beta, low, *_ = elements
    assert divisor is not None  # by the contract
    spread = functools.partial(_spread, shape=x.shape)
    factor, exponent = take_exponents(divisor)
    factor = factor.map(spread)
    z = Pair(x, np.zeros_like(x) if low is None else low)
    if beta is not None:
        z = two_diff(x, beta) if low is None else pair_add(z, Pair(-beta, np.zeros_like(beta)))
    usable = _is_moderate(z.hi)
    exact = (z.lo == 0.0) & (factor.lo == 0.0) & (gamma is None)
    if gamma is not None:
        usable = usable & _is_moderate(gamma)
        z = pair_divide(z, Pair(gamma, np.zeros_like(gamma)))
    total = z = pair_multiply(z, factor)
    largest: Any = np.abs(z.hi)
    if mean is not None:
        scaled = mean.map(lambda part: spread(np.ldexp(part, -exponent)))
        usable = usable & _is_moderate(scaled.hi) & ((scaled.hi == 0.0) == (mean.hi == 0.0))
        largest = np.maximum(largest, np.abs(scaled.hi))
        total, left = _add(z, scaled)
        exact = exact & (left == 0.0)
    error = np.where(exact, 0.0, largest * PAIRS.error) + np.abs(z.hi) * divisor_error
    return _InPairs(total, exponent, error, usable)


def _spread(values: Floats, shape: tuple[int, ...]) -> Floats:
    """Return one for each value where these come in short lines, of which NumPy takes a while for each."""
    short = len(shape) > 1 and shape[-1] < SHORTEST_WIDE_LINE
    return np.broadcast_to(values, shape).copy() if short else values


def _is_moderate(values: Floats) -> Selected:
    sizes = np.abs(values)
    return np.asarray(((sizes >= _LEAST) & (sizes <= _LARGEST)) | (sizes == 0.0))


def _add(pair: Pair, mean: Triple) -> tuple[Pair, Floats]:
    """Return the sum of both within 2⁻¹⁰⁴ of the larger, and a number that is 0 where that is exact."""
    first, error = two_sum(pair.hi, mean.hi)
    second, third = two_sum(error, pair.lo)
    second, fourth = two_sum(second, mean.mid)
    hi, lo = two_sum(first, second)
    return quick_two_sum(hi, lo + (third + fourth + mean.lo)), np.abs(third) + np.abs(fourth) + np.abs(mean.lo)


def _find_finite(elements: Elements) -> Selected:
    """Return where all numbers are finite."""
    x, mean, divisor, gamma, beta = elements[:5]
    finite: Selected = np.isfinite(x)
    for part in (None if mean is None else mean.hi, None if divisor is None else divisor.hi, gamma, beta):
        if part is not None:
            finite = finite & np.isfinite(part)
    return finite


def _invert_plainly(elements: Elements, exponent: Integers | int) -> Floats:
    """Return what doubles give: the result where a number is not finite."""
    x, mean, divisor, gamma, beta = elements[:5]
    assert divisor is not None  # by the contract
    y = x if beta is None else x - beta
    y = y if gamma is None else y / gamma
    y = y * np.ldexp(divisor.hi, exponent)
    return np.asarray(y if mean is None else y + np.ldexp(mean.hi, exponent))


def _invert_exactly(elements: Elements, solution: Solution, places: Any, precision: Precision) -> Floats:
    """Return the values at some flat places, from their groups' exact means and divisors."""
    x, mean, _, gamma, beta, low, *_ = elements
    index = np.unravel_index(places, x.shape)
    recall = functools.cache(solution.recall)
    rounding = functools.partial(round_to, precision=precision)

    def choose(array: Any, otherwise: float = 0.0) -> list[Any]:
        if array is None:
            return [otherwise] * len(places)
        chosen: list[Any] = np.broadcast_to(array, x.shape)[index].tolist()
        return chosen

    def evaluate(number: int, difference: Fraction, by: Fraction, bits: int) -> tuple[Fraction, Fraction]:
        (centre, divisor), finer = recall(number, bits), recall(number, 2 * bits)[1]
        assert divisor is not None  # what is NaN is not finite
        product = difference / by * divisor
        error = Fraction(0) if divisor == finer else abs(product) / 2 ** (bits - 2)
        return product + (0 if mean is None else centre), error

    @functools.cache  # of values that are 0, there may be many
    def find(number: int, y: float, rest: float, plus: float, by: float) -> float:
        difference = Fraction(y) + Fraction(rest) - Fraction(plus)
        return round_real(functools.partial(evaluate, number, difference, Fraction(by)), rounding)

    columns = choose(solution.numbers), choose(x), choose(low), choose(beta), choose(gamma, 1.0)
    return np.array([find(*row) for row in zip(*columns, strict=True)])
