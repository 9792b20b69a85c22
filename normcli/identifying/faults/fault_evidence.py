"""The evidence for a fault, in bits: statistics that y shows, how closely, and values that it predicts."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from normcli.checking.ulp import measure_unit
from normcli.dtypes import is_half
from normcli.identifying.faults.shown_statistics import MOST_BITS, measure_doubt
from normcli.identifying.faults.tables.dividing import EPS
from normcli.identifying.faults.variant import Used, Variant, weigh_standardized
from normcli.identifying.models.weight import choose_bits

if TYPE_CHECKING:
    from normcli.dtypes import Floats, Selected
    from normcli.identifying.faults.case import Case
    from normcli.identifying.faults.variant import Found

_TRIED = 10.0
"""Bits of evidence that the choice of a row and variant costs: there are about a thousand."""

_OF_AN_EPS = 4.0
"""Bits of evidence that the choice of another usual eps costs: it is the likeliest fault of all."""

OF_A_NUMBER = 12.0
"""Bits of evidence that a fitted number, such as a count or a shift, costs."""

_SUMMED = 16.0
"""Statistics of careless sums are at most 16 standard errors off those that y shows, on average."""


@np.errstate(all="ignore")
def fit_apart(case: Case) -> Used:
    """Return the least-squares means with the norm's own divisors, and the divisors with its own means."""
    weight, y = weigh_standardized(case)
    moved = case.x - case.mean
    mean = case.mean + case.average_judged(weight * (moved - case.divisor * y))
    square, product = (case.average_judged(weight * moved * values) for values in (moved, y))
    return Used(mean, square / product)


_SAME = 2.0**-48
"""The relative difference of one factor's quotients by rounding, in float64."""


@np.errstate(all="ignore")
def measure_distance(case: Case, variant: Variant) -> tuple[Floats, ...] | None:
    """Return how far a variant's divisors (and means) are from those recovered from y, in standard errors.

    The tuple has an array of the divisors' distances, and for norms with a mean one of the means'. Each has a
    number for each group that shows a norm: groups of equal values do not. A relative difference of the
    divisors that all groups share does not count up to one unit in the last place, as a kernel's root may have
    it. Where both divisors are infinite, the distance is 0. None for a variant that changes more than
    statistics, or has several for one group; one factor on gamma divides all divisors.
    """
    factor = np.ones(1) if variant.gamma is None else np.ravel(variant.gamma / case.gamma)
    is_one = np.allclose(factor, factor[0], _SAME, 0.0) and (
        variant.beta is None or not np.any(variant.beta - case.beta)
    )
    if not case.has_moments or variant.result is not None or not is_one:
        return None
    divisor = case.find_divisor(variant) / factor[0]
    mean = case.mean if variant.mean is None else variant.mean
    shape = case.used.divisor.shape
    if any(np.broadcast_shapes(shape, one.shape) != shape for one in (divisor, mean)):
        return None
    is_lost = np.isinf(divisor) & (case.used.divisor == divisor)  # such a group shows no mean
    off = np.where(is_lost, 0.0, case.used.divisor / divisor - 1.0)
    off = off - np.clip(np.median(off), -case.arithmetic, case.arithmetic)
    every = [np.abs(off) / measure_doubt(case).divisor]
    if case.centres:
        every.append(np.abs(case.used.mean - mean) / (np.abs(divisor) * measure_doubt(case).mean))
    counted = case.shows_norm.any(case.axes, keepdims=True)
    return tuple(np.nan_to_num(np.where(is_lost, 0.0, one), nan=np.inf)[counted] for one in every)


def lies_near(case: Case, variant: Variant, most: float) -> bool:
    """Return True if a variant's statistics are within `most` standard errors of those recovered from y.

    The root mean square over groups counts. False where `measure_distance` returns None, as for another gamma.
    """
    off = measure_distance(case, variant)
    return off is not None and all(not one.size or np.mean(np.square(one)) <= most**2 for one in off)


def weigh_statistics(case: Case, variant: Variant) -> float | None:
    """Return the evidence, in bits, that the statistics recovered from y are a variant's and not the norm's.

    It is summed over all groups, so that errors below one rounding show in many groups together. None where
    `measure_distance` returns None, as for another gamma.
    """
    far, near = measure_distance(case, Variant()), measure_distance(case, variant)
    if far is None or near is None:
        return None
    return sum(len(there) * _compare(here, there) for here, there in zip(far, near, strict=True))


def _compare(far: Floats, near: Floats) -> float:
    """Return log2(√(1 + mean(far²)) / √(1 + mean(near²))), at most 24, for distances in standard errors.

    0 without distances, and if `near` has an infinite one; 24 if only `far` has.
    """
    if not far.size:
        return 0.0
    sizes = [math.sqrt(1.0 + float(np.mean(np.square(one)))) for one in (far, near)]
    if not all(map(math.isfinite, sizes)):
        return 0.0 if not math.isfinite(sizes[1]) else MOST_BITS
    return min(math.log2(sizes[0] / sizes[1]), MOST_BITS)


# -- the evidence, in bits


