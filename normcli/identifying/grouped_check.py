"""Checks of tables whose rows are normalized group by group."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from normcli.checking.check import NORMALIZED, Checked, check
from normcli.checking.half_precision import compare_saved
from normcli.checking.tally import Comparison, GroupTally
from normcli.checking.ulp import choose_counting_dtype
from normcli.errors import DataError
from normcli.fitting.by_column import RowGroups, find_groups, number_groups_of
from normcli.fitting.fit import fit_tensor
from normcli.fitting.statistics import find_few, warn
from normcli.fitting.use import Use, use_stats
from normcli.norms.plan import make_plan
from normcli.printable import format_count
from normcli.results.arguments import Problem
from normcli.results.given_inputs import SelectionRequest, fit_inputs
from normcli.tensors.mapped import fetch
from normcli.tensors.tensor import Tensor
from normcli.tuples import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from numpy.typing import NDArray

    from normcli.checking.ulp import Tolerance
    from normcli.dtypes import Floats
    from normcli.engine.walk import Effort
    from normcli.fitting.statistics import Stats
    from normcli.norms.plan import Plan
    from normcli.norms.request import Request


class GroupedCheck(NamedTuple):
    """The result of a check of a table whose rows are normalized group by group.

    Parameters
    ----------
    table : GroupedTable
    request : Request
        The norm that the actual table should be.
    plan : Plan
        The plan of one row; its axes are rows, groups and columns.
    stats : Stats
        The exact statistics of each group and column.
    groups : RowGroups
        The labels of the groups, and the group of each row.
    places : ndarray of int
        The index of each row's group in the labels.
    checked : Checked
        The comparison. Its groups are numbered by row group, then by column. A value is left out if its group
        has no more values than ddof and the exact result is NaN.
    warnings : tuple of str
        Warnings on degenerate groups, and on groups that are not judged.
    unjudged : tuple of int
        The number of groups that are left out (each of one column), and of values.
    """

    table: GroupedTable
    request: Request
    plan: Plan
    stats: Stats
    groups: RowGroups
    places: NDArray[np.intp]
    checked: Checked
    warnings: tuple[str, ...]
    unjudged: tuple[int, int]

    @property
    def kept_names(self) -> tuple[str, ...]:
        """The names of the columns that group the rows, and `column`."""
        by = self.table.tensor.by
        return () if by is None else (*by.names, "column")

    @property
    def group_count(self) -> int:
        """The number of groups, each of one column."""
        return self.plan.grid.group_count

    def group_name(self, group: int) -> str:
        """Return the name of a group: `shop=north price`."""
        return self.stats.subject.name_group(group)

    def group_index(self, group: int) -> dict[str, Any]:
        """Return the labels of a group's rows and its column, by `kept_names`."""
        (row, place), columns = divmod(group, self.table.tensor.values.shape[1]), self.table.tensor.columns
        column = str(place) if columns is None else columns[place]
        return dict(zip(self.kept_names, (*self.groups.labels[row], column), strict=True))

    def locate_groups(self, indices: Sequence[Any]) -> Any:
        """Return the group of values, given their rows and columns."""
        return self.places[indices[0]] * self.table.tensor.values.shape[1] + indices[1]


class GroupedTable(NamedTuple):
    """A table, and the actual table to check, whose rows are normalized group by group.

    Parameters
    ----------
    tensor : Tensor
        The input, and the columns that group its rows.
    actual : Tensor
        The actual table, of the input's shape, and the columns that group its rows if it has them.
    affine : mapping of str to ndarray or None
        Gamma and beta, as given.
    nan : {"propagate", "omit", "raise"}
    tolerate : callable
        Returns the tolerance for values of a dtype.
    effort : Effort
        Threads and memory; the result does not depend on it.
    """

    tensor: Tensor
    actual: Tensor
    affine: Mapping[str, NDArray[Any] | None]
    nan: str
    tolerate: Callable[[np.dtype[Any]], Tolerance]
    effort: Effort

    def compare(self, request: Request) -> GroupedCheck:
        """Compare the actual table with the exact one, whose rows are normalized by their group's statistics.

        Raises
        ------
        NormError
            If `fit` cannot make statistics of the table, `tolerate` refuses a dtype, or no group can be judged.
        """
        tensor, values, width = self.tensor, self.tensor.values, self.tensor.values.shape[1]
        stats = fit_tensor(request, tensor, self.nan, self.effort)
        expected = self.normalize(stats)
        groups = find_groups(tensor, stats.subject)
        few, warnings, left_out = find_few(stats), warn(stats), 0

        def compare(half: np.dtype[Any] | None) -> Comparison:
            nonlocal left_out
            counted = np.dtype(half or request.dtype or self.actual.values.dtype)
            found, left_out = Comparison(self.tolerate(choose_counting_dtype(counted))), 0
            found.groups = tally = GroupTally((len(groups.labels) * width,))
            for rows, places in groups.iterate_rows(expected):
                theirs, exact = (fetch(part[rows]).reshape(-1) for part in (self.actual.values, expected))
                numbers = number_groups_of(places, width)
                judged = np.flatnonzero(~(few[numbers] & np.isnan(exact)))
                here = Comparison(found.tolerance)
                tally.add_each(numbers[judged], here.compare(theirs[judged], exact[judged], 0))
                if here.worst is not None:
                    place = rows.start * width + int(judged[here.worst.place])
                    here.worst = here.worst._replace(place=place)
                found.merge(here)
                left_out += exact.size - judged.size
            return found

        with np.errstate(all="ignore"):
            every = (values,) if request.dtype is None else None
            found, saved = compare_saved(every, self.actual.values, compare)
        if left_out and not found.compared:
            raise DataError(f"{tensor.source}: no group has more values than ddof: nothing can be judged")
        count = int(few.sum()) if left_out else 0
        if count:
            warnings += (f"not judged: {format_count(count, 'group')} of no more values than ddof",)
        checked = Checked({NORMALIZED: found}, {}, saved=saved)
        places, plan = groups.places[fetch(groups.met)], stats.subject.plan(1)
        return GroupedCheck(self, request, plan, stats, groups, places, checked, warnings, (count, left_out))

    def normalize(self, stats: Stats) -> NDArray[np.float64]:
        """Return the exact result: the table with rows normalized by their group's statistics, in float64."""
        use = Use(stats, self.affine.get("gamma"), self.affine.get("beta"), dtype="float64")
        return use_stats(use, self.tensor, None, self.effort, inverts=False)[0]

    def agrees(self, y: Floats, exact: Floats) -> bool:
        """Whether values of the actual table are within the tolerance of exact ones."""
        found = Comparison(self.tolerate(choose_counting_dtype(self.actual.values.dtype)))
        found.compare(y.reshape(-1), exact.reshape(-1), 0)
        return found.ok

    def judge(
        self, request: Request, some: NDArray[np.bool_] | None = None
    ) -> tuple[Problem, NDArray[Any], Checked]:
        """Check rows as a table without groups; return norm with rows of input, rows of actual, and comparison.

        Parameters
        ----------
        request : Request
        some : ndarray of bool or None
            True for the rows to take; None for all rows.
        """
        both = self.tensor.values, self.actual.values
        x, theirs = both if some is None else (fetch(part[some]) for part in both)
        plan = make_plan(request, x.shape, x.dtype, self.tensor.columns)
        inputs = fit_inputs(plan, x, self.affine, None, SelectionRequest(nan=self.nan))
        problem = Problem(plan, Tensor(x, self.tensor.source), inputs, self.effort)
        return problem, theirs, check(problem, {NORMALIZED: theirs}, self.tolerate)
