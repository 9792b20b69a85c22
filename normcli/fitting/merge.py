"""Statistics over the files of two stats files, exact in any order; two that do not fit are refused."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from normcli.errors import DataError, name_subject
from normcli.norms.request import Request

if TYPE_CHECKING:
    from normcli.fitting.statistics import Stats


def merge_stats(first: Stats, other: Stats, first_name: str, name: str) -> Stats:
    """Return the statistics over the files of both, exact in either order; the sums of `first` are changed.

    Parameters
    ----------
    first, other : Stats
    first_name, name : str
        The names of the two in messages.

    Raises
    ------
    DataError
        If the two differ in norm, options, shape, columns, dtype or rule for NaN, hold quantiles, or hold the
        same shard.
    """
    other = _arrange(other, first.subject.columns, name)
    mine, theirs = first.subject, other.subject
    for what, a, b in (
        ("norm", mine.request.norm, theirs.request.norm),
        ("shape", mine.shape, theirs.shape),
        ("dtype", mine.dtype, theirs.dtype),
        ("the column that groups rows", *(", ".join(one.by or ("none",)) for one in (mine, theirs))),
        ("NaN", *("omitted" if stats.omits_nan else "propagated" for stats in (first, other))),
        *((field, getattr(mine.request, field), getattr(theirs.request, field)) for field in Request._fields),
    ):
        if a != b:
            raise DataError(
                f"{name} and {first_name} differ in {what}: {_format_choice(b)} and {_format_choice(a)}; "
                "they cannot be merged"
            )
    if first.quantiles is not None:
        raise DataError(
            f"{name} and {first_name} hold quantiles, from which those of both do not follow; fit all at once"
        )
    with name_subject(f"{first_name} and {name}"):
        added = first.add(other)
    return added._replace(subject=added.subject._replace(columns=mine.columns or theirs.columns))


def _arrange(stats: Stats, wanted: tuple[str, ...] | None, name: str) -> Stats:
    """Return statistics with their columns in the wanted order; unchanged if either has no names.

    Raises
    ------
    DataError
        If the names are not the wanted ones in another order, or columns have no statistics of their own.
    """
    names, grid = stats.subject.columns, stats.subject.plan(1).grid
    if wanted is None or names is None or names == wanted:
        return stats
    last = len(grid.shape) - 1
    if sorted(names) != sorted(wanted) or len(set(names)) < len(names) or last not in grid.kept or grid.groups:
        raise DataError(f"{name} is of the columns {', '.join(names)}, not of {', '.join(wanted)}")
    order = [names.index(column) for column in wanted]
    groups = (
        np.arange(grid.group_count).reshape(grid.stats_shape).take(order, grid.kept.index(last)).reshape(-1)
    )
    return stats._replace(subject=stats.subject._replace(columns=wanted), sums=stats.sums.take(groups))


def _format_choice(value: Any) -> str:
    return "the norm's own" if value is None else str(value)
