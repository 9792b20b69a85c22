"""The story of dx: how a loss changes with each value of a group, by the chain rule, in numbers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from normcli.engine.walk import DEFAULT_EFFORT
from normcli.teach.explain.gradient_steps import BackwardSteps
from normcli.teach.explain.measured_group import add_gradients, measure_group
from normcli.teach.explain.story import Story
from normcli.teach.explain.value_story import choose_group, tell_of_nothing

if TYPE_CHECKING:
    from normcli.engine.walk import Effort
    from normcli.results.backward import BackwardProblem


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
    at, every, effort
        As of `explain`.

    Raises
    ------
    UsageError, DataError
        As `BackwardProblem.require_sound`.

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
    nothing = tell_of_nothing(plan)
    if nothing is not None:
        return nothing
    at, number, places = choose_group(plan, at, every=every)
    group = measure_group(plan, values, inputs, number, places, effort)
    group = add_gradients(group, values, dy, inputs)
    running = inputs.given is not None
    if plan.groups_overlap:
        from normcli.teach.explain.window_gradient_steps import WindowBackwardSteps  # for one norm alone

        return Story(plan, group, at, WindowBackwardSteps(group, values, dy).build())
    if plan.spec.rows is not None:
        from normcli.teach.explain.matrix_gradient_steps import MatrixBackwardSteps  # for one norm alone

        return Story(plan, group, at, MatrixBackwardSteps(group, running=False).build())
    return Story(plan, group, at, BackwardSteps(group, running=running).build(), running)
