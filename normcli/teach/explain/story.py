"""The story of a value: the steps of its arithmetic, as records."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from normcli.tuples import NamedTuple

if TYPE_CHECKING:
    from normcli.norms.plan import Plan
    from normcli.teach.explain.measured_group import MeasuredGroup, Outcome
    from normcli.teach.formulas.expression import Constant, Expression, Symbol


RESULT = "result"
"""The name of a value's last step: the result, rounded to the output's dtype."""

RESIDUAL = "residual"
"""The name of the step that adds the residual."""


class StoryStep(NamedTuple):
    """One step of the arithmetic.

    Parameters
    ----------
    name : str
        `sum`, `mean`, `squares`, `variance`, `eps`, `root`, `quotient`, `affine`, `result` …
    sentence : str
        The step in words.
    symbol : Symbol or None
        The symbol on the left of the equation; None for a step without arithmetic.
    chain : tuple of Expression
        The right sides of the equation, each simpler than the one before; the result itself is not among them.
    value : Constant or None
        The result; None if it is not finite.
    outcome : Outcome or None
        The value of the tensor that the step is about; None for a step about the whole group.
    formula : Expression or None
        The first right side with names in place of numbers; only steps of a backward pass have one.
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
    """The steps of the arithmetic, and the group that they are about.

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
