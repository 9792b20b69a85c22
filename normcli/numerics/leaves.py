"""Sums of leaves: the short rows that groups are cut into, summed so exactly that merging them loses nothing.

How a group is cut into leaves follows from its shape alone, and each leaf is summed by itself. So the results
do not depend on how the work is cut into blocks, on the number of threads, or on the order of memory.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from normcli.numerics.pairs import Pair, divide_by_count, quick_two_sum, two_diff, two_sum

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Self

    from numpy.typing import NDArray

    from normcli.dtypes import Floats, Selected
    from normcli.numerics.workspace import Workspace


MAX_LEAF = 4096
"""Below 10000, where OpenBLAS' ddot starts threads; at most 2¹³, for the exactness of `measure_leaves`."""

TOO_LARGE, TOO_SMALL = 2.0**990, 2.0**-800
"""Sums of squares that are not between these are measured again, of values scaled by a power of two."""

_CENTRED_BELOW = 2.0**-16
"""Where Σ(x − mean)² is less than this part of Σx², it is summed again with the mean subtracted first."""

_NARROW_CENTRED_BELOW = 2.0**-10
"""The same for values of 24 bits or fewer."""


class Records:
    """What is measured of leaves, or of groups: a dataclass of arrays of one shape, one number for each leaf.

    Every kind has `count`, of how many values a record is, and `extreme`, whether their squares or powers may
    have over- or underflowed.
    """

    __slots__ = ()
    __dataclass_fields__: ClassVar[dict[str, Any]]
    extreme: Selected
    count: Floats

    @classmethod
    def empty(cls, shape: tuple[int, ...]) -> Self:
        """Return records of zeros."""
        names = cls.__dataclass_fields__
        return cls(*(np.zeros(shape, np.bool_ if name == "extreme" else np.float64) for name in names))

    def arrays(self) -> tuple[NDArray[Any], ...]:
        """Return the arrays, in the order of the fields."""
        return tuple(getattr(self, name) for name in self.__dataclass_fields__)

    def map(self, function: Callable[[NDArray[Any]], NDArray[Any]]) -> Self:
        """Return the records with a function (an index, a reshape) applied to each array."""
        return type(self)(*(function(a) for a in self.arrays()))

    def reshape(self, shape: tuple[int, ...]) -> Self:
        """Return the records in another shape."""
        return self.map(lambda a: a.reshape(shape))

    def part(self, start: int, stop: int) -> Self:
        """Return some of the records along the last axis."""
        return self.map(lambda a: a[..., start:stop])

    def put(self, index: Any, other: Self) -> None:
        """Write records to a place."""
        for mine, new in zip(self.arrays(), other.arrays(), strict=True):
            mine[index] = new


@dataclass(slots=True)
class Leaves(Records):
    """The sums of leaves.

    Parameters
    ----------
    sum_hi, sum_lo : ndarray
        Σx, a pair.
    square_hi, square_lo : ndarray
        Σ(x − shift)², a pair.
    shift : ndarray
        0; a double near the leaf's mean where too many digits of Σx² − n · mean² would cancel.
    extreme : ndarray of bool
        Whether squares may have over- or underflowed.
    count : ndarray
        How many values are selected.
    """

    sum_hi: Floats
    sum_lo: Floats
    square_hi: Floats
    square_lo: Floats
    shift: Floats
    extreme: Selected
    count: Floats


_ONES = np.ones((1, MAX_LEAF))

CHUNK = 1 << 18
"""Values that one call works on: two or three float64 buffers of it lie in a core's L2 cache."""

_PART = 256

_MAGNITUDE = np.uint32(0x7FFF_FFFF)
"""The bits of a float32 but for its sign."""


class Dots:
    """Dot products of rows of one length, in parts of 256: the order of sums depends on that length alone.

    `np.vecdot` calls BLAS, in one thread, and is the fastest way to sum in NumPy. But it holds the GIL unless
    it makes more than 500 products: so 4096 values are multiplied as sixteen rows of 256.
    """

    def __init__(self, rows: int, n: int) -> None:
        self._n, self._whole = n, n // _PART if n >= 2 * _PART else 0
        self._split = self._whole * _PART
        self._parts = np.empty((rows, self._whole + (self._split < n)))

    def add(self, rows: slice, a: Floats, b: Floats) -> None:
        """Calculate the products of some rows of a and of b, which has as many rows or one."""
        parts, split = self._parts[rows], self._split
        if split:
            shape = (-1, self._whole, _PART)
            if split == self._n:
                np.vecdot(a.reshape(shape), b.reshape(shape), out=parts)
                return
            np.vecdot(a[:, :split].reshape(shape), b[:, :split].reshape(shape), out=parts[:, :-1])
        np.vecdot(a[:, split:], b[:, split:], out=parts[:, -1])

    def bound(self, squares: Dots) -> Floats:
        """Return an upper bound of every partial sum of a row, if these are sums and `squares` sums of squares.

        Within a part it is √(length · Σx²), by Cauchy and Schwarz; over parts it is the sum of magnitudes.
        """
        length = _PART if self._whole else self._n
        within = np.sqrt(length * np.maximum.reduce(squares._parts, axis=-1))
        return np.asarray(np.maximum(within, np.add.reduce(np.abs(self._parts), axis=-1)))

    def total(self) -> Floats:
        """Return the dot product of each row."""
        if self._parts.shape[1] == 1:
            return self._parts[:, 0]
        return np.asarray(np.vecdot(self._parts, _ONES[0, : self._parts.shape[1]]))


