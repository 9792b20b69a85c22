"""Passes of norms whose groups are matrices, forward and back; a matrix is read whole, however large it is."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from normcli.engine.inputs import NO_INPUTS
from normcli.engine.passes import Passes, TileBackwardPasses
from normcli.engine.sn.gradients import differentiate_matrix, find_sigma_gradient
from normcli.engine.sn.sigma_of_groups import SingularValue, SingularValues, choose_enclosure
from normcli.engine.tiling.blocks import open_source
from normcli.engine.tiling.geometry import find_geometry
from normcli.errors import UsageError
from normcli.numerics.rational import round_once
from normcli.numerics.statistics.solution import solve
from normcli.numerics.workspace import Workspace

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from normcli.dtypes import Floats
    from normcli.engine.inputs import Inputs
    from normcli.engine.tiling.blocks import Source
    from normcli.engine.tiling.geometry import Slices
    from normcli.norms.plan import Plan


class MatrixPasses(Passes):
    """The passes of a norm that divides by a matrix's largest singular value; uncounted values are 0."""

    def measure(self) -> dict[str, Floats]:
        """Measure all groups, and normalize them if there is a sink; return the statistics by name.

        Raises
        ------
        DataError
            If σ = uᵀWv of a given u and v is negative.
        """
        self.walk.expect(0 if self.sink is None else 1)
        work = Workspace()
        values = [self._measure_group(tile, work) for tile in self.list_groups()]
        count = self.geometry.count if self.selection is None else self._count_all(self.selection).reshape(-1)
        with np.errstate(all="ignore"):
            self._write_all(solve(self.plan, SingularValues(count, values)), count)
        return self.statistics

    def list_groups(self) -> Iterator[Slices]:
        """Yield the tile of each group, in C order over the kept runs."""
        geometry = self.geometry
        for index in np.ndindex(geometry.kept_shape):
            place = dict(zip(geometry.kept_runs, index, strict=True))
            yield tuple(
                slice(place[run], place[run] + 1) if run in place else slice(0, geometry.dims[run])
                for run in geometry.runs
            )

    def load_matrix(self, tile: Slices, work: Workspace) -> NDArray[Any]:
        """Return the group of a tile as a matrix, with 0 for values that do not count."""
        geometry = self.geometry
        values = self._load_selected(tile, work, geometry.kept_first)[1]
        return lay_matrix(self.plan, values)

    def _measure_group(self, tile: Slices, work: Workspace) -> SingularValue:
        """Return the largest singular value of a group, or its estimate."""
        return SingularValue(self.load_matrix(tile, work), choose_enclosure(self.plan.spec.iteration))


class MatrixBackwardPasses(MatrixPasses, TileBackwardPasses):
    """The pass of a norm that divides a matrix by its largest singular value."""

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        if self.selection is not None and not self.selection.hides:
            raise UsageError("a backward pass of matrices leaves out fill normalize; choose another fill")

    def differentiate(self, gradients: Source, values: NDArray[Any]) -> None:
        """Write dx, matrix by matrix."""
        self.walk.expect(1)
        work, order = Workspace(), self.geometry.kept_first
        for tile in self.list_groups():
            self.differentiate_tile(tile, order, gradients, work)

    def differentiate_values(self, x: NDArray[Any], dy: Floats, dtype: np.dtype[Any]) -> NDArray[Any]:
        """Return dx of a group's values in a dtype, flat, or NaN for all where there is no derivative.

        There is none if a value or a dy is not finite, all values are 0, or σ has none.
        """
        nowhere = np.full(x.shape, np.nan, dtype)
        if not (np.isfinite(x.astype(np.float64)).all() and np.isfinite(dy).all() and x.astype(np.bool_).any()):
            return nowhere
        places = lay_matrix(self.plan, np.arange(x.size)).reshape(-1)
        laid = lay_matrix(self.plan, x), lay_matrix(self.plan, dy)
        found = differentiate_matrix(*laid, dtype, self.plan.spec.iteration)
        if found is None:
            return nowhere
        dx = np.empty(x.size, dtype)
        dx[places] = found.reshape(-1)
        return dx


def lay_matrix(plan: Plan, values: NDArray[Any]) -> NDArray[Any]:
    """Return a group's values, in C order of its axes, as a matrix: the plan's `rows` by the other axes."""
    grid, rows = plan.grid, plan.spec.rows
    assert rows is not None  # of every norm that has matrices
    axes = grid.view_axes
    order = sorted(range(len(axes)), key=lambda place: axes[place] not in rows)
    matrix = values.reshape([grid.view_shape[axis] for axis in axes]).transpose(order)
    height = math.prod(grid.view_shape[axis] for axis in rows)
    return matrix.reshape(height, math.prod(matrix.shape[len(rows) :]))


def iterate_matrices(plan: Plan, values: NDArray[Any], inputs: Inputs = NO_INPUTS) -> Iterator[NDArray[Any]]:
    """Yield the matrix of each group, with 0 for values that do not count."""
    geometry = find_geometry(plan)
    with open_source(values, plan, geometry) as source:
        run = MatrixPasses(plan, geometry, source, None, inputs)
        work = Workspace()
        for tile in run.list_groups():
            yield run.load_matrix(tile, work)


def find_vectors(plan: Plan, values: NDArray[Any], inputs: Inputs = NO_INPUTS) -> tuple[Floats, Floats]:
    """Return the singular vectors u and v of each group, rounded once; without iterations, u and v as given.

    Returns
    -------
    tuple of ndarray
        u, shape (*stats_shape, rows), and v, shape (*stats_shape, columns), of length 1, with σ = uᵀXv. The
        sign of singular vectors is open: it is chosen so that the largest number of v is positive. NaN for a
        matrix that is 0, is not finite, or whose two largest singular values are equal, and where an estimate
        of σ is 0.

    Raises
    ------
    DataError
        If σ of a given u and v is negative.
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
        left, right = (
            np.array([round_once(each) for each in vector])
            for vector in found.list_vectors(plan.spec.iteration)
        )
        sign = 1.0
        if plan.spec.iteration is None:
            sign = math.copysign(1.0, right[np.argmax(np.abs(right))])
        u.reshape(-1, height)[place], v.reshape(-1, width)[place] = sign * left, sign * right
    return u, v


def find_largest(plan: Plan, values: NDArray[Any], inputs: Inputs = NO_INPUTS) -> Floats:
    """Return the largest singular value of each group, rounded once, without the plan's power iterations.

    The array is of `Grid.stats_shape`.
    """
    found = [SingularValue(matrix) for matrix in iterate_matrices(plan, values, inputs)]
    rounded = [round_once(each.find()) if each.known is None else each.known for each in found]
    return np.array(rounded, np.float64).reshape(plan.grid.stats_shape)
