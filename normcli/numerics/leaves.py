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
from normcli.numerics.pairs import Distilled, distill, quick_two_sum, two_diff, two_prod, two_square, two_sum

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
    return Leaves(np.array(shift), s0, s1, s2, q0, q1, q2, q3, extreme, count)


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

_HIGHEST, _LOWEST = 450, -300
"""Exponents of values whose squares, and what is split off them, neither over- nor underflow."""


def measure_leaves(
    x: NDArray[Any], work: Workspace, selected: Selected | None = None, *, need_sum: bool
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

    Notes
    -----
    x is cut into parts: t = (x + sigma) − sigma is a multiple of the last bit of sigma, and x − t is exact. The
    shift, a multiple too, is subtracted from the first part, which leaves it 21 bits, and every further part
    takes the next 21. So all products of parts, and their sums, are whole numbers below 2⁵³ of some unit: exact
    in any order.
    """
    rows, n = x.shape
    low, high = (values.astype(np.float64) for values in find_extremes(x, selected))
    size = np.maximum(np.abs(low), np.abs(high))
    middle, half = (0.5 * high + 0.5 * low, 0.5 * high - 0.5 * low) if need_sum else (0.0 * size, size)
    top: Any = np.frexp(size)[1]
    first: Any = np.maximum(np.where(half > 0.0, np.frexp(half)[1], top) - (_BITS - 1), top - 51)
    sigmas = [np.ldexp(1.5, first + (52 - _BITS * part))[:, None] for part in range(_PARTS)]
    shift = (middle + sigmas[0][:, 0]) - sigmas[0][:, 0]
    extreme = ~((size < 2.0**_HIGHEST) & ((size > 2.0**_LOWEST) | (size == 0.0)))
    sums = [Dots(rows, n) for _ in range(_PARTS)] if need_sum else []
    products = {(i, j): Dots(rows, n) for i in range(_PARTS) for j in range(i, _PARTS)}
    slices = cut_rows(rows, n)
    buffers = [work.get(f"part {part}", (slices[0].stop, n)) for part in range(_PARTS + 1)]
    used = 1
    for s in slices:
        rest, *parts = (a[: s.stop - s.start] for a in (buffers[-1], *buffers[:-1]))
        count = _cut(widen_exactly(x[s], work), [sigma[s] for sigma in sigmas], parts, rest)
        if count > _PARTS:
            extreme[s] |= rest.any(axis=-1)
            count = _PARTS
        if need_sum:
            with small_buffers(n):
                np.subtract(parts[0], shift[s, None], out=parts[0])
            if selected is not None:
                np.multiply(parts[0], selected[s], out=parts[0])
        for i in range(count):
            if need_sum:
                sums[i].add(s, parts[i], _ONES[:, :n])
            for j in range(i, count):
                products[i, j].add(s, parts[i], parts[j])
        used = max(used, count)
    totals = distill([dots.total() for dots in sums[:used]] or [0.0 * size], 3).terms
    terms = [dots.total() * (1.0 if i == j else 2.0) for (i, j), dots in products.items() if j < used]
    squares = distill(terms, 4)
    leaves = _make(shift, totals, squares.terms, extreme | squares.left, count_values(x, selected))
    return _set_not_finite(leaves, x, size)


def _cut(
    x: tuple[Floats, Floats | None], sigmas: Sequence[Floats], parts: Sequence[Floats], rest: Floats
) -> int:
    """Cut x into parts, from the highest bits on, and what they leave; return how many parts there are.

    One more than there is room for, if they leave anything. What float64 leaves of integers is less than a
    quarter of the first part's last bit: the rest of that has room for it, and the second part for both.
    """
    source, low = x
    with small_buffers(source.shape[-1]):
        for number, (part, sigma) in enumerate(zip(parts, sigmas, strict=True), 1):
            np.add(source, sigma, out=part)
            np.subtract(part, sigma, out=part)
            np.subtract(source, part, out=rest)
            if low is not None and number == 1:
                np.add(rest, low, out=rest)
            if number % 2 == 0 and _is_zero(rest):
                return number
            source = rest
    return len(parts) + 1


def _is_zero(values: Floats) -> bool:
    """Whether all values are 0, none of them NaN: as `not values.any()`, in half the time."""
    return bool(np.maximum.reduce(np.abs(values), axis=None) == 0.0)


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
    raw: NDArray[Any], work: Workspace, selected: Selected | None = None, *, need_sum: bool
) -> Leaves:
    """Measure leaves of float16 or float32 values (24 bits or fewer), shape (leaves, n).

    The sum of a leaf is exact in float64, in any order, and the sum of its squares (exact themselves) in two
    parts, unless its values differ too much in magnitude. `find_inexact` finds such leaves, and they are
    measured as `measure_leaves` does; so are those whose squares cancel.
    """
    rows, n = raw.shape
    slices = cut_rows(rows, n)
    x_all, p_all, high_all = (work.get(name, (slices[0].stop, n)) for name in ("x", "squares", "high"))
    about, total, high, low = (Dots(rows, n) for _ in range(4))
    ones, bounds = _ONES[:, :n], np.empty(rows)
    for s in slices:
        x, p, t = (a[: s.stop - s.start] for a in (x_all, p_all, high_all))
        np.copyto(x, raw[s])
        about.add(s, x, x)
        if need_sum:
            total.add(s, x, ones)
        bounds[s] = np.ldexp(1.0, np.frexp(about.total(s))[1] + 1)
        sigma = 1.5 * bounds[s, None]
        with small_buffers(n):
            np.multiply(x, x, out=p)
            np.add(p, sigma, out=t)
            np.subtract(t, sigma, out=t)
            np.subtract(p, t, out=p)
        high.add(s, t, ones)
        low.add(s, p, ones)
    zero = np.zeros(rows)
    sums = total.total() if need_sum else zero
    square, rest = quick_two_sum(high.total(), low.total())
    count = count_values(raw, selected)
    leaves = Leaves(zero, sums, zero, zero, square, rest, zero, zero, np.zeros(rows, np.bool_), count)
    again = np.zeros(rows, np.bool_)
    if raw.dtype != np.float16:  # float16 has 40 bits in all: sums of 4096 are exact
        again |= find_inexact(raw, np.sqrt(n * bounds))
    if need_sum:
        again |= square - sums * (sums / np.maximum(count, 1.0)) < _CANCELS * square
    again |= ~np.isfinite(square)
    if again.any():
        part = None if selected is None else selected[again]
        leaves = leaves.map(np.copy)
        leaves.put(again, measure_leaves(raw[again].astype(np.float64), work, need_sum=need_sum, selected=part))
    return leaves


_CANCELS = 2.0**-20
"""Where Σ(x − mean)² is less than this part of Σx², it is summed again about a value of the leaf's."""


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
    groups = x.shape[1]
    sums = [np.zeros(groups) for _ in range(2 if short else 3)] if need_sum else []
    squares = [np.zeros(groups) for _ in range(2 if short else 4)]
    left = np.zeros(groups)
    high, low = widen_exactly(x, work)
    for number, row in enumerate(high):
        values: tuple[Floats, ...] = (row,)
        terms: tuple[Floats, ...] = (row * row,) if short else two_square(row)
        if low is not None:
            rest = low[number]
            values, terms = (row, rest), (*terms, *two_prod(2.0 * row, rest), rest * rest)
        for numbers, added in ((sums, values if need_sum else ()), (squares, terms)):
            for term in added:
                left += np.abs(_add(numbers, term))
    zero = np.zeros(groups)
    count = count_values(x.T, None if selected is None else selected.T)
    size = np.maximum.reduce(np.abs(high), axis=0)
    extreme = ~((size < 2.0**_HIGHEST) & ((size > 2.0**_LOWEST) | (size == 0.0)) & (left == 0.0))
    totals = distill(sums or [zero], 3).terms
    leaves = _make(zero, totals, distill(squares, 4).terms, extreme, count)
    return _set_not_finite(leaves, high.T, size)


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
    extreme = (leaves.extreme | sums.left | squares.left).any(axis=-1) | total.left | square.left
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
