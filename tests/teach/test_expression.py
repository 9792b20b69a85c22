"""Expressions come to what they say, exactly where that is a fraction."""

from __future__ import annotations

from fractions import Fraction

import pytest

from normcli.teach.formulas.expression import (
    Constant,
    Power,
    Quotient,
    Root,
    Sum,
    Symbol,
    Value,
    evaluate,
)


@pytest.mark.parametrize(
    ("expression", "number", "exact"),
    [
        pytest.param(Quotient(Constant(1), Constant(3)), Fraction(1, 3), True, id="quotient"),
        pytest.param(Power(Constant(1), Constant(0.75)), 1, True, id="power of 1"),
        pytest.param(Root(Constant(6.25)), Fraction(5, 2), True, id="root of a square"),
        pytest.param(Sum((Constant(0.5, exact=False), Constant(1))), 1.5, False, id="of a rounded number"),
        pytest.param(Sum((), Constant(7)), 7, True, id="total"),
    ],
)
def test_what_comes_to_a_fraction_is_exact(expression, number, exact):
    assert evaluate(expression) == Value(Fraction(number), exact)


def test_no_number_comes_of_these():
    for expression in (
        Quotient(Constant(1), Constant(0)),
        Power(Constant(-2), Constant(0.5)),
        Symbol("x", "x"),
    ):
        with pytest.raises(ArithmeticError):
            evaluate(expression)
