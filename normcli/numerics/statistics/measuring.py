"""The measurement of groups that are cut into leaves, by the kind of their divisor."""

from __future__ import annotations

import functools
from functools import partial
from typing import TYPE_CHECKING, Any

from normcli.norms.divisors import Measurement
from normcli.numerics.elements.compiled_kernel import measure_rows
from normcli.numerics.rational import NOTHING, sum_exactly
from normcli.numerics.statistics.moments import find_moments
from normcli.numerics.sums.leaf_records import Leaves, fold_leaves
from normcli.tuples import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from numpy.typing import NDArray

    from normcli.norms.plan import Plan
    from normcli.numerics.rational import ExactSums
    from normcli.numerics.statistics.moments import Moments
    from normcli.numerics.sums.leaf_records import LeafRecords, Read


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
        Takes the records of groups, shape (groups, records), how many values are selected, and what yields the
        values of a group, by its number, that count; returns what `solve` takes.
    """

    records: type[LeafRecords]
    measure: Callable[..., Any]
    fold: Callable[[Any], Any]
    merge: Callable[[Any, Any, Read], Any]


def choose_method(plan: Plan) -> Method:
    """Return how the groups of a plan are measured."""
    measurement = plan.norm.divisor.measurement
    if measurement is Measurement.EXTREMES:
        from normcli.numerics.statistics.order_statistics import Extremes, fold_extremes, measure_extremes

        return Method(Extremes, measure_extremes, fold_extremes, lambda leaves, *_: fold_extremes(leaves))
    if measurement is Measurement.LENGTH and not plan.follows_from_sums:
        from normcli.numerics.statistics.lengths import Powers, fold_powers, measure_powers, merge_powers

        p = plan.spec.p
        assert p is not None  # of every length
        return Method(
            Powers, partial(measure_powers, p=p), partial(fold_powers, p=p), partial(merge_powers, p=p)
        )
    return _measure_moments(plan.norm.divisor.about_mean)


@functools.cache
def _measure_moments(centred: bool) -> Method:
    def merge(leaves: Leaves, count: Any, read: Read) -> Moments:
        return find_moments(fold_leaves(leaves), count, lambda group: add_up(read(group)), centred=centred)

    return Method(Leaves, partial(measure_rows, need_sum=centred), fold_leaves, merge)


def add_up(pieces: Iterable[NDArray[Any]]) -> ExactSums:
    """Return the exact sums of values that come piece by piece."""
    return sum(map(sum_exactly, pieces), NOTHING)
