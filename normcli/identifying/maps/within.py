"""Lines that pass every value within what it may be off: an exact test, where least squares only come near."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from normcli.tuples import NamedTuple

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from normcli.dtypes import Floats

_MOST_CUTS = 64
"""Slopes that are tried for a line: some ten decide nearly all of them."""


class Lines(NamedTuple):
    """Lines y = scale · x + shift, with lengths of 1 along the axes that share one."""

    scale: Floats
    shift: Floats


def fit_within(
    x: Floats, y: Floats, slack: Floats, axes: tuple[int, ...], *, through_zero: bool
) -> Lines | None:
    """Return lines with |y − a · x − b| ≤ slack for every value; None if one of them does not exist.

    Parameters
    ----------
    x, y, slack : ndarray
        Of one shape, finite.
    axes : tuple of int
        There is a line for each index of these.
    through_zero : bool
        Whether b is 0.

    Examples
    --------
    >>> x, y = np.array([1.0, 2.0, 4.0]), np.array([1.9, 4.1, 8.0])
    >>> fit_within(x, y, np.full(3, 0.1), (), through_zero=True).scale
    array([2.])
    >>> fit_within(x, y, np.full(3, 0.01), (), through_zero=False) is None
    True
    """
    others = tuple(axis for axis in range(x.ndim) if axis not in axes)
    shape = [n if axis in axes else 1 for axis, n in enumerate(x.shape)]
    columns = (
        np.moveaxis(values, others, range(len(others))).reshape(-1, int(np.prod(shape)))
        for values in (x, y, slack)
    )
    fitted = (_fit_slopes if through_zero else _fit_both)(*columns)
    return None if fitted is None else Lines(fitted[0].reshape(shape), fitted[1].reshape(shape))


def _fit_slopes(x: Floats, y: Floats, slack: Floats) -> tuple[Floats, Floats] | None:
    """Return the middle of the slopes that every value of a column allows, and shifts of 0."""
    signed, size = np.where(x < 0.0, -y, y), np.abs(x)
    with np.errstate(all="ignore"):
        low = np.where(size > 0.0, (signed - slack) / size, -np.inf).max(axis=0)
        high = np.where(size > 0.0, (signed + slack) / size, np.inf).min(axis=0)
    if np.any(low > high) or np.any((size == 0.0) & (np.abs(y) > slack)):
        return None
    slope = np.zeros(x.shape[1])
    np.add(low / 2.0, high / 2.0, out=slope, where=np.isfinite(low))
    return slope, np.zeros_like(slope)


class _Piece(NamedTuple):
    """Straight pieces, one for each column, below what has to be 0 or less: their heights at 0 and slopes."""

    height: Floats
    slope: Floats

    def choose(self, chosen: NDArray[np.bool_], other: _Piece) -> _Piece:
        """Return these where they are chosen, and others elsewhere."""
        return _Piece(*(np.where(chosen, a, b) for a, b in zip(self, other, strict=True)))


def _fit_both(x: Floats, y: Floats, slack: Floats) -> tuple[Floats, Floats] | None:
    """Return a slope and a shift that every value of a column allows.

    With a slope a, the shift lies between L(a) = max(y − slack − a · x) and U(a) = min(y + slack − a · x).
    Their difference is convex, of straight pieces, one for each pair of values: the next slope is where the
    last piece that falls meets the last that rises. Where these meet above 0, there is no line.
    """
    low, high, every = y - slack, y + slack, np.arange(x.shape[1])

    def draw(i: NDArray[np.intp], j: NDArray[np.intp]) -> _Piece:
        return _Piece(low[i, every] - high[j, every], x[j, every] - x[i, every])

    least, most = x.argmin(axis=0), x.argmax(axis=0)
    falling, rising = draw(most, least), draw(least, most)
    for _ in range(_MOST_CUTS):
        steepness = rising.slope - falling.slope
        slope = np.zeros_like(steepness)
        np.divide(falling.height - rising.height, steepness, out=slope, where=steepness > 0.0)
        lowest, highest = low - slope * x, high - slope * x
        i, j = lowest.argmax(axis=0), highest.argmin(axis=0)
        bottom, top = lowest[i, every], highest[j, every]
        piece, is_open = draw(i, j), bottom > top
        if not is_open.any():
            return slope, (bottom + top) / 2.0
        falls, rises = is_open & (piece.slope < 0.0), is_open & (piece.slope > 0.0)
        if np.any(is_open & ~falls & ~rises):
            return None
        before = falling, rising
        falling, rising = piece.choose(falls, falling), piece.choose(rises, rising)
        if all(map(np.array_equal, (*falling, *rising), (*before[0], *before[1]))):
            return None
        if np.any(falling.height * rising.slope - rising.height * falling.slope > 0.0):
            return None
    return None
