"""The arithmetic of one value, or of one group, step by step: as a person would write it on paper."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from normcli.engine.inputs import NO_INPUTS
from normcli.engine.run import measure
from normcli.engine.walk import DEFAULT_EFFORT
from normcli.results.result import Result
from normcli.teach.expression import (
    MOST_TERMS,
)
from normcli.teach.group import find_group, measure_group, take_group
from normcli.teach.story import Step, Story
from normcli.teach.telling import name_group, tell_story

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from normcli.engine.inputs import Inputs
    from normcli.engine.walk import Effort
    from normcli.norms.plan import Plan


def explain(
    plan: Plan,
    values: NDArray[Any],
    inputs: Inputs = NO_INPUTS,
    *,
    at: tuple[int, ...] | None = None,
    every: bool = False,
    effort: Effort = DEFAULT_EFFORT,
) -> Story:
    """Tell how one value of a tensor is normalized, or those of its first group.

    Only the group in question is read, and of its normalized values those alone are kept that are told of.

    Parameters
    ----------
    plan : Plan
    values : ndarray
        The tensor.
    inputs : Inputs
        Gamma, beta and running statistics.
    at : tuple of int or None
        An index of the tensor; None tells of the first group as a whole.
    every : bool
        Tell of every value of the group, however many: otherwise of the first and the last of more than
        `MOST_TERMS`.
    effort : Effort

    Examples
    --------
    >>> import numpy as np
    >>> from normcli.norms.plan import make_plan
    >>> from normcli.norms.request import Request
    >>> story = explain(make_plan(Request("ln"), (4,), np.dtype("f8")), np.array([1, 2, 3, 4]), at=(0,))
    >>> [(step.symbol.text, step.value.value) for step in story.steps if step.value][:4]
    [('Σx', 10), ('μ', 2.5), ('Σ(x − μ)²', 5), ('σ²', 1.25)]
    """
    if plan.grid.group_count == 0:
        return tell_of_nothing(plan, None)
    if plan.grid.group_size == 0:
        return tell_of_nothing(plan, 0)
    number, place = (0, 0) if at is None else find_group(plan, at)
    places: Sequence[int] = (place,)
    if at is None and plan.spec.window is None:
        places = choose_places(plan.grid.group_size, every=every)
    at = at if at is not None or plan.spec.window is None else (0,) * len(plan.grid.shape)
    if inputs.given is None:
        return tell_story(measure_group(plan, values, inputs, number, places, effort), at)
    statistics = measure(plan, values, inputs, effort)
    result = Result(plan, values, statistics, inputs, effort)
    return tell_story(take_group(result, number, places, running=True), at, running=True)


def choose_places(count: int, *, every: bool = False) -> Sequence[int]:
    """Return which of a group's values are told of: all, or of very many the first and the last."""
    return range(count) if every or count <= MOST_TERMS else (0, 1, 2, count - 1)


def tell_of_nothing(plan: Plan, number: int | None) -> Story:
    """Return the story of a tensor, or of a group, without values."""
    if number is None:
        told = f"The tensor {plan.grid.shape} has no values: there is nothing to normalize."
    else:
        told = (
            f"{name_group(plan.grid.group_name(number))} holds no values: {plan.norm.divisor.told_of_nothing}."
        )
    return Story(plan, None, None, (Step("nothing", told),))
