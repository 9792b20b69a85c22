"""Expressions are written so that they read back as they are: brackets where they belong, and no others."""

from __future__ import annotations

import re

import pytest

from normcli.documents.notation import build_equation, format_code
from normcli.teach.explain.story import StoryStep
from normcli.teach.formulas.expression import (
    Absolute,
    Constant,
    Difference,
    Maximum,
    Power,
    Product,
    Quotient,
    Root,
    Sum,
    Symbol,
)
from tests.marks import slowly
from tests.teach.test_explain import CASES, TENSORS, tell

ONE, TWO, MINUS, SMALL = Constant(1), Constant(2), Constant(-3), Constant(1e-5)
COMMANDS = {
    "approx", "begin", "cdot", "cdots", "end", "frac", "min", "tilde", "hat", "infty", "left", "lvert", "lVert", "mathrm", "max",
    "mu", "ne", "right", "rvert", "rVert", "sigma", "sqrt", "sum", "times", "varepsilon",
}  # fmt: skip
"""Commands of LaTeX that both MathJax (GitHub) and KaTeX have."""


def spell(expression, value=1.0, digits=None, full=False):
    return build_equation(
        StoryStep("a", "A.", Symbol("a", "a"), (expression,), Constant(value)), digits, full=full
    )


@pytest.mark.parametrize(
    ("expression", "text", "latex", "code"),
    [
        pytest.param(Difference(ONE, MINUS), "1 − (-3)", "1 - (-3)", "1 - (-3)", id="less a negative"),
        pytest.param(Sum((ONE, Difference(ONE, TWO))), "1 + 1 − 2", "1 + 1 - 2", "1 + 1 - 2", id="plus a difference"),
        pytest.param(Quotient(ONE, Product(TWO, TWO)), "1 / (2 · 2)", r"\frac{1}{2 \cdot 2}", "1 / (2 * 2)", id="over a product"),
        pytest.param(Power(Difference(ONE, TWO), TWO), "(1 − 2)²", "(1 - 2)^{2}", "(1 - 2) ** 2", id="square of a difference"),
        pytest.param(Power(Quotient(ONE, TWO), Constant(0.75)), "(1 / 2)^0.75", r"\left(\frac{1}{2}\right)^{0.75}", "(1 / 2) ** 0.75", id="power of a quotient"),
        pytest.param(Power(Root(TWO), TWO), "(√2)²", r"\sqrt{2}^{2}", "sqrt(2) ** 2", id="square of a root"),
        pytest.param(Root(Sum((ONE, SMALL))), "√(1 + 1e-05)", r"\sqrt{1 + 1 \times 10^{-5}}", "sqrt(1 + 1e-05)", id="root of a sum"),
        pytest.param(Root(Power(TWO, TWO)), "√(2²)", r"\sqrt{2^{2}}", "sqrt(2 ** 2)", id="root of a square"),
        pytest.param(Maximum((Absolute(MINUS),)), "max(|-3|)", r"\max(\lvert -3 \rvert)", "abs(-3)", id="maximum of one"),
    ],
)  # fmt: skip
def test_notations(expression, text, latex, code):
    equation = spell(expression)
    assert re.split(" [=≈] ", equation.text)[1] == text
    assert re.sub(r"^(=|\\approx) ", "", equation.latex[1]) == latex
    assert format_code(expression) == code


def test_long_sums_are_elided_and_full_ones_are_not():
    terms = tuple(map(Constant, range(10)))
    assert spell(Sum(terms), 45).text == "a = 0 + 1 + 2 + … + 9 = 45"
    assert spell(Sum(terms), 45).latex[1] == r"= 0 + 1 + 2 + \cdots + 9"
    assert spell(Sum(terms), 45, full=True).text == f"a = {' + '.join(map(str, range(10)))} = 45"
    assert spell(Maximum(terms), 9).text == "a = max(0, 1, 2, …, 9) = 9"
    assert format_code(Sum(terms)) == " + ".join(map(str, range(10)))


@pytest.mark.parametrize(
    ("expression", "value", "digits", "text"),
    [
        pytest.param(Sum((Constant(0.1), Constant(0.2))), 0.1 + 0.2, None, "a = 0.1 + 0.2 = 0.3", id="printed decimals"),
        pytest.param(Sum((Constant(0.1), Constant(0.2))), 0.1 + 0.2, 17, "a = 0.1 + 0.2 ≈ 0.30000000000000004", id="all digits"),
        pytest.param(Quotient(ONE, TWO), 0.5, 3, "a = 1 / 2 = 0.5", id="exact"),
        pytest.param(Root(Constant(4)), 2.0, None, "a = √4 = 2", id="root of a square"),
        pytest.param(Sum((Constant(0.12345),)), 0.12345, 3, "a ≈ 0.123", id="one term"),
        pytest.param(Sum((Constant(0.5, exact=False), ONE)), 1.5, None, "a ≈ 0.5 + 1 = 1.5", id="of a rounded number"),
        pytest.param(Difference(Constant(1000.25), Constant(1000.1875)), 0.0625, 3, "a = 1000.25 − 1000.1875 = 0.0625", id="cancels"),
        pytest.param(Constant(123456789), 123456789, 3, "a = 123456789", id="whole numbers are whole"),
    ],
)  # fmt: skip
def test_an_equality_is_one_of_what_is_printed(expression, value, digits, text):
    assert spell(expression, value, digits).text == text


@pytest.mark.parametrize("tensor", ["float32", *slowly(name for name in TENSORS if name != "float32")])
@pytest.mark.parametrize("case", CASES)
def test_latex_is_balanced_and_of_known_commands(case, tensor):
    count = 0
    for step in tell(TENSORS[tensor], **CASES[case]).steps:
        equation = build_equation(step, index=(0, 1))
        if equation is None:
            continue
        latex = " ".join(equation.latex)
        assert set(re.findall(r"\\([a-zA-Z]+)", latex)) <= COMMANDS
        assert not re.search(r"[^\x20-\x7e]|e[-+]", latex)
        assert_nested(latex)
        assert latex.count(r"\left(") == latex.count(r"\right)")
        count += 1
    assert count > 3


def assert_nested(latex: str) -> None:
    open_ = []
    for character in latex:
        if character in "{(":
            open_.append(character)
        elif character in "})":
            assert open_.pop() == {"}": "{", ")": "("}[character]
    assert not open_
