"""The derivative of an expression with respect to a name in it: the rules of calculus, one for each operation.

Derivatives are written as on paper: without factors of 1, with the sign in front, and as one fraction.
"""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING

from normcli.teach.formulas.expression import (
    Absolute,
    Constant,
    Difference,
    Fold,
    Maximum,
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
    from collections.abc import Callable, Collection, Iterable

    from normcli.teach.formulas.expression import Expression

    Weigh = Callable[[Expression], Fraction]

ONE, TWO = Constant(1), Constant(2)


def differentiate(
    expression: Expression, by: Collection[str], weigh: Weigh, *, of_one: bool = False
) -> Expression | None:
    """Return the derivative of an expression with respect to a name; None if it is 0.

    Where only one-sided derivatives exist, the derivative is torch's: 0 (None) for a root at 0, and that of the
    first term for a maximum of two equal terms.

    Parameters
    ----------
    expression : Expression
    by : collection of str
        The name and its synonyms, such as `var` and `square`.
    weigh : callable
        Returns the number of an expression: the derivative depends on which of two numbers is larger, and on
        whether a root is 0.
    of_one : bool
        Whether the name belongs to one value of a group, such as `x`: then one term of a sum changes.

    Examples
    --------
    >>> x, d = Symbol("x"), Symbol("d")
    >>> differentiate(Quotient(x, d), ["x"], lambda _: 1.0) == Quotient(ONE, d)
    True
    >>> differentiate(Quotient(x, d), ["d"], lambda _: 1.0) == Negative(Quotient(x, Power(d, TWO)))
    True
    """

    def derive(part: Expression) -> Expression | None:
        return differentiate(part, by, weigh, of_one=of_one)

    match expression:
        case Constant():
            return None
        case Symbol(text, value=value):
            return ONE if text in by else None if value is None else derive(value)
        case Fold(terms=(), each=each) if each is not None:
            slope = derive(each)
            return slope if slope is None or of_one else sum_up(slope)
        case Sum():
            return add(map(derive, expression.terms))
        case Maximum(terms=(first, second)):
            return derive(first if weigh(first) >= weigh(second) else second)
        case Negative(content):
            return negate(derive(content))
        case Absolute(content):
            return make_product(Sign(content), derive(content))
        case Root(content):
            slope = derive(content)
            return (
                None
                if slope is None or not weigh(expression)
                else make_quotient(slope, Product(TWO, expression))
            )
        case Power(base, exponent):
            slope = derive(base)
            return None if slope is None else make_product(_lower(base, exponent), slope)
        case Difference(left, right):
            return add([derive(left), negate(derive(right))])
        case Product(left, right):
            return add([make_product(left, derive(right)), make_product(right, derive(left))])
        case Quotient(left, right):
            over, under = derive(left), derive(right)
            whole = None if under is None else make_quotient(make_product(left, under), Power(right, TWO))
            return add([None if over is None else make_quotient(over, right), negate(whole)])
    raise NotImplementedError(f"{type(expression).__name__} has no rule")


def _lower(base: Expression, exponent: Expression) -> Expression:
    """Return the derivative of a power with respect to its base."""
    if exponent == TWO:
        return Product(TWO, base)
    if isinstance(exponent, Constant) and Fraction(exponent.value - 1) == Fraction(exponent.value) - 1:
        return Product(exponent, Power(base, Constant(exponent.value - 1)))
    return Product(exponent, Power(base, Difference(exponent, ONE)))


# -- sums and products as a person writes them; None stands for 0


def add(terms: Iterable[Expression | None]) -> Expression | None:
    """Return the sum of terms, in which negative terms are subtracted; None if all terms are None."""
    total: Expression | None = None
    for term in terms:
        if total is None or term is None:
            total = total or term
        elif isinstance(term, Negative):
            total = Difference(total, term.content)
        else:
            total = Sum((*(total.terms if isinstance(total, Sum) and total.terms else (total,)), term))
    return total


def sum_up(each: Expression) -> Expression:
    """Return the sum of a term over a group; the minus sign of a negative term is put in front of the sum."""
    return Negative(sum_up(each.content)) if isinstance(each, Negative) else Sum((), None, each)


def negate(expression: Expression | None) -> Expression | None:
    """Return an expression with the other sign; None for None."""
    if expression is None:
        return None
    return expression.content if isinstance(expression, Negative) else Negative(expression)


def make_product(left: Expression | None, right: Expression | None) -> Expression | None:
    """Return a product with numbers first and quotients as one fraction; None if a factor is None."""
    match left, right:
        case (None, _) | (_, None):
            return None
        case (Negative(content), other) | (other, Negative(content)):
            return negate(make_product(*((content, other) if isinstance(left, Negative) else (other, content))))
        case (Constant(1), other) | (other, Constant(1)):
            return other
        case Quotient(over, under), other:
            return make_quotient(make_product(over, other), under)
        case other, Quotient(over, under):
            return make_quotient(make_product(other, over), under)
        case other, Constant() as number if not isinstance(other, Constant):
            return make_product(number, other)
        case other, Product(first, second):
            return make_product(make_product(other, first), second)
        case Product(Constant() as number, second), other:
            return Product(Product(number, second), other)
    assert left is not None
    assert right is not None
    return Product(left, right)


def make_quotient(over: Expression | None, under: Expression) -> Expression | None:
    """Return a quotient as one fraction, a common numeric factor cancelled; None if `over` is None."""
    match over, under:
        case None, _:
            return None
        case Negative(content), _:
            return negate(make_quotient(content, under))
        case Quotient(top, bottom), _:
            return make_quotient(top, Product(bottom, under))
        case Product(Constant(a), rest), Product(Constant(b), other) if a == b:
            return make_quotient(rest, other)
    assert over is not None
    return Quotient(over, under)
