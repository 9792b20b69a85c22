"""The rules of calculus, each against a difference quotient in exact arithmetic, and how results are written."""

from __future__ import annotations

from fractions import Fraction

import pytest

from normcli.documents.notation import format_code
from normcli.teach.formulas.chain_rule import substitute
from normcli.teach.formulas.derivative import add, differentiate, make_product, make_quotient, negate
from normcli.teach.formulas.expression import (
    Absolute,
    Constant,
    Difference,
    Maximum,
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

X, A, ONE = Symbol("x", code="x"), Symbol("a", code="a"), Constant(1)


def work_out(expression, x):
    names = {"x": Constant(x), "a": Constant(Fraction(7, 3))}
    return evaluate(substitute(expression, names, lambda each: substitute(each, names, Sum))).number


@pytest.mark.all_quick
@pytest.mark.parametrize(
    "expression",
    [
        X,
        Sum((X, A, X)),
        Difference(A, X),
        Difference(Power(X, Constant(2)), Product(A, X)),
        Product(X, Power(X, Constant(3))),
        Quotient(A, X),
        Quotient(X, Sum((X, A))),
        Root(Sum((Power(X, Constant(2)), A))),
        Power(Sum((A, X)), Quotient(ONE, Constant(3))),
        Power(Absolute(X), Constant(1.5)),
        Maximum((Product(A, X), ONE)),
        Maximum((Difference(X, Constant(50)), A)),
        Negative(Product(A, Power(X, Constant(2)))),
        Symbol("x less a", value=Difference(X, A)),
        Sum((), None, Product(A, Power(X, Constant(2)))),
    ],
    ids=lambda e: type(e).__name__,
)
@pytest.mark.parametrize("x", [Fraction(5, 4), Fraction(-9, 8)])
def test_each_rule_is_the_limit_of_differences(expression, x):
    slope = differentiate(expression, ["x"], lambda part: work_out(part, x))
    step = Fraction(1, 2**40)
    difference = (work_out(expression, x + step) - work_out(expression, x - step)) / (2 * step)
    found = Fraction(0) if slope is None else work_out(slope, x)
    assert abs(found - difference) < Fraction(1, 2**60)


def test_what_does_not_depend_on_a_name_has_no_slope():
    for expression in (A, ONE, Quotient(A, A), Maximum((A, X))):
        assert differentiate(expression, ["x"], lambda part: work_out(part, Fraction(1))) is None


def test_a_root_of_0_has_the_slope_0_as_in_torch():
    assert differentiate(Root(X), ["x"], lambda _: Fraction(0)) is None


def test_of_a_sum_over_a_group_one_term_is_a_value_s_own():
    squares = Sum((), None, Power(X, Constant(2)))
    assert differentiate(squares, ["x"], lambda _: Fraction(1), of_one=True) == Product(Constant(2), X)
    assert differentiate(squares, ["x"], lambda _: Fraction(1)) == Sum((), None, Product(Constant(2), X))


@pytest.mark.all_quick
@pytest.mark.parametrize(
    ("expression", "code"),
    [
        (make_product(X, ONE), "x"),
        (make_product(X, Quotient(ONE, A)), "x / a"),
        (make_product(Quotient(ONE, A), X), "x / a"),
        (make_quotient(Quotient(X, A), X), "x / (a * x)"),
        (make_product(Negative(X), Negative(A)), "x * a"),
        (make_product(X, Constant(2)), "2 * x"),
        (make_product(X, Product(Constant(2), A)), "2 * x * a"),
        (make_quotient(Product(Constant(2), X), Product(Constant(2), A)), "x / a"),
        (make_quotient(Negative(X), A), "-x / a"),
        (add([X, None, Negative(A)]), "x - a"),
        (add([X, A, X]), "x + a + x"),
        (negate(Negative(X)), "x"),
        (Sign(X), "copysign(1, x) * (x != 0)"),
    ],
)
def test_results_are_written_as_on_paper(expression, code):
    assert format_code(expression) == code


def test_what_is_0_stays_0():
    assert (
        make_product(None, X),
        make_product(X, None),
        make_quotient(None, X),
        negate(None),
        add([None]),
    ) == (None,) * 5
