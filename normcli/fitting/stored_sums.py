"""Exact sums, extremes and quantiles as members of a stats file: described, read, and checked by each other."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from normcli.fitting.sums import Sums
from normcli.numerics.pairs import Pair
from normcli.numerics.statistics.order_statistics import Quantiles
from normcli.numerics.statistics.ranks import find_shares
from normcli.numerics.sums.fixed_point import DIGIT, MOST_PLACES, Fixed
from normcli.tensors.formats.npz import MOST_COUNTED

if TYPE_CHECKING:
    from collections.abc import Iterator

    from normcli.dtypes import Floats
    from normcli.norms.plan import Plan
    from normcli.tensors.formats.npz import Members

_SLACK = 1e-9
"""The relative error by which rounded sums may exceed their bounds, which are rounded too."""

_SMALLEST_SQUARED = 1e-140
"""The least value whose square is bounded: squares of smaller ones leave the range of float64."""


COUNTS = {"count": "count", "nan": "nan_count", "images": "images"}
EXACT = {"total": "sum", "square": "square", "deviation": "image_std_sum"}
"""Fields of `Sums` → the members that hold counts, and exact sums."""


def describe_pair(name: str, values: Pair) -> dict[str, Floats]:
    """Return the stats file's members for values in pairs: `name`, and `name_rest` if a value is no float64."""
    return {name: values.hi} | ({f"{name}_rest": values.lo} if values.lo.any() else {})


def _read_pair(members: Members, name: str, shape: tuple[int, ...]) -> Pair:
    """Return values as pairs hi + lo: hi from the member `name`; lo, what float64 rounds off, from `name_rest`.

    Without `name_rest`, lo is 0. A rest that is no whole number, or changes hi when added, is a `DataError`.
    """
    hi, rest = members.take_floats(name, shape), f"{name}_rest"
    if rest not in members:
        return Pair(hi, np.zeros(shape))
    lo = members.take_floats(rest, shape)
    with np.errstate(invalid="ignore"):
        members.require(
            rest, (lo == np.rint(lo)) & ((hi + lo == hi) | (lo == 0.0)), lo, f"which {name} does not leave"
        )
    return Pair(hi, lo)


def read_sums(members: Members, shape: tuple[int, ...], samples: int) -> Sums:
    """Return the exact sums; raise `DataError` if they contradict counts, extremes or each other.

    `shape` is the shape of the statistics (`Grid.stats_shape`), `samples` the number of all samples.
    """
    above, below = members.take_integers("inf_count", (2, *shape), 0, MOST_COUNTED).reshape(2, -1)
    most = {"images": samples}
    count, nan, images = (
        members.take_integers(name, shape, 0, most.get(field, MOST_COUNTED)).reshape(-1)
        for field, name in COUNTS.items()
    )
    low, high = (_read_pair(members, name, shape).map(np.ravel) for name in ("min", "max"))
    some = count + above + below > 0
    ordered = (low.hi < high.hi) | ((low.hi == high.hi) & (low.lo <= high.lo))
    right = np.where(some, ordered & ((low.hi == -np.inf) == (below > 0)), low.hi == np.inf)
    members.require("min", right, low.hi, "which its counts and max do not allow")
    right = np.where(some, (high.hi == np.inf) == (above > 0), high.hi == -np.inf)
    members.require("max", right, high.hi, "which its counts do not allow")
    total, square, deviation = (read_exact(members, name, shape) for name in EXACT.values())
    sums = Sums(total, square, count, nan, above, below, low, high, deviation, images)
    for field, least, most_there in _bound_sums(sums):
        about = getattr(sums, field).round()
        slack = _SLACK * np.maximum(np.abs(least), np.abs(most_there))
        right = ~((about < least - slack) | (about > most_there + slack))  # True also if a bound is NaN
        members.require(EXACT[field], right, about, "which counts, min and max do not allow")
    return sums


def _bound_sums(sums: Sums) -> Iterator[tuple[str, Floats, Floats]]:
    """Yield (field of `Sums`, least, most) for each exact sum: bounds that follow from counts and extremes.

    Σx, for instance, lies between count · min and count · max. The bounds are float64 arrays with a number for
    each group, rounded; NaN where nothing is known.
    """
    with np.errstate(all="ignore"):
        n, low, high = sums.count.astype(np.float64), sums.low.hi, sums.high.hi
        largest = np.maximum(np.abs(low), np.abs(high))
        some = n > 0
        if sums.total.digits.any():  # sums of x are kept only for norms that centre
            yield "total", np.where(some, n * low, 0.0), np.where(some, n * high, 0.0)
        squared = np.where(largest > _SMALLEST_SQUARED, largest * largest, np.nan)
        yield "square", np.where(some, squared, 0.0), np.where(some, n * squared, 0.0)
        yield (
            "deviation",
            np.zeros(len(n)),
            np.where(sums.images > 0, sums.images * (high - low), 0.0),
        )


def read_exact(members: Members, name: str, shape: tuple[int, ...]) -> Fixed:
    """Return the exact sum of each group as a `Fixed`: digits from the member `name`, exponent from `name_low`.

    `shape` is the shape of the statistics. Raises `DataError` if the members cannot be such sums.
    """
    places = members.get_shape(name)[:1]
    if not places or not 1 <= places[0] <= 2 * MOST_PLACES:
        members.refuse(name, f"has the shape {members.get_shape(name)}, not (places, *{shape})")
    digits = members.take_integers(name, (*places, *shape), -(2 ** (DIGIT - 1)), 2**DIGIT - 1)
    members.require(name, digits[:-1] >= 0, digits[:-1], "and no digit but the highest is negative")
    low = members.take_integer(f"{name}_low", -MOST_PLACES, MOST_PLACES - places[0])
    return Fixed(digits.reshape(*places, -1), low)


def read_quantiles(members: Members, plan: Plan, sums: Sums) -> Quantiles:
    """Return the median and both quantiles of each group; raise `DataError` if one is beyond min or max."""
    shape, shares = plan.grid.stats_shape, find_shares(plan)
    values = _read_pair(members, "quantile_values", (*shape, 6)).map(lambda a: a.reshape(-1, 6))
    inside = (values.hi >= sums.low.hi[:, None]) & (values.hi <= sums.high.hi[:, None])
    members.require("quantile_values", inside | np.isnan(values.hi), values.hi, "not from min to max")
    parts = members.take_integers("quantile_parts", (*shape, 3), 0, shares.of - 1)
    count = (sums.count + sums.above + sums.below).astype(np.float64)
    return Quantiles(count, values, parts.reshape(-1, 3), shares)
