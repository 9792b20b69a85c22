"""A normalization of single elements undone: in pairs, and in exact arithmetic where these do not decide."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from normcli.numerics.elements import Elements, round_pair, take_exponents
from normcli.numerics.kernel import SHORTEST_WIDE_LINE
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

if TYPE_CHECKING:
    from normcli.dtypes import Floats, Integers, Selected
    from normcli.numerics.deciding import Precision
    from normcli.numerics.divisor import Solution


ALLOWED = 7
"""An error of 2⁻⁷ ulp is allowed beside the rounding."""

_BITS = 99
"""Errors of a quotient, a product and a sum of pairs are together below 2⁻⁹⁹ of the larger term."""

_DIVISOR_BITS = 77
"""What is kept of a divisor is off by less than 2⁻⁷⁷ of it."""

_CLOSE = 2.0**-700
"""Larger values do not tell the missing bits of a faint mean."""

_LEAST, _LARGEST = 2.0**-400, 2.0**400
"""Of numbers other than 0 that are not between these, some products could leave float64."""

_FULL_PRECISION = 53


def invert(
    elements: Elements, exponent: Integers | int, precision: Precision, solution: Solution | None = None
) -> Floats:
    """Return ((x − beta) / gamma · divisor + mean) · 2^exponent.

    Parameters
    ----------
    elements : Elements
        With a divisor.
    exponent : int, or ndarray of them
    precision : Precision
        Of the dtype that the values are then rounded to.
    solution : Solution or None
        Whose mean and divisor the elements have, and which recalls both where what is kept of them does not
        suffice. None if what the elements have is exact.

    Returns
    -------
    ndarray
        Of float64, nothing is left to round; for shorter floats, the values are rounded to odd.
    """
    with np.errstate(all="ignore"):
        kept_bits = _BITS if solution is None else _DIVISOR_BITS
        values, decided = _invert_in_pairs(elements, exponent, precision, kept_bits)
        if solution is not None and solution.faint is not None:
            decided &= ~(solution.faint & (np.abs(values) < _CLOSE))
        finite = _find_finite(elements)
        if not finite.all():
            values = np.where(finite, values, _invert_plainly(elements, exponent))
    undecided = np.flatnonzero(finite & ~decided)
    if undecided.size:
        if solution is None:
            found = _invert_exactly(elements, exponent, undecided, precision)
        else:
            found = _recall(elements, solution, undecided, precision)
        values.reshape(-1)[undecided] = found
    return values


def _invert_in_pairs(
    elements: Elements, exponent: Integers | int, precision: Precision, kept_bits: int
) -> tuple[Floats, Selected]:
    """Return the values, and where they are decided: of the divisor, so many bits are kept."""
    x, mean, divisor, gamma, beta, low, _ = elements
    assert divisor is not None  # by the contract
    spread = partial(_spread, shape=x.shape)
    factor, k = take_exponents(divisor)
    factor = factor.map(spread)
    z = Pair(x, np.zeros_like(x) if low is None else low)
    if beta is not None:
        z = two_diff(x, beta) if low is None else pair_add(z, Pair(-beta, np.zeros_like(beta)))
    usable = _is_moderate(z.hi)
    if gamma is not None:
        usable = usable & _is_moderate(gamma)
        z = pair_divide(z, Pair(gamma, np.zeros_like(gamma)))
    total = z = pair_multiply(z, factor)
    product = np.abs(z.hi)
    largest: Any = product
    if mean is not None:
        mean = mean.map(lambda part: spread(np.ldexp(part, -k)))
        usable = usable & _is_moderate(mean.hi)
        largest = np.maximum(largest, np.abs(mean.hi))
        total = _add(z, mean)
    size = np.maximum(np.abs(total.hi), np.ldexp(1.0, precision.least - k - exponent))
    allowed = precision.bits + ALLOWED
    decided = (
        usable & (size >= largest * 2.0 ** (allowed - _BITS)) & (size >= product * 2.0 ** (allowed - kept_bits))
    )
    return round_pair(*take_exponents(total, k + exponent), precision), decided


def _spread(values: Floats, shape: tuple[int, ...]) -> Floats:
    """Return one for each value where these come in short lines, of which NumPy takes a while for each."""
    short = len(shape) > 1 and shape[-1] < SHORTEST_WIDE_LINE
    return np.broadcast_to(values, shape).copy() if short else values


def _is_moderate(values: Floats) -> Selected:
    sizes = np.abs(values)
    return np.asarray(((sizes >= _LEAST) & (sizes <= _LARGEST)) | (sizes == 0.0))


def _add(pair: Pair, mean: Triple) -> Pair:
    """Return the sum of both, with an error of about 2⁻¹⁰⁴ of the larger."""
    first, error = two_sum(pair.hi, mean.hi)
    second, third = two_sum(error, pair.lo)
    second, fourth = two_sum(second, mean.mid)
    hi, lo = two_sum(first, second)
    return quick_two_sum(hi, lo + (third + fourth + mean.lo))


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


def _choose(shape: tuple[int, ...], places: Any, array: Any, otherwise: float = 0.0) -> list[Any]:
    """Return what an array has at flat places of a shape that it broadcasts to; None stands for one value."""
    if array is None:
        return [otherwise] * len(places)
    chosen: list[Any] = np.broadcast_to(array, shape)[np.unravel_index(places, shape)].tolist()
    return chosen


def _recall(elements: Elements, solution: Solution, places: Any, precision: Precision) -> Floats:
    """Return the values at some flat places, from their groups' exact means and divisors."""
    from fractions import Fraction

    from normcli.numerics.deciding import MOST_BITS
    from normcli.numerics.rational import round_once
    from normcli.numerics.settling import round_to_odd

    choose = partial(_choose, elements.x.shape, places)
    rounding = round_once if precision.bits == _FULL_PRECISION else round_to_odd
    x, mean, _, gamma, beta, low, _ = elements
    rows = zip(choose(solution.numbers), choose(x), choose(low), choose(beta), choose(gamma, 1.0), strict=True)
    groups = {number: solution.recall(number, MOST_BITS) for number in set(choose(solution.numbers))}
    known: dict[tuple[Any, ...], float] = {}
    found = []
    for row in rows:
        if row not in known:
            number, *parts = row
            y, rest, plus, by = map(Fraction, parts)
            centre, divisor = groups[number]
            assert divisor is not None  # what is NaN is not finite
            known[row] = rounding((y + rest - plus) / by * divisor + (0 if mean is None else centre))
        found.append(known[row])
    return np.array(found)


def _invert_exactly(elements: Elements, exponent: Integers | int, places: Any, precision: Precision) -> Floats:
    """Return the values at some flat places, in exact arithmetic: those of equal numbers once."""
    from fractions import Fraction

    from normcli.numerics.rational import round_once, scale
    from normcli.numerics.settling import round_to_odd

    choose = partial(_choose, elements.x.shape, places)
    rounding = round_once if precision.bits == _FULL_PRECISION else round_to_odd
    x, mean, divisor, gamma, beta, low, _ = elements
    numbers = zip(
        choose(x),
        choose(low),
        choose(gamma, 1.0),
        choose(beta),
        *map(choose, mean or ()),
        *map(choose, divisor or ()),
        choose(exponent),
        strict=True,
    )
    known: dict[tuple[Any, ...], float] = {}
    found = []
    for row in numbers:
        if row not in known:
            y, rest, by, plus, *parts, first, second, k = row
            value = (
                (Fraction(y) + Fraction(rest) - Fraction(plus))
                / Fraction(by)
                * (Fraction(first) + Fraction(second))
            )
            known[row] = rounding(scale(value + sum(map(Fraction, parts)), k))
        found.append(known[row])
    return np.array(found)
