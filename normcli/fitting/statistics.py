"""The statistics of each group, rounded once from its sums."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from normcli.fitting.subject import has_images
from normcli.fitting.sums import solve_sums
from normcli.numerics.solution import solve

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from normcli.dtypes import Floats
    from normcli.fitting.stats_file import Stats
    from normcli.norms.plan import Plan
    from normcli.numerics.solution import Measured


_NAMED = 3
"""The most groups that a warning names."""


class Rounded(NamedTuple):
    """Statistics of each group, of `Grid.stats_shape`.

    Parameters
    ----------
    plan : Plan
        Of a tensor of all samples.
    fields : dict of ndarray
        Name → values: the norm's own statistics by its ddof, then `var`, `std` (ddof 0), `var1`, `std1`
        (ddof 1) and `image_std` where they mean something, `min`, `max`, `count`, `nan_count`.
    own : dict of ndarray
        The norm's own statistics alone, all by its ddof.
    """

    plan: Plan
    fields: dict[str, NDArray[np.generic]]
    own: dict[str, Floats]


def round_stats(stats: Stats) -> Rounded:
    """Return the statistics that sums amount to."""
    plan = stats.subject.plan(stats.samples)
    images = has_images(plan)
    with np.errstate(all="ignore"):
        solved = solve_sums(plan, stats.sums, omits_nan=stats.omits_nan, images=images)
        own = solve(plan, stats.quartiles or solved.moments, exact=True).statistics
        fields: dict[str, NDArray[np.generic]] = dict(own)
        if "std" in own:
            for ddof, names in ((0, ("var", "std")), (1, ("var1", "std1"))):
                other = plan.change_spec(ddof=ddof)
                found = solve(other, solved.moments, exact=True).statistics
                fields |= {name: found[source] for name, source in zip(names, ("var", "std"), strict=True)}
    if solved.image_std is not None:
        fields["image_std"] = solved.image_std
    fields |= {
        "min": solved.low,
        "max": solved.high,
        "count": solved.moments.count.astype(np.int64),
        "nan_count": stats.sums.nan,
    }
    shape = plan.grid.stats_shape
    return Rounded(
        plan,
        {name: values.reshape(shape) for name, values in fields.items()},
        {name: values.reshape(shape) for name, values in own.items()},
    )


def warn(stats: Stats, rounded: Rounded) -> tuple[str, ...]:
    """Return warnings about groups that are empty, constant, or not finite: one line for each kind."""
    sums = stats.sums
    spread = sums.nan > 0
    infinite = (sums.above + sums.below) > 0
    counts = sums.count + sums.above + sums.below
    empty = (counts == 0) & (stats.omits_nan | (sums.nan == 0))
    constant = (sums.low == sums.high) & ~infinite & ~empty
    kinds = (
        (empty, "no values"),
        (spread & (not stats.omits_nan), "NaN spreads; --nan omit leaves such values out"),
        (infinite, "infinite values"),
        (constant, "constant"),
    )
    return tuple(_format_warning(rounded.plan, chosen, kind) for chosen, kind in kinds if chosen.any())


def _format_warning(plan: Plan, chosen: NDArray[np.bool_], kind: str) -> str:
    numbers = np.flatnonzero(chosen)
    names = ", ".join(plan.grid.group_name(int(number)) for number in numbers[:_NAMED])
    more = f", … ({len(numbers)} groups)" if len(numbers) > _NAMED else ""
    return f"{names}{more}: {kind}"


def find_moments(plan: Plan, stats: Stats) -> Measured:
    """Return what a tensor is normalized with, as pairs; for a plan of any number of samples."""
    if stats.quartiles is not None:
        return stats.quartiles
    with np.errstate(all="ignore"):
        return solve_sums(plan, stats.sums, omits_nan=stats.omits_nan, images=False).moments
