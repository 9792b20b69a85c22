"""Passes that look for the least and the largest value of groups."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from normcli.engine.passes import Run
from normcli.numerics.extremes import fold_extremes, measure_extremes, merge_extremes

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from normcli.engine.counting import Marks
    from normcli.engine.geometry import Slices
    from normcli.numerics.leaves import Leaves
    from normcli.numerics.moments import Moments
    from normcli.numerics.workspace import Workspace


class RangeRun(Run):
    """One scaling by the range: the leaves of `Run`, measured otherwise."""

    def _measure(self, leaves: NDArray[Any], work: Workspace, marks: Marks | None) -> Leaves:
        return measure_extremes(leaves, marks)

    def _fold(self, leaves: Leaves) -> Leaves:
        return fold_extremes(leaves)

    def _merge(self, leaves: Leaves) -> Moments:
        count = self.geometry.count if self.counting is None else np.add.reduce(leaves.count, axis=-1)
        return merge_extremes(leaves, count)

    def _measure_standing(
        self, columns: NDArray[Any], tile: Slices, work: Workspace, marks: Marks | None
    ) -> Moments:
        lying = None if marks is None else np.ascontiguousarray(marks.T)
        return self._measure_groups(np.ascontiguousarray(columns.T), tile, work, lying)
