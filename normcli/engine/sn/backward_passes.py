"""The backward pass of a norm whose groups are matrices."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from normcli.engine.sn.gradients import differentiate_matrix
from normcli.engine.sn.passes import MatrixPasses, lay_matrix
from normcli.errors import UsageError
from normcli.norms.request import Fill
from normcli.numerics.gradients.in_fractions import round_values
from normcli.numerics.workspace import Workspace

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from normcli.dtypes import Floats
    from normcli.engine.blocks import Source
    from normcli.engine.geometry import Slices


class MatrixBackwardPasses(MatrixPasses):
    """The pass of a norm that divides a matrix by its largest singular value, and has no gamma and no beta."""

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        selection = arguments[4].selection
        self.fill = None if selection is None else selection.fill
        if self.fill is Fill.NORMALIZE:
            raise UsageError("a backward pass of matrices leaves out fill normalize; choose another fill")

    def differentiate(self, gradients: Source, values: NDArray[Any]) -> None:
        """Write dx, matrix by matrix."""
        self.walk.expect(1)
        work = Workspace()
        for tile in self.list_groups():
            self._differentiate_group(tile, gradients, work)

    def _differentiate_group(self, tile: Slices, gradients: Source, work: Workspace) -> None:
        assert self.sink is not None
        order = self.geometry.kept_runs + self.geometry.reduced_runs
        _, x, counted = self._load_selected(tile, work, order)
        x = np.array(x)
        dy = np.array(gradients.read(tile, order, work), np.float64)
        used = dy if counted is None else np.where(counted, dy, 0.0)
        place = self.sink.open(tile, work)
        out = place.transpose(order)
        dx = self._differentiate(x, used, out.dtype).reshape(out.shape)
        if counted is not None:
            others = round_values(dy if self.fill is Fill.PASS else np.zeros_like(dy), out.dtype)
            dx = np.where(counted, dx, others.reshape(out.shape))
        out[...] = dx
        self.sink.put(tile, place, work)

    def _differentiate(self, x: NDArray[Any], dy: Floats, dtype: np.dtype[Any]) -> NDArray[Any]:
        """Return dx of a group's values, in their order; NaN where there is no derivative."""
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

    def find_parameters(self) -> tuple[None, None]:
        """Return nothing: there are none."""
        return None, None
