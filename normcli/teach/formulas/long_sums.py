"""Sums of a term over the values of a long group, in pairs of doubles."""

from __future__ import annotations

import functools
import math
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np

from normcli.numerics.pairs import Pair, pair_add_any, pair_divide, pair_multiply, pair_negate, pair_root
from normcli.numerics.rounding import widen_to_pair
from normcli.teach.formulas.expression import (
    Absolute,
    Constant,
    Difference,
    Negative,
    Power,
    Product,
    Quotient,
    Root,
    Sign,
    Sum,
    Symbol,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from numpy.typing import NDArray

    from normcli.teach.formulas.expression import Expression

_PIECE = 1 << 14
"""The number of terms of a long sum that are calculated at once."""

_LARGEST_EXPONENT = 4
"""The largest exponent whose power is calculated as a product."""


def add_pairs(each: Expression, shared: Mapping[str, Constant], arrays: Mapping[str, NDArray[Any]]) -> Fraction:
    """Return the sum of a term over a group, in pairs of doubles: to about 100 bits of the largest term.

    Parameters
    ----------
    each : Expression
        The term.
    shared : mapping of str to Constant
        The numbers that all values share, by name.
    arrays : mapping of str to ndarray
        The numbers of each value, by name, `x` among them; an array of objects holds fractions.

    Raises
    ------
    ArithmeticError
        If a term is beyond float64.
    """
    known = {name: _split(Fraction(number.value)) for name, number in shared.items()}
    total, count = Fraction(0), arrays["x"].size
    for start in range(0, count, _PIECE):
        own = {name: _widen(array[start : start + _PIECE]) for name, array in arrays.items()}
        with np.errstate(all="ignore"):
            found = _work_out_pairs(each, {**known, **own})
        terms = [part for half in found for part in np.broadcast_to(half, own["x"].hi.shape).tolist()]
        rounded = math.fsum(terms)
        if not math.isfinite(rounded):
            raise ArithmeticError("a term is beyond float64")
        total += Fraction(rounded) + Fraction(math.fsum([*terms, -rounded]))
    return total


def _widen(values: NDArray[Any]) -> Pair:
    """Return numbers as pairs; an array of objects holds fractions."""
    if values.dtype != object:
        return widen_to_pair(values)
    hi = values.astype(np.float64)
    return Pair(hi, (values - np.array([*map(Fraction, hi.tolist())], object)).astype(np.float64))


def _split(number: Fraction) -> Pair:
    hi = float(number)
    return Pair(np.float64(hi), np.float64(float(number - Fraction(hi))))


_PAIRS: Mapping[type, Callable[..., Pair]] = {
    Sum: lambda *terms: functools.reduce(pair_add_any, terms),
    Difference: lambda a, b: pair_add_any(a, pair_negate(b)),
    Product: pair_multiply,
    Quotient: pair_divide,
    Negative: pair_negate,
    Root: pair_root,
    Absolute: lambda a: Pair(np.abs(a.hi), np.where(a.hi < 0.0, -a.lo, a.lo)),
    Sign: lambda a: Pair(np.sign(a.hi), np.zeros_like(a.hi)),
}


def _work_out_pairs(expression: Expression, names: Mapping[str, Pair]) -> Pair:
    """Return the value of a term for many values at once, given arrays by name, as pairs of doubles."""
    match expression:
        case Constant(value):
            return _split(Fraction(value))
        case Symbol(text, value=value):
            if text not in names and value is not None:
                return _work_out_pairs(value, names)
            return names[text]
        case Power(base, exponent):
            return _raise(_work_out_pairs(base, names), _work_out_pairs(exponent, names).hi)
    return _PAIRS[type(expression)](*(_work_out_pairs(part, names) for part in expression.parts))


def _raise(base: Pair, exponent: float) -> Pair:
    """Return base ** exponent; 0 for a base of 0. Other exponents than 1 to 4 give a double, not a pair."""
    if exponent in range(1, _LARGEST_EXPONENT + 1):
        return functools.reduce(pair_multiply, [base] * int(exponent))
    power = np.where(base.hi == 0.0, 0.0, np.power(base.hi, exponent))
    return Pair(power, np.zeros_like(power))
