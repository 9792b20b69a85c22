"""The story of a value: the steps of its arithmetic as records, written down one after another."""

from __future__ import annotations

import contextlib
import math
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any, NoReturn

from normcli.dtypes import is_float
from normcli.norms.norm import format_subscript
from normcli.printable import format_count
from normcli.teach.formulas.expression import (
    MOST_TERMS,
    Constant,
    Expression,
    Sum,
    Symbol,
    evaluate,
    read_decimals,
)
from normcli.tuples import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable

    from normcli.norms.plan import Plan
    from normcli.teach.explain.measured_group import MeasuredGroup, Outcome

    MakeTerm = Callable[[Expression], Expression]


RESULT = "result"
"""The name of a value's last step: the result, rounded to the output's dtype."""

RESIDUAL = "residual"
"""The name of the step that adds the residual."""


class StoryStep(NamedTuple):
    """One step of a story: a sentence, and an equation with its result.

    Parameters
    ----------
    name : str
        `sum`, `mean`, `squares`, `variance`, `eps`, `root`, `quotient`, `affine`, `result` …
    sentence : str
        The step in words.
    symbol : Symbol or None
        The symbol on the left of the equation; None for a step without arithmetic.
    chain : tuple of Expression
        The expressions between "=" signs, from the first to the last but the result: each is simpler than the
        one before, as in x = (1 + 3) / 2 = 4 / 2 = 2.
    value : Constant or None
        The result; None if it is not finite.
    outcome : Outcome or None
        The value of the tensor that the step is about; None for a step about the whole group.
    formula : Expression or None
        The first of these expressions with names in place of numbers; None except in a backward pass.
    """

    name: str
    sentence: str
    symbol: Symbol | None = None
    chain: tuple[Expression, ...] = ()
    value: Constant | None = None
    outcome: Outcome | None = None
    formula: Expression | None = None


@dataclass(frozen=True)
class Story:
    """The story that `explain` tells: the arithmetic of one group, or of one value in it, step by step.

    Parameters
    ----------
    plan : Plan
    group : MeasuredGroup or None
        None where the tensor has no values.
    at : tuple of int or None
        The index of the value to explain; None to explain the whole group.
    steps : tuple of StoryStep
        Steps of the whole group come first, steps of each value after them.
    running : bool
        Whether mean and variance were given instead of measured.
    """

    plan: Plan
    group: MeasuredGroup | None
    at: tuple[int, ...] | None
    steps: tuple[StoryStep, ...]
    running: bool = False


MOST_WHOLE = 2**50
"""The largest sum of integers that is shown as an integer: float64 statistics determine it."""

BEYOND = "It is beyond float64."

X, SIGMA, RMS = Symbol("x", "x", "x"), Symbol("σ", r"\sigma"), Symbol("rms", r"\mathrm{rms}")

SYMBOLS = {
    "mean": Symbol("μ", r"\mu"), "var": Symbol("σ²", r"\sigma^2"), "√var": SIGMA, "std": SIGMA,
    "ms": Symbol("ms", r"\mathrm{ms}"), "√ms": RMS, "rms": RMS, "Σx²": Symbol("Σx²", r"\sum x^2"),
    "divisor": Symbol("d", "d"), "base": Symbol("base", r"\mathrm{base}"),
    "x": X, "x̂": Symbol("x̂", r"\hat{x}"), "y": Symbol("y", "y"),
    "dy": Symbol("dy", "dy", "dy"), "gamma": Symbol("γ", r"\gamma", "gamma"),
    "beta": Symbol("β", r"\beta", "beta"), "n": Symbol("n", "n"), "eps": Symbol("ε", r"\varepsilon"),
    "k": Symbol("k", "k"), "u": Symbol("u", "u"), "v": Symbol("v", "v"),
    "alpha": Symbol("α", r"\alpha"), "exponent": Symbol("exponent", r"\mathrm{exponent}"),
    "norm(x)": Symbol("norm(x)", r"\mathrm{norm}(x)"), "x₀": Symbol("x₀", "x_0", "x0"),
    "size": Symbol("size", r"\mathrm{size}"), "share": Symbol("share", r"\mathrm{share}", "share"),
}  # fmt: skip
"""Name in a definition or of a statistic → its symbol in formulas."""


def name_length(p: float) -> Symbol:
    """Return the symbol of an ℓp length."""
    latex = {math.inf: r"\infty", -math.inf: r"{-\infty}"}.get(p, f"{{{p:g}}}")
    return Symbol(f"‖x‖{format_subscript(p)}", rf"\lVert x \rVert_{latex}")


def enumerate_words(words: Sequence[str]) -> str:
    """Join words as a sentence lists them: `n, h and w`."""
    return " and ".join([", ".join(words[:-1]), words[-1]] if len(words) > 1 else words)


class NoNumberError(Exception):
    """The error for a step without a finite number, after which no further steps can be calculated."""


class LazyTerms(Sequence[Expression]):
    """The terms of a sum over a group, each made when it is asked for.

    Parameters
    ----------
    count : int
    make : callable
        Returns the term of a value, given its index in the group.
    """

    def __init__(self, count: int, make: Callable[[int], Expression]) -> None:
        self._count, self._make = count, make

    def __len__(self) -> int:
        return self._count

    def __getitem__(self, place: Any) -> Any:
        return self._make(range(self._count)[place])


