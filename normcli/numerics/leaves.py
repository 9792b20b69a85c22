"""Sums of leaves: the short rows that groups are cut into, summed exactly.

How a group is cut into leaves follows from its shape alone; but as every sum is exact, nothing depends on that,
nor on how the work is cut into blocks, on the number of threads, or on the order of memory.
"""

from __future__ import annotations

import contextlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from normcli.numerics.integers import find_limits, widen_exactly
from normcli.numerics.pairs import (
    Distilled,
    distill,
    distill_within,
    quick_two_sum,
    two_diff,
    two_prod,
    two_square,
    two_sum,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from typing import Self

    from numpy.typing import NDArray

    from normcli.dtypes import Floats, Selected
    from normcli.numerics.workspace import Workspace


MAX_LEAF = 4096
"""Below 10000, where OpenBLAS' ddot starts threads; at most 2¹², for the exactness of `measure_leaves`."""


class Records:
    """What is measured of leaves, or of groups: a dataclass of arrays of one shape, one number for each leaf.

    Every kind has `count`, of how many values a record is, and `extreme`, whether their magnitudes differ so
    much, or are such, that the record does not hold what it should.
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
    """The exact sums of leaves, each a sum of doubles.

    Parameters
    ----------
    shift : ndarray
        0, or a double among the leaf's values.
    sum_0, sum_1, sum_2 : ndarray
        Σ(x − shift).
    square_0, square_1, square_2, square_3 : ndarray
        Σ(x − shift)².
        The first are NaN or infinite if a value is.
    sum_left, square_left : ndarray
        Upper bounds of what these doubles leave of the sums: 0, but where bounds are asked for.
    extreme : ndarray of bool
        Whether the values differ so much in magnitude that so few doubles cannot hold the sums, or their
        squares may over- or underflow: then they have to be summed in another way.
    count : ndarray
        How many values are selected.
    """

    shift: Floats
    sum_0: Floats
    sum_1: Floats
    sum_2: Floats
    square_0: Floats
    square_1: Floats
    square_2: Floats
    square_3: Floats
    sum_left: Floats
    square_left: Floats
    extreme: Selected
    count: Floats

    @property
    def sums(self) -> tuple[Floats, ...]:
        """The doubles of Σ(x − shift)."""
        return self.sum_0, self.sum_1, self.sum_2

    @property
    def squares(self) -> tuple[Floats, ...]:
        """The doubles of Σ(x − shift)²."""
        return self.square_0, self.square_1, self.square_2, self.square_3


def _make(
    shift: Floats, sums: Sequence[Floats], squares: Sequence[Floats], extreme: Selected, count: Floats
) -> Leaves:
    """Make records of what sums there are, and none of the same array twice."""
    s0, s1, s2 = (np.array(a) for a in sums)
    q0, q1, q2, q3 = (np.array(a) for a in squares)
    left, square_left = np.zeros(s0.shape), np.zeros(s0.shape)
    return Leaves(np.array(shift), s0, s1, s2, q0, q1, q2, q3, left, square_left, extreme, count)


_ONES = np.ones((1, MAX_LEAF))

CHUNK = 1 << 16
"""Values that one call works on: a few float64 buffers of it lie in a core's caches."""

_PART = 256

_MAGNITUDE = np.uint32(0x7FFF_FFFF)
"""The bits of a float32 but for its sign."""


class Dots:
    """Dot products of rows of one length, in parts of 256; every product and sum that counts has to be exact.

    Rows that nothing is calculated of have 0.

    `np.vecdot` calls BLAS, in one thread, and is the fastest way to sum in NumPy. But it holds the GIL unless
    it makes more than 500 products: so 4096 values are multiplied as sixteen rows of 256.
    """

    def __init__(self, rows: int, n: int) -> None:
        self._n, self._whole = n, n // _PART if n >= 2 * _PART else 0
        self._split = self._whole * _PART
        self._parts = np.zeros((rows, self._whole + (self._split < n)))

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

    def total(self, rows: slice = slice(None)) -> Floats:
        """Return the dot product of each row, or of some."""
        parts = self._parts[rows]
        if parts.shape[1] == 1:
            return parts[:, 0]
        return np.asarray(np.vecdot(parts, _ONES[0, : parts.shape[1]]))


def cut_rows(rows: int, n: int, chunk: int = CHUNK) -> list[slice]:
    """Return slices of rows of n values that hold about as many values as a chunk."""
    step = max(1, chunk // n)
    return [slice(start, min(start + step, rows)) for start in range(0, rows, step)]


def count_values(rows: NDArray[Any], selected: Selected | None) -> Floats:
    """Return how many values of each row count."""
    if selected is None:
        return np.full(rows.shape[:-1], float(rows.shape[-1]))
    return np.asarray(np.add.reduce(selected, axis=-1, dtype=np.float64))


def find_extremes(rows: NDArray[Any], selected: Selected | None) -> tuple[NDArray[Any], NDArray[Any]]:
    """Return the least and the largest value of each row; 0 and 0 where none is selected."""
    if selected is None:
        return np.minimum.reduce(rows, axis=-1), np.maximum.reduce(rows, axis=-1)
    least, largest = find_limits(rows.dtype)
    low = np.minimum.reduce(rows, axis=-1, where=selected, initial=largest)
    high = np.maximum.reduce(rows, axis=-1, where=selected, initial=least)
    nothing = low > high
    low[nothing] = high[nothing] = 0
    return low, high


@contextlib.contextmanager
def small_buffers(n: int) -> Iterator[None]:
    """Let NumPy work on rows of n values without copying what is broadcast along them, which takes longer.

    All operands within the block have to be of one dtype: others are converted a few values at a time.
    """
    with np.errstate():  # restores the size, too
        if n >= _LONG:
            np.setbufsize(16)
        yield


_LONG = 256
"""Shorter rows are faster with large buffers."""

_BITS = 21
"""Bits of a part: 4096 products of two parts add up under 2⁵³."""

_PARTS = 6
"""Few values need more than four. Squares of six no longer fit into four doubles, but what is left tells so."""

_MANY_PARTS = 9
"""What these leave of a value is 2⁻¹⁸⁹ of the largest: a mean is then nearly always known."""

_HIGHEST, _LOWEST = 450, -300
"""Exponents of values whose squares, and what is split off them, neither over- nor underflow."""


def measure_leaves(
    x: NDArray[Any],
    work: Workspace,
    selected: Selected | None = None,
    *,
    need_sum: bool,
    bounded: bool = False,
) -> Leaves:
    """Measure leaves of float64 values, or of integers of 64 bits.

    Parameters
    ----------
    x : ndarray, shape (leaves, n), n <= MAX_LEAF
    work : Workspace
    selected : ndarray of bool or None
        Which values count, of the shape of x; the others have to be 0. None if all count.
    need_sum : bool
        False for norms that do not centre: the shift is then 0.
    bounded : bool
        Whether sums that the doubles cannot hold are rounded, and not extreme.

    Notes
    -----
    Nearly all values fit into three parts, and a fourth of a few of them. Leaves that have more are cut again.
    """
    leaves = _measure_in_parts(x, work, selected, 3, need_sum=need_sum)
    again = leaves.extreme.copy()
    if again.any():
        part = None if selected is None else selected[again]
        size = _MANY_PARTS if bounded else _PARTS
        wide = _measure_in_parts(x[again], work, part, size, need_sum=need_sum, bounded=bounded)
        leaves.put(again, wide)
    return leaves


def _measure_in_parts(
    x: NDArray[Any],
    work: Workspace,
    selected: Selected | None,
    size: int,
    *,
    need_sum: bool,
    bounded: bool = False,
) -> Leaves:
    """Measure leaves whose values are cut into so many parts, and few into one more; others are extreme.

    t = (x + sigma) − sigma is a multiple of the last bit of sigma, and x − t is exact. The shift, a multiple
    too, is subtracted from the first part, which leaves it 21 bits, and every further part takes the next 21.
    So all products of parts, and their sums, are whole numbers below 2⁵³ of some unit: exact in any order.
    """
    rows, n = x.shape
    low, high = (values.astype(np.float64) for values in find_extremes(x, selected))
    largest = np.maximum(np.abs(low), np.abs(high))
    middle, half = (0.5 * high + 0.5 * low, 0.5 * high - 0.5 * low) if need_sum else (0.0 * largest, largest)
    top: Any = np.frexp(largest)[1]
    first: Any = np.maximum(np.where(half > 0.0, np.frexp(half)[1], top) - (_BITS - 1), top - 51)
    sigmas = [np.ldexp(1.5, first + (52 - _BITS * part))[:, None] for part in range(size + 1)]
    shift = (middle + sigmas[0][:, 0]) - sigmas[0][:, 0]
    extreme = ~((largest < 2.0**_HIGHEST) & ((largest > 2.0**_LOWEST) | (largest == 0.0)))
    left = np.zeros(rows, np.bool_)
    sums = [Dots(rows, n) for _ in range(size if need_sum else 0)]
    products = {(i, j): Dots(rows, n) for i in range(size) for j in range(i, size)}
    few = np.zeros((size + 2, rows))
    slices = cut_rows(rows, n)
    buffers = [work.get(f"part {part}", (slices[0].stop, n)) for part in range(size + 1)]
    for s in slices:
        rest, *parts = (a[: s.stop - s.start] for a in (buffers[-1], *buffers[:-1]))
        used = _cut(widen_exactly(x[s], work), [sigma[s] for sigma in sigmas[:size]], parts, rest)
        if need_sum:
            with small_buffers(n):
                np.subtract(parts[0], shift[s, None], out=parts[0])
            if selected is not None:
                np.multiply(parts[0], selected[s], out=parts[0])
        if used == size:
            left[s] |= _add_few(rest, parts, sigmas[size][s, 0], few[:, s])
        for i in range(used):
            if need_sum:
                sums[i].add(s, parts[i], _ONES[:, :n])
            for j in range(i, used):
                products[i, j].add(s, parts[i], parts[j])
    total, lost = distill_within([*(dots.total() for dots in sums), few[-1] * float(need_sum)], 3)
    terms = {places: dots.total() for places, dots in products.items()}
    terms.update({(i, size): few[i] for i in range(size + 1)})
    square, square_lost = distill_within(_join_terms(terms, n), 4)
    count = count_values(x, selected)
    if not bounded:
        leaves = _make(shift, total, square, extreme | left | (square_lost != 0.0), count)
        return _set_not_finite(leaves, x, largest)
    leaves = _make(shift, total, square, extreme, count)
    last = first - _BITS * (size - 1)  # the exponent of the last part's last bit, of which nothing left is more
    leaves.sum_left = lost * float(need_sum) + np.where(left, np.ldexp(float(n), last), 0.0)
    leaves.square_left = square_lost + np.where(left, np.ldexp(float(n), first + last + _BITS + 2), 0.0)
    return _set_not_finite(leaves, x, largest)


def _add_few(rest: Floats, parts: Sequence[Floats], sigma: Floats, few: Floats) -> Selected:
    """Cut one part more of the few values that need it.

    Its products with the parts, with itself and with 1 are added up in `few`. Returned are the rows of which
    anything is left.
    """
    places = np.flatnonzero(rest != 0.0)  # of bool, which takes a tenth of the time
    if len(places) > rest.size // _FEW:
        return np.asarray(rest.any(axis=-1))
    row, values = places // rest.shape[1], rest.reshape(-1)[places]
    last = (values + sigma[row]) - sigma[row]
    left = np.zeros(len(rest), np.bool_)
    left[row[last != values]] = True
    others = [part.reshape(-1)[places] for part in parts]
    for number, other in enumerate((*others, last, np.ones_like(last))):
        few[number] = np.bincount(row, other * last, len(rest))
    return left


_FEW = 16
"""If more than one of so many values need another part, all of them are cut."""


def _join_terms(terms: dict[tuple[int, int], Floats], n: int) -> list[Floats]:
    """Return the terms of a square, from products of parts; those of one unit are added where that is exact."""
    whole = [total * (1.0 if i == j else 2.0) for (i, j), total in terms.items()]
    if n > _EXACT_TOGETHER:
        return whole
    joined: dict[int, Floats] = {}
    for (i, j), term in zip(terms, whole, strict=True):
        joined[i + j] = joined[i + j] + term if i + j in joined else term
    return [joined[place] for place in sorted(joined)]


_EXACT_TOGETHER = 512
"""Eleven sums of so many products are below 2⁵³ units."""


def _cut(
    x: tuple[Floats, Floats | None], sigmas: Sequence[Floats], parts: Sequence[Floats], rest: Floats
) -> int:
    """Cut x into parts, from the highest bits on, and what they leave; return after how many it was looked for.

    What float64 leaves of integers is less than a quarter of the first part's last bit: the rest of that has
    room for it, and the second part for both.
    """
    source, low = x
    with small_buffers(source.shape[-1]):
        for number, (part, sigma) in enumerate(zip(parts, sigmas, strict=True), 1):
            np.add(source, sigma, out=part)
            np.subtract(part, sigma, out=part)
            np.subtract(source, part, out=rest)
            if low is not None and number == 1:
                np.add(rest, low, out=rest)
            if number % 2 == 0 and not rest[0, :_FEW].any() and not rest.any():
                return number
            source = rest
    return len(parts)


def _set_not_finite(leaves: Leaves, x: NDArray[Any], size: Floats) -> Leaves:
    """Record NaN and infinities as plain sums would, and nothing of other leaves that are extreme.

    Parameters
    ----------
    leaves : Leaves
    x : ndarray, shape (leaves, n)
    size : ndarray
        The largest magnitude of each leaf.
    """
    lost = ~np.isfinite(size)
    leaves = _replace(leaves, leaves.extreme & ~lost, extreme=True)
    if not lost.any():
        return leaves
    leaves = _replace(leaves, lost, extreme=False)
    leaves.sum_0[lost] = np.add.reduce(np.where(np.isfinite(x[lost]), 0.0, x[lost]), axis=-1)
    leaves.square_0[lost] = np.abs(size[lost])
    return leaves


def _replace(leaves: Leaves, chosen: Selected, *, extreme: bool) -> Leaves:
    """Return leaves with zeros for some, but for their count, that are said to be extreme or not."""
    if not chosen.any():
        return leaves
    result = leaves.map(lambda a: np.where(chosen, a.dtype.type(0), a))
    result.extreme[chosen], result.count = extreme, leaves.count
    return result


def measure_short_leaves(
    raw: NDArray[Any],
    work: Workspace,
    selected: Selected | None = None,
    *,
    need_sum: bool,
    bounded: bool = False,
) -> Leaves:
    """Measure leaves of float16 or float32 values (24 bits or fewer), shape (leaves, n).

    The sum of a leaf is exact in float64, in any order, and the sum of its squares (exact themselves) in two
    parts, unless its values differ too much in magnitude. `find_inexact` finds such leaves, which take one part
    more. Those of which even that is not enough, and those whose squares cancel, are measured as
    `measure_leaves` does.
    """
    rows, n = raw.shape
    slices = cut_rows(rows, n, CHUNK // 2)
    x_all, p_all, high_all = (work.get(name, (slices[0].stop, n)) for name in ("x", "squares", "high"))
    about, total, high, low = (Dots(rows, n) for _ in range(4))
    ones, bounds = _ONES[:, :n], np.empty(rows)
    for s in slices:
        x, p, t = (a[: s.stop - s.start] for a in (x_all, p_all, high_all))
        np.copyto(x, raw[s])
        about.add(s, x, x)
        if need_sum:
            total.add(s, x, ones)
        np.multiply(x, x, out=p)
        bounds[s] = _cut_squares(p, t, about.total(s))
        high.add(s, t, ones)
        low.add(s, p, ones)
    zero = np.zeros(rows)
    sums = total.total() if need_sum else zero
    square, rest = quick_two_sum(high.total(), low.total())
    count = count_values(raw, selected)
    leaves = Leaves(
        zero, sums, zero, zero, square, rest, zero, zero, zero, zero, np.zeros(rows, np.bool_), count
    )
    again = ~np.isfinite(square)
    if need_sum:
        again |= square - sums * (sums / np.maximum(count, 1.0)) < _CANCELS * square
    if raw.dtype != np.float16:  # float16 has 40 bits in all: sums of 4096 are exact
        inexact = find_inexact(raw, np.sqrt(n * bounds)) & ~again
        if inexact.any():
            leaves = leaves.map(np.copy)
            again[inexact] = _add_parts(raw[inexact], leaves, inexact, need_sum=need_sum)
    if again.any():
        part = None if selected is None else selected[again]
        leaves = leaves.map(np.copy)
        wide = raw[again].astype(np.float64)
        leaves.put(again, measure_leaves(wide, work, part, need_sum=need_sum, bounded=bounded))
    return leaves


def _cut_squares(p: Floats, t: Floats, sums: Floats) -> float:
    """Cut squares into their first bits, in t, and the others, in place; return the bound that tells where.

    One for all of them, twice the largest of their sums: what broadcasts along rows takes longer.
    """
    bound = float(np.ldexp(1.0, np.frexp(np.max(sums, where=np.isfinite(sums), initial=0.0))[1] + 1))
    np.add(p, 1.5 * bound, out=t)
    np.subtract(t, 1.5 * bound, out=t)
    np.subtract(p, t, out=p)
    return bound


def _add_parts(raw: NDArray[np.float32], leaves: Leaves, place: Selected, *, need_sum: bool) -> Selected:
    """Put leaves in their place that have one part more; return which of them are inexact even so."""
    x = raw.astype(np.float64)
    bound = np.ldexp(1.0, np.frexp(leaves.square_0[place])[1] + 1)
    parts = _sum_parts(x * x, bound, 3)
    for mine, part in zip((leaves.square_0, leaves.square_1, leaves.square_2), parts, strict=True):
        mine[place] = part
    if need_sum:
        parts = _sum_parts(x, np.ldexp(1.0, (np.frexp(x.shape[1] * bound)[1] + 1) >> 1), 2)
        for mine, part in zip((leaves.sum_0, leaves.sum_1), parts, strict=True):
            mine[place] = part
    return find_inexact(raw, np.sqrt(bound) * 2.0**-15)


def _sum_parts(values: Floats, bound: Floats, count: int) -> tuple[Floats, ...]:
    """Return the sum of rows as so many doubles, given a bound of twice each value and of the partial sums.

    What a part leaves of a value is 2⁻⁵³ of the bound at most, and all of a row that is left 2⁻⁴¹.
    """
    ones, sums = _ONES[0, : values.shape[1]], []
    for part in range(count - 1):
        sigma = 1.5 * bound[:, None] * 2.0 ** (-41 * part)
        cut = (values + sigma) - sigma
        values = values - cut
        sums.append(np.vecdot(cut, ones))
    return distill([*sums, np.vecdot(values, ones)], count).terms


_CANCELS = 2.0**-20
"""Where Σ(x − mean)² is less than this part of Σx², it is summed again about a value of the leaf's."""


def find_inexact(raw: NDArray[np.float32], bound: Floats) -> Selected:
    """Return which rows may have an inexact sum in float64, given a bound of their partial sums.

    Every value is a multiple of the ulp of the smallest |x| that is not 0, which is more than |x| · 2⁻²⁴. So is
    every sum of them, which is exact up to 2⁵³ of it. One bit less is used, as the bound itself is rounded.
    """
    inexact = np.asarray(~(_least_of_rows(raw) * 2.0**28 >= bound))
    if inexact.any():
        inexact[inexact] = _find_small(raw[inexact], bound[inexact], -1)
    return inexact


def _find_small(raw: NDArray[np.float32], bound: Any, axis: int) -> Selected:
    """As `find_inexact`, along either axis."""
    size = np.abs(raw).view(np.uint32)
    size -= np.uint32(1)  # 0, which is a multiple of every ulp, wraps round to the largest
    least = np.minimum.reduce(size, axis=axis) + np.uint32(1)
    return np.asarray((least > 0) & ~(least.view(np.float32) * 2.0**28 >= bound))


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


FEW = 16
"""Groups of fewer values than this are laid out as columns, so that every operation runs along the groups."""


def measure_columns(
    x: NDArray[Any], work: Workspace, selected: Selected | None = None, *, short: bool, need_sum: bool
) -> Leaves:
    """Measure groups of a few values that are the columns of x: as leaves, of shape (groups,).

    Parameters
    ----------
    x : ndarray, shape (values, groups)
        Of any dtype.
    work : Workspace
    selected : ndarray of bool or None
        Which values count, of the shape of x; the others have to be 0. None if all count.
    short : bool
        Whether the values have 24 bits or fewer, so that their squares are doubles.
    need_sum : bool
        False for norms that do not centre.
    """
    if short:
        leaves = _measure_short_columns(x, work, selected, need_sum=need_sum)
        again = leaves.extreme.copy()
        if again.any():
            part = None if selected is None else selected[:, again]
            leaves.put(again, _measure_columns(x[:, again], work, part, need_sum=need_sum))
        return leaves
    return _measure_columns(x, work, selected, need_sum=need_sum)


def _measure_short_columns(
    raw: NDArray[Any], work: Workspace, selected: Selected | None, *, need_sum: bool
) -> Leaves:
    """Measure columns as `measure_short_leaves` does rows; those that have to be measured again are extreme."""
    n, groups = raw.shape
    x, p, t = (work.get(name, raw.shape) for name in ("x", "squares", "high"))
    np.copyto(x, raw)
    np.multiply(x, x, out=p)
    bound = _cut_squares(p, t, np.add.reduce(p, axis=0))
    square, rest = quick_two_sum(np.add.reduce(t, axis=0), np.add.reduce(p, axis=0))
    leaves = Leaves.empty((groups,))
    leaves.square_0, leaves.square_1, leaves.count = (
        square,
        rest,
        count_values(raw.T, None if selected is None else selected.T),
    )
    if need_sum:
        leaves.sum_0 = np.add.reduce(x, axis=0)
    leaves.extreme = ~np.isfinite(square)
    if raw.dtype != np.float16:
        leaves.extreme |= _find_small(raw, np.sqrt(n * bound), 0)
    return leaves


def _measure_columns(
    x: NDArray[Any], work: Workspace, selected: Selected | None, size: int = 4, *, need_sum: bool
) -> Leaves:
    """Measure columns of any values, added up in so many doubles; with more, what they leave is bounded."""
    groups = x.shape[1]
    sums = [np.zeros(groups) for _ in range(size if need_sum else 0)]
    squares = [np.zeros(groups) for _ in range(size)]
    left, square_left = np.zeros(groups), np.zeros(groups)
    high, low = widen_exactly(x, work)
    for number, row in enumerate(high):
        values: tuple[Floats, ...] = (row,)
        terms: tuple[Floats, ...] = two_square(row)
        if low is not None:
            rest = low[number]
            values, terms = (row, rest), (*terms, *two_prod(2.0 * row, rest), rest * rest)
        for term in values if need_sum else ():
            left += np.abs(_add(sums, term))
        for term in terms:
            square_left += np.abs(_add(squares, term))
    zero = np.zeros(groups)
    count = count_values(x.T, None if selected is None else selected.T)
    largest = np.maximum.reduce(np.abs(high), axis=0)
    extreme = ~((largest < 2.0**_HIGHEST) & ((largest > 2.0**_LOWEST) | (largest == 0.0)))
    total, lost = distill_within(sums or [zero], 3)
    square, square_lost = distill_within(squares, 4)
    leaves = _make(zero, total, square, extreme, count)
    leaves.sum_left, leaves.square_left = 2.0 * left + lost, 2.0 * square_left + square_lost
    wide = (leaves.sum_left + leaves.square_left > 0.0) & ~extreme
    leaves = _set_not_finite(leaves, high.T, largest)
    if size < _MANY_DOUBLES and wide.any():
        part = None if selected is None else selected[:, wide]
        leaves.put(wide, _measure_columns(x[:, wide], work, part, _MANY_DOUBLES, need_sum=need_sum))
    return leaves


_MANY_DOUBLES = 6


def _add(numbers: list[Floats], term: Floats) -> Floats:
    """Add a term to numbers that are sums of doubles, in place; return what they have no room for."""
    for i, part in enumerate(numbers):
        numbers[i], term = two_sum(part, term)
    return term


def fold_leaves(leaves: Leaves) -> Leaves:
    """Make one record of all leaves along the last axis: their exact sums, as if they were one leaf."""
    if leaves.count.shape[-1] == 1:
        return leaves.map(lambda a: a[..., 0])
    shift = leaves.shift[..., :1]
    sums, squares = _move(leaves, shift)
    total, square = _add_up(sums.terms), _add_up(squares.terms)
    wide = leaves.extreme | (leaves.sum_left + leaves.square_left > 0.0)
    extreme = (wide | sums.left | squares.left).any(axis=-1) | total.left | square.left
    count = np.add.reduce(leaves.count, axis=-1)
    folded = _make(shift[..., 0], total.terms, square.terms, extreme, count)
    plain, plain_square = (np.add.reduce(a, axis=-1) for a in (leaves.sum_0, leaves.square_0))
    lost = ~np.isfinite(plain_square)
    folded = _replace(folded, lost, extreme=False)
    folded.sum_0[lost], folded.square_0[lost] = plain[lost], plain_square[lost]
    return folded


def _move(leaves: Leaves, shift: Floats) -> tuple[Distilled, Distilled]:
    """Return the sums of leaves about another shift, and the sums of squares."""
    none = np.zeros(leaves.count.shape, np.bool_)
    step = two_diff(leaves.shift, shift)
    if not step.hi.any():
        return Distilled(leaves.sums, none), Distilled(leaves.squares, none)
    n = leaves.count
    sums = [*leaves.sums, *two_prod(n, step.hi), *two_prod(n, step.lo)]
    squares = [*leaves.squares]
    for total in leaves.sums:
        squares += [*two_prod(2.0 * step.hi, total), *two_prod(2.0 * step.lo, total)]
    for square in (*two_square(step.hi), *two_prod(2.0 * step.hi, step.lo), *two_square(step.lo)):
        squares += two_prod(n, square)
    return distill(sums, len(leaves.sums)), distill(squares, len(leaves.squares))


def _add_up(numbers: Sequence[Floats]) -> Distilled:
    """Add numbers, each a sum of doubles, along the last axis."""
    size, left = len(numbers), np.zeros(numbers[0].shape[:-1], np.bool_)
    while (n := numbers[0].shape[-1]) > 1:
        half = n // 2
        total = distill([part for a in numbers for part in (a[..., :half], a[..., half : 2 * half])], size)
        left |= total.left.any(axis=-1)
        last = [a[..., 2 * half :] for a in numbers]
        numbers = [np.concatenate(both, axis=-1) for both in zip(total.terms, last, strict=True)]
    return Distilled(tuple(a[..., 0] for a in numbers), left)
