"""Lines through values: their fit, and which values they explain.

Least squares come near. Whether some line passes all values within their bounds is tested exactly.
"""

from __future__ import annotations

import math
import warnings
from typing import TYPE_CHECKING, Any

import numpy as np

from normcli.identifying.models.error_bounds import bound_each
from normcli.tuples import NamedTuple

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from normcli.dtypes import Floats, Selected
    from normcli.identifying.models.error_bounds import Level

    Axes = tuple[int, ...]


_SIMPLE = 2
"""A pair of numbers with no more digits than this is simpler than any norm: 0.5 · x, 2 · x − 1."""


_LEAST = 2.0**-60
"""The least number by which weights are taken, of numbers up to 1."""


_LEAST_SPREAD = 2.0**-50
"""Values that lie closer together than this part of their mean are one value, rounded."""


_REFINEMENTS = 3
"""How often a line is fitted to its residuals again, until a and b are least squares."""


class PlainMap(NamedTuple):
    """y = a · x + b.

    Parameters
    ----------
    axes : tuple of int
        The axes along which a and b differ; empty if one pair serves all values.
    scale, shift : ndarray
        a and b, of the tensor's rank, with lengths of 1 for the other axes.
    digits : int
        The significant digits of a and b together; 0 if there are several pairs.
    wrong : int
        How many values are others than the map gives.
    first_wrong : tuple of int
        The index of the first of them; empty without any.
    """

    axes: Axes
    scale: Floats
    shift: Floats
    digits: int = 0
    wrong: int = 0
    first_wrong: tuple[int, ...] = ()

    @property
    def is_simple(self) -> bool:
        """Whether one pair of round numbers serves all values."""
        return not self.axes and self.digits <= _SIMPLE

    def apply(self, x: Floats) -> Floats:
        """Return y."""
        return self.scale * x + self.shift

    def explains(self, x: Floats, y: Floats, dtype: np.dtype[Any], level: Level) -> bool:
        """Whether the map gives y within the roundings of a level and of y's dtype, where x is finite."""
        with np.errstate(all="ignore"):
            explained = (np.abs(y - self.apply(x)) <= self.allow(x, y, dtype, level)) & np.isfinite(y)
        return bool(np.all(explained | ~np.isfinite(x)))

    def find_wrong(self, x: Floats, y: Floats, dtype: np.dtype[Any], level: Level, times: float) -> Selected:
        """Return which values, where x is finite, are further off than some times what roundings come to."""
        with np.errstate(all="ignore"):
            right = self.apply(x)
            explained = np.abs(y - right) <= times * self.allow(x, right, dtype, level)
        wrong: Selected = ~(explained & np.isfinite(y)) & np.isfinite(x)
        return wrong

    def allow(self, x: Floats, y: Floats, dtype: np.dtype[Any], level: Level) -> Floats:
        """Return how far each value of y may be off."""
        return level.allow(y, dtype, self.measure_terms(x, y))

    def measure_terms(self, x: Floats, y: Floats) -> Floats:
        """Return the size of each value's terms, a · x and b, or of its line's on average."""
        others = tuple(axis for axis in range(x.ndim) if axis not in self.axes)
        terms = np.abs(self.scale * x) + np.abs(self.shift) + np.abs(y)
        terms = np.where(np.isfinite(terms), terms, 0.0)
        total: Floats = terms + terms.mean(others, keepdims=True)
        return total


def fit_lines(x: Floats, y: Floats, axes: Axes, unit: Floats | float = 0.0, *, through_zero: bool) -> PlainMap:
    """Return the lines of least squares, the distances counted in units of what rounding leaves of each value.

    Parameters
    ----------
    x, y : ndarray
        Of one shape; pairs that are not finite do not count.
    axes : tuple of int
        There is a line for each index of these.
    unit : ndarray or float
        What rounding leaves of y, beside a part of the terms that are added up; in units of that part.
    through_zero : bool
        Whether the lines have no shift.
    """
    others = tuple(axis for axis in range(x.ndim) if axis not in axes)
    with np.errstate(all="ignore"):
        counted = np.isfinite(x) & np.isfinite(y)
        x, y = np.where(counted, x, 0.0), np.where(counted, y, 0.0)
        large_x, large_y = (
            np.frexp(np.abs(values).max(others, keepdims=True, initial=0.0))[1] for values in (x, y)
        )
        x, y = np.ldexp(x, -large_x), np.ldexp(y, -large_y)  # whose squares do not overflow
        unit = np.ldexp(unit, -large_y)
        weight = counted.astype(np.float64)
        scale = shift = np.zeros([n if axis in axes else 1 for axis, n in enumerate(x.shape)])
        for refinement in range(1 + _REFINEMENTS):
            if refinement:
                terms = PlainMap(axes, scale, shift).measure_terms(x, y)
                weight = np.where(counted, 1.0 / np.maximum(terms + unit, _LEAST) ** 2, 0.0)
            rest = y - (scale * x + shift)
            total = np.maximum(weight.sum(others, keepdims=True), _LEAST)
            mean_x, mean = ((weight * z).sum(others, keepdims=True) / total for z in (x, rest))
            if through_zero:
                mean_x = mean = np.zeros_like(scale)
            distance = x - mean_x
            moved = weight * distance
            spread = (moved * distance).sum(others, keepdims=True)
            least = total * (_LEAST_SPREAD * mean_x) ** 2
            more = np.where(spread > least, (moved * rest).sum(others, keepdims=True) / spread, 0.0)
            scale, shift = scale + more, shift + (mean - more * mean_x)
    return PlainMap(axes, np.ldexp(scale, large_y - large_x), np.ldexp(shift, large_y))


