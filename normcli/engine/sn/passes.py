"""Passes of norms whose groups are matrices: each is read as a whole, however large it is."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from normcli.engine.passes import Passes
from normcli.engine.sn.singular_values import SingularValue, SingularValues, choose_enclosure
from normcli.numerics.statistics.solution import solve
from normcli.numerics.workspace import Workspace

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from normcli.dtypes import Floats
    from normcli.engine.geometry import Slices
    from normcli.norms.plan import Plan


class MatrixPasses(Passes):
    """The passes of a norm that divides by the largest singular value of a matrix; what does not count is 0."""

    def measure(self) -> dict[str, Floats]:
        """Measure, and normalize if there is a sink; return the statistics in the shape of the kept runs."""
        self.walk.expect(0 if self.sink is None else 1)
        work = Workspace()
        values = [self._measure_group(tile, work) for tile in self.list_groups()]
        count = self.geometry.count if self.selection is None else self._count_all(self.selection).reshape(-1)
        with np.errstate(all="ignore"):
            self._write_all(solve(self.plan, SingularValues(count, values)), count)
        return self.statistics

    def list_groups(self) -> Iterator[Slices]:
        """Yield where each group lies, in order."""
        geometry = self.geometry
        for index in np.ndindex(geometry.kept_shape):
            place = dict(zip(geometry.kept_runs, index, strict=True))
            yield tuple(
                slice(place[run], place[run] + 1) if run in place else slice(0, geometry.dims[run])
                for run in geometry.runs
            )

    def load_matrix(self, tile: Slices, work: Workspace) -> NDArray[Any]:
        """Return a group, whose values come in the order of its axes, as a matrix; what does not count is 0."""
        geometry = self.geometry
        values = self._load_selected(tile, work, geometry.kept_runs + geometry.reduced_runs)[1]
        return lay_matrix(self.plan, values)

    def _measure_group(self, tile: Slices, work: Workspace) -> SingularValue:
        """Return the largest singular value of a group, or its estimate."""
        return SingularValue(self.load_matrix(tile, work), choose_enclosure(self.plan.spec.iteration))


def lay_matrix(plan: Plan, values: NDArray[Any]) -> NDArray[Any]:
    """Return the values of a group, in the order of its axes, as the matrix of a plan's rows."""
    grid, rows = plan.grid, plan.spec.rows
    assert rows is not None  # of every norm that has matrices
    axes = grid.view_axes
    order = sorted(range(len(axes)), key=lambda place: axes[place] not in rows)
    matrix = values.reshape([grid.view_shape[axis] for axis in axes]).transpose(order)
    height = math.prod(grid.view_shape[axis] for axis in rows)
    return matrix.reshape(height, math.prod(matrix.shape[len(rows) :]))
