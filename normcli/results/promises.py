"""What a norm promises of its output (mean 0, variance 1), and whether the output keeps it."""

from __future__ import annotations

import math
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from normcli.dtypes import get_eps
from normcli.engine.inputs import COUNT, Inputs
from normcli.engine.run import measure
from normcli.engine.walk import DEFAULT_EFFORT
from normcli.norms.table import Divisor, EpsMode, ZeroRule
from normcli.tensors.pieces import iterate_pieces

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from numpy.typing import NDArray

    from normcli.engine.inputs import Selection
    from normcli.engine.walk import Effort
    from normcli.norms.plan import Plan

    FloatArray = NDArray[np.float64]

PROMISES: Mapping[Divisor, Mapping[str, float]] = MappingProxyType(
    {
        Divisor.DEVIATION: MappingProxyType({"mean": 0.0, "var": 1.0}),
        Divisor.ROOT_MEAN_SQUARE: MappingProxyType({"ms": 1.0}),
        Divisor.LP_NORM: MappingProxyType({"norm": 1.0}),
        Divisor.WINDOW_POWER: MappingProxyType({}),
        Divisor.RANGE: MappingProxyType({"min": 0.0, "max": 1.0}),
        Divisor.QUARTILES: MappingProxyType({"median": 0.0, "iqr": 1.0}),
    }
)
"""What the definition makes of the statistics of a normalized group, but for eps."""

_SPREADS = {Divisor.RANGE: "range", Divisor.QUARTILES: "iqr"}
"""The statistic that a divisor is where nothing else is; it may lie beyond float64."""

_SMALLEST_P = 1.0
"""Below, ‖x‖ₚ is no norm, and rounding single values can change it by any factor."""

_ROUNDINGS = 4.0
"""How many roundings of its root of mean square a group's mean, variance or length may be off."""


