"""Norms side by side on one tensor: the groups, parameters and results of each."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any

import numpy as np

from normcli.engine.inputs import Inputs
from normcli.engine.run import measure
from normcli.engine.walk import DEFAULT_EFFORT
from normcli.errors import UsageError
from normcli.norms.plan import make_plan
from normcli.norms.request import Request
from normcli.norms.rules import Centre
from normcli.norms.table import NORMS
from normcli.teach.compared_norm import Member, find_relatives
from normcli.teach.equalities import Equality, find_equalities
from normcli.tensors.mapped import fetch
from normcli.tuples import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from normcli.engine.inputs import Selection
    from normcli.engine.walk import Effort
    from normcli.norms.plan import Plan
    from normcli.results.arguments import Problem
    from normcli.results.result import Result


_STANDARD_SCORE = NORMS["zscore"]
"""A norm that always measures mean and variance."""


class BatchOfOne(NamedTuple):
    """The behaviour of a norm on a batch of one sample.

    Parameters
    ----------
    works : bool or None
        Whether anything is left to normalize; None for a tensor without a batch axis.
    reason : str or None
        Why the norm does not work; None if it does.
    becomes : str or None
        The norm that has the same x̂ on such a batch, such as `in` for `bn`; None if there is none.
    """

    works: bool | None
    reason: str | None = None
    becomes: str | None = None


class NormColumn(NamedTuple):
    """A column of the table: one norm.

    Parameters
    ----------
    name : str
    result : Result
    depends_on_batch : bool
        Whether a group holds values of several samples.
    batch_of_one : BatchOfOne
    mean, var : float
        Mean and variance over the whole normalized tensor; NaN if it has no values.
    """

    name: str
    result: Result
    depends_on_batch: bool
    batch_of_one: BatchOfOne
    mean: float
    var: float

    @property
    def first_group(self) -> NDArray[Any]:
        """The input values of the first group (or window) that count, as a vector of the input's dtype."""
        result = self.result
        if not result.input.size:
            return result.input.reshape(-1)
        grid = result.plan.grid
        values = fetch(grid.take_group(result.input, 0)).reshape(-1)
        if result.selection is None:
            return values
        places = grid.locate_values(0, np.arange(values.size))
        counting: NDArray[Any] = values[result.selection.select(result.input, places)]
        return counting


class NormComparison(NamedTuple):
    """Norms of one tensor, in the order in which they were named, and which of them are equal."""

    columns: tuple[NormColumn, ...]
    equalities: tuple[Equality, ...]


def compare(
    norms: Sequence[tuple[str, Problem]], effort: Effort = DEFAULT_EFFORT, layout: str | None = None
) -> NormComparison:
    """Compare norms on one tensor.

    Parameters
    ----------
    norms : sequence of (str, Problem)
        Two or more norms that differ, of one tensor, each with its name on the command line (`gn:groups=2`).
    effort : Effort
    layout : str or None
        The layout of norms whose name has none; None for the default of the tensor's rank.

    Raises
    ------
    UsageError
        If two norms have equal plans.
    """
    _require_different(norms)
    members = [Member(name, problem.calculate(effort)) for name, problem in norms]
    columns = tuple(
        NormColumn(
            member.name,
            member.result,
            *_judge_batch(member, layout),
            *measure_whole(member.result.normalized, effort, member.result.selection),
        )
        for member in members
    )
    return NormComparison(columns, find_equalities(members, layout))


def _require_different(norms: Sequence[tuple[str, Problem]]) -> None:
    """Raise `UsageError` if two plans are the same."""
    for (earlier, one), (name, other) in itertools.combinations(norms, 2):
        if one.plan == other.plan and (one.inputs.given is None) == (other.inputs.given is None):
            same = f"{earlier} and {name} are the same here"
            same = f"{name} is named twice" if earlier == name else same
            raise UsageError(f"{same}; give one of them an option, such as {name}:axes=0")


def _judge_batch(member: Member, layout: str | None) -> tuple[bool, BatchOfOne]:
    """Return whether samples of a batch share statistics, and the norm's behaviour on a batch of one."""
    if member.evaluates:
        return False, BatchOfOne(None if member.plan.grid.layout.batch is None else True)
    return depends_on_batch(member.plan), try_batch_of_one(member.plan, layout)


def depends_on_batch(plan: Plan) -> bool:
    """Whether a group extends over the batch axis, even if that has length 1.

    Examples
    --------
    >>> from normcli.norms.request import Request
    >>> import numpy as np
    >>> [depends_on_batch(make_plan(Request(norm), (2, 3, 4), np.dtype("f8"))) for norm in ("bn", "ln")]
    [True, False]
    """
    batch = plan.grid.layout.batch
    if batch is None or batch not in plan.grid.axes:
        return False
    if plan.groups_overlap:
        return plan.grid.group_size > 1
    split = plan.grid.split
    return split is None or batch != split.axis or split.groups != plan.grid.shape[batch]


def try_batch_of_one(plan: Plan, layout: str | None = None) -> BatchOfOne:
    """Plan a norm's request again with a batch axis of length 1, and return how the norm works on it.

    Parameters
    ----------
    plan : Plan
        The plan of the whole batch.
    layout : str or None
        The layout of norms whose name has none; None for the default of the tensor's rank.
    """
    batch, needy = plan.grid.layout.batch, depends_on_batch(plan)
    if batch is None:
        return BatchOfOne(None)
    shape = (*plan.grid.shape[:batch], 1, *plan.grid.shape[batch + 1 :])
    try:
        alone = make_plan(plan.request, shape, plan.tensor_dtype)
    except UsageError as error:
        return BatchOfOne(works=False, reason=str(error))
    windowed, size, ddof = alone.grid.reach is not None, alone.grid.group_size, alone.spec.ddof
    if not windowed and size == 0:
        return BatchOfOne(works=False, reason="its groups hold no values")
    if alone.norm.centre is Centre.MEAN and size <= max(1, ddof):
        remedy = "; evaluation needs running statistics" if needy and alone.norm.tracks else ""
        variance = "a group of one value: its variance is 0"
        if size <= ddof:
            variance = f"a group of {size} against ddof {ddof}: it has no variance"
        return BatchOfOne(works=False, reason=variance + remedy)
    if not windowed and size == 1:
        what = "which is divided by its own size"
        if alone.norm.centre is not Centre.NOTHING:
            what = f"whose {alone.norm.divisor.size} is 0"
        return BatchOfOne(works=False, reason=f"a group of one value, {what}")
    becomes = None
    if needy and not windowed:
        others = [(name, other) for name, other in find_relatives(alone, layout) if not depends_on_batch(other)]
        others.sort(key=lambda relative: relative[1].parameters.axes != alone.parameters.axes)
        becomes = others[0][0] if others else None
    return BatchOfOne(works=True, becomes=becomes)


def measure_whole(
    values: NDArray[Any], effort: Effort = DEFAULT_EFFORT, selection: Selection | None = None
) -> tuple[float, float]:
    """Return mean and variance of all values that count, each rounded once; NaN if no value counts."""
    whole = Request(_STANDARD_SCORE.name, axes=tuple(range(values.ndim)))
    statistics = measure(
        make_plan(whole, values.shape, values.dtype), values, Inputs(selection=selection), effort
    )
    return float(statistics["mean"]), float(statistics["var"])
