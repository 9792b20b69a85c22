"""The steps of a story that lead to the centre and the divisor of a group."""

from __future__ import annotations

import contextlib
import functools
import math
import sys
from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np

from normcli.norms.divisors import ORDER_STATISTICS, Measurement
from normcli.norms.rules import Centre, EpsMode, ZeroRule
from normcli.numerics.statistics.ranks import find_shares
from normcli.teach.explain.iteration_steps import MatrixSteps
from normcli.teach.explain.story import (
    SYMBOLS,
    NoNumberError,
    StoryStep,
    X,
    name_length,
)
from normcli.teach.formulas.definitions import combine, define_base, join_eps, make_power, make_root
from normcli.teach.formulas.expression import (
    MOST_TERMS,
    Absolute,
    Constant,
    Difference,
    Expression,
    Maximum,
    Minimum,
    Power,
    Product,
    Quotient,
    Root,
    Sum,
    Symbol,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

    from normcli.norms.divisors import OrderStatistic
    from normcli.teach.explain.story import MakeTerm

FEW = 8
"""The most values whose sum is written out again in the step that divides it."""

_EPS_SENTENCES = {
    EpsMode.INSIDE: "eps is added, inside the root.",
    EpsMode.SQUARE_FLOOR: "At least eps, inside the root.",
    EpsMode.OUTSIDE: "The divisor: eps is added, outside the root.",
    EpsMode.FLOOR: "The divisor: at least eps.",
}


class StatisticSteps(MatrixSteps):
    """A builder of the steps from a group's values to its centre and its divisor."""

    def find_centre_and_divisor(self) -> tuple[Constant | None, Constant | None]:
        """Add the steps to the centre and the divisor; return both, None for one that the norm lacks."""
        norm = self.plan.norm
        match norm.divisor.measurement:
            case Measurement.EXTREMES | Measurement.QUANTILES:
                return self._find_by_order()
            case Measurement.LENGTH:
                return None, self._find_length()
            case Measurement.WINDOW:
                return None, self._find_power()
            case Measurement.SINGULAR_VALUE:
                return None, self._find_singular_value()
            case Measurement.MOMENTS:
                return self._find_by_moments()

    def _find_by_moments(self) -> tuple[Constant | None, Constant | None]:
        centre, row = self.plan.norm.centre, self.plan.norm.divisor
        is_needed = centre is Centre.MEAN or (row.divides and row.about_mean)
        mean = self._find_mean() if is_needed else None
        middle = None if centre is Centre.NOTHING else mean
        if not row.divides:
            return middle, None
        root = self.group.statistics[row.spread or ""]
        symbols = SYMBOLS[row.square], SYMBOLS[row.root]
        return middle, self._add_root(self._find_mean_square(mean, root), *symbols, root)

    def _find_by_order(self) -> tuple[Constant | None, Constant | None]:
        """Add steps to the quantiles or extremes that centre and divisor are made of, and to their differences.

        Return the numbers of centre and divisor, None for one that the norm lacks.
        """
        norm, found = self.plan.norm, dict[str, Constant]()
        needed: set[object] = {norm.centre.statistic}
        if norm.divisor.divides and norm.divisor.spread is not None:
            needed |= {norm.divisor.spread, *(ORDER_STATISTICS[norm.divisor.spread].combination or ())}
        for row in map(ORDER_STATISTICS.__getitem__, filter(needed.__contains__, norm.statistics)):
            percent = self.plan.find_percents().get(row.name, 0.0)
            sentence = row.sentence.format(count=self.counted, percent=f"{percent:g}")
            step = StoryStep(row.name, sentence, Symbol(row.symbol, row.latex or row.symbol))
            if row.combination is None:
                found[row.name] = self._find_rank(row, step)
            else:
                left, right = found[row.combination.left], found[row.combination.right]
                whole, value = combine(row.combination, left, right), self.group.statistics[row.name]
                found[row.name] = self._add(step, whole, value=value)
        return found.get(norm.centre.value), found.get(norm.divisor.spread or "")

    def _find_rank(self, row: OrderStatistic, step: StoryStep) -> Constant:
        """Add a quantile: the value of a rank, or an interpolation between the values of two ranks."""
        value, count = self.group.statistics[row.name], self.group.count
        shares = find_shares(self.plan)
        place, part = divmod((count - 1) * shares.parts[shares.names.index(row.name)], shares.of)
        if not part:
            whole = self.group.find_whole_number(place)
            return self._add_value(step, value if whole is None else whole, exact=True)
        if count > MOST_TERMS:
            return self._add_value(step, value)
        low, high = map(Constant, sorted(map(self.group.value, range(count)))[place : place + 2])
        if low == high:
            return self._add_value(step, value, exact=True)
        share: Expression = Constant(part / shares.of)
        if Fraction(part / shares.of) != Fraction(part, shares.of):
            share = Quotient(Constant(part), Constant(shares.of))
        between = Sum((low, Product(share, Difference(high, low))))
        return self._add(step._replace(sentence=f"{step.sentence} It lies between two."), between, value=value)

    def _find_mean(self) -> Constant:
        mean, count = self.group.statistics["mean"], self.group.count
        step = StoryStep("mean", "The mean.", SYMBOLS["mean"])
        if self.running:
            return self._add_given(step, mean, "there is no arithmetic to show")
        total = StoryStep("sum", f"The sum of the {self.counted}.", Symbol("Σx", r"\sum x"))
        top: Expression | None = self._add_sum(total, _itself, Product(Constant(mean), self.n))
        if top is None:
            return self._add_value(step, mean)
        if count <= FEW:
            top = Sum(tuple(self._list_terms(_itself)))
        step = step._replace(sentence=f"The mean: the sum, divided by the number of values, {count}.")
        return self._add(step, Quotient(top, self.n), value=mean)

    def _add_given(self, step: StoryStep, value: float, effect: str) -> Constant:
        """Add a running mean or variance; if it is not finite, the sentence ends with `effect`."""
        if not math.isfinite(value):
            kind = "NaN" if math.isnan(value) else "infinite" if value > 0 else "negative infinite"
            self._stop(step._replace(sentence=f"The {step.name} that was given is {kind}: {effect}."))
        sentence = f"The running {step.name}, which was given."
        return self._add_value(step._replace(sentence=sentence), value, exact=True)

    def _find_mean_square(self, centre: Constant | None, root: float) -> Constant | None:
        """Add the variance, or without a centre the mean square; return None if only its root is a float64."""
        row, ddof = self.plan.norm.divisor, 0 if centre is None else self.spec.ddof
        square, freedom = self.group.statistics[row.square], self.group.count - ddof
        symbol = SYMBOLS[row.square]
        if self.running:
            effect = "divided by its root, all that is finite becomes 0"
            effect = "so is every normalized value" if math.isnan(square) else effect
            return self._add_given(StoryStep("variance", "", symbol), square, effect)
        if freedom <= 0:
            counted = f"n − ddof = {self.group.count} − {ddof} = {freedom}"
            self._stop(StoryStep(row.size, f"The variance has the divisor {counted}: it is NaN."))
        if _is_beyond(square, root):
            return None
        sentence = f"The {row.size}: the sum of squares, divided by their number, {self.group.count}."
        step = StoryStep(row.size, sentence, symbol)
        total = self._add_squares(Product(Constant(square), Constant(freedom)), centre)
        if total is None:
            return self._add_value(step, square)
        if not ddof:
            return self._add(step, Quotient(total, self.n), value=square)
        step = step._replace(sentence=f"{step.sentence.removesuffix('.')}, less ddof {ddof}.")
        return self._add(step, Quotient(total, Difference(self.n, Constant(ddof))), value=square)

    def _add_squares(self, known: Expression, centre: Constant | None = None) -> Constant | None:
        """Add Σ(x − centre)², or Σx² without a centre; return its number, None if it exceeds float64.

        `known` is an expression for the sum in terms of the statistics, which is used if the group is too long.
        """
        if centre is None:
            step = StoryStep("squares", "The squares, and their sum.", SYMBOLS["Σx²"])
            return self._add_sum(step, _square, known)
        sentence, value = "The squared deviations from the mean, and their sum.", None
        step = StoryStep("squares", sentence, Symbol("Σ(x − μ)²", r"\sum (x - \mu)^2"))
        if self.group.count <= MOST_TERMS:
            values = [Fraction(self.group.value(place)) for place in range(self.group.count)]
            value = sum(x * x for x in values) - sum(values, Fraction(0)) ** 2 / len(values)
        return self._add_sum(step, lambda x: _square(Difference(x, centre)), known, value)

    def _find_length(self) -> Constant:
        """Add the steps to an ℓp length and to the divisor, and return the divisor."""
        p, length = self.spec.p, self.group.statistics["norm"]
        assert p is not None
        symbol, known = name_length(p), Constant(length)
        step = StoryStep("length", "The length.", symbol)
        if not math.isfinite(length):
            self._stop(step._replace(sentence="The length is beyond float64."))
        if p == 2.0:
            is_beyond = _is_beyond(length * length, length)
            square = None if is_beyond else self._add_squares(Product(known, known))
            return self._add_root(square, SYMBOLS["Σx²"], symbol, length)
        if math.isinf(p):
            which, fold = ("largest", Maximum) if p > 0.0 else ("smallest", Minimum)
            step = step._replace(sentence=f"The length: the {which} value, without its sign.")
            found = self._add(step, fold(*self._make_terms(Absolute, known), Absolute(X)), value=length)
        else:
            found = self._find_power_length(p, step, known)
        return self._add_eps(found, symbol)

    def _find_power_length(self, p: float, step: StoryStep, length: Constant) -> Constant:
        """Add an ℓp length: the p-th root of a sum of powers, or for p = 0 and 1 the sum itself."""
        if p in _SUMMED_LENGTHS:
            sentence, make = _SUMMED_LENGTHS[p]
            return self._add_sum(step._replace(sentence=sentence), make, length) or length
        powers = StoryStep(
            "powers",
            f"The sum of the values without their signs to the power of p = {p:g}.",
            Symbol(f"Σ|x|^{p:g}", rf"\sum \lvert x \rvert^{{{p:g}}}"),
        )
        make, known = functools.partial(make_power, p=p), make_power(length, p)
        total = self._add_sum(powers, make, known)
        if total is None:
            return self._add_value(step, float(length.value))
        step = step._replace(sentence="The length: the root of that, with the same p.")
        return self._add(step, make_root(total, p), value=length.value)

    def _find_power(self) -> Constant:
        """Add the divisor of a sliding window: (k + α · Σx² / size) to the power of the exponent."""
        window, statistics = self.spec.window, self.group.statistics
        assert window is not None
        step = StoryStep("divisor", "The divisor: that to the power of the exponent.", SYMBOLS["divisor"])
        total = self._add_squares(Product(Constant(statistics["ms"]), Constant(window.size)))
        if total is None:
            if statistics["rstd"] == 0 or not math.isfinite(1.0 / statistics["rstd"]):
                raise NoNumberError
            return self._add_value(step._replace(sentence="The divisor."), 1.0 / statistics["rstd"])
        size = Constant(window.divisor) if window.divisor != 1 else None
        sentence = f"The base of the power: k + α · Σx²{' / size' if size else ''}."
        formula = define_base(Constant(window.k), Constant(window.alpha), total, size)
        base = self._add(StoryStep("base", sentence, SYMBOLS["base"]), formula)
        return self._add(step, Power(base, Constant(window.exponent)))

    # -- eps and the root

    def _add_root(self, square: Constant | None, of_square: Symbol, of_root: Symbol, root: float) -> Constant:
        """Add steps for eps and for the square root, in the norm's order, and return the number of the divisor.

        Parameters
        ----------
        square : Constant or None
            The number under the root; None if it exceeds float64.
        of_square, of_root : Symbol
            The symbols of the square and its root.
        root : float
            The root, without eps.
        """
        if not math.isfinite(root):
            self._stop(StoryStep("root", "The divisor is beyond float64."))
        step = StoryStep("root", "Its root.", of_root)
        if square is None:
            beyond = "The squares leave the range of float64; their root does not: it is rounded once."
            size = self._add_value(step._replace(sentence=beyond), root)
        if not self.spec.eps or self.spec.eps_mode not in (EpsMode.INSIDE, EpsMode.SQUARE_FLOOR):
            if square is not None:
                size = self._add(step, Root(square), value=root)
            return self._add_eps(size, of_root)
        under = self._join_eps(Power(size, Constant(2)) if square is None else square)
        if square is not None:
            with contextlib.suppress(NoNumberError):  # the root of a sum beyond float64 is in range again
                under = self._add_eps(square, of_square)
        return self._add(
            step._replace(sentence="The divisor: the root of that.", symbol=SYMBOLS["divisor"]), Root(under)
        )

    def _add_eps(self, size: Constant, symbol: Symbol) -> Constant:
        """Add size + eps or max(size, eps), and return it; without eps, return the size and add no step."""
        mode = self.spec.eps_mode
        if not self.spec.eps or mode is None:
            return size
        joined = Symbol(f"{symbol.text} + ε", rf"{symbol.latex} + \varepsilon")
        if mode in (EpsMode.FLOOR, EpsMode.SQUARE_FLOOR):
            joined = Symbol(f"max({symbol.text}, ε)", rf"\max({symbol.latex}, \varepsilon)")
        return self._add(StoryStep("eps", _EPS_SENTENCES[mode], joined), self._join_eps(size))

    def _join_eps(self, size: Expression) -> Expression:
        return join_eps(self.spec.eps_mode, size, Constant(self.spec.eps or 0.0))

    def replace_zero(self, divisor: Constant) -> Constant:
        """Return the divisor unchanged unless it is 0, or so small that the convention counts it as 0.

        In that case a step is added. If the norm puts 1 in place of 0, 1 is returned; if it divides by 0, so
        that values become NaN or infinite, `NoNumberError` is raised.
        """
        small = None if self.running else self._find_how_small()
        if divisor.value != 0 and small is None:
            return divisor
        if self.running or self.spec.window is not None or self.spec.zero_rule is ZeroRule.NAN:
            why = ", by which nothing can be divided"
            if self.spec.iteration is not None:
                why = ": what is not 0 is infinite over it, and 0 is NaN"
            self._stop(StoryStep("zero", f"The divisor is {small or 0}{why}."))
        why, result = "" if small or self.spec.iteration is not None else ", as all values are", ""
        if self.plan.norm.centre is not Centre.NOTHING:
            why, result = "", ", and the values are only centred"
        self.steps.append(StoryStep("zero", f"The divisor is {small or 0}{why}: it counts as 1{result}."))
        return Constant(1)

    def _find_how_small(self) -> str | None:
        """Return the convention's bound, in words, if this divisor is below it and counts as 0; or None."""
        rule = self.spec.flat_rule
        if rule is None:
            return None
        from normcli.numerics.statistics.divisor import find_flat

        statistics = {name: np.asarray(value) for name, value in self.group.statistics.items()}
        return rule.value if find_flat(self.plan, statistics, self.group.count) else None


def _itself(x: Expression) -> Expression:
    return x


_square = functools.partial(make_power, p=2.0)


def _count_nonzero(x: Expression) -> Expression:
    if isinstance(x, Constant):
        return Constant(int(x.value != 0))
    return Symbol("[x ≠ 0]", r"[x \ne 0]", "(x != 0)")


_SUMMED_LENGTHS: Mapping[float, tuple[str, MakeTerm]] = {
    0.0: ("The length: how many values are not 0. Each of them counts 1.", _count_nonzero),
    1.0: ("The length: the sum of the values without their signs.", Absolute),
}
"""Lengths that are sums, by p: a sentence, and the function from a value to its term."""


def _is_beyond(square: float, root: float) -> bool:
    """Whether a square exceeds float64 though its root does not."""
    return not math.isfinite(square) or (square < sys.float_info.min and root > 0.0)
