"""Expressions in three notations: as plain text, as LaTeX and as code; and whether printed numbers are exact.

The sign `=` stands only between numbers that are equal as printed; if one is rounded, the sign is `≈`.
"""

from __future__ import annotations

import contextlib
import itertools
from decimal import Decimal
from fractions import Fraction
from typing import TYPE_CHECKING

from normcli.documents.document import Equation
from normcli.documents.excerpt import cut_beyond
from normcli.documents.number_format import STATISTIC_DIGITS, format_statistic
from normcli.teach.formulas.expression import (
    Absolute,
    Constant,
    Difference,
    Fold,
    Maximum,
    Minimum,
    Negative,
    Operation,
    Power,
    Product,
    Quotient,
    Root,
    Sign,
    Sum,
    Symbol,
    Value,
    evaluate,
    read_decimals,
)
from normcli.teach.formulas.printer import ATOM, OPEN, POWER, PRODUCT, PYTHON, SUM, Form, Printer

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from normcli.teach.explain.story import StoryStep
    from normcli.teach.formulas.expression import Expression

MOST_SHOWN, HEAD, TAIL = 8, 3, 1
"""The most terms that are printed; of longer sums, the number of first and of last terms."""

_MOST_DIGITS = 17

_TOLERATED = 2
"""Units of the last place by which rounding may change a result before its operands get more digits."""

_APPROXIMATELY = r"\approx"


class _Text(Printer):
    """A writer of plain text: numbers with `digits` digits, long sums shortened in the middle unless `full`."""

    gap = "…"

    def __init__(self, digits: int | None, *, full: bool) -> None:
        self.digits, self.full = digits, full

    def format_number(self, number: Constant) -> tuple[str, int]:
        text = format_number(number, self.digits)
        return text, OPEN if text.startswith("-") else PRODUCT if "e" in text else ATOM

    def format_terms(self, terms: Sequence[Expression], least: int) -> list[str]:
        shown = cut_beyond(MOST_SHOWN, len(terms), HEAD, TAIL, full=self.full)
        texts = [self.wrap(terms[i], least if i else OPEN) for i in shown.shown]
        return shown.open_gap(texts, self.gap)


class _Latex(_Text):
    """A writer of LaTeX, with commands that GitHub's MathJax has."""

    gap, sigma, square = r"\cdots", r"\sum", None
    extremes: Mapping[type[Fold], str] = {Maximum: r"\max", Minimum: r"\min"}
    forms: Mapping[type[Operation], Form] = {
        Difference: Form("{} - {}", (OPEN, PRODUCT), SUM),
        Product: Form(r"{} \cdot {}", (PRODUCT, POWER), PRODUCT),
        Quotient: Form(r"\frac{{{}}}{{{}}}", (OPEN, OPEN), PRODUCT),
        Power: Form("{}^{{{}}}", (ATOM, OPEN), POWER),
        Root: Form(r"\sqrt{{{}}}", (OPEN,), ATOM),
        Absolute: Form(r"\lvert {} \rvert", (OPEN,), ATOM),
        Sign: Form(r"\mathrm{{sign}}({})", (OPEN,), ATOM),
        Negative: Form("-{}", (PRODUCT,), OPEN),
    }

    def format_symbol(self, symbol: Symbol) -> tuple[str, int]:
        return symbol.latex, ATOM

    def bracket(self, text: str) -> str:
        return rf"\left({text}\right)" if r"\frac" in text else f"({text})"

    def format_number(self, number: Constant) -> tuple[str, int]:
        text, held = super().format_number(number)
        digits, e, exponent = text.partition("e")
        return rf"{digits} \times 10^{{{int(exponent)}}}" if e else text, held


class _Code(Printer):
    """A writer of Python code with every digit; a long sum is a loop over `values` (and `dy_values`)."""

    square = None
    forms: Mapping[type[Operation], Form] = {
        **PYTHON,
        Sign: Form("copysign(1, {0}) * ({0} != 0)", (OPEN,), PRODUCT),
    }

    def format_symbol(self, symbol: Symbol) -> tuple[str, int]:
        return symbol.code, ATOM

    def format_fold(self, fold: Fold) -> tuple[str, int]:
        if fold.total is not None and fold.each is not None:
            name = "fsum" if isinstance(fold, Sum) else self.extremes[type(fold)]
            return f"{name}({self.write(fold.each)} for {_name_variables(fold.each)})", ATOM
        if not isinstance(fold, Sum) and len(fold.terms) == 1:
            return self.wrap(fold.terms[0], ATOM), ATOM
        return super().format_fold(fold)


