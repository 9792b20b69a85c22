"""The steps from the values of a group to dx: how a loss changes with each, by the chain rule, in numbers."""

from __future__ import annotations

import contextlib
import functools
import math
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np

from normcli.norms.rules import ZeroRule
from normcli.numerics.rounding import widen
from normcli.teach.explain.story import (
    ABOUT_MEAN,
    ABOUT_ZERO,
    SIGMA,
    LazyTerms,
    NoNumberError,
    StoryStep,
    X,
    enumerate_words,
    name_length,
)
from normcli.teach.explain.value_steps import StepList, name_group
from normcli.teach.formulas.chain_rule import Chain, name_slope, rename, substitute
from normcli.teach.formulas.exact_numbers import Numbers
from normcli.teach.formulas.expression import (
    MOST_TERMS,
    BinaryOperation,
    Constant,
    Difference,
    Maximum,
    Single,
    Sum,
    Symbol,
    evaluate,
    rebuild,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    from normcli.teach.explain.measured_group import Outcome
    from normcli.teach.formulas.chain_rule import Link
    from normcli.teach.formulas.expression import Expression

WORDS = {
    "mean": "the mean", "var": "the variance", "√var": "its root", "ms": "the mean square", "√ms": "its root",
    "‖x‖": "the length", "Σx²": "the sum of squares", "base": "the base of the power", "divisor": "the divisor",
    "x̂": "x̂", "y": "y",
}  # fmt: skip
"""The names of the definitions' symbols in sentences."""

SYMBOLS = {
    "mean": Symbol("μ", r"\mu"), "var": ABOUT_MEAN.square, "√var": ABOUT_MEAN.root, "std": ABOUT_MEAN.root,
    "ms": ABOUT_ZERO.square, "√ms": ABOUT_ZERO.root, "rms": ABOUT_ZERO.root, "Σx²": ABOUT_ZERO.squares,
    "divisor": Symbol("d", "d"), "base": Symbol("base", r"\mathrm{base}"),
    "x": X, "x̂": Symbol("x̂", r"\hat{x}"), "y": Symbol("y", "y"),
    "dy": Symbol("dy", "dy", "dy"), "gamma": Symbol("γ", r"\gamma", "gamma"),
    "beta": Symbol("β", r"\beta", "beta"), "n": Symbol("n", "n"), "eps": Symbol("ε", r"\varepsilon"),
    "k": Symbol("k", "k"), "u": Symbol("u", "u"), "v": Symbol("v", "v"),
    "alpha": Symbol("α", r"\alpha"), "exponent": Symbol("exponent", r"\mathrm{exponent}"),
    "size": Symbol("size", r"\mathrm{size}"), "share": Symbol("share", r"\mathrm{share}", "share"),
}  # fmt: skip
"""The symbols of the definitions in formulas."""

_DX = Symbol("dx", "dx")


class BackwardSteps(StepList):
    """The steps of a group from its values to dx: those to the divisor, and from there back."""

    chain: Chain
    numbers: Numbers
    links: list[Link]

    def build(self) -> tuple[StoryStep, ...]:
        """Return all steps."""
        self._introduce()
        ready, outcomes = False, self.group.outcomes
        with contextlib.suppress(NoNumberError):
            self._require_finite()
            self._require_finite_gradients()
            self._measure()
            if len(outcomes) == 1:
                self._scale_gradient(outcomes[0])
            self._go_back()
            ready = True
        for outcome in outcomes:
            if ready:
                with contextlib.suppress(NoNumberError):
                    if len(outcomes) > 1:
                        self._scale_gradient(outcome)
                    self._differentiate(outcome)
            self._add_dx(outcome)
            if ready:
                with contextlib.suppress(NoNumberError):
                    self._share_out(outcome)
        return tuple(self.steps)

    def _require_finite_gradients(self) -> None:
        dy = self.group.gradients
        assert dy is not None
        if not self.running and not np.isfinite(widen(np.asarray(dy))).all():
            name = name_group(self.group.name)
            self._stop(StoryStep("not finite", f"{name} has a dy that is not finite: there is no derivative."))

    def _measure(self) -> None:
        """Add the steps to the divisor, and put the definitions in numbers."""
        _, divisor = self.find_centre_and_divisor()
        assert divisor is not None  # of every norm that has a derivative
        is_fixed = self.replace_zero(divisor) is not divisor
        if is_fixed and self.spec.zero_rule is not ZeroRule.ONE:
            self._stop(StoryStep("zero", "There is no derivative by values that 0 stands for."))
        group, dy = self.group, self.group.gradients
        assert dy is not None
        self.chain = Chain(self.plan, tuple(group.parameters), given=self.running, fixed=is_fixed)
        known = {"eps": Fraction(self.spec.eps or 0.0)}
        for each in self.chain.shared:
            if each.formula is None:
                name = each.name or ""
                statistic = self.chain.aliases.get(name, name)
                known[statistic] = known[name] = Fraction(group.statistics[statistic])
        arrays = {"x": group.values.reshape(-1), "dy": dy.reshape(-1), **group.parameters}
        self.numbers = self._make_numbers(arrays, known)

    def _make_numbers(self, arrays: Mapping[str, NDArray[Any]], known: Mapping[str, Fraction]) -> Numbers:
        return Numbers(self.chain, arrays, known)

    # -- back from the divisor

    def _go_back(self) -> None:
        """Add how the loss changes with each name that the values share, from the last to the first."""
        self.links = self.chain.link_shared(self.numbers.work_out)
        needed = self.chain.find_needed(self.links, self.numbers.work_out)
        for link in self.links:
            if link.formula is not None and link.name not in needed:
                continue
            words = WORDS[link.name]
            if link.formula is None:
                self.steps.append(
                    StoryStep("slope", f"The loss does not change with {words}{self._say_why(link)}.")
                )
                continue
            through = enumerate_words(["every value" if n in {"y", "x̂"} else WORDS[n] for n in link.through])
            found = self._add_link(
                StoryStep("slope", f"How the loss changes with {words}: through {through}."), link
            )
            self.numbers.shared[name_slope(link.name)] = found

    def _say_why(self, link: Link) -> str:
        """Return why the loss does not change with a name, for the end of a sentence."""
        floored = any(isinstance(each.formula, Maximum) for each in self.chain.shared) and self.spec.eps
        return ", as eps is the larger" if floored else ""

    def _scale_gradient(self, outcome: Outcome) -> None:
        """Add how the loss changes with x̂, where that is multiplied by gamma."""
        if self.chain.scales:
            link = self.chain.link_value("x̂", [], self.numbers.work_out)
            step = StoryStep("x̂", "How the loss changes with x̂ of the value: through y.", outcome=outcome)
            self._add_link(step, link, self.numbers.take(outcome.place))

    def _differentiate(self, outcome: Outcome) -> None:
        """Add how the loss changes with one value."""
        own = self.numbers.take(outcome.place)
        if not all(math.isfinite(number.value) for number in own.values()):
            return
        link = self.chain.link_value("x", self.links, self.numbers.work_out)
        through = enumerate_words(["itself", *(WORDS[name] for name in link.through[1:])])
        step = StoryStep("dx", f"How the loss changes with the value: through {through}.", _DX, outcome=outcome)
        self._add_link(step, link, own)

    def _share_out(self, outcome: Outcome) -> None:
        """Add the terms of dgamma and dbeta that come from one value."""
        own = self.numbers.take(outcome.place)
        if not all(math.isfinite(number.value) for number in own.values()):
            return
        for name in self.group.parameters:
            of = "" if name == "beta" else " · x̂"
            sentence = f"What the value adds to d{name}, which is Σ dy{of}{self._name_spread()}."
            symbol = Symbol(f"its part of d{name}", rf"\mathrm{{its\ part\ of\ d}}\{name}")
            link = self.chain.link_value(name, [], self.numbers.work_out)
            self._add_link(StoryStep(f"d{name}", sentence, symbol, outcome=outcome), link, own)

    def _name_spread(self) -> str:
        """Return over which axes the derivatives by gamma and beta are summed, for a sentence."""
        grid, parameters = self.plan.grid, self.plan.parameters
        along = [grid.layout.name(axis) for axis in range(len(grid.shape)) if axis not in parameters.axes]
        return f" over {enumerate_words(along)}" if along else ""

    def _add_dx(self, outcome: Outcome) -> None:
        """Add dx in the output's dtype."""
        self._add_rounded(outcome, _DX, math.nan if outcome.dx is None else outcome.dx)

    # -- numbers

    def _add_link(self, step: StoryStep, link: Link, own: Mapping[str, Constant] | None = None) -> Constant:
        """Add a derivative, as a formula and in numbers; return its exact number."""
        assert link.formula is not None
        own = dict(own or {})
        if self.chain.scales and own and step.name != "x̂":
            own |= {
                name_slope("x̂"): Constant(self.numbers.work_out(Symbol(name_slope("x̂")), own)),
                "x̂": Constant(self.numbers.work_out(self.chain.scaled, own)),
            }
        try:
            exact = self.numbers.work_out(link.formula, own)
            shown = self._show(link.formula, own)
            worked = self._work(shown)
        except ArithmeticError:
            self._stop(step._replace(sentence=f"{step.sentence} It is beyond float64."))
        formula = rename(link.formula, self._symbols)
        symbol = step.symbol or self._symbols[name_slope(link.name)]
        chain = [shown, *([] if worked == shown else [worked])]
        self._add(step._replace(symbol=symbol, formula=formula), *chain, value=exact)
        return Constant(exact)

    @functools.cached_property
    def _symbols(self) -> Mapping[str, Symbol]:
        """The symbols of all names, and of the derivatives by them, in formulas."""
        symbols = dict(SYMBOLS)
        if self.spec.p is not None:
            symbols |= dict.fromkeys(("‖x‖", "norm"), name_length(self.spec.p))
        if self.spec.rows is not None:
            symbols["divisor"] = SIGMA
        slopes = {
            name_slope(name): Symbol(f"∂L/∂{s.text}", rf"\frac{{\partial L}}{{\partial {s.latex}}}")
            for name, s in symbols.items()
        }
        return {**slopes, **symbols}

    def _show(self, expression: Expression, own: Mapping[str, Constant]) -> Expression:
        """Return an expression with numbers for its names, as they are shown."""
        names = {name: self._round_off(number) for name, number in {**self.numbers.shared, **own}.items()}

        def settle(worked: Expression) -> Constant:
            return self._round_off(Constant(self.numbers.work_out(worked, own)))

        return substitute(expression, names, self._show_sum, settle)

    def _show_sum(self, each: Expression) -> Expression:
        """Return a sum over the group, its terms in numbers."""
        terms = LazyTerms(self.numbers.count, functools.partial(self._show_term, each))
        if len(terms) <= MOST_TERMS:
            return Sum(tuple(terms))
        total = self.numbers.work_out(Sum((), None, each))
        shared = {name: self._round_off(number) for name, number in self.numbers.shared.items()}
        names = shared | {name: SYMBOLS[name] for name in self.numbers.arrays}
        return Sum(
            terms,
            Constant(float(total), exact=False),
            substitute(self.chain.unfold(each), names, self._show_sum),
        )

    def _show_term(self, each: Expression, place: int) -> Expression:
        own = self.numbers.take(place)
        if self.chain.scales:
            gradient = Symbol(name_slope("x̂"))
            own[gradient.text] = Constant(self.numbers.work_out(gradient, own))
        return self._show(each, own)

    def _round_off(self, number: Constant) -> Constant:
        """Return an exact number as it is shown: the nearest double, or a whole number."""
        if not isinstance(number.value, Fraction):
            return number
        rounded = float(number.value)
        is_exact = Fraction(repr(rounded)) == number.value
        whole = is_exact and self.whole_numbers and rounded.is_integer()
        return Constant(int(rounded) if whole else rounded, is_exact)

    def _work(self, expression: Expression) -> Expression:
        """Return an expression with the terms of its sums worked out."""
        match expression:
            case Sum(terms, None) if len(terms) > 1 and not all(isinstance(term, Constant) for term in terms):
                return Sum(tuple(self._round(evaluate(term).number, term) for term in terms))
            case Difference(left, right) if not isinstance(left, Constant):
                return Difference(*(self._round(evaluate(part).number, part) for part in (left, right)))
            case Single() | BinaryOperation():
                return rebuild(expression, self._work)
        return expression
