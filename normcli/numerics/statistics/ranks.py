"""Values by their rank: quantiles of groups that lie in memory, or that come piece by piece, both exact.

A float whose bits are read as an integer, those of negative ones turned over, is a key that has the order of
the floats. The key of a given rank is found digit by digit: a histogram of the values' first digits gives the
first digit of the key; one of the second digits, of the values with that first digit, gives the second; and so
on. So a group is read as often as a key has digits, and all that is kept of it is a histogram.
"""

from __future__ import annotations

import math
import operator
import threading
from typing import TYPE_CHECKING, Any

import numpy as np

from normcli.numerics.rounding import find_limits, widen_to_pair
from normcli.numerics.statistics.order_statistics import Quantiles, Shares

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from normcli.dtypes import Integers, Selected
    from normcli.norms.plan import Plan
    from normcli.numerics.pairs import Pair

    Keys = NDArray[np.unsignedinteger[Any]]

RANKS = 2 * 3
"""Two quantiles and the median each lie between two values."""

MOST_CELLS = 1 << 22
"""The most cells of all histograms together: if groups are many, digits are shorter."""

LONGEST_DIGIT, SHORTEST_DIGIT = 16, 4
"""The bits of the longest and of the shortest digit."""


def find_shares(plan: Plan) -> Shares:
    """Return the quantiles that a plan needs: their names, and the exact share of a group below each.

    A percentage is taken as the decimal that it is written as.
    """
    from fractions import Fraction

    percents = sorted(plan.find_percents().items(), key=operator.itemgetter(1))
    shares = [Fraction(repr(percent)) / 100 for _, percent in percents]
    of = math.lcm(*(share.denominator for share in shares))
    return Shares(tuple(name for name, _ in percents), tuple(int(share * of) for share in shares), of)


def find_ranks(count: Integers, shares: Shares) -> tuple[Integers, Integers]:
    """Return the ranks of the values below and above each quantile, and how far between the two it lies.

    Quantiles are interpolated linearly, as in `numpy.percentile`.

    Parameters
    ----------
    count : ndarray of int, shape (groups,)
        The number of values of each group that count.
    shares : Shares

    Returns
    -------
    tuple of (ndarray, ndarray)
        The ranks, from 0, of the values below and above each quantile in turn, shape (groups, 6); and an array
        of integers `parts`, shape (groups, 3): the quantile is parts / `shares.of` of the way from the lower
        value to the upper.
    """
    last = np.maximum(count - 1, 0)[:, None]
    below, parts = np.divmod(last * np.array(shares.parts), shares.of)
    ranks = np.empty((len(count), RANKS), dtype=np.int64)
    ranks[:, ::2], ranks[:, 1::2] = below, np.minimum(below + 1, last)
    return ranks, parts


def measure_quantiles(rows: NDArray[Any], shares: Shares, selected: Selected | None = None) -> Quantiles:
    """Return the quantiles of groups that lie in memory.

    Parameters
    ----------
    rows : ndarray of floats or of integers, shape (groups, n), n ≥ 1
    shares : Shares
        The quantiles to find.
    selected : ndarray of bool or None
        True for values that count, of the shape of rows; None if all count.

    Returns
    -------
    Quantiles
        Their values are NaN for a group where a value that counts is NaN, or none counts.
    """
    nan = np.isnan(rows)
    has_nan = np.asarray((nan if selected is None else nan & selected).any(axis=-1))
    count = np.full(len(rows), rows.shape[1])
    if selected is not None:
        count = np.add.reduce(selected, axis=-1, dtype=np.int64)
    ranks, parts = find_ranks(count, shares)
    if selected is None:
        ordered = np.partition(rows, np.unique(ranks[:1]), axis=-1)
    else:
        last = find_limits(rows.dtype)[1] if rows.dtype.kind in "iu" else rows.dtype.type(np.nan)
        ordered = np.sort(np.where(selected, rows, last), axis=-1)
    values = widen_to_pair(np.take_along_axis(ordered, ranks, axis=-1))  # of 0: −0 and 0 have no order
    unknown = has_nan | (count == 0)
    values.hi[unknown], values.lo[unknown] = np.nan, 0.0
    return Quantiles(count, values, parts, shares)


