"""Numbers that a kernel may have used instead of the norm's, and the values of y that follow from them."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from normcli.checking.ulp import measure_unit
from normcli.tuples import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from numpy.typing import NDArray

    from normcli.checking.fault import Fault
    from normcli.dtypes import Floats, Selected


MOST = 2.0**-4
"""The bound of a value's error before its last rounding, as a part of its own and a usual value's size."""


NEAR = 0.02
"""The relative difference up to which two statistics are taken for about equal."""


MOST_SHIFTS = 64
"""The most places by which parameters and statistics are rolled."""


def list_shifts(length: int) -> list[int]:
    """Return the numbers of indices, at most 64, by which to try to roll an axis: negative for backwards.

    The shortest are first.

    Examples
    --------
    >>> list_shifts(5)
    [1, -1, 2, -2]
    """
    nearest = range(1, min(length // 2, MOST_SHIFTS) + 1)
    return [shift for most in nearest for shift in (most, -most) if 2 * shift != -length]


def list_roots(factor: float, lengths: Iterable[int]) -> Iterator[tuple[str, float]]:
    """Yield √n and 1/√n, as words and number, that are within 2⁻⁹ of a factor; n is a length of at least 8."""
    for n in sorted({n for n in lengths if n >= _LEAST_LENGTH}):
        for words, root in ((f"√{n}", math.sqrt(n)), (f"1/√{n}", 1.0 / math.sqrt(n))):
            if abs(factor - root) <= _NEAR_ROOT * root:
                yield words, root


_LEAST_LENGTH = 8
"""The least length whose root is tried: roots of shorter ones are simple numbers of many meanings."""

_NEAR_ROOT = 2.0**-9
"""The largest relative difference of a fitted factor from the root of a length, which is then tried."""


def is_near(theirs: Floats, ours: Floats) -> bool:
    """Return True if, in at least half of the groups, a number differs from the kernel's by at most 2 %.

    The 2 % are of the kernel's number (`theirs`). Equal infinities count as near, NaN does not. True without
    groups.
    """
    with np.errstate(all="ignore"):
        near = (np.abs(theirs - ours) <= NEAR * np.abs(theirs)) & np.isfinite(theirs)
        near |= theirs == ours  # of sums that overflow, both may be infinite
    return bool(2 * np.count_nonzero(near) >= near.size)


class Variant(NamedTuple):
    """The numbers that a kernel with a fault used in place of the norm's, and the words for them.

    Parameters
    ----------
    mean, divisor : ndarray or None
        The mean and the divisor of each group; None for the norm's own.
    square : ndarray or None
        The variance or mean square of each group, before eps and the root; None for the norm's own.
    gamma, beta : ndarray or None
        Scale and shift; None for the case's gamma or beta.
    result : ndarray or None
        The kernel's whole result, if it does not follow from mean, divisor, gamma and beta; else None.
    values : mapping
        The values for the braces in the words of the fault.
    numbers : int
        The count of numbers that were fitted to y.
    slope : ndarray or None
        The derivative of a step behind the norm, such as an activation, before which the norm's result is
        rounded; None without such a step.
    noise : ndarray or None
        The bound on the error of the result before its last rounding; None for the bound of the case.
    is_fitted : bool
        True if each group has a number of its own that was fitted to y.
    other : Case or None
        The case with another input or gate whose exact result the variant has; None for other variants.
    bits : float
        For fitted statistics, the evidence in bits that they are so near the norm's own; else 0.
    """

    mean: Floats | None = None
    divisor: Floats | None = None
    square: Floats | None = None
    gamma: Floats | None = None
    beta: Floats | None = None
    result: Floats | None = None
    values: Mapping[str, Any] = {}
    numbers: int = 0
    slope: Floats | None = None
    noise: Floats | None = None
    is_fitted: bool = False
    other: Any = None
    bits: float = 0.0

    @property
    def is_own(self) -> bool:
        """Whether mean and divisor are the norm's."""
        return self.mean is None and self.divisor is None and self.square is None