class StepWriter:
    """A builder of a story's steps about one group; they are appended to `steps` one after another.

    A method that returns a number appends the steps that lead to the number. If it is not finite, the last step
    says so, and the method raises `NoNumberError`.

    Parameters
    ----------
    group : MeasuredGroup
    running : bool
        Whether mean and variance were given.
    """

    def __init__(self, group: MeasuredGroup, *, running: bool) -> None:
        self.group, self.plan, self.spec, self.running = group, group.plan, group.plan.spec, running
        self.n, self.counted = Constant(group.count), format_count(group.count, "value")
        self.whole_numbers = not is_float(group.values.dtype)
        self.steps: list[StoryStep] = []

    def _stop(self, step: StoryStep) -> NoReturn:
        """Add a step that says why there is no number, and raise `NoNumberError`."""
        self.steps.append(step._replace(symbol=None))
        raise NoNumberError

    def _add_value(self, step: StoryStep, value: float, *, exact: bool = False) -> Constant:
        """Add a step whose number is shown without arithmetic."""
        number = Constant(value, exact)
        self.steps.append(step._replace(value=number))
        return number

    def _add(self, step: StoryStep, *chain: Expression, value: float | Fraction | None = None) -> Constant:
        """Add a step with its arithmetic; return the result, rounded for display.

        If the result is not finite or not defined, the step says so, and `NoNumberError` is raised.

        Parameters
        ----------
        step : StoryStep
            The step, with name, sentence and symbol only.
        chain : Expression
            The expressions that are equal to the result, each simpler than the one before.
        value : float, Fraction or None
            The result; None if it is the value of the first expression.
        """
        try:
            found = evaluate(chain[0])
            shown = float(found.number if value is None else value)
        except OverflowError:
            shown = math.inf
        except ArithmeticError:
            self._stop(step._replace(sentence=f"{step.sentence} There is no such number."))
        if not math.isfinite(shown) or _is_rounded_away(shown, found.number):
            self._stop(step._replace(sentence=f"{step.sentence} {BEYOND}"))
        number = self._round(shown, chain[0])
        self.steps.append(step._replace(chain=chain, value=number))
        return number

    def _add_sum(
        self, step: StoryStep, make: MakeTerm, known: Expression, value: Fraction | None = None
    ) -> Constant | None:
        """Add a sum over the group, and return its number; None, and a step that says so, beyond float64.

        Parameters
        ----------
        step : StoryStep
        make : callable
            Takes a value of the group as a `Constant`, and returns its term of the sum.
        known : Expression
            An expression for the sum in terms of the statistics, for groups of more than `MOST_TERMS` values.
        value : Fraction or None
            The exact sum; None if it is the sum of the terms.
        """
        with contextlib.suppress(NoNumberError):
            try:
                terms, total = self._make_terms(make, known)
                chain = [Sum(terms, total, make(X))]
                if total is None and self.group.count > 1 and not isinstance(terms[0], Constant):
                    chain.append(Sum(tuple(self._round(evaluate(term).number, term) for term in terms)))
            except ArithmeticError:
                self._stop(step._replace(sentence=f"{step.sentence} {BEYOND}"))
            return self._add(step, *chain, value=value)
        return None

    def _make_terms(self, make: MakeTerm, known: Expression) -> tuple[Sequence[Expression], Constant | None]:
        """Return the terms of a sum over the group, and its total: None for at most `MOST_TERMS` terms.

        Parameters
        ----------
        make : callable
            Takes a value of the group as a `Constant`, and returns its term of the sum.
        known : Expression
            An expression for the sum in terms of the statistics; its value is the total of a longer sum.
        """
        terms = self._list_terms(make)
        if len(terms) <= MOST_TERMS:
            return tuple(terms), None
        total, of_two = evaluate(known).number, evaluate(make(Constant(2)))
        # Whole numbers make whole terms if 2 does: its power is irrational, or it lies off a mean, otherwise.
        is_whole = self.whole_numbers and of_two.exact and of_two.number.denominator == 1
        if is_whole and abs(total) < MOST_WHOLE:
            return terms, Constant(round(total))
        return terms, Constant(float(total), exact=False)

    def _round(self, value: Fraction | float, expression: Expression) -> Constant:
        """Return a value as a `Constant`, which is `exact` if its printed digits are no rounding.

        That is so if `expression`, calculated with the numbers as printed, equals the value as printed.
        """
        number, written = float(value), evaluate(expression, read_decimals)
        is_exact = written.exact and Fraction(repr(number)) == written.number
        if is_exact and self.whole_numbers and number.is_integer() and abs(number) < MOST_WHOLE:
            return Constant(int(number))
        return Constant(number, is_exact)

    def _list_terms(self, make: MakeTerm) -> LazyTerms:
        return LazyTerms(self.group.count, lambda place: make(Constant(self.group.value(place))))


def _is_rounded_away(shown: float, number: Fraction) -> bool:
    """Whether a number is so small that float64 keeps too few of its digits to show it."""
    is_small = abs(shown) < sys.float_info.min and abs(number) < sys.float_info.min
    return is_small and abs(Fraction(shown) - number) > abs(number) / 2**20
