"""The singular vectors of groups that are matrices, beside the singular values that they are divided by."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from normcli.engine.blocks import open_source
from normcli.engine.geometry import find_geometry
from normcli.engine.inputs import NO_INPUTS
from normcli.engine.sn.gradients import find_sigma_gradient
from normcli.engine.sn.passes import MatrixPasses
from normcli.engine.sn.singular_values import SingularValue
from normcli.numerics.rational import round_once
from normcli.numerics.workspace import Workspace

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from normcli.dtypes import Floats
    from normcli.engine.inputs import Inputs
    from normcli.norms.plan import Plan


def iterate_matrices(plan: Plan, values: NDArray[Any], inputs: Inputs = NO_INPUTS) -> Iterator[NDArray[Any]]:
    """Yield the matrix of each group; what does not count is 0."""
    geometry = find_geometry(plan)
    with open_source(values, plan, geometry) as source:
        run = MatrixPasses(plan, geometry, source, None, inputs)
        work = Workspace()
        for tile in run.list_groups():
            yield run.load_matrix(tile, work)


def find_vectors(plan: Plan, values: NDArray[Any], inputs: Inputs = NO_INPUTS) -> tuple[Floats, Floats]:
    """Return u and v of each group's σ = uᵀXv, of length 1, rounded once; as they were given if both were.

    Returns
    -------
    tuple of ndarray
        (*stats_shape, rows) and (*stats_shape, columns). Of singular vectors, whose sign is open, the largest
        number of v is positive. NaN where there are none: of a matrix that is 0, is not finite, or has two
        largest singular values, or whose iterations start at a right angle to it.
    """
    grid, rows = plan.grid, plan.spec.rows or ()
    height = math.prod(grid.view_shape[axis] for axis in rows)
    width = math.prod(grid.view_shape[axis] for axis in grid.view_axes if axis not in rows)
    u, v = (np.full((*grid.stats_shape, length), np.nan) for length in (height, width))
    for place, matrix in enumerate(iterate_matrices(plan, values, inputs)):
        if not matrix.astype(np.bool_).any() or not np.isfinite(matrix.astype(np.float64)).all():
            continue
        found = find_sigma_gradient(matrix, plan.spec.iteration)
        if found is None:
            continue
        left, right = (np.array([round_once(each) for each in vector]) for vector in found.list_vectors())
        sign = 1.0
        if plan.spec.iteration is None:
            sign = math.copysign(1.0, right[np.argmax(np.abs(right))])
        u.reshape(-1, height)[place], v.reshape(-1, width)[place] = sign * left, sign * right
    return u, v


def find_largest(plan: Plan, values: NDArray[Any], inputs: Inputs = NO_INPUTS) -> Floats:
    """Return the largest singular value of each group, of `Grid.stats_shape`, rounded once."""
    found = [SingularValue(matrix) for matrix in iterate_matrices(plan, values, inputs)]
    rounded = [round_once(each.find()) if each.known is None else each.known for each in found]
    return np.array(rounded, np.float64).reshape(plan.grid.stats_shape)
