"""What was printed, read back and worked out: in rational numbers, or in intervals of what rounding allows."""

from __future__ import annotations

import contextlib
import itertools
import math
import re
from fractions import Fraction
from typing import Any

import mpmath

_NUMBER = re.compile(r"(?<![\w.])\d+(?:\.\d+)?(?:e[-+]\d+)?")
_NAME = re.compile(r"(?<!\w)(?!max|min|nan)[^\W\d_]{2,}|∂|(?<!\w)[d-zμσγβε](?![\w.])|[μσ]", re.UNICODE)
"""What a formula is made of, and no arithmetic: `dy`, `∂L/∂d`, `n`."""
_ATOM = r"(\((?:[^()]|\([^()]*\))*\)|[\d.]+(?:e[-+]\d+)?)"


def split(text: str) -> tuple[str, list[tuple[str, str]]]:
    """Return the symbol, and each sign with what stands behind it."""
    symbol, *rest = re.split(r" (=|≈) ", text)
    return symbol, list(zip(rest[::2], rest[1::2], strict=True))


def to_python(text: str) -> str:
    """Return printed arithmetic as Python's, with each number as `N('…')`."""
    text = re.sub(r"\|([^|]*)\|", r"abs(\1)", text)
    text = re.sub(rf"√{_ATOM}", r"sqrt(\1)", text)
    text = text.replace("−", "-").replace("·", "*").replace("²", "**2").replace("^", "**")
    return _NUMBER.sub(lambda found: f"N('{found[0]}')", text)


def is_elided(text: str) -> bool:
    return "…" in text


class NotRationalError(Exception):
    """There is a root or a power that no fraction is."""


def work_out(text: str) -> Fraction:
    """Return exactly what is printed."""

    def sqrt(value: Fraction) -> Fraction:
        root = Fraction(math.isqrt(value.numerator), math.isqrt(value.denominator))
        if root * root != value:
            raise NotRationalError(text)
        return root

    result = eval(to_python(text), {"N": Fraction, "sqrt": sqrt, "abs": abs, "max": lambda *terms: max(terms)})
    if isinstance(result, float) and result not in (
        0.0,
        1.0,
    ):  # what Python makes of a power that is no fraction
        raise NotRationalError(text)
    return Fraction(result)


def bound(text: str, digits: int) -> Any:
    """Return the interval of what may have been rounded to what is printed."""

    def read(number: str) -> Any:
        value = Fraction(number)
        half = abs(value) * max(
            Fraction(1, 2 * 10 ** (digits - 1)), Fraction(1, 2**51)
        )  # a double's own rounding
        low, high = ((value - half), (value + half))
        if text != number and number.isdigit() and value <= 64:
            low = high = value  # counts and exponents
        ends = [mpmath.mpf(end.numerator) / end.denominator for end in (low, high)]
        return mpmath.iv.mpf(ends)

    def largest(*values: Any) -> Any:
        return mpmath.iv.mpf([max(v.a for v in values), max(v.b for v in values)])

    def magnitude(value: Any) -> Any:
        return abs(value)

    return mpmath.iv.mpf(
        eval(to_python(text), {"N": read, "sqrt": mpmath.iv.sqrt, "abs": magnitude, "max": largest})
    )


def check_true(text: str, digits: int) -> int:
    """Assert that a printed line is true; return how many of its links could be worked out.

    The first may be a formula, of names.
    """
    mpmath.iv.prec = 200
    _, links = split(text)
    if links and _NAME.search(links[0][1]):
        links = links[1:]
    checked = 0
    for (_, left), (sign, right) in itertools.pairwise(links):
        if is_elided(left) or is_elided(right):
            continue
        checked += 1
        if sign == "=":
            assert work_out(left) == work_out(right), text
            continue
        with contextlib.suppress(NotRationalError):
            assert work_out(left) != work_out(right), f"{text}: these are equal"
        a, b = bound(left, digits), bound(right, digits)
        assert a.a <= b.b, f"{text}: {a} and {b}"
        assert b.a <= a.b, f"{text}: {a} and {b}"
    return checked
