"""Standardized groups: x̂ = (x − centre) / divisor with eps = 0, for each divisor."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from normcli.norms.divisors import Divisor, Measurement
from normcli.norms.rules import Centre, ZeroRule
from normcli.norms.table import DIVISORS, NORMS
from normcli.results.normalize import normalize

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from normcli.dtypes import Floats, Selected
    from normcli.norms.rules import NanName, NormName


@dataclass(frozen=True, eq=False)
class Standard:
    """Groups of x, standardized for one kind of divisor: centred and divided, with eps = 0 and ddof = 0.

    Parameters
    ----------
    rows : ndarray, shape (groups, group_size)
        The values of each group.
    values : ndarray, shape (groups, group_size)
        The standardized values x̂, with eps = 0 and ddof = 0; NaN where the row is NaN.
    size : ndarray, shape (groups,)
        The divisor of each group.
    offset : ndarray, shape (groups,)
        |centre| / size, whose log2 is the number of bits that the subtraction cancels; |centre| for groups of
        equal values, 0 if nothing is subtracted.
    divisor : Divisor
        One of `STANDARDS`.
    measured : int or None
        The number of values from which the statistics of each group were computed, if rows hold only some of
        them; None if rows hold all.
    """

    rows: NDArray[Any]
    values: Floats
    size: Floats
    offset: Floats
    divisor: Divisor
    measured: int | None = None

    @property
    def centred(self) -> bool:
        """Whether the norms with this divisor subtract a centre."""
        return is_centred(self.divisor)

    @cached_property
    def missing(self) -> Selected | None:
        """True where rows are NaN, which statistics leave out; None if there is no NaN."""
        missing: Selected = np.isnan(self.rows)
        return missing if missing.any() else None

    @cached_property
    def counts(self) -> Floats:
        """The number of values of each group that are not NaN, shape (groups,)."""
        counts: Floats = self.group_size - np.isnan(self.rows).sum(axis=1, dtype=np.float64)
        return counts

    @property
    def unit(self) -> Floats:
        """The divisor of each group, with 1 in place of 0, shape (groups,)."""
        return np.where(self.size > 0.0, self.size, 1.0)

    @property
    def group_size(self) -> int:
        """The number of values in a whole group, of which the rows may hold only some."""
        return self.measured or int(self.values.shape[1])

    def pick(self, places: NDArray[np.intp]) -> Standard:
        """Return single values as groups of one value, each with the statistics of its whole group.

        `places` are the values' indices in the flattened rows.
        """
        groups, (rows, values) = (
            places // self.values.shape[1],
            (z.reshape(-1) for z in (self.rows, self.values)),
        )
        picked = rows[places, None], values[places, None]
        return Standard(*picked, self.size[groups], self.offset[groups], self.divisor, self.group_size)

    def measure_length(self, p: float) -> Floats:
        """Return ‖x‖ₚ of each group, shape (groups,); it is kept for the next call."""
        if p not in self._lengths:
            self._lengths[p] = normalize(self.rows, "lp", axes=1, p=p, nan=_choose_rule(self.rows)).norm
        return self._lengths[p]

    @cached_property
    def _lengths(self) -> dict[float, Floats]:
        return {}


MOMENTS = tuple(divisor for divisor in DIVISORS if divisor.measurement is Measurement.MOMENTS)
"""The divisors by moments: standard deviation and root mean square, which stands for ℓp lengths too."""

STANDARDS = (*MOMENTS, *(divisor for divisor in DIVISORS if divisor.is_by_order))
"""The divisors by which groups are standardized, each with the centre of the first norm that has it."""

ROWS = {divisor: next(row for row in NORMS.values() if row.divisor == divisor) for divisor in DIVISORS}
"""The first norm of the table with each divisor."""


def is_centred(divisor: Divisor) -> bool:
    """Whether norms with this divisor subtract a centre."""
    return ROWS[divisor].centre is not Centre.NOTHING


def standardize(rows: NDArray[Any], divisor: Divisor, *, omits_nan: bool = True) -> Standard:
    """Return groups standardized exactly by a divisor, without eps.

    Parameters
    ----------
    rows : ndarray, shape (groups, group_size)
    divisor : Divisor
    omits_nan : bool
        Whether statistics leave NaN out; if not, a group with NaN becomes NaN.
    """
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


def _choose_rule(rows: NDArray[Any]) -> NanName | None:
    """Return "omit" if rows have NaN, else None."""
    return "omit" if np.isnan(rows).any() else None