def measure_bits(case: Case, found: Found, misfit: float) -> float:
    """Return the evidence of y for a finding, in bits.

    `misfit` is the root mean square of y − prediction, in units of the rounding bound.
    """
    of_region = 0.0
    if len(found.faults) == 1 and found.faults[0].id.startswith("where-"):
        of_region = _weigh_region(case, found) - _TRIED
    is_beside = len(found.faults) > 1 and found.region is not None  # of copies, which show where they stand
    wrong = case.differs
    if found.region is not None:
        wrong = wrong & (~found.region.mask if found.is_of_region or is_beside else found.region.mask)
    bits = _weigh_values(case, found, wrong) - OF_A_NUMBER * found.numbers
    if found.is_fitted:
        off = (case.y - case.right.values) / case.right.allowed
        without = math.sqrt(float(np.mean(off[np.isfinite(off)] ** 2))) if np.isfinite(off).any() else 0.0
        nearer = math.log2(max(1.0, without / misfit)) if misfit else MOST_BITS
        bits = max(bits, max(case.divisor.size * nearer, found.variants[0].bits) - OF_A_NUMBER)
    elif found.region is None:
        is_shown = lies_near(case, found.variants[0], _SUMMED)
        shown = (weigh_statistics(case, found.variants[0]) if is_shown else None) or 0.0
        bits = max(bits, max(shown, _weigh_exactness(case, found)) - OF_A_NUMBER * found.numbers)
    region = 0.0 if found.region is None or (is_beside and not found.is_of_region) else found.region.bits
    usual = [row.fault for row in EPS]
    choice = sum(_OF_AN_EPS if fault in usual else _TRIED for fault in found.faults)
    return max(of_region, bits - choice - region)


def _weigh_region(case: Case, found: Found) -> float:
    """Return the evidence, in bits, that only a region of y is wrong, from what is right outside it.

    Each right group or slice outside counts log2 of the region's median error, in rounding bounds, at most 24.
    For scattered wrong values, each right value counts 4. The bits that it takes to describe the region are
    subtracted. Groups of equal values do not count, since any norm makes 0 of them.
    """
    region = found.region
    assert region is not None
    outside = ~region.mask & case.shows_norm
    if region.kind == "values":
        return 4.0 * np.count_nonzero(outside & ~case.differs) - region.bits
    off = np.abs(case.y - case.right.values)[region.mask] / case.right.allowed[region.mask]
    far = np.log2(max(1.0, float(np.median(np.nan_to_num(off, nan=np.inf)))))
    count = max(region.slices * float(outside.mean()), float(np.count_nonzero(outside.all(case.axes))))
    return float(min(far, MOST_BITS) * count) - region.bits


def _weigh_values(case: Case, found: Found, wrong: Selected) -> float:
    """Return how improbable it is, in bits, that a finding's faults predict the wrong values of y by chance.

    `wrong` is True for the values that count. Values with one mean and divisor count together. A step behind
    the norm also predicts which values are wrong.
    """
    prediction, right = found.prediction, case.right
    moved = np.abs(prediction.values - right.values) / (prediction.allowed + right.allowed)
    moved = np.where(np.isnan(prediction.values), np.inf, moved)
    most = 2.0**MOST_BITS
    times = np.clip(np.nan_to_num(moved, nan=1.0, posinf=most), 1.0, most) * wrong
    bits = np.log2(np.maximum(times, 1.0))
    is_known = np.abs(np.abs(case.y) - np.abs(right.values)) <= right.allowed  # but for its sign
    bits = np.where(is_known | _repeats(case.y, wrong), np.minimum(bits, 1.0), bits)
    shape = _find_statistics(case, found.variants[0])
    if shape is None or found.is_fitted:
        is_step = found.region is None and found.variants[0].slope is not None
        return float(bits.sum()) + (_weigh_places(case, wrong) if is_step else 0.0)
    axes = tuple(axis for axis, n in enumerate(shape) if n == 1)
    combine = np.sum if is_half(case.dtype) else np.max  # last roundings average out, those of sums are shared
    together = np.log2(1.0 + combine(times**2, axes))  # of a mean and a divisor, which all these values show
    return float(np.minimum(np.minimum(bits.sum(axes), together), 2.0 * MOST_BITS).sum())


def _weigh_places(case: Case, wrong: Selected) -> float:
    """Return the information, in bits, in which values of each group are wrong, given how many are.

    It is 0 for groups of at most two values, which show no more than their order.
    """
    length = math.prod(wrong.shape[axis] for axis in case.axes)
    if length <= 2:
        return 0.0
    each, groups = np.unique(wrong.sum(case.axes), return_counts=True)
    chosen = (choose_bits(length, count) - math.log2(length) for count in each.tolist())
    return float(sum(bits * count for bits, count in zip(chosen, groups.tolist(), strict=True)))


def _weigh_exactness(case: Case, found: Found) -> float:
    """Return the evidence, in bits, of a prediction that is y at every value, rounded once or twice; else 0.

    It is the number of values to which the right result does not round (or is more than 16 units in the last
    place off), but at most 12 in each group: the price of a number fitted to the group.
    """
    unit = measure_unit(np.nan_to_num(case.y), case.dtype)
    theirs, ours = (np.abs(case.y - one.values) / unit for one in (found.prediction, case.right))
    least = next((least for most, least in OFF_EXACT if np.all((theirs <= most) | ~case.judged)), math.inf)
    missed = ours > least
    return float(np.minimum(np.add.reduce(missed, case.axes), OF_A_NUMBER).sum())


OFF_EXACT = (0.5, 0.5), (2.0, 16.0)
"""Units in the last place: the most by which an exact y is off, and beyond which a wrong one is."""


def _repeats(y: Floats, wrong: Selected) -> Selected:
    """Return `wrong` without the first of equal wrong values of y: True where a wrong value is repeated."""
    flat = np.flatnonzero(wrong)
    first = flat[np.unique(y.reshape(-1)[flat], return_index=True)[1]]
    repeated = wrong.copy()
    repeated.reshape(-1)[first] = False
    return repeated


def _find_statistics(case: Case, variant: Variant) -> tuple[int, ...] | None:
    """Return the shape of a variant's statistics; None without mean, divisor and square, or with a result."""
    given = [values for values in (variant.mean, variant.divisor, variant.square) if values is not None]
    if variant.result is not None or not given:
        return None
    return np.broadcast_shapes(case.own_mean.shape, *(values.shape for values in given))
