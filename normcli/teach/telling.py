"""From a group and what became of it to the steps of a story: each norm's arithmetic, read off its row."""

from __future__ import annotations

import math
import sys
from collections.abc import Sequence
from fractions import Fraction
from typing import TYPE_CHECKING, Any, NamedTuple, overload

from normcli.dtypes import is_float
from normcli.norms.divisors import ORDER_STATISTICS, Measurement
from normcli.norms.grid import ONLY_GROUP
from normcli.norms.table import Centre, EpsMode, ZeroRule
from normcli.teach.expression import (
    MOST_TERMS,
    Absolute,
    Constant,
    Difference,
    Expression,
    Maximum,
    Power,
    Product,
    Quotient,
    Root,
    Sum,
    Symbol,
    evaluate,
    read_decimals,
)
from normcli.teach.place import format_index
from normcli.teach.story import Step, Story

if TYPE_CHECKING:
    from collections.abc import Callable

    from normcli.norms.divisors import OrderStatistic
    from normcli.teach.group import MeasuredGroup, Outcome

FEW = 8
"""Groups of up to so many values are written out within the steps that go on with their sum."""

MOST_WHOLE = 2**50
"""Sums of whole numbers up to here are told as whole numbers: the doubles that they follow from allow it."""

_X, _X_HAT, _Y = Symbol("x", "x", "x"), Symbol("x̂", r"\hat{x}"), Symbol("y", "y")
_DIVISOR, _BASE = Symbol("d", "d"), Symbol("base", r"\mathrm{base}")


class _Words(NamedTuple):
    """How formulas write a mean of squares, its root and its sum, and a sentence about the sum."""

    mean_square: Symbol
    root: Symbol
    squares: Symbol
    squares_told: str


_ABOUT_ZERO = Symbol("Σx²", r"\sum x^2")

_SQUARES_TOLD = "The squares, and their sum."

_MEAN_SQUARE = _Words(Symbol("ms", r"\mathrm{ms}"), Symbol("rms", r"\mathrm{rms}"), _ABOUT_ZERO, _SQUARES_TOLD)

_VARIANCE = _Words(
    Symbol("σ²", r"\sigma^2"),
    Symbol("σ", r"\sigma"),
    Symbol("Σ(x − μ)²", r"\sum (x - \mu)^2"),
    "The squared deviations from the mean, and their sum.",
)


class _Terms(Sequence[Expression]):
    """Terms made of a group's values when they are asked for."""

    def __init__(self, group: MeasuredGroup, make: Callable[[Expression], Expression]) -> None:
        self._group, self._make = group, make

    def __len__(self) -> int:
        return self._group.count

    @overload
    def __getitem__(self, place: int) -> Expression: ...

    @overload
    def __getitem__(self, place: slice) -> Sequence[Expression]: ...

    def __getitem__(self, place: Any) -> Any:
        if isinstance(place, slice):
            return [self[i] for i in range(*place.indices(len(self)))]
        if not -len(self) <= place < len(self):
            raise IndexError(place)
        return self._make(Constant(self._group.value(place % len(self))))


def name_group(name: str) -> str:
    """Return what a group is called at the beginning of a sentence."""
    return "The only group" if name == ONLY_GROUP else f"The group {name}"


def tell_story(group: MeasuredGroup, at: tuple[int, ...] | None = None, *, running: bool = False) -> Story:
    """Return the steps that lead from a group's values to its normalized ones.

    Parameters
    ----------
    group : MeasuredGroup
        With the outcomes to tell of.
    at : tuple of int or None
        The value that was asked for.
    running : bool
        Whether the statistics were given (running statistics) and are not those of the group's values.

    Notes
    -----
    Statistics are those of the group's result. Sums are taken in rational arithmetic, or follow from the
    statistics where the group has more than `MOST_TERMS` values.
    """
    return Story(group.plan, group, at, _Teller(group, running=running).tell(), running)