def cut_rows(rows: int, n: int, chunk: int = CHUNK) -> list[slice]:
    """Return slices of rows of n values that hold about as many values as a chunk."""
    step = max(1, chunk // n)
    return [slice(start, min(start + step, rows)) for start in range(0, rows, step)]


def count_values(rows: NDArray[Any], selected: Selected | None) -> Floats:
    """Return how many values of each row count."""
    if selected is None:
        return np.full(rows.shape[:-1], float(rows.shape[-1]))
    return np.asarray(np.add.reduce(selected, axis=-1, dtype=np.float64))


def measure_leaves(x: Floats, work: Workspace, selected: Selected | None = None, *, need_sum: bool) -> Leaves:
    """Measure leaves of full float64 values: sums to about 2⁻¹¹⁵ of their scale, sums of squares to 2⁻⁷².

    Parameters
    ----------
    x : ndarray, shape (leaves, n), n <= MAX_LEAF
    work : Workspace
    selected : ndarray of bool or None
        Which values count, of the shape of x; the others have to be 0. None if all count.
    need_sum : bool
        False for norms that do not centre.

    Notes
    -----
    x is split into t + r, where t is a multiple of G = 2⁻²⁶ of a power of two above √Σx²:
    t = (x + sigma) − sigma, and r = x − t is exact. The squares of t are multiples of G² whose sum is under
    2⁵³ G², so that it is exact in any order; what is left of the squares, r · (x + t), is 2⁻²⁰ of that, and a
    plain sum of it is enough. For Σx, r is split once more, 40 bits lower: only the sum of the last part is
    rounded.
    Leaves that are extreme keep their plain sums; `extreme` is false for leaves of zeros alone.
    """
    rows, n = x.shape
    slices = cut_rows(rows, n)
    ones = _ONES[:, :n]
    dots = Dots(rows, n)
    for s in slices:
        dots.add(s, x[s], x[s])
    square = dots.total()
    extreme = ~((square < TOO_LARGE) & (square > TOO_SMALL))
    count = count_values(x, selected)
    _, exponent = np.frexp(square)
    exponent = ((exponent + 1) >> 1)[:, None]
    first, second = np.ldexp(1.5, exponent + 26), np.ldexp(1.5, exponent - 14)
    high, low = Dots(rows, n), Dots(rows, n)
    sums = [Dots(rows, n) for _ in range(3)] if need_sum else []
    shape = (slices[0].stop, n)
    t_all, r_all = work.get("t", shape), work.get("r", shape)
    for s in slices:
        x_s, sigma = x[s], first[s]
        t, r = t_all[: len(x_s)], r_all[: len(x_s)]
        np.add(x_s, sigma, out=t)
        np.subtract(t, sigma, out=t)
        np.subtract(x_s, t, out=r)
        high.add(s, t, t)
        if need_sum:
            sums[0].add(s, t, ones)
        np.add(t, x_s, out=t)
        low.add(s, r, t)
        if need_sum:
            sigma = second[s]
            np.add(r, sigma, out=t)
            np.subtract(t, sigma, out=t)
            np.subtract(r, t, out=r)
            sums[1].add(s, t, ones)
            sums[2].add(s, r, ones)
    squares = quick_two_sum(high.total(), low.total())
    shift = np.zeros(rows)
    total = Pair(np.zeros(rows), np.zeros(rows))
    if need_sum:
        total = two_sum(sums[0].total(), sums[1].total())
        total = quick_two_sum(total.hi, total.lo + sums[2].total())
        cancels = (squares.hi - total.hi * (total.hi / count)) < _CENTRED_BELOW * squares.hi
        cancels &= ~extreme
        if cancels.any():
            mean = divide_by_count(Pair(total.hi[cancels], total.lo[cancels]), count[cancels]).hi
            again = _squares_about(x[cancels], mean, None if selected is None else selected[cancels])
            shift[cancels], squares.hi[cancels], squares.lo[cancels] = mean, again.hi, again.lo
    if extreme.any():
        extreme[extreme] = np.any(x[extreme], axis=-1)  # zeros alone over- and underflow nowhere
        squares.hi[extreme], squares.lo[extreme] = square[extreme], 0.0
        total.hi[extreme], total.lo[extreme] = np.add.reduce(x[extreme], axis=-1), 0.0
    return Leaves(total.hi, total.lo, squares.hi, squares.lo, shift, extreme, count)


def _squares_about(x: Floats, centre: Floats, selected: Selected | None) -> Pair:
    """Return the sum of (x − centre)² over the selected values of the last axis, to about 2⁻⁷⁰ of itself."""
    d, e = two_diff(x, centre[..., None])
    if selected is not None:
        d, e = d * selected, e * selected
    largest = np.vecdot(d, d)
    _, exponent = np.frexp(largest)
    sigma = np.ldexp(1.5, ((exponent + 1) >> 1) + 26)[..., None]
    t = (d + sigma) - sigma
    r = (d - t) + e
    return quick_two_sum(np.vecdot(t, t), np.vecdot(r, (d + t) + e))


def measure_short_leaves(
    raw: NDArray[Any], work: Workspace, selected: Selected | None = None, *, need_sum: bool
) -> Leaves:
    """Measure leaves of float16 or float32 values (24 bits or fewer), shape (leaves, n).

    The sum of a leaf is exact in float64, in any order, unless its values differ too much in magnitude.
    `find_inexact` finds such leaves, and they are measured as `measure_leaves` does. The squares are exact, and
    their sum good to 2⁻⁴⁷: enough for 24 bits.
    """
    rows, n = raw.shape
    slices = cut_rows(rows, n)
    ones, x_all = _ONES[:, :n], work.get("x", (slices[0].stop, n))
    squares, sums = Dots(rows, n), Dots(rows, n)
    for s in slices:
        raw_s = raw[s]
        x = x_all[: len(raw_s)]
        np.copyto(x, raw_s)
        squares.add(s, x, x)
        if need_sum:
            sums.add(s, x, ones)
    square = squares.total()
    count = count_values(raw, selected)
    zeros, plain = np.zeros(rows), np.zeros(rows, dtype=np.bool_)
    if not need_sum:
        return Leaves(zeros, zeros, square, zeros, zeros, plain, count)
    sum_hi = sums.total()
    sum_lo = shift = zeros
    if raw.dtype != np.float16:  # float16 has 40 bits in all: sums of 4096 are exact
        inexact = find_inexact(raw, sums.bound(squares))
        if inexact.any():
            part = None if selected is None else selected[inexact]
            again = measure_leaves(raw[inexact].astype(np.float64), work, need_sum=True, selected=part)
            sum_lo = np.zeros(rows)
            sum_hi[inexact], sum_lo[inexact] = again.sum_hi, again.sum_lo
    cancels = (square - sum_hi * (sum_hi / count)) < _NARROW_CENTRED_BELOW * square
    if cancels.any():
        shift = np.zeros(rows)
        mean = sum_hi[cancels] / count[cancels]
        centred = raw[cancels] - mean[:, None]
        if selected is not None:
            centred *= selected[cancels]
        shift[cancels], square[cancels] = mean, np.vecdot(centred, centred)
    return Leaves(sum_hi, sum_lo, square, zeros, shift, plain, count)


def find_inexact(raw: NDArray[np.float32], bound: Floats) -> Selected:
    """Return which rows may have an inexact sum in float64, given a bound of their partial sums.

    Every value is a multiple of the ulp of the smallest |x| that is not 0, which is more than |x| · 2⁻²⁴. So is
    every sum of them, which is exact up to 2⁵³ of it. One bit less is used, as the bound itself is rounded.
    """
    inexact = np.asarray(~(_least_of_rows(raw) * 2.0**28 >= bound))
    if inexact.any():
        size = np.abs(raw[inexact]).view(np.uint32)
        size -= np.uint32(1)  # 0, which is a multiple of every ulp, wraps round to the largest
        least = np.minimum.reduce(size, axis=-1) + np.uint32(1)
        inexact[inexact] = (least > 0) & ~(least.view(np.float32) * 2.0**28 >= bound[inexact])
    return inexact


def _least_of_rows(raw: NDArray[np.float32]) -> Floats:
    """Return a lower bound of each row's smallest |x|: the smallest of as many rows as make up 4096 values.

    The bits of positive floats are ordered as the floats are; those of negative ones lie above them if read as
    unsigned, and below, from the least |x| on, if read as signed.
    """
    rows, n = raw.shape
    together = MAX_LEAF // n
    if together < 2 or rows % together:
        together = 1
    bits = raw.view(np.uint32).reshape(rows // together, -1)
    positive = np.minimum.reduce(bits, axis=-1)
    negative = np.minimum.reduce(bits.view(np.int32), axis=-1).view(np.uint32) & _MAGNITUDE
    least: Floats = np.minimum(positive, negative).view(np.float32).astype(np.float64)
    return least if together == 1 else least.repeat(together)


def sum_plainly(x: NDArray[Any]) -> NDArray[Any]:
    """Add along the last axis by halving, each sum rounded: the tree depends on the axis' length alone."""
    while x.shape[-1] > 1:
        half = x.shape[-1] // 2
        odd = x[..., 2 * half :]
        x = x[..., :half] + x[..., half : 2 * half]
        if odd.shape[-1]:
            x[..., 0] += odd[..., 0]
    return x[..., 0]
