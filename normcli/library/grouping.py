"""Rows in groups, each normalized by itself: standard scores within a class, advantages of GRPO per prompt."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from normcli.errors import DataError
from normcli.fitting.by_column import warn_of_unnamed
from normcli.library.intake import group_rows
from normcli.printable import shorten
from normcli.results.arguments import read_numbers
from normcli.results.normalize import normalize
from normcli.tuples import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import ArrayLike, NDArray

    from normcli.norms.type_names import NormName


class GroupedRows(NamedTuple):
    """Rows that were normalized group by group.

    Parameters
    ----------
    names : list of str
        The values that rows were grouped by, in the order in which they are first met.
    counts : list of int
        The number of rows of each.
    statistics : dict of str to ndarray, shape (groups, columns)
    normalized : ndarray
        Of the rows in their own order.
    warnings : list of str
        What is degenerate, and of how many groups.
    """

    names: list[str]
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
        The group of each row: names, or numbers.
    norm : str
        One whose statistics rows share.
    **options
        As of `normalize`. TRL has `ddof=1, eps=1e-4` of `zscore`, verl `ddof=1, eps=1e-6`.

    Raises
    ------
    NormError
        As `normalize`.
    DataError
        If there is not one name for each row, or there are no rows.

    Examples
    --------
    >>> found = normalize_by([1.0, 5.0, 3.0, 5.0], ["a", "b", "a", "b"], "zscore")
    >>> found.names, found.statistics["mean"].tolist(), found.normalized.tolist()
    (['a', 'b'], [[2.0], [5.0]], [-1.0, 0.0, 1.0, 0.0])
    """
    given = read_numbers(x, "x")
    table = given[:, np.newaxis] if given.ndim == 1 else given
    column = group_rows(by, given)
    if column is None or not len(by):
        raise DataError("there are no rows to group")
    places: dict[str, list[int]] = {}
    for row, name in enumerate(column.read()):
        places.setdefault(name, []).append(row)
    statistics: dict[str, list[NDArray[np.float64]]] = {}
    warned: dict[str, list[str]] = {}
    normalized = None
    for name, rows in places.items():
        result = normalize(table[rows], norm, **options)
        if normalized is None:
            normalized = np.empty(table.shape, result.dtype)
        normalized[rows] = result.normalized
        for statistic, values in result.statistics.items():
            statistics.setdefault(statistic, []).append(values.reshape(-1))
        for kind in result.degeneracies:
            warned.setdefault(kind.kind, []).append(name)
    assert normalized is not None
    return GroupedRows(
        list(places),
        [len(rows) for rows in places.values()],
        {statistic: np.stack(values) for statistic, values in statistics.items()},
        normalized.reshape(given.shape),
        [
            *warn_of_unnamed(places),
            *(
                f"{len(names)} of {len(places)} groups of rows: {kind}; the first is {shorten(names[0])!r}"
                for kind, names in warned.items()
            ),
        ],
    )
