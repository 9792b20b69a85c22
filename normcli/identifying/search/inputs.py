"""The input of a search: groups of its values, standardized once."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from normcli.identifying.models.standards import Standard, standardize, standardize_roughly
from normcli.identifying.search.groups import Widened
from normcli.tensors.pieces import iterate_pieces
from normcli.tuples import NamedTuple

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from normcli.dtypes import Selected
    from normcli.norms.divisors import Divisor
    from normcli.norms.grid import Grid


KEPT_VALUES = 1 << 20
"""Values of groups that are kept, standardized, while a search goes on: of small tensors all."""


class Chosen(NamedTuple):
    """Groups of finite values and the others, by their numbers, and what they are without centre and scale."""

    groups: NDArray[np.intp]
    standard: Standard
    others: NDArray[np.intp] | None = None
    undefined: Standard | None = None


class Inputs:
    """A tensor, and groups of its values, standardized once for every search that takes them.

    Parameters
    ----------
    x : ndarray
    y : ndarray
        Of the same shape. Where both have NaN in the same places, NaN does not count.
    """

    def __init__(self, x: NDArray[Any], y: NDArray[Any]) -> None:
        self.x, self._y, self._widened = x, y, Widened(x)
        self._room = KEPT_VALUES
        self._kept: dict[tuple[Grid, Divisor, bytes, bool], Chosen | None] = {}

    def standardize(
        self, grid: Grid, chosen: NDArray[np.intp], divisor: Divisor, *, roughly: bool = False
    ) -> Chosen | None:
        """Return some groups, standardized, roughly if so wished; None if none of them has finite values."""
        roughly = roughly and divisor.is_by_order  # others are standardized in one way
        key = (grid, divisor, chosen.tobytes(), roughly)
        if key not in self._kept:
            rows = self._widened.take(grid, chosen)
            found = self._standardize(chosen, rows, divisor, roughly=roughly)
            if rows.size > self._room:
                return found
            self._room -= rows.size
            self._kept[key] = found
        return self._kept[key]

    def _standardize(
        self, chosen: NDArray[np.intp], rows: NDArray[Any], divisor: Divisor, *, roughly: bool
    ) -> Chosen | None:
        usable = self._find_usable(rows)
        if usable.all():
            rough = standardize_roughly(rows, divisor) if roughly else None
            return Chosen(chosen, rough or standardize(rows, divisor))
        if not usable.any():
            return None
        undefined = standardize(rows[~usable], divisor, omits_nan=self._omits_nan)
        return Chosen(chosen[usable], standardize(rows[usable], divisor), chosen[~usable], undefined)

    def _find_usable(self, rows: NDArray[Any]) -> Selected:
        finite = np.isfinite(rows)
        usable: Selected = finite.all(axis=1)
        if not usable.all() and self._omits_nan:
            usable = (finite | np.isnan(rows)).all(axis=1) & (finite.sum(axis=1) > 1)
        return usable

    @cached_property
    def _omits_nan(self) -> bool:
        pieces = zip(iterate_pieces(self.x), iterate_pieces(self._y), strict=True)
        return all(np.array_equal(np.isnan(x), np.isnan(y)) for x, y in pieces)
