"""Normalizes a tensor by sliding windows, in one pass: each value has statistics of its own."""

from __future__ import annotations

from typing import TYPE_CHECKING

from normcli.engine.inputs import COUNT, zero_unselected
from normcli.engine.lrn.window_sums import count_in_windows
from normcli.engine.lrn.windows import normalize_windows
from normcli.engine.passes import Passes
from normcli.numerics.deciding import PRECISIONS
from normcli.numerics.rounding import store

if TYPE_CHECKING:
    from normcli.dtypes import Floats
    from normcli.engine.geometry import Slices
    from normcli.numerics.workspace import Workspace

MOST_VALUES = 1 << 14
"""Values in a tile: the many arrays of its size that powers take then lie in a core's L2 cache."""


class WindowPasses(Passes):
    """The pass of a norm with a sliding window."""

    def measure(self) -> dict[str, Floats]:
        """Apply the computation to every tile, write the results, and return the statistics."""
        self.walk.expect(1)
        self.walk.each(self._compute, whole=True, line=0, most=MOST_VALUES)
        return self.statistics

    def _compute(self, tile: Slices, work: Workspace) -> None:
        window, runs, reduced = self.plan.spec.window, self.geometry.runs, self.geometry.reduced_runs
        assert window is not None  # of every norm that has such passes
        raw = self._load(tile, work, runs)
        selected = self.select(raw, tile, runs)
        precision = PRECISIONS["float64" if self.sink is None else self.sink.dtype.name]
        y, statistics = normalize_windows(self.plan, zero_unselected(raw, selected), reduced, precision)
        if selected is not None:
            statistics[COUNT] = count_in_windows(selected, window, reduced[0])
        self.keep(statistics, tuple(tile[run] for run in runs), tuple(self.geometry.dims[run] for run in runs))
        if self.sink is not None:
            place = self.sink.open(tile, work)
            store(place, y)
            if self.selection is not None and selected is not None:
                self.selection.fill(place, raw, selected)
            self.sink.put(tile, place, work)
