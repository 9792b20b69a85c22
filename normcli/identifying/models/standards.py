"""Groups without centre and scale: x̂ with eps = 0, by each divisor."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from normcli.dtypes import is_long_integer
from normcli.norms.divisors import DIVISORS, ORDER_STATISTICS, Divisor, Measurement
from normcli.norms.rules import Centre, ZeroRule
from normcli.norms.table import NORMS
from normcli.results.normalize import normalize

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from normcli.dtypes import Floats, Selected
    from normcli.norms.names import NanName, NormName


@dataclass(frozen=True, eq=False)
class Standard:
    """Groups, standardized without eps.

    Parameters
    ----------
    rows : ndarray, shape (groups, group_size)
        The groups as they are.
    values : ndarray, shape (groups, group_size)
        x̂ with eps = 0 and ddof = 0; NaN where the row is NaN, which does not count.
    size : ndarray, shape (groups,)
        What was divided by.
    offset : ndarray, shape (groups,)
        |mean| / deviation: how much of the arithmetic cancels; |mean| where all values are the same, 0 where
        nothing is subtracted.
    divisor : Divisor
        One of `STANDARDS`.
    measured : int or None
        Of how many values the statistics of each group are, where these are but some of them.
    """

    rows: NDArray[Any]
    values: Floats
    size: Floats
    offset: Floats
    divisor: Divisor
    measured: int | None = None

    @property
    def centred(self) -> bool:
        """Whether something was subtracted."""
        return is_centred(self.divisor)

    @cached_property
    def missing(self) -> Selected | None:
        """Which values do not count; None if all do."""
        missing: Selected = np.isnan(self.rows)
        return missing if missing.any() else None

    @cached_property
    def counts(self) -> Floats:
        """How many values of each group count, shape (groups,)."""
        counts: Floats = self.group_size - np.isnan(self.rows).sum(axis=1, dtype=np.float64)
        return counts

    @property
    def unit(self) -> Floats:
        """What the values are counted in: the size, and 1 where that is 0."""
        return np.where(self.size > 0.0, self.size, 1.0)

    @property
    def group_size(self) -> int:
        """Values in a group."""
        return self.measured or int(self.values.shape[1])

    def take(self, step: int) -> Standard:
        """Return one group of so many."""
        every = slice(None, None, step)
        return Standard(
            self.rows[every], self.values[every], self.size[every], self.offset[every], self.divisor
        )

    def pick(self, places: NDArray[np.intp]) -> Standard:
        """Return single values, by their places in all rows, each as a group with the statistics of its own."""
        groups, (rows, values) = (
            places // self.values.shape[1],
            (z.reshape(-1) for z in (self.rows, self.values)),
        )
        picked = rows[places, None], values[places, None]
        return Standard(*picked, self.size[groups], self.offset[groups], self.divisor, self.group_size)

    def measure_length(self, p: float) -> Floats:
        """Return ‖x‖ₚ of each group, measured once."""
        if p not in self._lengths:
            self._lengths[p] = normalize(self.rows, "lp", axes=1, p=p, nan=_choose_rule(self.rows)).norm
        return self._lengths[p]

    @cached_property
    def _lengths(self) -> dict[float, Floats]:
        return {}


MOMENTS = tuple(divisor for divisor in DIVISORS if divisor.measurement is Measurement.MOMENTS)
"""The divisors with an eps; the root of the mean square stands for lengths too."""

STANDARDS = (*MOMENTS, *(divisor for divisor in DIVISORS if divisor.is_by_order))
"""What groups are standardized by, each with the centre of the first norm that divides so, or none."""

ROWS = {divisor: next(row for row in NORMS.values() if row.divisor == divisor) for divisor in DIVISORS}
"""The first norm that divides so."""


def is_centred(divisor: Divisor) -> bool:
    """Whether something is subtracted of what is divided so."""
    return ROWS[divisor].centre is not Centre.NOTHING


def standardize(rows: NDArray[Any], divisor: Divisor, *, omits_nan: bool = True) -> Standard:
    """Return groups, shape (groups, group_size), without centre (if there is one) and scale."""
    row = ROWS[divisor]
    name, rule = cast("NormName", row.name), _choose_rule(rows) if omits_nan else None
    result = normalize(rows, name, axes=1, eps=None if row.eps is None else 0.0, nan=rule)
    assert divisor.spread is not None  # of every standard
    size = result.statistics[divisor.spread]
    if row.zero_rule is ZeroRule.ONE:
        size = np.where(size == 0.0, 1.0, size)
    if row.centre is Centre.NOTHING:
        return Standard(rows, result.normalized, size, np.zeros_like(size), divisor)
    with np.errstate(all="ignore"):
        offset = np.abs(result.statistics[row.centre.value]) / np.where(size > 0.0, size, 1.0)
    offset = np.where(np.isfinite(offset), offset, 0.0)
    return Standard(rows, result.normalized, size, offset, divisor)


def standardize_roughly(rows: NDArray[Any], divisor: Divisor) -> Standard | None:
    """Return the same of finite values by a divisor that goes by order, in plain arithmetic, which is quicker.

    None for other divisors, and where that may be off by more than a few units of a float64's last place.
    """
    if not divisor.is_by_order or is_long_integer(rows.dtype):
        return None
    assert divisor.spread is not None  # of every standard
    ordered = np.sort(rows.astype(np.float64), axis=1)
    if np.abs(ordered[:, [0, -1]]).max() > _LARGEST:
        return None
    centre, size = (_read(ordered, name)[:, None] for name in (ROWS[divisor].centre.value, divisor.spread))
    if size.min() < _LEAST:
        return None
    offset = np.abs(centre / size)[:, 0]
    return Standard(rows, (rows.astype(np.float64) - centre) / size, size[:, 0], offset, divisor)


def _read(ordered: Floats, name: str) -> Floats:
    """Return a statistic of rows in order."""
    row = ORDER_STATISTICS[name]
    if row.combination is None:
        assert row.percent is not None  # of every standard
        place = row.percent / 100 * (ordered.shape[1] - 1)
        below = ordered[:, int(place)]
        above = ordered[:, min(int(place) + 1, ordered.shape[1] - 1)]
        read: Floats = below + (place - int(place)) * (above - below)
        return read
    left, right = (_read(ordered, part) for part in (row.combination.left, row.combination.right))
    both = left + right if row.combination.sign == "+" else left - right
    return both / 2.0 if row.combination.half else both


_LEAST, _LARGEST = 2.0**-900, 2.0**900
"""Between these, nothing over- or underflows."""


def _choose_rule(rows: NDArray[Any]) -> NanName | None:
    """Return what NaN does: rows with it are taken only where y has it too, and then it does not count."""
    return "omit" if np.isnan(rows).any() else None
