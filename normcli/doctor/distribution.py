"""The median and the largest of very many numbers ≥ 0, and where the largest lies, in little memory."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from normcli.dtypes import Floats, Integers

_SHIFT = 47
"""Bits of a float64 below those that choose its bin: of its fraction 5 are left, which makes 3 %."""

_LEAST, _MOST = 2.0**-64, 2.0**128
"""Numbers beyond are counted in the first and last bin."""

_FIRST, _LAST = (int(np.float64(bound).view(np.int64)) >> _SHIFT for bound in (_LEAST, _MOST))


class Distribution:
    """Numbers ≥ 0 in bins, none of which is wider than 3 % of its numbers; NaN counts as ∞.

    Examples
    --------
    >>> found = Distribution()
    >>> found.add(np.array([0.0, 1.0, 1.0, 5.0, np.inf]), np.arange(5))
    >>> found.largest, found.place, found.median
    (inf, 4, 1.0)
    """

    def __init__(self) -> None:
        self.largest, self.place = -1.0, -1
        self._bins = np.zeros(_LAST - _FIRST + 2, np.int64)

    def add(self, numbers: Floats, places: Integers) -> None:
        """Count numbers, each with the place that is kept of the largest; of equals that is the first."""
        if not numbers.size:
            return
        numbers = np.where(np.isnan(numbers), np.inf, numbers)
        chosen = np.clip((numbers.view(np.int64) >> _SHIFT) - _FIRST, 0, len(self._bins) - 1)
        self._bins += np.bincount(chosen.reshape(-1), minlength=len(self._bins))
        at = int(numbers.argmax())
        self._keep(float(numbers.flat[at]), int(places.flat[at]))

    def merge(self, other: Distribution) -> None:
        """Count what another has counted."""
        self._bins += other._bins
        if other.place >= 0:
            self._keep(other.largest, other.place)

    def _keep(self, number: float, place: int) -> None:
        if number > self.largest or (number == self.largest and place < self.place):
            self.largest, self.place = number, place

    @property
    def median(self) -> float:
        """The least number of the median's bin, 0 or ∞ in the first and the last; NaN of nothing."""
        count = int(self._bins.sum())
        if not count:
            return float("nan")
        chosen = int(np.searchsorted(np.cumsum(self._bins), (count + 1) // 2))
        if chosen in (0, len(self._bins) - 1):
            return 0.0 if chosen == 0 else float("inf")
        return float(np.int64(chosen + _FIRST << _SHIFT).view(np.float64))
