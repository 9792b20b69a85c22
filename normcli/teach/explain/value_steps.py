"""The steps of a story: the arithmetic of a group and of its values in numbers, each step with a sentence."""

from __future__ import annotations

import contextlib
import math
from typing import TYPE_CHECKING

from normcli.norms.grid import ONLY_GROUP
from normcli.teach.explain.statistic_steps import StatisticSteps
from normcli.teach.explain.story import BEYOND, SYMBOLS, NoNumberError, StoryStep, enumerate_words
from normcli.teach.explain.surrounding_steps import list_activation, name_factor
from normcli.teach.formulas.definitions import scale_and_shift
from normcli.teach.formulas.expression import Constant, Difference, Product, Quotient, Symbol
from normcli.teach.value_index import format_index

if TYPE_CHECKING:
    from normcli.numerics.elements.gate import Gated
    from normcli.teach.explain.measured_group import Outcome

_X_HAT, _Y = SYMBOLS["x̂"], SYMBOLS["y"]


def name_group(name: str) -> str:
    """Return the words for a group at the beginning of a sentence: `The group c=1`, `The only group`."""
    return "The only group" if name == ONLY_GROUP else f"The group {name}"


class StepList(StatisticSteps):
    """A builder of the steps from a group's values to its normalized values."""

    def build(self) -> tuple[StoryStep, ...]:
        """Return the steps of the whole group, then those of each value that the story shows."""
        self._introduce()
        found = None
        with contextlib.suppress(NoNumberError):
            self._require_finite()
            centre, divisor = self.find_centre_and_divisor()
            found = centre, None if divisor is None else self.replace_zero(divisor)
        for outcome in self.group.outcomes:
            if found is not None:
                with contextlib.suppress(NoNumberError):
                    self._normalize(outcome, *found)
            again = self.spec.rounds_before_gamma and (outcome.parameters or outcome.gate is not None)
            self._add_rounded(outcome, _Y, outcome.normalized, "again" if again else "once")
        return tuple(self.steps)

    def _introduce(self) -> None:
        group, plan = self.group, self.plan
        if self.spec.window is not None:
            self.steps.append(StoryStep("group", self._describe_window()))
            return
        sentence = f"{name_group(group.name)} holds {self.counted}"
        along = enumerate_words([plan.grid.layout.name(axis) for axis in plan.grid.axes])
        if group.count > 1 and along:
            sentence += f": they differ along {along}"
        if group.count > 1 and plan.grid.groups is not None:
            sentence += ", within the channels of the group"
        given = " Its mean and variance were given, and are not measured." if self.running else ""
        self.steps.append(StoryStep("group", f"{sentence}.{given}"))

    def _describe_window(self) -> str:
        grid, window, held = self.plan.grid, self.spec.window, self.group.count
        assert window is not None
        at, axis = self.group.outcomes[0].index, grid.axes[0]
        name, first = grid.layout.name(axis), max(0, at[axis] - window.before)
        where = f"{name}={first}" if held == 1 else f"{name}={first} … {name}={first + held - 1}"
        outside = grid.group_size - held
        cut = f"; the other {outside} would lie outside" if outside else ""
        return f"The window of {format_index(at, grid.layout)} holds {self.counted}, at {where}{cut}."

    def _require_finite(self) -> None:
        found = {degeneracy.kind: degeneracy.consequence for degeneracy in self.group.degeneracies}
        if self.running or not found.keys() & {"nan", "infinite"}:
            return
        for consequence in found.values():
            self.steps.append(StoryStep("not finite", f"{name_group(self.group.name)} {consequence}."))
        raise NoNumberError

    def _normalize(self, outcome: Outcome, centre: Constant | None, divisor: Constant | None) -> None:
        """Add the steps from one value to x̂ and then to y, up to the first number that is not finite."""
        scaled, value = outcome.scaled, Constant(outcome.value)
        if not math.isfinite(outcome.value) or (scaled is not None and not math.isfinite(scaled)):
            return
        less = "" if centre is None else f"less the {self.plan.norm.centre.name.lower()}"
        over = "" if divisor is None else "over the divisor"
        done = f"{less}, {over}" if less and over else less or over or "as it is"
        step = StoryStep("quotient", f"The value {done}.", _X_HAT, outcome=outcome)
        top = value if centre is None else Difference(value, centre)
        y = self._add(step, top if divisor is None else Quotient(top, divisor), value=scaled)
        if outcome.parameters:
            y = self._scale(outcome, y)
        if outcome.gate is not None:
            self._multiply(outcome, outcome.gate, y)

    def _round_before(self, outcome: Outcome, number: Constant, symbol: Symbol, what: str) -> Constant:
        """Return x̂ or y, rounded to the output's dtype if the convention rounds before gamma or a gate.

        Rounding adds a step. If the rounded number is not finite, the step says so and `NoNumberError` is
        raised.

        Parameters
        ----------
        outcome : Outcome
            The value that the step is about.
        number : Constant
        symbol : Symbol
            The number's symbol: x̂ or y.
        what : str
            What comes next, for the step's sentence: `gamma` or `the gate`.
        """
        if not self.spec.rounds_before_gamma:
            return number
        dtype = self.group.dtype
        step = StoryStep(
            "round", f"This convention rounds it to {dtype.name} before {what}.", symbol, outcome=outcome
        )
        rounded = float(dtype.type(number.value))
        if not math.isfinite(rounded):
            self._stop(step._replace(sentence=f"{step.sentence} {BEYOND}"))
        return self._add_value(step, rounded, exact=True)

    def _scale(self, outcome: Outcome, x_hat: Constant) -> Constant:
        """Add the step from x̂ to gamma · x̂ + beta; return its number.

        If gamma or beta is not finite, `NoNumberError` is raised without a step.
        """
        if not all(map(math.isfinite, outcome.parameters.values())):
            raise NoNumberError
        dtype, offset = self.group.dtype, self.spec.gamma_offset
        x_hat = self._round_before(outcome, x_hat, _X_HAT, "gamma")
        numbers = {name: Constant(number) for name, number in outcome.parameters.items()}
        words = {"gamma": f"times {f'{offset} + ' if offset else ''}gamma", "beta": "plus beta"}
        is_last = outcome.gate is None and not self.spec.rounds_before_gamma
        wide = outcome.normalized if dtype.itemsize > 4 and is_last else None
        sentence = f"{', '.join(words[name] for name in numbers).capitalize()}."
        affine = scale_and_shift(x_hat, numbers.get("gamma"), numbers.get("beta"), offset)
        return self._add(StoryStep("affine", sentence, _Y, outcome=outcome), affine, value=wide)

    def _multiply(self, outcome: Outcome, gate: Gated, y: Constant) -> None:
        """Add the steps of the gate, and the product of y and its activation."""
        y = self._round_before(outcome, y, _Y if outcome.parameters else _X_HAT, "the gate")
        self.steps += list_activation(gate, outcome)
        step = StoryStep("gated", f"The norm times {name_factor(gate)}.", _Y, outcome=outcome)
        factor = self.steps[-1].value
        if factor is not None:
            self._add(step, Product(y, factor))

    def _add_rounded(self, outcome: Outcome, symbol: Symbol, number: float, times: str = "once") -> None:
        """Add a value's last step: the result in the output's dtype, in words alone if it is not finite.

        `times` says how often the number was rounded, such as "once".
        """
        sentence = f"The result, rounded {times}, to {self.group.dtype.name}"
        if math.isfinite(number):
            step = StoryStep("result", f"{sentence}.", symbol, outcome=outcome)
            self._add_value(step, number, exact=True)
        else:
            name = "NaN" if math.isnan(number) else f"{number}"
            self.steps.append(StoryStep("result", f"{sentence}, is {name}.", outcome=outcome))
