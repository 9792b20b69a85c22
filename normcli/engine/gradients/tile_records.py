"""Tiles and bands of groups in a backward pass, and the number that is subtracted from a group's values."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from normcli.numerics.pairs import map_arrays
from normcli.tuples import NamedTuple

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from normcli.dtypes import Floats, Integers, Selected
    from normcli.engine.gradients.coefficients import SolvedGroups
    from normcli.engine.tiling.geometry import Slices
    from normcli.numerics.elements.gate import Gated
    from normcli.numerics.gradients.rows import GradientRows


class TileValues(NamedTuple):
    """The values of a tile, one row for each group.

    Parameters
    ----------
    raw : ndarray
        The values as they were read, with the axes that are kept before those that are reduced.
    x : ndarray of float64
    low : ndarray of float64 or None
        The number added to x where an integer has more bits than float64; None if x is exact.
    counted : ndarray of bool or None
        True where a value counts; None for all.
    """

    raw: NDArray[Any]
    x: Floats
    low: Floats | None
    counted: Selected | None

    def add_up(self) -> tuple[Floats, Any]:
        """Return the sum of the values of each row that count, in doubles, and their number.

        The number is an int if all count, or an array with one for each row.
        """
        if self.counted is None:
            return np.add.reduce(self.x, axis=-1), self.x.shape[-1]
        chosen = np.where(self.counted, self.x, 0.0)
        return np.add.reduce(chosen, axis=-1), np.add.reduce(self.counted, axis=-1)


class ReadTile(NamedTuple):
    """A tile as it was read, one row for each group.

    Parameters
    ----------
    place : slices
        The tile's index in the tensor: a slice along each run (axes of the view that are walked over as one).
    numbers : ndarray of int, shape (groups,)
        The indices of its groups in the tensor.
    values : TileValues
    dy : ndarray of float64, of the values' shape
        The derivative of the loss with respect to the norm's result: times the gate, if one follows the norm.
    gamma : ndarray of the values' shape, or None
        The factor of dy; None for 1.
    places : ndarray of int, of the values' shape, or None
        The flat index of each value's gamma and beta; None if the norm has no parameters.
    off : ndarray or None
        An upper bound of the error of dy, into which a gate was multiplied; None if dy is exact.
    upstream, downstream : Gated or None
        The gate that dy is multiplied by already, and the gate that dx is to be multiplied by.
    """

    place: Slices
    numbers: Integers
    values: TileValues
    dy: Floats
    gamma: Floats | None
    places: Integers | None
    off: Floats | None = None
    upstream: Gated | None = None
    downstream: Gated | None = None

    def take(self, rows: Integers) -> ReadTile:
        """Return the tile with some of its rows; `place` and `values.raw` still describe the whole tile."""
        taken = map_arrays(self._replace(values=self.values._replace(raw=np.zeros(()))), lambda a: a[rows])
        return taken._replace(values=taken.values._replace(raw=self.values.raw))


class Tile(NamedTuple):
    """A tile whose values are ready for exact sums, with one row for each group.

    Parameters
    ----------
    numbers : ndarray of int, shape (groups,)
        The indices of its groups in the tensor.
    rows : GradientRows
    filled : ndarray or None
        dx of the values that do not count, before `downstream` multiplies it; None if all are normalized.
    gamma : ndarray, shape (groups,), or None
        The gamma of each group; None for 1, and where gamma varies within groups (it is then in `rows`).
    places : ndarray of int or None
        The flat index of the gamma and beta of each value, or of each group, shape (groups, 1); None without
        parameters.
    used : ndarray of bool or None
        True where a value is normalized; None for all.
    downstream : Gated or None
        The gate that dx is to be multiplied by.
    beta : ndarray or None
        Beta of each value, for the derivative with respect to a gate; None if it is not needed.
    """

    numbers: Integers
    rows: GradientRows
    filled: Floats | None
    gamma: Floats | None
    places: Integers | None
    used: Selected | None
    downstream: Gated | None = None
    beta: Floats | None = None


class Band(NamedTuple):
    """Some groups that are larger than tiles, and what is known of them.

    Parameters
    ----------
    within : slices
        The part of the tensor that holds their values.
    numbers : ndarray of int, shape (groups,)
        The indices of the groups in the tensor, in ascending order.
    shift : ndarray, shape (groups,), or None
        The number subtracted from the values of each group; None for nothing.
    solved : SolvedGroups or None
        The coefficients of the groups; None until they are known.
    """

    within: Slices
    numbers: Integers
    shift: Floats | None = None
    solved: SolvedGroups | None = None

    def locate(self, numbers: Integers) -> Integers:
        """Return the indices within this band of groups that are given by their indices in the tensor."""
        return np.searchsorted(self.numbers, numbers)

    def take(self, numbers: Integers) -> SolvedGroups:
        """Return the coefficients of some groups, given by their indices in the tensor."""
        assert self.solved is not None  # from its second walk on
        return self.solved.take(self.locate(numbers))


def choose_shift(totals: Floats, counts: Any, dtype: np.dtype[Any]) -> Floats:
    """Return the number to subtract from each group's values: about their mean, a whole number for integers.

    Parameters
    ----------
    totals : ndarray
        The sum of each group's values.
    counts : ndarray or int
        The number of values of each group.
    dtype : dtype
        The tensor's.
    """
    means = totals / counts
    means = keep_small(means)
    return np.rint(means) if dtype.kind in "iu" else means


_LARGEST_SHIFT = 2.0**960
"""Smaller numbers may be subtracted from any double."""


def keep_small(means: Floats) -> Floats:
    """Return means, and 0 in place of those that are not finite or not below `_LARGEST_SHIFT`."""
    return np.where(np.abs(means) < _LARGEST_SHIFT, means, 0.0)
