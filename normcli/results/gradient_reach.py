"""The values of dx that one value of dy changes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from normcli.engine.single import differentiate_group
from normcli.results.backward import require_gradients
from normcli.tensors.tensor import Tensor

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from normcli.dtypes import Selected
    from normcli.norms.plan import Plan
    from normcli.results.arguments import Problem

    Indices = Sequence[NDArray[np.intp]]


@dataclass(frozen=True)
class GradientReach:
    """The derivatives of one normalized value y[at] with respect to all values x: a row of the Jacobian ∂y/∂x.

    They are the gradients dx for a dy that is 1 at the index `at` and 0 elsewhere. Outside of the group of this
    value they are 0, and not stored.

    Parameters
    ----------
    plan : Plan
    at : tuple of int
        The index of the value.
    group : int
        The number of this value's group.
    dx : ndarray
        The derivatives with respect to the group's values, flat, in C order; for norms with sliding windows,
        with respect to all values along the window's axis. Their unit is y's unit / x's unit.
    """

    plan: Plan
    at: tuple[int, ...]
    group: int
    dx: NDArray[Any]

    def pick(self, indices: Indices) -> NDArray[Any]:
        """Return dx at the elements `x[indices]` of the tensor; 0 for elements outside the group.

        `indices` has an array of integers for each axis, which broadcast together to the shape of the result.
        """
        grid = self.plan.grid
        if grid.reach is None:
            inside, places = grid.locate_groups(indices) == self.group, grid.locate_within_groups(indices)
        else:
            along = grid.axes[0]
            others = [
                i == at for axis, (i, at) in enumerate(zip(indices, self.at, strict=True)) if axis != along
            ]
            inside = np.logical_and.reduce(np.broadcast_arrays(indices[along] >= 0, *others))
            places = np.broadcast_to(indices[along], inside.shape)
        nothing = np.zeros((), self.dx.dtype)
        return np.where(inside, self.dx[np.where(inside, places, 0)], nothing)

    def select(self, indices: Indices) -> Selected:
        """Return, for the indices given for each axis, whether dx is not 0 there: True also for NaN."""
        return np.asarray(self.pick(indices) != 0)


def find_reach(problem: Problem, at: tuple[int, ...] | None = None) -> GradientReach | None:
    """Return the derivatives of one normalized value y[at] with respect to the values of its group.

    They are dx for a dy that is 1 at this value and 0 elsewhere. None for a tensor without values.

    Parameters
    ----------
    problem : Problem
        The norm and the tensor x; its own dy is not used.
    at : tuple of int or None
        The index of the value; None: the first value's.

    Raises
    ------
    UsageError
        If the norm has no derivative.

    Examples
    --------
    >>> from normcli.results.arguments import read_arguments
    >>> reach = find_reach(read_arguments([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]], "ln", {}), (0, 1))
    >>> reach.pick(np.ix_([0, 1], [0, 1, 2])).round(3)
    array([[-0.408,  0.816, -0.408],
           [ 0.   ,  0.   ,  0.   ]])
    """
    plan, values = problem.plan, problem.values
    if not values.size:
        return None
    at = (0,) * values.ndim if at is None else at
    dy = np.zeros(values.shape)  # pages that are never written to take no memory
    require_gradients(problem._replace(dy=Tensor(dy, "dy")))
    dy[at] = 1.0
    group = int(plan.grid.locate_groups([np.asarray(i, dtype=np.intp) for i in at]))
    return GradientReach(plan, at, group, differentiate_group(plan, values, dy, group, problem.inputs))
