"""Norms that do more than centre and divide: a function of tiles that hold whole groups."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from normcli.engine.inputs import COUNT, zero_unselected
from normcli.engine.passes import Run
from normcli.numerics.lengths import normalize_by_large_powers
from normcli.numerics.rounding import store
from normcli.numerics.window import count_in_windows, normalize_windows

if TYPE_CHECKING:
    from normcli.dtypes import Floats, Selected
    from normcli.engine.geometry import Slices
    from normcli.numerics.workspace import Workspace


MOST_VALUES = 1 << 14
"""Values in a tile: the many arrays of its size that powers take then lie in a core's L2 cache."""


class ComputationRun(Run):
    """A run in one pass: of a norm with a sliding window, or of lengths of a large p.

    The statistics are of the shape of the kept runs, or of all runs where each value has its own window.
    """

    def measure(self) -> dict[str, Floats]:
        """Apply the computation to every tile, write the results, and return the statistics."""
        self.walk.expect(1)
        self.walk.each(self._compute, whole=True, line=0, most=MOST_VALUES)
        return self.statistics

    def _compute(self, tile: Slices, work: Workspace) -> None:
        window, runs, reduced = self.plan.spec.window, self.geometry.runs, self.geometry.reduced_runs
        raw = np.asarray(self.source.read(tile, runs, work), dtype=np.float64)
        selected = self._select(raw, tile, runs)
        compute = normalize_by_large_powers if window is None else normalize_windows
        y, statistics = compute(self.plan, zero_unselected(raw, selected), reduced)
        if selected is not None:
            statistics[COUNT] = self._count_selected(selected)
        kept = self.geometry.kept_runs if window is None else runs
        shape = tuple(self.geometry.dims[run] for run in kept)
        self.keep(statistics, tuple(tile[run] for run in kept), shape)
        if self.sink is not None:
            place = self.sink.open(tile, work)
            store(place, y)
            if self.selection is not None and selected is not None:
                self.selection.fill(place, raw, selected)
            self.sink.put(tile, place, work)

    def _count_selected(self, selected: Selected) -> Floats:
        """Return how many values of each group, or of each window, count."""
        window, reduced = self.plan.spec.window, self.geometry.reduced_runs
        if window is not None:
            return count_in_windows(selected, window, reduced[0])
        return np.asarray(np.add.reduce(selected, axis=reduced, dtype=np.float64))
