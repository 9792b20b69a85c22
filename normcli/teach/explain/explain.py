"""The arithmetic of one value, or of one group, forward and backward: as a person would write it on paper."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from normcli.engine.inputs import NO_INPUTS
from normcli.engine.walk import DEFAULT_EFFORT
from normcli.teach.explain.gradient_steps import BackwardSteps
from normcli.teach.explain.measured_group import add_gradients, find_group, measure_group
from normcli.teach.explain.story import Story, StoryStep
from normcli.teach.explain.value_steps import StepList, name_group
from normcli.teach.formulas.expression import MOST_TERMS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from normcli.engine.inputs import Inputs
    from normcli.engine.walk import Effort
    from normcli.norms.plan import Plan
    from normcli.results.backward import BackwardProblem


def explain(
    plan: Plan,
    values: NDArray[Any],
    inputs: Inputs = NO_INPUTS,
    *,
    at: tuple[int, ...] | None = None,
    every: bool = False,
    effort: Effort = DEFAULT_EFFORT,
    dy: NDArray[Any] | None = None,
) -> Story:
    """Explain how one value of a tensor is normalized, or each value of its first group.

    Only that group is read, and only the values that the story shows are normalized.

    Parameters
    ----------
    plan : Plan
    values : ndarray
        The tensor.
    inputs : Inputs
        Gamma, beta and running statistics.
    at : tuple of int or None
        An index of the tensor; None for the first group as a whole.
    every : bool
        Show every value of the group; otherwise, of more than `MOST_TERMS`, the first and the last.
    effort : Effort
    dy : ndarray or None
        The derivative of a loss with respect to the result, of the tensor's shape: the story then goes on, back
        to dx. It is not checked here (see `explain_backward`). None for a forward story.

    Notes
    -----
    Statistics are taken from the group's result. Sums are exact fractions; in a group of more than
    `MOST_TERMS` values they are calculated from the statistics.

    Raises
    ------
    DataError
        If the tensor's file has changed since it was opened, or σ of a given u and v is negative.

    Examples
    --------
    >>> import numpy as np
    >>> from normcli.norms.plan import make_plan
    >>> from normcli.norms.request import Request
    >>> story = explain(make_plan(Request("ln"), (4,), np.dtype("f8")), np.array([1, 2, 3, 4]), at=(0,))
    >>> [(step.symbol.text, step.value.value) for step in story.steps if step.value][:4]
    [('Σx', 10), ('μ', 2.5), ('Σ(x − μ)²', 5), ('σ²', 1.25)]
    """
    nothing = tell_of_nothing(plan)
    if nothing is not None:
        return nothing
    at, number, places = choose_group(plan, at, every=every)
    group, running = measure_group(plan, values, inputs, number, places, effort), inputs.given is not None
    steps = StepList(group, running=running)
    if dy is not None:
        group = add_gradients(group, values, dy, inputs)
        steps = BackwardSteps(group, running=running)
        if not plan.has_groups:
            from normcli.teach.explain import window_and_matrix_gradients as others  # for two norms alone

            windows, matrices = others.WindowBackwardSteps, others.MatrixBackwardSteps
            steps = windows(group, values, dy) if plan.groups_overlap else matrices(group, running=False)
    return Story(plan, group, at, steps.build(), running)


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


def explain_backward(
    problem: BackwardProblem,
    *,
    at: tuple[int, ...] | None = None,
    every: bool = False,
    effort: Effort = DEFAULT_EFFORT,
) -> Story:
    """Explain how a loss changes with one value of a tensor, or with each value of its first group.

    The steps up to the divisor are those of `explain`. From there the chain rule leads back; its formulas are
    derived from the norm's definitions (`normcli.teach.formulas.chain_rule`).

    Parameters
    ----------
    problem : BackwardProblem
    at : tuple of int or None
        An index of the tensor; None for the first group as a whole.
    every : bool
        Show every value of the group; otherwise, of more than `MOST_TERMS`, the first and the last.
    effort : Effort

    Raises
    ------
    UsageError
        If the norm has no derivative, or none with a gate, or gamma and beta have different shapes.
    DataError
        If dy does not have the shape of the tensor.

    Examples
    --------
    >>> import numpy as np
    >>> from normcli.norms.plan import make_plan
    >>> from normcli.norms.request import Request
    >>> from normcli.results.backward import BackwardProblem
    >>> x, dy = np.array([1.0, 2, 3, 6]), np.array([1.0, 0, 0, 0])
    >>> plan = make_plan(Request("ln", eps=0.0), (4,), x.dtype)
    >>> story = explain_backward(BackwardProblem(plan, x, dy), at=(0,))
    >>> [step.symbol.text for step in story.steps if step.formula]
    ['∂L/∂d', '∂L/∂σ²', '∂L/∂μ', 'dx']
    """
    problem.require_sound()
    plan, values, dy, inputs = problem
    return explain(plan, values, inputs, at=at, every=every, effort=effort, dy=dy)
