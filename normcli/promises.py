"""What a norm promises of its output (mean 0, variance 1), and whether the output keeps it."""

from __future__ import annotations

import math
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from normcli.engine import measure
from normcli.engine.effort import DEFAULT_EFFORT
from normcli.norms import Divisor

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    from normcli.engine.effort import Effort
    from normcli.plan import Plan

    FloatArray = NDArray[np.float64]

PROMISES: Mapping[Divisor, Mapping[str, float]] = MappingProxyType(
    {
        Divisor.DEVIATION: MappingProxyType({"mean": 0.0, "var": 1.0}),
        Divisor.ROOT_MEAN_SQUARE: MappingProxyType({"ms": 1.0}),
        Divisor.LP_NORM: MappingProxyType({"norm": 1.0}),
        Divisor.WINDOW_POWER: MappingProxyType({}),
    }
)
"""What the definition makes of the statistics of a normalized group, but for eps."""

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
        `mean`, `var`, `ms` or `norm`.
    target : float
        What the definition makes of it, but for eps.
    lowest, highest : float
        Over the groups whose statistics are finite; NaN if none is.
    overall : float
        Of the finite groups of the normalized tensor as one, with ddof 0.
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
) -> tuple[Check, ...]:
    """Measure a normalized tensor again and hold it against the statistics that made it.

    Parameters
    ----------
    plan : Plan
    statistics : mapping of str to ndarray
        Of the input, of `plan.stats_shape`.
    normalized : ndarray
        Before gamma and beta.
    effort : Effort
        How it is measured.

    Returns
    -------
    tuple of Check
        Empty where the norm promises nothing (a sliding window), where its length is no norm (p < 1), and where
        there are no values.
    """
    promises = PROMISES[plan.norm.divisor]
    if plan.group_count == 0 or plan.group_size == 0 or (plan.p is not None and plan.p < _SMALLEST_P):
        return ()
    with np.errstate(all="ignore"):
        measured = measure(plan, normalized, effort)
        # Rounding moves each value by half a unit of it at most, and their mean square is 1 at most.
        tolerance = _ROUNDINGS * float(np.finfo(normalized.dtype).eps)
        overall = _combine(plan, measured)
        return tuple(
            _hold(
                name,
                promises[name],
                np.atleast_1d(measured[name]),
                np.atleast_1d(_predict(plan, name, statistics)),
                overall[name],
                tolerance,
            )
            for name in promises
        )


def _hold(
    name: str, target: float, measured: FloatArray, predicted: FloatArray, overall: float, tolerance: float
) -> Check:
    usable = np.isfinite(predicted)
    some = measured[usable]
    if not some.size:
        return Check(name, target, math.nan, math.nan, overall, math.nan, tolerance)
    error = float(np.nan_to_num(np.abs(some - predicted[usable]), nan=math.inf).max())
    return Check(name, target, float(some.min()), float(some.max()), overall, error, tolerance)


def _predict(plan: Plan, name: str, statistics: Mapping[str, FloatArray]) -> FloatArray:
    """Return what eps leaves of the promise: 0 for the mean, v / (v + eps) for the variance, and so on."""
    original = statistics[name]
    if name == "mean":
        return np.where(np.isfinite(original), 0.0, np.nan)
    if name == "norm":
        return np.where(original == 0.0, 0.0, original / np.maximum(original, plan.eps or 0.0))
    root = statistics["std" if name == "var" else "rms"]  # its square may lie beyond float64
    kept = np.where(np.isinf(statistics["rstd"]), 1.0, root * statistics["rstd"])
    return np.where(root == 0.0, 0.0, kept**2)


def _combine(plan: Plan, measured: Mapping[str, FloatArray]) -> dict[str, float]:
    """Return the statistics of all finite groups as one, from those of each: all are of one size."""
    finite = np.logical_and.reduce([np.isfinite(array) for array in measured.values()])
    groups = {name: array[finite] for name, array in measured.items()}
    if not finite.any():
        return dict.fromkeys(PROMISES[plan.norm.divisor], math.nan)
    if "ms" in groups:
        return {"ms": float(groups["ms"].mean())}
    if "norm" in groups:
        if plan.p is None or math.isinf(plan.p):
            return {"norm": float(groups["norm"].max())}
        return {"norm": float((groups["norm"] ** plan.p).sum() ** (1.0 / plan.p))}
    mean = groups["mean"].mean()
    around = groups["var"] * ((plan.group_size - plan.ddof) / plan.group_size) + (groups["mean"] - mean) ** 2
    return {"mean": float(mean), "var": float(around.mean())}