class _Teller:
    """Tells of one group, a step after another."""

    def __init__(self, group: MeasuredGroup, *, running: bool) -> None:
        self.group, self.plan, self.running = group, group.plan, running
        self.n = Constant(group.count)
        self.whole_numbers = not is_float(group.values.dtype)
        self.steps: list[Step] = []

    def tell(self) -> tuple[Step, ...]:
        """Return all steps."""
        self._introduce()
        if not self.running and not self.group.finite:
            kinds = [kind.consequence for kind in self.group.degeneracies] or ["holds NaN or an infinity"]
            for consequence in kinds:
                self._say("not finite", f"{name_group(self.group.name)} {consequence}.")
            self._give_up()
            return tuple(self.steps)
        centre, divisor = self._find_centre_and_divisor()
        divisor = None if divisor is None else self._replace_zero(divisor)
        if divisor is None:
            self._give_up()
        else:
            for outcome in self.group.outcomes:
                self._finish(outcome, centre, divisor)
        return tuple(self.steps)

    # -- what all values share

    def _introduce(self) -> None:
        group, plan = self.group, self.plan
        if plan.spec.window is not None:
            self._say("group", self._describe_window())
            return
        told = f"{name_group(group.name)} holds {_count(group.count)}"
        along = _enumerate([plan.grid.layout.name(axis) for axis in plan.grid.axes])
        if group.count > 1 and along:
            told += f": they differ along {along}"
        if group.count > 1 and plan.grid.groups is not None:
            told += ", within the channels of the group"
        given = " Its mean and variance were given, and are not measured." if self.running else ""
        self._say("group", f"{told}.{given}")

    def _describe_window(self) -> str:
        plan, held = self.plan, self.group.count
        assert plan.spec.window is not None
        at, axis = self.group.outcomes[0].index, plan.grid.axes[0]
        name, first = plan.grid.layout.name(axis), max(0, at[axis] - plan.spec.window.before)
        where = f"{name}={first}" if held == 1 else f"{name}={first} … {name}={first + held - 1}"
        cut = (
            ""
            if held == plan.grid.group_size
            else f"; the other {plan.grid.group_size - held} would lie outside"
        )
        return f"The window of {format_index(at, plan.grid.layout)} holds {_count(held)}, at {where}{cut}."

    def _find_centre_and_divisor(self) -> tuple[Constant | None, Constant | None]:
        """Return what is subtracted and what is divided by: None for the second if neither can be shown."""
        match self.plan.norm.divisor.measurement:
            case Measurement.EXTREMES | Measurement.QUARTILES:
                return self._find_by_order()
            case Measurement.LENGTH:
                return None, self._find_length()
            case Measurement.WINDOW:
                return None, self._find_power()
            case Measurement.MOMENTS if self.plan.norm.centre is Centre.NOTHING:
                return None, self._find_deviation(None)
            case Measurement.MOMENTS:
                mean = self._find_mean()
                return mean, None if mean is None else self._find_deviation(mean)

    def _find_by_order(self) -> tuple[Constant | None, Constant | None]:
        """Tell of each statistic in turn: of values by their rank, and of sums and differences of those."""
        norm, found = self.plan.norm, dict[str, Constant]()
        for row in map(ORDER_STATISTICS.__getitem__, norm.statistics):
            symbol, value = Symbol(row.symbol, row.latex), self.group.statistics[row.name]
            told = row.told.format(count=_count(self.group.count))
            if row.combination is None:
                number = self._find_rank(row, told, symbol)
            else:
                left, right = found[row.combination.left], found[row.combination.right]
                joined = Sum((left, right)) if row.combination.sign == "+" else Difference(left, right)
                whole = Quotient(joined, Constant(2)) if row.combination.half else joined
                number = self._add(row.name, told, symbol, whole, value=value)
            if number is None:
                return None, None
            found[row.name] = number
        return found[norm.centre.value], found[norm.divisor.spread or ""]

    def _find_rank(self, row: OrderStatistic, sentence: str, symbol: Symbol) -> Constant | None:
        """Tell of the value at a place in order, or of what lies between two of them."""
        value, last = self.group.statistics[row.name], self.group.count - 1
        if row.quarter in (0, 4):
            return self._give(row.name, sentence, symbol, value, exact=True)
        if self.group.count > MOST_TERMS:
            return self._give(row.name, sentence, symbol, value)
        ordered = sorted(self.group.value(place) for place in range(self.group.count))
        place, part = divmod(last * (row.quarter or 0), 4)
        if not part or ordered[place] == ordered[place + 1]:
            return self._give(row.name, sentence, symbol, value, exact=True)
        low, high = Constant(ordered[place]), Constant(ordered[place + 1])
        between = Sum((low, Product(Constant(part / 4), Difference(high, low))))
        return self._add(row.name, f"{sentence} It lies between two.", symbol, between, value=value)

    def _find_mean(self) -> Constant | None:
        symbol, mean = Symbol("μ", r"\mu"), self.group.statistics["mean"]
        if not math.isfinite(mean):
            self._say(
                "mean",
                f"The mean that was given is {_name_endless(mean)}: there is no arithmetic to show."
                if self.running
                else "The mean is beyond float64.",
            )
            return None
        if self.running:
            return self._give("mean", "The running mean, which was given.", symbol, mean, exact=True)
        known = Fraction(mean) * self.group.count
        total = self._sum(
            "sum", f"The sum of the {_count(self.group.count)}.", Symbol("Σx", r"\sum x"), _itself, known
        )
        if total is None:
            return self._give("mean", "The mean.", symbol, mean)
        top = Sum(tuple(_Terms(self.group, _itself))) if self.group.count <= FEW else total
        told = "The mean: the sum over n, the number of values."
        return self._add("mean", told, symbol, Quotient(top, self.n), value=mean)

    def _find_deviation(self, centre: Constant | None) -> Constant | None:
        """Tell of the root of a mean of squares, about the mean or about 0."""
        row, words = self.plan.norm.divisor, _MEAN_SQUARE if centre is None else _VARIANCE
        told_sum = f"The {row.size}: the sum of squares over n"
        square, root = self.group.statistics[row.square], self.group.statistics[row.spread or ""]
        if self.running and not math.isfinite(square):
            self._say("variance", _tell_endless_variance(square))
            return None
        if self.running:
            given = self._give(
                "variance", "The running variance, which was given.", words.mean_square, square, exact=True
            )
            return self._root(given, words.mean_square, words.root, root)
        freedom = self.group.count - (self.plan.spec.ddof if centre is not None else 0)
        if freedom <= 0:
            counted = f"n − ddof = {self.group.count} − {self.plan.spec.ddof} = {freedom}"
            self._say(row.size, f"The variance has the divisor {counted}: it is NaN.")
            return None
        if _is_beyond(square, root):
            return self._root(None, words.mean_square, words.root, root)
        total = self._sum_squares(centre, Fraction(square) * freedom, words)
        if total is None:
            mean_square: Constant | None = self._give(row.size, f"{told_sum}.", words.mean_square, square)
        else:
            bottom = Difference(self.n, Constant(self.plan.spec.ddof)) if freedom < self.group.count else self.n
            less = f", less ddof {self.plan.spec.ddof}" if freedom < self.group.count else ""
            told = f"{told_sum}{less}."
            mean_square = self._add(row.size, told, words.mean_square, Quotient(total, bottom), value=square)
        return self._root(mean_square, words.mean_square, words.root, root)

    def _sum_squares(self, centre: Constant | None, known: Fraction, words: _Words) -> Constant | None:
        if centre is None:
            return self._sum("squares", words.squares_told, words.squares, _square, known)
        value = None
        if self.group.count <= MOST_TERMS:
            values = list(self.group.fractions())
            mean = sum(values, Fraction(0)) / len(values)
            value = sum(((value - mean) ** 2 for value in values), Fraction(0))

        def make(x: Expression) -> Expression:
            return _square(Difference(x, centre))

        told, symbol = words.squares_told, words.squares
        return self._sum("squares", told, symbol, make, known, value=value, integral=False)

    def _find_length(self) -> Constant | None:
        p, length = self.plan.spec.p, self.group.statistics["norm"]
        assert p is not None
        symbol = _name_length(p)
        if not math.isfinite(length):
            self._say("length", "The length is beyond float64.")
            return None
        if p == 2.0:
            square = None
            if not _is_beyond(length * length, length):
                known = Fraction(length) ** 2
                square = self._sum("squares", _SQUARES_TOLD, _ABOUT_ZERO, _square, known)
            return self._root(square, _ABOUT_ZERO, symbol, length)
        if math.isinf(p):
            terms, total = self._make_terms(Absolute, Fraction(length))
            told = "The length: the largest value, without its sign."
            found = self._add("length", told, symbol, Maximum(terms, total, Absolute(_X)), value=length)
        elif p == 0.0:
            told = "The length: how many values are not 0. Each of them counts 1."
            found = self._sum("length", told, symbol, _count_nonzero, Fraction(length))
        elif p == 1.0:
            told = "The length: the sum of the values without their signs."
            found = self._sum("length", told, symbol, Absolute, Fraction(length))
        else:
            found = self._find_power_length(p, symbol, length)
        return None if found is None else self._add_eps(found, symbol)

    def _find_power_length(self, p: float, symbol: Symbol, length: float) -> Constant | None:
        exponent = Constant(int(p) if p == int(p) else p)
        p_text = f"{p:g}"
        try:
            known = evaluate(Power(Constant(length), exponent)).number
        except ArithmeticError:
            return self._give(
                "length", "The length; powers on the way to it are beyond float64.", symbol, length
            )
        series = Symbol(f"Σ|x|^{p_text}", rf"\sum \lvert x \rvert^{{{p_text}}}")
        told = f"The sum of the values without their signs to the power of p = {p_text}."
        integral = isinstance(exponent.value, int)

        def make(x: Expression) -> Expression:
            return Power(Absolute(x), exponent)

        total = self._sum("powers", told, series, make, known, integral=integral)
        if total is None:
            return self._give("length", "The length.", symbol, length)
        told = "The length: the root of that, with the same p."
        chain = Power(total, Quotient(Constant(1), exponent))
        return self._add("length", told, symbol, chain, value=length)

    def _find_power(self) -> Constant | None:
        """Tell of the power that a window's values are divided by."""
        window, (mean_square, rstd) = (
            self.plan.spec.window,
            (self.group.statistics[name] for name in ("ms", "rstd")),
        )
        assert window is not None
        total = None
        if math.isfinite(mean_square):
            known = Fraction(mean_square) * window.size
            total = self._sum("squares", _SQUARES_TOLD, _ABOUT_ZERO, _square, known)
        if total is None:
            if rstd == 0 or not math.isfinite(1.0 / rstd):
                return None
            return self._give("divisor", "The divisor.", _DIVISOR, 1.0 / rstd)
        alpha, k = Constant(window.alpha), Constant(window.k)
        scaled: Expression = Product(alpha, total)
        over = ""
        if window.divisor != 1:
            scaled, over = Quotient(scaled, Constant(window.divisor)), " / size"
        told = f"The base of the power: k + α · Σx²{over}."
        base = self._add("base", told, _BASE, Sum((k, scaled)))
        if base is None:
            return None
        told = "The divisor: that to the power of the exponent."
        return self._add("divisor", told, _DIVISOR, Power(base, Constant(window.exponent)))

    # -- eps and the root

    def _root(
        self, square: Constant | None, square_symbol: Symbol, root_symbol: Symbol, root: float
    ) -> Constant | None:
        """Tell of eps and the root, in their order; without a square, it is beyond float64."""
        eps = self.plan.spec.eps or 0.0
        if not math.isfinite(root):
            self._say("root", "The divisor is beyond float64.")
            return None
        within = eps and self.plan.spec.eps_mode in (EpsMode.INSIDE, EpsMode.SQUARE_FLOOR)
        if square is None:
            scaled = "The squares leave the range of float64: normcli scales the values by a power of 2 first."
            told = self._give("root", scaled, root_symbol, root)
            if not within:
                return self._add_eps(told, root_symbol)
            square_exactly: Expression = Power(told, Constant(2))
        else:
            if not within:
                found = self._add("root", "Its root.", root_symbol, Root(square), value=root)
                return None if found is None else self._add_eps(found, root_symbol)
            square_exactly = square
        joined, symbol = self._join_eps(square_exactly, square_symbol)
        if square is not None:
            told_of = (
                "eps is added, inside the root."
                if isinstance(joined, Sum)
                else "At least eps, inside the root."
            )
            under = self._add("eps", told_of, symbol, joined)
            joined = joined if under is None else under
        return self._add("root", "The divisor: the root of that.", _DIVISOR, Root(joined))

    def _add_eps(self, size: Constant, symbol: Symbol) -> Constant | None:
        """Tell of an eps that is outside the root."""
        eps = self.plan.spec.eps or 0.0
        if not eps:
            return size
        joined, together = self._join_eps(size, symbol)
        sentence = (
            "The divisor: eps is added, outside the root."
            if isinstance(joined, Sum)
            else "The divisor: at least eps."
        )
        return self._add("eps", sentence, together, joined)

    def _join_eps(self, size: Expression, symbol: Symbol) -> tuple[Expression, Symbol]:
        eps = Constant(self.plan.spec.eps or 0.0)
        if self.plan.spec.eps_mode in (EpsMode.INSIDE, EpsMode.OUTSIDE):
            return Sum((size, eps)), Symbol(f"{symbol.text} + ε", rf"{symbol.latex} + \varepsilon")
        return (
            Maximum((size, eps)),
            Symbol(f"max({symbol.text}, ε)", rf"\max({symbol.latex}, \varepsilon)"),
        )

    def _replace_zero(self, divisor: Constant) -> Constant | None:
        if divisor.value != 0:
            return divisor
        if self.plan.spec.window is not None or self.plan.spec.zero_rule is ZeroRule.NAN:
            self._say("zero", "The divisor is 0, by which nothing can be divided.")
            return None
        self._say(
            "zero",
            "The divisor is 0: it counts as 1, and the values are only centred."
            if self.plan.norm.centre is not Centre.NOTHING
            else "The divisor is 0, as all values are: it counts as 1.",
        )
        return Constant(1)

    # -- what each value goes through

    def _finish(self, outcome: Outcome, centre: Constant | None, divisor: Constant) -> None:
        value = Constant(outcome.value)
        top: Expression = value if centre is None else Difference(value, centre)
        scaled = outcome.scaled
        if not math.isfinite(outcome.value) or (scaled is not None and not math.isfinite(scaled)):
            self._give_result(outcome)
            return
        less = "" if centre is None else f" less the {self.plan.norm.centre.word},"
        told = f"The value{less} over the divisor."
        x_hat = self._add("quotient", told, _X_HAT, Quotient(top, divisor), value=scaled, outcome=outcome)
        affine = outcome.gamma is not None or outcome.beta is not None
        if (
            x_hat is not None
            and affine
            and all(math.isfinite(v) for v in (outcome.gamma, outcome.beta) if v is not None)
        ):
            self._scale(outcome, x_hat)
        self._give_result(outcome)

    def _scale(self, outcome: Outcome, x_hat: Constant) -> None:
        """Tell of gamma and beta."""
        dtype = self.group.dtype
        if self.plan.spec.rounds_before_gamma:
            rounded = float(dtype.type(x_hat.value))
            if not math.isfinite(rounded):
                return
            told = f"This convention rounds it to {dtype.name} before gamma."
            x_hat = self._give("round", told, _X_HAT, rounded, outcome=outcome, exact=True)
        shifted: Expression = x_hat
        words = []
        if outcome.gamma is not None:
            offset, gamma = self.plan.spec.gamma_offset, Constant(outcome.gamma)
            shifted = Product(Sum((Constant(offset), gamma)) if offset else gamma, x_hat)
            words.append(f"times {offset} + gamma" if offset else "times gamma")
        if outcome.beta is not None:
            shifted = Sum((shifted, Constant(outcome.beta)))
            words.append("plus beta")
        wide = outcome.normalized if dtype.itemsize > 4 and not self.plan.spec.rounds_before_gamma else None
        told = f"{', '.join(words).capitalize()}."
        self._add("affine", told, _Y, shifted, value=wide, outcome=outcome)

    def _give_result(self, outcome: Outcome) -> None:
        affine = outcome.gamma is not None or outcome.beta is not None
        again = affine and self.plan.spec.rounds_before_gamma
        how = f"rounded {'again' if again else 'once'}, to {self.group.dtype.name}"
        if math.isfinite(outcome.normalized):
            self._give("result", f"The result, {how}.", _Y, outcome.normalized, outcome=outcome, exact=True)
        else:
            told = "NaN" if math.isnan(outcome.normalized) else f"{outcome.normalized}"
            self._say("result", f"The result, {how}, is {told}.", outcome)

    def _give_up(self) -> None:
        """Tell of the results alone."""
        for outcome in self.group.outcomes:
            self._give_result(outcome)

    # -- steps

    def _say(self, name: str, sentence: str, outcome: Outcome | None = None) -> None:
        self.steps.append(Step(name, sentence, outcome=outcome))

    def _give(
        self,
        name: str,
        sentence: str,
        symbol: Symbol,
        value: float,
        *,
        outcome: Outcome | None = None,
        exact: bool = False,
    ) -> Constant:
        """Tell of a value that no arithmetic is shown for."""
        number = Constant(value, exact)
        self.steps.append(Step(name, sentence, symbol, (), number, outcome))
        return number

    def _add(
        self,
        name: str,
        sentence: str,
        symbol: Symbol,
        *chain: Expression,
        value: float | None = None,
        outcome: Outcome | None = None,
    ) -> Constant | None:
        """Tell of a value and its arithmetic; return None where float64 does not hold it."""
        try:
            found = evaluate(chain[0])
            told = float(found.number) if value is None else value
        except OverflowError:
            self._say(name, f"{sentence} It is beyond float64.", outcome)
            return None
        except ArithmeticError:
            self._say(name, f"{sentence} There is no such number.", outcome)
            return None
        if _is_lost(told, found.number):
            self._say(name, f"{sentence} It is beyond float64.", outcome)
            return None
        written = evaluate(chain[0], read_decimals)
        exact = written.exact and Fraction(repr(told)) == written.number
        whole = exact and self.whole_numbers and float(told).is_integer() and abs(told) < MOST_WHOLE
        number = Constant(int(told) if whole else told, exact)
        self.steps.append(Step(name, sentence, symbol, chain, number, outcome))
        return number

    def _sum(
        self,
        name: str,
        sentence: str,
        symbol: Symbol,
        make: Callable[[Expression], Expression],
        known: Fraction,
        *,
        value: Fraction | None = None,
        integral: bool = True,
    ) -> Constant | None:
        """Tell of a sum over the group.

        Parameters
        ----------
        make : callable
            Makes a term of a value.
        known : Fraction
            What the statistics say that it comes to, for sums too long to be worked out.
        value : Fraction or None
            What it comes to where that is known better than from the terms.
        integral : bool
            Whether whole numbers make whole terms.
        """
        try:
            terms, total = self._make_terms(make, known, integral=integral)
            chain: list[Expression] = [Sum(terms, total, make(_X))]
            if total is None and self.group.count > 1 and not isinstance(terms[0], Constant):
                simple = tuple(self._simplify(term, integral=integral) for term in terms)
                chain.append(Sum(simple))
            told = None if value is None else float(value)
        except ArithmeticError:
            self._say(name, f"{sentence} It is beyond float64.")
            return None
        return self._add(name, sentence, symbol, *chain, value=told)

    def _make_terms(
        self, make: Callable[[Expression], Expression], known: Fraction, *, integral: bool = True
    ) -> tuple[Sequence[Expression], Constant | None]:
        """Return the terms of a sum over the group, and its total if there are too many to add up."""
        terms = _Terms(self.group, make)
        if len(terms) <= MOST_TERMS:
            return tuple(terms), None
        if integral and self.whole_numbers and abs(known) < MOST_WHOLE:
            return terms, Constant(round(known))
        return terms, Constant(float(known), exact=False)

    def _simplify(self, term: Expression, *, integral: bool) -> Constant:
        value, written = evaluate(term), evaluate(term, read_decimals)
        if integral and self.whole_numbers and value.exact:
            return Constant(int(value.number))
        told = float(value.number)
        return Constant(told, written.exact and Fraction(repr(told)) == written.number)


