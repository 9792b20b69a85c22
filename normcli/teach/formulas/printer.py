"""The one walk that turns a tree into text; a notation is a `Printer` with other forms for the operations."""

from __future__ import annotations

from typing import TYPE_CHECKING

from normcli.teach.formulas.expression import (
    Absolute,
    Constant,
    Difference,
    Fold,
    Maximum,
    Minimum,
    Negative,
    Power,
    Product,
    Quotient,
    Root,
    Sign,
    Sum,
    Symbol,
)
from normcli.tuples import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from normcli.teach.formulas.expression import Expression, Operation

OPEN, SUM, PRODUCT, POWER, ATOM = range(5)
"""The precedence of a text, from a negative number (the weakest) to one that never needs brackets."""


class Form(NamedTuple):
    """The spelling of an operation.

    Parameters
    ----------
    template : str
        The text, with braces for each operand.
    least : tuple of int
        For each operand, the least precedence with which it needs no brackets.
    held : int
        The precedence of the whole text.
    """

    template: str
    least: tuple[int, ...]
    held: int


PYTHON: Mapping[type[Operation], Form] = {
    Difference: Form("{} - {}", (OPEN, PRODUCT), SUM),
    Product: Form("{} * {}", (PRODUCT, POWER), PRODUCT),
    Quotient: Form("{} / {}", (PRODUCT, POWER), PRODUCT),
    Power: Form("{} ** {}", (ATOM, ATOM), POWER),
    Root: Form("sqrt({})", (OPEN,), ATOM),
    Absolute: Form("abs({})", (OPEN,), ATOM),
    Negative: Form("-{}", (PRODUCT,), OPEN),
}
"""The operations as Python writes them."""


class Printer:
    """A writer of expressions, in plain text unless a subclass has other forms.

    Examples
    --------
    >>> Printer().write(Root(Sum((Symbol("var"), Symbol("eps")))))
    '√(var + eps)'
    """

    forms: Mapping[type[Operation], Form] = {
        Difference: Form("{} − {}", (OPEN, PRODUCT), SUM),
        Product: Form("{} · {}", (PRODUCT, POWER), PRODUCT),
        Quotient: Form("{} / {}", (PRODUCT, POWER), PRODUCT),
        Power: Form("{}^{}", (ATOM, ATOM), POWER),
        Root: Form("√{}", (ATOM,), POWER),
        Absolute: Form("|{}|", (OPEN,), ATOM),
        Sign: Form("sign({})", (OPEN,), ATOM),
        Negative: Form("−{}", (PRODUCT,), OPEN),
    }
    extremes: Mapping[type[Fold], str] = {Maximum: "max", Minimum: "min"}
    sigma = "Σ"
    square: str | None = "{}²"
    """The template of a power of 2; None to write it like other powers."""

    def write(self, expression: Expression) -> str:
        """Return the text of an expression."""
        return self.format(expression)[0]

    def format(self, expression: Expression) -> tuple[str, int]:
        """Return the text of an expression, and its precedence."""
        match expression:
            case Constant():
                return self.format_number(expression)
            case Symbol():
                return self.format_symbol(expression)
            case Fold():
                return self.format_fold(expression)
        form = self.forms[type(expression)]
        if self.square and isinstance(expression, Power) and expression.right == Constant(2):
            form = form._replace(template=self.square)
        texts = (self.wrap(part, least) for part, least in zip(expression.parts, form.least, strict=True))
        return form.template.format(*texts), form.held

    def wrap(self, expression: Expression, least: int) -> str:
        """Return the text of an expression, in brackets if its precedence is lower than `least`."""
        text, held = self.format(expression)
        return text if held >= least else self.bracket(text)

    def bracket(self, text: str) -> str:
        """Return a text in brackets."""
        return f"({text})"

    def format_number(self, number: Constant) -> tuple[str, int]:
        """Return a number in full, and its precedence."""
        text = repr(number.value)
        return text, OPEN if text.startswith("-") else ATOM

    def format_symbol(self, symbol: Symbol) -> tuple[str, int]:
        """Return the text of a name, and its precedence."""
        return symbol.text, ATOM

    def format_fold(self, fold: Fold) -> tuple[str, int]:
        """Return the text and precedence of a sum or an extreme; with Σ if only `each`, a term, is known."""
        if not fold.terms and fold.each is not None:
            gap = "" if self.format(fold.each)[1] >= POWER else " "
            return f"{self.sigma}{gap}{self.wrap(fold.each, PRODUCT)}", PRODUCT
        if isinstance(fold, Sum) and len(fold.terms) == 1:
            return self.format(fold.terms[0])
        texts = self.format_terms(fold.terms, SUM if isinstance(fold, Sum) else OPEN)
        if isinstance(fold, Sum):
            return " + ".join(texts), SUM
        return f"{self.extremes[type(fold)]}({', '.join(texts)})", ATOM

    def format_terms(self, terms: Sequence[Expression], least: int) -> list[str]:
        """Return the texts of terms; those behind the first have at least the precedence `least`."""
        return [self.wrap(term, least if place else OPEN) for place, term in enumerate(terms)]
