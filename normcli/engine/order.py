"""Runs of norms that go by the order of values: the extremes of groups, or their quartiles.

Groups that lie within a tile are sorted. Of larger ones the keys of the quartiles are found digit by digit,
with one pass for each digit: two for values of 32 bits, four for 64, more of many groups.
"""

from __future__ import annotations

import contextlib
import math
from typing import TYPE_CHECKING, Any

import numpy as np

from normcli.dtypes import is_short_float
from normcli.engine.blocks import ArraySource, open_source
from normcli.engine.geometry import find_geometry
from normcli.engine.inputs import NO_INPUTS, leave_counting
from normcli.engine.passes import Run
from normcli.engine.walk import DEFAULT_EFFORT, Walk
from normcli.numerics.extremes import fold_extremes, measure_extremes, merge_extremes
from normcli.numerics.order import RankSearch, measure_quartiles
from normcli.numerics.solution import solve

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from normcli.engine.geometry import Slices
    from normcli.engine.inputs import Inputs, Marks
    from normcli.engine.walk import Effort
    from normcli.norms.plan import Plan
    from normcli.numerics.divisor import Solution
    from normcli.numerics.leaves import Leaves
    from normcli.numerics.moments import Moments
    from normcli.numerics.workspace import Workspace


MOST_VALUES = 1 << 19
"""Values in a tile that is counted: each is an integer too, and a number of a cell."""

SHORTEST_LINE = 4096
"""Bytes of a file that are read at intervals as well as in a row; in memory it hardly matters."""


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


class QuartileRun(Run):
    """One scaling by the interquartile range."""

    def __init__(self, *arguments: Any, **named: Any) -> None:
        super().__init__(*arguments, **named)
        count, effort = self.geometry.count, self.walk.effort
        line = effort.block // count * self.source.dtype.itemsize
        if isinstance(self.source, ArraySource) or line >= SHORTEST_LINE:
            self.whole = self.whole or count <= effort.whole

    def _solve_tile(
        self, x: NDArray[Any], tile: Slices, work: Workspace, marks: Marks | None
    ) -> tuple[Solution, Any]:
        groups = math.prod(self._tile_groups(tile))

        def lay(values: NDArray[Any]) -> NDArray[Any]:
            if not self.geometry.columns:
                return values.reshape(groups, -1)
            return np.ascontiguousarray(values.reshape(-1, groups).T)

        counting = None if marks is None else lay(marks)
        quartiles = measure_quartiles(lay(x), counting)
        return solve(self.plan, quartiles, exact=self.exact), quartiles.count

    def _do_two_passes(self) -> None:
        search = start_search(self.plan, self.source.dtype)
        self.walk.expect(search.passes - 1)
        while not search.done:
            self.feed(search)
            search.advance()
        quartiles = search.find()
        self._write_all(solve(self.plan, quartiles, exact=self.exact), quartiles.count)

    def feed(self, search: RankSearch) -> None:
        """Add every value to a search."""
        geometry = self.geometry
        numbers = np.arange(len(search.count)).reshape(geometry.kept_shape)
        order = geometry.kept_runs + geometry.reduced_runs

        def gather(tile: Slices, work: Workspace) -> None:
            raw = self._load(tile, work, order)
            marks = self._mark(raw, tile, order)
            groups = math.prod(self._tile_groups(tile))
            rows = leave_counting(raw, marks).reshape(groups, -1)
            counting = None if marks is None else marks.reshape(groups, -1)
            mine = numbers[tuple(tile[i] for i in geometry.kept_runs)].reshape(-1)
            search.add(mine, rows, counting)

        walk = Walk(geometry, self.source, self.walk.effort, min(self.walk.effort.block, MOST_VALUES))
        walk.each(gather, whole=False, line=int(geometry.leaf_sizes.max()))


def start_search(plan: Plan, dtype: np.dtype[Any]) -> RankSearch:
    """Return a search for the quartiles of a plan's groups, of values of a dtype."""
    return RankSearch(plan.grid.group_count, choose_key_dtype(dtype))


def choose_key_dtype(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """Return the shorter of float32 and float64 that holds values of a dtype as they count."""
    return np.dtype(np.float32 if is_short_float(dtype) else np.float64)


def feed(
    search: RankSearch,
    plan: Plan,
    values: NDArray[Any],
    inputs: Inputs = NO_INPUTS,
    effort: Effort = DEFAULT_EFFORT,
) -> None:
    """Add every value of a tensor to a search.

    Parameters
    ----------
    search : RankSearch
        For as many groups as the plan has, in its order.
    plan : Plan
        Of the tensor's shape.
    values : ndarray
    inputs : Inputs
        Of which the selection says which values count.
    effort : Effort
    """
    if values.size == 0:
        return
    geometry = find_geometry(plan)
    with contextlib.closing(open_source(values, plan, geometry)) as source:
        run = QuartileRun(plan, geometry, source, None, inputs, effort)
        run.walk.expect(1)
        run.feed(search)