def _turn(bits: NDArray[Any]) -> NDArray[Any]:
    """Return signed integers, all bits but the sign of negative ones turned over: done twice, it is undone."""
    kind = np.iinfo(bits.dtype)
    turned: NDArray[Any] = bits ^ ((bits >> (kind.bits - 1)) & kind.max)
    return turned


def make_keys(x: NDArray[Any]) -> Keys:
    """Return unsigned integers that have the order of floats or integers: −0 and 0 are one, NaN are above all.

    Parameters
    ----------
    x : ndarray of float32, float64, int64 or uint64

    Examples
    --------
    >>> make_keys(np.array([-1.0, -0.0, 0.0, 2.0], dtype=np.float32)).argsort(kind="stable").tolist()
    [0, 1, 2, 3]
    """
    if x.dtype.kind == "u":
        return x.copy()
    signed = x if x.dtype.kind == "i" else _turn((x + x.dtype.type(0)).view(f"i{x.itemsize}"))
    return (signed ^ np.iinfo(signed.dtype).min).view(f"u{x.itemsize}")


def read_keys(keys: Keys, dtype: np.dtype[Any]) -> Pair:
    """Return the values, of a dtype, that keys were made of."""
    if dtype.kind == "u":
        return widen_to_pair(keys)
    signed = keys.view(f"i{keys.itemsize}")
    signed = signed ^ np.iinfo(signed.dtype).min
    return widen_to_pair(signed if dtype.kind == "i" else _turn(signed).view(dtype))


