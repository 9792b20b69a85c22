"""Records: what is measured of leaves, the short rows that groups are cut into, and how records become one.

As every sum is exact, nothing depends on how groups are cut.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

import numpy as np

from normcli.numerics.pairs import Distilled, distill

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from typing import Self

    from numpy.typing import NDArray

    from normcli.dtypes import Floats, Selected

    Read = Callable[[int], Iterable[NDArray[Any]]]
    """Takes the index of a group, and yields its values that count, piece by piece."""


class LeafRecords:
    """The measurements of leaves or groups: a dataclass of arrays of one shape, one number for each leaf.

    Every kind has `count`, the number of values of a record, and `extreme`, which is True where magnitudes are
    so large, so small or so far apart that the record does not hold what it should.
    """

    __match_args__: ClassVar[tuple[str, ...]] = ()
    extreme: Selected
    count: Floats

    @classmethod
    def empty(cls, shape: tuple[int, ...]) -> Self:
        """Return records of zeros."""
        names = cls.__match_args__
        return cls(*(np.zeros(shape, np.bool_ if name == "extreme" else np.float64) for name in names))

    def arrays(self) -> tuple[NDArray[Any], ...]:
        """Return the arrays, in the order of the fields."""
        return tuple(getattr(self, name) for name in self.__match_args__)

    def map(self, function: Callable[[NDArray[Any]], NDArray[Any]]) -> Self:
        """Return the records with a function (an index, a reshape) applied to each array."""
        return type(self)(*(function(a) for a in self.arrays()))

    def reshape(self, shape: tuple[int, ...]) -> Self:
        """Return the records in another shape."""
        return self.map(lambda a: a.reshape(shape))

    def put(self, index: Any, other: Self) -> None:
        """Write records to an index of these."""
        for mine, new in zip(self.arrays(), other.arrays(), strict=True):
            mine[index] = new


@dataclass(eq=False, repr=False)
class Leaves(LeafRecords):
    """Σx and Σx² of leaves (the pieces that groups are cut into), each held as a sum of a few doubles.

    Parameters
    ----------
    sum_0, sum_1, sum_2 : ndarray
        The doubles whose sum is Σx.
    square_0, square_1, square_2, square_3 : ndarray
        The doubles whose sum is Σx². If a value is NaN or infinite, so are sum_0 and square_0.
    sum_left, square_left : ndarray
        Upper bounds of how far the sums of these doubles are from Σx and Σx²; 0 where they are exact.
    extreme : ndarray of bool
        True where the values differ so much in magnitude that these doubles cannot hold the sums, or their
        squares may over- or underflow: then they have to be summed in another way.
    count : ndarray
        The number of values that count.
    """

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
    def are_rounded(self) -> Selected:
        """Whether the doubles may be off from the sums."""
        return np.asarray(self.sum_left + self.square_left > 0.0)

    def require_exact(self) -> Leaves:
        """Return the leaves; those that are extreme or rounded have sums of 0, and are extreme."""
        return _replace(self, self.extreme | self.are_rounded, extreme=True)

    @property
    def sums(self) -> tuple[Floats, ...]:
        """The doubles of Σx."""
        return self.sum_0, self.sum_1, self.sum_2

    @property
    def squares(self) -> tuple[Floats, ...]:
        """The doubles of Σx²."""
        return self.square_0, self.square_1, self.square_2, self.square_3


def make_leaves(sums: Sequence[Floats], squares: Sequence[Floats], extreme: Selected, count: Floats) -> Leaves:
    """Return records of exact sums and sums of squares, which are copied; `…_left` is 0."""
    s0, s1, s2 = (np.array(a) for a in sums)
    q0, q1, q2, q3 = (np.array(a) for a in squares)
    left, square_left = np.zeros(s0.shape), np.zeros(s0.shape)
    return Leaves(s0, s1, s2, q0, q1, q2, q3, left, square_left, extreme, count)


def count_values(rows: NDArray[Any], selected: Selected | None) -> Floats:
    """Return the number of values that count in each row."""
    if selected is None:
        return np.full(rows.shape[:-1], float(rows.shape[-1]))
    return np.asarray(np.add.reduce(selected, axis=-1, dtype=np.float64))


_HIGHEST, _LOWEST = 450, -300
"""Exponents of values whose squares, and what is split off them, neither over- nor underflow."""


def are_extreme(sizes: Floats) -> Selected:
    """Return, from the largest magnitude of each leaf, whether its squares may over- or underflow."""
    return np.asarray(~((sizes < 2.0**_HIGHEST) & ((sizes > 2.0**_LOWEST) | (sizes == 0.0))))


def set_not_finite(leaves: Leaves, x: NDArray[Any], size: Floats) -> Leaves:
    """Return leaves with NaN or infinite sums if they hold such values, and sums of 0 if they are extreme.

    A leaf with an infinity or NaN is not `extreme` in the result.

    Parameters
    ----------
    leaves : Leaves
    x : ndarray, shape (leaves, n)
        The values.
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
    """Return leaves that, where `chosen` is True, have 0 for all numbers but the count, and this `extreme`."""
    if not chosen.any():
        return leaves
    result = leaves.map(lambda a: np.where(chosen, a.dtype.type(0), a))
    result.extreme[chosen], result.count = extreme, leaves.count
    return result


