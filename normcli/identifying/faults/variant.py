"""Numbers that a kernel may have used instead of the norm's, and the values of y that follow from them."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

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
        return float(self.explained.mean())

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


def cut_at(values: NDArray[Any], index: tuple[slice, ...]) -> NDArray[Any]:
    """Return an array cut by one slice for each axis, except that axes of length 1 stay whole."""
    return values[tuple(one if n > 1 else slice(None) for one, n in zip(index, values.shape, strict=True))]