class RankSearch:
    """A search for the quantiles of groups whose values come in pieces, digit by digit of the values.

    Call `add` for all values of all groups, in any pieces and order; then `advance`; and again, until `done`.
    `find` then returns the quantiles.

    Parameters
    ----------
    groups : int
        The number of groups.
    dtype : dtype
        The dtype of all values: float32, float64, int64 or uint64.
    shares : Shares
        The quantiles to find.

    Examples
    --------
    >>> from normcli.numerics.statistics.order_statistics import QUARTILES
    >>> search = RankSearch(1, np.dtype(np.float64), QUARTILES)
    >>> while not search.done:
    ...     for part in ([4.0, 2.0], [1.0, 3.0, 5.0]):
    ...         search.add(slice(0, 1), np.array([part]))
    ...     search.advance()
    >>> search.find().values.hi[:, ::2]
    array([[2., 3., 4.]])
    """

    def __init__(self, groups: int, dtype: np.dtype[Any], shares: Shares) -> None:
        self._shares = shares
        self._size = 8 * dtype.itemsize
        self.dtype = dtype
        room = MOST_CELLS // (RANKS * max(1, groups))
        self._digit = min(LONGEST_DIGIT, max(SHORTEST_DIGIT, room.bit_length() - 1))
        self._known = 0
        self._prefix = np.zeros((RANKS, groups), f"u{dtype.itemsize}")
        self._rank: Integers = np.zeros((RANKS, groups), np.int64)
        self.count = np.zeros(groups, np.int64)
        self.nan_count = np.zeros(groups, np.int64)
        self._start_histograms()
        self._lock = threading.Lock()

    @property
    def passes(self) -> int:
        """The number of times that all values have to be added: once for each digit."""
        return -(-self._size // self._digit)

    @property
    def done(self) -> bool:
        """Whether the values are known."""
        return self._known == self._size

    def add(
        self, groups: NDArray[np.intp] | slice, rows: NDArray[Any], selected: Selected | None = None
    ) -> None:
        """Count values of some groups; several threads may do so at once.

        Parameters
        ----------
        groups : ndarray of int, or slice
            The indices of the groups, each once.
        rows : ndarray, shape (groups, values)
        selected : ndarray of bool or None
            True for values that count, of the shape of rows; None if all count.
        """
        nan = np.isnan(rows)
        usable = ~nan
        if selected is not None:
            nan &= selected
            usable &= selected
        if not self._known:
            with self._lock:
                self.nan_count[groups] += np.count_nonzero(nan, axis=-1)
                self.count[groups] += np.count_nonzero(usable, axis=-1)
        cells, keys = self._take_digit(rows)
        length = 1 << self._width
        cells += np.arange(len(rows))[:, None] * length
        for slot, histogram in self._histograms.items():
            chosen = usable
            if self._known:
                chosen = usable & (keys == self._prefix[slot, groups, None])
            picked = cells.reshape(-1) if chosen.all() else cells[chosen]
            found = np.bincount(picked, minlength=len(rows) * length).reshape(-1, length)
            with self._lock:
                histogram[groups] += found

    def add_each(self, groups: NDArray[np.intp], values: NDArray[Any], selected: Selected) -> None:
        """Count single values, of which several may be of one group; only one thread may call it at a time.

        Parameters
        ----------
        groups : ndarray of int, shape (values,)
            The index of each value's group.
        values : ndarray, shape (values,)
        selected : ndarray of bool, shape (values,)
            True where a value counts.
        """
        nan = np.isnan(values)
        usable = selected & ~nan
        if not self._known:
            self.nan_count += np.bincount(groups[selected & nan], minlength=len(self.count))
            self.count += np.bincount(groups[usable], minlength=len(self.count))
        cells, keys = self._take_digit(values)
        for slot, histogram in self._histograms.items():
            chosen = usable & (keys == self._prefix[slot, groups]) if self._known else usable
            np.add.at(histogram, (groups[chosen], cells[chosen]), 1)

    def _take_digit(self, values: NDArray[Any]) -> tuple[Integers, Keys]:
        """Return the next digit of each value's key (an integer in their order), and the digits before."""
        keys = make_keys(np.ascontiguousarray(values, dtype=self.dtype))
        keys >>= keys.dtype.type(self._size - self._known - self._width)
        digits = (keys & keys.dtype.type((1 << self._width) - 1)).astype(np.int64)
        keys >>= keys.dtype.type(self._width)
        return digits, keys

    def advance(self) -> None:
        """Find the next digit of each key from the histograms, and begin histograms of the digit after it."""
        if not self._known:
            self._rank = np.ascontiguousarray(find_ranks(self.count, self._shares)[0].T)
        kind, width = self._prefix.dtype.type, self._width
        histogram = self._histograms[0]
        for slot, rank in enumerate(self._rank):
            histogram = self._histograms.get(slot, histogram)
            up_to = np.cumsum(histogram, axis=-1)
            digit = np.add.reduce(up_to <= rank[:, None], axis=-1)
            digit = np.minimum(digit, (1 << width) - 1)  # of a group without values
            below = np.take_along_axis(up_to, np.maximum(digit - 1, 0)[:, None], axis=-1)[:, 0]
            rank -= np.where(digit > 0, below, 0)
            self._prefix[slot] = (self._prefix[slot] << kind(width)) | digit.astype(kind)
        self._known += width
        self._start_histograms()

    def find(self) -> Quantiles:
        """Return the quantiles of each group; NaN for a group with NaN or without values.

        If NaN is not to count, each call of `add` has to leave it out by `selected`.
        """
        values = read_keys(np.ascontiguousarray(self._prefix.T), self.dtype)
        unknown = (self.nan_count > 0) | (self.count == 0)
        values.hi[unknown], values.lo[unknown] = np.nan, 0.0
        parts = find_ranks(self.count, self._shares)[1]
        return Quantiles(self.count + self.nan_count, values, parts, self._shares)

    @property
    def _width(self) -> int:
        """The bits of the next digit."""
        return min(self._digit, self._size - self._known)

    def _start_histograms(self) -> None:
        """Make empty histograms of the next digit, one for each rank.

        Neighbouring ranks whose keys (values as integers in their order) have been equal so far share one.
        """
        shape = (len(self.count), 0 if self.done else 1 << self._width)
        self._histograms = {
            slot: np.zeros(shape, np.int64)
            for slot, prefix in enumerate(self._prefix)
            if slot == 0 or not np.array_equal(prefix, self._prefix[slot - 1])
        }
