"""The arithmetic of one value, or of one group, forward and backward: as a person would write it on paper."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from normcli.results.backward import require_gradients
from normcli.teach.explain.gradient_steps import BackwardSteps
from normcli.teach.explain.measured_group import add_gradients, find_group, measure_group
from normcli.teach.explain.story import Story, StoryStep
from normcli.teach.explain.surrounding_steps import list_products, list_sums
from normcli.teach.explain.value_steps import StepList, name_group
from normcli.teach.formulas.expression import MOST_TERMS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from normcli.norms.plan import Plan
    from normcli.results.arguments import Problem


def explain(problem: Problem, *, at: tuple[int, ...] | None = None, every: bool = False) -> Story:
    """Explain how one value of a tensor is normalized, or each value of its first group.

    Only that group is read, and only the values that the story shows are normalized. The story begins with the
    residual and with a gate before the norm, if there are any. With dy it goes on, back to dx, by the chain
    rule; its formulas are derived from the norm's definitions (`normcli.teach.formulas.chain_rule`).

    Parameters
    ----------
    problem : Problem
    at : tuple of int or None
        An index of the tensor; None for the first group as a whole.
    every : bool
        Show every value of the group; otherwise, of more than `MOST_TERMS`, the first and the last.

    Notes
    -----
    Statistics are taken from the group's result. Sums are exact fractions; in a group of more than
    `MOST_TERMS` values they are calculated from the statistics.

    Raises
    ------
    UsageError
        If there is a dy and the norm has no derivative, or none with a gate, or gamma and beta have different
        shapes.
    DataError
        If the tensor's file has changed since it was opened, σ of a given u and v is negative, or dy does not
        have the shape of the tensor.

    Examples
    --------
    >>> import numpy as np
    >>> from normcli.results.arguments import read_arguments
    >>> from normcli.tensors.tensor import Tensor
    >>> asked = read_arguments([1.0, 2.0, 3.0, 6.0], "ln", {"eps": 0.0})
    >>> story = explain(asked, at=(0,))
    >>> [(step.symbol.text, step.value.value) for step in story.steps if step.value][:4]
    [('Σx', 12.0), ('μ', 3.0), ('Σ(x − μ)²', 14.0), ('σ²', 3.5)]
    >>> story = explain(asked._replace(dy=Tensor(np.array([1.0, 0.0, 0.0, 0.0]), "dy")), at=(0,))
    >>> [step.symbol.text for step in story.steps if step.formula]
    ['∂L/∂d', '∂L/∂σ²', '∂L/∂μ', 'dx']
    """
    plan, values, inputs = problem.plan, problem.values, problem.inputs
    dy = None if problem.dy is None else require_gradients(problem)
    nothing = tell_of_nothing(plan)
    if nothing is not None:
        return nothing
    at, number, places = choose_group(plan, at, every=every)
    running = inputs.given is not None
    group = measure_group(plan, values, inputs, number, places, problem.effort)
    steps = StepList(group, running=running)
    if dy is not None:
        group = add_gradients(group, values, dy, inputs)
        steps = BackwardSteps(group, running=running)
        if not plan.has_groups:
            from normcli.teach.explain import window_and_matrix_gradients as others  # for two norms alone

            windows, matrices = others.WindowBackwardSteps, others.MatrixBackwardSteps
            steps = windows(group, values, dy) if plan.groups_overlap else matrices(group, running=False)
    told, addends = steps.build(), problem.tensor.addends
    if inputs.gated_input is not None:
        told = (*list_products(group, inputs.gated_input), *told)
    if addends is not None:
        told = (*list_sums(group, addends), *told)
        parts = (plan.grid.take_group(part, number) for part in (addends.values, addends.residual))
        group = replace(group, addends=tuple(parts))
    return Story(plan, group, at, told, running)


def tell_of_nothing(plan: Plan) -> Story | None:
    """Return a story of one sentence for a tensor without values, or with empty groups; otherwise None."""
    if plan.grid.group_count and plan.grid.group_size:
        return None
    sentence = f"The tensor {plan.grid.shape} has no values: there is nothing to normalize."
    if plan.grid.group_count:
        name = name_group(plan.grid.group_name(0))
        sentence = f"{name} holds no values: {plan.norm.divisor.words_for_empty}."
    return Story(plan, None, None, (StoryStep("nothing", sentence),))


def choose_group(
    plan: Plan, at: tuple[int, ...] | None, *, every: bool
) -> tuple[tuple[int, ...] | None, int, Sequence[int]]:
    """Return the value to explain, its group, and the values of the group to show, all as indices.

    The first is an index of the tensor; None if the first group is explained as a whole (no `at`, no window).
    The second is the group's index in C order. The third are flat indices in the group: that of the value, or
    if it is None the first three and the last, or all if `every` is True or there are at most `MOST_TERMS`.
    """
    if at is None and plan.grid.reach is not None:
        at = (0,) * len(plan.grid.shape)
    if at is not None:
        number, place = find_group(plan, at)
        return at, number, [place]
    count = plan.grid.group_size
    return None, 0, [*range(count)] if every or count <= MOST_TERMS else [0, 1, 2, count - 1]
