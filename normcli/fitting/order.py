"""Quartiles over many tensors, and extremes: both exact, in any order and split."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from normcli.engine.inputs import COUNT, Inputs
from normcli.engine.order import choose_key_dtype, feed, start_search
from normcli.engine.run import measure
from normcli.engine.walk import DEFAULT_EFFORT
from normcli.errors import DataError
from normcli.numerics.extremes import hold_extremes

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from numpy.typing import NDArray

    from normcli.engine.inputs import Selection
    from normcli.engine.walk import Effort
    from normcli.norms.plan import Plan
    from normcli.numerics.moments import Moments
    from normcli.numerics.quartiles import Quartiles

    Part = tuple[Plan, NDArray[Any]]


def find_quartiles(
    parts: Callable[[], Iterable[Part]],
    effort: Effort = DEFAULT_EFFORT,
    selection: Selection | None = None,
) -> Quartiles:
    """Return the quartiles of tensors as if they were one.

    Parameters
    ----------
    parts : callable
        Gives the tensors, each with a plan for its shape, in any order; it is called once for each digit of a
        value: twice for float32, four times for float64, more often where groups are many.
    effort : Effort
    selection : Selection or None
        Which values count: a mask, if there is one, broadcasts to every tensor.

    Raises
    ------
    DataError
        If there is no tensor, or their groups or dtypes differ.

    Notes
    -----
    Tensors larger than memory are read tile by tile; what is kept is one histogram a quartile and group. Two
    results cannot be merged: the tensors of both have to be read again.
    """
    search = None
    while search is None or not search.done:
        for plan, values in parts():
            if search is None:
                search = start_search(plan, values.dtype)
            elif plan.grid.group_count != len(search.count):
                raise DataError(
                    f"{plan.grid.shape} has {plan.grid.group_count} groups; there are {len(search.count)}"
                )
            if choose_key_dtype(values.dtype) != search.dtype:
                raise DataError(f"{values.dtype} is not of the width of the values before")
            feed(search, plan, values, Inputs(selection=selection), effort)
        if search is None:
            raise DataError("there is no tensor to find quartiles of")
        search.advance()
    return search.find()


def find_extremes(
    plan: Plan, values: NDArray[Any], effort: Effort = DEFAULT_EFFORT, selection: Selection | None = None
) -> Moments:
    """Return the extremes of a tensor's groups, as `solve` takes them.

    Parameters
    ----------
    plan : Plan
        Of a norm that divides by the range.
    values : ndarray
    effort : Effort
    selection : Selection or None
        Which values count.
    """
    statistics = measure(plan, values, Inputs(selection=selection), effort)
    count = statistics.get(COUNT, np.full(plan.grid.stats_shape, float(plan.grid.group_size)))
    return hold_extremes(*(array.reshape(-1) for array in (count, statistics["min"], statistics["max"])))


def merge_extremes(one: Moments, other: Moments) -> Moments:
    """Return the extremes of two sets of values as those of one; NaN in either spreads."""
    least, largest = (
        np.where(np.equal(one.count, 0), b, np.where(np.equal(other.count, 0), a, choose(a, b)))
        for choose, a, b in (
            (np.minimum, one.mean.hi, other.mean.hi),
            (np.maximum, one.m2.hi, other.m2.hi),
        )
    )
    return hold_extremes(one.count + other.count, least, largest)
