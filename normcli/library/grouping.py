"""Rows in groups, each normalized by itself: standard scores within a class, advantages of GRPO per prompt."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from normcli.errors import DataError
from normcli.library.statistics import fit
from normcli.results.arguments import read_numbers
from normcli.tuples import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import ArrayLike, NDArray

    from normcli.norms.rules import NormName


class GroupedRows(NamedTuple):
    """Rows that were normalized group by group.

    Parameters
    ----------
    names : list
        The groups, as `Statistics.groups` has them.
    counts : list of int
        The number of rows of each.
    statistics : dict of str to ndarray, shape (groups, columns)
    normalized : ndarray
        Of the rows in their own order.
    warnings : list of str
        What is degenerate, and of how many groups.
    """

    names: list[Any]
    counts: list[int]
    statistics: dict[str, NDArray[np.float64]]
    normalized: NDArray[Any]
    warnings: list[str]


def normalize_by(x: ArrayLike, by: Sequence[Any], norm: NormName, **options: Any) -> GroupedRows:
    """Normalize the rows of each group by their own statistics: exact, each value rounded once.

    Parameters
    ----------
    x : array_like, shape (rows, columns)
        Or (rows,), which is a single column.
    by : sequence
        The group of each row: names, or numbers, or tuples of them, or columns of a table.
    norm : str
        One whose statistics rows share.
    **options
        As of `fit`, and gamma, beta and dtype of `Statistics.apply`. Advantages of GRPO are a `zscore` with
        `like="trl"`, `"verl"` or `"areal"`.

    Raises
    ------
    NormError
        As `fit`.
    DataError
        If there is not one name for each row, or there are no rows.

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
    fields: dict[str, NDArray[Any]] = stats._round().fields
    counts = fields["count"] + (fields["nan_count"] if stats._stats.omits_nan else 0)
    return GroupedRows(
        list(stats.groups or ()),
        counts[:, 0].tolist(),
        {name: fields[name] for name in stats.plan.norm.statistics},
        stats.apply(table, by=by, **of_use).reshape(given.shape),
        list(stats.warnings),
    )


_OF_USE = {"gamma", "beta", "dtype"}
"""The options that statistics have no part in."""
