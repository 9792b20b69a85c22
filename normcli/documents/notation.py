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
from normcli.tuples import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from normcli.teach.explain.story import StoryStep
    from normcli.teach.formulas.expression import Expression

MOST_SHOWN, HEAD, TAIL = 8, 3, 1
"""The most terms that are printed; of longer sums, the number of first and of last terms."""

_MOST_DIGITS = 17

_TOLERATED = 2
"""Units of the last place that a result may be off by for rounding, before its operands get more digits."""

_APPROXIMATELY = r"\approx"

_OPEN, _SUM, _PRODUCT, _POWER, _ATOM = range(5)
"""The precedence of a text, from a negative number (the weakest) to one that never needs brackets."""


class _Form(NamedTuple):
    """The spelling of an operation.

    Parameters
    ----------
    template : str
        With a place for each part.
    least : tuple of int
        How strongly each part has to hold together to stand there without brackets.
    held : int
        How strongly the whole holds together.
    """

    template: str
    least: tuple[int, ...]
    held: int


_FORMS: Mapping[type[Operation], _Form] = {
    Difference: _Form("{} − {}", (_OPEN, _PRODUCT), _SUM),
    Product: _Form("{} · {}", (_PRODUCT, _POWER), _PRODUCT),
    Quotient: _Form("{} / {}", (_PRODUCT, _POWER), _PRODUCT),
    Power: _Form("{}^{}", (_ATOM, _ATOM), _POWER),
    Root: _Form("√{}", (_ATOM,), _POWER),
    Absolute: _Form("|{}|", (_OPEN,), _ATOM),
    Sign: _Form("sign({})", (_OPEN,), _ATOM),
    Negative: _Form("−{}", (_PRODUCT,), _OPEN),
}


class _Notation:
    """The writer of expressions in plain text. Each text comes with its precedence."""

    name, gap, sigma = "text", "…", "Σ"
    extremes: Mapping[type[Fold], str] = {Maximum: "max", Minimum: "min"}
    forms = _FORMS
    square: str | None = "{}²"

    def __init__(self, digits: int | None, *, full: bool) -> None:
        self.digits, self.full = digits, full

    def format(self, expression: Expression) -> tuple[str, int]:
        """Return an expression's text, and how strongly it holds together."""
        match expression:
            case Constant():
                return self.number(expression)
            case Symbol():
                return getattr(expression, self.name), _ATOM
            case Fold():
                return self.fold(expression)
        form = self.forms[type(expression)]
        if self.square and isinstance(expression, Power) and expression.right == Constant(2):
            form = form._replace(template=self.square)
        texts = (self.wrap(part, least) for part, least in zip(expression.parts, form.least, strict=True))
        return form.template.format(*texts), form.held

    def wrap(self, expression: Expression, least: int) -> str:
        """Return an expression's text, in brackets where it holds together less than its place needs."""
        text, held = self.format(expression)
        return text if held >= least else self.bracket(text)

    def bracket(self, text: str) -> str:
        return f"({text})"

    def number(self, number: Constant) -> tuple[str, int]:
        text = format_number(number, self.digits)
        return text, _OPEN if text.startswith("-") else _PRODUCT if "e" in text else _ATOM

    def fold(self, fold: Sum | Maximum | Minimum) -> tuple[str, int]:
        if not fold.terms and fold.each is not None:
            gap = "" if self.format(fold.each)[1] >= _POWER else " "
            return f"{self.sigma}{gap}{self.wrap(fold.each, _PRODUCT)}", _PRODUCT
        shown, added = (
            cut_beyond(MOST_SHOWN, len(fold.terms), HEAD, TAIL, full=self.full),
            isinstance(fold, Sum),
        )
        if added and shown.size == 1:
            return self.format(fold.terms[0])
        texts = [self.wrap(fold.terms[i], _SUM if added and i else _OPEN) for i in shown.shown]
        texts = shown.open_gap(texts, self.gap)
        return (
            (" + ".join(texts), _SUM) if added else (f"{self.extremes[type(fold)]}({', '.join(texts)})", _ATOM)
        )


