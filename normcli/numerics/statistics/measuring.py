"""How groups are measured that are cut into leaves: short rows, whose records are folded into one."""

from __future__ import annotations

import functools
from functools import partial
from typing import TYPE_CHECKING, Any

from normcli.numerics.elements.compiled_kernel import measure_rows
from normcli.numerics.statistics.moments import find_moments
from normcli.numerics.sums.leaf_records import Leaves, fold_leaves
from normcli.numerics.sums.row_sums import measure_leaves
from normcli.numerics.sums.short_row_sums import measure_short_leaves
from normcli.tuples import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable

    from normcli.numerics.sums.leaf_records import LeafRecords


class Method(NamedTuple):
    """A way to measure groups.

    Parameters
    ----------
    records : type
        What is measured of leaves.
    measure : callable
        Takes leaves, shape (leaves, n), a workspace, and which values are selected (None for all; the others
        have to be 0), and returns records.
    fold : callable
        Makes one record of all records along the last axis.
    merge : callable
        Takes the records of groups, shape (groups, records), how many values are selected, and what returns
        the exact sums of a group by its number; returns what `solve` takes.
    measures_columns : bool
        Whether `measure_columns` measures the same of groups that are laid out as columns.
    """

    records: type[LeafRecords]
    measure: Callable[..., Any]
    fold: Callable[[Any], Any]
    merge: Callable[[Any, Any, Any], Any]
    measures_columns: bool = False


@functools.cache
def measure_moments(*, exact: bool, centred: bool) -> Method:
    """Return how moments are measured: with `exact` for float64 results, else for 24 bits."""
    plain = measure_leaves if exact else measure_short_leaves
    return Method(
        Leaves,
        partial(measure_rows, plain, need_sum=centred),
        fold_leaves,
        lambda leaves, *others: find_moments(fold_leaves(leaves), *others, centred=centred),
        measures_columns=True,
    )
