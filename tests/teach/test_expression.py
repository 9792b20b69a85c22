"""Expressions come to what they say, exactly where that is a fraction."""

from __future__ import annotations

from fractions import Fraction

import pytest

from normcli.teach.expression import (
    Absolute,
    Difference,
    Maximum,
    Name,
    Number,
    Power,
    Product,
    Quotient,
    Root,
    Sum,
    Value,
    evaluate,
    read_decimals,
)


@pytest.mark.parametrize(
    ("expression", "number", "exact"),
    [
        pytest.param(Sum((Number(1), Number(2.5))), Fraction(7, 2), True, id="sum"),
        pytest.param(Difference(Number(1), Number(2)), -1, True, id="difference"),
        pytest.param(Product(Number(3), Number(-2)), -6, True, id="product"),
        pytest.param(Quotient(Number(1), Number(3)), Fraction(1, 3), True, id="quotient"),
        pytest.param(Power(Number(-3), Number(2)), 9, True, id="power"),
        pytest.param(Power(Number(1), Number(0.75)), 1, True, id="power of 1"),
        pytest.param(Absolute(Number(-2)), 2, True, id="absolute"),
        pytest.param(Maximum((Number(2), Number(5), Number(3))), 5, True, id="maximum"),
        pytest.param(Root(Number(6.25)), Fraction(5, 2), True, id="root of a square"),
        pytest.param(
            Sum((Number(0.5, exact=False), Number(1))), Fraction(3, 2), False, id="of a rounded number"
        ),
        pytest.param(Sum((), Number(7)), 7, True, id="total"),
    ],
)
def test_evaluate(expression, number, exact):
    assert evaluate(expression) == Value(Fraction(number), exact)


@pytest.mark.parametrize(
    ("expression", "number"),
    [
        pytest.param(Root(Number(2)), 2**0.5, id="root"),
        pytest.param(Power(Number(2), Number(0.75)), 2**0.75, id="power"),
        pytest.param(Power(Number(1e300), Quotient(Number(1), Number(3))), 1e100, id="root of a large number"),
        pytest.param(Power(Number(0.5), Number(600)), 0.5**600, id="large power"),
    ],
)
def test_roots_are_near(expression, number):
    value = evaluate(expression)
    assert not value.exact
    assert float(value.number) == pytest.approx(number, rel=1e-15)


def test_no_number_comes_of_these():
    for expression in (Quotient(Number(1), Number(0)), Power(Number(-2), Number(0.5)), Name("x", "x")):
        with pytest.raises(ArithmeticError):
            evaluate(expression)


def test_decimals_are_read_as_they_are_written():
    tenths = Sum((Number(0.1), Number(0.2)))
    assert evaluate(tenths, read_decimals).number == Fraction(3, 10)
    assert evaluate(tenths).number != Fraction(3, 10)
