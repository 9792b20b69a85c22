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
"""The name of the last step of a value: what it is, rounded to the output's dtype."""

RESIDUAL = "residual"
"""The name of the first step of a value whose tensor is a sum: the addition."""


class StoryStep(NamedTuple):
    """One step of the arithmetic.

    Parameters
    ----------
    name : str
        What it works out: `sum`, `mean`, `squares`, `variance`, `eps`, `root`, `quotient`, `affine`, `result` …
    sentence : str
        What is done, in words.
    symbol : Symbol or None
        What comes out is called; None where a sentence says it all.
    chain : tuple of Expression
        What it is equal to (or near): each element simpler than the one before, the value not among them.
    value : Constant or None
        What comes out; None where that is no finite number.
    formula : Expression or None
        What it is equal to, with names in place of numbers, where that is told.
    outcome : Outcome or None
        The value of the tensor that the step is about; None where it is about the whole group.
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
    """The steps of the arithmetic, with what they are about.

    Parameters
    ----------
    plan : Plan
    group : MeasuredGroup or None
        None where the tensor has no values.
    at : tuple of int or None
        The value that was asked for; None for a group as a whole.
    steps : tuple of StoryStep
        Those that all values of the group share come first.
    running : bool
        Whether mean and variance were given instead of measured.
    """

    plan: Plan
    group: MeasuredGroup | None
    at: tuple[int, ...] | None
    steps: tuple[StoryStep, ...]
    running: bool = False
