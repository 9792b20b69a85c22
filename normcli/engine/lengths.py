"""Runs of norms that divide by ℓp lengths: those that pairs do not decide are calculated in decimals."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from normcli.engine.passes import Run
from normcli.numerics.powers import SPLIT_BITS, count_digits, split_exactly, use_digits
from normcli.numerics.statistics.decimal_lengths import DecimalLength, find_length, find_to_bits
from normcli.numerics.statistics.lengths import find_method, has_powers, settle

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from normcli.dtypes import Selected
    from normcli.engine.geometry import Slices
    from normcli.numerics.statistics.lengths import Lengths
    from normcli.numerics.statistics.measuring import Method
    from normcli.numerics.statistics.moments import Recall
    from normcli.numerics.sums.leaf_records import Records
    from normcli.numerics.workspace import Workspace


class LengthRun(Run):
    """A run of lengths of any p but 2."""

    def choose_method(self) -> Method:
        """Return how lengths are measured."""
        return find_method(self._p)

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
