"""Numbers that a kernel may have used instead of the norm's, and the values of y that they explain."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from normcli.tuples import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from numpy.typing import NDArray

    from normcli.checking.fault import Fault
    from normcli.dtypes import Floats, Selected


MOST = 2.0**-4
"""No value is explained that is further off than this part of a deviation or of itself."""


NEAR = 0.02
"""A statistic that is off by less, as a part of it, is held against y."""


MOST_SHIFTS = 64
"""Parameters and statistics are rolled by no more places."""


def list_shifts(length: int) -> list[int]:
    """Return by how many places an axis may be rolled, forwards or backwards, the nearest first."""
    nearest = range(1, min(length // 2, MOST_SHIFTS) + 1)
    return [shift for most in nearest for shift in (most, -most) if 2 * shift != -length]


def is_near(theirs: Floats, ours: Floats) -> bool:
    """Whether most groups have about the statistic that is expected."""
    with np.errstate(all="ignore"):
        near = (np.abs(theirs - ours) <= NEAR * np.abs(theirs)) & np.isfinite(theirs)
        near |= theirs == ours  # of sums that overflow, both may be infinite
    return bool(2 * np.count_nonzero(near) >= near.size)


class Variant(NamedTuple):
    """The numbers that a kernel may have used at one joint, and the words for them.

    Parameters
    ----------
    mean, divisor : ndarray or None
        Of each group; None for the norm's own.
    square : ndarray or None
        A variance or mean square in place of the norm's, before eps and the root; None for the norm's own.
    gamma, beta : ndarray or None
        None for the given ones.
    result : ndarray or None
        The tensor itself, where it follows from no other mean, divisor, gamma and beta.
    values : mapping
        What the words of the fault have in their braces.
    numbers : int
        How many numbers were fitted to y.
    slope : ndarray or None
        What another step behind the norm, whose own result is rounded first, makes of a small change.
    noise : ndarray or None
        How far off rounding may take the result before its last rounding, where another norm makes it.
    is_fitted : bool
        Whether each group has a number of its own that y shows.
    other : Case or None
        The case of another tensor or gate that has this result.
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


NOTHING = Variant()
"""The variant of a kernel without a fault."""


def divide(*divisors: Floats, **values: Any) -> list[Variant]:
    """Return the variants of kernels that divide by one of these."""
    return [Variant(divisor=divisor, values=values) for divisor in divisors]


def label(variants: Iterable[Variant], numbers: int = 0, **values: Any) -> Iterator[Variant]:
    """Yield variants with more values for the words of their fault, and with numbers that were fitted."""
    for variant in variants:
        yield variant._replace(values={**variant.values, **values}, numbers=numbers)


class Prediction(NamedTuple):
    """The result of a variant, and how far off rounding may take each value.

    Parameters
    ----------
    values, allowed : ndarray
    unit : ndarray
        How far off a single rounding may take each value.
    """

    values: Floats
    allowed: Floats
    unit: Floats


class Used(NamedTuple):
    """The mean and the divisor that y used for each group."""

    mean: Floats
    divisor: Floats


class IndexRegion(NamedTuple):
    """Values that are described by their indices.

    Parameters
    ----------
    words : str
        `for l ≥ 10`, `for n=5`.
    mask : ndarray of bool
        Of the view's shape.
    kind : str
        `index` for one index of one axis, `region`, or `values` for scattered ones.
    bits : float
        The information, in bits, in the choice of this region.
    slices : float
        How many slices the tensor has along the axis that the region is of.
    """

    words: str
    mask: Selected
    kind: str = "region"
    bits: float = 0.0
    slices: float = 1.0


REGION_IDS = frozenset(("where-index", "where-region", "where-values"))
"""The ids of faults known only by where they are."""


class Found(NamedTuple):
    """A row with the variant that explains values of y."""

    faults: tuple[Fault, ...]
    variants: tuple[Variant, ...]
    prediction: Prediction
    explained: Selected
    region: IndexRegion | None = None

    @property
    def share(self) -> float:
        """The part of the values that it explains."""
        return float(self.explained.mean())

    @property
    def numbers(self) -> int:
        """How many numbers were fitted to y."""
        return sum(variant.numbers for variant in self.variants)

    @property
    def is_fitted(self) -> bool:
        """Whether each group has a number of its own."""
        return any(variant.is_fitted for variant in self.variants)

    @property
    def is_of_region(self) -> bool:
        """Whether nothing is known of a region but that it is wrong."""
        return self.faults[-1].id in REGION_IDS

    def moves(self, other: Found) -> bool:
        """Whether any value is not what another prediction says."""
        apart = np.abs(self.prediction.values - other.prediction.values)
        return bool(np.any(apart > self.prediction.allowed + other.prediction.allowed))


def cut_at(values: NDArray[Any], index: tuple[slice, ...]) -> NDArray[Any]:
    """Return an array at an index of the axes that it does not repeat along."""
    return values[tuple(one if n > 1 else slice(None) for one, n in zip(index, values.shape, strict=True))]
