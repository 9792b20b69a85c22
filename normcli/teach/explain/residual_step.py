"""The first step of a story whose tensor is a sum: the residual is added to x."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from normcli.dtypes import is_float
from normcli.teach.explain.measured_group import get_number
from normcli.teach.explain.story import RESIDUAL, StoryStep
from normcli.teach.formulas.expression import Constant, Sum, Symbol
from normcli.tensors.residual import ResidualSum

if TYPE_CHECKING:
    from collections.abc import Iterator

    import numpy as np

    from normcli.teach.explain.measured_group import MeasuredGroup
    from normcli.teach.explain.story import Story
    from normcli.tensors.residual import Addends

_SUM = Symbol("x + r", "x + r")


def begin_with_sum(story: Story, addends: Addends) -> Story:
    """Return a story that begins with the addition of the residual, value by value.

    Parameters
    ----------
    story : Story
        The story of the sum, forward or backward.
    addends : Addends
        x and the residual.
    """
    group = story.group
    if group is None:
        return story
    parts = tuple(story.plan.grid.take_group(part, group.number) for part in (addends.values, addends.residual))
    steps = _add(group, addends, f"{_describe(group.values.dtype, addends.kind)} From here on, x is the sum.")
    return replace(story, group=replace(group, addends=parts), steps=(*steps, *story.steps))


def _describe(dtype: np.dtype[Any], kind: ResidualSum) -> str:
    """Return the sentence that says how sums of a dtype were made."""
    if kind is ResidualSum.EXACT:
        return "The residual r is added to x exactly: no sum is rounded before the norm."
    if is_float(dtype):
        return f"The residual r is added to x, each sum rounded to {dtype.name}."
    return "The residual r is added to x."


def _add(group: MeasuredGroup, addends: Addends, sentence: str) -> Iterator[StoryStep]:
    """Yield the addition of each value that the story shows."""
    for outcome in group.outcomes:
        numbers = [get_number(part, outcome.index) for part in (addends.values, addends.residual)]
        step = StoryStep(RESIDUAL, sentence, _SUM, outcome=outcome)
        if all(map(math.isfinite, (*numbers, outcome.value))):
            step = step._replace(chain=(Sum(tuple(map(Constant, numbers))),), value=Constant(outcome.value))
        yield step
