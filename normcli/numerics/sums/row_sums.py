"""Sums of leaves that are rows: exact, or with a bound of what they leave."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any

import numpy as np

from normcli.numerics.integers import find_limits, widen_exactly
from normcli.numerics.pairs import distill, distill_within, quick_two_sum
from normcli.numerics.sums.leaf_records import Leaves, are_extreme, count_values, make_leaves, set_not_finite

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

    from normcli.dtypes import Floats, Selected
    from normcli.numerics.workspace import Workspace


MAX_LEAF = 4096
"""Below 10000, where OpenBLAS' ddot starts threads; at most 2¹², for the exactness of `measure_leaves`."""


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
    extreme = are_extreme(largest)
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
        leaves = make_leaves(shift, total, square, extreme | left | (square_lost != 0.0), count)
        return set_not_finite(leaves, x, largest)
    leaves = make_leaves(shift, total, square, extreme, count)
    last = first - _BITS * (size - 1)  # the exponent of the last part's last bit, of which nothing left is more
    leaves.sum_left = lost * float(need_sum) + np.where(left, np.ldexp(float(n), last), 0.0)
    leaves.square_left = square_lost + np.where(left, np.ldexp(float(n), first + last + _BITS + 2), 0.0)
    return set_not_finite(leaves, x, largest)


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
        bounds[s] = cut_squares(p, t, about.total(s))
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


def cut_squares(p: Floats, t: Floats, sums: Floats) -> float:
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
        inexact[inexact] = find_small(raw[inexact], bound[inexact], -1)
    return inexact


def find_small(raw: NDArray[np.float32], bound: Any, axis: int) -> Selected:
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
