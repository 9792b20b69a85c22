"""The passes of a norm that is made of quantiles, such as a median or a range of two.

Groups that lie within a tile are sorted. Of larger ones the keys of the quantiles are found
digit by digit, with one pass for each digit: two for values of 32 bits, four for 64, more if groups are many.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from normcli.dtypes import is_long_integer, is_short_float
from normcli.engine.inputs import Inputs
from normcli.engine.passes import Passes
from normcli.engine.tiling.blocks import ArraySource, open_source
from normcli.engine.tiling.geometry import find_geometry
from normcli.engine.walk import DEFAULT_EFFORT
from normcli.errors import DataError
from normcli.numerics.statistics.ranks import RankSearch, find_shares, measure_quantiles
from normcli.numerics.statistics.solution import solve
from normcli.tuples import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from numpy.typing import NDArray

    from normcli.dtypes import Selected
    from normcli.engine.inputs import Selection
    from normcli.engine.tiling.geometry import Slices
    from normcli.engine.walk import Effort
    from normcli.norms.plan import Plan
    from normcli.numerics.statistics.divisor import Solution
    from normcli.numerics.statistics.order_statistics import Quantiles
    from normcli.numerics.workspace import Workspace


MOST_VALUES = 1 << 19
"""The most values in a tile that is counted: each is also held as an integer and as the number of a bin."""

SHORTEST_LINE = 4096
"""The fewest bytes in a row at which a file is read fast; in memory, shorter rows hardly matter."""


class QuantilePasses(Passes):
    """The passes of a norm whose statistics are quantiles."""

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        count, effort = self.geometry.count, self.walk.effort
        line = effort.block // count * self.source.dtype.itemsize
        if isinstance(self.source, ArraySource) or line >= SHORTEST_LINE:
            self.whole = self.whole or count <= effort.whole

    def _solve_tile(
        self, x: NDArray[Any], tile: Slices, work: Workspace, selected: Selected | None
    ) -> tuple[Solution, Any]:
        rows, chosen = self._lay_rows(tile, x, selected)
        quantiles = measure_quantiles(rows, find_shares(self.plan), chosen)
        return solve(self.plan, quantiles), quantiles.count

    def _measure_in_passes(self) -> None:
        search = _start_search(self.plan, self.source.dtype)
        self.walk.expect(search.passes - 1)
        while not search.done:
            self.add_values(search)
            search.advance()
        quantiles = search.find()
        self._write_all(solve(self.plan, quantiles), quantiles.count)

    def add_values(self, search: RankSearch) -> None:
        """Add every value that counts to a search, in one pass."""
        geometry = self.geometry
        order = geometry.kept_first

        def add(tile: Slices, work: Workspace) -> None:
            groups = geometry.number_groups(tile)
            _, x, selected = self._load_selected(tile, work, order)
            chosen = None if selected is None else selected.reshape(len(groups), -1)
            search.add(groups, x.reshape(len(groups), -1), chosen)

        self.walk.each(add, whole=False, most=MOST_VALUES)


class RankedValues(NamedTuple):
    """A tensor, or single values of several groups, of which `find_quantiles` finds quantiles.

    Parameters
    ----------
    plan : Plan
        The plan of the tensor; with `numbers`, any plan of the same norm that has all groups.
    values : ndarray
    numbers : ndarray of int or None
        The index of the group of each value, in C order of `values`. None if `values` is a tensor with the
        plan's groups.
    """

    plan: Plan
    values: NDArray[Any]
    numbers: NDArray[np.intp] | None = None


def find_quantiles(
    parts: Callable[[], Iterable[RankedValues]],
    effort: Effort = DEFAULT_EFFORT,
    selection: Selection | None = None,
) -> Quantiles:
    """Return the quantiles of tensors as if they were one.

    Parameters
    ----------
    parts : callable
        Returns the tensors in any order, as an iterable. It is called once for each digit of a value: twice for
        float32, four times for float64, more often where groups are many.
    effort : Effort
    selection : Selection or None
        Which values count; None for all. A mask broadcasts to every tensor, but is ignored for values that
        come with `numbers`.

    Raises
    ------
    DataError
        If there is no tensor, or tensors differ in the number of groups, or in the dtype that their values are
        compared in (float32, float64, or an integer's own).

    Notes
    -----
    Tensors larger than memory are read tile by tile; what is kept is one histogram for each quantile and group.
    Two results cannot be merged: the tensors of both have to be read again.
    """
    search = None
    while search is None or not search.done:
        for plan, values, numbers in parts():
            if search is None:
                search = _start_search(plan, values.dtype)
            elif plan.grid.group_count != len(search.count):
                raise DataError(
                    f"{plan.grid.shape} has {plan.grid.group_count} groups; there are {len(search.count)}"
                )
            if _choose_key_dtype(values.dtype) != search.dtype:
                raise DataError(f"{values.dtype} is not of the width of the values before")
            if not values.size:
                continue
            if numbers is not None:
                omitted = np.isnan(values) if selection is not None and selection.omits_nan else False
                search.add_each(numbers, values.reshape(-1), ~np.reshape(omitted, -1))
                continue
            geometry = find_geometry(plan)
            with open_source(values, plan, geometry) as source:
                run = QuantilePasses(plan, geometry, source, None, Inputs(selection=selection), effort)
                run.walk.expect(1)
                run.add_values(search)
        if search is None:
            raise DataError("there is no tensor to find quantiles of")
        search.advance()
    return search.find()


def _start_search(plan: Plan, dtype: np.dtype[Any]) -> RankSearch:
    """Return a search for the quantiles of a plan's groups, of values of a dtype."""
    return RankSearch(plan.grid.group_count, _choose_key_dtype(dtype), find_shares(plan))


def _choose_key_dtype(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """Return the first of float32, float64 and `dtype` itself that holds every value of `dtype`."""
    if is_long_integer(dtype):
        return dtype.newbyteorder("=")
    return np.dtype(np.float32 if is_short_float(dtype) else np.float64)
