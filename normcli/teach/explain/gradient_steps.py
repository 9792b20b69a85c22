"""The steps from the values of a group to dx: the derivatives of a loss by the chain rule, in numbers."""

from __future__ import annotations

import contextlib
import functools
import math
from fractions import Fraction
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np

from normcli.norms.rules import ZeroRule
from normcli.numerics.deciding import PRECISIONS
from normcli.numerics.elements.activation import Activation
from normcli.numerics.rounding import widen
from normcli.teach.explain.story import (
    BEYOND,
    SIGMA,
    SYMBOLS,
    LazyTerms,
    NoNumberError,
    StoryStep,
    enumerate_words,
    name_length,
)
from normcli.teach.explain.surrounding_steps import list_activation, name_factor, name_gate
from normcli.teach.explain.value_steps import StepList, name_group
from normcli.teach.formulas.chain_rule import Chain, name_slope
from normcli.teach.formulas.definitions import FACTOR, UNGATED
from normcli.teach.formulas.derivative import make_product
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
    rename,
    substitute,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from numpy.typing import NDArray

    from normcli.teach.explain.measured_group import Outcome
    from normcli.teach.formulas.chain_rule import Link
    from normcli.teach.formulas.expression import Expression

WORDS = {
    "mean": "the mean", "var": "the variance", "√var": "its root", "ms": "the mean square", "√ms": "its root",
    "‖x‖": "the length", "Σx²": "the sum of squares", "base": "the base of the power", "divisor": "the divisor",
    "x̂": "x̂", "y": "y", "norm(x)": "the norm's result", "x": "the product",
}  # fmt: skip
"""Name in a definition → its words in sentences."""

_DX = Symbol("dx", "dx")
_SLOPE = Symbol("act′(z)")
_DIGITS = PRECISIONS["float64"].bits


