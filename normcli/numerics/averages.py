"""Averages of statistics, each rounded once: of several, and of two with weights."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from normcli.numerics.pairs import Pair, Triple, distill, divide_by_count, normalize, pair_divide, two_prod
from normcli.numerics.rounding import Scaled, round_scaled

if TYPE_CHECKING:
    from collections.abc import Sequence

    from normcli.dtypes import Floats, Integers


def average(values: Sequence[Floats], count: float | None = None) -> Floats:
    """Return the sum of arrays over their number, or over a count: where it is not finite, as doubles do.

    Examples
    --------
    >>> average([np.array([1e16]), np.array([1.0]), np.array([-1e16])]).tolist()
    [0.3333333333333333]
    """
    scaled, k = _scale(values)
    mean = divide_by_count(_add_up(scaled), float(len(values) if count is None else count))
    return _finish(mean, k, values)


def mix(kept: Floats, new: Floats, weight: float) -> Floats:
    """Return (1 − weight) · kept + weight · new, of a weight from 0 to 1."""
    (one, other), k = _scale((kept, new))
    taken = (-part for part in two_prod(weight, one))
    return _finish(_add_up([one, *taken, *two_prod(weight, other)]), k, (kept, new))


def mix_in(kept: Floats, count: int, new: Floats) -> Floats:
    """Return the average of as many values as `count`, whose average is `kept`, and a new one."""
    (one, other), k = _scale((kept, new))
    total = _add_up([*two_prod(float(count), one), other])
    return _finish(divide_by_count(total, float(count) + 1.0), k, (kept, new))


def multiply_by_ratio(values: Floats, numerator: Any, denominator: Any) -> Floats:
    """Return values · numerator / denominator, of counts."""
    (scaled,), k = _scale((values,))
    divisor = np.asarray(denominator, dtype=np.float64)
    return _finish(pair_divide(two_prod(scaled, numerator), Pair(divisor, 0.0 * divisor)), k, (values,))


def _add_up(terms: Sequence[Floats]) -> Pair:
    """Return a sum, rounded to two doubles."""
    hi, mid, _ = normalize(Triple(*distill(terms, 3).terms))
    return Pair(hi, mid)


def _scale(values: Sequence[Floats]) -> tuple[list[Floats], Integers]:
    """Return values times 2^k, of which the largest is about 1, and k."""
    sizes = np.maximum.reduce([np.abs(each) for each in values])
    k = -np.frexp(sizes)[1].astype(np.int64)
    return [np.ldexp(each, k) for each in values], k


def _finish(result: Pair, k: Integers, values: Sequence[Floats]) -> Floats:
    """Return results in the unit of the values; where one of these is not finite, their sum."""
    finite = np.logical_and.reduce([np.isfinite(each) for each in values])
    return np.where(finite, round_scaled(Scaled(result, -k)), sum(values))
