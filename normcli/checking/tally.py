"""The running totals of a comparison: counts, extremes, the worst element, and the mismatches of each group."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from normcli.checking.ulp import measure_distance, raise_limit
from normcli.tensors.mapped import fetch
from normcli.tensors.pieces import find_places, forget, iterate_pieces
from normcli.tensors.spool import make_scratch
from normcli.tuples import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from normcli.checking.ulp import Tolerance
    from normcli.dtypes import Floats


PIECE = 1 << 14
"""The number of values compared at once, so that their dozen arrays stay in the cache."""

_BOUNDS = (0.0, *(math.ldexp(0.5, power) for power in range(1024)), math.inf, math.inf)
"""The bounds of bins: 0 to ½ (of values rounded once), ½ to 1, 1 to 2, … up to the largest float64, and ∞."""

_BINS = len(_BOUNDS) - 1


class Element(NamedTuple):
    """One value that was compared.

    Parameters
    ----------
    excess : float
        |actual − expected| as a multiple of the tolerance.
    ulp : float
        |actual − expected| in units in the last place, at the expected value, of the tolerance's dtype.
    expected, actual : float
    place : int
        The flat index of the value, in C order.
    """

    excess: float
    ulp: float
    expected: float
    actual: float
    place: int

    @property
    def rank(self) -> tuple[float, float, int]:
        """The sort key that puts the worst last: excess, then ulp, then the lower index."""
        return (self.excess, self.ulp, -self.place)


class Bin(NamedTuple):
    """The number of values off by more than `lower` and at most `upper` ulp; the first bin includes 0."""

    lower: float
    upper: float
    value_count: int


_NEAR_ZERO = 2.0**-6
"""Values below this part of the largest |value| count as near 0, where one ulp is very small."""

_CELL = np.dtype([("mismatches", np.int64), ("max_ulp", np.float64)])
"""The totals of one group."""


class Smallest(NamedTuple):
    """The smallest tolerances at which an array passes; infinite if no number passes.

    Parameters
    ----------
    rtol : float
        The smallest rtol, with the atol of the tolerance in use.
    atol : float
        The smallest atol, with the rtol of the tolerance in use.
    max_ulp : float
        The smallest limit in ulp, in place of both.
    """

    rtol: float
    atol: float
    max_ulp: float


class GroupDifference(NamedTuple):
    """A group with mismatches: its flat index, their number, and the largest distance of a mismatch in ulp."""

    group: int
    mismatches: int
    max_ulp: float


@dataclass(slots=True)
class Comparison:
    """The running totals of a comparison, to which pieces of an array are added in any order.

    Parameters
    ----------
    tolerance : Tolerance
    groups : GroupTally or None
        The mismatches of each group, which the caller adds; None for sliding windows.
    compared, mismatches : int
        The number of compared values, and of those beyond the tolerance.
    max_ulp, max_abs : float
        The largest distance in ulp, and the largest |actual − expected|.
    max_ulp_expected : float
        The smallest |expected| among the values with the largest distance in ulp; near 0, one ulp is very
        small.
    largest_expected : float
        The largest finite |expected|.
    least_rtol, least_atol : float
        The smallest rtol with the tolerance's own atol, and the smallest atol with its rtol, that pass.
    worst : Element or None
        The value with the largest excess; None before any value.
    bins : ndarray of int
        The number of values in each bin of distances.
    """

    tolerance: Tolerance
    groups: GroupTally | None = None
    compared: int = 0
    mismatches: int = 0
    max_ulp: float = 0.0
    max_abs: float = 0.0
    max_ulp_expected: float = math.inf
    largest_expected: float = 0.0
    least_rtol: float = 0.0
    least_atol: float = 0.0
    worst: Element | None = None
    bins: NDArray[np.int64] = field(default_factory=lambda: np.zeros(_BINS, dtype=np.int64))

    def compare(
        self, actual: NDArray[Any], expected: NDArray[Any], start: int, allowed: Floats | None = None
    ) -> Floats:
        """Add a piece of values to the totals; the totals of groups are left as they are.

        The caller silences NumPy with `np.errstate(all="ignore")`.

        Parameters
        ----------
        actual, expected : ndarray, shape (values,)
        start : int
            The flat index of the piece's first value in the whole array.
        allowed : ndarray of float64 or None
            The largest error of each value, in place of the tolerance; if None, the tolerance holds.

        Returns
        -------
        ndarray of float64
            The distance of each mismatch in ulp, and 0 for every other value.
        """
        tolerance, expected = self.tolerance, np.asarray(expected, dtype=np.float64)
        actual = np.asarray(actual, dtype=np.float64)
        error, ulp = measure_distance(actual, expected, tolerance.dtype)
        if allowed is not None:
            excess = np.where((error == 0.0) | (allowed == np.inf), 0.0, error / allowed)
            excess[np.isnan(excess)] = np.inf  # of what is not finite, nothing is tolerated
        else:
            excess = tolerance.measure_excess(error, ulp, expected)
        wrong = excess > 1.0
        size, furthest = np.abs(expected), float(ulp.max(initial=0.0))
        here = Comparison(self.tolerance, None, ulp.size, int(np.count_nonzero(wrong)), furthest)
        here.max_abs = float(error.max(initial=0.0))
        if allowed is None:
            here.least_rtol, here.least_atol = self._find_least(error, size, here.max_abs)
        here.max_ulp_expected = float(size.min(initial=np.inf, where=(ulp == furthest) & (size < np.inf)))
        here.largest_expected = float(size.max(initial=0.0, where=size < np.inf))
        if ulp.size:
            candidates = np.flatnonzero(excess == excess.max())
            at = candidates[np.argmax(ulp[candidates])]
            how_far, theirs = (float(excess[at]), float(ulp[at])), (float(expected[at]), float(actual[at]))
            here.worst = Element(*how_far, *theirs, start + int(at))
        here.bins = np.bincount(_choose_bins(ulp), minlength=_BINS)
        self.merge(here)
        return np.where(wrong, ulp, 0.0)

    def compare_all(self, actual: NDArray[Any], expected: NDArray[Any], allowed: Floats | None = None) -> None:
        """Add whole arrays of one size, in memory or in files, to the totals.

        If this comparison has `groups`, each value counts as a group of its own. `allowed` is the largest error
        of each value, in place of the tolerance; None if the tolerance holds.
        """
        flat = actual.reshape(-1)
        limits = None if allowed is None else allowed.reshape(-1)
        with np.errstate(all="ignore"):
            for piece in iterate_pieces(expected, PIECE):
                part = slice(self.compared, self.compared + piece.size)
                limit = None if limits is None else limits[part]
                found = self.compare(fetch(flat[part]), piece, part.start, limit)
                if self.groups is not None and found.any():
                    self.groups.add((part,), found, ())
                forget(actual)

    def _find_least(self, error: Floats, size: Floats, largest: float) -> tuple[float, float]:
        """Return the smallest rtol and the smallest atol at which these values and all before pass.

        `error` and `size` are |actual − expected| and |expected|. Both limits are ∞ if `largest`, the largest
        error, is.
        """
        atol, (least_rtol, least_atol) = self.tolerance.atol, (self.least_rtol, self.least_atol)
        if largest == math.inf:
            return math.inf, math.inf
        if largest > atol:
            least_rtol = raise_limit(least_rtol, error, np.full_like(error, atol), size)
        if largest > least_atol:
            least_atol = raise_limit(least_atol, error, self.tolerance.rtol * size, np.ones_like(error))
        return least_rtol, least_atol

    def merge(self, other: Comparison) -> None:
        """Add the totals of another comparison to these; its groups' mismatches are not added."""
        self.compared += other.compared
        self.mismatches += other.mismatches
        if other.max_ulp >= self.max_ulp:
            closer = self.max_ulp_expected if self.max_ulp == other.max_ulp else math.inf
            self.max_ulp_expected = min(closer, other.max_ulp_expected)
        for name in ("max_ulp", "max_abs", "largest_expected", "least_rtol", "least_atol"):
            setattr(self, name, max(getattr(self, name), getattr(other, name)))
        self.bins += other.bins
        if self.worst is None or (other.worst is not None and other.worst.rank > self.worst.rank):
            self.worst = other.worst

    @property
    def is_near_zero(self) -> bool:
        """Whether the largest distance is above 1 ulp, at an |expected| below 1/64 of the largest."""
        return self.max_ulp > 1.0 and self.max_ulp_expected < _NEAR_ZERO * self.largest_expected

    @property
    def ok(self) -> bool:
        """Whether every value is within the tolerance."""
        return self.mismatches == 0

    @property
    def smallest(self) -> Smallest | None:
        """The smallest tolerances that pass; None if each value has a bound of its own."""
        if self.tolerance.derived:
            return None
        return Smallest(self.least_rtol, self.least_atol, self.max_ulp)

    def count_groups(self) -> int:
        """Return the number of groups with a mismatch; for sliding windows, the number of mismatches."""
        return self.mismatches if self.groups is None else self.groups.count()

    @property
    def histogram(self) -> tuple[Bin, ...]:
        """The bins of distances that are not empty, from the smallest distance up."""
        found = np.flatnonzero(self.bins).tolist()
        return tuple(Bin(_BOUNDS[n], _BOUNDS[n + 1], int(self.bins[n])) for n in found)


