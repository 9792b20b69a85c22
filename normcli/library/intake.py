"""Callers' tensors and tables, prepared for fitted statistics: order of axes and columns, groups of rows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from normcli.engine.walk import Effort
from normcli.errors import DataError, UsageError
from normcli.fitting.fit import fit_tensor
from normcli.norms.layout import make_layout
from normcli.results.arrays import Taken, find_lazy, take
from normcli.tensors.tables.numerals import name_value
from normcli.tensors.tensor import GroupingColumns, Tensor

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from normcli.fitting.statistics import Stats
    from normcli.norms.request import Request


def fit_sums(
    x: Any,
    request: Request,
    nan: str,
    threads: int | None,
    wanted: tuple[str, ...] | None,
    by: Sequence[Any] | None,
    *,
    is_update: bool = False,
) -> Stats:
    """Return the statistics of one tensor, for `fit` and `Statistics.update`.

    Parameters
    ----------
    x : array_like
    request : Request
    nan : str
        A value of `NanRule`.
    threads : int or None
        The most threads to work with; None: all processors.
    wanted : tuple of str or None
        The names of columns, in whose order a table's columns are put; None: they stay in order.
    by : sequence or None
        The group of each row; None: rows are not grouped.
    is_update : bool
        Whether named axes are transposed into the order of the request's layout.

    Raises
    ------
    UsageError
        If rows of an array that a scheduler holds in blocks are grouped, or an option makes no sense.
    DataError
        If columns or axes have other names than wanted, a NaN is refused, or `x` does not fit the request.
    """
    lazy = find_lazy(x)
    taken = take(x, "x") if lazy is None else lazy.taken
    if is_update:
        taken = arrange_axes(taken, request.layout)
    request = request.adopt_layout(taken.layout)
    if lazy is not None:
        refuse_groups(by)
        found: Stats = lazy.work.fit_array(taken.values, request, nan)
        return found
    is_table = taken.columns is not None  # whose columns have no dtype in common
    tensor = Tensor(taken.values, "x", taken.columns, has_no_dtype=is_table)
    tensor = tensor._replace(values=tensor.arrange(wanted), columns=wanted or tensor.columns)
    tensor = tensor._replace(by=group_rows(by, tensor.values))
    return fit_tensor(request, tensor, nan, Effort(threads=threads))


def group_rows(by: Any | None, values: NDArray[Any]) -> GroupingColumns | None:
    """Return the groups of a table's rows, as columns of labels; None if `by` is None.

    Parameters
    ----------
    by : sequence, table or None
        A name or number for each row, a tuple of these for each row, or a table of columns of such. The names
        of a table's or a series's columns are kept; columns without names are called `by`.
    values : ndarray, shape (rows, …)
        The rows.

    Raises
    ------
    UsageError
        If `by` is a string.
    DataError
        If there is not one name for each row, or some rows have more names than others.
    """
    if by is None:
        return None
    if isinstance(by, str):
        raise UsageError(f"by is the group of each row, not a name: give the column itself, x[{by!r}]")
    names = [*getattr(by, "columns", ())]
    given = zip(*(by[name] for name in names), strict=True) if names else by
    cells = [value if isinstance(value, tuple | list | np.ndarray) else (value,) for value in given]
    labels = [tuple(map(name_value, row)) for row in cells]
    rows = len(values) if values.ndim else 0
    if len(labels) != rows:
        raise DataError(f"there are {len(labels)} groups' names for {rows} rows")
    widths = sorted({*map(len, labels)})
    if len(widths) > 1 or 0 in widths:
        raise DataError(f"the group of one row has {widths[0]} names, of another {widths[-1]}")
    name = getattr(by, "name", None)
    names = names or [name if isinstance(name, str) else "by"] * (widths or [1])[0]
    return GroupingColumns(tuple(map(str, names)), labels.__iter__)


def refuse_groups(by: Sequence[Any] | None) -> None:
    """Raise `UsageError` if `by` is given; called for arrays that a scheduler holds in blocks."""
    if by is not None:
        raise UsageError("by groups the rows of an array in memory; of one in blocks, leave it out")


def arrange_axes(taken: Taken, layout: str | None) -> Taken:
    """Return an array with its named axes transposed into the order of a layout.

    Results are then given back in the array's own order. It is returned unchanged if its axes have no names, or
    `layout` is None.

    Raises
    ------
    DataError
        If the names of the array's axes are not those of the layout.
    """
    if taken.layout is None or layout is None or taken.layout == layout:
        return taken
    ndim = taken.values.ndim
    mine = make_layout(taken.layout, ndim).names
    wanted = make_layout(layout, ndim).names if layout.count(",") or len(layout) == ndim else ()
    if sorted(mine) != sorted(wanted):
        raise DataError(f"x has the axes {', '.join(mine)}; the statistics are of {layout}")
    order = [mine.index(name) for name in wanted]

    def give(values: NDArray[Any]) -> Any:
        return taken.give(values.transpose([order.index(axis) for axis in range(ndim)]))

    return taken._replace(values=taken.values.transpose(order), give=give, layout=layout)