NOTHING = Variant()
"""The variant of a kernel without a fault."""


def divide(*divisors: Floats, **values: Any) -> list[Variant]:
    """Return a variant for each divisor, all with `values` for the braces in the fault's words."""
    return [Variant(divisor=divisor, values=values) for divisor in divisors]


def label(variants: Iterable[Variant], numbers: int = 0, **values: Any) -> Iterator[Variant]:
    """Yield variants with more values for the braces in the fault's words, and `numbers` fitted numbers."""
    for variant in variants:
        yield variant._replace(values={**variant.values, **values}, numbers=numbers)


class Prediction(NamedTuple):
    """The result of a variant, with bounds of its rounding errors.

    Parameters
    ----------
    values : ndarray
        The result, before its last rounding.
    allowed : ndarray
        The bound on each value's rounding error.
    unit : ndarray
        The bound if nothing is rounded between the norm and a gate, or another step, behind it.
    """

    values: Floats
    allowed: Floats
    unit: Floats


class Used(NamedTuple):
    """The mean and the divisor of each group that fit y by least squares."""

    mean: Floats
    divisor: Floats


@np.errstate(all="ignore")
def fit_used(case: Any) -> Used:
    """Return the mean and the divisor of each group that fit y best, by least squares.

    With y − beta = gamma · (a · (x − m) + c), the divisor is 1 / a and the mean m − c / a. For a norm
    without mean, the means are 0, unless fitted means bring more values of y within rounding.
    """
    weight, y = weigh_standardized(case)
    moved = case.x - case.own_mean
    centre_x, centre_y = (case.average_judged(weight * values) for values in (moved, y))
    moved = moved - centre_x
    a = case.average_judged(weight * moved * (y - centre_y)) / case.average_judged(weight * moved**2)
    moved = np.where(a == 0.0, 0.0, centre_x - centre_y / a)
    line = Used(case.own_mean + moved, 1.0 / a)
    if case.centres:
        return line
    through_zero = case.average_judged(weight * case.x**2) / case.average_judged(weight * case.x * y)
    used = Used(np.zeros_like(line.mean), through_zero)
    fits = [find_share(case.explains(case.predict(Variant(*one)))) for one in (used, line)]
    return used if fits[0] >= fits[1] else line


def divide_deviations(case: Any, deviations: Floats, divisor: Floats) -> Floats:
    """Return deviations / divisor; 0 / 0 is 0, as in the exact result, if the norm of the case has no eps."""
    values = np.asarray(deviations / divisor)
    is_nothing = np.isnan(values) & (deviations == 0.0) & (divisor == 0.0)
    return values if case.eps else np.where(is_nothing, 0.0, values)


def allow_rounding(case: Any, values: Floats, terms: Floats, shared: Floats, usual: Floats) -> Floats:
    """Return the bound on the rounding error of each value: of its last rounding, its terms and the mean.

    All but the last rounding count as at most (|value| + `usual`) / 16.

    Parameters
    ----------
    values, terms : ndarray
        The result, and the sum of the absolute values of its terms.
    shared : ndarray
        The change of the result for a relative error of 1 in the mean.
    usual : ndarray
        The size of a typical value, such as |gamma|.
    """
    lost = max(_LOST * (2.0 + math.log2(max(1, case.count))), math.sqrt(case.count))
    noise = case.arithmetic * (_ROUNDINGS * terms + lost * shared)
    size = np.where(np.isfinite(values), values, 0.0)
    noise = np.minimum(noise, MOST * (usual + np.abs(size)))
    return np.asarray(measure_unit(size, case.dtype) + noise)


_ROUNDINGS, _LOST = 8.0, 4.0
"""Bounds in machine epsilons of the arithmetic: of a value's error, times the size of its terms; and of a mean
of n values, times the larger of 2 + log2 n, if they are added in pairs, and √n / 4, one after the other."""