def _tell_endless_variance(variance: float) -> str:
    """Return what to say of a variance that was given and is not finite."""
    if math.isnan(variance):
        return "The variance that was given is NaN: so is every normalized value."
    return "The variance that was given is infinite: divided by its root, all that is finite becomes 0."


def _name_endless(value: float) -> str:
    return "NaN" if math.isnan(value) else "infinite" if value > 0 else "negative infinite"


def _itself(x: Expression) -> Expression:
    return x


def _square(x: Expression) -> Expression:
    return Power(x, Constant(2))


def _count_nonzero(x: Expression) -> Expression:
    return (
        Constant(int(x.value != 0)) if isinstance(x, Constant) else Symbol("[x ≠ 0]", r"[x \ne 0]", "(x != 0)")
    )


def _name_length(p: float) -> Symbol:
    if math.isinf(p):
        return Symbol("‖x‖∞", r"\lVert x \rVert_\infty")
    return Symbol(f"‖x‖{f'{p:g}'.translate(_SUBSCRIPTS)}", rf"\lVert x \rVert_{{{p:g}}}")


_SUBSCRIPTS = str.maketrans("0123456789", "₀₁₂₃₄₅₆₇₈₉")


def _count(number: int) -> str:
    return f"{number:,} value{'' if number == 1 else 's'}"


def _enumerate(words: Sequence[str]) -> str:
    return " and ".join([", ".join(words[:-1]), words[-1]] if len(words) > 1 else words)


def _is_beyond(square: float, root: float) -> bool:
    """Whether a square is out of float64's range where its root is not."""
    return not math.isfinite(square) or (square < sys.float_info.min and root > 0.0)


def _is_lost(told: float, number: Fraction) -> bool:
    """Whether float64 holds too little of a number to tell it."""
    if not math.isfinite(told):
        return True
    return abs(told) < sys.float_info.min and abs(Fraction(told) - number) > abs(number) / 2**20
