"""Statistics fitted to tensors, loaded, merged and used; and rows that are normalized group by group.

Rows in groups are standard scores within a class, or advantages of GRPO per prompt.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from normcli.errors import DataError, UsageError
from normcli.fitting.shards import require_all
from normcli.fitting.stats_file import read_stats
from normcli.library.intake import fit_sums
from normcli.library.statistics import Statistics
from normcli.norms.request import Choices, Request
from normcli.results.arguments import read_numbers
from normcli.tuples import NamedTuple

if TYPE_CHECKING:
    import os
    from collections.abc import Sequence

    from numpy.typing import ArrayLike, NDArray

    from normcli.norms.layout import AxisSpec
    from normcli.norms.rules import EpsModeName, FrameworkName, GroupOrderName, NanName, NormName

_NO_OPTIONS = ("x", "norm", "nan", "by", "threads")
"""The arguments of `fit` that are no options of the norm."""


def fit(
    x: Any,
    norm: NormName = "bn",
    *,
    axes: AxisSpec | None = None,
    keep: AxisSpec | None = None,
    layout: str | None = None,
    feature_axes: AxisSpec | None = None,
    gamma_offset: int | None = None,
    groups: int | None = None,
    group_order: GroupOrderName | None = None,
    eps: float | None = None,
    eps_mode: EpsModeName | None = None,
    ddof: int | None = None,
    p: float | None = None,
    range: tuple[float, float] | None = None,
    quantiles: tuple[float, float] | None = None,
    no_mean: bool | None = None,
    no_scale: bool | None = None,
    like: FrameworkName | None = None,
    nan: NanName | None = None,
    by: Sequence[Any] | None = None,
    threads: int | None = None,
) -> Statistics:
    """Return the statistics of a norm over a tensor's samples, which can be updated, merged, saved and applied.

    Parameters
    ----------
    x : array_like
        The tensor: an array, a tensor of PyTorch or JAX, a table of pandas or polars, an xarray `DataArray`.
    norm : str
        A name of the table `normcli.NORMS`, or an alias, of a norm whose statistics all samples share.
    axes, keep, layout, feature_axes, gamma_offset, groups, group_order, eps, eps_mode, ddof, p, like
        Options of the norm, as in `normalize`.
    range, quantiles, no_mean, no_scale
        Options of the norm, as in `normalize`.
    nan : {"propagate", "omit", "raise"}, optional
        The effect of NaN on the statistics of its group, as in `normalize`.
    by : sequence, optional
        The group of each row of a table, such as a column of pandas: each group has a row of statistics, in the
        order of `Statistics.groups`.
    threads : int, optional
        The most threads to work with; None: all processors.

    Raises
    ------
    UsageError
        If samples have statistics of their own (`ln`, `in`), or an option makes no sense.
    DataError
        If `x` does not hold real numbers, or holds NaN under `nan="raise"`.

    Notes
    -----
    Sums are exact: each statistic is the exact value, rounded once to float64.

    Examples
    --------
    >>> stats = fit([[1.0, 2.0], [3.0, 6.0]], "minmax")
    >>> stats.min, stats.range
    (array([1., 2.]), array([2., 4.]))
    >>> shops = fit([[1.0], [5.0], [3.0]], "zscore", by=["north", "south", "north"])
    >>> shops.groups, shops.mean.tolist(), shops.apply([[4.0], [6.0]], by=["north", "south"]).tolist()
    (('north', 'south'), [[2.0], [5.0]], [[2.0], [1.0]])
    """
    options = {name: value for name, value in locals().items() if name not in _NO_OPTIONS}
    request = Request.collect(norm, options)
    rule = Choices(request).pick_nan_rule(nan)
    return Statistics(fit_sums(x, request, rule, threads, None, by))


def load(path: str | os.PathLike[str]) -> Statistics:
    """Return the statistics of a stats file, which `Statistics.save` or `normcli fit` wrote.

    Raises
    ------
    DataError
        If there is no such file, or it is damaged, of another version, or no stats file.
    """
    return Statistics(read_stats(str(path)))


def merge(first: Statistics, *others: Statistics, partial: bool = False) -> Statistics:
    """Return the statistics over all the data of several statistics: equal to the bit in any order.

    Parameters
    ----------
    first, *others : Statistics
    partial : bool
        True: shards of `normcli fit --shard I/N` may be missing. False: that is an error.

    Raises
    ------
    UsageError
        If an argument is none of `Statistics`, such as a list.
    DataError
        If norms, options, rules for NaN, shapes, columns, grouping columns or dtypes differ; if the statistics
        are quantiles; if one shard is given twice; or, without `partial`, if shards are missing.
    """
    if not all(isinstance(one, Statistics) for one in (first, *others)):
        raise UsageError("merge takes statistics one by one: merge(first, second), of a list merge(*list)")
    merged = first
    for other in others:
        merged |= other
    if not partial:
        require_all(merged._stats.shards)
    return merged


def apply(stats: Statistics, x: Any, **options: Any) -> Any:
    """Normalize a tensor with statistics: `stats.apply(x, **options)`.

    Raises
    ------
    UsageError
        If `stats` is none of `Statistics`, such as a table or the path of a file.
    """
    if not isinstance(stats, Statistics):
        raise UsageError("apply takes fitted statistics first, then the tensor; load(path) reads statistics")
    return stats.apply(x, **options)


class GroupedRows(NamedTuple):
    """The result of `normalize_by`: rows that were normalized group by group.

    Parameters
    ----------
    names : list
        The groups' names, in the order of `Statistics.groups`.
    counts : list of int
        The number of rows of each group.
    statistics : dict of str to ndarray, shape (groups, columns)
        The norm's statistics by name.
    normalized : ndarray
        The normalized values, of the input's shape and in its order.
    warnings : list of str
        A line for each kind of degenerate group, with the number of such groups.
    """

    names: list[Any]
    counts: list[int]
    statistics: dict[str, NDArray[np.float64]]
    normalized: NDArray[Any]
    warnings: list[str]


def normalize_by(x: ArrayLike, by: Sequence[Any], norm: NormName, **options: Any) -> GroupedRows:
    """Normalize the rows of each group with the group's own statistics; each value is exact, rounded once.

    Parameters
    ----------
    x : array_like, shape (rows, columns) or (rows,)
        The rows; an array of one axis is a single column.
    by : sequence
        The group of each row: a name, a number or a tuple of these for each row, or columns of a table.
    norm : str
        A norm whose statistics rows share, such as `zscore`.
    **options
        Options of `fit`, and gamma, beta and dtype of `Statistics.apply`. Advantages of GRPO are a `zscore`
        with `like="trl"`, `"verl"` or `"areal"`.

    Raises
    ------
    UsageError
        If an option makes no sense, or samples of the norm have statistics of their own.
    DataError
        If there is not one group for each row, there are no rows, or `x` does not hold real numbers.

    Examples
    --------
    >>> found = normalize_by([1.0, 5.0, 3.0, 5.0], ["a", "b", "a", "b"], "zscore")
    >>> found.names, found.statistics["mean"].tolist(), found.normalized.tolist()
    (['a', 'b'], [[2.0], [5.0]], [-1.0, 0.0, 1.0, 0.0])
    """
    given = read_numbers(x, "x")
    if not given.size:
        raise DataError("there are no rows to group")
    table = given[:, np.newaxis] if given.ndim == 1 else given
    of_use = {name: options.pop(name) for name in _OF_USE & options.keys()}
    stats = fit(table, norm, by=by, **options)
    fields: dict[str, NDArray[Any]] = stats._rounded.fields
    counts = fields["count"] + (fields["nan_count"] if stats._stats.omits_nan else 0)
    return GroupedRows(
        list(stats.groups or ()),
        counts[:, 0].tolist(),
        {name: fields[name] for name in stats.plan.norm.statistics},
        stats.apply(table, by=by, **of_use).reshape(given.shape),
        list(stats.warnings),
    )


_OF_USE = {"gamma", "beta", "dtype"}
"""The options of `normalize_by` that `Statistics.apply` takes; `fit` takes all others."""
