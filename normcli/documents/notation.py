"""Expressions in three notations: as plain text, as LaTeX and as code; and whether what is printed is so.

A sign `=` stands only between numbers that are equal as they are printed; where one is rounded, it is `≈`.
"""

from __future__ import annotations

import itertools
import math
from fractions import Fraction
from typing import TYPE_CHECKING

from normcli.documents.document import Equation
from normcli.documents.numbers import STATISTIC_DIGITS, format_statistic
from normcli.teach.expression import (
    Absolute,
    Constant,
    Difference,
    Fold,
    Maximum,
    Operation,
    Power,
    Product,
    Quotient,
    Root,
    Sum,
    Symbol,
    Value,
    evaluate,
    read_decimals,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from normcli.teach.expression import Expression
    from normcli.teach.story import Step

MOST_SHOWN, HEAD, TAIL = 8, 3, 1
"""Up to so many terms are printed; of more, the first and the last."""

_MOST_DIGITS = 17

_TOLERATED = 2
"""Units of the last place that a result may be off by for rounding, before its operands get more digits."""

_APPROXIMATELY = r"\approx"

_OPEN, _SUM, _PRODUCT, _POWER, _ATOM = range(5)
"""How strongly a text holds together: from a negative number, not at all, to what never needs brackets."""


class _Notation:
    """How operations are written in plain text. Texts come with how strongly they hold together."""

    minus, times, gap = " − ", " · ", "…"

    def __init__(self, digits: int | None, *, full: bool) -> None:
        self.digits, self.full = digits, full

    def format(self, expression: Expression) -> tuple[str, int]:
        """Return an expression's text, and how strongly it holds together."""
        match expression:
            case Constant():
                return self.number(expression)
            case Symbol():
                return self.name(expression), _ATOM
            case Sum():
                return self.sum(expression)
            case Maximum():
                return self.maximum(expression), _ATOM
            case Difference(left, right):
                return f"{self.wrap(left, _OPEN)}{self.minus}{self.wrap(right, _PRODUCT)}", _SUM
            case Product(left, right):
                return f"{self.wrap(left, _PRODUCT)}{self.times}{self.wrap(right, _POWER)}", _PRODUCT
            case Quotient(top, bottom):
                return self.quotient(top, bottom)
            case Power(base, exponent):
                return self.power(base, exponent), _POWER
            case Root(radicand):
                return self.root(radicand)
            case Absolute(content):
                return self.absolute(self.wrap(content, _OPEN)), _ATOM

    def wrap(self, expression: Expression, least: int) -> str:
        """Return an expression's text, in brackets where it holds together less than its place needs."""
        text, held = self.format(expression)
        return text if held >= least else self.bracket(text)

    def bracket(self, text: str) -> str:
        return f"({text})"

    def number(self, number: Constant) -> tuple[str, int]:
        text = format_number(number, self.digits)
        return text, _OPEN if text.startswith("-") else _PRODUCT if "e" in text else _ATOM

    def name(self, name: Symbol) -> str:
        return name.text

    def sum(self, sum_: Sum) -> tuple[str, int]:
        terms = self.pick(sum_.terms)
        if len(terms) == 1 and terms[0] is not None:
            return self.format(terms[0])
        texts = [
            self.gap if term is None else self.wrap(term, _SUM if place else _OPEN)
            for place, term in enumerate(terms)
        ]
        return " + ".join(texts), _SUM

    def maximum(self, maximum: Maximum) -> str:
        terms = self.pick(maximum.terms)
        return f"max({', '.join(self.gap if term is None else self.wrap(term, _OPEN) for term in terms)})"

    def pick(self, terms: Sequence[Expression]) -> list[Expression | None]:
        if self.full or len(terms) <= MOST_SHOWN:
            return list(terms)
        return [*(terms[i] for i in range(HEAD)), None, *(terms[len(terms) - i] for i in range(TAIL, 0, -1))]

    def quotient(self, top: Expression, bottom: Expression) -> tuple[str, int]:
        return f"{self.wrap(top, _PRODUCT)} / {self.wrap(bottom, _POWER)}", _PRODUCT

    def power(self, base: Expression, exponent: Expression) -> str:
        if exponent == Constant(2):
            return f"{self.wrap(base, _ATOM)}²"
        return f"{self.wrap(base, _ATOM)}^{self.wrap(exponent, _ATOM)}"

    def root(self, radicand: Expression) -> tuple[str, int]:
        return f"√{self.wrap(radicand, _ATOM)}", _POWER

    def absolute(self, text: str) -> str:
        return f"|{text}|"


class _Latex(_Notation):
    """Only with commands that GitHub's MathJax has."""

    minus, times, gap = " - ", r" \cdot ", r"\cdots"

    def bracket(self, text: str) -> str:
        return rf"\left({text}\right)" if r"\frac" in text else f"({text})"

    def number(self, number: Constant) -> tuple[str, int]:
        text, held = super().number(number)
        digits, e, exponent = text.partition("e")
        return rf"{digits} \times 10^{{{int(exponent)}}}" if e else text, held

    def name(self, name: Symbol) -> str:
        return name.latex

    def maximum(self, maximum: Maximum) -> str:
        return rf"\{super().maximum(maximum)}"

    def quotient(self, top: Expression, bottom: Expression) -> tuple[str, int]:
        return rf"\frac{{{self.wrap(top, _OPEN)}}}{{{self.wrap(bottom, _OPEN)}}}", _PRODUCT

    def power(self, base: Expression, exponent: Expression) -> str:
        return f"{self.wrap(base, _ATOM)}^{{{self.wrap(exponent, _OPEN)}}}"

    def root(self, radicand: Expression) -> tuple[str, int]:
        return rf"\sqrt{{{self.wrap(radicand, _OPEN)}}}", _ATOM

    def absolute(self, text: str) -> str:
        return rf"\lvert {text} \rvert"


class _Code(_Notation):
    """Python's, with every digit; what has too many terms goes over `values`."""

    minus, times = " - ", " * "

    def __init__(self) -> None:
        super().__init__(None, full=True)

    def number(self, number: Constant) -> tuple[str, int]:
        text = repr(number.value)
        return text, _OPEN if text.startswith("-") else _ATOM

    def name(self, name: Symbol) -> str:
        return name.code

    def sum(self, sum_: Sum) -> tuple[str, int]:
        if sum_.total is not None and sum_.each is not None:
            return f"fsum({self.wrap(sum_.each, _OPEN)} for x in values)", _ATOM
        return super().sum(sum_)

    def maximum(self, maximum: Maximum) -> str:
        if maximum.total is not None and maximum.each is not None:
            return f"max({self.wrap(maximum.each, _OPEN)} for x in values)"
        return super().maximum(maximum) if len(maximum.terms) > 1 else self.wrap(maximum.terms[0], _ATOM)

    def power(self, base: Expression, exponent: Expression) -> str:
        return f"{self.wrap(base, _ATOM)} ** {self.wrap(exponent, _ATOM)}"

    def root(self, radicand: Expression) -> tuple[str, int]:
        return f"sqrt({self.wrap(radicand, _OPEN)})", _ATOM

    def absolute(self, text: str) -> str:
        return f"abs({text})"


def format_number(number: Constant, digits: int | None) -> str:
    """Return a number as it is printed: a whole one in full, others with so many significant digits."""
    if isinstance(number.value, int):
        return str(number.value)
    if digits == _MOST_DIGITS:  # which tell every double from its neighbours, as the shortest spelling does
        return repr(number.value).removesuffix(".0").removeprefix("-" if number.value == 0 else "")
    return format_statistic(number.value, digits)


def format_code(expression: Expression) -> str:
    """Return an expression that Python evaluates, given `values` and the names of its module math.

    Examples
    --------
    >>> format_code(Quotient(Sum((Constant(1), Constant(-2.5))), Constant(2)))
    '(1 + (-2.5)) / 2'
    """
    return _Code().wrap(expression, _OPEN)


def build_equation(
    step: Step, digits: int | None = None, *, full: bool = False, index: Sequence[int] | None = None
) -> Equation | None:
    r"""Return the arithmetic of a step in plain text and in LaTeX; None where a sentence says it all.

    Parameters
    ----------
    step : Step
    digits : int or None
        Significant digits. Where numbers nearly cancel, those of them are printed that the result needs.
    full : bool
        Print every term.
    index : sequence of int or None
        Of the value that the step is about, where its symbol needs one.

    Examples
    --------
    >>> from normcli.teach.story import Step
    >>> mean = Quotient(Sum(tuple(map(Constant, (1, 2, 3, 4)))), Constant(4))
    >>> step = Step("mean", "The mean.", Symbol("μ", r"\mu"), (mean,), Constant(2.5))
    >>> build_equation(step).text
    'μ = (1 + 2 + 3 + 4) / 4 = 2.5'
    """
    if step.symbol is None or step.value is None:
        return None
    elements = (*step.chain, step.value)
    widths = [*(_choose_digits(element, step.value, digits) for element in step.chain), digits]
    signs = [_is_printed_exactly(elements[0], widths[0])]
    printed = [_evaluate_printed(element, width) for element, width in zip(elements, widths, strict=True)]
    signs += [a.exact and b.exact and a.number == b.number for a, b in itertools.pairwise(printed)]
    texts = [_Notation(d, full=full).wrap(e, _OPEN) for e, d in zip(elements, widths, strict=True)]
    formulas = [_Latex(d, full=full).wrap(e, _OPEN) for e, d in zip(elements, widths, strict=True)]
    numbers = ",".join(map(str, index or ()))
    text = step.symbol.text + (f"[{numbers}]" if numbers else "")
    symbol = step.symbol.latex + (f"_{{{numbers}}}" if numbers else "")
    links = list(zip(signs, texts, formulas, strict=True))
    while len(links) > 1 and links[-1][1] == links[-2][1]:  # a sum of one term
        links.pop()
    return Equation(
        " ".join([text, *(f"{'=' if equal else '≈'} {written}" for equal, written, _ in links)]),
        (symbol, *(f"{'=' if equal else _APPROXIMATELY} {formula}" for equal, _, formula in links)),
    )


def _read_printed(number: Constant, digits: int | None) -> Fraction:
    return Fraction(format_number(number, digits))


def _evaluate_printed(expression: Expression, digits: int | None) -> Value:
    return evaluate(expression, lambda number: Value(_read_printed(number, digits), exact=True))


def _is_printed_exactly(expression: Expression, digits: int | None) -> bool:
    """Whether every number of an expression is exact, and printed in full."""
    match expression:
        case Constant():
            value = read_decimals(expression)
            return value.exact and _read_printed(expression, digits) == value.number
        case Fold(total=Constant() as total):
            return _is_printed_exactly(total, digits)
        case Operation():
            return all(_is_printed_exactly(part, digits) for part in expression.parts)
        case Symbol():
            return True


def _choose_digits(expression: Expression, value: Constant, digits: int | None) -> int:
    """Return how many digits it takes for what is printed to come near the printed value."""
    fewest = digits or STATISTIC_DIGITS
    target = _read_printed(value, digits)
    unit = 0 if target == 0 else Fraction(10) ** (_find_exponent(target) + 1 - fewest)
    for enough in range(fewest, _MOST_DIGITS):
        try:
            if abs(_evaluate_printed(expression, enough).number - target) <= _TOLERATED * unit:
                return enough
        except ArithmeticError:  # a divisor that so few digits make 0
            continue
    return _MOST_DIGITS


def _find_exponent(number: Fraction) -> int:
    """Return the power of 10 of a number's first digit."""
    size = abs(number)
    guess = math.floor((size.numerator.bit_length() - size.denominator.bit_length()) * math.log10(2.0))
    while Fraction(10) ** guess > size:
        guess -= 1
    while Fraction(10) ** (guess + 1) <= size:
        guess += 1
    return guess