class BackwardSteps(StepList):
    """A builder of a backward story: steps from a group's values to the divisor, then back to dx."""

    chain: Chain

    def build(self) -> tuple[StoryStep, ...]:
        """Return the steps of the whole group, then those of each value that the story shows."""
        self._introduce()
        ready, outcomes = False, self.group.outcomes
        with contextlib.suppress(NoNumberError):
            self._require_finite()
            self._require_finite_gradients()
            self.chain = self._measure()
            if len(outcomes) == 1:
                self._lead_to_norm(outcomes[0])
            self._go_back()
            ready = True
        for outcome in outcomes:
            own = self._take(outcome) if ready else {}
            with contextlib.suppress(NoNumberError):
                if own and len(outcomes) > 1:
                    self._lead_to_norm(outcome)
                self._differentiate(outcome, own)
            self._add_dx(outcome)
            with contextlib.suppress(NoNumberError):
                self._share_out(outcome, own)
        return tuple(self.steps)

    def _require_finite_gradients(self) -> None:
        name = name_group(self.group.name)
        for what, values in {"dy": self.group.gradients, **self.group.parameters}.items():
            if not self.running and not np.isfinite(widen(np.asarray(values))).all():
                self._stop(
                    StoryStep("not finite", f"{name} has a {what} that is not finite: there is no derivative.")
                )

    def _measure(self) -> Chain:
        """Add the steps up to the divisor; return the formulas in the exact numbers of the group."""
        _, divisor = self.find_centre_and_divisor()
        assert divisor is not None  # of every norm that has a derivative
        is_fixed = self.replace_zero(divisor) is not divisor
        if is_fixed and self.spec.zero_rule is not ZeroRule.ONE:
            self._stop(StoryStep("zero", "There is no derivative by values that 0 stands for."))
        group, dy = self.group, self.group.gradients
        assert dy is not None
        place = None if group.gate is None else "behind" if group.gate.times is None else "before"
        found = {"eps": self.spec.eps or 0.0, **group.statistics}
        known = {name: Fraction(number) for name, number in found.items() if math.isfinite(number)}
        arrays = {"x": group.values.reshape(-1), "dy": dy.reshape(-1), **group.parameters, **self._list_gates()}
        make = self._choose_chain(known)
        try:
            return make(self.plan, arrays, known, given=self.running, fixed=is_fixed, gate=place)
        except ArithmeticError:
            self._stop(StoryStep("not finite", "The numbers of the derivative are beyond float64."))

    def _list_gates(self) -> Mapping[str, NDArray[Any]]:
        """Return act(z) and act′(z) of each value by name, and x before a gate; empty without a gate."""
        gate = self.group.gate
        if gate is None:
            return {}
        factors: dict[str, NDArray[Any]] = {} if gate.times is None else {UNGATED.text: gate.times}
        for name, is_slope in ((FACTOR.text, False), (_SLOPE.text, True)):
            (hi, lo), _ = gate._replace(times=None, is_slope=is_slope).evaluate(_DIGITS).bound()
            if not np.isfinite(hi).all():
                whose = name_group(self.group.name)
                sentence = f"{whose} has a gate that is not finite: there is no derivative."
                self._stop(StoryStep("not finite", sentence))
            parts = zip(hi.tolist(), lo.tolist(), strict=True)
            factors[name] = np.array([Fraction(a) + Fraction(b) for a, b in parts], object)
        return factors

    def _choose_chain(self, known: dict[str, Fraction]) -> Callable[..., Chain]:
        """Return the class of the group's formulas."""
        return Chain

    # -- back from the divisor

    def _go_back(self) -> None:
        """Add the derivative of the loss by each name that all values share, from divisor to mean.

        Their exact numbers join those of the chain.
        """
        needed = self.chain.needed
        for link in self.chain.links:
            words = WORDS[link.name]
            if link.formula is None:
                floored = any(isinstance(each.formula, Maximum) for each in self.chain.shared)
                why = ", as eps is the larger" if floored and self.spec.eps else ""
                self.steps.append(StoryStep("slope", f"The loss does not change with {words}{why}."))
            elif link.name in needed:
                through = enumerate_words(
                    ["every value" if n in {"y", *self.chain.between} else WORDS[n] for n in link.through]
                )
                step = StoryStep("slope", f"How the loss changes with {words}: through {through}.")
                self.chain.numbers[name_slope(link.name)] = self._add_link(step, link)

    def _lead_to_norm(self, outcome: Outcome) -> None:
        """Add, for one value, steps on its gate, and the derivatives by the norm's result and by x̂."""
        if outcome.gate is not None:
            self.steps += list_activation(outcome.gate, outcome)
        for name in reversed(self.chain.between):
            link = self.chain.link(name)
            through = WORDS[link.through[0]]
            sentence = f"How the loss changes with {WORDS[name]} of the value: through {through}."
            self._add_link(StoryStep(name, sentence, outcome=outcome), link, self._take(outcome))

    def _differentiate(self, outcome: Outcome, own: dict[str, Constant]) -> None:
        """Add the steps to dx of one value, with the numbers `own`, which the derivative by a product joins."""
        if not own:
            return
        link = self.chain.link("x")
        through = enumerate_words(["itself", *(WORDS[name] for name in link.through[1:])])
        step = StoryStep("dx", f"How the loss changes with the value: through {through}.", _DX, outcome=outcome)
        if UNGATED.text in own:
            sentence = f"How the loss changes with the product: through {through}."
            by_product = StoryStep("product", sentence, outcome=outcome)
            own[name_slope("x")] = self._add_link(by_product, link, own)
            link = self.chain.link(UNGATED.text)
            sentence = "How the loss changes with the value before the gate: through the product."
            step = step._replace(sentence=sentence)
        self._add_link(step, link, own)

    def _share_out(self, outcome: Outcome, own: Mapping[str, Constant]) -> None:
        """Add steps for what one value adds to dgamma, dbeta and dgate, which are sums over several values."""
        if not own:
            return
        gate = self.group.gate
        for name in self.group.parameters:
            by = "" if gate is None or gate.times is not None else f" · {name_factor(gate)}"
            of = by if name == "beta" else f"{by} · x̂"
            sentence = f"What the value adds to d{name}, which is Σ dy{of}{self._name_spread()}."
            self._add_part(name, rf"\{name}", sentence, self.chain.link(name), outcome, own)
        if gate is not None:
            link = self.chain.link(FACTOR.text)
            through = "the norm's result" if gate.times is None else "the product"
            if gate.activation is not Activation.NONE:
                link = link._replace(formula=make_product(link.formula, _SLOPE))
                through = f"the activation and {through}"
            sentence = f"What the value adds to dgate: through {through}."
            self._add_part("gate", r"\mathrm{gate}", sentence, link, outcome, own)

    def _add_part(
        self, name: str, latex: str, sentence: str, link: Link, outcome: Outcome, own: Mapping[str, Constant]
    ) -> None:
        symbol = Symbol(f"its part of d{name}", rf"\mathrm{{its\ part\ of\ d}}{latex}")
        self._add_link(StoryStep(f"d{name}", sentence, symbol, outcome=outcome), link, own)

    def _name_spread(self) -> str:
        """Return the axes that dgamma and dbeta are sums over, for a sentence: ` over n and h`; "" for none."""
        grid, parameters = self.plan.grid, self.plan.parameters
        along = [grid.layout.name(axis) for axis in range(len(grid.shape)) if axis not in parameters.axes]
        return f" over {enumerate_words(along)}" if along else ""

    def _add_dx(self, outcome: Outcome) -> None:
        """Add dx in the output's dtype."""
        self._add_rounded(outcome, _DX, math.nan if outcome.dx is None else outcome.dx)

    # -- numbers

    def _take(self, outcome: Outcome) -> dict[str, Constant]:
        """Return the numbers of one value by name; empty if one of them, such as gamma, is not finite."""
        own = self.chain.take(outcome.place)
        return self.chain.complete(own) if all(math.isfinite(number.value) for number in own.values()) else {}

    def _add_link(
        self, step: StoryStep, link: Link, own: Mapping[str, Constant] = MappingProxyType({})
    ) -> Constant:
        """Add a step with the derivative of the loss by a name such as `var`, and return its exact value.

        If a number is beyond float64, the step says so, and `NoNumberError` is raised.

        Parameters
        ----------
        step : StoryStep
            The step with name and sentence; formula, symbol and arithmetic are added here.
        link : Link
            The derivative; its formula is not None.
        own : mapping of str to Constant, optional
            The numbers of one value by name; without it, the derivative is one that all values share.
        """
        assert link.formula is not None
        try:
            exact = self.chain.work_out(link.formula, own)
            shown = self._show(link.formula, own)
            worked = self._work(shown)
        except ArithmeticError:
            self._stop(step._replace(sentence=f"{step.sentence} {BEYOND}"))
        formula = rename(link.formula, self._symbols)
        symbol = step.symbol or self._symbols[name_slope(link.name)]
        chain = [shown, *([] if worked == shown else [worked])]
        self._add(step._replace(symbol=symbol, formula=formula), *chain, value=exact)
        return Constant(exact)

    @functools.cached_property
    def _symbols(self) -> Mapping[str, Symbol]:
        """Name → its symbol in formulas, for all names and for the derivatives with respect to them."""
        symbols = dict(SYMBOLS)
        if self.spec.p is not None:
            symbols |= dict.fromkeys(("‖x‖", "norm"), name_length(self.spec.p))
        if self.spec.rows is not None:
            symbols["divisor"] = SIGMA
        if self.group.gate is not None:
            symbols |= name_gate(self.group.gate, FACTOR.text, _SLOPE.text)
        slopes = {
            name_slope(name): Symbol(f"∂L/∂{s.text}", rf"\frac{{\partial L}}{{\partial {s.latex}}}")
            for name, s in symbols.items()
        }
        return {**slopes, **symbols}

    def _show(self, expression: Expression, own: Mapping[str, Constant]) -> Expression:
        """Return an expression with rounded numbers for its names; `own` has one value's exact numbers."""
        names = {name: self._round_off(number) for name, number in {**self.chain.numbers, **own}.items()}

        def settle(worked: Expression) -> Constant:
            return self._round_off(Constant(self.chain.work_out(worked, own)))

        return substitute(expression, names, self._show_sum, settle)

    def _show_sum(self, each: Expression) -> Expression:
        """Return the sum of a term over the group in rounded numbers; for a long group with its total."""
        chain = self.chain
        terms = LazyTerms(chain.count, lambda place: self._show(each, chain.complete(chain.take(place))))
        if len(terms) <= MOST_TERMS:
            return Sum(tuple(terms))
        shared = {name: self._round_off(number) for name, number in chain.numbers.items()}
        names = shared | {name: SYMBOLS[name] for name in chain.arrays}
        total = Constant(float(chain.work_out(Sum((), None, each))), exact=False)
        return Sum(terms, total, substitute(chain.unfold(each), names, self._show_sum))

    def _round_off(self, number: Constant) -> Constant:
        """Return an exact number rounded for a step: the nearest double, or an integer."""
        if not isinstance(number.value, Fraction):
            return number
        rounded = float(number.value)
        is_exact = Fraction(repr(rounded)) == number.value
        whole = is_exact and self.whole_numbers and rounded.is_integer()
        return Constant(int(rounded) if whole else rounded, is_exact)

    def _work(self, expression: Expression) -> Expression:
        """Return an expression in which each operand of a sum or a difference is calculated."""
        match expression:
            case Sum(terms, None) if len(terms) > 1 and not all(isinstance(term, Constant) for term in terms):
                return Sum(tuple(self._round(evaluate(term).number, term) for term in terms))
            case Difference(left, right) if not isinstance(left, Constant):
                return Difference(*(self._round(evaluate(part).number, part) for part in (left, right)))
            case Single() | BinaryOperation():
                return rebuild(expression, self._work)
        return expression