class Check(NamedTuple):
    """How near the normalized groups are to what the norm promises.

    The quantity is one of the group's own statistics, taken of its normalized values before gamma and beta.

    Parameters
    ----------
    quantity : str
        `mean`, `var`, `ms`, `norm`, `min`, `max`, `median` or `iqr`.
    target : float
        What the definition makes of it, but for eps.
    lowest, highest : float
        Over the groups whose statistics are finite; NaN if none is.
    overall : float
        Of the finite groups of the normalized tensor as one, with ddof 0; NaN of quartiles, which do not follow
        from those of the groups.
    largest_error : float
        The largest distance of a group from what its statistics and eps predict.
    tolerance : float
        What rounding to the output's dtype allows for that.
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
        """Whether every finite group is what its statistics predict, to rounding; False where none is."""
        return self.largest_error <= self.tolerance


def check_promises(
    plan: Plan,
    statistics: Mapping[str, FloatArray],
    normalized: NDArray[Any],
    effort: Effort = DEFAULT_EFFORT,
    selection: Selection | None = None,
) -> tuple[Check, ...]:
    """Measure a normalized tensor again and hold it against the statistics that made it.

    Parameters
    ----------
    plan : Plan
    statistics : mapping of str to ndarray
        Of the input, of `Grid.stats_shape`.
    normalized : ndarray
        Before gamma and beta.
    effort : Effort
        How it is measured.
    selection : Selection or None
        Which of the normalized values count.

    Returns
    -------
    tuple of Check
        Empty where the norm promises nothing (a sliding window), where its length is no norm (p < 1), and where
        there are no values.
    """
    promises = PROMISES[plan.norm.divisor]
    if (
        plan.grid.group_count == 0
        or plan.grid.group_size == 0
        or (plan.spec.p is not None and plan.spec.p < _SMALLEST_P)
    ):
        return ()
    with np.errstate(all="ignore"):
        measured = measure(plan, normalized, Inputs(selection=selection), effort)
        # Rounding moves each value by half a unit of it at most, and their mean square is 1 at most.
        tolerance = _ROUNDINGS * get_eps(normalized.dtype)
        overall = _combine(plan, measured)
        return tuple(
            _hold(plan, name, target, measured, statistics, overall[name], tolerance)
            for name, target in promises.items()
        )


def _iterate_groups(statistics: Mapping[str, FloatArray]) -> Iterator[dict[str, FloatArray]]:
    """Yield the statistics of some groups after the other: there may be more than fit into memory."""
    for pieces in zip(*map(iterate_pieces, statistics.values()), strict=True):
        yield dict(zip(statistics, pieces, strict=True))


def _hold(
    plan: Plan,
    name: str,
    target: float,
    measured: Mapping[str, FloatArray],
    statistics: Mapping[str, FloatArray],
    overall: float,
    tolerance: float,
) -> Check:
    lowest, highest, worst, any_usable = math.inf, -math.inf, 0.0, False
    for mine, theirs in zip(iterate_pieces(measured[name]), _iterate_groups(statistics), strict=True):
        predicted = _predict(plan, name, theirs)
        usable = np.isfinite(predicted)
        some = mine[usable]
        if some.size:
            any_usable = True
            error = np.nan_to_num(np.abs(some - predicted[usable]), nan=math.inf).max()
            lowest, highest = min(lowest, float(some.min())), max(highest, float(some.max()))
            worst = max(worst, float(error))
    if not any_usable:
        lowest = highest = worst = math.nan
    return Check(name, target, lowest, highest, overall, worst, tolerance)


def _predict(plan: Plan, name: str, statistics: Mapping[str, FloatArray]) -> FloatArray:
    """Return what eps leaves of the promise: 0 for the mean, v / (v + eps) for the variance, and so on."""
    original = statistics[name]
    nothing = np.nan if plan.spec.zero_rule is ZeroRule.NAN and not plan.spec.eps else 0.0
    if name == "mean":
        flat = statistics["std"] == 0.0
        return np.where(np.isfinite(original), np.where(flat, nothing, 0.0), np.nan)
    if plan.norm.divisor in _SPREADS:
        spread = _SPREADS[plan.norm.divisor]
        known = np.logical_and.reduce([np.isfinite(a) for key, a in statistics.items() if key != spread])
        kept = np.where(statistics[spread] == 0.0, nothing, PROMISES[plan.norm.divisor][name])
        return np.where(known, kept, np.nan)
    if name == "norm":
        return np.where(original == 0.0, nothing, original / _find_divisor(plan, original))
    root = statistics["std" if name == "var" else "rms"]  # its square may lie beyond float64
    kept = np.where(np.isinf(statistics["rstd"]), 1.0, root * statistics["rstd"])
    return np.where(root == 0.0, nothing, kept**2)


def _find_divisor(plan: Plan, length: FloatArray) -> FloatArray:
    """Return what vectors of these lengths are divided by."""
    eps = plan.spec.eps or 0.0
    if plan.spec.eps_mode is EpsMode.INSIDE:
        return np.hypot(length, math.sqrt(eps))
    return np.maximum(length, math.sqrt(eps) if plan.spec.eps_mode is EpsMode.SQUARE_FLOOR else eps)


def _combine(plan: Plan, measured: Mapping[str, FloatArray]) -> dict[str, float]:
    """Return the statistics of all finite groups as one, from those of each."""

    def weigh(groups: dict[str, FloatArray]) -> FloatArray:
        return groups.get(COUNT, np.full(groups[next(iter(groups))].shape, float(plan.grid.group_size)))

    def average(choose: Callable[[dict[str, FloatArray]], FloatArray]) -> float:
        total, count = 0.0, 0.0
        for groups in _iterate_finite(measured):
            weights = weigh(groups)
            total, count = total + float((choose(groups) * weights).sum()), count + float(weights.sum())
        return total / count if count else math.nan

    if "ms" in measured:
        return {"ms": average(lambda groups: groups["ms"])}
    if "range" in measured:
        return _combine_extremes(measured)
    if "iqr" in measured:
        return {"median": math.nan, "iqr": math.nan}
    if "norm" in measured:
        return {"norm": _combine_lengths(measured, plan.spec.p or 0.0)}
    mean = average(lambda groups: groups["mean"])

    def gather(groups: dict[str, FloatArray]) -> FloatArray:
        part = 1.0 - plan.spec.ddof / weigh(groups)
        return groups["var"] * part + (groups["mean"] - mean) ** 2

    return {"mean": mean, "var": average(gather)}


def _combine_extremes(measured: Mapping[str, FloatArray]) -> dict[str, float]:
    extremes = [(groups["min"].min(), groups["max"].max()) for groups in _iterate_finite(measured)]
    least, largest = zip(*extremes, strict=True) if extremes else ((math.nan,), (math.nan,))
    return {"min": float(min(least)), "max": float(max(largest))}


def _combine_lengths(measured: Mapping[str, FloatArray], p: float) -> float:
    lengths = (groups["norm"] for groups in _iterate_finite(measured))
    if math.isinf(p):
        return max((float(some.max()) for some in lengths), default=math.nan)
    powers = [float((some**p).sum()) for some in lengths]
    return math.fsum(powers) ** (1.0 / p) if powers else math.nan


def _iterate_finite(measured: Mapping[str, FloatArray]) -> Iterator[dict[str, FloatArray]]:
    for groups in _iterate_groups(measured):
        finite = np.logical_and.reduce([np.isfinite(array) for array in groups.values()])
        if finite.any():
            yield {name: array[finite] for name, array in groups.items()}
