"""Sums of leaves that are rows of any real dtype: exact, or with a bound of their error."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any

import numpy as np

from normcli.numerics.pairs import distill_within
from normcli.numerics.rounding import widen_exactly
from normcli.numerics.sums.leaf_records import (
    MAX_LEAF,
    Leaves,
    are_extreme,
    count_values,
    make_leaves,
    set_not_finite,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

    from normcli.dtypes import Floats, Selected
    from normcli.numerics.workspace import Workspace


ONES = np.ones((1, MAX_LEAF))

CHUNK = 1 << 16
"""The most values that one call works on: a few float64 buffers of it lie in a core's caches."""

_PART = 256


class Dots:
    """A store of dot products of rows; they are added in parts of 256 values, which must be exact.

    A row that was never added has a product of 0.

    `np.vecdot` calls BLAS, in one thread, and is the fastest way to sum in NumPy. But it holds the GIL unless
    it makes more than 500 products: so 4096 values are multiplied as sixteen rows of 256.
    """

    def __init__(self, rows: int, n: int) -> None:
        self._n, self._whole = n, n // _PART if n >= 2 * _PART else 0
        self._split = self._whole * _PART
        self._parts = np.zeros((rows, self._whole + (self._split < n)))

    def add(self, rows: slice, a: Floats, b: Floats) -> None:
        """Store the dot products of each row of a with that row of b, or with b's only row.

        `rows` are the rows of this store that they belong to.
        """
        parts, split = self._parts[rows], self._split
        if split:
            shape = (-1, self._whole, _PART)
            if split == self._n:
                np.vecdot(a.reshape(shape), b.reshape(shape), out=parts)
                return
            np.vecdot(a[:, :split].reshape(shape), b[:, :split].reshape(shape), out=parts[:, :-1])
        np.vecdot(a[:, split:], b[:, split:], out=parts[:, -1])

    def total(self) -> Floats:
        """Return the dot product of each row."""
        parts = self._parts
        if parts.shape[1] == 1:
            return parts[:, 0]
        return np.asarray(np.vecdot(parts, ONES[0, : parts.shape[1]]))