def _name_variables(each: Expression) -> str:
    """Return the head of a long sum's loop: `x in values`, or `x, dy in zip(values, dy_values)`."""
    names = list(dict.fromkeys(_list_codes(each)))
    if names == ["x"]:
        return "x in values"
    arrays = ", ".join("values" if name == "x" else f"{name}_values" for name in names)
    return f"{', '.join(names)} in zip({arrays})"


def _list_codes(expression: Expression) -> Iterator[str]:
    match expression:
        case Symbol(code=code) if code and code.isidentifier():
            yield code
        case Operation():
            for part in expression.parts:
                yield from _list_codes(part)


def format_number(number: Constant, digits: int | None) -> str:
    """Return a number as text: integers in full, others with `digits` significant digits."""
    if isinstance(number.value, int):
        return str(number.value)
    if digits == _MOST_DIGITS:  # as many as the shortest text needs that reads back to the same double
        return repr(number.value).removesuffix(".0").removeprefix("-" if number.value == 0 else "")
    return format_statistic(float(number.value), digits)


def format_code(expression: Expression) -> str:
    """Return an expression as Python code, for `values` and the functions of the module math.

    Examples
    --------
    >>> format_code(Quotient(Sum((Constant(1), Constant(-2.5))), Constant(2)))
    '(1 + (-2.5)) / 2'
    """
    return _Code().write(expression)


def build_equation(
    step: StoryStep, digits: int | None = None, *, full: bool = False, index: Sequence[int] | None = None
) -> Equation | None:
    r"""Return the arithmetic of a step in plain text and in LaTeX; None for a step without arithmetic.

    Parameters
    ----------
    step : StoryStep
    digits : int or None
        Significant digits, None: 8; where numbers nearly cancel, more are printed, as many as the result needs.
    full : bool
        Whether every term of a long sum is printed.
    index : sequence of int or None
        The index of the value that the step is about, to be written at its symbol; None for no index.

    Examples
    --------
    >>> from normcli.teach.explain.story import StoryStep
    >>> mean = Quotient(Sum(tuple(map(Constant, (1, 2, 3, 4)))), Constant(4))
    >>> step = StoryStep("mean", "The mean.", Symbol("μ", r"\mu"), (mean,), Constant(2.5))
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
    texts = [_Text(d, full=full).write(e) for e, d in zip(elements, widths, strict=True)]
    formulas = [_Latex(d, full=full).write(e) for e, d in zip(elements, widths, strict=True)]
    numbers = ",".join(map(str, index or ()))
    text = step.symbol.text + (f"[{numbers}]" if numbers else "")
    symbol = step.symbol.latex + (f"_{{{numbers}}}" if numbers else "")
    links = list(zip(signs, texts, formulas, strict=True))
    while len(links) > 1 and links[-1][1] == links[-2][1]:  # a sum of one term
        links.pop()
    if step.formula is not None:
        text_of, latex_of = (kind(None, full=full).write(step.formula) for kind in (_Text, _Latex))
        if text_of != step.symbol.text:
            links.insert(0, (True, text_of, latex_of))
    return Equation(
        " ".join([text, *(f"{'=' if equal else '≈'} {written}" for equal, written, _ in links)]),
        (symbol, *(f"{'=' if equal else _APPROXIMATELY} {formula}" for equal, _, formula in links)),
    )


def _read_printed(number: Constant, digits: int | None) -> Fraction:
    return Fraction(format_number(number, digits))


def _evaluate_printed(expression: Expression, digits: int | None) -> Value:
    return evaluate(expression, lambda number: Value(_read_printed(number, digits), exact=True))


def _is_printed_exactly(expression: Expression, digits: int | None) -> bool:
    """Whether every number of an expression is exact, and printed in full with `digits` digits."""
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
    """Return the significant digits with which the numbers of an expression have to be printed, at most 17.

    The expression, evaluated with its numbers as printed, is then within two units in the last place of `value`
    as printed. `value` is printed with `digits` digits (None: 8), which is also the least number returned.
    """
    fewest = digits or STATISTIC_DIGITS
    target = Decimal(format_number(value, digits))
    unit = Fraction(10) ** (target.adjusted() + 1 - fewest) if target else 0
    for enough in range(fewest, _MOST_DIGITS):
        with contextlib.suppress(ArithmeticError):  # a divisor that so few digits make 0
            if abs(_evaluate_printed(expression, enough).number - Fraction(target)) <= _TOLERATED * unit:
                return enough
    return _MOST_DIGITS
