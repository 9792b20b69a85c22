"""Arithmetic as a tree of numbers and operations: written in any notation, evaluated in exact arithmetic."""

from __future__ import annotations

import math
import operator
from dataclasses import dataclass
from decimal import MAX_EMAX, MIN_EMIN, Decimal, localcontext
from fractions import Fraction
from typing import TYPE_CHECKING

from normcli.tuples import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

MOST_TERMS = 1024
"""The most terms of a sum that is added up term by term; longer sums hold their total."""

_PRECISION = 60
"""Decimal digits of roots and powers: far more than any float has."""

_LARGEST_EXPONENT = 64
"""The largest integer exponent whose power is calculated exactly."""


@dataclass(frozen=True, slots=True)
class Constant:
    """A number; `exact` is False if it was rounded. Numbers to be printed are floats or integers."""

    value: float | Fraction
    exact: bool = True


@dataclass(frozen=True, slots=True)
class Symbol:
    """A name in a formula, in plain text and in LaTeX.

    Parameters
    ----------
    text, latex : str
    code : str
        The name in a program.
    value : Expression or None
        The expression whose number is shown for this name; None if the number is looked up by `text`.
    """

    text: str
    latex: str = ""
    code: str = ""
    value: Expression | None = None


class Operation:
    """An operation on expressions."""

    __slots__ = ()
    __match_args__: tuple[str, ...] = ()

    @property
    def parts(self) -> Sequence[Expression]:
        """The operands."""
        return [getattr(self, name) for name in self.__match_args__]


@dataclass(frozen=True, slots=True)
class Fold(Operation):
    """An operation on any number of terms, such as a sum.

    Parameters
    ----------
    terms : sequence of Expression
        The terms; a lazy sequence may make each term when it is read. Empty if only `each` describes them.
    total : Constant, Symbol or None
        The result, which is needed if there are more than `MOST_TERMS` terms; None if it is not known without
        adding up the terms.
    each : Expression or None
        The formula of a term, with x for a value of the group; None if the terms follow no formula.
    """

    terms: Sequence[Expression]
    total: Constant | Symbol | None = None
    each: Expression | None = None

    @property
    def parts(self) -> Sequence[Expression]:
        """The terms."""
        return self.terms


class Sum(Fold):
    """Terms added up."""


class Maximum(Fold):
    """The largest of some terms."""


class Minimum(Fold):
    """The smallest of some terms."""


@dataclass(frozen=True, slots=True)
class BinaryOperation(Operation):
    """An operation on two expressions."""

    left: Expression
    right: Expression


class Difference(BinaryOperation):
    """One number minus another."""


class Product(BinaryOperation):
    """One number times another."""


class Quotient(BinaryOperation):
    """One number over another."""


class Power(BinaryOperation):
    """A number to a power."""


@dataclass(frozen=True, slots=True)
class Single(Operation):
    """An operation on one expression."""

    content: Expression


class Root(Single):
    """A square root."""


class Absolute(Single):
    """A number without its sign."""


class Sign(Single):
    """The sign of a number: 1, 0 or -1."""


class Negative(Single):
    """A number with the other sign."""


class LargestSingularValue(Single):
    """The largest singular value of the matrix of a group's values."""


Expression = Constant | Symbol | Operation


def rebuild(expression: Expression, change: Callable[[Expression], Expression]) -> Expression:
    """Return an operation with each of its parts changed by a function; a constant or symbol as it is."""
    match expression:
        case Fold(terms, total, each):
            return type(expression)(tuple(map(change, terms)), total, None if each is None else change(each))
        case Single() | BinaryOperation():
            return type(expression)(*map(change, expression.parts))
    return expression


def replace(expression: Expression, known: Mapping[Expression, Expression]) -> Expression:
    """Return an expression with every part that is a key of `known` replaced by its value."""
    if expression in known:
        return known[expression]
    return rebuild(expression, lambda part: replace(part, known))


def substitute(
    expression: Expression,
    names: Mapping[str, Constant | Symbol],
    make_sum: Callable[[Expression], Expression],
    settle: Callable[[Expression], Expression] | None = None,
) -> Expression:
    """Return an expression with numbers for its names.

    Parameters
    ----------
    expression : Expression
    names : mapping of str to Constant or Symbol
        The number for each name, or the symbol that it keeps.
    make_sum : callable
        Returns the sum of a term over the group.
    settle : callable or None
        Returns the number of an expression that is shown as one name, such as (x − mean); None to substitute
        in that expression too.

    Raises
    ------
    ArithmeticError
        If a name has no number.
    """

    def go(part: Expression) -> Expression:
        return substitute(part, names, make_sum, settle)

    match expression:
        case Symbol(text, value=value):
            if text in names:
                return names[text]
            if value is None:
                raise ArithmeticError(f"{text} has no number")
            return go(value) if settle is None else settle(value)
        case Fold(terms=(), each=each) if each is not None:
            return make_sum(each)
        case Product(left, right):
            factors = go(left), go(right)
            # Where |x|ᵖ has a corner, at 0, its derivative counts as 0, whatever it is multiplied by.
            return Constant(0) if any(factor == Sign(Constant(0)) for factor in factors) else Product(*factors)
    return rebuild(expression, go)