def cut_rows(rows: int, n: int, chunk: int = CHUNK) -> list[slice]:
    """Return slices of rows of n values that hold about as many values as a chunk."""
    step = max(1, chunk // n)
    return [slice(start, min(start + step, rows)) for start in range(0, rows, step)]


@contextlib.contextmanager
def small_buffers(n: int) -> Iterator[None]:
    """Keep NumPy's buffers small inside this context manager, if rows have n ≥ 256 values.

    With its usual buffers, NumPy copies operands that are broadcast along rows, which takes longer than to add
    them. All operands in the block should be of one dtype: others are converted through these buffers, a few
    values at a time.
    """
    with np.errstate():  # restores the size, too
        if n >= _LONG:
            np.setbufsize(16)
        yield


_LONG = 256
"""Shorter rows are faster with large buffers."""

_BITS = 21
"""Bits of a part: 4096 products of two parts add up under 2⁵³."""

_PARTS, _MANY_PARTS = 4, 9
"""Parts that values are cut into, at first and again.

Nine leave no more than 2⁻¹⁸⁹ of the largest value: a mean is then nearly always known."""


def measure_leaves(
    x: NDArray[Any],
    work: Workspace,
    selected: Selected | None = None,
    *,
    need_sum: bool,
) -> Leaves:
    """Return the exact sums of leaves (rows of at most `MAX_LEAF` values), for values of any real dtype.

    Parameters
    ----------
    x : ndarray, shape (leaves, n), n <= MAX_LEAF
    work : Workspace
    selected : ndarray of bool or None
        True for values that count, of the shape of x; the others have to be 0. None if all count.
    need_sum : bool
        True if the sum of values is needed; False for norms that do not centre.

    Notes
    -----
    Values are cut into parts of few bits, whose products add up without rounding: nearly always, four are
    enough. Leaves that need more are measured again with more. Sums that the record's doubles cannot hold are
    rounded.
    """
    leaves = _measure_in_parts(x, work, selected, _PARTS, need_sum=need_sum)
    again = leaves.are_rounded & ~leaves.extreme
    if again.any():
        part = None if selected is None else selected[again]
        leaves.put(again, _measure_in_parts(x[again], work, part, _MANY_PARTS, need_sum=need_sum))
    return leaves


def _measure_in_parts(
    x: NDArray[Any],
    work: Workspace,
    selected: Selected | None,
    size: int,
    *,
    need_sum: bool,
) -> Leaves:
    """Return the sums and sums of squares of leaves, from their values cut into `size` parts.

    With sigma = 1.5 · 2^e, t = (x + sigma) − sigma is x rounded to a multiple of 2^(e − 52), and x − t is
    exact. The first part t takes 21 bits, and every further part the next 21 of what is left. So all products
    of parts, and their sums, are whole numbers below 2⁵³ of some unit: exact in any order. The leaves hold a
    bound of what is left after the last part.
    """
    rows, n = x.shape
    low, high = (extreme.reduce(x, axis=-1).astype(np.float64) for extreme in (np.minimum, np.maximum))
    largest = np.maximum(np.abs(low), np.abs(high))
    first: Any = np.frexp(largest)[1] - (_BITS - 1)
    sigmas = [np.ldexp(1.5, first + (52 - _BITS * part))[:, None] for part in range(size)]
    extreme = are_extreme(largest)
    left = np.zeros(rows, np.bool_)
    sums = [Dots(rows, n) for _ in range(size if need_sum else 0)]
    products = {(i, j): Dots(rows, n) for i in range(size) for j in range(i, size)}
    slices = cut_rows(rows, n)
    buffers = [work.get(f"part {part}", (slices[0].stop, n)) for part in range(size + 1)]
    for s in slices:
        rest, *parts = (a[: s.stop - s.start] for a in (buffers[-1], *buffers[:-1]))
        used = _cut(widen_exactly(x[s], work), [sigma[s] for sigma in sigmas], parts, rest)
        if used == size:
            left[s] = rest.any(axis=-1)
        for i in range(used):
            if need_sum:
                sums[i].add(s, parts[i], ONES[:, :n])
            for j in range(i, used):
                products[i, j].add(s, parts[i], parts[j])
    total, lost = distill_within([dots.total() for dots in sums] or [np.zeros(rows)], 3)
    terms = {places: dots.total() for places, dots in products.items()}
    square, square_lost = distill_within(_join_terms(terms, n), 4)
    count = count_values(x, selected)
    leaves = make_leaves(total, square, extreme, count)
    last = first - _BITS * (size - 1)  # the exponent of the last part's last bit, of which nothing left is more
    leaves.sum_left = lost * float(need_sum) + np.where(left, np.ldexp(float(n), last), 0.0)
    leaves.square_left = square_lost + np.where(left, np.ldexp(float(n), first + last + _BITS + 2), 0.0)
    return set_not_finite(leaves, x, largest)


def _join_terms(terms: dict[tuple[int, int], Floats], n: int) -> list[Floats]:
    """Return the terms of Σx², given the sum of the products of parts i and j of all values, by (i, j).

    Terms with an equal i + j have one unit. They are added to each other if rows are so short that the sum is
    exact; n is the number of values.
    """
    whole = [total * (1.0 if i == j else 2.0) for (i, j), total in terms.items()]
    if n > _EXACT_TOGETHER:
        return whole
    joined: dict[int, Floats] = {}
    for (i, j), term in zip(terms, whole, strict=True):
        joined[i + j] = joined[i + j] + term if i + j in joined else term
    return [joined[place] for place in sorted(joined)]


_EXACT_TOGETHER = 512
"""The number of products in a sum: nine such sums are below 2⁵³ units."""

_FEW = 16
"""The first values of a chunk: if something is left of these, the others are not looked at."""


def _cut(
    x: tuple[Floats, Floats | None], sigmas: Sequence[Floats], parts: Sequence[Floats], rest: Floats
) -> int:
    """Cut x into parts, from the highest bits on, until nothing is left; return the number of parts.

    Parameters
    ----------
    x : tuple of (ndarray, ndarray or None)
        The values as doubles, and what these leave of long integers (None for 0): less than a quarter of the
        first part's last bit, so that the remainder after that part has room for it.
    sigmas : sequence of ndarray
        For each part, the numbers 1.5 · 2^e whose addition rounds values to the part.
    parts : sequence of ndarray
        The arrays that parts are written to.
    rest : ndarray
        The array that the remainder is written to.
    """
    source, low = x
    with small_buffers(source.shape[-1]):
        for number, (part, sigma) in enumerate(zip(parts, sigmas, strict=True), 1):
            np.add(source, sigma, out=part)
            np.subtract(part, sigma, out=part)
            np.subtract(source, part, out=rest)
            if low is not None and number == 1:
                np.add(rest, low, out=rest)
            if number > 1 and not rest[0, :_FEW].any() and not rest.any():
                return number
            source = rest
    return len(parts)
