"""The evidence for a fault, in bits: what its coincidences are worth, less what its choice takes."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from normcli.dtypes import is_half

if TYPE_CHECKING:
    from normcli.dtypes import Floats, Selected
    from normcli.identifying.faults.case import Case
    from normcli.identifying.faults.claim import Found
    from normcli.identifying.faults.variant import Variant

_TRIED = 10.0
"""Bits that the choice of a row and of its variant takes: there are about a thousand."""

_OF_A_NUMBER = 12.0
"""Bits that a number takes which was found, a count or a shift."""

_MOST_BITS = 24.0
"""No value shows more."""


def measure_bits(case: Case, found: Found, misfit: float) -> float:
    """Return the evidence that y shows for what was found, which leaves values so far off."""
    of_region = 0.0
    if len(found.faults) == 1 and found.faults[0].id.startswith("where-"):
        of_region = _weigh_region(case, found) - _TRIED
    if len(found.faults) == 1 and found.is_of_region:
        return of_region
    is_beside = len(found.faults) > 1 and found.region is not None  # of copies, which show where they stand
    wrong = case.differs
    if found.region is not None:
        wrong = wrong & (~found.region.mask if found.is_of_region or is_beside else found.region.mask)
    numbers = sum(variant.numbers for variant in found.variants)
    bits = _weigh_values(case, found, wrong) - _OF_A_NUMBER * numbers
    if found.is_fitted or (found.region is None and _find_statistics(case, found.variants[0]) is not None):
        # what is off a little in every value of a group shows in all of them together
        off = (case.y - case.right.values) / case.right.allowed
        without = math.sqrt(float(np.mean(off[np.isfinite(off)] ** 2))) if np.isfinite(off).any() else 0.0
        nearer = math.log2(max(1.0, without / misfit)) if misfit else _MOST_BITS
        bits = max(bits, case.divisor.size * nearer - _OF_A_NUMBER)
    region = 0.0 if found.region is None or (is_beside and not found.is_of_region) else found.region.bits
    return max(of_region, bits - _TRIED * len(found.faults) - region)


def _weigh_region(case: Case, found: Found) -> float:
    """Return the evidence that y is right but for a region: how unlikely as many slices are right by chance.

    What is far off in the region is near elsewhere, by so many bits. The values of a slice show that once
    together: it may have a factor of its own.
    """
    region, right = found.region, ~case.differs
    assert region is not None
    if region.kind == "values":
        return 4.0 * np.count_nonzero(right) - region.bits
    off = np.abs(case.y - case.right.values)[region.mask] / case.right.allowed[region.mask]
    far = np.log2(max(1.0, float(np.median(np.nan_to_num(off, nan=np.inf)))))
    slices = region.slices * float((~region.mask).mean())
    return float(min(far, _MOST_BITS) * slices) - region.bits


def _weigh_values(case: Case, found: Found, wrong: Selected) -> float:
    """Return how unlikely it is that the values that differ from the norm's are by chance what a row says."""
    prediction, right = found.prediction, case.right
    moved = np.abs(prediction.values - right.values) / (prediction.allowed + right.allowed)
    times = (
        np.clip(
            np.nan_to_num(
                np.where(np.isnan(prediction.values), np.inf, moved), nan=1.0, posinf=2.0**_MOST_BITS
            ),
            1.0,
            2.0**_MOST_BITS,
        )
        * wrong
    )
    bits = np.log2(np.maximum(times, 1.0))
    is_known = np.abs(np.abs(case.y) - np.abs(right.values)) <= right.allowed  # but for its sign
    bits = np.where(is_known | _repeats(case.y, wrong), np.minimum(bits, 1.0), bits)
    shape = _find_statistics(case, found.variants[0])
    if shape is None or found.is_fitted:
        return float(bits.sum())
    axes = tuple(axis for axis, n in enumerate(shape) if n == 1)
    combine = np.sum if is_half(case.dtype) else np.max  # last roundings average out, those of sums are shared
    together = np.log2(1.0 + combine(times**2, axes))  # of a mean and a divisor, which all these values show
    return float(np.minimum(np.minimum(bits.sum(axes), together), 2.0 * _MOST_BITS).sum())


def _repeats(y: Floats, wrong: Selected) -> Selected:
    """Return which values stand elsewhere, too: they show little that is new."""
    flat = np.flatnonzero(wrong)
    first = flat[np.unique(y.reshape(-1)[flat], return_index=True)[1]]
    repeated = wrong.copy()
    repeated.reshape(-1)[first] = False
    return repeated


def _find_statistics(case: Case, variant: Variant) -> tuple[int, ...] | None:
    """Return the shape of the statistics of a variant; None where it has none, or is another tensor."""
    given = [values for values in (variant.mean, variant.divisor, variant.square) if values is not None]
    if variant.result is not None or not given:
        return None
    return np.broadcast_shapes(case.own_mean.shape, *(values.shape for values in given))
