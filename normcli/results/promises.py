"""The promises of a norm (mean 0, variance 1), checked on its output."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from normcli.dtypes import get_eps
from normcli.engine.inputs import COUNT, Inputs
from normcli.engine.run import measure
from normcli.engine.walk import DEFAULT_EFFORT
from normcli.norms.rules import ZeroRule
from normcli.numerics.rational import round_once, sum_exactly, sum_pieces
from normcli.numerics.statistics.divisor import find_divisor, find_flat
from normcli.tensors.pieces import iterate_pieces
from normcli.tuples import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from numpy.typing import NDArray

    from normcli.dtypes import Floats
    from normcli.engine.inputs import Selection
    from normcli.engine.walk import Effort
    from normcli.norms.divisors import Promise
    from normcli.norms.plan import Plan


_SMALLEST_P = 1.0
"""The least p that is checked: below it, rounding single values can change ‖x‖ₚ by any factor."""

_ROUNDINGS = 4.0
"""The largest error of a statistic, in ulp of 1.

Rounding moves each value by half of one at most, and the mean square of the values is 1 at most.
"""


class Check(NamedTuple):
    """One statistic of normalized groups, compared with the value that the norm should give it.

    The statistic is measured from a group's normalized values before gamma and beta.

    Parameters
    ----------
    quantity : str
        The name of the statistic: `mean`, `var`, `ms`, `norm`, `min`, `max`, `median` or `iqr`.
    target : float
        The value that follows from the norm's definition without eps, such as 1 for the variance.
    lowest, highest : float
        The least and the largest value over the groups whose predictions are finite; NaN if there is none.
    overall : float
        The statistic of all finite groups of the normalized tensor as one group, with ddof 0; NaN for
        quantiles, which do not follow from the groups' quantiles.
    largest_error : float
        The largest distance of a group's statistic from the value predicted from the input's statistics and
        eps.
    tolerance : float
        The largest error that can come from rounding to the output's dtype.
    """

    quantity: str
    target: float
    lowest: float
    highest: float
    overall: float
    largest_error: float
    tolerance: float

    @property
    def ok(self) -> bool:
        """Whether every finite group agrees with its prediction to rounding; False if no group is finite."""
        return self.largest_error <= self.tolerance


def check_promises(
    plan: Plan,
    statistics: Mapping[str, Floats],
    normalized: NDArray[Any],
    effort: Effort = DEFAULT_EFFORT,
    selection: Selection | None = None,
) -> tuple[Check, ...]:
    """Measure the statistics of a normalized tensor, and compare them with what the input's statistics predict.

    Parameters
    ----------
    plan : Plan
    statistics : mapping of str to ndarray
        The statistics of the input, of the shape `Grid.stats_shape`.
    normalized : ndarray
        The normalized tensor, without gamma and beta.
    effort : Effort
        The number of threads, and the observer of progress.
    selection : Selection or None
        The selection of the normalized values that count; None for all.

    Returns
    -------
    tuple of Check
        One for each statistic that the norm fixes. Empty for norms that fix none (sliding windows), for `lp`
        with p < 1, and for tensors without groups or values.
    """
    is_no_norm = plan.spec.p is not None and plan.spec.p < _SMALLEST_P
    if is_no_norm or plan.grid.group_count == 0 or plan.grid.group_size == 0:
        return ()
    with np.errstate(all="ignore"):
        measured = measure(plan, normalized, Inputs(selection=selection), effort)
        overall = _combine(plan, measured)
        tolerance = _ROUNDINGS * get_eps(normalized.dtype)
        checks = []
        for promise in plan.norm.divisor.promises:
            predicted = (_predict(plan, promise, groups) for groups in _iterate_groups(statistics))
            lowest, highest, error = _compare(measured[promise.statistic], predicted)
            together = overall.get(promise.statistic, math.nan)
            checks.append(Check(*promise, lowest, highest, together, error, tolerance))
        return tuple(checks)


def _iterate_groups(statistics: Mapping[str, Floats]) -> Iterator[dict[str, Floats]]:
    """Yield statistics by name, of some groups at a time: the statistics of all may not fit into memory."""
    for pieces in zip(*map(iterate_pieces, statistics.values()), strict=True):
        yield dict(zip(statistics, pieces, strict=True))


def _compare(measured: Floats, predictions: Iterator[Floats]) -> tuple[float, float, float]:
    """Return the least and the largest measured statistic, and the largest distance from its prediction.

    `measured` and the `predictions` have a number for each group; `predictions` come in pieces. Only groups
    with a finite prediction count; without one, all three are NaN. A distance of NaN counts as infinite.
    """
    lowest, highest, worst = math.inf, -math.inf, -math.inf
    for mine, predicted in zip(iterate_pieces(measured), predictions, strict=True):
        usable = np.isfinite(predicted)
        some = mine[usable]
        if some.size:
            error = np.nan_to_num(np.abs(some - predicted[usable]), nan=math.inf).max()
            lowest, highest = min(lowest, float(some.min())), max(highest, float(some.max()))
            worst = max(worst, float(error))
    return (lowest, highest, worst) if worst >= 0.0 else (math.nan, math.nan, math.nan)


def _predict(plan: Plan, promise: Promise, statistics: Mapping[str, Floats]) -> Floats:
    """Return the value that a statistic of each normalized group should have, given eps.

    `promise` has the statistic, and its value without eps. For a constant group, the value follows from the
    norm's rule for a divisor of 0.
    """
    predicted, spec = _predict_by_eps(plan, promise, statistics), plan.spec
    is_nan = spec.zero_rule is ZeroRule.NAN
    if spec.flat_rule is None or ("rstd" in statistics and not is_nan):  # `rstd` holds the rule already
        return predicted
    kept = np.nan if is_nan else promise.target * statistics[plan.norm.divisor.spread or ""]
    return np.where(find_flat(plan, statistics, plan.grid.group_size), kept, predicted)


def _predict_by_eps(plan: Plan, promise: Promise, statistics: Mapping[str, Floats]) -> Floats:
    """Return the value that a statistic of each normalized group should have with this eps.

    For the variance it is v / (v + eps), with the input's variance v. It is NaN where the input's statistics
    are not finite.
    """
    name, divisor = promise.statistic, plan.norm.divisor
    assert divisor.spread is not None  # every divisor with promises has a spread
    size = statistics[divisor.spread]  # its square may lie beyond float64
    nothing = np.nan if plan.spec.zero_rule is ZeroRule.NAN and not plan.spec.eps else 0.0
    if name == "mean" or divisor.is_by_order:
        needed = (name,) if name == "mean" else divisor.sizes
        known = np.logical_and.reduce([np.isfinite(statistics[one]) for one in needed])
        return np.where(known, np.where(size == 0.0, nothing, promise.target), np.nan)
    if name == divisor.spread:
        return np.where(size == 0.0, nothing, size / find_divisor(size, plan.spec.eps, plan.spec.eps_mode))
    kept = np.where(np.isinf(statistics["rstd"]), 1.0, size * statistics["rstd"])
    return np.where(size == 0.0, nothing, kept**2)


def _combine(plan: Plan, measured: Mapping[str, Floats]) -> dict[str, float]:
    """Return the statistics of all finite groups as one group, by name, from each group's statistics.

    Means, variances, extremes and lengths can be combined so; quantiles cannot, and are missing in the result.
    """
    combined = _combine_moments(plan, measured)
    p = plan.spec.p or 0.0
    extremes = {"min": np.min, "max": np.max, **({"norm": np.max} if math.isinf(p) else {})}
    for name in extremes.keys() & measured.keys():
        found = [extremes[name](groups[name]) for groups in _iterate_finite(measured)]
        combined[name] = float(extremes[name](found)) if found else math.nan
    if "norm" in measured and "norm" not in extremes:
        from normcli.numerics.statistics.lengths import find_length_of_all  # on use: few answers need this

        lengths = [find_length_of_all(groups["norm"], p) for groups in _iterate_finite(measured)]
        combined["norm"] = find_length_of_all(np.array(lengths), p) if lengths else math.nan
    return combined


def _combine_moments(plan: Plan, measured: Mapping[str, Floats]) -> dict[str, float]:
    """Return mean, mean square and variance of all finite groups as one group, each exact, rounded once.

    Only statistics that are in `measured` are returned; they are NaN if no group is finite.
    """
    names = [name for name in ("mean", "ms", "var") if name in measured]
    totals = dict.fromkeys(names, sum_pieces([]))
    for groups in _iterate_finite(measured):
        weights = groups.get(COUNT, np.full(groups[names[0]].shape, plan.grid.group_size)) if names else ()
        for weight in sorted({int(each) for each in np.ravel(weights).tolist()}):  # np.unique imports numpy.ma
            chosen = np.equal(weights, weight)
            for name in names:
                times = weight - plan.spec.ddof if name == "var" else weight
                totals[name] = totals[name].add(sum_exactly(groups[name][chosen]).repeat(times))
    count = totals[names[0]].count if names else 0
    if not count:
        return dict.fromkeys(names, math.nan)
    found = {name: round_once(sums.total / count) for name, sums in totals.items()}
    if "var" in names:  # the variance of the group means is added
        found["var"] = round_once((totals["var"].total + totals["mean"].scatter()) / count)
    return found


def _iterate_finite(measured: Mapping[str, Floats]) -> Iterator[dict[str, Floats]]:
    """Yield statistics by name, some groups at a time, of groups whose statistics are all finite."""
    for groups in _iterate_groups(measured):
        finite = np.logical_and.reduce([np.isfinite(array) for array in groups.values()])
        if finite.any():
            yield {name: array[finite] for name, array in groups.items()}