def rename(expression: Expression, symbols: Mapping[str, Symbol]) -> Expression:
    """Return an expression with names replaced by symbols for a reader; other names by their expressions."""
    return substitute(expression, symbols, lambda each: Sum((), None, rename(each, symbols)))


class Value(NamedTuple):
    """The value of an expression; `exact` is False where anything in it was rounded."""

    number: Fraction
    exact: bool


def read_exactly(number: Constant) -> Value:
    """Return the exact value of a number: a float 0.1 as the fraction that it is."""
    return Value(Fraction(number.value), number.exact)


def read_decimals(number: Constant) -> Value:
    """Return the value of a number's shortest decimals: a float 0.1 as the fraction 1/10."""
    return Value(Fraction(repr(number.value)), number.exact)


def evaluate(expression: Expression, read: Callable[[Constant], Value] = read_exactly) -> Value:
    """Return the value of an expression: exact, except for irrational roots and powers, and rounded constants.

    Parameters
    ----------
    expression : Expression
        An expression without symbols.
    read : callable
        Returns the value of a constant: `read_exactly`, or `read_decimals` for the digits that are printed.

    Raises
    ------
    ZeroDivisionError, ArithmeticError
        If the expression divides by 0, holds a symbol, or is too large.

    Examples
    --------
    >>> evaluate(Quotient(Sum((Constant(1), Constant(2))), Constant(4)))
    Value(number=Fraction(3, 4), exact=True)
    >>> evaluate(Root(Constant(2.25)))
    Value(number=Fraction(3, 2), exact=True)
    """
    if isinstance(expression, Constant):
        return read(expression)
    if isinstance(expression, Symbol):
        raise ArithmeticError(f"{expression.text} is a name and no number")
    if isinstance(expression, Fold) and isinstance(expression.total, Constant):
        value = read(expression.total)
        return Value(value.number, value.exact and expression.total.exact)
    values = [evaluate(part, read) for part in expression.parts]
    number, exact = _apply(expression, [value.number for value in values])
    return Value(number, exact and all(value.exact for value in values))


def _apply(operation: Operation, numbers: Sequence[Fraction]) -> tuple[Fraction, bool]:
    """Return the result of an operation, and whether it is exact."""
    if isinstance(operation, Root):
        return _take_root(*numbers)
    if isinstance(operation, Power):
        return _raise(*numbers)
    return _EXACT[type(operation)](*numbers), True


_EXACT: Mapping[type[Operation], Callable[..., Fraction]] = {
    Sum: lambda *terms: sum(terms, Fraction(0)),
    Maximum: lambda *terms: max(terms),
    Minimum: lambda *terms: min(terms),
    Difference: operator.sub,
    Product: operator.mul,
    Quotient: operator.truediv,
    Absolute: abs,
    Sign: lambda number: Fraction((number > 0) - (number < 0)),
    Negative: operator.neg,
}


_MOST_PLACES = 10_000
"""The most digits of a power, before or behind the point; longer ones are refused."""


def _take_root(number: Fraction) -> tuple[Fraction, bool]:
    root = Fraction(math.isqrt(abs(number.numerator)), math.isqrt(number.denominator))
    if root * root == number:
        return root, True
    with localcontext(prec=_PRECISION, Emax=MAX_EMAX, Emin=MIN_EMIN):
        return Fraction(_to_decimal(number).sqrt()), False


def _raise(base: Fraction, exponent: Fraction) -> tuple[Fraction, bool]:
    if base in (0, 1) and exponent > 0:
        return base, True
    if exponent.denominator == 1 and abs(exponent) <= _LARGEST_EXPONENT:
        return base ** int(exponent), True
    with localcontext(prec=_PRECISION, Emax=MAX_EMAX, Emin=MIN_EMIN):
        power = _to_decimal(base) ** _to_decimal(exponent)
    if abs(power.adjusted()) > _MOST_PLACES:
        raise OverflowError(f"{float(base)} to the power of {float(exponent)} is too long for a fraction")
    return Fraction(power), False


def _to_decimal(number: Fraction) -> Decimal:
    return Decimal(number.numerator) / Decimal(number.denominator)
