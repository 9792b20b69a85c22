"""Records that the passes of a backward pass hand to each other: values, tiles, bands of groups."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

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
        As they were read, kept runs first.
    x : ndarray of float64
    low : ndarray of float64 or None
        What x leaves of long integers.
    counted : ndarray of bool or None
        Which values the statistics are of; None for all.
    """

    raw: NDArray[Any]
    x: Floats
    low: Floats | None
    counted: Selected | None

    def add_up(self) -> tuple[Floats, Any]:
        """Return about the sum of those of each row that count, and how many these are."""
        if self.counted is None:
            return np.add.reduce(self.x, axis=-1), self.x.shape[-1]
        chosen = np.where(self.counted, self.x, 0.0)
        return np.add.reduce(chosen, axis=-1), np.add.reduce(self.counted, axis=-1)


class ReadTile(NamedTuple):
    """A tile as it was read, one row for each group.

    Parameters
    ----------
    place : slices
        Where it lies.
    numbers : ndarray of int, shape (groups,)
        The numbers of its groups.
    values : TileValues
    dy, gamma, places : ndarray of the shape of the values
        Of the gradient as float64; of what it is multiplied by, or None for 1; and of the numbers of
        parameters, or None without parameters.
    off : ndarray or None
        How far the gradient may be from the exact one, to which a gate is multiplied; None for not at all.
    upstream, downstream : Gated or None
        What multiplies dy already, and what dx is to be multiplied with.
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
        """Return some of the rows, as if nothing else lay there."""
        (raw, x, low, counted), gamma, places = self.values, self.gamma, self.places
        off, *gates = self.off, self.upstream, self.downstream
        return ReadTile(
            self.place,
            self.numbers[rows],
            TileValues(
                raw,
                x[rows],
                None if low is None else low[rows],
                None if counted is None else counted[rows],
            ),
            self.dy[rows],
            None if gamma is None else gamma[rows],
            None if places is None else places[rows],
            None if off is None else off[rows],
            *(None if gate is None else gate.map(lambda a: a[rows]) for gate in gates),
        )


class Tile(NamedTuple):
    """A tile with one row for each group.

    Parameters
    ----------
    numbers : ndarray of int, shape (groups,)
        The numbers of its groups.
    rows : GradientRows
    filled : ndarray or None
        dx of the values that do not count, without a gate before the norm; None where they are normalized.
    gamma : ndarray or None
        One for each group, where it does not vary within groups.
    places : ndarray of int or None
        The number of the parameter of each value, or of each group, shape (groups, 1); None without parameters.
    used : ndarray of bool or None
        Which values have a part in normalized ones; None for all.
    downstream : Gated or None
        What dx is to be multiplied with.
    beta : ndarray or None
        Of the values' shape, for the derivative by a gate; None without one.
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
    """Groups that do not lie within tiles, and what is known of them.

    Parameters
    ----------
    within : slices
        Where their values lie.
    numbers : ndarray of int, shape (groups,)
        Their numbers, which rise.
    shift : ndarray or None
        What is subtracted from their values, one for each.
    solved : SolvedGroups or None
        What they are differentiated with, once that is known.
    """

    within: Slices
    numbers: Integers
    shift: Floats | None = None
    solved: SolvedGroups | None = None

    def locate(self, numbers: Integers) -> Integers:
        """Return the places in the band of groups of some numbers."""
        return np.searchsorted(self.numbers, numbers)

    def take(self, numbers: Integers) -> SolvedGroups:
        """Return what groups of some numbers are differentiated with."""
        assert self.solved is not None  # from its second walk on
        return self.solved.take(self.locate(numbers))


def choose_shift(totals: Floats, counts: Any, dtype: np.dtype[Any]) -> Floats:
    """Return what is subtracted from values of groups: about their mean, of integers a whole number."""
    means = totals / counts
    means = keep_small(means)
    return np.rint(means) if dtype.kind in "iu" else means


_LARGEST_SHIFT = 2.0**960
"""Smaller numbers may be subtracted from any double."""


def keep_small(means: Floats) -> Floats:
    """Return means, and 0 for those that may be too far from values for their difference to be a double."""
    return np.where(np.abs(means) < _LARGEST_SHIFT, means, 0.0)