def weigh_standardized(case: Any) -> tuple[Floats, Floats]:
    """Return a weight for each value, and y before the gate, beta and gamma: (y − beta) / gamma.

    A weight is the inverse square of the rounding bound of y, 1 on average in each group. Both arrays are 0
    where y is not finite or gamma is 0.
    """
    units = (measure_unit(np.nan_to_num(values), case.dtype) for values in (case.y, case.right.values))
    allowed = case.right.allowed + np.subtract(*units)
    gamma, beta = case.gamma * case.factor, case.beta * case.factor
    weight = np.where(np.isfinite(case.y), np.square(gamma / allowed), 0.0)
    weight = weight / case.average_judged(weight)
    y = np.where(np.isfinite(case.y), (case.y - beta) / gamma, 0.0)
    return np.where(gamma == 0.0, 0.0, weight), np.where(gamma == 0.0, 0.0, y)


class IndexRegion(NamedTuple):
    """A part of a tensor, described by indices.

    Parameters
    ----------
    words : str
        The region in words, such as `for l ≥ 10` or `for n=5`.
    mask : ndarray of bool
        True in the region, of the view's shape.
    kind : str
        `index` for one index of one axis, `region` for other indices of axes, `values` for scattered values.
    bits : float
        The information, in bits, in the choice of this region.
    slices : float
        The length of the axis to which the region's indices belong; of several axes, the longest.
    """

    words: str
    mask: Selected
    kind: str = "region"
    bits: float = 0.0
    slices: float = 1.0


REGION_IDS = frozenset(("where-index", "where-region", "where-values"))
"""The ids of faults known only by where they are."""


class Found(NamedTuple):
    """A finding: a fault, or several together, that explains all or some of y's values within rounding.

    It holds the numbers of a kernel with these faults (variants) and the result that follows from them.

    Parameters
    ----------
    faults : tuple of Fault
        One for each faulty part of the norm; empty for the right result.
    variants : tuple of Variant
        The numbers for each fault.
    prediction : Prediction
        The result with the numbers of the first variant.
    explained : ndarray of bool
        True for values of y that are within rounding of the prediction, or of what fills the region.
    region : IndexRegion or None
        The part of y that the finding is about; None for all of y.
    """

    faults: tuple[Fault, ...]
    variants: tuple[Variant, ...]
    prediction: Prediction
    explained: Selected
    region: IndexRegion | None = None

    @property
    def share(self) -> float:
        """The part of y's values that are explained (within rounding of the prediction), from 0 to 1."""
        return find_share(self.explained)

    @property
    def numbers(self) -> int:
        """The count of numbers that were fitted to y, over all variants."""
        return sum(variant.numbers for variant in self.variants)

    @property
    def is_fitted(self) -> bool:
        """Whether a variant has a separate fitted number in each group."""
        return any(variant.is_fitted for variant in self.variants)

    @property
    def is_of_region(self) -> bool:
        """Whether the last fault only says that a region is wrong, not what fills it."""
        return self.faults[-1].id in REGION_IDS

    def moves(self, other: Found) -> bool:
        """Whether any value of two findings' predictions differs by more than both rounding bounds together."""
        apart = np.abs(self.prediction.values - other.prediction.values)
        return bool(np.any(apart > self.prediction.allowed + other.prediction.allowed))


def find_share(mask: Selected) -> float:
    """Return the part of an array of bool that is True; 0 without values."""
    return int(np.count_nonzero(mask)) / max(1, mask.size)


def cut_at(values: NDArray[Any], index: tuple[slice, ...]) -> NDArray[Any]:
    """Return an array cut by one slice for each axis, except that axes of length 1 stay whole."""
    return values[tuple(one if n > 1 else slice(None) for one, n in zip(index, values.shape, strict=True))]