def fit_medians(x: Floats, y: Floats, axes: Axes, *, through_zero: bool) -> PlainMap:
    """Return lines that few wrong values do not move: of median slopes between values that lie far apart.

    Parameters
    ----------
    x, y : ndarray
        Of one shape; pairs that are not finite do not count.
    axes : tuple of int
        There is a line for each index of these.
    through_zero : bool
        Whether the lines have no shift.
    """
    shape, (x, y) = _lay_columns(axes, x, y)
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore", RuntimeWarning)  # of lines without values
        if through_zero:
            slope, shift = np.nanmedian(y / x, axis=0), np.zeros(x.shape[1])
        else:
            order, half = np.argsort(x, axis=0), len(x) // 2
            x, y = (np.take_along_axis(values, order, axis=0) for values in (x, y))
            slope = np.nanmedian((y[-half:] - y[:half]) / (x[-half:] - x[:half]), axis=0)
            shift = np.nanmedian(y - slope * x, axis=0)
    return PlainMap(axes, np.nan_to_num(slope).reshape(shape), np.nan_to_num(shift).reshape(shape))


def fit_closely(fitted: PlainMap, x: Floats, y: Floats, dtype: np.dtype[Any], level: Level) -> PlainMap:
    """Return lines that pass every value within its bound; if there are none, lines of least squares."""
    finite, slack = np.isfinite(x) & np.isfinite(y), fitted.allow(x, y, dtype, level)
    if np.any(finite & (np.abs(y - fitted.apply(x)) > _HOPELESS * slack)):
        return fitted
    x, y, slack = np.where(finite, x, 0.0), np.where(finite, y, 0.0), np.where(finite, slack, np.inf)
    return fit_within(x, y, slack, fitted.axes, through_zero=not fitted.shift.any()) or fitted


_HOPELESS = 8.0
"""If least squares miss some value by this many times its bound, no line passes all values."""


def count_bits(fitted: PlainMap, allowed: Floats, x: Floats, y: Floats, numbers: int) -> float:
    """Return how many bits of y the map gives beyond the numbers of each line."""
    others = tuple(axis for axis in range(x.ndim) if axis not in fitted.axes)
    finite = np.isfinite(x) & np.isfinite(y)
    large = math.frexp(float(np.abs(x).max(where=finite, initial=0.0)))[1]
    deviation = np.std(np.ldexp(np.where(finite, x, 0.0), -large), axis=others, keepdims=True)
    spread = np.abs(np.ldexp(fitted.scale, large)) * deviation  # whose squares do not overflow
    bits = np.where(
        finite & (spread > 0.0), np.log2(np.maximum(spread / np.maximum(allowed, 1e-300), 1.0)), 0.0
    )
    in_line = max(1, math.prod(x.shape[axis] for axis in others))
    return float(bits.sum() * (max(0, in_line - numbers) / in_line))


_MOST_CUTS = 64
"""Slopes that are tried for a line: some ten decide nearly all of them."""


def fit_within(
    x: Floats, y: Floats, slack: Floats, axes: tuple[int, ...], *, through_zero: bool
) -> PlainMap | None:
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
    shape, columns = _lay_columns(axes, x, y, slack)
    fitted = (_fit_slopes if through_zero else _fit_both)(*columns)
    return None if fitted is None else PlainMap(axes, fitted[0].reshape(shape), fitted[1].reshape(shape))


def _lay_columns(axes: Axes, *values: Floats) -> tuple[list[int], list[Floats]]:
    """Return the shape of numbers along some axes, and arrays with the values of each line in a column."""
    shape = [n if axis in axes else 1 for axis, n in enumerate(values[0].shape)]
    others = [axis for axis in range(len(shape)) if axis not in axes]
    columns = (np.moveaxis(one, others, range(len(others))) for one in values)
    return shape, [one.reshape(-1, math.prod(shape)) for one in columns]


def _fit_slopes(x: Floats, y: Floats, slack: Floats) -> tuple[Floats, Floats] | None:
    """Return the middle of the slopes that every value of a column allows, and shifts of 0."""
    low, high = bound_each(x.T, y.T, slack.T)
    if not np.all((low <= high) & (low < np.inf)):
        return None
    slope = np.zeros(x.shape[1])
    np.add(low / 2.0, high / 2.0, out=slope, where=np.isfinite(low))
    return slope, np.zeros_like(slope)


class _Piece(NamedTuple):
    """Straight pieces, one for each column, below what has to be 0 or less: their heights at 0 and slopes."""

    height: Floats
    slope: Floats

    def choose(self, chosen: NDArray[np.bool_], other: _Piece) -> _Piece:
        """Return these lines where `chosen` is True, and other lines elsewhere."""
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