class GroupTally:
    """The number and the largest distance of mismatches in each group; iteration yields groups with mismatches.

    The array of totals is made at the first `add`, on disk if it is large.

    Parameters
    ----------
    shape : tuple of int
        The shape of the array of groups, which `add` indexes.
    """

    def __init__(self, shape: tuple[int, ...]) -> None:
        self._shape = shape
        self._cells: NDArray[np.void] | None = None

    def add(self, index: tuple[slice, ...], ulp: Floats, axes: tuple[int, ...]) -> None:
        """Add values of the groups at an index.

        Parameters
        ----------
        index : tuple of slice
            The index of the groups in the array of groups.
        ulp : ndarray
            The distance of each mismatch in ulp, and 0 for every other value.
        axes : tuple of int
            The axes of `ulp` along which the values of one group lie.
        """
        self._add(index, np.count_nonzero(ulp, axis=axes), ulp.max(axis=axes))

    def add_each(self, numbers: NDArray[np.intp], ulp: Floats) -> None:
        """Add single values, each with the flat index of its group; a group may occur several times.

        `numbers` are these indices; `ulp` is the distance of each mismatch in ulp, and 0 for every other value.
        """
        if self._cells is None:
            self._cells = make_scratch(self._shape, _CELL)
        np.add.at(self._cells["mismatches"], numbers, ulp > 0.0)
        np.maximum.at(self._cells["max_ulp"], numbers, ulp)

    def merge(self, other: GroupTally, index: tuple[slice, ...]) -> None:
        """Add the totals of another tally, whose array of groups is the part at an index."""
        if other._cells is not None:
            self._add(index, other._cells["mismatches"], other._cells["max_ulp"])

    def _add(self, index: tuple[slice, ...], mismatches: Any, max_ulp: Any) -> None:
        if self._cells is None:
            self._cells = make_scratch(self._shape, _CELL)
        here = self._cells[index]
        here["mismatches"] += np.reshape(mismatches, here.shape)
        np.maximum(here["max_ulp"], np.reshape(max_ulp, here.shape), out=here["max_ulp"])
        forget(self._cells)

    def __getstate__(self) -> dict[str, Any]:
        return {"_shape": self._shape, "_cells": None if self._cells is None else np.array(self._cells)}

    def __iter__(self) -> Iterator[GroupDifference]:
        """Yield the groups with mismatches, in order."""
        for groups, cells in self._pieces():
            yield from _join(groups, cells)

    def count(self) -> int:
        """Return the number of groups with a mismatch."""
        return sum(groups.size for groups, _ in self._pieces())

    def find_worst(self, most: int) -> list[GroupDifference]:
        """Return at most `most` groups, those with the most mismatches first, then by largest distance."""
        worst: list[GroupDifference] = []
        for groups, cells in self._pieces():  # few of each piece: millions of groups may differ
            order = np.lexsort((-cells["max_ulp"], -cells["mismatches"]))[:most]
            worst += _join(groups[order], cells[order])
        return sorted(worst, key=lambda group: (-group.mismatches, -group.max_ulp))[:most]

    def _pieces(self) -> Iterator[tuple[NDArray[np.intp], NDArray[np.void]]]:
        """Yield, piece by piece, the flat indices of groups with mismatches and their totals."""
        if self._cells is not None:
            for groups in find_places(lambda cells: cells["mismatches"] > 0, self._cells):
                yield groups, self._cells.reshape(-1)[groups]


def _join(groups: NDArray[np.intp], cells: NDArray[np.void]) -> Iterator[GroupDifference]:
    return (GroupDifference(group, *cell) for group, cell in zip(groups.tolist(), cells.tolist(), strict=True))


def _choose_bins(ulp: Floats) -> NDArray[np.int64]:
    """Return the index of the bin of each distance in ulp: max(0, 1 + ⌈log₂ distance⌉), or the last for ∞."""
    fraction, exponent = np.frexp(ulp)
    bins: NDArray[np.int64] = np.clip(exponent + (fraction > _BOUNDS[1]), 0, _BINS - 2)
    bins[ulp == np.inf] = _BINS - 1
    return bins
