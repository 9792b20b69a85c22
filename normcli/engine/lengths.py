"""Passes of norms that divide by ℓp lengths: what pairs do not decide is asked of decimals."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from normcli.engine.passes import Passes
from normcli.numerics.statistics.decimal_lengths import find_to_bits
from normcli.numerics.statistics.lengths import find_method, has_powers

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from normcli.dtypes import Selected
    from normcli.engine.geometry import Slices
    from normcli.numerics.statistics.lengths import Lengths
    from normcli.numerics.statistics.measuring import Method
    from normcli.numerics.statistics.moments import Recall
    from normcli.numerics.sums.leaf_records import LeafRecords
    from normcli.numerics.workspace import Workspace


class LengthPasses(Passes):
    """The passes of lengths of any p but 2."""

    def choose_method(self) -> Method:
        """Return how lengths are measured."""
        return find_method(self._p)

    def measure_groups(
        self, rows: NDArray[Any], tile: Slices, work: Workspace, selected: Selected | None = None
    ) -> Lengths:
        """Measure groups that are rows."""
        lengths: Lengths = super().measure_groups(rows, tile, work, selected)
        if self._is_inexact:
            lengths.recall = lambda group, bits: find_to_bits([_choose(rows, selected, group)], self._p, bits)
        return lengths

    def _merge(self, records: LeafRecords, recall: Recall) -> Lengths:
        lengths: Lengths = super()._merge(records, recall)
        if self._is_inexact and not self.whole:
            lengths.recall = lambda group, bits: find_to_bits(self._read_selected(group), self._p, bits)
        return lengths

    def _read_selected(self, group: int) -> Iterator[NDArray[Any]]:
        """Yield the values of a group that count, piece by piece."""
        for x, selected in self.read_group(group):
            yield x.reshape(-1) if selected is None else x[selected]

    @property
    def _is_inexact(self) -> bool:
        """Whether pairs may not be all of a length."""
        return self._p == 1.0 or has_powers(self._p)

    @property
    def _p(self) -> float:
        assert self.plan.spec.p is not None  # of every norm that has such passes
        return self.plan.spec.p


def _choose(rows: NDArray[Any], selected: Selected | None, row: int) -> NDArray[Any]:
    """Return the values of a row that count."""
    chosen: NDArray[Any] = rows[row] if selected is None else rows[row][selected[row]]
    return chosen
