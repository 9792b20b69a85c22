"""What x, gamma and beta show of where y is not finite, or 0: which step of a kernel may have made it."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from normcli.dtypes import get_eps, get_largest, is_half
from normcli.tuples import NamedTuple

if TYPE_CHECKING:
    from normcli.dtypes import Floats, Selected
    from normcli.identifying.faults.case import Case

_ROUNDINGS = 2.0
"""Last places that E[x²] − E[x]² may be off, beside those of its sums."""


def is_constant(case: Case) -> bool:
    """Whether x shows nothing of a norm that subtracts its mean: every group is of one value."""
    return case.centres and case.stored is None and case.has_moments and not np.ptp(case.x, case.axes).any()


class Source(NamedTuple):
    """What may have made a value that is not finite, or 0, and what to do about it."""

    words: str
    remedy: str


def find_source(case: Case, where: Selected) -> Source | None:
    """Return what may have made NaN, infinity or 0 of some values; None where nothing is seen of it.

    Parameters
    ----------
    case : Case
    where : ndarray of bool
        Of the view's shape.
    """
    for name, values in (("gamma", case.gamma), ("beta", case.beta), ("x", case.x)):
        odd = np.broadcast_to(~np.isfinite(values), where.shape)
        of_groups = odd.any(case.axes, keepdims=True) if name == "x" else odd
        if np.broadcast_to(of_groups, where.shape)[where].all():
            return Source(f"{name} is not finite", f"find what made {name}")
    if not case.has_moments or case.stored is not None:
        return None
    if not (~np.isfinite(case.y) | (case.y == case.beta))[where].all():
        return None
    groups = np.asarray(where.any(case.axes, keepdims=True))
    if (np.ptp(case.x, case.axes, keepdims=True) == 0.0)[groups].all():
        return Source("x is constant", "add eps to the variance")
    if (overflowing := _find_overflow(case, groups)) is not None:
        return Source(overflowing, "square and add in float32")
    if np.isnan(case.y[where]).all() and _may_cancel(case)[groups].all():
        return Source("E[x²] − E[x]² may be negative", "take squares of x − mean")
    return None


def _find_overflow(case: Case, groups: Selected) -> str | None:
    """Return what is beyond the dtype in these groups, and in no other."""
    name, found = case.dtype.name, (("x · x", case.x**2), ("(x − mean)²", case.deviations**2))
    for what, square in found:
        for words, values in ((what, square.max(case.axes)), (f"the sum of {what}", square.sum(case.axes))):
            if np.array_equal(values > get_largest(name), groups.squeeze(case.axes)):
                return f"{words} overflows {name}"
    return None


def _may_cancel(case: Case) -> Selected:
    """Return in which groups rounding may make a difference of squares negative, eps and all."""
    last_place = get_eps(case.dtype) if is_half(case.dtype) else case.arithmetic
    most: Floats = last_place * (_ROUNDINGS + math.sqrt(case.count)) * case.average(case.x**2)
    return np.asarray(case.centres & (case.own_square + case.eps < most))
