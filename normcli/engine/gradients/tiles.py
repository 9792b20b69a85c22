"""What the passes of a backward pass hand to each other: values, tiles, bands, sums for gamma and beta."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any

import numpy as np

from normcli.numerics.deciding import PAIRS
from normcli.numerics.gradients.in_doubles import SECOND_ORDER, U
from normcli.numerics.gradients.values import KnownGradients, round_known
from normcli.numerics.pairs import Pair, map_arrays, two_sum
from normcli.numerics.sums.fixed_point import Fixed
from normcli.tuples import NamedTuple

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from normcli.dtypes import Floats, Integers, Selected
    from normcli.engine.gradients.coefficients import SolvedGroups
    from normcli.engine.tiling.geometry import Slices
    from normcli.numerics.elements.gate import Gated
    from normcli.numerics.gradients.in_doubles import KnownDoubles
    from normcli.numerics.gradients.rows import GradientRows, Upstream


class TileValues(NamedTuple):
    """The values of a tile, one row for each group.

    Parameters
    ----------
    raw : ndarray
        As they were read, kept runs first.
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
        Where the tile lies.
    numbers : ndarray of int, shape (groups,)
        The numbers of its groups.
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
        The numbers of its groups.
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
    """Groups that do not lie within tiles, and what is known of them.

    Parameters
    ----------
    within : slices
        Where their values lie.
    numbers : ndarray of int, shape (groups,)
        The numbers of the groups, which rise.
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
        """Return the places in the band of the groups with these numbers."""
        return np.searchsorted(self.numbers, numbers)

    def take(self, numbers: Integers) -> SolvedGroups:
        """Return the coefficients of the groups with these numbers."""
        assert self.solved is not None  # from its second walk on
        return self.solved.take(self.locate(numbers))


def choose_shift(totals: Floats, counts: Any, dtype: np.dtype[Any]) -> Floats:
    """Return what is subtracted from each group's values: about their mean, a whole number for integers.

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


_PIECE = 1 << 14
"""The most gammas or betas that are rounded at once: some thirty float64 arrays of their size are made."""


class ParameterSums:
    """Exact sums for the derivatives with respect to gamma and beta, with bounds of their errors.

    Threads may add to them at once and in any order. `count` is the number of values of gamma.
    """

    def __init__(self, count: int) -> None:
        self.gamma, self.beta = Fixed.zeros(count), Fixed.zeros(count)
        self.errors = {name: np.zeros(count) for name in ("gamma", "beta")}
        self.special_gamma, self.special_beta = np.zeros((2, count))
        self.unclear = np.zeros(count, np.bool_)
        self._lock = threading.Lock()

    def add_shares(self, places: Integers, found: KnownGradients) -> None:
        """Add the dy · x̂ of each value to the sum of its gamma.

        `places` are the flat indices of gammas, one for each value or each row; one may come several times.
        """
        hi, lo = found.value
        flat = np.broadcast_to(places, hi.shape).reshape(-1)
        usable = ~found.unclear & np.isfinite(hi)
        error = np.where(usable, found.error + PAIRS.error * np.abs(hi), 0.0)
        special = np.where(found.unclear, 0.0, hi)
        with self._lock:
            self.unclear[flat[found.unclear.reshape(-1)]] = True
            _add_special(self.special_gamma, flat, special)
            _add_rows(self.gamma, places, np.where(usable, hi, 0.0))
            _add_rows(self.gamma, places, np.where(usable, lo, 0.0))
            _add_plainly(self.errors["gamma"], flat, error)

    def add_gradients(self, places: Integers, dy: Floats, upstream: Upstream | None = None) -> None:
        """Add the dy of each value to the sum of its beta.

        Parameters
        ----------
        places : ndarray of int
            The flat indices of betas, one for each value or each row; an index may come several times.
        dy : ndarray
        upstream : Upstream or None
            The low part and error of dy, if it is a product with a gate; None if dy is exact.
        """
        finite, flat = np.isfinite(dy), np.broadcast_to(places, dy.shape).reshape(-1)
        with self._lock:
            _add_special(self.special_beta, flat, dy)
            _add_rows(self.beta, places, np.where(finite, dy, 0.0))
            if upstream is not None:
                _add_rows(self.beta, places, np.where(finite, upstream.low, 0.0))
                _add_plainly(self.errors["beta"], flat, SECOND_ORDER * np.where(finite, upstream.error, 0.0))

    def round(self, name: str, dtype: np.dtype[Any]) -> tuple[NDArray[Any], Selected]:
        """Return the sums of `gamma` or of `beta`, rounded once, and an array that is True where undecided."""
        fixed, special = getattr(self, name), getattr(self, f"special_{name}")
        found, undecided = np.empty(len(special), dtype), np.zeros(len(special), np.bool_)
        for start in range(0, len(special), _PIECE):
            part = slice(start, start + _PIECE)
            value, inexact, lost = fixed.take(part).integers().round()
            error = np.where(inexact, PAIRS.error * np.abs(value.hi), 0.0) + self.errors[name][part]
            if name == "gamma":
                lost = lost | self.unclear[part]
            known = KnownGradients(value, error, lost)
            found[part], undecided[part] = round_known(known, dtype)
        is_special = special != 0.0
        found[is_special] = special[is_special]
        return found, undecided & ~is_special


