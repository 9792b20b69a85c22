"""Every norm in exact arithmetic (rationals, then 400-bit roots), group by group: what results are held against."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import ml_dtypes
import mpmath
import numpy as np

from normcli.dtypes import is_float
from normcli.norms.divisors import HALF_RANGE, LENGTH, RANGE
from normcli.norms.table import Centre, EpsMode, ZeroRule

if TYPE_CHECKING:
    from normcli import Result
    from normcli.norms.plan import Plan

mpmath.mp.prec = 400


def widen(value: Any) -> mpmath.mpf:
    """Return a float or a rational with no rounding to speak of."""
    if isinstance(value, Fraction):
        return mpmath.mpf(value.numerator) / value.denominator
    return mpmath.mpf(float(value))


def solve_group(plan: Plan, values: list[Fraction]) -> tuple[dict[str, mpmath.mpf], Fraction, mpmath.mpf]:
    """Return a group's statistics, its centre and its divisor."""
    if plan.norm.divisor.is_by_order:
        return _solve_by_order(plan, sorted(values))
    n = len(values)
    eps = widen(plan.spec.eps or 0.0)
    centre = sum(values, Fraction(0)) / n if plan.norm.centre is Centre.MEAN else Fraction(0)
    if plan.norm.divisor == LENGTH:
        length = _length(values, plan.spec.p)
        divisor = length if plan.spec.eps is None else max(length, eps)
        return {"norm": length}, centre, divisor or mpmath.mpf(1)
    freedom = n - plan.spec.ddof
    square = widen(sum(((v - centre) ** 2 for v in values), Fraction(0)) / freedom)
    root = mpmath.sqrt(square)
    divisor = mpmath.sqrt(square + eps) if plan.spec.eps_mode is EpsMode.INSIDE else root + eps
    if divisor == 0 and plan.spec.zero_rule is ZeroRule.ONE:
        divisor = mpmath.mpf(1)
    row = plan.norm.divisor
    statistics = {row.square: square, row.spread: root, "rstd": 1 / divisor if divisor else mpmath.inf}
    if plan.norm.centre is Centre.MEAN:
        statistics["mean"] = widen(centre)
    return statistics, centre, divisor or mpmath.mpf(1)


def _solve_by_order(plan: Plan, ordered: list[Fraction]) -> tuple[dict[str, mpmath.mpf], Fraction, mpmath.mpf]:
    if plan.norm.divisor == RANGE:
        statistics = {"min": ordered[0], "max": ordered[-1], "range": ordered[-1] - ordered[0]}
    elif plan.norm.divisor == HALF_RANGE:
        low, high = ordered[0], ordered[-1]
        statistics = {"min": low, "max": high, "middle": (low + high) / 2, "half_range": (high - low) / 2}
    else:
        first, median, third = (_quantile(ordered, Fraction(part, 4)) for part in (1, 2, 3))
        statistics = {"median": median, "q1": first, "q3": third, "iqr": third - first}
    centre, divisor = statistics[plan.norm.centre.value], statistics[plan.norm.divisor.spread]
    return {name: widen(value) for name, value in statistics.items()}, centre, widen(divisor or Fraction(1))


def _quantile(ordered: list[Fraction], part: Fraction) -> Fraction:
    place = part * (len(ordered) - 1)
    below = math.floor(place)
    above = min(below + 1, len(ordered) - 1)
    return ordered[below] + (place - below) * (ordered[above] - ordered[below])


def _length(values: list[Fraction], p: float | None) -> mpmath.mpf:
    sizes = [abs(v) for v in values]
    if p == 0:
        return mpmath.mpf(sum(1 for size in sizes if size))
    if p == math.inf:
        return widen(max(sizes))
    if p == 1:
        return widen(sum(sizes, Fraction(0)))
    if p in (None, 2):
        return mpmath.sqrt(widen(sum((v * v for v in values), Fraction(0))))
    return mpmath.fsum(widen(size) ** widen(p) for size in sizes) ** (1 / widen(p))


def measure_ulp(value: Any, exact: mpmath.mpf, dtype: Any) -> float:
    """Return the distance of a result from the exact one in units of the last place of its dtype there."""
    info = ml_dtypes.finfo(dtype)
    got = float(value)
    if exact == 0:
        return 0.0 if got == 0.0 else math.inf
    if mpmath.isinf(exact):
        return 0.0 if got == float(exact) else math.inf
    if abs(exact) > widen(info.max) * (1 + mpmath.mpf(2) ** (-info.nmant - 2)):
        return 0.0 if math.isinf(got) else math.inf
    if not math.isfinite(got):
        return math.inf
    smallest = math.frexp(float(info.tiny))[1] - 1 - info.nmant
    place = max(mpmath.frexp(abs(exact))[1] - 1 - info.nmant, smallest)
    return float(abs(mpmath.mpf(got) - exact) / mpmath.mpf(2) ** place)


def measure_result(result: Result) -> tuple[float, dict[str, float]]:
    """Return the worst distance of any output, and of each statistic rounded to the input's dtype, in ulp."""
    plan = result.plan
    dtype = result.input.dtype
    told = dtype if is_float(dtype) and dtype.itemsize < 8 else np.dtype(np.float64)
    x, y = (array.reshape(plan.grid.view_shape) for array in (result.input, result.normalized))
    parameters = {}
    for name in ("gamma", "beta"):
        parameter = getattr(result, name)
        if parameter is not None:
            parameters[name] = np.broadcast_to(
                np.asarray(parameter).reshape(plan.parameters.view_shape), plan.grid.view_shape
            )
    worst, statistics = 0.0, dict.fromkeys(result.statistics, 0.0)
    for group in range(plan.grid.group_count):
        place = plan.grid.select_group(group)
        values = [Fraction(float(v)) for v in x[place].reshape(-1)]
        exact, centre, divisor = solve_group(plan, values)
        for name, value in exact.items():
            with np.errstate(over="ignore"):
                got = told.type(result.statistics[name].reshape(-1)[group])
            statistics[name] = max(statistics[name], measure_ulp(got, value, told))
        scale, shift = (
            [mpmath.mpf(0 if name == "beta" else 1)] * len(values)
            if name not in parameters
            else [widen(v) for v in parameters[name][place].reshape(-1)]
            for name in ("gamma", "beta")
        )
        for got, value, g, b in zip(y[place].reshape(-1), values, scale, shift, strict=True):
            worst = max(worst, measure_ulp(got, widen(value - centre) / divisor * g + b, y.dtype))
    return worst, statistics
