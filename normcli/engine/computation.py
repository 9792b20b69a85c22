"""Runs of norms that need more than centring and dividing: windows, and lengths that may need more digits."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from normcli.engine.inputs import COUNT, zero_unselected
from normcli.engine.passes import Run
from normcli.numerics.deciding import PRECISIONS
from normcli.numerics.decimal_lengths import DecimalLength, find_length, find_to_bits
from normcli.numerics.lengths import has_powers, settle
from normcli.numerics.powers import SPLIT_BITS, count_digits, split_exactly, use_digits
from normcli.numerics.rounding import store
from normcli.numerics.window import count_in_windows, normalize_windows

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from normcli.dtypes import Floats, Selected
    from normcli.engine.geometry import Slices
    from normcli.numerics.lengths import Lengths
    from normcli.numerics.moments import Recall
    from normcli.numerics.records import Records
    from normcli.numerics.workspace import Workspace


MOST_VALUES = 1 << 14
"""Values in a tile: the many arrays of its size that powers take then lie in a core's L2 cache."""


class WindowRun(Run):
    """A run in one pass: of a norm with a sliding window, where each value has statistics of its own."""

    def measure(self) -> dict[str, Floats]:
        """Apply the computation to every tile, write the results, and return the statistics."""
        self.walk.expect(1)
        self.walk.each(self._compute, whole=True, line=0, most=MOST_VALUES)
        return self.statistics

    def _compute(self, tile: Slices, work: Workspace) -> None:
        window, runs, reduced = self.plan.spec.window, self.geometry.runs, self.geometry.reduced_runs
        assert window is not None  # of every norm that has this kind of run
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


class LengthRun(Run):
    """A run of lengths of any p but 2: those that pairs do not decide are calculated in decimals."""

    def measure_groups(
        self, rows: NDArray[Any], tile: Slices, work: Workspace, selected: Selected | None = None
    ) -> Lengths:
        """Measure groups that are rows."""
        lengths: Lengths = super().measure_groups(rows, tile, work, selected)
        for group in _find_undecided(lengths):
            settle(lengths, group, find_length(_choose(rows, selected, group), self._p))
        if self._is_inexact:
            lengths.recall = lambda group, bits: find_to_bits([_choose(rows, selected, group)], self._p, bits)
        return lengths

    def _merge(self, records: Records, recall: Recall) -> Lengths:
        lengths: Lengths = super()._merge(records, recall)
        if not self.whole:
            self._settle_in_passes(lengths)
            if self._is_inexact:
                lengths.recall = lambda group, bits: find_to_bits(self._read_selected(group), self._p, bits)
        return lengths

    def _read_selected(self, group: int) -> Iterator[NDArray[Any]]:
        """Yield the values of a group that count, piece by piece."""
        for x, selected in self.read_group(group):
            yield x.reshape(-1) if selected is None else x[selected]

    @property
    def _is_inexact(self) -> bool:
        """Whether what is kept of a length is not all of it."""
        return self._p == 1.0 or has_powers(self._p)

    @property
    def _p(self) -> float:
        assert self.plan.spec.p is not None  # of every norm that has this kind of run
        return self.plan.spec.p

    def _settle_in_passes(self, lengths: Lengths) -> None:
        """Find the undecided lengths of groups that are larger than a tile, with another pass."""
        undecided = _find_undecided(lengths)
        if not undecided:
            return
        totals, digits = (
            {group: DecimalLength(self._p) for group in undecided},
            count_digits(SPLIT_BITS, self._p),
        )

        def add(tile: Slices, work: Workspace) -> None:
            rows, selected = self._lay_rows(tile, *self._load_selected(tile, work, self.order)[1:])
            for row, group in enumerate(self.geometry.number_groups(tile).tolist()):
                if group in totals:
                    with self._lock, use_digits(digits):
                        totals[group].add(_choose(rows, selected, row))

        self.walk.expect(2)
        self.walk.each(add, whole=False, line=self.geometry.longest_leaf)
        for group, total in totals.items():
            with use_digits(digits):
                settle(lengths, group, split_exactly(total.find()))


def _choose(rows: NDArray[Any], selected: Selected | None, row: int) -> NDArray[Any]:
    """Return the values of a row that count."""
    chosen: NDArray[Any] = rows[row] if selected is None else rows[row][selected[row]]
    return chosen


def _find_undecided(lengths: Lengths) -> list[int]:
    """Return the groups whose lengths have to be calculated with more digits."""
    return [] if lengths.undecided is None else np.flatnonzero(lengths.undecided).tolist()