def fold_leaves(leaves: Leaves) -> Leaves:
    """Make one record of all leaves along the last axis: their exact sums, as if they were one leaf.

    It is extreme where one of them is extreme or rounded, or the doubles cannot hold the sums.
    """
    if leaves.count.shape[-1] == 1:
        return leaves.map(lambda a: a[..., 0])
    total, square = _add_up(leaves.sums), _add_up(leaves.squares)
    extreme = (leaves.extreme | leaves.are_rounded).any(axis=-1) | total.left | square.left
    count = np.add.reduce(leaves.count, axis=-1)
    folded = make_leaves(total.terms, square.terms, extreme, count)
    plain, plain_square = (np.add.reduce(a, axis=-1) for a in (leaves.sum_0, leaves.square_0))
    lost = ~np.isfinite(plain_square)
    folded = _replace(folded, lost, extreme=False)
    folded.sum_0[lost], folded.square_0[lost] = plain[lost], plain_square[lost]
    return folded


def _add_up(numbers: Sequence[Floats]) -> Distilled:
    """Add exact numbers along the last axis; each number is a sum of doubles, and so is the result.

    Parameters
    ----------
    numbers : sequence of ndarray
        The first doubles of all numbers, then their second doubles, and so on.

    Returns
    -------
    Distilled
        As many doubles for each sum, and an array that is True where they do not hold all of it.
    """
    size, left = len(numbers), np.zeros(numbers[0].shape[:-1], np.bool_)
    while (n := numbers[0].shape[-1]) > 1:
        half = n // 2
        total = distill([part for a in numbers for part in (a[..., :half], a[..., half : 2 * half])], size)
        left |= total.left.any(axis=-1)
        last = [a[..., 2 * half :] for a in numbers]
        numbers = [np.concatenate(both, axis=-1) for both in zip(total.terms, last, strict=True)]
    return Distilled(tuple(a[..., 0] for a in numbers), left)


Records = TypeVar("Records", bound=LeafRecords)


def join(parts: Sequence[Records]) -> Records:
    """Join records along the last axis."""
    columns = zip(*(part.arrays() for part in parts), strict=True)
    return type(parts[0])(*(np.concatenate(arrays, axis=-1) for arrays in columns))


MAX_LEAF = 4096
"""The most values of a leaf: below 10000, where OpenBLAS' ddot starts threads; and at most 2¹², for the
exactness of `measure_leaves`."""


def cut_leaves(rows: NDArray[Any]) -> Iterator[NDArray[Any]]:
    """Cut rows into leaves, of shape (rows, leaves, values): the full ones, and the shorter last ones."""
    full = rows.shape[1] - rows.shape[1] % MAX_LEAF
    if full:
        yield rows[:, :full].reshape(len(rows), -1, MAX_LEAF)
    if full < rows.shape[1]:
        yield rows[:, None, full:]