class _Latex(_Notation):
    """Only with commands that GitHub's MathJax has."""

    name, gap, sigma = "latex", r"\cdots", r"\sum"
    extremes: Mapping[type[Fold], str] = {Maximum: r"\max", Minimum: r"\min"}
    square = None
    forms: Mapping[type[Operation], _Form] = {
        Difference: _Form("{} - {}", (_OPEN, _PRODUCT), _SUM),
        Product: _Form(r"{} \cdot {}", (_PRODUCT, _POWER), _PRODUCT),
        Quotient: _Form(r"\frac{{{}}}{{{}}}", (_OPEN, _OPEN), _PRODUCT),
        Power: _Form("{}^{{{}}}", (_ATOM, _OPEN), _POWER),
        Root: _Form(r"\sqrt{{{}}}", (_OPEN,), _ATOM),
        Absolute: _Form(r"\lvert {} \rvert", (_OPEN,), _ATOM),
        Sign: _Form(r"\mathrm{{sign}}({})", (_OPEN,), _ATOM),
        Negative: _Form("-{}", (_PRODUCT,), _OPEN),
    }

    def bracket(self, text: str) -> str:
        return rf"\left({text}\right)" if r"\frac" in text else f"({text})"

    def number(self, number: Constant) -> tuple[str, int]:
        text, held = super().number(number)
        digits, e, exponent = text.partition("e")
        return rf"{digits} \times 10^{{{int(exponent)}}}" if e else text, held


class _Code(_Notation):
    """Python's, with every digit; what has too many terms goes over `values`, and `dy_values` beside these."""

    name, square = "code", None
    forms: Mapping[type[Operation], _Form] = {
        **_FORMS,
        Difference: _Form("{} - {}", (_OPEN, _PRODUCT), _SUM),
        Product: _Form("{} * {}", (_PRODUCT, _POWER), _PRODUCT),
        Power: _Form("{} ** {}", (_ATOM, _ATOM), _POWER),
        Root: _Form("sqrt({})", (_OPEN,), _ATOM),
        Absolute: _Form("abs({})", (_OPEN,), _ATOM),
        Sign: _Form("copysign(1, {0}) * ({0} != 0)", (_OPEN,), _PRODUCT),
        Negative: _Form("-{}", (_PRODUCT,), _OPEN),
    }

    def number(self, number: Constant) -> tuple[str, int]:
        text = repr(number.value)
        return text, _OPEN if text.startswith("-") else _ATOM

    def fold(self, fold: Sum | Maximum | Minimum) -> tuple[str, int]:
        if fold.total is not None and fold.each is not None:
            name = "fsum" if isinstance(fold, Sum) else self.extremes[type(fold)]
            return f"{name}({self.wrap(fold.each, _OPEN)} for {_name_variables(fold.each)})", _ATOM
        if not isinstance(fold, Sum) and len(fold.terms) == 1:
            return self.wrap(fold.terms[0], _ATOM), _ATOM
        return super().fold(fold)


def _name_variables(each: Expression) -> str:
    """Return the loop of a program: `x in values`, or over several lists at once."""
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
    """Return an expression that Python evaluates, given `values` and the names of its module math.

    Examples
    --------
    >>> format_code(Quotient(Sum((Constant(1), Constant(-2.5))), Constant(2)))
    '(1 + (-2.5)) / 2'
    """
    return _Code(None, full=True).wrap(expression, _OPEN)


def build_equation(
    step: StoryStep, digits: int | None = None, *, full: bool = False, index: Sequence[int] | None = None
) -> Equation | None:
    r"""Return the arithmetic of a step in plain text and in LaTeX; None for a step without arithmetic.

    Parameters
    ----------
    step : StoryStep
    digits : int or None
        Significant digits; numbers that nearly cancel have as many more as the result needs.
    full : bool
        Print every term.
    index : sequence of int or None
        Of the value that the step is about, where its symbol needs one.

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
    texts = [_Notation(d, full=full).wrap(e, _OPEN) for e, d in zip(elements, widths, strict=True)]
    formulas = [_Latex(d, full=full).wrap(e, _OPEN) for e, d in zip(elements, widths, strict=True)]
    numbers = ",".join(map(str, index or ()))
    text = step.symbol.text + (f"[{numbers}]" if numbers else "")
    symbol = step.symbol.latex + (f"_{{{numbers}}}" if numbers else "")
    links = list(zip(signs, texts, formulas, strict=True))
    while len(links) > 1 and links[-1][1] == links[-2][1]:  # a sum of one term
        links.pop()
    if step.formula is not None:
        text_of, latex_of = (kind(None, full=full).wrap(step.formula, _OPEN) for kind in (_Notation, _Latex))
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
    """Return how many digits the printed numbers need to give nearly the printed value."""
    fewest = digits or STATISTIC_DIGITS
    target = Decimal(format_number(value, digits))
    unit = Fraction(10) ** (target.adjusted() + 1 - fewest) if target else 0
    for enough in range(fewest, _MOST_DIGITS):
        with contextlib.suppress(ArithmeticError):  # a divisor that so few digits make 0
            if abs(_evaluate_printed(expression, enough).number - Fraction(target)) <= _TOLERATED * unit:
                return enough
    return _MOST_DIGITS
