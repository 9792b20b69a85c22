"""The exact numbers in a norm's formulas, for one group or one window."""

from __future__ import annotations

import functools
import math
from fractions import Fraction
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np

from normcli.numerics.pairs import Pair, pair_add_any, pair_divide, pair_multiply, pair_negate, pair_root
from normcli.numerics.rounding import widen_to_pair
from normcli.teach.formulas.chain_rule import substitute
from normcli.teach.formulas.expression import (
    MOST_TERMS,
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
    evaluate,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from numpy.typing import NDArray

    from normcli.teach.formulas.chain_rule import Chain
    from normcli.teach.formulas.expression import Expression

_PIECE = 1 << 14
"""The number of terms of a long sum that are calculated at once."""

_LARGEST_EXPONENT = 4
"""The largest exponent whose power is calculated as a product."""


class Numbers:
    """The number of every name in a group's formulas, as a fraction.

    All are exact, except roots, powers, and sums over more than `MOST_TERMS` values (to about 100 bits).

    Parameters
    ----------
    chain : Chain
    arrays : mapping of str to ndarray
        Vectors over the group's values: `x`, and if given `dy`, `gamma` and `beta`; with a gate z, x before the
        gate, and act(z) and act′(z) as arrays of `Fraction`.
    known : mapping of str to Fraction
        The numbers that have no formula: eps, options, running statistics.

    Attributes
    ----------
    shared : dict of str to Constant
        The numbers that all values share, such as the mean.
    """

    def __init__(self, chain: Chain, arrays: Mapping[str, NDArray[Any]], known: Mapping[str, Fraction]) -> None:
        self.chain, self.arrays, self.count = chain, arrays, arrays["x"].size
        self.shared = {name: Constant(number) for name, number in {**known, "n": Fraction(self.count)}.items()}
        for each in chain.shared:
            name = each.name or ""
            if each.formula is not None:
                self.shared[name] = Constant(self.work_out(each.formula))
            if name in chain.aliases:
                self.shared[chain.aliases[name]] = self.shared[name]
        if chain.fixed:
            self.shared["divisor"] = Constant(1)

    def work_out(self, expression: Expression, own: Mapping[str, Constant] = MappingProxyType({})) -> Fraction:
        """Return the exact value of an expression of names; `own` has the numbers of one value by name.

        Raises
        ------
        ArithmeticError
            If a name has no number, a divisor is 0, or a term of a long sum is beyond float64.
        """
        names = {**self.shared, **own}
        return evaluate(substitute(self.chain.unfold(expression), names, self.sum_up)).number

    @functools.cached_property
    def _ties(self) -> Fraction:
        """The number of values whose |x| is the ℓ∞ length."""
        return Fraction(sum(abs(Fraction(x)) == self.shared["norm"].value for x in self.arrays["x"].tolist()))

    def take(self, place: int) -> dict[str, Constant]:
        """Return the numbers of one value of the group by name, such as `x`, `dy` and `gamma`.

        `place` is the value's flat index in the group.
        """
        own = {name: Constant(array.item(place)) for name, array in self.arrays.items()}
        if math.isinf(self.chain.plan.spec.p or 0.0):
            is_peak = abs(Fraction(own["x"].value)) == self.shared["norm"].value
            own["share"] = Constant(1 / self._ties if is_peak else Fraction(0))
        return own

    def sum_up(self, each: Expression) -> Expression:
        """Return the sum of a term over the group's values, as an expression with exact numbers for names.

        Over more than `MOST_TERMS` values, it is one number, rounded to about 100 bits.
        """
        if self.count > MOST_TERMS:
            return Constant(self._add_pairs(each))
        names = ({**self.shared, **self.take(place)} for place in range(self.count))
        return Sum(tuple(substitute(each, numbers, self.sum_up) for numbers in names))

    def _add_pairs(self, each: Expression) -> Fraction:
        """Return a sum over the group, its terms in pairs of doubles, to about 100 bits of the largest one."""
        shared = {name: _split(Fraction(number.value)) for name, number in self.shared.items()}
        total = Fraction(0)
        for start in range(0, self.count, _PIECE):
            own = {name: _widen(array[start : start + _PIECE]) for name, array in self.arrays.items()}
            with np.errstate(all="ignore"):
                found = _work_out_pairs(each, {**shared, **own})
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
