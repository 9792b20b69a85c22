"""The steps around a norm: the residual that is added to x, and a gate before the norm or behind it."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from normcli.dtypes import is_float
from normcli.numerics.elements.activation import Activation
from normcli.teach.explain.measured_group import get_number, pick_gate
from normcli.teach.explain.story import RESIDUAL, StoryStep, X
from normcli.teach.formulas.expression import Constant, Product, Sum, Symbol
from normcli.tensors.residual import ResidualSum

if TYPE_CHECKING:
    from collections.abc import Iterator

    import numpy as np

    from normcli.numerics.elements.gate import Gated
    from normcli.teach.explain.measured_group import MeasuredGroup, Outcome
    from normcli.tensors.residual import Addends


_SUM = Symbol("x + r", "x + r")


def list_sums(group: MeasuredGroup, addends: Addends) -> Iterator[StoryStep]:
    """Yield a step for each value of a story, which adds the residual to x.

    Parameters
    ----------
    group : MeasuredGroup
        The group of the sum.
    addends : Addends
        x and the residual.
    """
    sentence = f"{_describe(group.values.dtype, addends.kind)} From here on, x is the sum."
    for outcome in group.outcomes:
        numbers = [get_number(part, outcome.index) for part in (addends.values, addends.residual)]
        step = StoryStep(RESIDUAL, sentence, _SUM, outcome=outcome)
        if all(map(math.isfinite, (*numbers, outcome.value))):
            step = step._replace(chain=(Sum(tuple(map(Constant, numbers))),), value=Constant(outcome.value))
        yield step


def _describe(dtype: np.dtype[Any], kind: ResidualSum) -> str:
    """Return a sentence on how the residual is added: exactly, or rounded to the sum's dtype."""
    if kind is ResidualSum.EXACT:
        return "The residual r is added to x exactly: no sum is rounded before the norm."
    if is_float(dtype):
        return f"The residual r is added to x, each sum rounded to {dtype.name}."
    return "The residual r is added to x."


_DEFINITIONS = {
    Activation.SILU: "z / (1 + e⁻ᶻ)",
    Activation.SIGMOID: "1 / (1 + e⁻ᶻ)",
    Activation.GELU: "z · Φ(z)",
    Activation.GELU_TANH: "z / (1 + e⁻ᵗ), t = √(8/π) · (z + 0.044715 z³)",
    Activation.RELU: "max(z, 0)",
    Activation.TANH: "(1 − e⁻²ᶻ) / (1 + e⁻²ᶻ)",
}
"""The activations as formulas; `none` leaves z as it is."""


def name_factor(gate: Gated) -> str:
    """Return the factor that a gate z becomes, as text: `silu(z)`."""
    return "z" if gate.activation is Activation.NONE else f"{gate.activation}(z)"


def name_gate(gate: Gated, factor: str, slope: str) -> dict[str, Symbol]:
    """Return the symbols of act(z) and act′(z) for a gate z, under the names `factor` and `slope`."""
    name, act = name_factor(gate), gate.activation
    if act is Activation.NONE:
        return {factor: Symbol("z", "z"), slope: Symbol("1", "1")}
    latex = rf"\operatorname{{{act}}}"
    return {factor: Symbol(name, f"{latex}(z)"), slope: Symbol(f"{act}′(z)", f"{latex}'(z)")}


def list_activation(gate: Gated, outcome: Outcome) -> list[StoryStep]:
    """Return a step with the gate z of one value and, if it has an activation, a step with act(z).

    A step whose number is not finite has no number.
    """
    z, factor = float(gate.values), float(gate.activate())
    steps = [StoryStep("gate", "The gate of the value.", Symbol("z", "z"), value=_tell(z), outcome=outcome)]
    if gate.activation is not Activation.NONE:
        sentence = f"Its activation, {_DEFINITIONS[gate.activation]}."
        symbol = name_gate(gate, "", "slope")[""]
        exact = gate.activation is Activation.RELU
        steps.append(
            StoryStep("activation", sentence, symbol, value=_tell(factor, exact=exact), outcome=outcome)
        )
    return steps


def list_products(group: MeasuredGroup, gate: Gated) -> list[StoryStep]:
    """Return steps that multiply each value of a story by its gate's activation.

    Parameters
    ----------
    group : MeasuredGroup
        The group of the product.
    gate : Gated
        The gate; its field `times` is the tensor before the gate.
    """
    ungated, gate = gate.times, gate._replace(times=None)
    name = name_factor(gate)
    sentence = f"Each x is multiplied by {name}, and rounded to {group.values.dtype.name}."
    steps = [StoryStep("gated", f"{sentence} From here on, x is the product.")]
    for outcome in group.outcomes:
        steps += list_activation(pick_gate(gate, ungated.shape, outcome.index), outcome)
        product = StoryStep("product", f"x times {name}.", X, outcome=outcome)
        number, factor = get_number(ungated, outcome.index), steps[-1].value
        if factor is not None and all(map(math.isfinite, (number, outcome.value))):
            chain = (Product(Constant(number), factor),)
            product = product._replace(chain=chain, value=Constant(outcome.value, exact=False))
        steps.append(product)
    return steps


def _tell(value: float, *, exact: bool = True) -> Constant | None:
    return Constant(value, exact) if math.isfinite(value) else None