class DoubleSums:
    """Sums for the derivatives with respect to gamma and beta in doubles, with bounds of their errors.

    For gammas and betas of short floats alone. Threads may add at once.
    """

    def __init__(self, count: int) -> None:
        self.totals = {name: Pair(np.zeros(count), np.zeros(count)) for name in ("gamma", "beta")}
        self.errors = {name: np.zeros(count) for name in self.totals}
        self.unclear = np.zeros(count, np.bool_)
        self._lock = threading.Lock()

    def add(self, name: str, places: Integers, found: KnownDoubles) -> None:
        """Add numbers to the sums of `gamma` or of `beta` at flat indices; an index may come several times."""
        first = int(places.min())
        numbers, part = places - first, slice(first, int(places.max()) + 1)
        width, total, error = part.stop - first, self.totals[name], self.errors[name]
        sums, sizes, errors = (
            np.bincount(numbers, values.reshape(-1), width)
            for values in (found.value, np.abs(found.value), found.error)
        )
        steps = int(np.bincount(numbers, minlength=width).max())
        with self._lock:
            total.hi[part], rest = two_sum(total.hi[part], sums)
            total.lo[part] += rest
            error[part] += errors + U * steps * sizes

    def doubt(self, places: Integers) -> None:
        """Mark the sums at some flat indices as unknown: `round` returns them as undecided."""
        with self._lock:
            self.unclear[places.reshape(-1)] = True

    def round(self, name: str, dtype: np.dtype[Any]) -> tuple[NDArray[Any], Selected]:
        """Return the sums of `gamma` or of `beta`, rounded once, and an array that is True where undecided."""
        value, error = two_sum(*self.totals[name]), SECOND_ORDER * self.errors[name]
        found, undecided = round_known(KnownGradients(value, error, self.unclear), dtype)
        is_zero = (found == 0.0) & (error != 0.0)  # whose sign is that of a small sum
        return found, undecided | (is_zero & (np.abs(value.hi) <= error))


def _add_plainly(totals: Floats, flat: Integers, values: Floats) -> None:
    """Add values to `totals` at the places `flat`, in doubles."""
    first, stop = int(flat.min(initial=len(totals))), int(flat.max(initial=-1)) + 1
    if stop > first:
        totals[first:stop] += np.bincount(flat - first, values.reshape(-1), stop - first)


def _add_special(totals: Floats, flat: Integers, values: Floats) -> None:
    """Add the values that are not finite to `totals` at the places `flat`."""
    finite = np.isfinite(values).reshape(-1)
    if not finite.all():
        _add_plainly(totals, flat[~finite], values.reshape(-1)[~finite])


def _add_rows(fixed: Fixed, places: Integers, values: Floats) -> None:
    """Add values to the exact sums at places, of which there is one for each row, or one for each value."""
    if places.shape != values.shape:
        fixed.add(places.reshape(-1), values)
    else:
        fixed.add(places.reshape(-1), values.reshape(-1, 1))
